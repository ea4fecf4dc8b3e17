import { h } from "../../annotate/dom.js";
import { announcement, button, details, generatedField, labelled, numberField, section, selectField, textField, titleOf } from "./controls.js";
import { drawingOptions, putDrawing } from "../charts.js";
import { change, draft, estimateReliability, get, planTarget, set, valuesChanged } from "./draft.js";
import { stagePaths, TYPES, within } from "./question_step.js";
import { DESIGNS, MODELS, SETTINGS } from "./words.js";

/** Step 3: how many judgments, how long, at what cost; and for those who want it, design and model. */

const MEASURES = [["", "Not before the plan is complete"], ["split_half", "Split-half reliability is high enough"], ["interval_width", "Intervals are narrow enough"], ["top_k", "The top items are separated"]];

const RATED = ["direct", "likert", "choice", "error_spans"];

export function planStep({ render, forms }) {
  const result = h("div", { class: "n-plan", "aria-live": "polite" });
  const paths = stagePaths();
  const ready = paths.every((prefix) => get(within(prefix, "protocol.name")));
  if (!ready) return [h("p", { class: "m-notice" }, "Choose a question type first (step 2). The plan depends on it.")];
  showPlan(result);
  const update = () => showPlan(result);
  return Object.assign(
    [
      ...paths.map((prefix, place) => amountFields(prefix, place, paths.length)),
      ...paths.map((prefix, place) => documentField(prefix, place, paths.length)),
      paths.length > 1 ? orderSection(paths, render) : null,
      result,
      reliabilityPart(),
      paths.length === 1 ? targetPart(render) : null,
      section("People and time", null, h("div", { class: "n-columns" }, draftNumber("annotators", "Annotators", "How many you expect. Empty: an estimate.", 1, 1), draftNumber("seconds", "Seconds per task", "Empty: an estimate from the question type.", 1, "any"))),
      paySection(),
      advanced(paths, render, forms),
    ],
    { update },
  );
}

/** Whether parts follow one another or are mixed, and in which shares. */
function orderSection(paths, render) {
  const path = (prefix) => within(prefix, "share");
  const mixed = paths.some((prefix) => get(path(prefix)) !== undefined);
  const order = h("select", {}, [["sequence", "One after the other"], ["mixed", "Mixed, each with its share of the tasks"]].map(([value, words]) => h("option", { value, selected: (value === "mixed") === mixed }, words)));
  order.addEventListener("change", () => {
    const equal = Math.floor(100 / paths.length) / 100;
    paths.forEach((prefix, place) => {
      const share = place < paths.length - 1 ? equal : Number((1 - equal * (paths.length - 1)).toFixed(2));
      set(path(prefix), order.value === "mixed" ? share : undefined);
    });
    valuesChanged({ now: true });
    render({});
  });
  const shares = mixed ? paths.map((prefix, place) => numberField({ label: `Share of part ${place + 1}`, path: path(prefix), min: 1, max: 99, scale: 100, unit: "%", fixed: false })) : [];
  return section(
    "Order of the parts",
    null,
    labelled({ label: "Parts are asked", help: mixed ? "Every annotator gets tasks of all parts; the shares must add up to 100 %." : "An annotator starts a part when the previous part has no tasks left for them.", control: order }),
    shares.length ? h("div", { class: "n-columns" }, shares) : null,
  );
}

