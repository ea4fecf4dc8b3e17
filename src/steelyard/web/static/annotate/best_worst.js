import { itemContent, panels } from "./content.js";
import { h, key, uniqueId } from "./dom.js";
import { t } from "./messages.js";
import { addWidget } from "./task.js";

/** Rows with a radio for the best on one side and one for the worst on the other; no row can be both. */

const DIGITS = "123456789";
const LETTERS = "abcdefghi";

function bestWorst(task, page, changed) {
  // The words that stand for themselves when the study has none are said in the page's language.
  const usual = { best: t("best"), worst: t("worst") };
  const [bestWord, worstWord] = task.settings.labels.map((word) => usual[word] ?? word);
  const sides = [
    { kind: "best", word: bestWord, keys: DIGITS },
    { kind: "worst", word: worstWord, keys: LETTERS },
  ].map((side) => ({ ...side, group: uniqueId(side.kind), headId: uniqueId("head"), inputs: [] }));

  function radio(side, position, contentId) {
    const shortcut = side.keys[position] ?? null;
    const input = h("input", {
      type: "radio",
      name: side.group,
      id: uniqueId(side.kind),
      "aria-labelledby": `${side.headId} ${contentId}`,
      "aria-keyshortcuts": shortcut,
      onchange: () => choose(side, position),
    });
    side.inputs.push(input);
    return h(
      "td",
      { class: `pick ${side.kind}` },
      h("label", { for: input.id }, input, shortcut ? key(shortcut) : null),
    );
  }

  const rows = task.items.map((item, position) => {
    const content = itemContent(item, position);
    const best = radio(sides[0], position, content.id);
    const worst = radio(sides[1], position, content.id);
    return {
      item,
      name: content.name,
      brief: content.element.classList.contains("brief"),
      element: h("tr", {}, best, h("td", { class: "thing" }, panels(item, page), content.element), worst),
    };
  });
  const head = ({ word, headId, kind }) => h("th", { scope: "col", id: headId, class: kind, dir: "auto" }, word);
  const element = h(
    "table",
    // Short texts stand in the middle, but not beside longer ones: the rows of a task are aligned alike.
    { class: `best-worst${rows.every((row) => row.brief) ? " all-brief" : ""}`, "aria-labelledby": "question" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        head(sides[0]),
        h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, t("Text"))),
        head(sides[1]),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((row) => row.element),
    ),
  );

  const chosen = (side) => side.inputs.findIndex((input) => input.checked);
  function choose(side, position) {
    side.inputs[position].checked = true;
    const other = sides.find((one) => one !== side);
    other.inputs[position].checked = false;
    paint();
    changed();
  }
  function paint() {
    rows.forEach((row, position) => {
      for (const side of sides) row.element.classList.toggle(`is-${side.kind}`, side.inputs[position].checked);
    });
  }

  return {
    element,
    wide: false,
    missing() {
      const side = sides.find((one) => chosen(one) < 0);
      return side
        ? {
            message: t("Nothing is chosen for “{word}” yet.", { word: side.word }),
            focus: () => side.inputs[0].focus(),
          }
        : null;
    },
    answer() {
      const named = sides.map((side) => [side.kind, task.items[chosen(side)]?.id ?? null]);
      return Object.fromEntries(named);
    },
    fill(answer) {
      for (const side of sides) {
        side.inputs.forEach((input, position) => {
          input.checked = task.items[position].id === answer?.[side.kind];
        });
      }
      paint();
    },
    key(event) {
      const pressed = event.key.toLowerCase();
      for (const side of sides) {
        const position = side.keys.indexOf(pressed);
        if (pressed.length === 1 && position >= 0 && position < rows.length) {
          side.inputs[position].focus({ preventScroll: true });
          choose(side, position);
          return true;
        }
      }
      return false;
    },
    hint: () => t("Choose one on each side: digits for the first column, letters for the last."),
  };
}

addWidget("best_worst", bestWorst);
