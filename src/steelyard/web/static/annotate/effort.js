/** How an answer comes about: times, changes, and counts of scripted events and pastes; nothing about content. */

const SAME_MOVE_MS = 1_000;

export class Effort {
  #activeTime;
  #ids;
  #first;
  #items;
  #changes;
  #until;
  #before = {};
  #movedAt = -Infinity;
  #untrusted;
  #pastes;

  /** `state` is what was noted before a reload. */
  constructor(task, activeTime, state = null) {
    this.#activeTime = activeTime;
    this.#ids = task.items.map((item) => item.id);
    this.#first = state?.first ?? null;
    this.#items = { ...state?.items };
    this.#changes = state?.changes ?? 0;
    this.#until = state?.until ?? 0;
    this.#before = state?.before ?? {};
    this.#untrusted = state?.untrusted ?? 0;
    this.#pastes = state?.pastes ?? 0;
  }

  /** Something happened within the answer: count it if a script made it, or if it is a paste. */
  event({ type, isTrusted }) {
    if (type === "paste") this.#pastes += 1;
    else if (!isTrusted) this.#untrusted += 1;
  }

  /** The answer has changed. The time since the last change went into the part that is different now. */
  note(answer) {
    const seconds = this.#activeTime.seconds();
    this.#first ??= seconds;
    const parts = this.#parts(answer);
    const changed = Object.keys(parts).filter((id) => parts[id] !== this.#before[id]);
    const now = performance.now();
    // A slider that is dragged changes all the time: that is one change.
    if (changed.some((id) => id in this.#before) && now - this.#movedAt > SAME_MOVE_MS) this.#changes += 1;
    const [id] = changed;
    if (this.#ids.length > 1 && this.#ids.includes(id)) {
      this.#items[id] = Math.round(10 * ((this.#items[id] ?? 0) + seconds - this.#until)) / 10;
    }
    if (changed.length) this.#movedAt = now;
    this.#until = seconds;
    this.#before = parts;
  }

  /** The answer about each thing, or the answer as a whole where it compares them. */
  #parts(answer) {
    const byThing = answer && !Array.isArray(answer) && Object.keys(answer).every((id) => this.#ids.includes(id));
    const parts = byThing ? answer : { "": answer };
    return Object.fromEntries(Object.entries(parts).map(([id, part]) => [id, JSON.stringify(part)]));
  }

  state() {
    return { first: this.#first, items: this.#items, changes: this.#changes, until: this.#until, before: this.#before, untrusted: this.#untrusted, pastes: this.#pastes };
  }

  body() {
    return { first_action: this.#first, items: this.#items, changes: this.#changes, untrusted: this.#untrusted, pastes: this.#pastes };
  }
}
