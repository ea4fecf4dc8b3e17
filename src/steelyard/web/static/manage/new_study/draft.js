import { Refused, read } from "../api.js";

/**
 * The draft as the server has it. Requests that change it run one after the other; values typed into the form are sent
 * a moment after the last key. `onState(state)` is called with every answer, `onStatus(text, isError)` with the progress.
 */

const { csrf, root, study, draft: opened } = document.body.dataset;
/** Where the server's functions for this page are: below the study that is edited, whose team may use them. */
export const BASE = study ? `${root}/api/v1/studies/${study}/manage` : `${root}/api/v1/manage`;
const API = `${BASE}/drafts`;
const PAUSE_MS = 400;

const BLANK = {
  id: "", study: null, begun: false, step: "items", values: {}, text: "", problems: [], items: null, item_count: 0, item_names: [],
  has_sources: false, extra_columns: [], telling: [], systems: [], media: { count: 0, needed: 0, missing: [], missing_count: 0, unused_count: 0 },
  questions: { checks: [], qualification: [], training: [] }, plan: null, plans: [{ automatic: true, judgments: null }],
  automatic_model: true, annotators: null, seconds: null, previews: [], page: {}, updated: 0,
};

export const draft = { state: BLANK, values: {}, onState: () => {}, onStatus: () => {}, onConflict: () => {} };

let id = opened || "";
let queue = Promise.resolve();
let pending = null; // Changes that have not been sent yet.
let timer;
let unsaved = 0; // Requests under way.

export async function load() {
  if (id) accept(await read(`${API}/${id}`));
  else if (study) accept(await request("POST", API, "{}"));
  return draft.state;
}

function accept(state) {
  id = state.id;
  draft.state = state;
  // What is typed but not sent yet stays.
  if (!pending?.values) draft.values = structuredClone(state.values);
  draft.onState(state);
}

async function ensure() {
  if (id) return;
  const state = await request("POST", API, "{}");
  id = state.id;
  history.replaceState(null, "", `${root}/manage/drafts/${id}${location.hash}`);
}

/** Send a request; `onProgress(part)` hears how much of an upload has been sent, `signal` stops it. */
function request(method, url, body, { type = "application/json", onProgress, signal } = {}) {
  return new Promise((resolve, reject) => {
    const sent = new XMLHttpRequest();
    sent.open(method, url);
    sent.setRequestHeader("X-CSRF-Token", csrf);
    if (body !== undefined) sent.setRequestHeader("Content-Type", type);
    // The server refuses a change of a version that this page has not seen.
    if (id && draft.state.updated) sent.setRequestHeader("If-Match", `"${draft.state.updated}"`);
    sent.responseType = "text";
    if (onProgress) sent.upload.addEventListener("progress", (event) => onProgress(event.total ? event.loaded / event.total : 0));
    sent.addEventListener("load", () => {
      let result = null;
      try {
        result = sent.responseText ? JSON.parse(sent.responseText) : null;
      } catch {
        // An answer of a proxy that is not ours: the status says enough.
      }
      if (sent.status >= 200 && sent.status < 300) resolve(result);
      else reject(new Refused(sent.status, result));
    });
    const lost = { error: { what: "The server cannot be reached.", remedy: "What you typed stays on this page; it is saved when the connection is back." } };
    sent.addEventListener("error", () => reject(new Refused(0, lost)));
    sent.addEventListener("abort", () => reject(new Refused(0, { error: { what: "The upload was stopped.", remedy: "Nothing was changed." } })));
    signal?.addEventListener("abort", () => sent.abort());
    sent.send(body);
  });
}

function enqueue(work) {
  unsaved += 1;
  const result = queue.then(async () => {
    await ensure();
    return work();
  });
  queue = result.catch(() => {}).finally(() => {
    unsaved -= 1;
  });
  return result;
}

/** Change the draft: {values, text, step, plan, automatic_model, annotators, seconds}. */
export function change(changes, { now = false } = {}) {
  pending = { ...pending, ...changes };
  clearTimeout(timer);
  draft.onStatus("Saving…");
  timer = setTimeout(flush, now ? 0 : PAUSE_MS);
}

/** Note that `draft.values` was changed by the form. */
export function valuesChanged(options) {
  change({ values: draft.values }, options);
}

