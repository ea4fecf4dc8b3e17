import { h } from "../annotate/dom.js";
import { post, toast } from "./api.js";
import { interval, number, seconds, share, when } from "./cells.js";
import { Table } from "./tables.js";

/** The annotators: their work; excluding, readmitting and forgetting one. */

const dialog = document.getElementById("ask");
const part = (id) => document.getElementById(id);

/**
 * Ask for a reason; resolves to it, or to null when it is left. `needed`: an empty one is refused, and with `same`
 * any but that text.
 */
export function askReason({ title, why, action, needed = false, value = "", label = "Reason", same = null }) {
  part("ask-label").textContent = label;
  part("ask-title").textContent = title;
  part("ask-why").textContent = why;
  part("ask-do").textContent = action;
  part("ask-reason").value = value;
  part("ask-error").textContent = "";
  dialog.showModal();
  part("ask-reason").focus();
  return new Promise((resolve) => {
    const form = dialog.querySelector("form");
    function end(result) {
      form.onsubmit = part("ask-not").onclick = dialog.oncancel = null;
      dialog.close();
      resolve(result);
    }
    form.onsubmit = (event) => {
      event.preventDefault();
      const reason = part("ask-reason").value.trim();
      if (same !== null && reason !== same) part("ask-error").textContent = `Type ${same}.`;
      else if (needed && !reason) part("ask-error").textContent = "Say why; it stays in the log.";
      else end(reason);
    };
    part("ask-not").onclick = () => end(null);
    dialog.oncancel = () => end(null);
  });
}

export class People {
  #pending = new Map();

