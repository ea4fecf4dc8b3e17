import { itemContent, panels } from "./content.js";
import { h, uniqueId } from "./dom.js";
import { number, t } from "./messages.js";
import { slider } from "./slider.js";
import { steps } from "./steps.js";
import { addWidget } from "./task.js";

/** direct, likert, choice and scored_ranking: one value for each thing shown, or one for each criterion of it. */

const MOST_STEPS = 11;
const MOVE_MS = 160;

/** The control for one value, by what the protocol asks. */
function field(protocol, criterion, common) {
  const { scale, labels } = criterion;
  if (protocol === "choice") {
    return steps({ ...common, options: labels.map((label) => ({ value: label, face: "", words: label })) });
  }
  if (protocol === "likert") {
    const [low, high] = scale;
    if (high - low + 1 <= MOST_STEPS) {
      const values = Array.from({ length: high - low + 1 }, (_, place) => low + place);
      const every = labels.length === values.length;
      return steps({
        ...common,
        options: values.map((value, place) => ({ value, face: number(value), words: every ? labels[place] : "" })),
        ends: every ? [] : labels,
      });
    }
    return slider({ ...common, scale, labels, whole: true });
  }
  return slider({ ...common, scale, labels });
}

function perItem(task, page, changed) {
  const { settings } = task;
  const own = { name: "", scale: settings.scale ?? null, labels: settings.labels ?? [] };
  const criteria = settings.criteria?.length ? settings.criteria : [own];
  const several = criteria.length > 1 || Boolean(criteria[0].name);
  const single = task.items.length === 1 && criteria.length === 1;
  const sorts = task.protocol === "scored_ranking" && page.sort_live;

  const blocks = task.items.map((item, position) => {
    const content = itemContent(item, position);
    const fields = criteria.map((criterion) => {
      const labelId = uniqueId("criterion");
      const control = field(task.protocol, criterion, {
        name: several ? t("{thing}: {criterion}", { thing: content.name, criterion: criterion.name }) : content.name,
        labelledBy: several ? `${content.id} ${labelId}` : content.id,
        showValue: page.show_value,
        showKeys: single,
        changed: (settled) => {
          changed();
          if (settled && sorts) sort();
        },
      });
      return { control, criterion, labelId };
    });
    const beside = [...(task.items.length === 1 ? panels(task.shared ?? {}, page) : []), ...panels(item, page)];
    const heading = beside.length
      ? h(
          "div",
          { class: "beside" },
          beside,
          h("section", { class: "panel judged" }, h("h2", { class: "panel-title" }, t("To judge")), content.element),
        )
      : content.element;
    const rows = fields.map(({ control, criterion, labelId }) =>
      several
        ? h(
            "div",
            { class: "criterion" },
            h("div", { class: "criterion-name", id: labelId, dir: "auto" }, criterion.name),
            control.element,
          )
        : control.element,
    );
    const element = h("div", { class: "judging" }, heading, h("div", { class: "controls" }, rows));
    return { item, fields, element };
  });

  const controls = blocks.flatMap((block) => block.fields.map(({ control }) => control));
  const layout =
    single || task.items.length === 1 ? "one" : several || task.protocol !== "scored_ranking" ? "blocks" : "rows";
  const list = h(
    "div",
    { class: `judgings ${layout}` },
    blocks.map((block) => block.element),
  );

  /** Highest first, what has no value yet last; the list moves only when a hand lets go. */
  function sort() {
    const value = (block) => block.fields[0].control.value() ?? -Infinity;
    const shown = [...list.children];
    const wanted = [...blocks].sort((a, b) => value(b) - value(a)).map((block) => block.element);
    if (wanted.every((element, place) => element === shown[place])) return;
    const before = new Map(shown.map((element) => [element, element.getBoundingClientRect().top]));
    // The row in hand stays in the page and the others move around it: it keeps the focus.
    const still = wanted.findIndex((element) => element.contains(document.activeElement));
    wanted.slice(0, Math.max(still, 0)).forEach((element) => list.insertBefore(element, wanted[still]));
    list.append(...wanted.slice(still + 1));
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const element of wanted) {
      const moved = before.get(element) - element.getBoundingClientRect().top;
      if (moved) element.animate([{ transform: `translateY(${moved}px)` }, { transform: "none" }], MOVE_MS);
    }
  }

  // What cannot be judged needs no value.
  const unanswered = () =>
    controls.find((control) => control.value() === null && !control.element.closest(".unjudged")) ?? null;

  return {
    element: list,
    wide: blocks.some((block) => block.element.querySelector(".beside")),
    missing() {
      const control = unanswered();
      return control && { message: t("{thing} has no answer yet.", { thing: control.name }), focus: control.focus };
    },
    answer() {
      const valued = (block) => {
        const given = block.fields
          .map(({ control, criterion }) => [criterion.name, control.value()])
          .filter(([, value]) => value !== null);
        if (!given.length) return null;
        return several ? Object.fromEntries(given) : given[0][1];
      };
      const pairs = blocks.map((block) => [block.item.id, valued(block)]).filter(([, value]) => value !== null);
      return Object.fromEntries(pairs);
    },
    fill(answer) {
      for (const { item, fields } of blocks) {
        const value = answer?.[item.id];
        for (const { control, criterion } of fields) control.set(several ? value?.[criterion.name] : value);
      }
      if (sorts) sort();
    },
    key(event) {
      const focused = controls.find((control) => control.has(event.target));
      const control = focused ?? unanswered() ?? controls.find((one) => !one.element.closest(".unjudged"));
      if (!control) return false;
      if (!control.key(event.key)) return false;
      if (control.movesOn) unanswered()?.focus();
      return true;
    },
    hint() {
      if (task.protocol === "direct" || task.protocol === "scored_ranking") {
        return t("Click or drag on the line, or use the keys 1 to 9 and the arrow keys. Tab goes to the next one.");
      }
      return t("Click an answer or press its key.");
    },
  };
}

for (const protocol of ["direct", "likert", "choice", "scored_ranking"]) addWidget(protocol, perItem);
