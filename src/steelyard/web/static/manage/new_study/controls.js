import { h, uniqueId } from "../../annotate/dom.js";
import { get, set, valuesChanged } from "./draft.js";

/** Form controls that are bound to a path in study.toml, and show the problems of that path. */

const fields = new Map();
let attempted = false;

/** Forget the controls of the step before. */
export function clearFields() {
  fields.clear();
}

/** Show problems at their fields; before the step was completed once, only where something was typed. */
export function showProblems(problems, all = attempted) {
  attempted = all;
  for (const field of fields.values()) field.fail("");
  const rest = [];
  for (const problem of problems) {
    const words = `${problem.what} ${problem.remedy}`.trim();
    const field = fieldOf(problem.field ?? "");
    if (!field) rest.push(words);
    else if (all || field.touched) field.fail(words);
  }
  return all ? rest : [];
}

function fieldOf(path) {
  for (let place = path; place; place = place.slice(0, Math.max(0, place.lastIndexOf(".")))) {
    if (fields.has(place)) return fields.get(place);
  }
  return null;
}

export function hasField(path) {
  return Boolean(fieldOf(path ?? ""));
}

/** Put a control into its place: label, control, help, error. */
export function labelled({ label, help, path, control, inputs = [control], check = false, hideLabel = false, className = "" }) {
  const helpId = uniqueId("help");
  const errorId = uniqueId("error");
  const error = h("p", { class: "error", id: errorId });
  error.hidden = true;
  const id = inputs[0].id || uniqueId("field");
  inputs[0].id = id;
  const name = h("label", { for: id, class: hideLabel ? "visually-hidden" : null }, label);
  const description = help ? h("p", { class: "small muted", id: helpId }, help) : null;
  const element = check
    ? h("div", { class: `n-field ${className}` }, h("div", { class: "n-check" }, control, name), description, error)
    : h("div", { class: `n-field ${className}` }, name, description, control, error);
  if (path) element.dataset.path = path;
  const field = {
    element,
    touched: false,
    fail(words) {
      error.textContent = words;
      error.hidden = !words;
      for (const input of inputs) {
        if (words) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
      }
    },
  };
  for (const input of inputs) {
    input.setAttribute("aria-describedby", `${help ? `${helpId} ` : ""}${errorId}`);
    input.addEventListener("input", () => {
      field.touched = true;
    });
  }
  if (path) fields.set(path, field);
  return element;
}

const number = (text) => (text.trim() === "" ? undefined : Number(text.replace(",", ".")));

function bind(input, path, parse, after) {
  input.addEventListener("input", () => {
    set(path, parse(input));
    valuesChanged();
    after?.(get(path));
  });
}

export function textField({ label, help, path, rows = 0, placeholder, fixed, after, hideLabel, maxlength }) {
  const control = rows
    ? h("textarea", { rows, placeholder, disabled: fixed, dir: "auto", maxlength })
    : h("input", { type: "text", placeholder, disabled: fixed, dir: "auto", maxlength });
  control.value = get(path) ?? "";
  bind(control, path, (input) => (input.value.trim() === "" ? undefined : input.value), after);
  return labelled({ label, help, path, control, hideLabel });
}

/** A number; `scale` is what the number in the file is multiplied by to be shown, 100 for per cent. */
export function numberField({ label, help, path, min, max, step = "any", unit, placeholder, scale = 1, fixed, after, short = true }) {
  const control = h("input", { type: "number", min, max, step, placeholder, disabled: fixed, class: short ? "n-short" : null, inputmode: "decimal" });
  const value = get(path);
  control.value = value === undefined || value === null ? "" : String(Number((value * scale).toPrecision(12)));
  bind(control, path, (input) => {
    const given = number(input.value);
    return given === undefined || Number.isNaN(given) ? undefined : Number((given / scale).toPrecision(12));
  }, after);
  const element = unit ? h("div", { class: "n-unit" }, control, h("span", { class: "muted" }, unit)) : control;
  return labelled({ label, help, path, control: element, inputs: [control] });
}

export function checkField({ label, help, path, fallback = false, fixed, after, invert = false }) {
  const control = h("input", { type: "checkbox", disabled: fixed });
  const value = get(path) ?? fallback;
  control.checked = invert ? !value : value;
  control.addEventListener("change", () => {
    const chosen = invert ? !control.checked : control.checked;
    set(path, chosen === fallback ? undefined : chosen);
    valuesChanged();
    after?.(chosen);
  });
  return labelled({ label, help, path, control, check: true });
}

/** A drop-down; options are [value, words]. The first one with the value "" stands for the default. */
export function selectField({ label, help, path, options, fallback = "", fixed, after, always = false }) {
  const control = h("select", { disabled: fixed }, options.map(([value, words]) => h("option", { value }, words)));
  control.value = String(get(path) ?? fallback);
  control.addEventListener("change", () => {
    set(path, control.value === "" || (!always && control.value === String(fallback)) ? undefined : control.value);
    valuesChanged();
    after?.(control.value);
  });
  return labelled({ label, help, path, control });
}

