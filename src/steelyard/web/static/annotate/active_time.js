/** Time spent on a task: from one sign of life to the next, but no pause counts for more than half a minute. */

const LONGEST_PAUSE_MS = 30_000;
const SIGNS_OF_LIFE = ["pointermove", "pointerdown", "keydown", "wheel", "scroll", "touchmove", "input", "play"];

export class ActiveTime {
  #milliseconds = 0;
  #last = null;
  #lastSign = performance.now();

  constructor() {
    const note = () => this.#note();
    for (const sign of SIGNS_OF_LIFE) document.addEventListener(sign, note, { capture: true, passive: true });
    document.addEventListener("visibilitychange", () => {
      this.#note();
      if (document.hidden) this.#last = null;
    });
  }

  /** Begin with a new task; `seconds` is what was spent on it before a reload. */
  start(seconds = 0) {
    this.#milliseconds = seconds * 1000;
    this.#last = performance.now();
  }

  seconds() {
    this.#add(performance.now());
    return Math.round(this.#milliseconds / 100) / 10;
  }

  /** Milliseconds since the person last did anything here. */
  idle() {
    return performance.now() - this.#lastSign;
  }

  #note() {
    const now = performance.now();
    this.#lastSign = now;
    this.#add(now);
  }

  #add(now) {
    if (this.#last !== null) this.#milliseconds += Math.min(now - this.#last, LONGEST_PAUSE_MS);
    this.#last = document.hidden ? null : now;
  }
}
