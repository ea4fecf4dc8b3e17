import { h, uniqueId } from "../../annotate/dom.js";
import { button, checkField, details, labelled, listField, numberField, rangeField, section, selectField, textField } from "./controls.js";
import { change, draft, get, set, valuesChanged } from "./draft.js";
import { PICTURES } from "./pictures.js";

/** Step 2: what annotators are asked, and how they answer. */

export const TYPES = {
  direct: ["Slider", "A number for each item, on a slider."],
  likert: ["Rating scale", "One of a few steps, such as 1 to 5."],
  choice: ["Labels", "One label for each item, such as yes or no."],
  pairwise: ["Compare two", "Which of two items is better?"],
  best_worst: ["Best and worst", "The best and the worst of a few items."],
  scored_ranking: ["Side-by-side sliders", "Several items at once, each on a slider."],
  ranking: ["Ranking", "A few items put in order."],
  error_spans: ["Error marking", "Errors marked in a text, then a score."],
};
const NEW = {
  direct: { scale: [0, 100], labels: ["not at all", "very much"] },
  likert: { scale: [1, 5], labels: ["not at all", "very much"] },
  choice: { labels: ["yes", "no"] },
  pairwise: { ties: true },
  best_worst: { size: 4, labels: ["best", "worst"] },
  scored_ranking: { size: 5, scale: [0, 100], labels: ["not at all", "very much"] },
  ranking: { size: 4, ties: true },
  error_spans: { severities: { minor: 1, major: 5 }, labels: ["very bad", "perfect"] },
};
const EXAMPLES = {
  direct: "How good is this translation?",
  likert: "How fluent is this sentence?",
  choice: "Is this answer correct?",
  pairwise: "Which answer is better?",
  best_worst: "Which word is most positive, and which is most negative?",
  scored_ranking: "How positive are these words?",
  ranking: "Put these summaries in order, the best first.",
  error_spans: "Mark the errors in this translation. Then score it.",
};

/** The path of each stage in study.toml: "" for a study with one question, else stage.0, stage.1 … */
export function stagePaths() {
  const { stage } = draft.values;
  return stage?.length ? stage.map((_, place) => `stage.${place}`) : [""];
}

export const within = (prefix, key) => (prefix ? `${prefix}.${key}` : key);

export function questionStep({ render, showStage }) {
  const fixed = draft.state.begun;
  const paths = stagePaths();
  const type = get(within(paths[0], "protocol.name"));
  return [
    fixed ? h("p", { class: "m-notice" }, "Annotators have started, so the question and the way it is answered can no longer change: earlier and later answers would not be comparable. To ask something else, create a new study.") : null,
    textField({ label: "Title", help: "The name of the study. Annotators see it at the top of the page.", path: "title", maxlength: 200 }),
    textField({ label: "Question", help: "What annotators are asked about each item or set of items.", path: "question", rows: 2, placeholder: EXAMPLES[type] ?? EXAMPLES.direct, fixed }),
    ...paths.map((prefix, place) => stageSection(prefix, place, paths.length, { render, showStage, fixed })),
    fixed ? null : addStage(paths, render),
    otherAnswers(render),
    displayOptions(render),
  ];
}

function stageSection(prefix, place, count, { render, showStage, fixed }) {
  const path = within(prefix, "protocol");
  const name = get(`${path}.name`);
  const title = count > 1 ? `Part ${place + 1}` : "How it is answered";
  const part = section(
    title,
    null,
    count > 1 ? textField({ label: `Question of part ${place + 1}`, help: "Leave it empty to ask the question above.", path: within(prefix, "question"), rows: 2, placeholder: draft.values.question ?? "", fixed }) : null,
    cards(path, name, fixed, (chosen) => {
      choose(prefix, chosen, place);
      render({ focus: `type-${place}-${chosen}` });
    }, place),
    name ? h("div", { class: "n-stack n-settings" }, settings(name, path, fixed, render)) : null,
    count > 1 && !fixed ? h("div", { class: "row" }, button(`Remove part ${place + 1}`, () => removeStage(place, render), { kind: "quiet" })) : null,
  );
  part.addEventListener("focusin", () => showStage(place));
  return part;
}

