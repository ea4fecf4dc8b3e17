/** What this browser keeps: localStorage, or memory alone where that is switched off or full. */

const memory = new Map();
let lasting = true;

/** Whether what is kept outlives the tab. */
export function keepsForGood() {
  return lasting;
}

export function get(name) {
  if (memory.has(name)) return memory.get(name);
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function set(name, text) {
  try {
    localStorage.setItem(name, text);
    memory.delete(name);
  } catch {
    lasting = false;
    memory.set(name, text);
  }
}

export function remove(name) {
  memory.delete(name);
  try {
    localStorage.removeItem(name);
  } catch {
    /* It was only in memory. */
  }
}

/** The names that begin so, in order. */
export function namesFrom(prefix) {
  const names = new Set(memory.keys());
  try {
    for (let index = 0; index < localStorage.length; index += 1) names.add(localStorage.key(index));
  } catch {
    /* Memory is all there is. */
  }
  return [...names].filter((name) => name.startsWith(prefix)).sort();
}
