import { h } from "../annotate/dom.js";
import { read } from "./api.js";
import { interval, itemLink, line, number } from "./cells.js";
import { Marks } from "./marks.js";
import { Systems } from "./systems.js";
import { Table } from "./tables.js";
import { Tournaments } from "./tournaments.js";

/** The tab Results: scores of systems and items. */

const part = (id) => document.getElementById(id);

export function start({ api }) {
  let scale = [0, 1];
  const systems = new Systems(api);
  const tournaments = new Tournaments(api);
  const marks = new Marks(api);
  const scores = new Table(part("scores-table"), {
    url: `${api}/tables/scores`,
    label: "Scores",
    search: "Search items",
    further: "item.",
    empty: "There are no scores yet.",
    columns: [
      { key: "rank", title: "Rank", number: true, help: "With its 95 % interval.", cell: (row) => interval(row.rank, row.rank_lower, row.rank_upper) },
      { key: "item", title: "Item", cell: (row) => named(row) },
      { key: "criterion", title: "Criterion", cell: (row) => row.criterion },
      { key: "label", title: "Label", help: "The label that the model infers from all judgments.", cell: (row) => row.label ?? "–" },
      { key: "probability", title: "Probability", number: true, help: "Probability that the label is correct, according to the model.", cell: (row) => interval(row.probability, row.lower, row.upper) },
      { key: "score", title: "Score", number: true, help: "With its 95 % interval: the narrower, the more certain.", cell: (row) => interval(row.score, row.lower, row.upper) },
      { key: "unit_score", title: "On the scale", sort: false, wide: true, cell: (row) => line(row.score, row.lower, row.upper, scale) },
      { key: "judgments", title: "Judgments", number: true, wide: true, help: "Number of judgments of the item that count.", cell: (row) => number(row.judgments) },
      { key: "annotators", title: "Annotators", number: true, wide: true, cell: (row) => number(row.annotators) },
    ],
  });
  const least = new Table(part("least-table"), {
    url: `${api}/tables/least_certain`,
    label: "Least certain items",
    size: 8,
    columns: [
      { key: "item", title: "Item", sort: false, cell: (row) => itemLink(row.item) },
      { key: "width", title: "Width of the interval", sort: false, number: true, cell: (row) => number(row.width) },
      { key: "judgments", title: "Judgments", sort: false, number: true, cell: (row) => number(row.judgments) },
    ],
  });

  async function refresh() {
    const histogram = await read(`${api}/tables/histogram?limit=500`).catch(() => null);
    if (histogram?.rows.length) scale = [histogram.rows[0].lower, histogram.rows.at(-1).upper];
    await Promise.all([systems.refresh(), scores.refresh(), least.refresh(), tournaments.refresh(), marks.refresh()]);
  }

  return { parts: ["scores"], refresh };
}

function named(row) {
  const text = row.text && row.text !== row.item ? h("span", { class: "small muted m-text", dir: "auto" }, row.text) : null;
  return h("div", {}, itemLink(row.item), text);
}
