import { h, uniqueId } from "./dom.js";
import * as local from "./local.js";
import { t } from "./messages.js";
import { addCompanion } from "./task.js";

/** Texts for reading at length: who speaks in a conversation, and boxes that scroll together. */

const TOGETHER = "steelyard:scroll-together";
const SLACK = 8;

function nameRoles(element) {
  const names = { user: t("User"), assistant: t("Assistant"), system: t("System message"), tool: t("Tool") };
  for (const role of element.querySelectorAll(".turn-role[data-role]")) {
    role.textContent = names[role.dataset.role] ?? role.textContent;
  }
}

/** Long texts side by side get boxes of their own; they scroll in step, each by the same part of its length. */
function scrollTogether(element) {
  const boxes = [...element.querySelectorAll(".pair .content")];
  if (boxes.length < 2) return;
  const input = h("input", { type: "checkbox", id: uniqueId("together") });
  input.checked = local.get(TOGETHER) !== "0";
  input.addEventListener("change", () => local.set(TOGETHER, input.checked ? "1" : "0"));
  const toggle = h("label", { class: "together", for: input.id, hidden: true }, input, h("span", {}, t("Scroll both together")));
  boxes[0].closest(".pair").before(toggle);
  boxes.forEach((box, place) => {
    box.classList.add("scrolls");
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "AB"[place] ?? String(place + 1));
  });

  const room = (box) => box.scrollHeight - box.clientHeight;
  const followed = new WeakSet();
  for (const box of boxes) {
    box.addEventListener("scroll", () => {
      // What follows must not lead in its turn.
      if (followed.delete(box) || !input.checked || room(box) <= 0) return;
      const part = box.scrollTop / room(box);
      for (const other of boxes) {
        if (other === box || room(other) <= 0) continue;
        const top = Math.round(part * room(other));
        if (Math.abs(top - other.scrollTop) < 1) continue;
        followed.add(other);
        other.scrollTop = top;
      }
    });
  }
  const measure = () => {
    toggle.hidden = boxes.filter((box) => getComputedStyle(box).overflowY === "auto" && room(box) > SLACK).length < 2;
  };
  new ResizeObserver(measure).observe(boxes[0]);
}

/** What scrolls is reached by the keyboard. */
function reachable(element) {
  for (const panel of element.querySelectorAll(".beside .panel > .content")) panel.tabIndex = 0;
}

/** The answers stay in view, above the bar of buttons, whose height depends on the language. */
function keepAnswersInView() {
  const dock = document.querySelector(".dock");
  const style = document.documentElement.style;
  if (dock) new ResizeObserver(() => style.setProperty("--dock-height", `${dock.offsetHeight}px`)).observe(dock);
}

keepAnswersInView();
addCompanion((element, task, page) => {
  nameRoles(element);
  if (!page.reading) return null;
  element.classList.add("reading");
  scrollTogether(element);
  reachable(element);
  return null;
});
