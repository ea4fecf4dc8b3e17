import { panels } from "./content.js";
import { h, key, shorten, uniqueId } from "./dom.js";
import { t } from "./messages.js";
import { slider } from "./slider.js";
import { addWidget } from "./task.js";

/** error_spans: texts whose errors are marked by mouse, finger or keys, then scored with the marks in view. */

const MOST_KEYS = 9;
const IS_SPACE = /^\s*$/u;

/** The text as places of words and of what stands between them, all in code points. */
function tokensOf(text) {
  const pieces = globalThis.Intl?.Segmenter
    ? [...new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)].map(({ segment }) => segment)
    : text.match(/\s+|[^\s]+/gu) ?? [];
  let at = 0;
  return pieces.map((piece) => {
    const start = at;
    at += [...piece].length;
    return { start, end: at, space: IS_SPACE.test(piece) };
  });
}

/** Places where a reader sees one sign end and the next begin, in code points. */
function borders(text) {
  const signs = globalThis.Intl?.Segmenter
    ? [...new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text)].map(({ segment }) => segment)
    : [...text];
  let at = 0;
  return [0, ...signs.map((sign) => (at += [...sign].length))];
}

const LEVELS = ["low", "middle", "high"];

function levelOf(place, count) {
  if (place === 0 && count > 1) return LEVELS[0];
  return place === count - 1 ? LEVELS[2] : LEVELS[1];
}