function choose(prefix, name, place) {
  const { systems, has_sources: sources } = draft.state;
  const settings = structuredClone(NEW[name]);
  // Outputs are good or bad; other items have a property more or less.
  if (sources || systems.length > 1) {
    if (settings.labels && ["direct", "likert", "scored_ranking"].includes(name)) settings.labels = ["very bad", "very good"];
  }
  set(within(prefix, "protocol"), { name, ...settings });
  set(within(prefix, "design"), undefined);
  const plans = structuredClone(draft.state.plans);
  while (plans.length <= place) plans.push({ automatic: true, judgments: null });
  plans[place] = { automatic: true, judgments: null };
  change({ values: draft.values, plan: plans, automatic_model: place === 0 ? true : draft.state.automatic_model }, { now: true });
}

function cards(path, current, fixed, pick, place) {
  const group = uniqueId("type");
  const options = Object.entries(TYPES).map(([name, [words, description]]) => {
    const id = `type-${place}-${name}`;
    const input = h("input", { type: "radio", name: group, id, value: name, disabled: fixed, class: "visually-hidden" });
    input.checked = name === current;
    input.addEventListener("change", () => pick(name));
    return h("div", { class: "n-card" }, input, h("label", { for: id }, PICTURES[name](), h("strong", {}, words), h("span", { class: "small" }, description), h("span", { class: "n-technical" }, name)));
  });
  const fieldset = h("fieldset", {}, h("legend", { class: "n-label" }, "Question type"), h("div", { class: "n-cards" }, options));
  return labelledGroup(fieldset, path);
}

function labelledGroup(fieldset, path) {
  const input = fieldset.querySelector("input");
  return labelled({ label: "Question type", path, control: fieldset, inputs: [input], hideLabel: true, className: "n-group" });
}

function settings(name, path, fixed, render) {
  const at = (key) => `${path}.${key}`;
  const criteria = get(at("criteria"));
  const several = criteria && Object.keys(criteria).length;
  const rated = name === "direct" || name === "likert" || name === "choice";
  const parts = [];
  if (several) parts.push(criteriaTable(name, at("criteria"), fixed, render));
  if (!several || !rated) parts.push(...answerFields(name, at, fixed, render));
  if (!fixed) {
    parts.push(
      several
        ? button("Ask only one thing", () => { set(at("criteria"), undefined); valuesChanged({ now: true }); render({}); }, { kind: "quiet" })
        : button("Ask about several criteria", () => { set(at("criteria"), { "Criterion 1": {}, "Criterion 2": {} }); valuesChanged({ now: true }); render({}); }),
    );
  }
  if (rated) parts.push(numberField({ label: "Items per page", help: "How many items an annotator sees on one screen.", path: at("items_per_page"), min: 1, max: 50, step: 1, placeholder: "1", fixed }));
  return parts;
}

