import { itemContent, explained } from "./content.js";
import { seeAgain } from "./dialogs.js";
import { h, uniqueId } from "./dom.js";
import * as local from "./local.js";
import { t } from "./messages.js";

/** Feedback on answers to checks, shown without getting in the way. */

const MOST_RECENT = 200;
// Enter within this time is taken for an accidental second press: the notice has not been read.
const UNREAD_MS = 1_000;

/**
 * Wrong answers with the expected ones: stored in this browser until dismissed, in any tab. One at a time is shown above
 * the buttons. The notice takes no focus, and its space is at the foot of the page, so that neither the task nor the
 * buttons move when it appears.
 */
export class Feedback {
  #api;
  #prefix;
  #frame;
  #page;
  #refresh;
  #underWay = new Map();
  #shown = null; // What is in the notice, and since when.

  /** `refresh` is called when the sign for a right answer has been shown long enough. */
  constructor({ api, study, key, frame, page, refresh }) {
    this.#api = api;
    this.#prefix = `steelyard:feedback:${study}:${encodeURIComponent(key)}:`;
    this.#frame = frame;
    this.#page = page;
    this.#refresh = refresh;
    addEventListener("storage", (event) => {
      if (event.key?.startsWith(this.#prefix)) this.show();
    });
  }

  /** Remember a task whose answer is on its way. */
  expect(task, answer) {
    this.#underWay.set(task.judgment_id, { task, answer });
  }

  /** Show the server's feedback on an answer; it may arrive late, and be about an answer of an earlier visit. */
  async receive({ kind, id, body }, feedback) {
    if (kind !== "judgment") return;
    const sent = this.#underWay.get(id);
    this.#underWay.delete(id);
    if (!feedback) return;
    if (feedback.right) {
      this.#frame.right(this.#refresh);
      return;
    }
    const { task = null, answer = body.answer } = sent ?? (await this.#lookUp(id)) ?? {};
    local.set(this.#prefix + id, JSON.stringify({ id, at: Date.now(), task, answer, feedback }));
    this.show();
  }

  /** Show the oldest that has not been dismissed; `anew` when the language has changed. */
  show({ anew = false } = {}) {
    const [entry, ...more] = this.#entries();
    const now = entry ? `${entry.id} ${more.length}` : null;
    if (now === (this.#shown?.what ?? null) && !anew) return;
    this.#shown = entry ? { what: now, id: entry.id, since: this.#since(entry) } : null;
    const place = this.#frame.feedback;
    const focused = place.contains(document.activeElement);
    place.replaceChildren(...(entry ? [this.#notice(entry, more.length)] : []));
    if (focused) (place.querySelector("button.dismiss") ?? this.#frame.main).focus({ preventScroll: true });
  }

  /** Dismiss what is shown; false when there is nothing. Enter dismisses only what can have been read. */
  dismiss({ byEnter = false } = {}) {
    if (!this.#shown || (byEnter && performance.now() - this.#shown.since < UNREAD_MS)) return false;
    local.remove(this.#prefix + this.#shown.id);
    this.show();
    return true;
  }

  #since(entry) {
    return entry.id === this.#shown?.id ? this.#shown.since : performance.now();
  }

  #entries() {
    return local
      .namesFrom(this.#prefix)
      .map((name) => local.get(name))
      .filter((text) => text !== null)
      .map((text) => JSON.parse(text))
      .sort((a, b) => a.at - b.at);
  }

  async #lookUp(id) {
    try {
      const { judgments } = await this.#api.get(`/judgments?recent=${MOST_RECENT}`);
      return judgments.find(({ task }) => task.judgment_id === id);
    } catch {
      return undefined; // Feedback without the question is better than none.
    }
  }

  #notice(entry, more) {
    const { task, feedback } = entry;
    const heading = uniqueId("feedback");
    const again = h(
      "button",
      { type: "button", class: "quiet", onclick: () => seeAgain(entry, this.#page) },
      t("Show it again…"),
    );
    const dismiss = h(
      "button",
      { type: "button", class: "dismiss", "aria-keyshortcuts": "Escape", onclick: () => this.dismiss() },
      h("span", {}, more ? t("Next") : t("OK")),
      h("kbd", { "aria-hidden": "true" }, "Esc"),
    );
    return h(
      "section",
      { class: "feedback-notice", "aria-labelledby": heading },
      h(
        "div",
        { class: "feedback-row" },
        h(
          "div",
          { class: task ? "feedback-words in-short" : "feedback-words" },
          h("h2", { id: heading }, t("One answer was not quite correct")),
          task ? h("p", { class: "muted", dir: "auto" }, names(task)) : null,
          explained(feedback),
        ),
        h("div", { class: "feedback-buttons" }, task ? again : null, dismiss),
      ),
    );
  }
}

function names(task) {
  return task.items.map((item, position) => itemContent(item, position).name).join(" · ");
}
