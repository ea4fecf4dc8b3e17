/** Make elements: h("p", {class: "muted", dir: "auto"}, "text", child, …); null children are left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "html")
      element.innerHTML = value; // The server has sanitised it.
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

let made = 0;

/** An id that no other element of the page has. */
export function uniqueId(prefix) {
  made += 1;
  return `${prefix}-${made}`;
}

/** What is on a key, for the eye only: screen readers get `aria-keyshortcuts`. */
export function key(text) {
  return h("kbd", { "aria-hidden": "true" }, text);
}

export function shorten(text, most = 40) {
  const plain = text.replace(/\s+/g, " ").trim();
  const letters = [...plain];
  return letters.length <= most ? plain : `${letters.slice(0, most - 1).join("")}…`;
}

/** Whether a key press belongs to what has the focus: typing, a button, a list of options. */
export function keyIsTaken(event) {
  const target = event.target instanceof Element ? event.target : null;
  if (!target || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return true;
  if (target.closest("dialog[open], textarea, select, [contenteditable]")) return true;
  if (target.closest("input:not([type=radio]):not([type=range]):not([type=checkbox])")) return true;
  if (target.closest("audio, video")) return event.key === " " || event.key.startsWith("Arrow");
  const presses = event.key === "Enter" || event.key === " ";
  return presses && Boolean(target.closest("button:not([data-no-action]), a[href], summary"));
}