function answerFields(name, at, fixed, render) {
  const fields = [];
  if (name === "direct" || name === "scored_ranking") fields.push(rangeField({ label: "Scale", help: "The numbers at the two ends of the slider.", path: at("scale"), fallback: [0, 100], fixed }));
  if (name === "likert") fields.push(rangeField({ label: "Steps", help: "The lowest and the highest step.", path: at("scale"), fallback: [1, 5], step: 1, fixed, after: () => render({ later: true }) }));
  if (name === "choice") fields.push(listField({ label: "Labels", help: "One per line, at least two.", path: at("labels"), fixed }));
  if (name === "direct" || name === "scored_ranking") fields.push(endsField(at("labels"), 3, fixed));
  if (name === "likert") {
    const [low, high] = get(at("scale")) ?? [1, 5];
    fields.push(endsField(at("labels"), 2, fixed), stepLabels(at("labels"), low, high, fixed));
  }
  if (name === "best_worst") fields.push(wordsField(at("labels"), ["Word for the best", "Word for the worst"], ["best", "worst"], fixed));
  if (["best_worst", "scored_ranking", "ranking"].includes(name)) fields.unshift(numberField({ label: "Items per task", help: "How many items are shown together. Four or five work well.", path: at("size"), min: name === "best_worst" ? 3 : 2, max: 20, step: 1, fixed }));
  if (name === "pairwise") {
    fields.push(stepsField(at, fixed, render));
    if ((get(at("steps")) ?? 3) > 3) fields.push(strengthWords(at, fixed));
    fields.push(checkField({ label: "Allow “about the same”", help: "Annotators may answer that neither is better.", path: at("ties"), fallback: true, fixed }));
    fields.push(checkField({ label: "Allow “both are bad”", help: "A tie in the scores, counted in the report.", path: at("both_bad"), fixed }));
  }
  if (name === "ranking") fields.push(checkField({ label: "Allow ties", help: "Annotators may rank two items equally.", path: at("ties"), fallback: true, fixed }));
  if (name === "error_spans") fields.push(...markingFields(at, fixed, render));
  if (name === "scored_ranking") fields.push(details("More", {}, numberField({ label: "Tie margin", help: "Largest difference between two values that is a tie.", path: at("tie_margin"), min: 0, placeholder: "0", fixed })));
  return fields;
}

/** Whether annotators say how much better. */
function stepsField(at, fixed, render) {
  const options = [["3", "Which is better"], ["5", "How much better, in 5 steps"], ["7", "How much better, in 7 steps"]];
  const control = h("select", { disabled: fixed }, options.map(([value, words]) => h("option", { value }, words)));
  control.value = String(get(at("steps")) ?? 3);
  control.addEventListener("change", () => {
    set(at("steps"), control.value === "3" ? undefined : Number(control.value));
    set(at("labels"), undefined);
    change({ values: draft.values, automatic_model: true }, { now: true });
    render({});
  });
  return labelled({ label: "Answers", help: "The strength of a preference makes each comparison more informative.", path: at("steps"), control });
}

/** The study's own words for the strengths of a preference; the page's language has words for them too. */
function strengthWords(at, fixed) {
  const usual = get(at("steps")) === 7 ? ["slightly better", "better", "much better"] : ["better", "much better"];
  const given = get(at("labels")) ?? [];
  const inputs = usual.map((words, place) => h("input", { type: "text", value: given[place] ?? "", disabled: fixed, dir: "auto", "aria-label": `Words for “${words}”`, placeholder: words }));
  for (const input of inputs) {
    input.addEventListener("input", () => {
      const words = inputs.map((one) => one.value.trim());
      if (words.every(Boolean)) set(at("labels"), words);
      else if (!words.some(Boolean)) set(at("labels"), undefined);
      else return;
      valuesChanged();
    });
  }
  return labelled({ label: "Words for the strengths (optional)", help: "Leave empty for the default words, in the language of the page.", path: at("labels"), control: h("div", { class: "n-ends" }, inputs), inputs });
}

/** A short form of the MQM typology. */
const MQM = ["Accuracy/Addition", "Accuracy/Omission", "Accuracy/Mistranslation", "Accuracy/Untranslated text", "Fluency/Punctuation", "Fluency/Spelling", "Fluency/Grammar", "Fluency/Register", "Fluency/Inconsistency", "Terminology", "Style/Awkward", "Locale convention", "Source error", "Non-translation", "Other"];

