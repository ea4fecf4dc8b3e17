import { h, key, uniqueId } from "./dom.js";
import { number, t } from "./messages.js";

/** A bounded scale without a thumb until it is touched, so that nothing anchors the answer. */

const FINE_STEPS = 100;
const MOST_STEPS = 1000;
const KEYS = 9;

function stepOf([low, high], whole) {
  const span = high - low;
  if (whole) return 1;
  const entire = Number.isInteger(low) && Number.isInteger(high);
  if (entire && span >= 20 && span <= MOST_STEPS) return 1;
  return span / (span > MOST_STEPS ? MOST_STEPS : FINE_STEPS);
}

/** `labels` are words for the two ends, or the ends and the middle; without any the numbers stand there. */
export function slider({ name, labelledBy, scale, labels, whole = false, showValue, showKeys, changed }) {
  const [low, high] = scale;
  const step = stepOf(scale, whole);
  let touched = false;
  let pressed = false;

  const range = h("input", {
    type: "range",
    id: uniqueId("slider"),
    min: low,
    max: high,
    step,
    "aria-labelledby": labelledBy,
    "aria-keyshortcuts": "1 2 3 4 5 6 7 8 9",
  });
  range.value = String((low + high) / 2);
  const output = h("output", { class: "slider-value", for: range.id, hidden: !showValue });
  const words = labels.length ? labels : [number(low), number(high)];
  const named = words.map((word) => h("span", { dir: "auto" }, word));
  const box = h(
    "div",
    { class: "slider" },
    h(
      "div",
      { class: "slider-track" },
      range,
      h("span", { class: "tick low" }),
      h("span", { class: "tick middle" }),
      h("span", { class: "tick high" }),
    ),
    h("div", { class: `slider-labels labels-${words.length}`, "aria-hidden": "true" }, named),
    showKeys ? h("p", { class: "slider-keys" }, key("1"), "–", key("9"), key("←"), key("→")) : null,
    output,
  );

  const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const value = () => (touched ? Number(Number(range.value).toFixed(decimals + 2)) : null);
  function show() {
    box.classList.toggle("untouched", !touched);
    output.textContent = touched ? number(value()) : "–";
    const place = words.length === 2 ? `${words[0]} – ${words[1]}` : words.join(" – ");
    range.setAttribute(
      "aria-valuetext",
      touched ? `${number(value())} (${place})` : t("not set yet ({ends})", { ends: place }),
    );
  }
  function touch(settled) {
    touched = true;
    show();
    changed(settled);
  }
  range.addEventListener("input", () => touch(false));
  range.addEventListener("change", () => touch(true));
  // Pressing on the very place where the hidden thumb stands changes no value and so sends no "input".
  range.addEventListener("pointerdown", () => {
    pressed = true;
  });
  range.addEventListener("pointercancel", () => {
    pressed = false;
  });
  range.addEventListener("pointerup", () => {
    if (pressed) touch(true);
    pressed = false;
  });
  range.addEventListener("keydown", (event) => {
    if (["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"].includes(event.key)) {
      touched = true;
      show();
    }
  });
  show();

  return {
    element: box,
    name,
    value,
    set(given) {
      touched = given !== null && given !== undefined;
      range.value = String(touched ? given : (low + high) / 2);
      show();
    },
    focus: () => range.focus(),
    has: (element) => element === range,
    /** 1 is one end, 5 the middle, 9 the other end. */
    key(face) {
      const place = Number(face);
      if (!Number.isInteger(place) || place < 1 || place > KEYS) return false;
      range.value = String(low + ((high - low) * (place - 1)) / (KEYS - 1));
      range.focus();
      touch(true);
      return true;
    },
    movesOn: false,
  };
}
