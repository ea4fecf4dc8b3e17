import { h } from "../../annotate/dom.js";
import "../../annotate/best_worst.js";
import "../../annotate/criteria.js";
import "../../annotate/error_spans.js";
import "../../annotate/graded.js";
import "../../annotate/media.js";
import "../../annotate/pairwise.js";
import "../../annotate/ranking.js";
import "../../annotate/rated.js";
import "../../annotate/reading.js";
import { taskView } from "../../annotate/task.js";
import "../../annotate/unjudged.js";
import { read } from "../api.js";
import { button, clearFields, hasField, labelled, showProblems } from "./controls.js";
import { BASE, change, discard, draft, flush, load, reload } from "./draft.js";
import { itemsStep } from "./items_step.js";
import { planStep } from "./plan_step.js";
import { qualityStep } from "./quality_step.js";
import { questionStep } from "./question_step.js";
import { shareStep } from "./share_step.js";

/** Creating or editing a study in five steps. Every change is saved on the server as a draft. */

const { study } = document.body.dataset;
const form = document.getElementById("form");
const aside = document.getElementById("aside");
const notice = document.getElementById("notice");
const saved = document.getElementById("saved");

const STEPS = {
  items: ["Items", "What is judged?", itemsStep],
  question: ["Question", "What do you ask?", questionStep],
  plan: ["Plan", "How much do you need?", planStep],
  quality: ["Quality", "How are answers checked?", qualityStep],
  share: ["Share", "Who takes part?", shareStep],
};
const NAMES = Object.keys(STEPS);
const TOML = "toml";

let step = "items";
let forms;
let languages = [];
let shownStage = 0;
let parts = []; // What the step consists of; those with update() are told about new states.
const left = new Set(study ? NAMES : []); // Steps that were completed once: their problems are shown.

function goTo(name, { all = false, focus = true } = {}) {
  if (step !== TOML && step !== name) left.add(step);
  if (all) left.add(name);
  step = name;
  if (location.hash !== `#${name}`) history.pushState(null, "", `#${name}`);
  if (name !== TOML && draft.state.id) change({ step: name });
  render({ heading: focus });
}

/** Draw the step anew. `focus` is the id of what gets the focus; `later` waits for the server's answer first. */
function render({ focus, heading, later } = {}) {
  if (later) {
    flush().then(() => render({}));
    return;
  }
  const active = document.activeElement?.id;
  // What was opened stays open while the same step is drawn anew.
  const opened = heading ? [] : [...form.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent);
  clearFields();
  const title = h("h2", { tabindex: "-1", id: "step-title" }, step === TOML ? "study.toml" : STEPS[step][1]);
  const context = { render, forms, goTo, languages, showStage };
  const made = step === TOML ? tomlStep() : STEPS[step][2](context);
  parts = made.flat().filter(Boolean);
  if (made.update) parts.push({ update: made.update });
  form.replaceChildren(title, h("div", { id: "rest", class: "n-stack" }), ...parts.filter((part) => part instanceof Node), buttons());
  for (const summary of form.querySelectorAll("details > summary")) if (opened.includes(summary.textContent)) summary.parentElement.open = true;
  drawSteps();
  onState(draft.state);
  if (heading) {
    title.focus({ preventScroll: true });
    scrollTo({ top: 0 });
  } else document.getElementById(focus ?? active ?? "")?.focus({ preventScroll: true });
}

function drawSteps() {
  const { problems } = draft.state;
  const entries = NAMES.map((name, place) => {
    const wrong = problems.some((problem) => problem.step === name);
    const mark = left.has(name) ? (wrong ? "!" : "✓") : String(place + 1);
    const status = left.has(name) ? (wrong ? "needs attention" : "complete") : "";
    return h("li", {}, h("a", { href: `#${name}`, "aria-current": name === step ? "step" : null, class: left.has(name) && wrong ? "n-wrong" : null }, h("span", { class: "n-mark", "aria-hidden": "true" }, mark), h("span", { class: "n-name" }, STEPS[name][0]), status ? h("span", { class: "visually-hidden" }, `, ${status}`) : null));
  });
  const text = h("li", { class: "n-toml-tab" }, h("a", { href: `#${TOML}`, "aria-current": step === TOML ? "step" : null }, "study.toml"));
  document.getElementById("steps").replaceChildren(...entries, text);
}

function buttons() {
  const place = NAMES.indexOf(step);
  const back = place > 0 ? button("Back", () => goTo(NAMES[place - 1])) : null;
  const next = place >= 0 && place < NAMES.length - 1 ? button("Continue", () => goTo(NAMES[place + 1]), { kind: "primary" }) : null;
  const save = study && step !== "share" ? button("Review and save", () => goTo("share", { all: true })) : null;
  const drop = draft.state.id || study ? button(study ? "Discard changes" : "Delete draft", async () => {
    const question = study ? "Discard the changes that are not saved to the study yet?" : "Delete this draft with its files?";
    if (!confirm(question)) return;
    await discard();
    location.assign(study ? "./" : `${document.body.dataset.root}/manage/`);
  }, { kind: "quiet" }) : null;
  return h("div", { class: "n-buttons" }, h("div", { class: "row" }, back, next, save), drop);
}