/** Severities and categories of errors, where the score comes from, and columns of the items that are used. */
function markingFields(at, fixed, render) {
  const mqm = get(at("score")) === "mqm";
  const columns = Object.entries(draft.state.items?.roles ?? {}).filter(([, role]) => role === "extra").map(([column]) => [column, column]);
  const chosen = (key) => (get(at(key)) && !columns.some(([column]) => column === get(at(key))) ? [[get(at(key)), get(at(key))]] : []);
  const column = (key, label, help) => (columns.length || get(at(key)) ? selectField({ label, help, path: at(key), options: [["", "none"], ...columns, ...chosen(key)], fixed }) : null);
  return [
    selectField({ label: "Score", help: "ESA asks for a score after marking; MQM calculates it from the errors.", path: at("score"), fallback: "slider", options: [["slider", "A slider below the text (ESA)"], ["mqm", "From the marked errors (MQM)"]], fixed, after: () => render({ later: true }) }),
    mqm ? null : endsField(at("labels"), 3, fixed),
    severitiesField(at("severities"), fixed),
    listField({ label: "Categories", help: "One per line. Leave it empty if severity is enough, as in ESA.", path: at("categories"), fixed }),
    fixed || (get(at("categories")) ?? []).length ? null : button("Use the categories of MQM", () => { set(at("categories"), MQM); valuesChanged({ now: true }); render({}); }, { kind: "quiet" }),
    checkField({ label: "Missing content can be marked", path: at("omission"), fallback: true, fixed }),
    column("document", "Column with the document", "The texts before and after are shown, in the order of the file."),
    column("suggestions", "Column with suggested marks", 'A JSON list such as [{"start": 0, "end": 4, "severity": "minor"}].'),
    details("More", {}, numberField({ label: "Texts per page", help: "Several: outputs of systems for the same source, side by side.", path: at("items_per_page"), min: 1, max: 10, step: 1, placeholder: "1", fixed })),
  ];
}

/** One severity a line with its penalty: minor: 1. */
function severitiesField(path, fixed) {
  const control = h("textarea", { rows: 3, disabled: fixed, dir: "auto" });
  control.value = Object.entries(get(path) ?? { minor: 1, major: 5 }).map(([name, weight]) => `${name}: ${weight}`).join("\n");
  control.addEventListener("input", () => {
    const pairs = control.value.split("\n").filter((line) => line.trim()).map((line) => {
      const [name, weight] = [line.slice(0, line.includes(":") ? line.lastIndexOf(":") : undefined), line.includes(":") ? line.slice(line.lastIndexOf(":") + 1) : "1"];
      return [name.trim(), Number(weight)];
    });
    set(path, pairs.length ? Object.fromEntries(pairs.filter(([name, weight]) => name && Number.isFinite(weight))) : undefined);
    valuesChanged();
  });
  return labelled({ label: "Severities", help: "One per line from the mildest to the worst, with its penalty for MQM scores.", path, control });
}

/** Words for the ends of a scale, and perhaps the middle. */
function endsField(path, most, fixed) {
  const given = get(path) ?? [];
  const ends = given.length > 3 ? [given[0], "", given.at(-1)] : given.length === 3 ? given : [given[0] ?? "", "", given[1] ?? ""];
  const inputs = ["Lowest", "Middle (optional)", "Highest"].map((words, place) => h("input", { type: "text", value: ends[place], disabled: fixed, dir: "auto", "aria-label": `Label: ${words.toLowerCase()}`, placeholder: words }));
  const shown = most === 3 ? inputs : [inputs[0], inputs[2]];
  for (const input of shown) {
    input.addEventListener("input", () => {
      const [low, middle, high] = inputs.map((one) => one.value.trim());
      set(path, !low && !high ? undefined : most === 3 && middle ? [low, middle, high] : [low, high]);
      valuesChanged();
    });
  }
  return labelled({ label: "Words at the ends", help: "What the lowest and the highest value mean.", path, control: h("div", { class: "n-ends" }, shown), inputs: shown });
}

function stepLabels(path, low, high, fixed) {
  const count = high - low + 1;
  if (!(count >= 3 && count <= 11)) return null;
  const given = get(path) ?? [];
  const inputs = Array.from({ length: count }, (_, place) => {
    const input = h("input", { type: "text", disabled: fixed, dir: "auto", value: given.length === count ? given[place] : "", "aria-label": `Label of step ${low + place}` });
    input.addEventListener("input", () => {
      const words = inputs.map((one) => one.value.trim());
      if (words.every(Boolean)) {
        set(path, words);
        valuesChanged();
      }
    });
    return input;
  });
  return details("A label for every step", { open: given.length === count && count > 3 }, h("p", { class: "small muted" }, "Fill in all of them; they replace the words at the ends."), h("div", { class: "n-steps-labels" }, inputs.map((input, place) => h("div", { class: "n-unit" }, h("span", { class: "muted" }, String(low + place)), input))));
}

