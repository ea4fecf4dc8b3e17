/** The page in a frame of another site: its session, and what the site around it is told. */

import * as local from "./local.js";

const LASTING = new Set(["done", "quota", "excluded", "closed"]);

export class Embedding {
  #study;
  #origins;
  #completed = null;
  #height = 0;
  /** Progress in the practice, which pages of their own keep in a cookie. */
  practised = null;

  /** The embedding of this page; null if the page stands alone, or the study names no sites. */
  static of({ study, origins }) {
    return origins && parent !== window ? new Embedding(study, origins.split(" ")) : null;
  }

  constructor(study, origins) {
    const around = location.ancestorOrigins?.[0];
    this.#study = study;
    // Where the browser says who is around, others are left out; elsewhere it delivers to named origins only.
    this.#origins = origins.filter((origin) => around === undefined || origin === around);
    document.body.dataset.embedded = "";
    new ResizeObserver(() => this.#tellHeight()).observe(document.body);
  }

  /** The query with which the frame was opened: who the annotator is. */
  get arrival() {
    return location.search.slice(1);
  }

  get session() {
    return local.tab.get(`steelyard:session:${this.#study}`);
  }

  set session(token) {
    if (token === null) local.tab.remove(`steelyard:session:${this.#study}`);
    else local.tab.set(`steelyard:session:${this.#study}`, token);
  }

  /** Report progress, and the end once every answer is saved. */
  progress({ answered, limit }) {
    this.#tell("progress", { answered, limit: limit ?? null });
  }

  end({ reason_code: reason, ending }, answered, underWay) {
    const lasting = LASTING.has(reason) || ending;
    if (underWay || !lasting || this.#completed === reason) return;
    this.#completed = reason;
    this.#tell("completed", { reason, answered, code: ending?.code ?? null });
  }

  #tellHeight() {
    const height = Math.ceil(document.body.getBoundingClientRect().height);
    if (height === this.#height) return;
    this.#height = height;
    this.#tell("height", { height });
  }

  #tell(type, details) {
    for (const origin of this.#origins) {
      parent.postMessage({ source: "steelyard", study: this.#study, type, ...details }, origin);
    }
  }
}