/** One text with its marks. */
function markedText(item, position, task, changed) {
  const { severities, categories, omission } = task.settings;
  const words = Object.keys(severities);
  const usual = { minor: t("minor"), major: t("major"), critical: t("critical") };
  const called = (severity) => usual[severity] ?? severity;
  const points = [...item.text];
  const tokens = tokensOf(item.text);
  const signs = borders(item.text);
  const places = tokens.map((token, place) => (token.space ? -1 : place)).filter((place) => place >= 0);
  const suggestions = item.suggestions ?? [];
  let marks = suggestions.map((mark, number) => ({ ...mark, suggestion: number }));
  let active = null;
  let cursor = null; // {at, anchor}: places of words, while the keyboard is in use
  let drag = null;

  const textOf = (mark) => (mark.omission ? t("Missing content") : points.slice(mark.start, mark.end).join(""));
  const name = shorten(item.text) || t("Number {number}", { number: position + 1 });

  const box = h("div", {
    class: "content marked-text",
    id: uniqueId("text"),
    dir: item.dir,
    tabindex: "0",
    role: "group",
    "aria-label": name,
  });
  const said = h("p", { class: "visually-hidden", role: "status" });
  const list = h("ul", { class: "marks", "aria-label": t("Marked errors") });
  const tools = h("div", { class: "mark-tools" });
  const omit = omission
    ? h("button", { type: "button", class: "quiet omit", onclick: () => addOmission() }, `+ ${t("Missing content")}`)
    : null;
  const element = h("div", { class: "marking" }, box, said, h("div", { class: "mark-row" }, list, omit), tools);

  const selected = () => {
    if (drag) return drag.to === null ? null : ends(drag.from, drag.to);
    return cursor ? ends(cursor.anchor, cursor.at) : null;
  };

  /** The words from one place to another, without the blanks around them. */
  function ends(one, other) {
    let [first, last] = one <= other ? [one, other] : [other, one];
    while (first < last && tokens[first].space) first += 1;
    while (last > first && tokens[last].space) last -= 1;
    return tokens[first].space ? null : { start: tokens[first].start, end: tokens[last].end };
  }

  function paintText() {
    const choice = selected();
    const edges = new Set([0, points.length]);
    for (const { start, end } of tokens) edges.add(start).add(end);
    for (const { start, end, omission: missing } of marks) if (!missing) edges.add(start).add(end);
    const sorted = [...edges].sort((a, b) => a - b);
    let token = 0;
    const parts = sorted.slice(0, -1).map((start, number) => {
      const end = sorted[number + 1];
      while (tokens[token].end <= start) token += 1;
      const over = marks.filter((mark) => !mark.omission && mark.start <= start && mark.end >= end);
      const classes = [];
      if (over.length) {
        const levels = over.map((mark) => words.indexOf(mark.severity));
        const worst = Math.max(...levels);
        classes.push("flawed", worst < 0 ? "unset" : levelOf(worst, words.length));
        if (over.length > 1) classes.push("several");
        if (over.includes(active)) classes.push("active");
      }
      if (choice && start >= choice.start && end <= choice.end) classes.push("chosen");
      return h("span", { class: classes.join(" ") || null, "data-token": token }, points.slice(start, end).join(""));
    });
    box.replaceChildren(...parts);
  }

  function paintList() {
    list.replaceChildren(
      ...marks.map((mark) =>
        h(
          "li",
          {},
          h(
            "button",
            {
              type: "button",
              class: `mark ${mark.severity ? levelOf(words.indexOf(mark.severity), words.length) : "unset"}`,
              "aria-pressed": String(mark === active),
              onclick: () => choose(mark === active ? null : mark),
            },
            h("bdi", { class: "mark-words" }, shorten(textOf(mark), 24)),
            h("span", { class: "mark-severity" }, mark.severity ? called(mark.severity) : "?"),
          ),
        ),
      ),
    );
    list.hidden = !marks.length;
  }

  function nudges(end, sign, label, step) {
    return h(
      "button",
      { type: "button", class: "small-button", "aria-label": label, title: label, onclick: () => nudge(end, step) },
      sign,
    );
  }

  function paintTools() {
    tools.hidden = !active;
    if (!active) return tools.replaceChildren();
    const label = uniqueId("severity");
    const severity = h(
      "div",
      { class: "severities", role: "group", "aria-labelledby": label },
      h("span", { id: label, class: "visually-hidden" }, t("How severe is it?")),
      words.map((word, place) =>
        h(
          "button",
          {
            type: "button",
            class: `severity ${levelOf(place, words.length)}`,
            "aria-pressed": String(active.severity === word),
            "aria-keyshortcuts": place < MOST_KEYS ? place + 1 : null,
            onclick: () => setSeverity(word),
          },
          h("bdi", {}, called(word)),
          place < MOST_KEYS ? key(String(place + 1)) : null,
        ),
      ),
    );
    const category = categories.length
      ? h(
          "select",
          { "aria-label": t("Category"), onchange: (event) => setCategory(event.target.value) },
          h("option", { value: "" }, t("Category…")),
          categories.map((one) => h("option", { value: one, selected: active.category === one }, one)),
        )
      : null;
    // The arrows point the way the text runs.
    const [back, on] = box.dir === "rtl" ? ["→", "←"] : ["←", "→"];
    const edges = active.omission
      ? null
      : h(
          "div",
          { class: "edges" },
          h("span", { class: "edge" }, t("Start"), nudges("start", back, t("Start earlier"), -1), nudges("start", on, t("Start later"), 1)),
          h("span", { class: "edge" }, t("End"), nudges("end", back, t("End earlier"), -1), nudges("end", on, t("End later"), 1)),
        );
    const drop = h("button", { type: "button", class: "quiet delete-mark", onclick: () => remove(active) }, t("Delete"));
    return tools.replaceChildren(...[severity, category, edges, drop].filter(Boolean));
  }

  function paint() {
    const focused = document.activeElement;
    const inTools = tools.contains(focused) ? [...tools.querySelectorAll("button, select")].indexOf(focused) : -1;
    paintText();
    paintList();
    paintTools();
    if (inTools >= 0) (tools.querySelectorAll("button, select")[inTools] ?? box).focus({ preventScroll: true });
  }

  function choose(mark) {
    active = mark;
    paint();
  }

  function settle() {
    paint();
    changed();
  }

  function add(mark) {
    const same = marks.find((one) => one.start === mark.start && one.end === mark.end && !one.omission);
    if (same && !mark.omission) return choose(same);
    active = { ...mark, ...(words.length === 1 ? { severity: words[0] } : {}) };
    marks = [...marks, active].sort((a, b) => (a.start ?? Infinity) - (b.start ?? Infinity));
    said.textContent = t("Marked: {words}", { words: textOf(active) });
    return settle();
  }

  function addOmission() {
    add({ omission: true });
    tools.querySelector(".severity")?.focus({ preventScroll: true });
  }

  function remove(mark) {
    marks = marks.filter((one) => one !== mark);
    if (active === mark) active = null;
    settle();
    box.focus({ preventScroll: true });
  }

  function change(values) {
    const next = { ...active, ...values };
    marks = marks.map((one) => (one === active ? next : one));
    active = next;
    settle();
  }

  const setSeverity = (severity) => change({ severity });
  const setCategory = (category) => change({ category: category || undefined });

  function nudge(end, step) {
    const place = signs.findIndex((border) => border >= active[end]);
    const value = signs[place + step];
    const next = { start: active.start, end: active.end, [end]: value };
    if (value === undefined || next.start >= next.end) return;
    change(next);
  }

  // Mouse and finger: press a word, or draw across several.

  const placeUnder = (event) => {
    const found = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-token]");
    return found && box.contains(found) ? Number(found.dataset.token) : null;
  };
  // The text is painted anew while a finger moves over it, so the pointer is followed on the page.
  function follow(yes) {
    const change = yes ? "addEventListener" : "removeEventListener";
    document[change]("pointermove", move);
    document[change]("pointerup", finish);
    document[change]("pointercancel", stop);
  }
  box.addEventListener("pointerdown", (event) => {
    const from = placeUnder(event);
    if (event.button !== 0 || from === null) return;
    drag = { from, to: null, id: event.pointerId };
    cursor = null;
    follow(true);
  });
  function move(event) {
    if (event.pointerId !== drag?.id) return;
    const to = placeUnder(event);
    if (to === null || (drag.to === null && to === drag.from) || to === drag.to) return;
    drag.to = to;
    paintText();
  }
  function finish(event) {
    if (event.pointerId !== drag?.id) return;
    const { from, to } = drag;
    const range = ends(from, to ?? from);
    stop();
    if (range && to === null) press(range);
    else if (range) add(range);
  }
  function stop() {
    follow(false);
    drag = null;
    paintText();
  }

  /** A word that is marked selects its mark, and the next one where several lie over each other; another is marked. */
  function press(range) {
    const over = marks.filter((mark) => !mark.omission && mark.start < range.end && mark.end > range.start);
    if (!over.length) return add(range);
    return choose(over[(over.indexOf(active) + 1) % over.length]);
  }

  // Keys

  function step(event) {
    const forward = box.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
    const now = cursor ? places.indexOf(cursor.at) : -1;
    const targets = { Home: 0, End: places.length - 1 };
    const next = targets[event.key] ?? (cursor ? now + (event.key === forward ? 1 : -1) : 0);
    const at = places[Math.min(Math.max(next, 0), places.length - 1)];
    cursor = { at, anchor: event.shiftKey && cursor ? cursor.anchor : at };
    paintText();
    const range = selected();
    said.textContent = points.slice(range.start, range.end).join("");
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key) && places.length) {
      step(event);
      return true;
    }
    if (event.key === " ") {
      const range = selected();
      if (!range) return true;
      if (cursor.at === cursor.anchor) press(range);
      else add(range);
      cursor = { at: cursor.at, anchor: cursor.at };
      paintText();
      return true;
    }
    if (["Delete", "Backspace"].includes(event.key) && active) {
      remove(active);
      return true;
    }
    if (event.key === "Escape" && active) {
      choose(null);
      return true;
    }
    return severityKey(event.key);
  }

  function severityKey(face) {
    const place = Number(face) - 1;
    if (!active || !words[place]) return false;
    setSeverity(words[place]);
    return true;
  }

  box.addEventListener("keydown", (event) => {
    if (!onKey(event)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  tools.addEventListener("keydown", (event) => {
    if (event.target.closest("select") || !["Delete", "Escape"].includes(event.key) || !onKey(event)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  box.addEventListener("blur", () => {
    if (!cursor) return;
    cursor = null;
    paintText();
  });

  paint();
  return {
    element,
    id: box.id,
    name,
    empty: () => marks.length === 0,
    focus: () => box.focus(),
    has: (target) => element.contains(target),
    severityKey,
    unset: () => {
      const mark = marks.find((one) => !one.severity) ?? marks.find((one) => categories.length && !one.category);
      if (!mark) return null;
      const values = { words: shorten(textOf(mark), 24) };
      return {
        message: mark.severity ? t("Choose a category for “{words}”.", values) : t("How severe is “{words}”?", values),
        focus: () => {
          choose(mark);
          tools.querySelector(mark.severity ? "select" : ".severity")?.focus();
        },
      };
    },
    marks: () => marks.map((mark) => Object.fromEntries(Object.entries(mark).filter(([, value]) => value !== undefined))),
    suggestions,
    set(given) {
      marks = (given ?? suggestions.map((mark, number) => ({ ...mark, suggestion: number }))).map((mark) => ({ ...mark }));
      active = null;
      paint();
    },
  };
}

/** The texts around the one to be judged; on a small screen they wait behind a heading. */
function neighbours(texts, heading) {
  if (!texts?.length) return null;
  return h(
    "details",
    { class: "neighbours", open: matchMedia("(min-width: 900px)").matches },
    h("summary", {}, heading),
    texts.map(({ text, dir, context }) =>
      h(
        "div",
        { class: "neighbour" },
        context ? h("p", { dir: "auto" }, context) : null,
        h("p", { dir }, text),
      ),
    ),
  );
}

function errorSpans(task, page, changed) {
  const { settings } = task;
  const scored = settings.score === "slider";
  const alone = task.items.length === 1;

  const blocks = task.items.map((item, position) => {
    const text = markedText(item, position, task, () => {
      if (!scored) clean.checked = clean.checked && text.empty();
      changed();
    });
    const labelId = uniqueId("score");
    const control = scored
      ? slider({
          name: text.name,
          labelledBy: `${labelId} ${text.id}`,
          scale: settings.scale ?? [0, 100],
          labels: settings.labels ?? [],
          showValue: page.show_value,
          showKeys: false,
          changed,
        })
      : null;
    const clean = h("input", { type: "checkbox", onchange: () => changed() });
    const fields = item.fields_html ? h("section", { class: "panel content", html: item.fields_html }) : [];
    const beside = [...(alone ? panels(task.shared ?? {}, page) : []), ...panels(item, page)].concat(fields);
    const judged = beside.length
      ? h("section", { class: "panel judged" }, h("h2", { class: "panel-title" }, t("To judge")), text.element)
      : h("section", { class: "panel judged" }, text.element);
    const answer = control
      ? h("div", { class: "controls" }, h("div", { class: "criterion-name", id: labelId }, t("Score")), control.element)
      : h("label", { class: "option clean" }, clean, t("No errors"));
    const element = h(
      "div",
      { class: "judging" },
      neighbours(item.before, t("Text before")),
      h("div", { class: "beside" }, beside, judged),
      answer,
      neighbours(item.after, t("Text after")),
    );
    return { item, text, control, clean, element };
  });

  const list = h(
    "div",
    { class: `judgings marking-${alone ? "one" : "several"}` },
    blocks.map((block) => block.element),
  );

  function missingIn({ text, control, clean }) {
    const unset = text.unset();
    if (unset) return unset;
    if (control && control.value() === null)
      return { message: t("{thing} has no score yet.", { thing: text.name }), focus: control.focus };
    if (!control && text.empty() && !clean.checked)
      return { message: t("Mark the errors, or choose “No errors”."), focus: () => clean.focus() };
    return null;
  }

  return {
    element: list,
    wide: blocks.some(({ element }) => element.querySelector(".beside > :nth-child(2)")) || !alone,
    missing: () => blocks.map(missingIn).find(Boolean) ?? null,
    answer() {
      const given = blocks.map(({ item, text, control, clean }) => {
        const spans = text.marks();
        const score = control?.value() ?? null;
        if (!control && !spans.length && !clean.checked) return [item.id, null];
        if (control && score === null && !spans.length && !text.suggestions.length) return [item.id, null];
        const suggested = text.suggestions.length ? { suggestions: text.suggestions } : {};
        return [item.id, { ...(score === null ? {} : { score }), spans, ...suggested }];
      });
      return Object.fromEntries(given.filter(([, value]) => value !== null));
    },
    fill(answer) {
      for (const { item, text, control, clean } of blocks) {
        const value = answer?.[item.id];
        text.set(value?.spans);
        control?.set(value?.score);
        clean.checked = Boolean(value && !value.spans.length);
      }
    },
    key(event) {
      const block = blocks.find(({ text, control }) => text.has(event.target) || control?.has(event.target)) ?? blocks[0];
      if (block.control?.has(event.target)) return block.control.key(event.key);
      // Digits belong to a mark that is being made, and otherwise to the score.
      const marking = block.text.has(event.target) || block.text.unset();
      return (marking && block.text.severityKey(event.key)) || Boolean(block.control?.key(event.key));
    },
    hint: () =>
      t(
        "Press a word to mark an error, or drag across several words; then choose how severe it is. With keys: arrows, Shift for more words, Space to mark, Delete to remove.",
      ),
  };
}

addWidget("error_spans", errorSpans);
