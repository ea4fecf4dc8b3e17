import { h } from "../annotate/dom.js";
import { toast } from "./api.js";

/** The tab Overview: the verdict, what to do now, and the progress. */

const part = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

export function start() {
  const { judge } = document.body.dataset;
  part("judge-url").textContent = new URL(judge, location.href).href;
  part("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(part("judge-url").textContent);
    toast("The link is copied.");
  });
  return { parts: ["progress", "reliability"], show, refresh: () => {} };
}

function show(summary) {
  part("meter").value = (100 * summary.done) / Math.max(summary.total, 1);
  part("empty").hidden = summary.judgments > 0 || summary.state === "closed";
  part("finished").hidden = !summary.finished;
  const { verdict, steps } = summary;
  part("verdict").dataset.outcome = verdict?.outcome ?? "computing";
  const sentence = part("verdict-sentence");
  if (sentence.textContent !== (verdict?.sentence ?? "")) sentence.textContent = verdict?.sentence ?? "";
  showGauge(verdict);
  part("steps-box").hidden = !steps.length;
  part("steps").replaceChildren(...steps.map((step) => h("li", {}, h("a", { href: step.tab === "overview" ? "./" : step.tab, dir: "auto" }, step.text))));
}

/** The reliability with its interval on a line from 0 to 1, and the target as a mark. */
function showGauge(verdict) {
  const gauge = part("gauge");
  const value = verdict?.value ?? null;
  gauge.hidden = value === null || value > 1 || value < 0 || verdict.target === null || verdict.target > 1;
  if (gauge.hidden) return;
  const make = (tag, attributes) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, text] of Object.entries(attributes)) element.setAttribute(name, text);
    return element;
  };
  const place = (number) => 4 + 392 * Math.min(1, Math.max(0, number));
  const svg = make("svg", { viewBox: "0 0 400 24", "aria-hidden": "true", class: "m-gauge-line" });
  svg.append(make("line", { x1: 4, x2: 396, y1: 12, y2: 12, class: "m-line-scale" }));
  if (verdict.lower !== null && verdict.upper !== null) svg.append(make("line", { x1: place(verdict.lower), x2: place(verdict.upper), y1: 12, y2: 12, class: "m-line-interval" }));
  svg.append(make("line", { x1: place(verdict.target), x2: place(verdict.target), y1: 2, y2: 22, class: "m-line-target" }));
  svg.append(make("circle", { cx: place(value), cy: 12, r: 5, class: "m-line-score" }));
  const write = (number) => number.toFixed(2).replace(/^0/, "");
  const interval = verdict.lower === null || verdict.upper === null ? "" : `95 % interval ${write(verdict.lower)} to ${write(verdict.upper)}; `;
  const words = `${interval}the vertical mark is the target`;
  gauge.replaceChildren(svg, h("p", { class: "small muted" }, words));
}
