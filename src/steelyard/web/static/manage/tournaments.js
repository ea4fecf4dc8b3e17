import { h } from "../annotate/dom.js";
import { interval, number } from "./cells.js";
import { Table } from "./tables.js";

/** Tournaments on the tab Results: dominance of systems, cycles by source, adequacy. Other studies have none. */

const name = (text) => h("span", { dir: "auto" }, text ?? "–");
const yesNo = (value) => (value === null || value === undefined ? "–" : value ? "yes" : "no");

export class Tournaments {
  constructor(api) {
    const place = document.getElementById("dominance-table");
    if (place === null) return;
    const table = (id, what, label, columns, size = 10) => new Table(document.getElementById(id), { url: `${api}/tables/${what}`, label, size, columns, empty: "Appears when a tournament is finished." });
    this.tables = [
      table("dominance-table", "average_dominance", "Average dominance", [
        { key: "rank", title: "Rank", number: true, cell: (row) => interval(row.rank, row.rank_lower, row.rank_upper) },
        { key: "system", title: "System", cell: (row) => name(row.system) },
        { key: "score", title: "Average dominance", number: true, help: "Outputs dominated minus outputs that dominate, averaged over sources; each source counts once", cell: (row) => interval(row.score, row.lower, row.upper) },
        { key: "normalized", title: "Normalized", number: true, help: "Divided by the number of other outputs of the source: −1 to 1, comparable if sources have different numbers of outputs", cell: (row) => interval(row.normalized, row.normalized_lower, row.normalized_upper) },
      ]),
      table("cycles-table", "sources", "Tournaments by source", [
        { key: "source", title: "Source", cell: (row) => name(row.source) },
        { key: "annotator", title: "Annotator", cell: (row) => name(row.annotator) },
        { key: "comparisons", title: "Comparisons", number: true, cell: (row) => number(row.comparisons) },
        { key: "items", title: "Items", number: true, cell: (row) => number(row.items) },
        { key: "items_in_cycles", title: "Items in cycles", number: true, cell: (row) => number(row.items_in_cycles) },
      ]),
      table("effort-table", "effort", "Effort of adequacy labels", [
        { key: "part", title: "Adequacy labels", sort: false, cell: (row) => row.part },
        { key: "count", title: "Number", sort: false, number: true, cell: (row) => number(row.count) },
        { key: "percent", title: "Per cent", sort: false, number: true, cell: (row) => number(row.percent, 1) },
      ]),
      table("adequacy-table", "adequacy", "Adequacy and ranks", [
        { key: "item", title: "Item", cell: (row) => name(row.item) },
        { key: "source", title: "Source", wide: true, cell: (row) => name(row.source) },
        { key: "rank", title: "Rank", number: true, help: "By dominance within the source", cell: (row) => number(row.rank) },
        { key: "harmonized_rank", title: "Harmonized rank", number: true, help: "Adequate items above inadequate ones", cell: (row) => number(row.harmonized_rank) },
        { key: "adequate", title: "Adequate", cell: (row) => yesNo(row.adequate) },
        { key: "how", title: "Label", help: "All labels but “asked” are inferred", cell: (row) => (row.how ? `${row.how}${row.inferred ? " (inferred)" : ""}` : "–") },
      ]),
    ];
  }

  refresh() {
    return Promise.all((this.tables ?? []).map((table) => table.refresh()));
  }
}
