import { itemContent, panels } from "./content.js";
import { h, uniqueId } from "./dom.js";
import { t } from "./messages.js";
import { allBrief } from "./pairwise.js";
import { steps } from "./steps.js";
import { addExtra } from "./task.js";

const LETTERS = ["A", "B"];
const TIE = "tie";
const BAD = "bad";

/** Two cards to read, and below them a row of answers from "A is much better" to "B is much better". */
function graded(task, page, changed) {
  const contents = [];
  const cards = task.items.map((item, position) => {
    const content = itemContent(item, position);
    contents.push(content.element);
    return h(
      "section",
      { class: "choice-card read-card" },
      h("span", { class: "card-letter" }, LETTERS[position]),
      panels(item, page),
      content.element,
    );
  });
  const names = (task.settings.criteria ?? []).map((criterion) => criterion.name);
  const rows = (names.length ? names : [null]).map((name) => {
    const labelId = uniqueId("criterion");
    const control = steps({
      name: name ?? t("Answer"),
      labelledBy: name === null ? "question" : `question ${labelId}`,
      options: gradedOptions(task.settings),
      changed,
    });
    control.element.classList.add("grades");
    const heading = name === null ? null : h("div", { class: "criterion-name", id: labelId, dir: "auto" }, name);
    return { name, control, element: heading ? h("div", { class: "criterion" }, heading, control.element) : control.element };
  });
  const element = h(
    "div",
    { class: "graded" },
    h("div", { class: `pair${allBrief(contents)}` }, cards),
    h("div", { class: "grade-rows" }, rows.map((row) => row.element)),
  );
  const ids = task.items.map((item) => item.id);
  const unanswered = () => rows.find(({ control }) => control.value() === null)?.control ?? null;

  return {
    element,
    wide: true,
    missing() {
      const control = unanswered();
      if (!control) return null;
      const message = names.length ? t("{thing} has no answer yet.", { thing: control.name }) : t("Nothing is chosen yet.");
      return { message, focus: control.focus };
    },
    answer() {
      if (!names.length) return gradedAnswer(rows[0].control.value(), ids);
      const given = rows.filter(({ control }) => control.value() !== null);
      return Object.fromEntries(given.map(({ name, control }) => [name, gradedAnswer(control.value(), ids)]));
    },
    fill(answer) {
      for (const { name, control } of rows) control.set(gradedValue(name === null ? answer : answer?.[name], ids));
    },
    key(event) {
      const focused = rows.find(({ control }) => control.has(event.target))?.control;
      const control = focused ?? unanswered() ?? rows[0].control;
      if (!control.key(arrowKey(event.key, task.settings, page) ?? event.key)) return false;
      if (names.length) unanswered()?.focus();
      return true;
    },
    hint: () => t("Click an answer or press its key."),
  };
}

/** Without grades, arrows choose a side, as on cards; the digit of that side. */
function arrowKey(pressed, { steps: count = 3 }, page) {
  if (count > 3) return null;
  // In a study that runs from right to left the first card is on the right.
  const leftFirst = page.direction !== "rtl";
  return { ArrowLeft: leftFirst ? "1" : "2", ArrowRight: leftFirst ? "2" : "1" }[pressed] ?? null;
}

/**
 * From the first item much better to the second much better; a value is "side:strength". As on cards, the key 0 is a
 * tie, 9 is "both bad", and the other answers are numbered from 1.
 */
function gradedOptions({ steps: count = 3, ties, both_bad: bothBad, labels }) {
  const most = (count - 1) / 2;
  const strengths = Array.from({ length: most }, (_, place) => most - place);
  const option = (side, strength) => ({
    // Without grades there is no strength to send.
    value: `${side}:${most > 1 ? strength : 0}`,
    key: String(side ? most + strength : most - strength + 1),
    face: "",
    words: gradeWords(LETTERS[side], strength, most, labels),
    // Our words run as the page does, though they may begin with a Latin letter.
    dir: labels?.length ? "auto" : document.documentElement.dir,
  });
  return [
    ...strengths.map((strength) => option(0, strength)),
    ...(ties === false ? [] : [{ value: TIE, key: "0", face: "", words: t("About the same") }]),
    ...strengths.toReversed().map((strength) => option(1, strength)),
    ...(bothBad ? [{ value: BAD, key: "9", face: "", words: t("Both are bad") }] : []),
  ];
}

function gradeWords(letter, strength, most, labels) {
  if (labels?.length) return t("{thing}: {criterion}", { thing: letter, criterion: labels[strength - 1] });
  if (strength === most && most > 1) return t("{letter} is much better", { letter });
  if (strength === 1 && most === 3) return t("{letter} is slightly better", { letter });
  return t("{letter} is better", { letter });
}

function gradedAnswer(value, ids) {
  if (value === null) return null;
  if (value === TIE) return { winner: null };
  if (value === BAD) return { winner: null, both_bad: true };
  const [side, strength] = value.split(":").map(Number);
  return strength ? { winner: ids[side], strength } : { winner: ids[side] };
}

function gradedValue(answer, ids) {
  if (!answer) return null;
  if (answer.both_bad) return BAD;
  return answer.winner === null ? TIE : `${ids.indexOf(answer.winner)}:${answer.strength ?? 0}`;
}

addExtra({ graded });
