import { h } from "../annotate/dom.js";
import { taskView } from "../annotate/task.js";
import { post, put, read, Refused, toast } from "./api.js";
import { fieldFor } from "./fields.js";

/** Making or changing a study: a form made from what the server says there is, checked while it is filled in. */

const { study } = document.body.dataset;
const form = document.getElementById("form");
const part = (id) => document.getElementById(id);
const SMALL = 500_000;
const TITLES = { annotators: "Annotators", page: "The page", quality: "Quality", pay: "Pay", stop: "Stopping early" };

const NEW = { values: {}, text: "", begun: false, by_form: true, items: "" };
const [forms, known] = await Promise.all([
  read("/api/v1/manage/forms"),
  study ? read(`/api/v1/studies/${study}/manage/config`) : NEW,
]).catch((refused) => {
  form.replaceChildren(h("p", { class: "m-notice", role: "alert" }, refused.message));
  throw refused;
});

let items = null;
let textMode = !known.by_form;
const fields = new Map();
const values = known.values;

/** Make the fields of a part, remembered by their path in study.toml. */
function fieldsOf(list, prefix, given, fixed = false) {
  return list.map((about) => {
    const path = prefix ? `${prefix}.${about.name}` : about.name;
    const field = fieldFor(about, path, given?.[about.name], changed);
    if (fixed) field.fix();
    fields.set(path, field);
    return field.element;
  });
}

function chooser(path, title, names, value, description, pick, fixed) {
  const about = { name: path, kind: "choice", description, default: null, always: true, options: names };
  const field = fieldFor({ ...about, title }, `${path}.name`, value, () => {
    pick(field.value());
    changed();
  });
  if (fixed) field.fix();
  fields.set(`${path}.name`, field);
  return field;
}

function drop(prefix) {
  for (const path of [...fields.keys()]) if (path.startsWith(prefix) && !path.endsWith(".name")) fields.delete(path);
}

const itemsField = {
  input: h("input", { type: "file", id: "field-items", accept: ".csv,.tsv,.jsonl,text/csv", "aria-describedby": "error-items help-items" }),
  error: h("p", { class: "error", id: "error-items", role: "alert" }),
  fail(words) {
    this.error.textContent = words;
    this.input.setAttribute("aria-invalid", String(Boolean(words)));
  },
};
itemsField.input.addEventListener("change", async () => {
  const file = itemsField.input.files[0];
  items = file ? { name: file.name, text: await file.text() } : null;
  compareButton.hidden = !items;
  itemsNotes.replaceChildren();
  check();
});

const itemsNotes = h("div", { class: "small muted", role: "status" });
const compareButton = h("button", { type: "button", hidden: true, onclick: compareSystems }, "Set up a comparison of systems");

/** Fill in the form for outputs of several systems: source, system and output columns, or one column per system. */
async function compareSystems() {
  let result;
  try {
    result = await post("/api/v1/manage/compare-systems", { items, title: fields.get("title")?.value() ?? "" });
  } catch (refused) {
    toast(refused.message);
    return;
  }
  if (result.problems.length) {
    itemsField.fail(result.problems.map(({ what, remedy }) => `${what} ${remedy}`.trim()).join(" "));
    return;
  }
  items = result.items;
  for (const key of Object.keys(values)) delete values[key];
  Object.assign(values, result.values);
  textMode = false;
  build();
  itemsNotes.replaceChildren(...result.notes.map((note) => h("p", {}, note)));
}

function itemsElement() {
  const have = known.items ? ` The study has ${known.items}; a new file may add items, and must keep those that are there.` : "";
  return h(
    "div",
    { class: "m-field" },
    h("label", { for: "field-items" }, known.items ? "Items (leave empty to keep them)" : "Items"),
    itemsField.input,
    h("p", { class: "small muted", id: "help-items" }, `A CSV, TSV or JSON-lines file with a column text, and id, group, context, reference or media as you like.${have}`),
    study ? null : compareButton,
    itemsNotes,
    itemsField.error,
  );
}

