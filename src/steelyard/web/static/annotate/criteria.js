import { h, uniqueId } from "./dom.js";
import { addExtra } from "./task.js";

/**
 * A widget for each criterion, one below the other, for protocols whose answer is about the whole task. With `movesOn`,
 * the focus goes to the next criterion when one is answered by keyboard.
 */
function byCriterion(widget, { movesOn = false } = {}) {
  return (task, page, changed) => {
    const names = (task.settings.criteria ?? []).map((criterion) => criterion.name);
    if (!names.length) return widget(task, page, changed);
    const own = { ...task, settings: { ...task.settings, criteria: [] } };
    const parts = names.map((name) => ({ name, view: widget(own, page, changed) }));
    const element = h(
      "div",
      { class: "asked-criteria" },
      parts.map(({ name, view }) => {
        const id = uniqueId("criterion");
        return h("section", { "aria-labelledby": id }, h("h2", { class: "criterion-name", id, dir: "auto" }, name), view.element);
      }),
    );
    const incomplete = () => parts.find(({ view }) => view.missing()) ?? null;

    return {
      element,
      wide: parts.some(({ view }) => view.wide),
      missing() {
        const part = incomplete();
        if (!part) return null;
        const { message, focus } = part.view.missing();
        return { message: `${part.name}: ${message}`, focus };
      },
      answer() {
        const given = parts.map(({ name, view }) => [name, view.answer()]).filter(([, answer]) => answer !== null);
        return given.length ? Object.fromEntries(given) : null;
      },
      fill(answer) {
        for (const { name, view } of parts) view.fill(answer?.[name] ?? null);
      },
      key(event) {
        const part = parts.find(({ view }) => view.element.contains(event.target)) ?? incomplete() ?? parts[0];
        if (!part.view.key(event)) return false;
        if (movesOn && !part.view.missing()) incomplete()?.view.missing().focus();
        return true;
      },
      hint: () => parts[0].view.hint(),
    };
  };
}

addExtra({ byCriterion });
