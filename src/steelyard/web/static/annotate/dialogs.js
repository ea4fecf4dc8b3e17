import { explained } from "./content.js";
import { h, uniqueId } from "./dom.js";
import * as local from "./local.js";
import { choose, currentLanguage, t } from "./messages.js";
import { taskView, workedExample } from "./task.js";

/** Windows over the page: why skip, why flag, an answer to look at again, help. */

const KEYS_OFF = "steelyard:keys-off";

/** Single keys can be switched off, for those whose tools press keys by themselves. */
export function keysAreOn() {
  return local.get(KEYS_OFF) === null;
}

function open(dialog) {
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close("");
  });
  dialog.showModal();
  return new Promise((closed) => {
    dialog.addEventListener("close", () => closed(dialog.returnValue));
  });
}

// The researcher reads the log in one language: the English words are sent, whatever the page speaks.
const REASONS = {
  skip: [
    ["I do not understand it", () => t("I do not understand it")],
    ["I cannot decide", () => t("I cannot decide")],
    ["It is not displayed correctly", () => t("It is not displayed correctly")],
    ["I would rather not answer", () => t("I would rather not answer")],
  ],
  flag: [
    ["It contains a mistake", () => t("It contains a mistake")],
    ["It is not displayed correctly", () => t("It is not displayed correctly")],
    ["It is offensive or upsetting", () => t("It is offensive or upsetting")],
    ["The question does not apply to it", () => t("The question does not apply to it")],
  ],
};

/** Ask why; returns the reason, or null when the person changed their mind. */
export async function askReason(kind) {
  const title = kind === "skip" ? t("Why do you want to skip this task?") : t("What is wrong with this task?");
  const act = kind === "skip" ? t("Skip it") : t("Flag it");
  const note =
    kind === "skip"
      ? t("You will not be asked this question again.")
      : t("The people who run the study will see it. You can still answer.");
  const heading = uniqueId("dialog");
  const more = uniqueId("more");
  const radios = REASONS[kind].map(([value, words]) =>
    h("label", { class: "option" }, h("input", { type: "radio", name: "reason", value }), h("span", {}, words())),
  );
  const text = h("textarea", { id: more, rows: 2, maxlength: 1000, dir: "auto" });
  const form = h(
    "form",
    { method: "dialog", class: "flow" },
    h("h2", { id: heading }, title),
    h("fieldset", { class: "options" }, h("legend", { class: "visually-hidden" }, title), radios),
    h("div", { class: "field" }, h("label", { for: more }, t("In your own words (optional)")), text),
    h("p", { class: "muted small" }, note),
    h(
      "div",
      { class: "row end" },
      h("button", { value: "" }, t("Cancel")),
      h("button", { class: "primary", value: "yes" }, act),
    ),
  );
  // Enter in the form means yes, not the first button.
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target instanceof HTMLInputElement) {
      event.preventDefault();
      form.querySelector("button.primary").click();
    }
  });
  const answer = await open(h("dialog", { "aria-labelledby": heading }, form));
  if (answer !== "yes") return null;
  const picked = form.querySelector("input:checked")?.value ?? "";
  return [picked, text.value.trim()].filter(Boolean).join(": ") || "no reason given";
}

/** An answer that was not right, as it was given, and what was expected. */
export function seeAgain({ task, answer, feedback }, page) {
  const heading = uniqueId("dialog");
  const view = taskView(task, page, () => {});
  view.fill(answer);
  const dialog = h(
    "dialog",
    { class: view.wide ? "roomy" : null, "aria-labelledby": heading },
    h(
      "form",
      { method: "dialog", class: "flow" },
      h(
        "div",
        { class: "row apart" },
        h("h2", { id: heading }, t("Your answer")),
        h("button", { class: "quiet", value: "" }, t("Close"), " ", h("kbd", { "aria-hidden": "true" }, "Esc")),
      ),
      h("p", { dir: "auto" }, task.question),
      // Disabled rather than inert: it can still be read aloud.
      h("fieldset", { class: "example", disabled: true }, view.element),
      h("div", { class: "feedback wrong flow" }, explained(feedback)),
    ),
  );
  return open(dialog);
}

export function languageChoice(languages, changed) {
  const id = uniqueId("language");
  const select = h(
    "select",
    {
      id,
      onchange: async () => {
        await choose(select.value);
        changed();
      },
    },
    languages.map(([code, name]) =>
      h("option", { value: code, lang: code, selected: code === currentLanguage() }, name),
    ),
  );
  return h("div", { class: "row" }, h("label", { for: id }, t("Language")), select);
}

