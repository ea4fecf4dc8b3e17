import { h } from "../annotate/dom.js";
import { post, toast } from "./api.js";
import { interval, number, seconds, share, when } from "./cells.js";
import { askReason } from "./dialogs.js";
import { Table } from "./tables.js";

/** The tab Annotators: their work; excluding, readmitting and forgetting one. */

export function start({ api }) {
  const annotators = new Annotators(api);
  const judges = document.getElementById("judges-table") === null ? null : judgesTable(api);
  return { parts: ["annotators"], refresh: () => Promise.all([annotators.refresh(), judges?.refresh()]) };
}

class Annotators {
  #pending = new Map();

  constructor(api) {
    this.api = api;
    const place = document.getElementById("annotators-table");
    this.hasChecks = "checks" in place.dataset;
    this.table = new Table(place, {
      url: `${api}/tables/annotators`,
      label: "Annotators",
      search: "Search annotators",
      empty: "Nobody has judged yet.",
      cards: true,
      rowClass: (row) => (this.#excluded(row) === null ? "" : "m-excluded"),
      columns: [
        { key: "annotator", title: "Annotator", heading: true, cell: (row) => this.#named(row) },
        { key: "judgments", title: "Judgments", number: true, help: "Number of answers, checks and repeats included.", cell: (row) => number(row.judgments) },
        { key: "agreement", title: "Agreement", number: true, help: "Agreement with the other annotators, with its 95 % interval: 1 is perfect, 0 is chance for ratings and .5 for comparisons. It needs four shared answers.", cell: (row) => h("span", { title: row.measure }, interval(row.agreement, row.agreement_lower, row.agreement_upper, 2, 2)) },
        this.hasChecks && { key: "accuracy", title: "Checks right", number: true, help: "Proportion of the questions with known answers that were right, with its 95 % interval.", cell: (row) => h("span", { title: row.checks ? `${number(row.checks)} checks` : "no checks" }, interval(row.accuracy, row.accuracy_lower, row.accuracy_upper, 2, 2)) },
        { key: "median_seconds", title: "Median time", number: true, help: "Median active time of an answer.", cell: (row) => seconds(row.median_seconds) },
        { key: "seconds_per_item", title: "Time per item", number: true, help: "Median active time of an answer, divided by the items it shows.", cell: (row) => seconds(row.seconds_per_item) },
        { key: "first_action", title: "First action", number: true, help: "Median active time before the answer was first touched.", cell: (row) => seconds(row.first_action) },
        { key: "changed", title: "Changed", number: true, help: "Proportion of answers that were changed before they were sent.", cell: (row) => share(row.changed) },
        { key: "bias", title: "Bias", number: true, help: "Mean difference from the other annotators, in units of the scale: 0 is best.", cell: (row) => signed(row.bias) },
        { key: "noise", title: "Noise", number: true, help: "Standard deviation of that difference: lower is better.", cell: (row) => number(row.noise, 2) },
        { key: "infit", title: "Infit", number: true, help: "How far the answers deviate from what all answers together predict: 1 is as expected. Marked above the mean + 2 standard deviations of all annotators.", cell: (row) => h("span", {}, number(row.infit, 2), row.misfit ? h("strong", { title: "above the mean + 2 standard deviations" }, " !") : null) },
        { key: "severity", title: "Severity", number: true, help: "How much lower than the average annotator, in logits; 0.3 is about 7 points in the middle of a scale from 0 to 100.", cell: (row) => signedWithInterval(row, "severity") },
        { key: "drift", title: "Drift", number: true, help: "Change of severity from the first answer to the last, in logits; marked if its 95 % interval excludes 0. One annotator in twenty is marked by chance.", cell: (row) => signedWithInterval(row, "drift", true) },
        { key: "self_consistency", title: "Self-consistency", number: true, help: "Agreement of repeated answers: 100 % if all are the same.", cell: (row) => h("span", { title: row.repeats ? `${number(row.repeats)} pairs of repeated answers` : "no repeated answers" }, share(row.self_consistency)) },
        { key: "too_fast", title: "Signs of careless work", help: "Answers faster than the text can be read, nearly always the same answer or position, fast guesses, copied answers, scripted input; shown only if statistically clear. Signals, not proof.", cell: (row) => h("span", { class: "small" }, signs(row).join("; ") || "none") },
        { key: "flags", title: "Flags", number: true, help: "Tasks that the annotator commented on.", cell: (row) => number(row.flags) },
        { key: "skips", title: "Skips", number: true, help: "Tasks that the annotator skipped.", cell: (row) => number(row.skips) },
        { key: "last", title: "Last seen", cell: (row) => when(row.last) },
        "manage" in document.body.dataset && { key: "excluded", title: "Actions", sort: false, action: true, cell: (row) => this.#button(row) },
      ].filter(Boolean),
    });
  }

  /** New results are available; they include earlier exclusions. */
  refresh() {
    this.#pending.clear();
    return this.table.refresh();
  }

  #excluded(row) {
    return this.#pending.has(row.annotator) ? this.#pending.get(row.annotator) : row.excluded;
  }

  #named(row) {
    const reason = this.#excluded(row);
    const why = reason === null ? null : h("span", { class: "small m-text", dir: "auto", title: reason }, `excluded: ${reason}`);
    const model = row.kind === "model" ? h("span", { class: "small muted", title: "A model: rules about speed, quotas and pay do not apply. Its agreement is with people." }, " model") : null;
    return h("div", {}, h("a", { href: `annotator?id=${encodeURIComponent(row.annotator)}`, dir: "auto", title: `called ${row.pseudonym} in exported files` }, row.annotator), model, why);
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
      why: "They get no further tasks. Their judgments are kept but do not count, the scores are recomputed, and the tasks are given to others. You can undo it.",
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
        why: ["Their judgments, consent, links and free text are deleted. This cannot be undone.", ...preview.effects].join(" "),
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
    await this.#do("readmit", annotator, "", `${annotator} is readmitted.`, () => this.#do("exclude", annotator, reason, `${annotator} is excluded.`));
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
    row.too_fast_lower > 0.2 && `${share(row.too_fast)} answered faster than the text can be read`,
    row.constant_lower > 0.5 && `${share(row.constant)} the same answer`,
    row.guessing && `${share(row.fast_guesses)} fast guesses`,
    row.copies && `answers deviate like those of ${row.copies}`,
    row.like_model && `answers deviate like those of ${row.like_model}`,
    row.scripted > 0 && `${number(row.scripted)} answers by a script`,
    row.one_sided && `chose position ${row.place} in ${share(row.place_share)}`,
  ].filter(Boolean);
}

function signed(value) {
  if (value === null || value === undefined) return "–";
  return value > 0 ? `+${number(value, 2)}` : number(value, 2).replace("-", "−");
}

/** A value whose interval is in the tooltip; marked, if wanted, where the interval excludes 0. */
function signedWithInterval(row, name, isMarked = false) {
  const [value, lower, upper] = [row[name], row[`${name}_lower`], row[`${name}_upper`]];
  if (value === null || value === undefined) return "–";
  const mark = isMarked && (lower > 0 || upper < 0) ? h("strong", {}, " !") : null;
  return h("span", { title: `95 % interval ${signed(lower)} to ${signed(upper)}` }, signed(value), mark);
}

function judgesTable(api) {
  return new Table(document.getElementById("judges-table"), {
    url: `${api}/tables/judges`,
    label: "Models as judges",
    empty: "No item has been judged by both a model and people.",
    cards: true,
    columns: [
      { key: "judge", title: "Model", heading: true, cell: (row) => h("span", { dir: "auto" }, [row.judge, row.criterion].filter(Boolean).join(", ")) },
      { key: "judgments", title: "Judgments", number: true, cell: (row) => number(row.judgments) },
      { key: "agreement", title: "Agreement with a person", number: true, help: "Agreement of the model and a person, with its 95 % interval.", cell: (row) => h("span", { title: row.measure }, interval(row.agreement, row.agreement_lower, row.agreement_upper, 2, 2)) },
      { key: "people", title: "Of two people", number: true, help: "The same measure for two people: the target for the model.", cell: (row) => interval(row.people, row.people_lower, row.people_upper, 2, 2) },
      { key: "winning_rate", title: "Wins against", number: true, help: "Alternative annotator test (Calderon et al., 2025): proportion of people whom the model could replace. It passes at 50 % or more.", cell: (row) => share(row.winning_rate) },
      { key: "flips", title: "Flips", number: true, help: "Proportion of pairs decided differently in the other order: lower is better.", cell: (row) => share(row.flips) },
      { key: "self_consistency", title: "Self-consistency", number: true, help: "Agreement of repeated answers: 100 % if all are the same.", cell: (row) => share(row.self_consistency) },
      { key: "length_bias", title: "Length bias", number: true, help: "How much more the model prefers long items than people do: 0 is best.", cell: (row) => signed(row.length_bias) },
    ],
  });
}
