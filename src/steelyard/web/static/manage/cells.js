import { h } from "../annotate/dom.js";

/** How values look in tables: numbers with as many digits as they are sure of, times, intervals as lines. */

const SVG = "http://www.w3.org/2000/svg";

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Number(value).toLocaleString("en", { maximumSignificantDigits: Math.max(digits, Math.ceil(Math.log10(Math.abs(value) + 1))) });
}

export function share(value) {
  return value === null || value === undefined ? "–" : `${Math.round(100 * value)} %`;
}

/** A value with its interval; the interval's width says how many places make sense, up to `most`. */
export function interval(value, lower, upper, digits = 3, most = 6) {
  if (value === null || value === undefined) return "–";
  if (lower === null || lower === undefined) return number(value, digits);
  const whole = [value, lower, upper].every(Number.isInteger);
  const width = upper - lower;
  const places = whole ? 0 : width > 0 ? Math.min(most, Math.max(0, digits - 1 - Math.floor(Math.log10(width)))) : digits;
  const write = (one) => one.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places, signDisplay: "negative" }).replace("-", "−");
  const dash = lower < 0 ? " to " : "–";
  return h("span", {}, write(value), h("span", { class: "m-between" }, ` (${write(lower)}${dash}${write(upper)})`));
}

export function seconds(value) {
  return value === null || value === undefined ? "–" : `${number(value, 2)} s`;
}

export function when(text) {
  if (!text) return "–";
  const time = new Date(text);
  const minutes = Math.round((Date.now() - time) / 60000);
  const words =
    minutes < 1 ? "just now" : minutes < 90 ? `${minutes} min ago` : minutes < 36 * 60 ? `${Math.round(minutes / 60)} h ago` : time.toLocaleDateString("en", { day: "numeric", month: "short", year: "numeric" });
  return h("time", { datetime: text, title: time.toLocaleString(), class: "m-time" }, words);
}

/** A date and time in the reader's time zone. */
export function clock(text) {
  if (!text) return "–";
  const time = new Date(text);
  const words = time.toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  return h("time", { datetime: text, title: time.toLocaleString(), class: "m-time" }, words);
}

/** A link to an item's page. */
export function itemLink(id, text) {
  return h("a", { href: `item?id=${encodeURIComponent(id)}`, dir: "auto" }, text ?? id);
}

/** A score with its interval as a line on the scale from `low` to `high`; the numbers stand beside it. */
export function line(score, lower, upper, [low, high]) {
  const width = 140;
  const place = (value) => 4 + (width - 8) * Math.min(1, Math.max(0, (value - low) / (high - low || 1)));
  const make = (tag, attributes) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const svg = make("svg", { viewBox: `0 0 ${width} 16`, width, height: 16, class: "m-line", "aria-hidden": "true" });
  svg.append(make("line", { x1: 4, x2: width - 4, y1: 8, y2: 8, class: "m-line-scale" }));
  if (score !== null && score !== undefined) {
    if (lower !== null && lower !== undefined) {
      svg.append(make("line", { x1: place(lower), x2: place(upper), y1: 8, y2: 8, class: "m-line-interval" }));
    }
    svg.append(make("circle", { cx: place(score), cy: 8, r: 3.5, class: "m-line-score" }));
  }
  return svg;
}
