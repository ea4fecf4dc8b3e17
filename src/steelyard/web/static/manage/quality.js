import { h } from "../annotate/dom.js";
import { post, toast } from "./api.js";
import { interval, number } from "./cells.js";
import { Table } from "./tables.js";

/** The tab Quality: reliability and agreement, each statistic with its meaning, and the attention checks. */

const part = (id) => document.getElementById(id);

export function start({ api }) {
  const statistics = new Table(part("statistics-table"), {
    url: `${api}/tables/statistics`,
    label: "Reliability",
    empty: "Statistics appear when some items have two judgments.",
    size: 50,
    columns: [
      { key: "label", title: "Statistic", sort: false, cell: (row) => described(row) },
      { key: "value", title: "Value (95 % interval)", sort: false, number: true, cell: (row) => interval(row.value, row.lower, row.upper, 2) },
      { key: "note", title: "Computed from", sort: false, wide: true, cell: (row) => h("span", { class: "small muted" }, row.note) },
    ],
  });
  const checks = part("checks-table") === null ? null : checksTable(api);
  return {
    parts: ["reliability", "progress"],
    refresh: () => Promise.all([statistics.refresh(), checks?.refresh()]),
  };
}

function described(row) {
  const name = [row.label, row.criterion ? ` (${row.criterion})` : ""].join("");
  return h("div", {}, h("strong", {}, name), row.explanation ? h("p", { class: "small muted m-meaning" }, row.explanation) : null);
}

function checksTable(api) {
  const resolve = async (check, verdict) => {
    try {
      await post(`${api}/resolve-check`, { check, verdict });
      toast(verdict === "right" ? "The check counts." : "The check does not count.");
    } catch (refused) {
      toast(refused.message);
    }
  };
  const button = (row, word) => h("button", { type: "button", class: "m-small", onclick: () => resolve(row.key, word) }, `Its answer is ${word}`);
  return new Table(part("checks-table"), {
    url: `${api}/tables/checks`,
    label: "Checks",
    empty: "No check has been answered yet.",
    size: 10,
    columns: [
      { key: "key", title: "Check", cell: (row) => h("span", { dir: "auto" }, row.key) },
      { key: "right", title: "Right", number: true, cell: (row) => number(row.right) },
      { key: "wrong", title: "Wrong", number: true, cell: (row) => number(row.wrong) },
      { key: "disputed", title: "Decision", cell: (row) => (row.disputed && "manage" in document.body.dataset ? h("div", { class: "m-why" }, h("span", { class: "small" }, "most annotators disagree with it"), button(row, "right"), button(row, "wrong")) : row.resolved ? `found ${row.resolved}` : "") },
    ],
  });
}
