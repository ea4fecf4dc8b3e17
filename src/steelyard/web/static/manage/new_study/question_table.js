import { h, uniqueId } from "../../annotate/dom.js";
import { announcement, button, uploadWithProgress } from "./controls.js";
import { draft, get, saveQuestions, uploadQuestions } from "./draft.js";
import { stagePaths, within } from "./question_step.js";

/** Questions with known answers, typed into a table or uploaded: attention checks, qualification test, practice. */

const PAUSE_MS = 600;
const ONE_ITEM = new Set(["direct", "likert", "choice", "error_spans"]);

function shape() {
  const path = within(stagePaths()[0], "protocol");
  const name = get(`${path}.name`);
  const criteria = Object.keys(get(`${path}.criteria`) ?? {});
  const size = ONE_ITEM.has(name) ? 1 : name === "pairwise" ? 2 : Number(get(`${path}.size`) ?? 4);
  return { name, criteria, size, labels: get(`${path}.labels`) ?? [], scale: get(`${path}.scale`) ?? (name === "likert" ? [1, 5] : [0, 100]) };
}

const itemsOf = (row) => (row.items ?? "").split("|").map((part) => part.trim());

/** The controls of one answer; `write(changes)` puts them into the row. */
function answerCells(row, number, { name, criteria, size, labels, scale }, write) {
  const what = `Row ${number}`;
  const select = (label, options, value, put) => {
    const control = h("select", { "aria-label": `${what}: ${label}` }, options.map(([option, words]) => h("option", { value: option }, words)));
    control.value = value;
    control.addEventListener("change", () => put(control.value));
    return control;
  };
  const places = Array.from({ length: size }, (_, place) => [String(place), `Item ${place + 1}`]);
  const at = (place) => itemsOf(row)[Number(place)] ?? "";
  const placeOf = (text) => (text ? String(Math.max(0, itemsOf(row).indexOf(text))) : "");
  if (name === "best_worst") {
    return ["best", "worst"].map((end) => select(`the ${end}`, [["", "not checked"], ...places], placeOf(row[end]), (value) => write({ [end]: value === "" ? "" : at(value), [`${end}_place`]: value })));
  }
  if (name === "pairwise") {
    const value = row.answer === "tie" ? "tie" : placeOf(row.answer);
    return [select("the right answer", [["", "choose…"], ["0", "Item 1 is better"], ["1", "Item 2 is better"], ["tie", "About the same"]], value, (chosen) => write({ answer: chosen === "tie" || chosen === "" ? chosen : at(chosen), answer_place: chosen }))];
  }
  if (name === "choice" && !criteria.length && (!row.answer || labels.includes(row.answer))) {
    return [select("the right label", [["", "choose…"], ...labels.map((label) => [label, label])], row.answer ?? "", (value) => write({ answer: value }))];
  }
  if ((name === "direct" || name === "likert" || name === "error_spans") && !criteria.length && /^$|^-?[\d.]+(\s*\.\.\s*-?[\d.]+)?$/.test(row.answer ?? "")) {
    const [low = "", high = ""] = (row.answer ?? "").split("..").map((part) => part.trim());
    const inputs = [low, high || low].map((value, end) => h("input", { type: "number", step: name === "likert" ? 1 : "any", min: scale[0], max: scale[1], value, class: "n-short", "aria-label": `${what}: right from ${end ? "up to" : ""}`.replace("from up to", "up to") }));
    for (const input of inputs) {
      input.addEventListener("input", () => {
        const [from, to] = inputs.map((one) => one.value);
        write({ answer: from === "" && to === "" ? "" : `${from === "" ? scale[0] : from}..${to === "" ? scale[1] : to}` });
      });
    }
    const range = h("div", { class: "n-unit" }, inputs[0], "to", inputs[1]);
    if (name !== "error_spans") return [range];
    const marked = h("input", { type: "text", value: row.marked ?? "", placeholder: "words to be marked, or none", dir: "auto", "aria-label": `${what}: words that must be marked` });
    marked.addEventListener("input", () => write({ marked: marked.value }));
    return [h("div", { class: "n-stack" }, range, marked)];
  }
  const hint = criteria.length ? criteria.map((one) => `${one}: …`).join(", ") : "empty: in the order written here";
  const control = h("input", { type: "text", value: row.answer ?? "", placeholder: hint, dir: "auto", "aria-label": `${what}: right answer` });
  control.addEventListener("input", () => write({ answer: control.value }));
  return [control];
}

