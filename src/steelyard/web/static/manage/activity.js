import { h } from "../annotate/dom.js";
import { post, read, toast } from "./api.js";
import { clock, itemLink, number, when } from "./cells.js";
import { confirmAction } from "./dialogs.js";
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
  if (part("prolific")) new Prolific(part("prolific"), api).refresh();
  return { parts: ["progress"], refresh: () => Promise.all([activity.refresh(), notes.refresh(), leased.refresh()]) };
}

const ACTIONS = {
  draft: { label: "Create or update the draft…", title: "Create the draft on Prolific?", action: "Create draft" },
  publish: { label: "Publish or add places…", title: "Publish the study on Prolific?", action: "Publish and pay" },
  sync: { label: "Read submissions…", title: "Read the submissions?", action: "Read" },
  approve: { label: "Review submissions…", title: "Approve submissions?", action: "Approve and pay" },
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

  #show({ text, facts, submissions, actions, connected }) {
    const rows = { ...facts };
    const counts = Object.entries(submissions).map(([name, count]) => `${number(count)} ${name.toLowerCase()}`);
    if (counts.length) rows.Submissions = counts.join(", ");
    const list = Object.entries(rows).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
    const buttons = actions.map((name) => h("button", { type: "button", onclick: (event) => this.#act(name, event.target) }, ACTIONS[name].label));
    this.place.replaceChildren(
      h("p", { class: connected ? null : "muted" }, text),
      list.length ? h("dl", { class: "m-facts" }, list) : "",
      buttons.length ? h("div", { class: "row" }, buttons) : "",
    );
  }

  async #act(action, button) {
    button.disabled = true;
    try {
      const preview = await post(this.url, { action });
      if (!preview.digest) {
        toast(preview.lines.join(" "));
        return;
      }
      const { title, action: verb } = ACTIONS[action];
      if (!(await confirmAction({ title, why: preview.lines, action: verb }))) return;
      const done = await post(this.url, { action, agreed: preview.digest });
      toast(done.lines.join(" "));
      await this.refresh();
    } catch (refused) {
      toast(refused.message);
    } finally {
      button.disabled = false;
    }
  }
}
