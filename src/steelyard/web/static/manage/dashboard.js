import { h } from "../annotate/dom.js";
import { post, read, toast } from "./api.js";
import { interval, line, number, when } from "./cells.js";
import { Charts } from "./charts.js";
import { askReason, People } from "./people.js";
import { Systems } from "./systems.js";
import { Table } from "./tables.js";
import { Tournaments } from "./tournaments.js";

/** The dashboard: the server sends an event when something has changed, and the parts that show it are reloaded. */

const { api, judge, first } = document.body.dataset;
const part = (id) => document.getElementById(id);
const itemLink = (id, text) => h("a", { href: `item?id=${encodeURIComponent(id)}`, dir: "auto" }, text ?? id);

let scale = [0, 1];

const charts = new Charts(api);
const people = new People(api);
const systems = new Systems(api);
const tournaments = new Tournaments(api);

const scores = new Table(part("scores-table"), {
  url: `${api}/tables/scores`,
  label: "Scores",
  search: "Search items",
  empty: "There are no scores yet.",
  columns: [
    { key: "rank", title: "Rank", number: true, help: "With the interval it is likely to lie in", cell: (row) => interval(row.rank, row.rank_lower, row.rank_upper) },
    { key: "item", title: "Item", cell: (row) => named(row) },
    { key: "criterion", title: "Criterion", cell: (row) => row.criterion },
    { key: "label", title: "Label", cell: (row) => row.label ?? "–" },
    { key: "probability", title: "Probability", number: true, cell: (row) => interval(row.probability, row.lower, row.upper) },
    { key: "score", title: "Score", number: true, cell: (row) => interval(row.score, row.lower, row.upper) },
    { key: "unit_score", title: "", sort: false, wide: true, cell: (row) => line(row.score, row.lower, row.upper, scale) },
    { key: "judgments", title: "Judgments", number: true, wide: true, cell: (row) => number(row.judgments) },
    { key: "annotators", title: "Annotators", number: true, wide: true, cell: (row) => number(row.annotators) },
  ],
});

function named(row) {
  const text = row.text && row.text !== row.item ? h("span", { class: "small muted m-text", dir: "auto" }, row.text) : null;
  return h("div", {}, itemLink(row.item), text);
}

const statistics = new Table(part("statistics-table"), {
  url: `${api}/tables/statistics`,
  label: "Reliability",
  empty: "Nothing can be said before some items have two judgments.",
  size: 50,
  columns: [
    { key: "label", title: "Statistic", sort: false, cell: (row) => [row.label, row.criterion ? ` (${row.criterion})` : ""].join("") },
    { key: "value", title: "Value", sort: false, number: true, cell: (row) => interval(row.value, row.lower, row.upper, 2) },
    { key: "note", title: "What it counts", sort: false, wide: true, cell: (row) => h("span", { class: "small muted" }, row.note) },
  ],
});

const notes = new Table(part("notes-table"), {
  url: `${api}/tables/notes`,
  label: "Flags and skips",
  empty: "Nobody has flagged or skipped anything.",
  size: 10,
  columns: [
    { key: "at", title: "When", sort: false, cell: (row) => when(row.at) },
    { key: "kind", title: "What", sort: false, cell: (row) => row.kind },
    { key: "annotator", title: "Annotator", sort: false, cell: (row) => h("span", { dir: "auto" }, row.annotator) },
    { key: "reason", title: "Reason", sort: false, cell: (row) => h("span", { dir: "auto" }, row.reason || "no reason given") },
  ],
});

const leased = new Table(part("leased-table"), {
  url: `${api}/tables/leased_tasks`,
  label: "Leased tasks",
  empty: "No task is leased.",
  size: 8,
  columns: [
    { key: "annotator", title: "Annotator", sort: false, cell: (row) => h("span", { dir: "auto" }, row.annotator) },
    { key: "at", title: "Since", sort: false, cell: (row) => when(row.at) },
    { key: "items", title: "Items", sort: false, cell: (row) => row.items.slice(0, 8).flatMap((id, place) => [place ? ", " : "", itemLink(id)]) },
  ],
});

