import { h, key, uniqueId } from "./dom.js";

/** A few answers to choose one from, each with its key: the steps of a scale, or labels. */

const KEYS = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0"];

/** The keys for some answers: a digit stands for itself where it can, else for the place. */
export function keysFor(values) {
  const digits = values.map(String);
  if (digits.every((digit) => /^\d$/.test(digit))) return digits;
  return values.map((_, place) => KEYS[place] ?? null);
}

/**
 * `options` are {value, face, words, dir, key}: the face is large, the words explain; either may be empty.
 * The keys are digits by place unless options have a key of their own.
 * `ends` are words for the two ends where the steps themselves have none.
 */
export function steps({ name, labelledBy, options, ends = [], changed }) {
  const group = uniqueId("steps");
  const keys = options[0].key ? options.map((option) => option.key) : keysFor(options.map((option) => option.value));
  const inputs = options.map((option, place) =>
    h("input", {
      type: "radio",
      name: group,
      id: uniqueId("step"),
      value: place,
      class: "visually-hidden",
      "aria-keyshortcuts": keys[place],
      onchange: () => changed(true),
    }),
  );
  const endOf = (place) => (ends.length ? { 0: ends[0], [options.length - 1]: ends[1] }[place] : undefined);
  const labels = options.map((option, place) =>
    h(
      "label",
      { class: "step", for: inputs[place].id },
      inputs[place],
      keys[place] !== null && keys[place] !== option.face ? key(keys[place]) : null,
      option.face ? h("span", { class: "step-face" }, option.face) : null,
      option.words ? h("span", { class: "step-words", dir: option.dir ?? "auto" }, option.words) : null,
      endOf(place) ? h("span", { class: "visually-hidden" }, endOf(place)) : null,
    ),
  );
  const kind = options.some((option) => option.face) ? "scale" : "labels";
  const worded = options.some((option) => option.words) ? " worded" : "";
  const element = h(
    "div",
    { class: `steps ${kind}${worded}`, role: "radiogroup", "aria-labelledby": labelledBy },
    h("div", { class: "steps-row" }, labels),
    ends.length
      ? h(
          "div",
          { class: "slider-labels labels-2", "aria-hidden": "true" },
          ends.map((word) => h("span", { dir: "auto" }, word)),
        )
      : null,
  );
  const chosen = () => inputs.findIndex((input) => input.checked);

  return {
    element,
    name,
    value: () => options[chosen()]?.value ?? null,
    set(given) {
      inputs.forEach((input, place) => {
        input.checked = options[place].value === given;
      });
    },
    focus: () => (inputs[chosen()] ?? inputs[0]).focus(),
    has: (target) => inputs.includes(target),
    key(pressed) {
      const place = keys.indexOf(pressed);
      if (place < 0) return false;
      inputs[place].checked = true;
      inputs[place].focus();
      changed(true);
      return true;
    },
    movesOn: true,
  };
}