function amountFields(prefix, place, count) {
  const plan = draft.state.plans[place] ?? { automatic: true, judgments: null };
  const name = get(within(prefix, "protocol.name"));
  const title = count > 1 ? `Judgments per item in part ${place + 1} (${TYPES[name]?.[0] ?? name})` : "Judgments per item";
  if (!plan.automatic) return h("p", { class: "muted" }, `${count > 1 ? `Part ${place + 1}: y` : "Y"}ou chose the design yourself; its settings are under Advanced.`);
  const rated = RATED.includes(name);
  const planned = draft.state.plan?.stages[place]?.per_item;
  const usual = plan.judgments === null && planned ? String(Math.round(planned)) : rated ? "3" : "6";
  const control = h("input", { type: "number", min: 1, max: 1000, step: 1, class: "n-short", placeholder: usual, value: plan.judgments ?? "" });
  control.addEventListener("input", () => {
    const plans = structuredClone(draft.state.plans);
    const number = Math.round(Number(control.value));
    plans[place] = { ...(plans[place] ?? plan), automatic: true, judgments: control.value === "" || !(number >= 1 && number <= 1000) ? null : number };
    draft.state.plans = plans;
    change({ values: draft.values, plan: plans });
  });
  const help = rated ? "How many different annotators judge each item. Start with three; use five or more if items are close to each other." : "In how many answers each item appears. More answers separate items that are close to each other.";
  return labelled({ label: title, help, path: within(prefix, "design"), control });
}

/** Whether annotators get whole documents; offered where a further column could name the document of each text. */
function documentField(prefix, place, count) {
  const plan = draft.state.plans[place] ?? { automatic: true, judgments: null, document: "" };
  const columns = Object.entries(draft.state.items?.roles ?? {}).filter(([, role]) => role === "extra").map(([column]) => column);
  if (plan.document && !columns.includes(plan.document)) columns.push(plan.document);
  if (!plan.automatic || !columns.length || !RATED.includes(get(within(prefix, "protocol.name")))) return null;
  const choices = [["", "No, single items in random order"], ...columns.map((column) => [column, `Yes, by the column “${column}”`])];
  const control = h("select", {}, choices.map(([value, words]) => h("option", { value, selected: value === (plan.document ?? "") }, words)));
  control.addEventListener("change", () => {
    const plans = structuredClone(draft.state.plans);
    plans[place] = { ...(plans[place] ?? plan), document: control.value };
    draft.state.plans = plans;
    change({ values: draft.values, plan: plans });
  });
  const help = "An annotator gets all texts of a document in the order of the file, one system after the other, before the next document begins.";
  return labelled({ label: count > 1 ? `Whole documents in part ${place + 1}` : "Whole documents", help, path: within(prefix, "design.document"), control });
}

function draftNumber(key, label, help, min, step) {
  const control = h("input", { type: "number", min, step, class: "n-short", value: draft.state[key] ?? "", placeholder: draft.state.plan ? String(Math.round(draft.state.plan[key])) : "" });
  control.addEventListener("input", () => {
    const number = Number(control.value);
    draft.state[key] = control.value === "" || !(number >= min) ? null : number;
    change({ values: draft.values, [key]: draft.state[key] });
  });
  return labelled({ label, help, control });
}

const whole = (value) => Math.round(value).toLocaleString("en");

function duration(hours) {
  if (hours < 1) {
    const minutes = Math.max(1, Math.round(hours * 60));
    return `${minutes} ${minutes === 1 ? "minute" : "minutes"}`;
  }
  return hours < 10 ? `${hours.toFixed(1)} hours` : `${whole(hours)} hours`;
}

