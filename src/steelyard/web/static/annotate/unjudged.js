import { h, uniqueId } from "./dom.js";
import { t } from "./messages.js";
import { addExtra } from "./task.js";

/** "I cannot judge this", with a reason where the study asks for one; and a comment on the task. */

const MARK = "cannot_judge";
const isMark = (value) => value !== null && typeof value === "object" && Object.keys(value).length === 1 && MARK in value;

function refusal(reasons, changed) {
  const box = h("input", { type: "checkbox", id: uniqueId("unjudged"), onchange: () => update(true) });
  const select = reasons.length
    ? h(
        "select",
        { "aria-label": t("Why?"), hidden: true, onchange: changed },
        h("option", { value: "" }, t("Why?")),
        reasons.map((reason) => h("option", { value: reason }, reason)),
      )
    : null;
  const listeners = [];
  function update(tell) {
    if (select) select.hidden = !box.checked;
    for (const listener of listeners) listener(box.checked);
    if (tell) changed();
  }
  return {
    element: h("div", { class: "unjudge" }, h("label", { for: box.id }, box, h("span", {}, t("I cannot judge this"))), select),
    listen: (listener) => listeners.push(listener),
    checked: () => box.checked,
    lacksReason: () => box.checked && Boolean(select) && !select.value,
    focus: () => (box.checked && select ? select : box).focus(),
    mark: () => ({ [MARK]: select?.value ?? "" }),
    set(mark) {
      box.checked = mark !== null;
      if (select) select.value = mark?.[MARK] ?? "";
      update(false);
    },
  };
}

/** The widget with a box for each item that has its own value, or one for the whole task. */
function withCannotJudge(widget, task, page, changed) {
  const reasons = page.reasons ?? [];
  const blocks = [...widget.element.querySelectorAll(".judging")];
  const own = blocks.length === task.items.length;
  const boxes = (own ? task.items : [null]).map((item, place) => {
    const box = refusal(reasons, changed);
    const part = own ? blocks[place] : widget.element;
    const faded = own ? part.querySelector(".controls") : widget.element;
    box.listen((checked) => {
      part.classList.toggle("unjudged", checked);
      faded.inert = checked;
    });
    if (own) part.append(box.element);
    return { item, box };
  });
  const element = own ? widget.element : h("div", { class: "judgeable" }, widget.element, boxes[0].box.element);

  return {
    ...widget,
    element,
    missing() {
      const silent = boxes.find(({ box }) => box.lacksReason());
      if (silent) return { message: t("Please choose why you cannot judge."), focus: silent.box.focus };
      return !own && boxes[0].box.checked() ? null : widget.missing();
    },
    answer() {
      if (!own) return boxes[0].box.checked() ? boxes[0].box.mark() : widget.answer();
      const given = widget.answer();
      for (const { item, box } of boxes) if (box.checked()) given[item.id] = box.mark();
      return given;
    },
    fill(answer) {
      if (!own) {
        boxes[0].box.set(isMark(answer) ? answer : null);
        widget.fill(isMark(answer) ? null : answer);
        return;
      }
      const whole = isMark(answer) ? answer : null;
      const marked = (item) => whole ?? (isMark(answer?.[item.id]) ? answer[item.id] : null);
      for (const { item, box } of boxes) box.set(marked(item));
      const judged = Object.entries(whole ? {} : (answer ?? {})).filter(([, value]) => !isMark(value));
      widget.fill(Object.fromEntries(judged));
    },
    key: (event) => (boxes.some(({ box }) => box.checked() && !own) ? false : widget.key(event)),
  };
}

/** A field for a comment, folded away until it is used. */
function commentField(changed) {
  const area = h("textarea", { rows: 2, maxlength: 2000, dir: "auto", "aria-label": t("Comment"), oninput: changed });
  const element = h("details", { class: "comment" }, h("summary", {}, t("Add a comment")), area);
  return {
    element,
    value: () => area.value.trim(),
    set(text) {
      area.value = text ?? "";
      element.open = Boolean(area.value);
    },
  };
}

addExtra({ withCannotJudge, commentField });
