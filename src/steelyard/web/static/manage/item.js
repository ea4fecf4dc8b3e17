import { h } from "../annotate/dom.js";
import { read } from "./api.js";
import { interval, number, seconds, when } from "./cells.js";
import { drawInto } from "./charts.js";

/** One item: its content, its scores, and all its judgments. */

const { api, item } = document.body.dataset;
const place = document.getElementById("item");

function facts({ text, group, context, reference, media, tags, gold, metadata, set_aside: setAside }) {
  const rows = { "Set aside": setAside, Text: text, Group: group, Context: context, Reference: reference, Media: media, Tags: tags.join(", "), Gold: gold };
  const pairs = [...Object.entries(rows), ...Object.entries(metadata)].filter(([, value]) => value);
  return h("dl", { class: "m-facts card" }, pairs.flatMap(([name, value]) => [h("dt", {}, name), h("dd", { dir: "auto" }, value)]));
}

function scoreTiles(scores) {
  if (!scores.length) return h("p", { class: "muted" }, "It has no score yet.");
  return h(
    "div",
    { class: "m-tiles" },
    scores.flatMap((row) => {
      const name = row.criterion ? `Score, ${row.criterion}` : "Score";
      const main = row.label === undefined ? interval(row.score, row.lower, row.upper) : (row.label ?? "–");
      return [tile(row.label === undefined ? name : "Label", main), row.rank === undefined ? null : tile("Rank", interval(row.rank, row.rank_lower, row.rank_upper)), tile("Judgments", number(row.judgments))];
    }),
  );
}

function tile(label, value) {
  return h("div", { class: "m-tile card" }, h("p", { class: "m-label" }, label), h("p", { class: "m-big" }, value));
}

function marks(row) {
  return [row.excluded && "annotator excluded", row.late && "late", row.revised && "revised", row.imported && "imported", row.comment && `“${row.comment}”`].filter(Boolean).join(", ");
}

function judgments(rows) {
  if (!rows.length) return h("p", { class: "muted" }, "Nobody has judged it yet.");
  const heads = ["Annotator", "Answer", "Beside", "Time", "When", ""].map((title) => h("th", { scope: "col", class: title === "Time" ? "m-number" : null }, title));
  const lines = rows.map((row) =>
    h(
      "tr",
      { class: row.excluded ? "m-excluded" : null },
      h("td", { dir: "auto" }, row.annotator || "unknown"),
      h("td", { dir: "auto" }, row.answer_text),
      h("td", {}, row.other_items.flatMap((id, n) => [n ? ", " : "", h("a", { href: `item?id=${encodeURIComponent(id)}`, dir: "auto" }, id)])),
      h("td", { class: "m-number" }, seconds(row.seconds)),
      h("td", {}, when(row.at)),
      h("td", { class: "small muted" }, marks(row)),
    ),
  );
  const table = h("table", { class: "m-table", "aria-label": "Judgments" }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, lines));
  return h("div", { class: "m-scroll", tabindex: "0", role: "region", "aria-label": "Judgments" }, table);
}

function chart() {
  const picture = h("div", { class: "m-picture m-skeleton", role: "img", "aria-label": `Ratings of ${item}` });
  const link = (form, words) => h("a", { href: `${api}/charts/item.${form}?${new URLSearchParams({ item, download: true })}`, download: true, "aria-label": `Download the ratings of ${item} as ${words}` }, words);
  const links = h("figcaption", { class: "small" }, h("span", { class: "muted" }, "Download:"), link("svg", "SVG"), link("png", "PNG"), link("csv", "data"));
  const figure = h("figure", { class: "m-chart card" }, picture, links);
  drawInto(picture, `${api}/charts/item.svg`, { item }).catch(() => figure.remove());
  return figure;
}

try {
  const data = await read(`${api}/item?id=${encodeURIComponent(item)}`);
  const rated = data.judgments.some((row) => row.value !== null);
  place.replaceChildren(
    facts(data.item),
    scoreTiles(data.scores),
    ...(rated ? [chart()] : []),
    h("h2", {}, data.judgments.length === 1 ? "1 judgment" : `${number(data.judgments.length)} judgments`),
    judgments(data.judgments),
  );
} catch (refused) {
  place.replaceChildren(h("p", { class: "m-notice", role: "alert" }, refused.message), h("p", {}, h("a", { href: "./" }, "Back to the dashboard")));
}
