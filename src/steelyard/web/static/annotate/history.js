/** Answers given before, newest first, for looking back and changing: this visit's own, then what the server has. */

export class History {
  #api;
  #most;
  #answered = [];
  #complete = false;

  constructor(api, most) {
    this.#api = api;
    this.#most = most;
  }

  get possible() {
    return this.#most > 0;
  }

  /** Note an answer, new or changed. */
  note(task, answer, comment = "") {
    const known = this.#answered.find((past) => past.task.judgment_id === task.judgment_id);
    if (known) Object.assign(known, { answer, comment });
    else this.#answered = [{ task, answer, comment }, ...this.#answered].slice(0, this.#most);
  }

  /** An answer was not taken after all. */
  forget(id) {
    this.#answered = this.#answered.filter((past) => past.task.judgment_id !== id);
  }

  /** The answer so many steps back (0 is the last one), or null; the server is asked when memory ends. */
  async back(steps) {
    if (steps >= this.#most) return null;
    if (steps >= this.#answered.length && !this.#complete) await this.#remember();
    return this.#answered[steps] ?? null;
  }

  async #remember() {
    const { judgments } = await this.#api.get(`/judgments?recent=${this.#most}`);
    const known = new Set(this.#answered.map((past) => past.task.judgment_id));
    const older = judgments.filter((past) => past.may_change && !known.has(past.task.judgment_id));
    this.#answered = [...this.#answered, ...older.map(({ task, answer }) => ({ task, answer }))].slice(0, this.#most);
    this.#complete = true;
  }
}