  constructor(api) {
    this.api = api;
    this.hasChecks = !document.getElementById("checks").hidden;
    this.checks = this.#checksTable();
    this.table = new Table(document.getElementById("annotators-table"), {
      url: `${api}/tables/annotators`,
      label: "Annotators",
      search: "Search annotators",
      empty: "Nobody has judged yet.",
      rowClass: (row) => (this.#excluded(row) === null ? "" : "m-excluded"),
      columns: [
        { key: "annotator", title: "Annotator", cell: (row) => this.#named(row) },
        { key: "judgments", title: "Judgments", number: true, cell: (row) => number(row.judgments) },
        { key: "median_seconds", title: "Median time", number: true, wide: true, help: "Median active time of a judgment, in seconds", cell: (row) => seconds(row.median_seconds) },
        { key: "agreement", title: "Agreement", number: true, help: "With the others, with its 95 % interval; none below four shared answers", cell: (row) => h("span", { title: row.measure }, interval(row.agreement, row.agreement_lower, row.agreement_upper, 2, 2)) },
        { key: "bias", title: "Bias", number: true, wide: true, help: "Mean difference from the others, in units of the scale", cell: (row) => signed(row.bias) },
        { key: "noise", title: "Noise", number: true, wide: true, help: "Standard deviation of that difference", cell: (row) => number(row.noise, 2) },
        { key: "self_consistency", title: "Self-consistency", number: true, wide: true, help: "How alike repeated answers are: 100 % when all are the same", cell: (row) => h("span", { title: row.repeats ? `${number(row.repeats)} pairs of repeated answers` : "no repeated answers" }, share(row.self_consistency)) },
        this.hasChecks && { key: "accuracy", title: "Checks", number: true, wide: true, help: "Share of the questions with known answers that were right, with its 95 % interval", cell: (row) => h("span", { title: row.checks ? `${number(row.checks)} checks` : "no checks" }, interval(row.accuracy, row.accuracy_lower, row.accuracy_upper, 2, 2)) },
        { key: "too_fast", title: "Signs", wide: true, help: "Of careless work, as far as they are sure", cell: (row) => h("span", { class: "small" }, signs(row).join("; ") || "none") },
        { key: "flags", title: "Flags", number: true, wide: true, cell: (row) => number(row.flags) },
        { key: "skips", title: "Skips", number: true, wide: true, cell: (row) => number(row.skips) },
        { key: "last", title: "Last seen", wide: true, cell: (row) => when(row.last) },
        { key: "excluded", title: "", sort: false, action: true, cell: (row) => this.#button(row) },
      ].filter(Boolean),
    });
  }

  /** New results are available; they include earlier exclusions. */
  refresh() {
    this.#pending.clear();
    return Promise.all([this.table.refresh(), this.checks.refresh()]);
  }

  #checksTable() {
    const verdict = (row, word) => h("button", { type: "button", class: "m-small", onclick: () => this.#resolve(row.key, word) }, `Its answer is ${word}`);
    return new Table(document.getElementById("checks-table"), {
      url: `${this.api}/tables/checks`,
      label: "Checks",
      empty: "This study has no checks.",
      size: 10,
      columns: [
        { key: "key", title: "Check", cell: (row) => h("span", { dir: "auto" }, row.key) },
        { key: "right", title: "Right", number: true, cell: (row) => number(row.right) },
        { key: "wrong", title: "Wrong", number: true, cell: (row) => number(row.wrong) },
        { key: "disputed", title: "", cell: (row) => (row.disputed ? h("div", { class: "m-why" }, h("span", { class: "small" }, "most people disagree with it"), verdict(row, "right"), verdict(row, "wrong")) : row.resolved ? `found ${row.resolved}` : "") },
      ],
    });
  }

  async #resolve(check, verdict) {
    try {
      await post(`${this.api}/resolve-check`, { check, verdict });
      toast(verdict === "right" ? "The check counts." : "The check counts against nobody.");
    } catch (refused) {
      toast(refused.message);
    }
  }

  #excluded(row) {
    return this.#pending.has(row.annotator) ? this.#pending.get(row.annotator) : row.excluded;
  }

  #named(row) {
    const reason = this.#excluded(row);
    const why = reason === null ? null : h("span", { class: "small m-text", dir: "auto", title: reason }, `excluded: ${reason}`);
    return h("div", {}, h("span", { dir: "auto", title: `called ${row.pseudonym} in exported files` }, row.annotator), why);
  }

  #button(row) {
    const forget = h("button", { type: "button", class: "m-small m-plain", onclick: () => this.#forget(row.annotator), "aria-label": `Forget ${row.annotator}` }, "Forget…");
    return h("div", { class: "m-actions" }, this.#excluding(row), forget);
  }

  #excluding(row) {
    const reason = this.#excluded(row);
    if (reason !== null) return h("button", { type: "button", class: "m-small", onclick: () => this.#readmit(row.annotator, reason), "aria-label": `Readmit ${row.annotator}` }, "Readmit");
    return h("button", { type: "button", class: "m-small", onclick: () => this.#exclude(row.annotator), "aria-label": `Exclude ${row.annotator}` }, "Exclude…");
  }

  async #exclude(annotator) {
    const reason = await askReason({
      title: `Exclude ${annotator}?`,
      why: "They get no further tasks. Their judgments are kept but set aside, the scores are computed again, and others are asked instead. You can undo it.",
      action: "Exclude",
      needed: true,
    });
    if (reason === null) return;
    await this.#do("exclude", annotator, reason, `${annotator} is excluded.`, () => this.#readmit(annotator, reason));
  }

  async #forget(annotator) {
    try {
      const preview = await post(`${this.api}/forget`, { annotator });
      const typed = await askReason({
        title: `Forget ${annotator}?`,
        why: ["Their judgments, consent, links and all they wrote are deleted. This cannot be undone.", ...preview.effects].join(" "),
        action: "Forget for good",
        label: `Type ${annotator} to confirm`,
        same: annotator,
      });
      if (typed === null) return;
      const done = await post(`${this.api}/forget`, { annotator, confirm: true });
      toast([...done.effects, ...done.remaining_steps].join(" "));
      await this.refresh();
    } catch (refused) {
      toast(refused.message);
    }
  }

  async #readmit(annotator, reason) {
    await this.#do("readmit", annotator, "", `${annotator} counts again.`, () => this.#do("exclude", annotator, reason, `${annotator} is excluded.`));
  }

  async #do(what, annotator, reason, words, undo) {
    try {
      await post(`${this.api}/${what}`, { annotator, reason });
    } catch (refused) {
      toast(refused.message);
      return;
    }
    this.#pending.set(annotator, what === "exclude" ? reason : null);
    await this.table.refresh();
    toast(words, undo);
  }
}

/** Signs of careless work that are sure: their intervals lie above what anybody would show. */
function signs(row) {
  return [
    row.too_fast_lower > 0.2 && `${share(row.too_fast)} faster than one can read`,
    row.constant_lower > 0.5 && `${share(row.constant)} the same answer`,
    row.one_sided && `chose place ${row.place} in ${share(row.place_share)}`,
  ].filter(Boolean);
}

function signed(value) {
  if (value === null || value === undefined) return "–";
  return value > 0 ? `+${number(value, 2)}` : number(value, 2).replace("-", "−");
}