function partsElement() {
  const protocolPlace = h("div", { class: "m-settings" });
  const designPlace = h("div", { class: "m-settings" });
  const modelPlace = h("div", { class: "m-settings" });

  function settings(place, kind, name, prefix, fixed) {
    drop(`${prefix}.`);
    const about = forms[kind][name];
    const given = values[prefix]?.name === undefined || values[prefix]?.name === name ? values[prefix] : {};
    place.replaceChildren(h("p", { class: "small muted" }, about.description), ...fieldsOf(about.fields, prefix, given, fixed));
  }
  const designChosen = () => values.design?.name ?? forms.protocols[protocol.value()].design;
  const modelChosen = () => values.model?.name ?? forms.protocols[protocol.value()].model;
  function pickProtocol(name) {
    settings(protocolPlace, "protocols", name, "protocol", known.begun);
    design.offer(forms.protocols[name].designs, forms.protocols[name].design);
    settings(designPlace, "designs", design.value(), "design");
    model.offer(forms.protocols[name].models, forms.protocols[name].model);
    settings(modelPlace, "models", model.value(), "model");
  }
  const names = Object.keys(forms.protocols);
  const protocol = chooser("protocol", "Protocol", names, values.protocol?.name ?? "direct", "how people are asked", pickProtocol, known.begun);
  const design = chooser("design", "Design", forms.protocols[protocol.value()].designs, designChosen(), "which tasks are asked, and of whom", (name) => settings(designPlace, "designs", name, "design"));
  const model = chooser("model", "Model", forms.protocols[protocol.value()].models, modelChosen(), "how judgments become scores", (name) => settings(modelPlace, "models", name, "model"));
  settings(protocolPlace, "protocols", protocol.value(), "protocol", known.begun);
  settings(designPlace, "designs", design.value(), "design");
  settings(modelPlace, "models", model.value(), "model");
  return [
    h("fieldset", {}, h("legend", {}, "How people are asked"), protocol.element, protocolPlace),
    h("fieldset", {}, h("legend", {}, "What they are asked"), design.element, designPlace),
    h("details", { class: "m-details", open: Boolean(values.model) }, h("summary", {}, "Scores: the model"), model.element, modelPlace),
  ];
}

function sections() {
  return Object.entries(forms.sections).map(([name, list]) =>
    h("details", { class: "m-details", open: Boolean(values[name]) }, h("summary", {}, TITLES[name] ?? name), h("fieldset", {}, fieldsOf(list, name, values[name]))),
  );
}

const textarea = h("textarea", { id: "field-text", class: "m-code", rows: "24", spellcheck: "false", "aria-describedby": "error-text" });
const problems = h("div", { class: "m-notice", role: "alert", hidden: true });
const submit = h("button", { type: "submit", class: "primary" }, study ? "Save the changes" : "Make the study");

function build() {
  fields.clear();
  const begun = known.begun ? h("p", { class: "m-notice" }, "People have begun to judge, so the question and the protocol have to stay as they are. All else may change.") : null;
  const rewritten = study && !textMode ? h("p", { class: "small muted" }, "Saving writes study.toml anew; comments in it are lost. Edit the text to keep them.") : null;
  const swap = h("button", { type: "button", onclick: () => { textMode = !textMode; build(); } }, textMode ? "Use the form" : "Edit study.toml as text");
  if (textMode) {
    textarea.value = part("toml").textContent || known.text;
    const text = h("div", { class: "m-field" }, h("label", { for: "field-text" }, "study.toml"), textarea, h("p", { class: "error", id: "error-text" }));
    form.replaceChildren(...[begun, itemsElement(), text, problems, h("div", { class: "row" }, submit, known.by_form ? swap : null)].filter(Boolean));
  } else {
    const main = fieldsOf(forms.study.filter((about) => about.name !== "seed"), "", values);
    if (known.begun) fields.get("question").fix();
    const seed = fieldsOf(forms.study.filter((about) => about.name === "seed"), "", values);
    form.replaceChildren(
      ...[begun, ...main, itemsElement(), ...partsElement(), ...sections(), h("details", { class: "m-details" }, h("summary", {}, "Chance"), seed), rewritten, problems, h("div", { class: "row" }, submit, swap)].filter(Boolean),
    );
  }
  check();
}

