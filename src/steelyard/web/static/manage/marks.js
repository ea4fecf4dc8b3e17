import { h } from "../annotate/dom.js";
import { number } from "./cells.js";
import { Table } from "./tables.js";

/** Marked errors on the tab Results: by system and severity, and by category. Other studies have none. */

const name = (text) => h("span", { dir: "auto" }, text ?? "–");
const EMPTY = "Appears when errors are marked.";

export class Marks {
  constructor(api) {
    const place = document.getElementById("errors-table");
    if (place === null) return;
    const severities = JSON.parse(place.dataset.severities);
    this.tables = [
      new Table(place, {
        url: `${api}/tables/errors`,
        label: "Errors by system",
        empty: EMPTY,
        columns: [
          { key: "system", title: "System", cell: (row) => name(row.system) },
          { key: "texts", title: "Texts", number: true, help: "Judged texts", cell: (row) => number(row.texts) },
          { key: "with_errors", title: "With errors, %", number: true, cell: (row) => number(100 * row.with_errors, 0) },
          ...severities.map((severity) => ({
            key: `${severity}_per_text`,
            title: `${severity} per text`,
            number: true,
            cell: (row) => number(row[`${severity}_per_text`], 2),
          })),
        ],
      }),
      new Table(document.getElementById("error-categories-table"), {
        url: `${api}/tables/error_categories`,
        label: "Errors by category",
        size: 10,
        empty: EMPTY,
        columns: [
          { key: "system", title: "System", cell: (row) => name(row.system) },
          { key: "severity", title: "Severity", cell: (row) => name(row.severity) },
          { key: "category", title: "Category", cell: (row) => name(row.category) },
          { key: "errors", title: "Errors", number: true, cell: (row) => number(row.errors) },
          { key: "per_text", title: "Per text", number: true, cell: (row) => number(row.per_text, 2) },
        ],
      }),
    ];
  }

  refresh() {
    return Promise.all((this.tables ?? []).map((table) => table.refresh()));
  }
}
