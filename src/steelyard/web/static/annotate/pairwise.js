import { itemContent, panels } from "./content.js";
import { h, key, uniqueId } from "./dom.js";
import { t } from "./messages.js";
import { addWidget } from "./task.js";

// No item can have this as its id: ids are strings.
const BOTH_BAD = Symbol("both bad");

/** Two cards; the whole card is the button, and "about the same" stands between them. */
function pairwise(task, page, changed) {
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

export function allBrief(contents) {
  return contents.every((one) => one.classList.contains("brief")) ? " all-brief" : "";
}

addWidget("pairwise", pairwise);