function wordsField(path, titles, fallback, fixed) {
  const given = get(path) ?? fallback;
  const inputs = titles.map((title, place) => h("input", { type: "text", value: given[place] ?? "", disabled: fixed, dir: "auto", "aria-label": title, placeholder: fallback[place] }));
  for (const input of inputs) {
    input.addEventListener("input", () => {
      set(path, inputs.map((one, place) => one.value.trim() || fallback[place]));
      valuesChanged();
    });
  }
  return labelled({ label: "Words for best and worst", help: "For example: most positive, most negative.", path, control: h("div", { class: "n-ends" }, inputs), inputs });
}

/** Several criteria, each a row with its own scale and words, or labels. */
function criteriaTable(type, path, fixed, render) {
  const criteria = Object.entries(get(path) ?? {});
  const low = type === "likert" ? [1, 5] : [0, 100];
  const rows = criteria.map(([name, criterion]) => ({ name, ...criterion }));
  const write = () => {
    const next = {};
    for (const { name, ...settings } of rows) if (name.trim()) next[name.trim()] = settings;
    set(path, Object.keys(next).length ? next : undefined);
    valuesChanged();
  };
  const text = (row, label, value, put) => {
    const input = h("input", { type: "text", value, disabled: fixed, dir: "auto", "aria-label": label });
    input.addEventListener("input", () => {
      put(input.value);
      write();
    });
    return input;
  };
  const weight = (row) => {
    const input = h("input", { type: "number", class: "n-short", min: 0, step: "any", value: row.weight ?? "", disabled: fixed, "aria-label": `Weight of ${row.name}`, placeholder: "none" });
    input.addEventListener("input", () => {
      row.weight = Number(input.value) > 0 ? Number(input.value) : undefined;
      write();
    });
    return input;
  };
  const compared = ["pairwise", "best_worst", "ranking"].includes(type);
  const cells = (row) => {
    if (compared) return [weight(row)];
    if (type === "choice") return [text(row, `Labels of ${row.name}, separated by commas`, (row.labels ?? []).join(", "), (value) => { const labels = value.split(",").map((one) => one.trim()).filter(Boolean); row.labels = labels.length ? labels : undefined; })];
    const scale = row.scale ?? low;
    const ends = row.labels ?? [];
    const numbers = [0, 1].map((end) => {
      const input = h("input", { type: "number", class: "n-short", value: scale[end], disabled: fixed, "aria-label": `${row.name}: ${end ? "highest" : "lowest"} value` });
      input.addEventListener("input", () => {
        row.scale = numbers.map((one, place) => (one.value === "" ? low[place] : Number(one.value)));
        write();
      });
      return input;
    });
    const words = [0, 1].map((end) => text(row, `${row.name}: word for the ${end ? "highest" : "lowest"}`, (end ? ends.at(-1) : ends[0]) ?? "", () => {
      const both = words.map((one) => one.value.trim());
      row.labels = both.some(Boolean) ? both : undefined;
    }));
    return [h("div", { class: "n-unit" }, numbers[0], "to", numbers[1]), words[0], words[1], weight(row)];
  };
  const heads = compared
    ? ["Criterion", "Weight"]
    : type === "choice"
      ? ["Criterion", "Labels, separated by commas"]
      : ["Criterion", "Scale", "Lowest means", "Highest means", "Weight"];
  const body = rows.map((row, place) =>
    h("tr", {}, h("td", {}, text(row, `Name of criterion ${place + 1}`, row.name, (value) => { row.name = value; })), cells(row).map((cell) => h("td", {}, cell)), h("td", {}, fixed ? null : button("Remove", () => { rows.splice(place, 1); write(); render({}); }, { kind: "quiet", label: `Remove ${row.name}` }))),
  );
  const table = h("div", { class: "m-scroll n-scroll", tabindex: "0", role: "region", "aria-label": "Criteria" }, h("table", { class: "m-table n-edit" }, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)), h("th", {}, h("span", { class: "visually-hidden" }, "Actions")))), h("tbody", {}, body)));
  const add = fixed ? null : button("Add a criterion", () => { rows.push({ name: `Criterion ${rows.length + 1}` }); write(); render({}); });
  const help = type === "choice" ? null : h("p", { class: "small muted" }, "Each criterion has its own scores. With weights, there is a combined score too.");
  return h("div", { class: "n-stack", "data-path": path }, h("p", { class: "n-label" }, "Criteria"), help, table, add);
}