/** A personal link, to read and to copy. */
export function personalLink(url) {
  const link = new URL(url, location.href).href; // Relative where the server has not been told its public address.
  return copyField(t("Use this personal link to continue later or on another device. Do not share it."), link);
}

/** Something to copy: it is selected at a touch, and there is a button where the browser lets pages copy. */
export function copyField(label, value) {
  const id = uniqueId("copy");
  const input = h("input", { type: "text", id, readonly: true, value, dir: "ltr", onfocus: () => input.select() });
  const copy = h(
    "button",
    {
      type: "button",
      onclick: async () => {
        await navigator.clipboard.writeText(value);
        copy.textContent = t("Copied");
      },
    },
    t("Copy"),
  );
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    h("div", { class: "link-row" }, input, navigator.clipboard ? copy : null),
  );
}

/** Ask before signing out: without the personal link there is no way back to one's answers. */
export async function confirmSignOut({ link, annotator, underWay }) {
  const heading = uniqueId("dialog");
  const form = h(
    "form",
    { method: "dialog", class: "flow" },
    h("h2", { id: heading }, t("Sign out?")),
    h("p", { dir: "auto" }, t("You are signed in as {name}.", { name: annotator })),
    underWay ? h("p", {}, t("Unsaved answers are sent first.")) : null,
    h("p", {}, t("Your answers stay saved. To continue later, you need your personal link.")),
    link ? personalLink(link) : null,
    h(
      "div",
      { class: "row end" },
      h("button", { value: "" }, t("Cancel")),
      h("button", { class: "primary", value: "yes" }, t("Sign out")),
    ),
  );
  return (await open(h("dialog", { "aria-labelledby": heading }, form))) === "yes";
}

const KEYS = [
  ["⏎", "Submit"],
  ["⌫", "Back"],
  ["S", "Skip…"],
  ["!", "Flag…"],
  ["?", "Help"],
];

/** What is behind the question mark: the instructions, an example, the keys, the language. */
export function help({ welcome, task, languages, languageChanged, signOut }) {
  const heading = uniqueId("dialog");
  const example = task ? workedExample(task, welcome.page) : null;
  const toggle = h("input", { type: "checkbox", id: uniqueId("keys") });
  toggle.checked = keysAreOn();
  toggle.addEventListener("change", () => {
    if (toggle.checked) local.remove(KEYS_OFF);
    else local.set(KEYS_OFF, "1");
  });
  const dialog = h(
    "dialog",
    { class: "help", "aria-labelledby": heading },
    h(
      "form",
      { method: "dialog", class: "flow" },
      h(
        "div",
        { class: "row apart" },
        h("h2", { id: heading }, t("Help")),
        h("button", { class: "quiet", value: "" }, t("Close"), " ", h("kbd", { "aria-hidden": "true" }, "Esc")),
      ),
      welcome.instructions_html
        ? h("div", { class: "content prose", dir: "auto", html: welcome.instructions_html })
        : null,
      example ? h("p", {}, example.hint) : null,
      example
        ? h(
            "details",
            {},
            h("summary", {}, t("An example with its answer")),
            h("div", { class: "example" }, example.element),
          )
        : null,
      h(
        "dl",
        { class: "keys" },
        KEYS.map(([face, words]) => h("div", {}, h("dt", {}, h("kbd", {}, face)), h("dd", {}, t(words)))),
      ),
      h("label", { class: "option", for: toggle.id }, toggle, h("span", {}, t("Use letters and digits as keyboard shortcuts"))),
      languageChoice(languages, () => {
        dialog.close("");
        languageChanged();
      }),
      welcome.resume_url ? personalLink(welcome.resume_url) : null,
      welcome.study.contact
        ? h("p", { class: "small" }, t("Questions? Write to {contact}.", { contact: welcome.study.contact }))
        : null,
      h(
        "div",
        { class: "row" },
        h("button", { value: "sign out" }, t("Sign out…")),
        h("span", { class: "muted small", dir: "auto" }, t("You are signed in as {name}.", { name: welcome.annotator })),
      ),
    ),
  );
  return open(dialog).then((pressed) => (pressed === "sign out" ? signOut() : undefined));
}