const least = new Table(part("least-table"), {
  url: `${api}/tables/least_certain`,
  label: "Least certain items",
  size: 8,
  columns: [
    { key: "item", title: "Item", sort: false, cell: (row) => itemLink(row.item) },
    { key: "width", title: "Width of the interval", sort: false, number: true, cell: (row) => number(row.width) },
    { key: "judgments", title: "Judgments", sort: false, number: true, cell: (row) => number(row.judgments) },
  ],
});

function show(summary) {
  for (const element of document.querySelectorAll("[data-text]")) {
    const text = summary.texts[element.dataset.text] ?? "";
    if (element.textContent !== text) element.textContent = text;
    if ("hideEmpty" in element.dataset) element.hidden = !text;
  }
  for (const element of document.querySelectorAll("[data-number]")) element.textContent = number(summary[element.dataset.number]);
  part("meter").value = (100 * summary.done) / Math.max(summary.total, 1);
  part("state").textContent = summary.texts.state;
  part("state").className = `tag m-state-${summary.state}`;
  for (const button of document.querySelectorAll("[data-state]")) {
    const state = button.dataset.state;
    button.hidden = state === summary.state || (state === "paused" && summary.state === "closed");
  }
  part("empty").hidden = summary.judgments > 0 || summary.state === "closed";
  part("finished").hidden = !summary.finished;
  part("error").hidden = !summary.error;
  part("error").textContent = summary.error ? `The results cannot be computed: ${summary.error} The answers are safe.` : "";
  charts.show(summary);
}

async function reloadOverview() {
  const histogram = await read(`${api}/tables/histogram?limit=500`).catch(() => null);
  if (histogram?.rows.length) scale = [histogram.rows[0].lower, histogram.rows.at(-1).upper];
  await Promise.all([systems.refresh(), scores.refresh(), people.refresh(), notes.refresh(), leased.refresh(), least.refresh(), tournaments.refresh()]);
}

function live() {
  const label = part("live");
  label.hidden = false;
  const setStatus = (text, good) => {
    label.textContent = text;
    label.className = good ? "m-live m-good" : "m-live m-bad";
  };
  const source = new EventSource(`${api}/live`);
  source.addEventListener("open", () => setStatus("live", true));
  source.addEventListener("error", () => setStatus("no connection, trying again", false));
  source.addEventListener("summary", (event) => show(JSON.parse(event.data)));
  source.addEventListener("overview", reloadOverview);
  source.addEventListener("reliability", () => statistics.refresh());
}

const STATES = {
  paused: { title: "Pause the study?", why: "Nobody gets a task until you reopen it; answers that are on their way are kept. People read your reason.", action: "Pause", done: "The study is paused." },
  closed: { title: "Close the study?", why: "Nobody gets a task any more; answers that are on their way are kept. You can reopen it. People read your reason.", action: "Close", done: "The study is closed." },
};

async function changeState(state) {
  const before = part("state").className.split("m-state-")[1];
  const reason = state === "open" ? "" : await askReason(STATES[state]);
  if (reason === null) return;
  const set = (newState, newReason) => post(`${api}/state`, { state: newState, reason: newReason }).then(() => read(`${api}/summary`)).then(show);
  try {
    await set(state, reason);
    toast(state === "open" ? "The study is open." : STATES[state].done, () => set(before, ""));
  } catch (refused) {
    toast(refused.message);
  }
}

for (const button of document.querySelectorAll("[data-state]")) {
  button.addEventListener("click", () => changeState(button.dataset.state));
}
part("judge-url").textContent = new URL(judge, location.href).href;
part("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(part("judge-url").textContent);
  toast("The address is copied.");
});

if (first) show(JSON.parse(first));
reloadOverview();
statistics.refresh();
live();

part("real-ids").addEventListener("change", (event) => {
  for (const link of part("files").querySelectorAll("a[download]")) {
    const url = new URL(link.href);
    if (event.target.checked) url.searchParams.set("real_ids", "true");
    else url.searchParams.delete("real_ids");
    link.href = url.href;
  }
});