/** The study as it stands in the form: what differs from the defaults. */
function draft(whole) {
  const sent = !items || whole || items.text.length <= SMALL ? items : { ...items, text: items.text.split("\n").slice(0, 200).join("\n") };
  if (textMode) return { text: textarea.value, items: sent, study: study || null };
  const result = {};
  for (const [path, field] of fields) {
    const value = field.value();
    if (value === undefined) continue;
    const [table, key] = path.split(".");
    if (key === undefined) result[table] = value;
    else (result[table] ??= {})[key] = value;
  }
  if (known.values.items && !items) result.items = known.values.items;
  return { values: result, items: sent, study: study || null };
}

function showProblems(list, all) {
  const rest = [];
  for (const field of fields.values()) field.fail("");
  itemsField.fail("");
  for (const { field, what, remedy } of list) {
    const words = `${what} ${remedy}`.trim();
    const target = field === "items" ? itemsField : (fields.get(field) ?? fields.get(field?.split(".").slice(0, 2).join(".")) ?? fields.get(`${field}.name`));
    // What nobody has come to yet is not called wrong before the form is sent.
    const early = !all && (field === "items" ? !items : target && !target.touched);
    if (early) continue;
    if (target) target.fail(words);
    else rest.push(words);
  }
  problems.hidden = !rest.length;
  problems.replaceChildren(...rest.map((words) => h("p", {}, words)));
  if (all) (form.querySelector('[aria-invalid="true"]') ?? problems).scrollIntoView({ block: "center" });
  if (all) form.querySelector('[aria-invalid="true"]')?.focus({ preventScroll: true });
}

let timer;
let checks = 0;

function changed() {
  clearTimeout(timer);
  timer = setTimeout(check, 350);
}
textarea.addEventListener("input", changed);

async function check() {
  const number = (checks += 1);
  let result;
  try {
    result = await post("/api/v1/manage/check", draft(false));
  } catch (refused) {
    toast(refused.message);
    return;
  }
  if (number !== checks) return;
  showProblems(result.problems, false);
  if (!textMode) part("toml").textContent = result.text;
  const cut = items && items.text.length > SMALL;
  const size = [result.items === null || cut ? null : `${result.items.toLocaleString("en")} items`, result.judgments === null || cut ? null : `${result.judgments.toLocaleString("en")} judgments in all`];
  part("size").textContent = size.filter(Boolean).join(" · ");
  const plan = cut ? [] : result.plan.map((sentence) => h("p", {}, sentence));
  const warnings = cut ? [] : result.warnings.map((warning) => h("p", { class: "m-notice" }, `Warning: ${warning}.`));
  part("plan").replaceChildren(...plan, ...warnings);
  showPreview(result);
}

function showPreview({ preview, page }) {
  if (!preview) return;
  const view = taskView(preview, page, () => {});
  part("preview").replaceChildren(h("p", { class: "m-question", dir: "auto" }, preview.question || "Your question stands here."), view.element);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  submit.disabled = true;
  try {
    const saved = study ? await put(`/api/v1/studies/${study}/manage/config`, draft(true)) : await post("/api/v1/manage/studies", draft(true));
    location.assign(saved.url);
  } catch (refused) {
    if (refused instanceof Refused && refused.body?.problems) showProblems(refused.body.problems, true);
    else toast(refused.message);
    submit.disabled = false;
  }
});

build();
