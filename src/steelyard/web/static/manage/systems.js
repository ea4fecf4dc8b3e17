import { h } from "../annotate/dom.js";
import { interval, number } from "./cells.js";
import { Table } from "./tables.js";

/** Systems on the tab Results: scores with clusters, and pairwise differences. A study without systems has none. */

const COUNTS = (row) => `${number(row.wins)}–${number(row.ties)}–${number(row.losses)}`;
const name = (text) => h("span", { dir: "auto" }, text);
const p = (value) => (value === null ? "–" : value < 0.001 ? "< .001" : value.toFixed(3).replace(/^0/, ""));

/** A line separates criteria and labels, and the clusters of each. */
function rowClass(row, previous) {
  const isNew = previous && ["criterion", "label", "cluster"].some((key) => row[key] !== previous[key]);
  return isNew ? "m-rule" : "";
}

export class Systems {
  constructor(api) {
    const place = document.getElementById("systems-table");
    if (place === null) return;
    this.scores = new Table(place, {
      url: `${api}/tables/systems`,
      label: "Systems",
      empty: "Systems appear here when there are judgments that compare them.",
      rowClass,
      columns: [
        { key: "cluster", title: "Cluster", number: true, help: "Every system of a cluster is significantly better than every system of the clusters below", cell: (row) => number(row.cluster) },
        { key: "rank", title: "Rank", number: true, help: "With the range of ranks compatible with the significant differences", cell: (row) => interval(row.rank, row.rank_lower, row.rank_upper) },
        { key: "system", title: "System", cell: (row) => name(row.system) },
        { key: "criterion", title: "Criterion", cell: (row) => row.criterion },
        { key: "label", title: "Label", cell: (row) => name(row.label) },
        { key: "score", title: "Score", number: true, help: "With its 95 % interval.", cell: (row) => interval(row.score, row.lower, row.upper) },
        { key: "better_than", title: "Better than", number: true, wide: true, help: "Number of systems it is significantly better than", cell: (row) => number(row.better_than) },
        { key: "wins", title: "Wins–ties–losses", number: true, wide: true, cell: COUNTS },
        { key: "judgments", title: "Judgments", number: true, wide: true, cell: (row) => number(row.judgments) },
      ],
    });
    this.differences = new Table(document.getElementById("differences-table"), {
      url: `${api}/tables/system_differences`,
      label: "Differences of systems",
      columns: [
        { key: "system", title: "System", cell: (row) => name(row.system) },
        { key: "other", title: "Compared with", cell: (row) => name(row.other) },
        { key: "criterion", title: "Criterion", cell: (row) => row.criterion },
        { key: "label", title: "Label", cell: (row) => name(row.label) },
        { key: "difference", title: "Difference", number: true, help: "With its simultaneous interval", cell: (row) => interval(row.difference, row.lower, row.upper) },
        { key: "p_holm", title: "p (Holm)", number: true, help: "p-value after Holm's correction for the number of pairs; * is below .05.", cell: (row) => p(row.p_holm) + (row.significant ? " *" : "") },
        { key: "probability", title: "P(better)", number: true, wide: true, help: "Probability that the first system is better.", cell: (row) => number(row.probability, 3) },
        { key: "wins", title: "Wins–ties–losses", number: true, wide: true, cell: COUNTS },
      ],
    });
  }

  refresh() {
    return Promise.all([this.scores?.refresh(), this.differences?.refresh()]);
  }
}