/** Lines of a text area as a list of strings. */
export function listField({ label, help, path, rows = 4, placeholder, fixed, after, separator = "\n" }) {
  const long = separator === "\n";
  const control = long ? h("textarea", { rows, placeholder, disabled: fixed, dir: "auto" }) : h("input", { type: "text", placeholder, disabled: fixed, dir: "auto" });
  control.value = (get(path) ?? []).join(long ? "\n" : ", ");
  bind(control, path, (input) => {
    const parts = input.value.split(separator).map((part) => part.trim()).filter(Boolean);
    return parts.length ? parts : undefined;
  }, after);
  return labelled({ label, help, path, control });
}

/** Two numbers, such as the ends of a scale. */
export function rangeField({ label, help, path, fallback, step = "any", fixed, after }) {
  const given = get(path) ?? fallback;
  const [low, high] = [0, 1].map((place) => {
    const input = h("input", { type: "number", step, class: "n-short", disabled: fixed, value: given[place] });
    input.setAttribute("aria-label", `${label}: ${place ? "highest" : "lowest"}`);
    return input;
  });
  for (const input of [low, high]) {
    input.addEventListener("input", () => {
      set(path, [low, high].map((one, place) => number(one.value) ?? fallback[place]));
      valuesChanged();
      after?.();
    });
  }
  const control = h("div", { class: "n-unit" }, low, h("span", { class: "muted" }, "to"), high);
  return labelled({ label, help, path, control, inputs: [low, high] });
}

/** Settings that are described by the server (designs, models and others), with labels in plain words. */
export function generatedField(about, path, words, { fixed, after } = {}) {
  const [label, help = sentence(about.description)] = words ?? [titleOf(about.name), sentence(about.description)];
  const common = { label, help, path, fixed, after };
  const fallback = about.default;
  const hint = fallback === null || fallback === undefined ? "" : String(fallback);
  if (about.kind === "yes_no") return checkField({ ...common, fallback: Boolean(fallback) });
  if (about.kind === "integer" || about.kind === "number")
    return numberField({ ...common, min: about.minimum, max: about.maximum, step: about.kind === "integer" ? 1 : "any", placeholder: hint });
  if (about.kind === "choice") {
    const options = about.options.map((option) => [option, titleOf(String(option))]);
    return selectField({ ...common, options: fallback === null ? [["", "Not set"], ...options] : options, fallback: fallback ?? "" });
  }
  if (about.kind === "texts") return listField({ ...common, separator: ",", placeholder: (fallback ?? []).join(", ") });
  if (about.kind === "range") return rangeField({ ...common, fallback });
  return textField({ ...common, placeholder: hint, rows: about.kind === "lines" ? 3 : 0 });
}

export function titleOf(name) {
  return name.replaceAll("_", " ").replace(/^./, (first) => first.toUpperCase());
}

function sentence(text) {
  return text ? text.replace(/^./, (first) => first.toUpperCase()) : "";
}

/** A part of a step that opens on demand. */
export function details(summary, { open = false, note } = {}, ...children) {
  return h("details", { class: "n-details", open }, h("summary", {}, summary, note ? h("span", { class: "small muted" }, ` ${note}`) : null), h("div", { class: "n-stack" }, children.flat(Infinity)));
}

export function section(title, text, ...children) {
  const id = uniqueId("part");
  return h("section", { class: "n-section n-stack", "aria-labelledby": id }, h("h3", { id }, title), text ? h("p", { class: "muted" }, text) : null, children.flat(Infinity));
}

export function button(words, onclick, { kind = "", label, describedby } = {}) {
  return h("button", { type: "button", class: kind || null, onclick, "aria-label": label, "aria-describedby": describedby }, words);
}

/** A message about progress or failure that screen readers announce. */
export function announcement() {
  const element = h("div", { class: "n-announcement", role: "status" });
  return {
    element,
    say(...parts) {
      element.classList.remove("n-failure");
      element.replaceChildren(...parts);
    },
    fail(words) {
      element.classList.add("n-failure");
      element.replaceChildren(h("p", { class: "error" }, words));
    },
  };
}

/** Upload files with a progress bar and a button to stop; `send(file, options)` sends one. */
export async function uploadWithProgress(files, send, place) {
  const stop = new AbortController();
  const bar = h("progress", { class: "m-meter", max: 100, value: 0, "aria-label": "Upload" });
  const words = h("p", {});
  place.say(h("div", { class: "n-upload" }, words, bar, button("Stop", () => stop.abort(), { kind: "quiet" })));
  for (const [number_, file] of [...files].entries()) {
    const which = files.length > 1 ? ` (${number_ + 1} of ${files.length})` : "";
    words.textContent = `Uploading ${file.name}${which}…`;
    const onProgress = (part) => {
      bar.value = Math.round(100 * part);
      words.textContent = part < 1 ? `Uploading ${file.name}${which}: ${Math.round(100 * part)} %` : `Reading ${file.name}${which}…`;
    };
    try {
      await send(file, { onProgress, signal: stop.signal });
    } catch (refused) {
      place.fail(refused.message);
      return false;
    }
  }
  place.say();
  return true;
}
