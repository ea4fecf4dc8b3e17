/** Requests of the manager's pages; a refusal is thrown with what the server says. */

export class Refused extends Error {
  constructor(status, body) {
    const error = body?.error ?? {};
    super([error.what ?? `The server answered with ${status}.`, error.remedy].filter(Boolean).join(" "));
    this.status = status;
    this.body = body;
  }
}

async function send(method, url, data) {
  let response;
  try {
    response = await fetch(url, {
      method,
      headers: data === undefined ? {} : { "Content-Type": "application/json", "X-CSRF-Token": document.body.dataset.csrf },
      body: data === undefined ? undefined : JSON.stringify(data),
    });
  } catch {
    throw new Refused(0, { error: { what: "The server cannot be reached.", remedy: "Nothing is lost. Try again." } });
  }
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new Refused(response.status, body);
  return body;
}

export const read = (url) => send("GET", url);
export const post = (url, data = {}) => send("POST", url, data);
export const put = (url, data = {}) => send("PUT", url, data);

/** A short message at the foot of the page, with something to undo it where that can be. */
export function toast(words, undo) {
  const box = document.getElementById("toast");
  clearTimeout(box.timer);
  box.replaceChildren(words);
  if (undo) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Undo";
    button.addEventListener("click", () => {
      box.hidden = true;
      undo();
    });
    box.append(" ", button);
  }
  box.hidden = false;
  box.timer = setTimeout(() => {
    box.hidden = true;
  }, Math.max(undo ? 12000 : 6000, 60 * words.length));
}