function addStage(paths, render) {
  return h(
    "div",
    { class: "n-section n-stack" },
    button("Add another part", () => {
      const { protocol, design } = draft.values;
      if (paths[0] === "") {
        draft.values.stage = [{ name: "first", protocol: protocol ?? { name: "pairwise", ties: true }, ...(design ? { design } : {}) }];
        delete draft.values.protocol;
        delete draft.values.design;
      }
      const { stage } = draft.values;
      stage.push({ name: `part ${stage.length + 1}`, protocol: { name: "choice", labels: ["yes", "no"] } });
      const plan = [...draft.state.plans, { automatic: true, judgments: null }].slice(0, stage.length);
      change({ values: draft.values, plan }, { now: true });
      render({ focus: `type-${stage.length - 1}-choice` });
    }),
    h("p", { class: "small muted" }, "For example: first compare outputs, then label each as acceptable or not. Parts follow one another unless you mix them; each can have its own question."),
  );
}

function removeStage(place, render) {
  const { stage } = draft.values;
  stage.splice(place, 1);
  const plan = draft.state.plans.filter((_, other) => other !== place);
  if (stage.length === 1) {
    draft.values.protocol = stage[0].protocol;
    if (stage[0].design) draft.values.design = stage[0].design;
    delete draft.values.stage;
  }
  change({ values: draft.values, plan }, { now: true });
  render({});
}

/** What annotators may answer beside the question. */
function otherAnswers(render) {
  const offers = Boolean(get("answers.cannot_judge"));
  return details(
    "Cannot judge, and comments",
    { open: offers || Boolean(get("answers.comments")) },
    checkField({ label: "Annotators may answer “I cannot judge this”", help: "Such answers do not affect the scores; the report counts them.", path: "answers.cannot_judge", after: () => { if (!get("answers.cannot_judge")) set("answers.reasons", undefined); render({}); } }),
    offers ? listField({ label: "Reasons to choose from (optional)", help: "One per line, such as: not in my language.", path: "answers.reasons" }) : null,
    checkField({ label: "Annotators may write a comment on each task", help: "Comments are never exported together with names.", path: "answers.comments" }),
  );
}

const FORMATS = [["", "As the texts"], ["text", "Plain text"], ["markdown", "Markdown"], ["html", "HTML"], ["code", "Code"], ["conversation", "Conversation (JSON)"]];
const OWN_COLUMNS = { text: "The text", context: "Source", reference: "Reference", system: "System", gold: "Known answer" };

