/** Talk to the study's API. What goes wrong is either Refused (do not repeat) or Unreachable (try again). */

const PATIENCE_MS = 20_000;
const REMEMBERED = 5;
const SLOW_MS = 800;
const POOR_FOR_MS = 10 * 60_000;

/** The server has understood and says no. */
export class Refused extends Error {
  constructor(status, error) {
    super(error.what);
    this.status = status;
    this.code = error.code;
    this.what = error.what;
    this.remedy = error.remedy ?? "";
    this.field = error.field ?? null;
  }
}

/** No answer, or one that says "later"; `why` is "offline", "server" or "busy". */
export class Unreachable extends Error {
  constructor(why, waitSeconds = null) {
    super(why);
    this.why = why;
    this.waitSeconds = waitSeconds;
  }
}

export class Api {
  #base;
  #csrf = null;
  #key = null; // Who the answers are from.
  #latencies = [];
  #failedAt = -Infinity;
  #skew = 0;
  #embedding;

  /** `embedding` is null unless the page is in a frame of another site. */
  constructor(base, embedding = null) {
    this.#base = base;
    this.#embedding = embedding;
  }

  /** What the server's clock shows now, in milliseconds. */
  now() {
    return Date.now() + this.#skew;
  }

  /** Whether tasks should be fetched well ahead: a slow or unsteady connection. */
  connectionIsPoor() {
    const connection = navigator.connection;
    if (connection?.saveData || ["slow-2g", "2g", "3g"].includes(connection?.effectiveType)) return true;
    if (performance.now() - this.#failedAt < POOR_FOR_MS) return true;
    const sorted = [...this.#latencies].sort((a, b) => a - b);
    return sorted.length >= 3 && sorted[Math.floor(sorted.length / 2)] > SLOW_MS;
  }

  /** Who I am here and what is wanted of me; also refreshes the token that changes need. */
  async me() {
    if (this.#embedding?.arrival && !this.#key) return this.#arrive({ arrival: this.#embedding.arrival });
    return this.#welcomed(await this.#request("GET", "/me"));
  }

  async join(name) {
    return this.#arrive({ name });
  }

  async #arrive(who) {
    if (!this.#embedding) return this.#welcomed(await this.#request("POST", "/session", who));
    const welcome = await this.#request("POST", "/session", { ...who, embedded: true });
    if (welcome.session) this.#embedding.session = welcome.session;
    return this.#welcomed(welcome);
  }

  async agree() {
    return this.#welcomed(await this.#change("POST", "/consent", {}));
  }

  async answerQuestionnaire(answers) {
    return this.#welcomed(await this.#change("POST", "/questionnaire", { answers }));
  }

  async signOut() {
    await this.#change("POST", "/sign-out", {});
    if (this.#embedding) this.#embedding.session = null;
  }

  get(path) {
    return this.#request("GET", path);
  }

  post(path, body) {
    return this.#change("POST", path, body);
  }

  put(path, body) {
    return this.#change("PUT", path, body);
  }

  #welcomed(welcome) {
    this.#csrf = welcome.csrf;
    this.#key = welcome.key;
    return welcome;
  }

  /** Make a change; if the page's token has gone stale, fetch a new one and try once more. */
  async #change(method, path, body) {
    try {
      return await this.#request(method, path, body);
    } catch (error) {
      if (!(error instanceof Refused && error.code === "stale_page")) throw error;
      const before = this.#key;
      const { key } = await this.me();
      // Somebody else has signed in here meanwhile: what is under way is not theirs.
      if (key !== before) throw new Refused(401, { code: "no_session", what: error.what, remedy: error.remedy });
      return this.#request(method, path, body);
    }
  }

  async #request(method, path, body) {
    const headers = { Accept: "application/json" };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (this.#csrf) headers["X-CSRF-Token"] = this.#csrf;
    if (this.#embedding?.session) headers["X-Session-Token"] = this.#embedding.session;
    if (this.#embedding?.practised) headers["X-Practised"] = this.#embedding.practised;
    const began = performance.now();
    let response;
    let data;
    try {
      response = await fetch(this.#base + path, {
        method,
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: AbortSignal.timeout(PATIENCE_MS),
        cache: "no-store",
        keepalive: method !== "GET", // An answer under way outlives the tab.
      });
      data = await response.json().catch(() => null);
    } catch {
      this.#failedAt = performance.now();
      throw new Unreachable("offline");
    }
    this.#latencies = [...this.#latencies, performance.now() - began].slice(-REMEMBERED);
    this.#compareClocks(response.headers.get("Date"));
    if (this.#embedding) this.#embedding.practised = response.headers.get("X-Practised") ?? this.#embedding.practised;
    if (response.ok && data !== null) return data;
    if (response.status === 429) throw new Unreachable("busy", Number(response.headers.get("Retry-After")) || null);
    if (response.status >= 500 || data === null) throw new Unreachable("server");
    throw new Refused(response.status, data.error ?? { code: "unknown", what: response.statusText });
  }

  #compareClocks(date) {
    const server = Date.parse(date ?? "");
    if (Number.isFinite(server)) this.#skew = server - Date.now();
  }
}