/** Fill in what follows from the items: an order, or the item that was chosen by its place. */
function completed(row, { name }) {
  const items = itemsOf(row).filter(Boolean);
  const full = { items: items.join(" | "), answer: row.answer ?? "", best: row.best ?? "", worst: row.worst ?? "", marked: row.marked ?? "", feedback: row.feedback ?? "", context: row.context ?? "", reference: row.reference ?? "" };
  for (const key of ["answer", "best", "worst"]) {
    const place = row[`${key}_place`];
    if (place !== undefined && place !== "" && place !== "tie") full[key] = itemsOf(row)[Number(place)] ?? "";
  }
  if ((name === "ranking" || name === "scored_ranking") && !full.answer && items.length > 1) full.answer = items.join(" > ");
  return full;
}

export function questionTable(kind, { title, help, settings, render }) {
  const now = shape();
  const place = announcement();
  const rows = structuredClone(draft.state.questions[kind] ?? []);
  let timer;
  const save = () => {
    clearTimeout(timer);
    draft.onStatus("Saving…");
    timer = setTimeout(async () => {
      try {
        await saveQuestions(kind, rows.map((row) => completed(row, now)).filter((row) => row.items));
        place.say();
        draft.onStatus("Saved");
      } catch (refused) {
        place.fail(refused.message);
        draft.onStatus("Not saved", true);
      }
    }, PAUSE_MS);
  };
  const list = uniqueId("items");
  const options = h("datalist", { id: list }, draft.state.item_names.map((name) => h("option", { value: name })));
  const heads = [...Array.from({ length: now.size }, (_, place_) => (now.size === 1 ? "Item" : `Item ${place_ + 1}`)), ...(now.name === "best_worst" ? ["Best", "Worst"] : ["Right answer"]), "Shown after a wrong answer"];
  const body = h("tbody", {});

  function line(row, number) {
    const write = (changes) => {
      Object.assign(row, changes);
      save();
    };
    const names = itemsOf(row);
    const cells = Array.from({ length: now.size }, (_, position) => {
      const input = h("input", { type: "text", list, value: names[position] ?? "", dir: "auto", "aria-label": `Row ${number}: ${now.size === 1 ? "item" : `item ${position + 1}`}`, placeholder: "an item, or any text" });
      input.addEventListener("input", () => {
        const texts = cells.map((one) => one.value.replaceAll("|", " ").trim());
        row.items = texts.join(" | ");
        save();
      });
      return input;
    });
    const feedback = h("input", { type: "text", value: row.feedback ?? "", dir: "auto", "aria-label": `Row ${number}: shown after a wrong answer`, placeholder: "optional" });
    feedback.addEventListener("input", () => write({ feedback: feedback.value }));
    const remove = button("Remove", () => { rows.splice(rows.indexOf(row), 1); redraw(); save(); }, { kind: "quiet", label: `Remove row ${number}` });
    return h("tr", {}, [...cells, ...answerCells(row, number, now, write), feedback, remove].map((cell) => h("td", {}, cell)));
  }

  const table = h("div", { class: "m-scroll n-scroll", tabindex: "0", role: "region", "aria-label": `Table: ${title}` }, h("table", { class: "m-table n-edit" }, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)), h("th", {}, h("span", { class: "visually-hidden" }, "Actions")))), body));
  const more = h("div", { class: "n-stack" });

  function redraw(focus) {
    body.replaceChildren(...rows.map((row, position) => line(row, position + 1)));
    table.hidden = !rows.length;
    more.replaceChildren(...(rows.length ? settings() : []).filter(Boolean));
    if (focus) body.lastElementChild?.querySelector("input")?.focus();
  }

  const file = h("input", { type: "file", class: "visually-hidden", id: uniqueId("file"), accept: ".csv,.tsv,.xlsx,.jsonl" });
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    const complete = await uploadWithProgress([chosen], (one, options_) => uploadQuestions(kind, one, options_), place);
    file.value = "";
    if (complete) render({ focus: file.id });
  });
  redraw();
  const columns = now.name === "best_worst" ? "items (separated by |), best, worst" : "items (separated by |) and answer";
  return [
    h("p", { class: "muted" }, help),
    options,
    table,
    h("div", { class: "row" }, button(rows.length ? "Add a row" : "Add questions", () => { rows.push({}); redraw(true); }), h("span", {}, file, h("label", { for: file.id, class: "button" }, "Upload a table"))),
    h("p", { class: "small muted" }, `A table has the columns ${columns}, and perhaps feedback.`),
    place.element,
    more,
  ];
}
