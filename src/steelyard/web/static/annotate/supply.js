import { Refused } from "./api.js";
import { withLock } from "./local.js";

/** The tasks in hand: fetched ahead, never shown in two tabs at once, and renewed while somebody is at work. */

const AHEAD_WHEN_POOR = 10;
const ATTEMPTS = 4;
const MOST = 50;
const AWAY_MS = 10 * 60_000;
const SOONEST_CHECK_MS = 1_000;
const LATEST_CHECK_MS = 60_000;

/** Take a task for this tab; the browser gives it free when the tab closes. Without locks every tab gets it. */
function claim(id) {
  return new Promise((taken) => {
    withLock(`steelyard:task:${id}`, { ifAvailable: true }, (lock) => {
      if (!lock) return taken(null);
      return new Promise((free) => taken(free));
    });
  });
}

function halfTime({ leaseEnd, lease }) {
  return leaseEnd - lease / 2;
}

export class Supply {
  #api;
  #outbox;
  #usualAhead;
  #activeTime;
  #ready = [];
  #mine = new Map();
  #settled = new Set();
  #fetching = null;
  #elsewhere = 0;
  #noTask = null;
  #timer = null;

  constructor(api, outbox, usualAhead, activeTime) {
    this.#api = api;
    this.#outbox = outbox;
    this.#usualAhead = usualAhead;
    this.#activeTime = activeTime;
  }

  /** The next task as {task}, or {noTask} with the reason; throws when the server must be asked and cannot be. */
  async next() {
    while (!this.#ready.length) {
      this.#noTask = null;
      await this.#fetch();
      if (!this.#ready.length && this.#noTask) return { noTask: this.#noTask };
    }
    const task = this.#ready.shift();
    this.fetchAhead();
    return { task };
  }

  /** Fill up in the background; trouble shows when a task is really needed. */
  fetchAhead() {
    if (this.#ready.length < this.#ahead() && !this.#noTask) this.#fetch().catch(() => {});
  }

  /** A task is answered or skipped: forget it here, and let the server's list catch up in its own time. */
  settle(id) {
    this.#settled.add(id);
    this.#ready = this.#ready.filter((task) => task.judgment_id !== id);
    this.#mine.get(id)?.free();
    this.#mine.delete(id);
  }

  /** An answer was not taken: the task may come again. */
  unsettle(id) {
    this.#settled.delete(id);
    this.#noTask = null;
  }

  progress = null;

  #ahead() {
    return Math.max(this.#usualAhead, this.#api.connectionIsPoor() ? AHEAD_WHEN_POOR : 0);
  }

  #fetch() {
    this.#fetching ??= this.#ask().finally(() => {
      this.#fetching = null;
    });
    return this.#fetching;
  }

  async #ask() {
    const wanted = this.#ahead() + 1;
    // The server lists every task that is open for this person: also those whose answers are on their way, and those
    // that other tabs show. Ask for so many that some are left.
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const shown = this.#mine.size - this.#ready.length;
      const count = Math.min(MOST, wanted + shown + this.#outbox.settled().size + this.#elsewhere);
      const before = this.#settled.size;
      const underWay = this.#outbox.settled().size > 0;
      const { tasks, no_task: noTask, progress } = await this.#api.post("/tasks", { count });
      this.progress = progress;
      this.#elsewhere = await this.#takeIn(tasks, wanted);
      this.#noTask = noTask;
      if (this.#ready.length) return;
      // Answers on their way hold their tasks until they arrive, and there is a limit on how many one may hold.
      const mayChange = underWay || this.#settled.size > before;
      if (noTask && !(mayChange && noTask.reason_code === "waiting")) return;
      if (mayChange) await this.#outbox.sent();
    }
    this.#noTask = { reason_code: "waiting", reason: "" };
  }

  /** Take in what is new; return how many tasks other tabs have. */
  async #takeIn(tasks, wanted) {
    const underWay = this.#outbox.settled();
    let away = 0;
    for (const task of tasks) {
      const id = task.judgment_id;
      if (this.#mine.has(id) || this.#settled.has(id) || underWay.has(id)) continue;
      if (this.#ready.length >= wanted) break;
      const free = await claim(id);
      if (!free) {
        away += 1;
        continue;
      }
      const now = this.#api.now();
      this.#mine.set(id, { free, leaseEnd: Date.parse(task.lease_end), lease: Date.parse(task.lease_end) - now });
      this.#ready.push(task);
    }
    this.#watchLeases();
    return away;
  }

  /** Wake up when the first lease is half gone. */
  #watchLeases() {
    clearTimeout(this.#timer);
    const left = [...this.#mine.values()].map((mine) => halfTime(mine) - this.#api.now());
    const soonest = Math.min(LATEST_CHECK_MS, ...left);
    this.#timer = setTimeout(() => this.#checkLeases(), Math.max(soonest, SOONEST_CHECK_MS));
  }

  /** Renew leases that are half gone while the person is there; a task that is lost is not shown any more. */
  async #checkLeases() {
    const there = this.#activeTime.idle() < AWAY_MS && !document.hidden;
    for (const [id, mine] of this.#mine) {
      if (there && halfTime(mine) <= this.#api.now()) await this.#renew(id, mine);
    }
    this.#watchLeases();
  }

  async #renew(id, mine) {
    try {
      const { lease_end: end } = await this.#api.post(`/tasks/${encodeURIComponent(id)}/renew`, {});
      mine.leaseEnd = Date.parse(end);
      mine.lease = mine.leaseEnd - this.#api.now();
    } catch (error) {
      if (!(error instanceof Refused)) return;
      const waiting = this.#ready.some((task) => task.judgment_id === id);
      if (waiting) this.settle(id);
      else mine.leaseEnd = Infinity; // It is on the screen: an answer that comes late counts all the same.
    }
  }
}
