import { post, read, toast } from "./api.js";
import { number } from "./cells.js";
import { Charts } from "./charts.js";
import { askReason } from "./dialogs.js";

/**
 * The dashboard: the frame of its tabs. The server sends the summary now and at each change; it has the version of each part of
 * the results, and what shows a part is loaded whenever its version is another than the one on the page. So nothing is missed,
 * whether a part was computed before or after the page began to listen.
 */

const { api, first, tab } = document.body.dataset;
const part = (id) => document.getElementById(id);

const charts = new Charts(api);
const content = (await import(`./${tab}.js`)).start({ api });
const shown = new Map();
const CHARTS_MS = 1500; // So long the tab waits for its charts; their places are reserved.
const SETTLE_MS = 4000; // After this time, what is not there yet is shown as computing.
let state = "open";

function show(summary) {
  for (const element of document.querySelectorAll("[data-text]")) {
    const text = summary.texts[element.dataset.text] ?? "";
    if (element.textContent !== text) element.textContent = text;
    if ("hideEmpty" in element.dataset) element.hidden = !text;
  }
  for (const element of document.querySelectorAll("[data-number]")) element.textContent = number(summary[element.dataset.number]);
  showState(summary);
  part("error").hidden = !summary.error;
  part("error").textContent = summary.error ? `The results cannot be computed: ${summary.error} The answers are safe.` : "";
  const drawn = charts.show(summary);
  content.show?.(summary);
  const isNew = content.parts.some((name) => summary.parts[name] !== undefined && summary.parts[name] !== shown.get(name));
  if (isNew || !shown.size) {
    for (const name of content.parts) shown.set(name, summary.parts[name]);
    const charted = Promise.race([drawn, new Promise((done) => setTimeout(done, CHARTS_MS))]);
    const loaded = [charted, content.refresh(summary), content.ready];
    const isComplete = content.parts.every((name) => summary.parts[name] !== undefined);
    if (isComplete) Promise.allSettled(loaded).then(settle);
  }
}

/** Show the whole tab. Until its first section has its content, what is below would move, so it is not shown. */
function settle() {
  part("tab").classList.remove("m-settling");
}

function showState(summary) {
  state = summary.state;
  part("state").textContent = summary.texts.state;
  part("state").className = `tag m-state-${state}`;
  for (const button of document.querySelectorAll("[data-state]")) {
    const next = button.dataset.state;
    button.hidden = next === state || (next === "paused" && state === "closed");
  }
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
}

const STATES = {
  paused: { title: "Pause the study?", why: "Annotators get no tasks until you reopen it; answers that are being sent are kept. Annotators see your reason.", action: "Pause", done: "The study is paused." },
  closed: { title: "Close the study?", why: "Annotators get no further tasks; answers that are being sent are kept. You can reopen it. Annotators see your reason.", action: "Close", done: "The study is closed." },
};

async function changeState(next) {
  const before = state;
  const reason = next === "open" ? "" : await askReason(STATES[next]);
  if (reason === null) return;
  const set = (newState, newReason) => post(`${api}/state`, { state: newState, reason: newReason }).then(() => read(`${api}/summary`)).then(show);
  try {
    await set(next, reason);
    toast(next === "open" ? "The study is open." : STATES[next].done, () => set(before, ""));
  } catch (refused) {
    toast(refused.message);
  }
}

for (const button of document.querySelectorAll("[data-state]")) {
  button.addEventListener("click", () => changeState(button.dataset.state));
}

document.querySelector(".m-tabs [aria-current]").scrollIntoView({ block: "nearest", inline: "center" });
if (first) show(JSON.parse(first));
setTimeout(settle, SETTLE_MS);
live();
