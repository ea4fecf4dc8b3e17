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

const tabMemory = new Map();

/** What this tab keeps, also when it is reloaded; memory alone where the browser does not allow it. */
export const tab = {
  get(name) {
    if (tabMemory.has(name)) return tabMemory.get(name);
    try {
      return sessionStorage.getItem(name);
    } catch {
      return null;
    }
  },
  set(name, text) {
    try {
      sessionStorage.setItem(name, text);
      tabMemory.delete(name);
    } catch {
      tabMemory.set(name, text);
    }
  },
  remove(name) {
    tabMemory.delete(name);
    try {
      sessionStorage.removeItem(name);
    } catch {
      /* It was only in memory. */
    }
  },
};

/** Run `work(lock)` with a lock among the tabs; without one where the browser has none, or denies it in a frame. */
export async function withLock(name, options, work) {
  let began = false;
  const begin = (lock) => {
    began = true;
    return work(lock);
  };
  if (!navigator.locks) return work({ name });
  try {
    return await navigator.locks.request(name, options, begin);
  } catch (error) {
    if (began) throw error;
    return work({ name });
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
