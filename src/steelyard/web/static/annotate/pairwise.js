import { itemContent, panels } from "./content.js";
import { h, key, uniqueId } from "./dom.js";
import { t } from "./messages.js";
import { steps } from "./steps.js";

// No item can have this as its id: ids are strings.
const BOTH_BAD = Symbol("both bad");

export function pairwise(task, page, changed) {
  const { steps: count = 3, criteria } = task.settings;
  return count > 3 || criteria?.length ? graded(task, page, changed) : winnerOnly(task, page, changed);
}

/** Two cards; the whole card is the button, and "about the same" stands between them. */
function winnerOnly(task, page, changed) {
  const group = uniqueId("pair");
  const options = [];

  function radio(winner, labelledBy, shortcuts) {
    const input = h("input", {
      type: "radio",
      name: group,
      id: uniqueId("choice"),
      class: "visually-hidden",
      "aria-labelledby": labelledBy,
      "aria-keyshortcuts": shortcuts,
      onchange: changed,
    });
    options.push({ winner, input });
    return input;
  }

  const contents = [];
  const cards = task.items.map((item, position) => {
    const content = itemContent(item, position);
    contents.push(content.element);
    const input = radio(item.id, content.id, position ? "2 ArrowRight" : "1 ArrowLeft");
    return h(
      "label",
      { class: "choice-card", for: input.id },
      input,
      h("span", { class: "choice-keys" }, key(String(position + 1)), key(position ? "→" : "←")),
      panels(item, page),
      content.element,
    );
  });
  const between = (value, shortcut, text) => {
    const words = uniqueId("tie");
    const input = radio(value, words, shortcut);
    return h("label", { class: "tie", for: input.id }, input, key(shortcut), h("span", { id: words }, text));
  };
  const ties = [
    task.settings.ties !== false && between(null, "0", t("About the same")),
    task.settings.both_bad && between(BOTH_BAD, "9", t("Both are bad")),
  ].filter(Boolean);
  const tie = ties.length ? h("div", { class: "ties" }, ties) : null;

  const element = h(
    "div",
    { class: `pair${allBrief(contents)}`, role: "radiogroup", "aria-labelledby": "question" },
    cards[0],
    tie,
    cards[1],
  );
  const chosen = () => options.find(({ input }) => input.checked) ?? null;
  const choose = (winner) => {
    const option = options.find((other) => other.winner === winner);
    if (!option) return false;
    option.input.checked = true;
    option.input.focus({ preventScroll: true });
    changed();
    return true;
  };
  const [first, second] = task.items.map((item) => item.id);

  return {
    element,
    wide: true,
    missing: () => (chosen() ? null : { message: t("Nothing is chosen yet."), focus: () => options[0].input.focus() }),
    answer() {
      if (!chosen()) return null;
      return chosen().winner === BOTH_BAD ? { winner: null, both_bad: true } : { winner: chosen().winner };
    },
    fill(answer) {
      const given = answer?.both_bad ? BOTH_BAD : answer?.winner;
      for (const { winner, input } of options) input.checked = Boolean(answer) && winner === given;
    },
    key(event) {
      // In a study that runs from right to left the first card is on the right.
      const leftFirst = page.direction !== "rtl";
      const targets = {
        1: first,
        2: second,
        0: null,
        9: BOTH_BAD,
        ArrowLeft: leftFirst ? first : second,
        ArrowRight: leftFirst ? second : first,
      };
      return event.key in targets && choose(targets[event.key]);
    },
    hint: () => t("Click the card you choose, or press 1 or 2."),
  };
}

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
    rows.map((row) => row.element),
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
      if (!control.key(event.key)) return false;
      if (names.length) unanswered()?.focus();
      return true;
    },
    hint: () => t("Click an answer or press its key."),
  };
}

/** From the first item much better to the second much better; a value is "side:strength". */
function gradedOptions({ steps: count = 3, ties, both_bad: bothBad, labels }) {
  const most = (count - 1) / 2;
  const strengths = Array.from({ length: most }, (_, place) => most - place);
  const option = (side, strength) => ({
    // Without grades there is no strength to send.
    value: `${side}:${most > 1 ? strength : 0}`,
    face: "",
    words: gradeWords(LETTERS[side], strength, most, labels),
  });
  return [
    ...strengths.map((strength) => option(0, strength)),
    ...(ties === false ? [] : [{ value: TIE, face: "", words: t("About the same") }]),
    ...strengths.toReversed().map((strength) => option(1, strength)),
    ...(bothBad ? [{ value: BAD, face: "", words: t("Both are bad") }] : []),
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

function allBrief(contents) {
  return contents.every((one) => one.classList.contains("brief")) ? " all-brief" : "";
}
