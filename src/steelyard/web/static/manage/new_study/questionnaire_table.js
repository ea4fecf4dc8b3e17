import { h } from "../../annotate/dom.js";
import { button, checkField, details, listField, numberField, selectField, textField } from "./controls.js";
import { get, set, valuesChanged } from "./draft.js";

/** The questionnaire about the annotators themselves: one card for each question. */

const PATH = "annotators.questionnaire";
const TYPES = [["choice", "Choose one answer"], ["number", "Number"], ["text", "Short text"]];

const rows = () => get(PATH) ?? [];

/** The fields of one answer type. */
function answerFields(path, type) {
  if (type === "choice") return [listField({ label: "Answers", help: "One per line.", path: `${path}.choices`, rows: 4 })];
  if (type === "text") return [];
  return [
    h("div", { class: "n-columns" }, numberField({ label: "Smallest", path: `${path}.minimum` }), numberField({ label: "Largest", path: `${path}.maximum` })),
    numbersField(`${path}.breaks`),
  ];
}

function numbersField(path) {
  const field = listField({ label: "Groups begin at", help: "Numbers separated by commas, such as 30, 50. Results by group use them.", path, separator: "," });
  field.querySelector("input").addEventListener("input", () => {
    const numbers = (get(path) ?? []).map(Number).filter((one) => Number.isFinite(one));
    set(path, numbers.length ? numbers : undefined);
    valuesChanged();
  });
  return field;
}

/** A short name for groups, from the first words of the question, unless one is typed. */
function nameFor(question, taken) {
  const words = question.toLowerCase().normalize("NFD").replace(/[^a-z0-9 ]/g, "").split(" ").filter((word) => word.length > 2 && !IDLE.has(word));
  const base = (words.at(-1) ?? "").replace(/^[0-9]+/, "") || "answer";
  let name = base.slice(0, 40);
  for (let number = 2; taken.includes(name); number += 1) name = `${base}_${number}`;
  return name;
}

const IDLE = new Set(["what", "which", "your", "you", "are", "the", "how", "have", "does", "did", "please"]);

function card(number, render) {
  const path = `${PATH}.${number}`;
  const type = get(`${path}.type`) ?? "choice";
  const remove = () => {
    const rest = rows().filter((_, place) => place !== number);
    set(PATH, rest.length ? rest : undefined);
    valuesChanged({ now: true });
    render();
  };
  const changeType = () => {
    const { name, question, type: chosen, optional, prefer_not_to_say } = rows()[number];
    set(path, { name, question, type: chosen, optional, prefer_not_to_say });
    valuesChanged();
    render();
  };
  let wasNamed = Boolean(get(`${path}.name`)) && get(`${path}.name`) !== nameFor(get(`${path}.question`) ?? "", []);
  const nameField = textField({ label: "Name", help: "Short; results by group use it. Letters, digits and _.", path: `${path}.name`, maxlength: 50, after: () => (wasNamed = true) });
  const suggest = (text) => {
    if (wasNamed) return;
    set(`${path}.name`, nameFor(text ?? "", rows().filter((_, place) => place !== number).map((row) => row.name)));
    nameField.querySelector("input").value = get(`${path}.name`);
    valuesChanged();
  };
  return h(
    "fieldset",
    { class: "n-stack n-entry-question" },
    h("legend", { class: "visually-hidden" }, `Question ${number + 1}`),
    textField({ label: "Question", path: `${path}.question`, maxlength: 500, after: suggest }),
    selectField({ label: "Answer", path: `${path}.type`, fallback: "choice", options: TYPES, after: changeType }),
    answerFields(path, type),
    details("More", {}, nameField, checkField({ label: "May be left unanswered", path: `${path}.optional` }), checkField({ label: "Offer “Prefer not to say”", path: `${path}.prefer_not_to_say`, fallback: true })),
    h("div", {}, button("Remove question", remove, { kind: "quiet", label: `Remove question ${number + 1}` })),
  );
}

export function questionnaireTable(render) {
  const add = () => {
    set(PATH, [...rows(), { name: nameFor("", rows().map((row) => row.name)), question: "", type: "choice" }]);
    valuesChanged();
    render();
  };
  return [
    h("p", { class: "small muted" }, "Asked once, after the consent and before the first task. The answers form groups of annotators, are stored apart from the judgments, and are left out of exports unless you ask for them. A consent text is required."),
    rows().map((_, number) => card(number, render)),
    h("div", {}, button("Add a question", add)),
  ];
}
