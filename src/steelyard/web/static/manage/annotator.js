import { h } from "../annotate/dom.js";
import { read } from "./api.js";
import { interval, itemLink, number, seconds, share } from "./cells.js";
import { drawInto } from "./charts.js";

/** One annotator: what a team lead could discuss with them. */

const { api, annotator } = document.body.dataset;
const place = document.getElementById("annotator");

function tile(label, value) {
  return h("div", { class: "m-tile card" }, h("p", { class: "m-label" }, label), h("p", { class: "m-big" }, value));
}

function tiles(row) {
  return h(
    "div",
    { class: "m-tiles" },
    tile("Judgments", number(row.judgments)),
    tile("Median time", seconds(row.median_seconds)),
    tile("Agreement", interval(row.agreement, row.agreement_lower, row.agreement_upper, 2, 2)),
    row.severity === null || row.severity === undefined ? null : tile("Severity (logits)", interval(row.severity, row.severity_lower, row.severity_upper, 2, 2)),
    row.infit === null || row.infit === undefined ? null : tile("Infit", number(row.infit, 2)),
    row.checks ? tile("Checks right", share(row.accuracy)) : null,
    row.self_consistency === null ? null : tile("Self-consistency", share(row.self_consistency)),
  );
}

function findings(rows) {
  const pairs = rows.flatMap(({ aspect, sentence, notable }) => [
    h("dt", {}, aspect),
    h("dd", { dir: "auto" }, notable ? h("strong", {}, "Worth discussing. ") : null, sentence),
  ]);
  return h("dl", { class: "m-facts m-findings card" }, pairs);
}

function grid(label, titles, rows) {
  const heads = titles.map(([title, isNumber]) => h("th", { scope: "col", class: isNumber ? "m-number" : null }, title));
  const lines = rows.map((cells) => h("tr", {}, cells.map((cell, n) => h("td", { class: titles[n][1] ? "m-number" : null, dir: "auto" }, cell))));
  const table = h("table", { class: "m-table", "aria-label": label }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, lines));
  return h("div", { class: "m-scroll", tabindex: "0", role: "region", "aria-label": label }, table);
}

function surprises(rows) {
  if (!rows.length) return [h("h2", {}, "Surprising answers"), h("p", { class: "muted" }, "No answer is further than two standard deviations from what all answers together predict.")];
  const shownItem = (id, text) => h("div", {}, itemLink(id), text && text !== id ? h("div", { class: "small muted", dir: "auto" }, text) : null);
  const items = (row) => h("div", {}, shownItem(row.item, row.text), row.other ? shownItem(row.other, row.other_text) : null, row.criterion ? h("div", { class: "small muted" }, row.criterion) : null);
  const size = (row) => `${number(Math.abs(row.residual), 2)} sd`;
  return [
    h("h2", {}, "Surprising answers"),
    h("p", { class: "small muted" }, "The answers that differ most from what all annotators’ answers together predict, given this annotator’s severity. A surprising answer may be a slip, a misunderstanding, or the only correct answer."),
    grid("Surprising answers", [["Item"], ["Answer"], ["Expected"], ["Deviation", true]], rows.map((row) => [items(row), row.answer, row.expected, size(row)])),
  ];
}

function effects(rows) {
  if (rows.length < 2) return [];
  const spread = (row, name) => interval(row[name], row[`${name}_lower`], row[`${name}_upper`], 2, 2);
  return [
    h("h2", {}, "By criterion"),
    grid(
      "By criterion",
      [["Criterion"], ["Infit", true], ["Outfit", true], ["Severity", true], ["Drift", true]],
      rows.map((row) => [[row.stage, row.criterion].filter(Boolean).join(", "), number(row.infit, 2), number(row.outfit, 2), spread(row, "severity"), spread(row, "drift")]),
    ),
  ];
}

function work(blocks) {
  if (!blocks.length) return [];
  const picture = h("div", { class: "m-picture m-skeleton", role: "img", "aria-label": "Work over time" });
  const figure = h("figure", { class: "m-chart card" }, picture);
  drawInto(picture, `${api}/charts/annotator.svg`, { annotator }).catch(() => figure.remove());
  return [h("h2", {}, "Over time"), figure];
}

try {
  const data = await read(`${api}/annotator?id=${encodeURIComponent(annotator)}`);
  const { excluded } = data.annotator;
  place.replaceChildren(
    ...(excluded === null ? [] : [h("p", { class: "m-notice", dir: "auto" }, `Excluded: ${excluded}`)]),
    tiles(data.annotator),
    findings(data.findings),
    ...work(data.blocks),
    ...effects(data.effects),
    ...surprises(data.surprises),
  );
} catch (refused) {
  place.replaceChildren(h("p", { class: "m-notice", role: "alert" }, refused.message), h("p", {}, h("a", { href: "annotators" }, "Back to the annotators")));
}
