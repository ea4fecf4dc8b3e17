/** The dialog of the dashboard's pages: asks for a reason, or for a confirmation. */

const dialog = document.getElementById("ask");
const part = (id) => document.getElementById(id);

function show({ title, why, action }, hasField) {
  part("ask-title").textContent = title;
  const lines = Array.isArray(why) ? why : [why];
  part("ask-why").replaceChildren(
    ...lines.map((line) => {
      const paragraph = document.createElement("p");
      paragraph.dir = "auto";
      paragraph.textContent = line;
      return paragraph;
    }),
  );
  part("ask-do").textContent = action;
  part("ask-error").textContent = "";
  part("ask-field").hidden = !hasField;
  dialog.showModal();
}

function answered(check) {
  return new Promise((resolve) => {
    const form = dialog.querySelector("form");
    function end(result) {
      form.onsubmit = part("ask-not").onclick = dialog.oncancel = null;
      dialog.close();
      resolve(result);
    }
    form.onsubmit = (event) => {
      event.preventDefault();
      const { problem, result } = check();
      if (problem) part("ask-error").textContent = problem;
      else end(result);
    };
    part("ask-not").onclick = () => end(null);
    dialog.oncancel = () => end(null);
  });
}

/**
 * Ask for a reason; resolves to it, or to null when the dialog is cancelled. With `needed`, an empty one is refused, and with
 * `same`, any other text.
 */
export function askReason({ title, why, action, needed = false, value = "", label = "Reason", same = null }) {
  show({ title, why, action }, true);
  part("ask-label").textContent = label;
  part("ask-reason").value = value;
  part("ask-reason").focus();
  return answered(() => {
    const reason = part("ask-reason").value.trim();
    if (same !== null && reason !== same) return { problem: `Type ${same}.` };
    if (needed && !reason) return { problem: "Give a reason; it is stored in the log." };
    return { result: reason };
  });
}

/** Ask for a confirmation; resolves to true, or to null when the dialog is cancelled. */
export function confirmAction(question) {
  show(question, false);
  part("ask-not").focus();
  return answered(() => ({ result: true }));
}