function showStage(place) {
  if (place === shownStage) return;
  shownStage = place;
  showAside(draft.state);
}

function onState(state) {
  const own = state.problems.filter((problem) => problem.step === step || hasField(problem.field));
  const rest = showProblems(own.filter((problem) => problem.field !== "items" || step !== "items"), left.has(step));
  const place = document.getElementById("rest");
  place?.replaceChildren(...(rest.length ? [h("div", { class: "m-notice", role: "alert" }, rest.map((words) => h("p", {}, words)))] : []));
  for (const part of parts) part.update?.(state);
  drawSteps();
  showAside(state);
  const crumb = document.querySelector(".m-crumbs [aria-current]");
  if (!study && crumb) crumb.textContent = state.values.title || "New study";
}

function showAside(state) {
  aside.hidden = step !== "question";
  document.querySelector(".n-layout").classList.toggle("n-wide", aside.hidden);
  if (aside.hidden) return;
  const stages = state.previews.length;
  const place = Math.min(shownStage, Math.max(0, stages - 1));
  const task = state.previews[place];
  const title = h("h2", {}, stages > 1 ? `Preview of part ${place + 1}` : "Preview");
  if (!task) {
    const problem = state.problems.find(({ step: where, field }) => where === "question" && field?.includes("protocol"));
    aside.replaceChildren(title, h("div", { class: "card m-screen" }, h("p", { class: "muted" }, stages ? `The preview appears when the answer is complete. ${problem ? `${problem.what} ${problem.remedy}` : ""}` : "Choose a question type to see a task with your own items.")));
    return;
  }
  const view = taskView(task, state.page, () => {});
  aside.replaceChildren(
    title,
    h("p", { class: "small muted" }, state.item_count ? "This is what annotators see, with your items. Try it; nothing is saved." : "With example items; yours appear as soon as they are uploaded."),
    h("div", { class: "card m-screen" }, h("p", { class: "m-question", dir: "auto" }, task.question || "Your question appears here."), view.element),
  );
}

/** The text of study.toml, which can be edited too. */
function tomlStep() {
  const control = h("textarea", { rows: 24, spellcheck: "false", class: "n-code", dir: "ltr" });
  control.value = draft.state.text;
  control.addEventListener("input", () => change({ text: control.value }));
  const problems = h("div", { class: "n-stack", role: "status" });
  const update = (state) => {
    if (document.activeElement !== control) control.value = state.text;
    problems.replaceChildren(...state.problems.map(({ what, remedy, field }) => h("p", { class: "m-notice" }, h("strong", {}, field ? `${field}: ` : ""), `${what} ${remedy}`)));
  };
  const parts_ = [
    h("p", { class: "muted" }, "The whole configuration as text. Changes here appear in the steps, and vice versa; comments are kept."),
    labelled({ label: "study.toml", control, hideLabel: true }),
    problems,
  ];
  return Object.assign(parts_, { update });
}

form.addEventListener("submit", (event) => event.preventDefault());
// Enter in a single-line field is no reason to leave the step.
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("input:not([type=checkbox]):not([type=radio]):not([type=file])")) event.preventDefault();
});
const fromHash = () => {
  const name = location.hash.slice(1);
  return name in STEPS || name === TOML ? name : null;
};
addEventListener("hashchange", () => {
  const name = fromHash();
  if (name && name !== step) goTo(name);
});
addEventListener("popstate", () => {
  const name = fromHash();
  if (name && name !== step) goTo(name);
});

draft.onState = (state) => onState(state);
draft.onStatus = (words, failed) => {
  saved.textContent = words === "Saved" && study ? "Changes are kept as a draft until you save them" : words === "Saved" ? "Draft saved" : words;
  saved.classList.toggle("error", Boolean(failed));
};

draft.onConflict = (words) => {
  notice.hidden = false;
  notice.replaceChildren(h("div", { class: "m-notice row", role: "alert" }, h("p", {}, words), button("Reload", reload)));
  notice.scrollIntoView({ block: "nearest" });
};

try {
  draft.onState = () => {};
  [forms, languages] = await Promise.all([read(`${BASE}/forms`), read(`${BASE}/languages`), load()]);
  draft.onState = (state) => onState(state);
  step = fromHash() ?? (study ? "items" : draft.state.step);
  // A draft that is resumed shows which steps were completed before.
  for (const name of NAMES.slice(0, Math.max(0, NAMES.indexOf(draft.state.step)))) left.add(name);
  if (new URLSearchParams(location.search).has("created")) {
    notice.hidden = false;
    notice.replaceChildren(h("p", { class: "m-notice", role: "status" }, "The study is ready. Copy its link, send it to your annotators, and watch the answers on the ", h("a", { href: "./" }, "dashboard"), "."));
  }
  render({});
} catch (refused) {
  form.replaceChildren(h("p", { class: "m-notice", role: "alert" }, refused.message ?? String(refused)));
  throw refused;
}
