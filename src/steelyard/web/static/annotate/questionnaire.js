import { h, uniqueId } from "./dom.js";
import { languageChoice } from "./dialogs.js";
import { t } from "./messages.js";
import { addScreen } from "./screens.js";

/** Questions about the annotator, once, before the first task. An answer of null means: prefers not to say. */

/** An option to choose, with a target large enough for a thumb. */
function option(type, name, words, { checked, pick }) {
  const input = h("input", { type, name, id: uniqueId("option"), onchange: () => pick(input.checked) });
  input.checked = checked;
  return { input, element: h("label", { class: "option", for: input.id }, input, h("span", { dir: "auto" }, words)) };
}

function choiceField({ name, choices, prefer_not_to_say }, draft) {
  const group = uniqueId(name);
  const all = [...choices.map((choice) => [choice, choice]), ...(prefer_not_to_say ? [[t("Prefer not to say"), null]] : [])];
  const options = all.map(([words, value]) =>
    option("radio", group, words, { checked: name in draft && draft[name] === value, pick: () => (draft[name] = value) }),
  );
  return { controls: options.map(({ element }) => element), focus: () => options[0].input.focus(), problem: () => (name in draft ? null : t("Please answer this question.")) };
}

function typedField(question, draft, labelId) {
  const { name, type, minimum, maximum, max_length, prefer_not_to_say } = question;
  const isNumber = type === "number";
  const input = h("input", {
    type: "text",
    name,
    inputmode: isNumber ? "decimal" : null,
    class: isNumber ? "short" : null,
    maxlength: isNumber ? 20 : max_length,
    dir: isNumber ? null : "auto",
    autocomplete: "off",
    "aria-labelledby": labelId,
    oninput: () => {
      draft[name] = input.value;
      if (withheld) withheld.input.checked = false;
    },
  });
  input.value = draft[name] ?? "";
  const withhold = (isChecked) => {
    if (isChecked) input.value = "";
    if (isChecked) draft[name] = null;
    else delete draft[name];
  };
  const withheld = prefer_not_to_say
    ? option("checkbox", `${name}-withheld`, t("Prefer not to say"), { checked: draft[name] === null, pick: withhold })
    : null;
  const problem = () => {
    const text = (draft[name] ?? "").trim();
    if (draft[name] === null) return null;
    if (!text) return t("Please answer this question.");
    if (!isNumber) return null;
    const number = numberOf(text);
    if (!Number.isFinite(number)) return t("Please enter a number.");
    if (minimum !== null && number < minimum) return t("The number must be at least {minimum}.", { minimum });
    if (maximum !== null && number > maximum) return t("The number must be at most {maximum}.", { maximum });
    return null;
  };
  return { controls: [input, withheld?.element ?? null], focus: () => input.focus(), problem };
}

const numberOf = (text) => Number(text.trim().replace(",", "."));

function fieldFor(question, draft) {
  const labelId = uniqueId("question");
  const errorId = uniqueId("problem");
  const field = question.type === "choice" ? choiceField(question, draft) : typedField(question, draft, labelId);
  const error = h("p", { class: "error", id: errorId, role: "alert" });
  const legend = h(
    "legend",
    { id: labelId },
    h("span", { dir: "auto" }, question.question),
    question.optional ? h("span", { class: "muted" }, ` (${t("optional")})`) : null,
  );
  const isEmpty = () => !(question.name in draft) || draft[question.name] === "";
  return {
    element: h("fieldset", { class: "entry-question", "aria-describedby": errorId }, legend, field.controls, error),
    focus: field.focus,
    check() {
      error.textContent = (question.optional && isEmpty() ? null : field.problem()) ?? "";
      return !error.textContent;
    },
  };
}

function answersOf(questions, draft) {
  const given = questions.filter(({ name }) => name in draft && draft[name] !== "");
  return Object.fromEntries(
    given.map(({ name, type }) => [name, type === "number" && draft[name] !== null ? numberOf(draft[name]) : draft[name]]),
  );
}

/** `draft` holds the answers so far, so that another language of the page loses none. */
function questionnaireScreen(questions, draft, { send, languages, languageChanged }) {
  const fields = questions.map((question) => fieldFor(question, draft));
  const form = h(
    "form",
    {
      class: "flow",
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        const wrong = fields.filter((field) => !field.check());
        if (wrong.length) wrong[0].focus();
        else send(answersOf(questions, draft));
      },
    },
    fields.map(({ element }) => element),
    h("button", { class: "primary" }, h("span", {}, t("Continue")), h("kbd", { "aria-hidden": "true" }, "⏎")),
  );
  return h(
    "section",
    { class: "screen flow" },
    h("h2", {}, t("About you")),
    h("p", { class: "muted" }, t("These answers are kept apart from your other answers, and never published with your name.")),
    form,
    languageChoice(languages, languageChanged),
  );
}

addScreen("questionnaire", questionnaireScreen);
