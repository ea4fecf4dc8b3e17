import { h } from "../annotate/dom.js";
import { post, read, toast } from "./api.js";
import { clock, itemLink, number, when } from "./cells.js";
import { askReason, confirmAction } from "./dialogs.js";
import { Table } from "./tables.js";

/** The tab Activity: what happened, what annotators hold now, and the study on Prolific. */

const part = (id) => document.getElementById(id);

export function start({ api }) {
  const activity = new Table(part("activity-table"), {
    url: `${api}/tables/activity`,
    label: "Activity",
    search: "Search the activity",
    empty: "Nothing has happened yet.",
    columns: [
      { key: "at", title: "When", sort: false, cell: (row) => clock(row.at) },
      { key: "text", title: "What", sort: false, cell: (row) => h("div", { dir: "auto" }, row.text, row.reason ? h("p", { class: "small muted" }, row.reason) : null) },
      { key: "category", title: "About", sort: false, wide: true, cell: (row) => h("span", { class: "tag" }, row.category) },
      { key: "who", title: "By", sort: false, wide: true, cell: (row) => h("span", { dir: "auto" }, row.who || "–") },
    ],
  });
  const notes = new Table(part("notes-table"), {
    url: `${api}/tables/notes`,
    label: "Flags and skips",
    empty: "Nobody has flagged or skipped anything.",
    size: 8,
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
  if (part("pilot")) showPilot(part("pilot"), api);
  const ready = part("prolific") ? new Prolific(part("prolific"), api).refresh() : null;
  return { parts: ["progress"], ready, refresh: () => Promise.all([activity.refresh(), notes.refresh(), leased.refresh()]) };
}

/** What the answers so far say about the full run. */
function showPilot(place, api) {
  const target = h("input", { type: "number", id: "pilot-target", min: 0.5, max: 0.99, step: 0.01, value: 0.9 });
  const result = h("div", { role: "status" });
  const button = h("button", { type: "button" }, "Plan the full run");
  button.addEventListener("click", async () => {
    button.disabled = true;
    result.replaceChildren(h("p", { class: "muted" }, "Simulating the full run with annotators like these…"));
    try {
      const { lines } = await read(`${api}/pilot?target=${encodeURIComponent(target.value)}`);
      result.replaceChildren(...lines.map((line) => h("p", {}, line)));
    } catch (refused) {
      result.replaceChildren(h("p", { role: "alert" }, refused.message));
    }
    button.disabled = false;
  });
  place.replaceChildren(
    h("p", { class: "muted" }, "Use the answers so far as a pilot: how long a task takes, what annotators earn, and how many judgments the target reliability needs."),
    h("div", { class: "row" }, h("label", { for: "pilot-target" }, "Target reliability"), target, button),
    result,
  );
}

const ACTIONS = {
  draft: { label: "Create or update the draft…", title: "Create the draft on Prolific?", action: "Create draft" },
  publish: { label: "Publish or add places…", title: "Publish the study on Prolific?", action: "Publish and pay" },
  sync: { label: "Read submissions…", title: "Read the submissions?", action: "Read" },
  approve: { label: "Review submissions…", title: "Approve submissions?", action: "Approve and pay" },
  reject: { label: "Reject…", title: "Reject these submissions?", action: "Reject" },
  bonus: { label: "Pay bonuses…", title: "Pay bonuses?", action: "Pay" },
  stop: { label: "Stop on Prolific…", title: "Stop the study on Prolific?", action: "Stop for good" },
};

/** The study on Prolific: its state, and actions that are previewed before they are carried out. */
class Prolific {
  constructor(place, api) {
    Object.assign(this, { place, url: `${api}/prolific` });
  }

  async refresh() {
    try {
      this.#show(await read(this.url));
    } catch (refused) {
      this.place.replaceChildren(h("p", { role: "alert" }, refused.message), h("button", { type: "button", onclick: () => this.refresh() }, "Try again"));
    }
  }

  #show({ text, facts, submissions, actions, connected, awaiting, categories }) {
    const rows = { ...facts };
    const counts = Object.entries(submissions).map(([name, count]) => `${number(count)} ${name.toLowerCase()}`);
    if (counts.length) rows.Submissions = counts.join(", ");
    const list = Object.entries(rows).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
    const buttons = actions.filter((name) => name !== "reject").map((name) => h("button", { type: "button", onclick: (event) => this.#act(name, event.target) }, ACTIONS[name].label));
    if (actions.includes("draft") && actions.includes("publish")) buttons.push(h("button", { type: "button", onclick: (event) => this.#publishPilot(event.target) }, "Publish a pilot…"));
    this.place.replaceChildren(
      h("p", { class: connected ? null : "muted" }, text),
      list.length ? h("dl", { class: "m-facts" }, list) : "",
      buttons.length ? h("div", { class: "row" }, buttons) : "",
      actions.includes("reject") ? this.#rejection(awaiting, categories) : "",
    );
  }

  async #publishPilot(button) {
    const places = await askReason({ title: "Publish a pilot?", why: "A few participants first: their times and agreement show what the full run takes. More places can be added later.", action: "Continue", label: "Places of the pilot", value: "5", needed: true });
    if (places === null) return;
    const pilot = Number(places);
    if (!Number.isInteger(pilot) || pilot < 1) {
      toast("Enter a whole number of places, such as 5.");
      return;
    }
    await this.#act("publish", button, { pilot });
  }

  /** The form to reject submissions; what it would do is confirmed as all other actions. */
  #rejection(awaiting, categories) {
    const people = awaiting.map((name) => h("label", { class: "m-check" }, h("input", { type: "checkbox", value: name }), " ", h("span", { dir: "auto" }, name)));
    const category = h("select", { id: "reject-category" }, categories.map((name) => h("option", { value: name, selected: name === "FAILED_CHECK" }, name.toLowerCase().replaceAll("_", " "))));
    const message = h("textarea", { id: "reject-message", rows: 3, maxlength: 2000 });
    const send = h("button", { type: "button" }, "Reject…");
    send.addEventListener("click", () => {
      const participants = people.map((label) => label.querySelector("input")).filter((input) => input.checked).map((input) => input.value);
      this.#act("reject", send, { participants, category: category.value, message: message.value });
    });
    return h(
      "details",
      {},
      h("summary", {}, "Reject submissions"),
      h("div", { class: "flow" }, h("p", { class: "small muted" }, "Reject only work that is clearly careless. The participants are not paid; Prolific may ask you for the reason."), h("fieldset", { class: "m-checks" }, h("legend", {}, "Participants"), people), h("div", { class: "field" }, h("label", { for: "reject-category" }, "Reason"), category), h("div", { class: "field" }, h("label", { for: "reject-message" }, "Message to the participants (100 characters or more)"), message), h("div", { class: "row" }, send)),
    );
  }

  async #act(action, button, options = {}) {
    button.disabled = true;
    try {
      const preview = await post(this.url, { action, ...options });
      if (!preview.digest) {
        toast(preview.lines.join(" "));
        return;
      }
      const { title, action: verb } = ACTIONS[action];
      if (!(await confirmAction({ title, why: preview.lines, action: verb }))) return;
      const done = await post(this.url, { action, agreed: preview.digest, ...options });
      toast(done.lines.join(" "));
      await this.refresh();
    } catch (refused) {
      toast(refused.message);
    } finally {
      button.disabled = false;
    }
  }
}
