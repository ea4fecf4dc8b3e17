import { h, uniqueId } from "../../annotate/dom.js";
import { post } from "../api.js";
import { checkField, details, labelled, numberField, section, selectField } from "./controls.js";
import { BASE, draft, get, set, valuesChanged } from "./draft.js";
import { questionTable } from "./question_table.js";
import { questionnaireTable } from "./questionnaire_table.js";
import { stagePaths, within } from "./question_step.js";

/** Step 4: what annotators read first, and how careless answers are noticed. */

export function qualityStep({ render }) {
  const ready = Boolean(get(within(stagePaths()[0], "protocol.name")));
  const needsType = h("p", { class: "m-notice" }, "Choose a question type first (step 2); then you can write questions with known answers.");
  const table = (kind, title, help, settings) => (ready ? questionTable(kind, { title, help, settings, render }) : [needsType]);
  const { questions } = draft.state;
  return [
    h("p", { class: "muted" }, "Everything here is optional. For a first study, write instructions and add a few attention checks."),
    section("Texts", null, markdownField("Instructions", "Shown before the first task, and behind “?” afterwards.", "annotators.instructions"), details("Consent", { open: Boolean(get("annotators.consent")) }, markdownField("Consent text", "Annotators must agree to it before they start.", "annotators.consent"))),
    details("Questionnaire", { open: Boolean(get("annotators.questionnaire")), note: "about the annotators: age, language, expertise" }, questionnaireTable(render)),
    section("Attention checks", null, table("checks", "Attention checks", "Tasks with an obvious answer, mixed in with the others. Annotators who answer too many of them wrongly are excluded.", checkSettings)),
    details("Practice", { open: questions.training.length > 0, note: "before the first task, with feedback" }, table("training", "Practice questions", "All annotators answer these first and then see the correct answers.", () => [])),
    details("Qualification test", { open: questions.qualification.length > 0, note: "only those who pass continue" }, table("qualification", "Test questions", "All annotators answer these first; the correct answers are not shown.", () => [percent("Pass with at least", "Percentage of the answers that must be correct.", "quality.qualification.min_accuracy", 80)])),
    section(
      "Repeats and overlap",
      null,
      percent("Repeated tasks", "Percentage of an annotator's tasks that are asked again later, to measure consistency.", "quality.repeat_rate", 0),
      percent("Tasks for all annotators", "Percentage of the tasks that go to every annotator, to measure agreement.", "quality.overlap_rate", 0),
      details("More", {}, numberField({ label: "Tasks between a task and its repeat", path: "quality.repeat_after", min: 1, step: 1, placeholder: "10" })),
    ),
    section(
      "Exclude automatically",
      "The dashboard reports all of these; here you choose which ones exclude an annotator automatically.",
      optionalPercent("Too fast", "Exclude when this fraction of the answers is faster than the text can be read.", "quality.rules.too_fast", 50),
      optionalPercent("Always the same answer", "Exclude when this fraction of the answers is identical.", "quality.rules.constant", 95),
      checkField({ label: "Always the same side", help: "Exclude annotators who choose one position far more often than by chance and than others.", path: "quality.rules.one_sided" }),
      checkField({ label: "Disagrees with the others", help: "Exclude annotators whose agreement with the others is significantly below average.", path: "quality.rules.disagreement" }),
    ),
  ];
}

function percent(label, help, path, fallback) {
  return numberField({ label, help, path, scale: 100, unit: "%", min: 0, max: 100, placeholder: String(fallback) });
}

function optionalPercent(label, help, path, start) {
  const box = h("input", { type: "checkbox" });
  box.checked = get(path) !== undefined;
  const place = h("div", {});
  const show = () => place.replaceChildren(...(box.checked ? [percent("Percentage of the answers", "", path, start)] : []));
  box.addEventListener("change", () => {
    set(path, box.checked ? start / 100 : undefined);
    valuesChanged();
    show();
  });
  show();
  return h("div", { class: "n-stack" }, labelled({ label, help, control: box, check: true }), place);
}

function checkSettings() {
  return [
    percent("Tasks that are checks", "Percentage of an annotator's tasks, after the first checks, which come early.", "quality.checks.rate", 5),
    percent("Exclude below", "Percentage of the checks answered correctly.", "quality.checks.min_accuracy", 70),
    checkField({ label: "Tell annotators when a check was wrong", path: "quality.checks.feedback" }),
    details(
      "More",
      {},
      selectField({ label: "Exclude when", path: "quality.checks.rule", fallback: "posterior", options: [["posterior", "the accuracy is very probably too low"], ["threshold", "the observed accuracy is too low"]] }),
      percent("Required probability", "Probability that the accuracy is too low, for the first rule.", "quality.checks.confidence", 95),
      numberField({ label: "Checks before an exclusion", path: "quality.checks.min_checks", min: 1, step: 1, placeholder: "4" }),
      numberField({ label: "Tasks within which these checks are asked", path: "quality.checks.min_checks_within", min: 1, step: 1, placeholder: "3 for each" }),
    ),
  ];
}

/** A Markdown text with its preview. */
function markdownField(label, help, path) {
  const control = h("textarea", { rows: 6, dir: "auto" });
  control.value = get(path) ?? "";
  const preview = h("div", { class: "n-markdown content", hidden: true });
  const id = uniqueId("markdown");
  preview.id = id;
  let timer;
  const show = async () => {
    preview.hidden = !control.value.trim();
    if (preview.hidden) return;
    try {
      const { html } = await post(`${BASE}/render`, { text: control.value });
      preview.replaceChildren(h("div", { html }));
    } catch {
      preview.textContent = "The preview appears when the server can be reached.";
    }
  };
  control.addEventListener("input", () => {
    set(path, control.value.trim() ? control.value : undefined);
    valuesChanged();
    clearTimeout(timer);
    timer = setTimeout(show, 500);
  });
  show();
  return h("div", { class: "n-stack" }, labelled({ label, help: `${help} You can use Markdown: **bold**, *italic*, lists, links.`, path, control }), preview);
}