export async function flush() {
  clearTimeout(timer);
  if (!pending) return queue;
  const changes = pending;
  if (changes.text !== undefined) delete changes.values;
  const body = JSON.stringify(changes.values ? { ...changes, values: withoutEmpty(changes.values) } : changes);
  pending = null;
  try {
    const state = await enqueue(() => request("PUT", `${API}/${id}`, body));
    accept(state);
    if (!pending) draft.onStatus("Saved");
  } catch (refused) {
    pending = { ...changes, ...pending };
    if (refused.status === 412) {
      draft.onStatus("Not saved", true);
      draft.onConflict(refused.message);
    } else draft.onStatus(refused.message, true);
    // Without a connection, try again by itself.
    if (!refused.status || refused.status >= 500) timer = setTimeout(flush, 4000);
  }
  return undefined;
}

/** Leave out what is empty: TOML has no null, and an empty table says nothing. */
function withoutEmpty(value, depth = 0) {
  if (Array.isArray(value)) return value.map((part) => withoutEmpty(part, depth + 1));
  if (!value || typeof value !== "object") return value;
  const kept = Object.entries(value)
    .filter(([, part]) => part !== null && part !== undefined && part !== "")
    .map(([key, part]) => [key, withoutEmpty(part, depth + 1)])
    .filter(([key, part]) => depth > 0 || key === "items" || typeof part !== "object" || Array.isArray(part) || Object.keys(part).length);
  return Object.fromEntries(kept);
}

async function changeFiles(method, path, body, options) {
  await flush();
  try {
    return await enqueue(() => request(method, `${API}/${id}${path}`, body, options));
  } catch (refused) {
    if (refused.status === 412) draft.onConflict(refused.message);
    throw refused;
  }
}

export async function uploadItems(file, name, options) {
  accept(await changeFiles("PUT", `/items?name=${encodeURIComponent(name)}`, file, { type: "application/octet-stream", ...options }));
}

export async function changeColumns(changes) {
  accept(await changeFiles("PUT", "/items/columns", JSON.stringify(changes)));
}

export async function saveQuestions(kind, rows) {
  accept(await changeFiles("PUT", `/questions/${kind}`, JSON.stringify({ rows })));
}

export async function uploadQuestions(kind, file, options) {
  accept(await changeFiles("PUT", `/questions/${kind}/file?name=${encodeURIComponent(file.name)}`, file, { type: "application/octet-stream", ...options }));
}

export async function uploadMedia(file, options) {
  const name = file.webkitRelativePath || file.name;
  draft.state.media = await changeFiles("PUT", `/media?name=${encodeURIComponent(name)}`, file, { type: "application/octet-stream", ...options });
}

export async function refresh() {
  await flush();
  await queue;
  if (id) accept(await read(`${API}/${id}`));
}

export async function finish() {
  await flush();
  return enqueue(() => request("POST", `${API}/${id}/finish`, "{}"));
}

/** Create a study from the judgments in the uploaded file. */
export async function createFromJudgments() {
  await flush();
  return enqueue(() => request("POST", `${API}/${id}/judgments`, "{}"));
}

/** Continue with the draft as the server has it; what was not saved is given up. */
export function reload() {
  pending = null;
  clearTimeout(timer);
  location.reload();
}

/** Simulate the study: how reliable its scores would be. */
export function estimateReliability() {
  return changeFiles("POST", "/reliability", "{}");
}

/** Simulate how many judgments a target needs; `onProgress(part)` is called as lines of the answer arrive. */
export async function planTarget(target, onProgress) {
  await flush();
  await queue;
  const headers = { "X-CSRF-Token": csrf, "Content-Type": "application/json" };
  const response = await fetch(`${API}/${id}/target`, { method: "POST", headers, body: JSON.stringify(target) });
  if (!response.ok) throw new Refused(response.status, await response.json().catch(() => null));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    text += value ?? "";
    const lines = text.split("\n");
    text = lines.pop();
    for (const line of lines.filter(Boolean).map((one) => JSON.parse(one))) {
      if (line.error) throw new Refused(422, line);
      if (line.result) return line.result;
      onProgress(line.done / line.of);
    }
    if (done) throw new Refused(0, { error: { what: "The connection was lost.", remedy: "Try again." } });
  }
}

export async function discard() {
  await queue;
  if (id) await request("DELETE", `${API}/${id}`, "{}");
}

addEventListener("beforeunload", (event) => {
  if (pending || unsaved) event.preventDefault();
});

// Values by dotted path.

export function get(path, root = draft.values) {
  return path.split(".").reduce((value, key) => value?.[key], root);
}

export function set(path, value, root = draft.values) {
  const keys = path.split(".");
  const last = keys.pop();
  let holder = root;
  for (const key of keys) {
    if (typeof holder[key] !== "object" || holder[key] === null) {
      if (value === undefined) return;
      holder[key] = {};
    }
    holder = holder[key];
  }
  if (value === undefined) delete holder[last];
  else holder[last] = value;
}