function showPlan(place) {
  const { plan, problems } = draft.state;
  if (!plan) {
    const first = problems[0];
    place.replaceChildren(h("p", { class: "m-notice" }, first ? `Cost and hours appear when the steps before are complete. ${first.what} ${first.remedy}` : "Computing…"));
    return;
  }
  const money = (amount) => `${plan.currency}${amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  const tiles = [
    ["Judgments", whole(plan.judgments), plan.tasks > plan.judgments ? `${whole(plan.tasks)} tasks with checks and repeats` : ""],
    ["Working time", duration(plan.hours), `${plan.seconds.toLocaleString("en", { maximumFractionDigits: 1 })} seconds per task${plan.is_estimate ? " (estimate)" : ""}`],
    ["Annotators", whole(plan.annotators), `${whole(plan.tasks_each)} tasks, about ${duration(plan.minutes_each / 60)} each`],
    ["Cost", plan.cost === null ? "not paid" : money(plan.cost), plan.per_hour === null ? "" : `annotators earn ${money(plan.per_hour)} an hour`],
  ];
  const short = plan.annotators < plan.least_annotators ? [h("p", { class: "m-notice" }, `Each item needs ${plan.least_annotators} different annotators, but only ${plan.annotators} are expected.`)] : [];
  place.replaceChildren(
    h("dl", { class: "n-tiles" }, tiles.map(([name, value, note]) => h("div", { class: "card" }, h("dt", {}, name), h("dd", {}, h("span", { class: "n-big" }, value), note ? h("span", { class: "small muted" }, note) : null)))),
    ...plan.stages.map(({ reason, sentences }, number) => h("p", {}, plan.stages.length > 1 ? `Part ${number + 1}: ` : "", reason ? `${reason} ` : "", h("span", { class: "muted small" }, sentences.at(-1)))),
    ...plan.stages.flatMap(({ warnings }) => warnings.map((warning) => h("p", { class: "m-notice" }, `Please check: ${warning}.`))),
    ...short,
  );
}

/** How reliable the scores would be, by simulation on demand. */
function reliabilityPart() {
  const place = announcement();
  const estimate = button("Estimate the reliability", async () => {
    estimate.disabled = true;
    place.say(h("p", {}, "Simulating ten studies with typical annotators…"));
    try {
      const stages = await estimateReliability();
      place.say(...stages.map((stage) => h("p", {}, sentenceOf(stage, stages.length))));
    } catch (refused) {
      place.fail(refused.message);
    }
    estimate.disabled = false;
  });
  return h("div", { class: "n-stack" }, h("div", { class: "row" }, estimate, h("span", { class: "small muted" }, "Takes a few seconds.")), place.element);
}

/** What can be aimed at: label of the number, its unit in the form, default, and of what it is a probability. */
const TARGETS = {
  reliability: { name: "A reliability", goal: "Split-half reliability", start: 0.9, max: 0.99, step: 0.01 },
  interval_width: { name: "Narrow intervals", goal: "Width of the intervals", unit: "% of the scale", scale: 100, start: 20, max: 99 },
  top_items: { name: "The right top items", goal: "Number of top items", start: 10, step: 1, probability: "Probability that they are right" },
  difference: { name: "A difference between two systems", goal: "Difference to detect", unit: "% of the scale", scale: 100, start: 5, max: 99, probability: "Power" },
  hours: { name: "A number of hours", goal: "Hours of work", start: 10 },
  cost: { name: "A budget", goal: "Cost", start: 100 },
};

/** How many judgments a target needs, or what hours or money reach: by simulation of this study. */
function targetPart(render) {
  const fields = h("div", { class: "n-columns" });
  const place = announcement();
  const measures = Object.entries(TARGETS).filter(([measure]) => measure !== "difference" || draft.state.systems.length > 1);
  const choice = h("select", {}, measures.map(([measure, { name }]) => h("option", { value: measure }, name)));
  let [goal, probability] = [null, null];
  const show = () => {
    const { goal: label, unit, start, max, step = "any", probability: chance } = TARGETS[choice.value];
    const input = (value, most) => h("input", { type: "number", min: 0, max: most, step, value, class: "n-short" });
    goal = input(start, max);
    probability = chance ? input(80, 99) : null;
    const field = (words, control, sign) => labelled({ label: words, control: sign ? h("div", { class: "n-unit" }, control, h("span", { class: "muted" }, sign)) : control, inputs: [control] });
    fields.replaceChildren(field(label, goal, unit), ...(probability ? [field(chance, probability, "%")] : []));
  };
  choice.addEventListener("change", show);
  show();
  const run = button("Plan for this target", async () => {
    const target = { measure: choice.value, goal: Number(goal.value) / (TARGETS[choice.value].scale ?? 1), ...drawingOptions() };
    if (probability) target.probability = Number(probability.value) / 100;
    const bar = h("progress", { class: "m-meter", max: 100, value: 0, "aria-label": "Simulation" });
    run.disabled = true;
    place.say(h("p", {}, "Simulating studies like this one…"), bar);
    try {
      const result = await planTarget(target, (part) => (bar.value = Math.round(100 * part)));
      place.say(...targetResult(result, render));
    } catch (refused) {
      place.fail(refused.message);
    }
    run.disabled = false;
  });
  return details(
    "Plan for a target",
    { note: "reliability, width of intervals, top items, power, hours or cost" },
    h("p", { class: "small muted" }, "The study is simulated with its own question type, design and model, and with typical annotators. Larger studies take up to a minute."),
    labelled({ label: "I want to reach", control: choice }),
    fields,
    h("div", {}, run),
    place.element,
  );
}

function targetResult(result, render) {
  const { judgments, lower, upper, annotators, currency, reached, measure, sentence, notes, chart, per_item: perItem } = result;
  const money = (amount) => `${currency}${amount.toLocaleString("en", { maximumFractionDigits: 0 })}`;
  const range = (low, high) => (reached ? "" : `${low} to ${high}`);
  const tiles = [
    ["Judgments", whole(judgments), range(whole(lower), whole(upper))],
    ["Working time", duration(result.hours), range(duration(result.hours_lower), duration(result.hours_upper))],
    ["Annotators", whole(annotators), `about ${whole(judgments / annotators)} judgments each`],
    ["Cost", result.cost === null ? "not paid" : money(result.cost), result.cost === null ? "" : range(money(result.cost_lower), money(result.cost_upper))],
  ];
  const drawing = h("div", { class: "n-chart", role: "img" });
  putDrawing(drawing, chart);
  const use = button("Use this number of judgments", () => {
    const plans = structuredClone(draft.state.plans);
    plans[0] = { automatic: true, judgments: Math.min(1000, Math.max(1, Math.ceil(perItem))) };
    draft.state.plans = plans;
    change({ values: draft.values, plan: plans }, { now: true });
    render({});
  });
  return [
    h("dl", { class: "n-tiles" }, tiles.map(([name, value, note]) => h("div", { class: "card" }, h("dt", {}, name), h("dd", {}, h("span", { class: "n-big" }, value), note ? h("span", { class: "small muted" }, note) : null)))),
    reached ? h("p", {}, `This reaches a ${measure} of ${reached[0].toFixed(2)} (${reached[1].toFixed(2)} to ${reached[2].toFixed(2)} in 90 % of the simulated studies).`) : h("p", { class: "small muted" }, "Ranges hold for 90 % of the simulated studies."),
    drawing,
    sentence ? h("blockquote", {}, h("p", {}, sentence)) : null,
    ...notes.map((note) => h("p", { class: "small muted" }, `Note: ${note}.`)),
    draft.state.plans[0]?.automatic ?? true ? h("div", {}, use) : null,
  ].filter(Boolean);
}

function sentenceOf({ stage, measure, value, lower, upper }, count) {
  const where = count > 1 ? `${stage}: ` : "";
  if (value === null) return `${where}There are too few judgments to measure the reliability. Plan more judgments per item.`;
  const [middle, low, high] = [value, lower, upper].map((number) => number.toFixed(2));
  const verdict = value >= 0.9 ? "Very reliable." : value >= 0.8 ? "Reliable enough for most purposes." : value >= 0.6 ? "Fair; more judgments per item would help." : "Low; plan more judgments per item.";
  const what = measure.startsWith("split") ? "reliability (correlation of two halves of the annotators)" : "agreement (Krippendorff's α)";
  return `${where}Expected ${what}: ${middle}, between ${low} and ${high} in most simulated studies. ${verdict}`;
}

function paySection() {
  return section(
    "Pay",
    "Leave everything empty if annotators are not paid. If you recruit through a panel, pay there; these numbers are used for planning and reports.",
    h(
      "div",
      { class: "n-columns" },
      numberField({ label: "Per task", path: "pay.per_task", min: 0, placeholder: "0" }),
      numberField({ label: "Per hour", path: "pay.per_hour", min: 0, placeholder: "0" }),
      numberField({ label: "Per annotator", path: "pay.per_visit", min: 0, placeholder: "0" }),
      numberField({ label: "Platform fee", path: "pay.fee", min: 0, max: 1000, scale: 100, unit: "%", placeholder: "0" }),
      textField({ label: "Currency", path: "pay.currency", placeholder: "$", maxlength: 10 }),
    ),
  );
}

function advanced(paths, render, forms) {
  const parts = paths.map((prefix, place) => designSection(prefix, place, paths.length, render, forms));
  return details(
    "Advanced",
    { note: "design, scores, stopping early" },
    parts,
    modelSection(paths, render, forms),
    section(
      "Stopping early",
      null,
      selectField({ label: "Stop before the plan is complete when", help: SETTINGS["stop.measure"][1], path: "stop.measure", options: MEASURES, after: (value) => { if (!value) set("stop", undefined); valuesChanged({ now: true }); render({ focus: "stop" }); } }),
      get("stop.measure") ? forms.sections.stop.filter(({ name }) => name !== "measure").map((about) => generatedField(about, `stop.${about.name}`, SETTINGS[`stop.${about.name}`])) : null,
    ),
    section(
      "More",
      null,
      textField({ label: "Bonus formula", help: "Extra pay for each annotator, for example: 0.5 if accuracy >= 0.9 else 0. It may use tasks, hours, accuracy, checks_right and checks_asked.", path: "pay.bonus" }),
      numberField({ label: "Random seed", help: "The same seed gives the same tasks.", path: "seed", min: 0, step: 1, placeholder: "0" }),
    ),
  );
}

function designSection(prefix, place, count, render, forms) {
  const type = get(within(prefix, "protocol.name"));
  const path = within(prefix, "design");
  const plan = draft.state.plans[place] ?? { automatic: true };
  const own = h("input", { type: "checkbox" });
  own.checked = !plan.automatic;
  own.addEventListener("change", () => {
    const plans = structuredClone(draft.state.plans);
    plans[place] = { ...plan, automatic: !own.checked };
    draft.state.plans = plans;
    change({ values: draft.values, plan: plans }, { now: true });
    render({});
  });
  const title = count > 1 ? `Design of part ${place + 1}` : "Design: which tasks are asked";
  const name = get(`${path}.name`) ?? forms.protocols[type]?.design;
  const parts = [labelled({ label: "Choose the design myself", control: own, check: true })];
  if (own.checked) {
    const options = (forms.protocols[type]?.designs ?? []).map((one) => [one, DESIGNS[one]?.[0] ?? titleOf(one)]);
    parts.push(
      selectField({ label: "Design", help: DESIGNS[name]?.[1], path: `${path}.name`, options, fallback: name, always: true, after: (value) => { set(path, { name: value }); valuesChanged({ now: true }); render({}); } }),
      ...forms.designs[name].fields.map((about) => generatedField(about, `${path}.${about.name}`, SETTINGS[`design.${about.name}`])),
    );
  } else {
    parts.push(h("p", { class: "muted" }, `${DESIGNS[name]?.[0] ?? name}: ${DESIGNS[name]?.[1] ?? ""}`));
  }
  return section(title, null, parts);
}

function modelSection(paths, render, forms) {
  const accepted = [...new Set(paths.flatMap((prefix) => forms.protocols[get(within(prefix, "protocol.name"))]?.models ?? []))];
  const usual = forms.protocols[get(within(paths[0], "protocol.name"))]?.model;
  const name = get("model.name") ?? usual;
  const choice = selectField({
    label: "Scores are computed by",
    help: MODELS[name]?.[1],
    path: "model.name",
    options: accepted.map((one) => [one, `${MODELS[one]?.[0] ?? titleOf(one)}${one === usual ? " (recommended)" : ""}`]),
    fallback: usual,
    always: true,
    after: (value) => {
      draft.values.model = { name: value };
      change({ values: draft.values, automatic_model: false }, { now: true });
      render({});
    },
  });
  const fields = (forms.models[name]?.fields ?? []).map((about) => generatedField(about, `model.${about.name}`, SETTINGS[`model.${about.name}`], { after: () => change({ automatic_model: false }) }));
  return section("Scores", "The model can be changed at any time; it does not affect what is asked.", choice, details("Settings of the model", {}, fields));
}
