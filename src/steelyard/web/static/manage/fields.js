import { h, uniqueId } from "../annotate/dom.js";

/**
 * A setting as a field of a form. A field has: element; value() (undefined when it is left at its default);
 * fail(words) (what is wrong with it, '' for nothing); fix() (it may not be changed); touched.
 */

const WORDS = { consent: "Consent", open: "Open to anybody", lease_minutes: "Lease, in minutes" };

const TOML_HINTS = {
  criteria: "{ fluency = { scale = [1, 5] }, adequacy = {} }",
  checks: '{ file = "gold.csv", rate = 0.05 }',
  qualification: '{ file = "test.csv" }',
};

function titleOf({ name, title }) {
  return title ?? WORDS[name] ?? name.replaceAll("_", " ").replace(/^./, (first) => first.toUpperCase());
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function textInput(about, id, given) {
  const long = about.kind === "lines" || about.kind === "toml";
  const shown = given === undefined || given === null ? "" : about.kind === "texts" ? given.join(", ") : about.kind === "toml" ? tomlOf(given) : String(given);
  const hint = about.kind === "texts" ? (about.default ?? []).join(", ") || "one, two" : about.kind === "toml" ? (TOML_HINTS[about.name] ?? "") : (about.default ?? "");
  if (!long) {
    const input = h("input", { type: "text", id, placeholder: hint });
    input.value = shown;
    return input;
  }
  const input = h("textarea", { id, rows: "2", placeholder: hint, class: about.kind === "toml" ? "m-code" : null, spellcheck: about.kind === "toml" ? "false" : null });
  input.value = shown;
  return input;
}

/** Plain data as TOML writes it on one line. */
function tomlOf(value) {
  if (Array.isArray(value)) return `[${value.map(tomlOf).join(", ")}]`;
  if (value && typeof value === "object") {
    const inner = Object.entries(value).map(([key, part]) => `${/^[\w-]+$/.test(key) ? key : JSON.stringify(key)} = ${tomlOf(part)}`);
    return inner.length ? `{ ${inner.join(", ")} }` : "{}";
  }
  return JSON.stringify(value);
}

function numberInput(about, id, given) {
  const input = h("input", { type: "number", id, min: about.minimum, max: about.maximum, step: about.kind === "integer" ? 1 : "any", placeholder: about.default ?? "" });
  if (given !== undefined && given !== null) input.value = String(given);
  return input;
}

const READ = {
  text: (input) => input.value.trim() || undefined,
  lines: (input) => input.value.trim() || undefined,
  toml: (input) => (input.value.trim() ? { $toml: input.value.trim() } : undefined),
  texts: (input) => (input.value.trim() ? input.value.split(",").map((word) => word.trim()).filter(Boolean) : undefined),
  integer: (input) => (input.value === "" ? undefined : Number(input.value)),
  number: (input) => (input.value === "" ? undefined : Number(input.value)),
  yes_no: (input) => input.checked,
  choice: (input) => input.value || undefined,
};

function control(about, id, given) {
  if (about.kind === "yes_no") {
    const input = h("input", { type: "checkbox", id });
    input.checked = given ?? about.default ?? false;
    return { inputs: [input], element: input };
  }
  if (about.kind === "choice") {
    // Without a usual value nothing is chosen: the part of study.toml it belongs to may be left out.
    const none = about.always || about.default !== null ? [] : [""];
    const input = h("select", { id }, [...none, ...about.options].map((option) => h("option", { value: option }, option)));
    input.value = given ?? about.default ?? (none.length ? "" : about.options[0]);
    return { inputs: [input], element: input };
  }
  if (about.kind === "range") {
    const [low, high] = [0, 1].map((place) => numberInput({ ...about, kind: "number", default: about.default?.[place] }, place ? `${id}-high` : id, given?.[place]));
    high.setAttribute("aria-label", "upper end");
    return { inputs: [low, high], element: h("div", { class: "m-range" }, low, h("span", {}, "to"), high) };
  }
  const number = about.kind === "integer" || about.kind === "number";
  const input = number ? numberInput(about, id, given) : textInput(about, id, given);
  return { inputs: [input], element: input };
}

export function fieldFor(about, path, given, changed) {
  const id = uniqueId("field");
  const help = uniqueId("help");
  const wrong = uniqueId("error");
  const made = control(about, id, given);
  const error = h("p", { class: "error", id: wrong, role: "alert" });
  const description = h("p", { class: "small muted", id: help }, about.description);
  const label = h("label", { for: id }, titleOf(about));
  const element =
    about.kind === "yes_no"
      ? h("div", { class: "m-field" }, h("div", { class: "m-check" }, made.element, label), description, error)
      : h("div", { class: "m-field" }, label, made.element, about.description ? description : null, error);
  element.dataset.path = path;
  const field = {
    element,
    touched: given !== undefined,
    value() {
      if (about.kind === "range") {
        const [low, high] = made.inputs.map((input) => input.value);
        return low === "" && high === "" ? undefined : [low, high].map((text, place) => (text === "" ? about.default?.[place] : Number(text)));
      }
      const value = READ[about.kind](made.inputs[0]);
      // A choice of protocol, design or model is always written down; a setting only where it differs.
      return !about.always && same(value, about.default) ? undefined : value;
    },
    fail(words) {
      error.textContent = words;
      for (const input of made.inputs) input.setAttribute("aria-invalid", String(Boolean(words)));
    },
    fix() {
      for (const input of made.inputs) input.disabled = true;
    },
    /** Offer other choices; the one chosen stays if it is among them. */
    offer(names, usual) {
      const input = made.inputs[0];
      const before = input.value;
      input.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
      input.value = names.includes(before) ? before : usual;
    },
  };
  for (const input of made.inputs) {
    input.setAttribute("aria-describedby", `${help} ${wrong}`);
    input.addEventListener("input", () => {
      field.touched = true;
      changed();
    });
  }
  return field;
}
