import { panels } from "./content.js";
import { h } from "./dom.js";
import { t } from "./messages.js";

/**
 * What a task looks like, by its protocol. A widget has: element; wide (whether it wants more than a text column);
 * missing() (null, or what to say and where to go); answer() (as the API takes it, or as far as it is given);
 * fill(answer); key(event) (whether it used the key); hint() (how to answer, in a sentence). A task's view has comment()
 * too, and fill(answer, comment).
 */
const WIDGETS = {};

const extras = {};
const companions = [];

/** Add a part of tasks that only some studies have; their pages load its script. */
export function addExtra(parts) {
  Object.assign(extras, parts);
}

/**
 * Add something that comes with every task of some studies, such as a player for its recordings: a function of the
 * task's element, the task and the page's settings. It may return missing(), key(event) and played(), as a view has them.
 */
export function addCompanion(companion) {
  companions.push(companion);
}

function widgetFor({ protocol, settings }, page) {
  const several = Boolean(settings.criteria?.length);
  if (protocol === "pairwise" && (several || settings.steps > 3 || page.reading || page.answersBelow)) return extras.graded;
  const plain = WIDGETS[protocol];
  if (several && ["best_worst", "ranking"].includes(protocol)) return extras.byCriterion(plain, { movesOn: protocol === "best_worst" });
  return plain;
}

function widgetOf(task, page, changed) {
  const widget = widgetFor(task, page)(task, page, changed);
  return page.cannot_judge ? extras.withCannotJudge(widget, task, page, changed) : widget;
}

/** Add the widget of a protocol; the pages of its studies load its script. */
export function addWidget(protocol, widget) {
  WIDGETS[protocol] = widget;
}

export function taskView(task, page, changed) {
  const widget = widgetOf(task, page, changed);
  const comment = page.comments ? extras.commentField(changed) : null;
  const shared = task.items.length > 1 ? panels(task.shared ?? {}, page) : [];
  const element = h(
    "div",
    // Scales run as the study's question does, whatever the language of the page around them.
    { class: `task ${widget.wide || shared.length > 1 ? "wide" : "narrow"}`, dir: page.direction },
    shared.length ? h("div", { class: "beside" }, shared) : null,
    widget.element,
    comment?.element,
  );
  const beside = companions.map((companion) => companion(element, task, page, changed)).filter(Boolean);
  const first = (name) => beside.map((one) => one[name]?.()).find(Boolean) ?? null;
  return {
    ...widget,
    element,
    missing: () => first("missing") ?? widget.missing(),
    key: (event) => beside.some((one) => one.key?.(event)) || widget.key(event),
    played: () => first("played"),
    comment: () => comment?.value() ?? "",
    fill(answer, text = "") {
      widget.fill(answer);
      comment?.set(text);
    },
  };
}

const EXAMPLE_ITEMS = 3;
const PLACES = [0.72, 0.31, 0.9, 0.12, 0.5];

function between([low, high], part, whole) {
  const value = low + (high - low) * part;
  return whole || high - low >= 20 ? Math.round(value) : value;
}

function exampleAnswer(task) {
  const ids = task.items.map((item) => item.id);
  const [first, second, third] = ids;
  const whole = {
    pairwise: task.settings.steps > 3 ? { winner: first, strength: 2 } : { winner: first },
    best_worst: { best: second, worst: third },
    ranking: [[second], [first], ...ids.slice(2).map((id) => [id])],
  }[task.protocol];
  const asked = task.settings.criteria ?? [];
  if (whole) return asked.length ? Object.fromEntries(asked.map((criterion) => [criterion.name, whole])) : whole;
  if (task.protocol === "error_spans") return markedExample(task);
  const { scale, labels, criteria } = task.settings;
  const value = (asked, place) =>
    task.protocol === "choice"
      ? asked.labels[place % asked.labels.length]
      : between(asked.scale, PLACES[place % PLACES.length], task.protocol === "likert");
  const valued = (place) =>
    criteria?.length
      ? Object.fromEntries(criteria.map((asked, row) => [asked.name, value(asked, place + row)]))
      : value({ scale, labels }, place);
  return Object.fromEntries(ids.map((id, place) => [id, valued(place)]));
}

function markedExample({ items, settings }) {
  const severity = Object.keys(settings.severities)[0];
  const category = settings.categories.length ? { category: settings.categories[0] } : {};
  const [low, high] = settings.scale ?? [0, 100];
  const score = settings.score === "slider" ? { score: between([low, high], PLACES[0], false) } : {};
  return Object.fromEntries(items.map(({ id, text }) => [id, { ...score, spans: [{ start: 0, end: [...text].length - 1, severity, ...category }] }]));
}

/** The same kind of task with made-up content, already answered, only to be looked at; and how to answer it. */
export function workedExample(task, page) {
  const items = task.items.slice(0, EXAMPLE_ITEMS).map((item, place) => ({
    id: item.id,
    html: t("Example {letter}", { letter: String.fromCodePoint(65 + place) }),
    text: t("Example {letter}", { letter: String.fromCodePoint(65 + place) }),
    dir: "auto",
  }));
  const example = { ...task, items, shared: {} };
  const plain = { cannot_judge: false, comments: false, reading: false, must_play: false };
  // Long pairs have their answers below the texts: the example must have the same.
  const view = taskView(example, { ...page, ...plain, answersBelow: page.reading }, () => {});
  view.fill(exampleAnswer(example));
  view.element.inert = true;
  return { element: view.element, hint: view.hint() };
}
