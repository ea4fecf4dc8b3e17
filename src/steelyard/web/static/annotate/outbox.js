import { Refused, Unreachable } from "./api.js";
import * as local from "./local.js";

/** Answers on their way: kept in this browser, one entry each, until the server has said that it has them. */

const SOON_MS = 50;
const RETRY_SECONDS = [1, 2, 4, 8, 15, 30];

const ROUTES = {
  judgment: (api, entry) => api.post("/judgments", { judgment_id: entry.id, ...entry.body }),
  revision: (api, entry) => api.put(`/judgments/${encodeURIComponent(entry.id)}`, entry.body),
  skip: (api, entry) => api.post(`/tasks/${encodeURIComponent(entry.id)}/skip`, entry.body),
  flag: (api, entry) => api.post(`/tasks/${encodeURIComponent(entry.id)}/flag`, entry.body),
};

export class Outbox extends EventTarget {
  #api;
  #prefix;
  #made = 0;
  #sending = false;
  #failures = 0;
  #timer = null;
  #trouble = null;

  constructor(api, study, key) {
    super();
    this.#api = api;
    this.#prefix = `steelyard:out:${study}:${encodeURIComponent(key)}:`;
    addEventListener("online", () => this.send());
    addEventListener("storage", (event) => {
      if (!event.key?.startsWith(this.#prefix)) return;
      if (event.newValue) this.#tell("elsewhere", JSON.parse(event.newValue));
      this.#tell("change");
    });
  }

  /** What has not been confirmed yet, oldest first. */
  entries() {
    return local
      .namesFrom(this.#prefix)
      .map((name) => ({ name, text: local.get(name) }))
      .filter(({ text }) => text !== null)
      .map(({ name, text }) => ({ ...JSON.parse(text), name }));
  }

  /** Why sending does not work just now: null, "offline", "server", "busy" or "session". */
  get trouble() {
    return this.#trouble;
  }

  /** The ids of tasks answered or skipped here that the server still holds open. */
  settled() {
    return new Set(
      this.entries()
        .filter((entry) => entry.kind === "judgment" || entry.kind === "skip")
        .map((entry) => entry.id),
    );
  }

  put(kind, id, body) {
    this.#made += 1;
    const order = `${String(Date.now()).padStart(15, "0")}-${String(this.#made).padStart(6, "0")}`;
    local.set(`${this.#prefix}${order}-${id}`, JSON.stringify({ kind, id, body }));
    this.#tell("change");
    return this.send();
  }

  /** Wait until nothing is on its way, or sending does not work just now. */
  async sent() {
    await this.send();
    while (this.#sending && !this.#trouble) await new Promise((go) => setTimeout(go, SOON_MS));
  }

  /** Send everything there is; on trouble wait longer each time and try again. */
  async send() {
    clearTimeout(this.#timer);
    if (this.#sending) return;
    this.#sending = true;
    try {
      // One tab at a time. Without locks tabs may send the same twice, which is harmless.
      await local.withLock(`${this.#prefix}send`, {}, () => this.#drain());
      this.#failures = 0;
      this.#settle(null);
    } catch (error) {
      if (error instanceof Refused) this.#settle("session");
      else if (error instanceof Unreachable) this.#later(error);
      else throw error;
    } finally {
      this.#sending = false;
    }
    if (!this.#trouble && this.entries().length) await this.send();
  }

  async #drain() {
    for (let entry = this.entries()[0]; entry; entry = this.entries()[0]) {
      let answer = null;
      let refusal = null;
      try {
        answer = await ROUTES[entry.kind](this.#api, entry);
      } catch (error) {
        if (!(error instanceof Refused) || error.status === 401) throw error;
        refusal = error;
      }
      local.remove(entry.name);
      this.#settle(null);
      this.#tell(refusal ? "refused" : "saved", { entry, answer, refusal });
      this.#tell("change");
    }
  }

  #later(error) {
    const usual = RETRY_SECONDS[Math.min(this.#failures, RETRY_SECONDS.length - 1)];
    this.#failures += 1;
    const seconds = error.waitSeconds ?? usual * (0.75 + Math.random() / 2);
    this.#timer = setTimeout(() => this.send(), seconds * 1000);
    this.#settle(error.why);
  }

  #settle(trouble) {
    const before = this.#trouble;
    this.#trouble = trouble;
    if (before !== trouble) this.#tell("change");
  }

  #tell(kind, detail = null) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}