/** Which columns annotators see, in which order, under which headings. */
function shownColumns(render) {
  const { extra_columns: extras, has_sources: sources, systems, telling } = draft.state;
  const path = "page.fields";
  const fields = (get(path) ?? []).map((field) => (typeof field === "string" ? { column: field } : { ...field }));
  const rows = fields.length ? fields : [{ column: "text" }];
  const write = () => {
    const plain = rows.map((row) => (row.label === undefined && !row.format && !row.language ? row.column : row));
    set(path, plain.length === 1 && plain[0] === "text" ? undefined : plain);
    valuesChanged();
  };
  const redraw = () => { write(); render({}); };
  const choices = ["text", ...(sources ? ["context"] : []), "reference", ...extras, ...(systems.length ? ["system"] : []), "gold"];
  const free = choices.filter((name) => !rows.some((row) => row.column === name));
  const title = (name) => OWN_COLUMNS[name] ?? name;
  const cells = (row, place) => {
    const label = h("input", { type: "text", maxlength: 200, dir: "auto", "aria-label": `Heading above ${title(row.column)}`, placeholder: row.column === "text" ? "none" : row.column });
    label.value = row.label ?? "";
    label.addEventListener("change", () => { row.label = label.value.trim() || undefined; write(); });
    const format = h("select", { "aria-label": `Format of ${title(row.column)}` }, FORMATS.map(([value, words]) => h("option", { value }, words)));
    format.value = row.format ?? "";
    format.addEventListener("change", () => { row.format = format.value || undefined; redraw(); });
    const language = h("input", { type: "text", maxlength: 30, "aria-label": `Programming language of ${title(row.column)}`, placeholder: "language, e.g. python" });
    language.value = row.language ?? "";
    language.addEventListener("change", () => { row.language = language.value.trim() || undefined; write(); });
    const up = button("↑", () => { rows.splice(place - 1, 0, ...rows.splice(place, 1)); redraw(); }, { kind: "quiet", label: `Move ${title(row.column)} up` });
    up.disabled = place === 0;
    const remove = button("✕", () => { rows.splice(place, 1); redraw(); }, { kind: "quiet", label: `Hide ${title(row.column)}` });
    remove.disabled = rows.length === 1;
    return [h("td", { dir: "auto" }, title(row.column)), h("td", {}, label), h("td", {}, format, row.format === "code" ? language : null), h("td", { class: "row" }, up, remove)];
  };
  const heads = ["Column", "Heading", "Format"].map((head) => h("th", { scope: "col" }, head));
  const table = h("table", { class: "m-table n-edit" }, h("thead", {}, h("tr", {}, heads, h("th", {}, h("span", { class: "visually-hidden" }, "Actions")))), h("tbody", {}, rows.map((row, place) => h("tr", {}, cells(row, place)))));
  const add = h("select", { id: "show-column" }, h("option", { value: "" }, "Show another column…"), free.map((name) => h("option", { value: name }, title(name))));
  add.addEventListener("change", () => { if (add.value) { rows.push({ column: add.value }); redraw(); } });
  return h(
    "div",
    { class: "n-stack", "data-path": path },
    h("p", { class: "n-label" }, "What annotators see of an item"),
    h("p", { class: "small muted" }, "In this order. Source and reference are always shown beside the items; here you can change their heading and format."),
    h("div", { class: "m-scroll n-scroll", tabindex: "0", role: "region", "aria-label": "Columns that annotators see" }, table),
    free.length ? labelled({ label: "Show another column", control: add, hideLabel: true }) : null,
    telling.map((words) => h("p", { class: "m-notice", role: "status" }, words)),
  );
}

function displayOptions(render) {
  const { media } = draft.state;
  const names = (get("page.fields") ?? []).map((field) => field.column ?? field);
  return details(
    "Display options",
    { open: Boolean(get("page.fields")?.length) || get("page.content") === "conversation" },
    shownColumns(render),
    selectField({ label: "Texts are", help: "How the texts of items are formatted.", path: "page.content", fallback: "text", options: [["text", "Plain text"], ["markdown", "Markdown"], ["html", "HTML (scripts and styles are removed)"], ["code", "Code"], ["conversation", "Conversations (JSON with roles and turns)"]] }),
    draft.state.has_sources && !names.includes("context") ? textField({ label: "Heading above the source", help: "For example: German original, or Question.", path: "page.context_label", placeholder: "Context", maxlength: 200 }) : null,
    names.includes("reference") ? null : textField({ label: "Heading above the reference", help: "Where items have a reference.", path: "page.reference_label", placeholder: "Reference", maxlength: 200 }),
    checkField({ label: "Show the number of a slider", path: "page.show_value", fallback: true }),
    checkField({ label: "Re-sort side-by-side sliders while they are moved", path: "page.sort_live" }),
    media.needed || get("page.sync_audio") ? checkField({ label: "One player for the recordings of a task", help: "Switching from one recording to another continues at the same position.", path: "page.sync_audio" }) : null,
    media.needed || get("page.must_play") ? checkField({ label: "Audio and video must be played to the end before an answer", path: "page.must_play" }) : null,
  );
}
