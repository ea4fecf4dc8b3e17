import { h } from "../annotate/dom.js";
import { post, toast } from "./api.js";
import { interval, number } from "./cells.js";
import { askReason } from "./dialogs.js";
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
  const unjudged = part("unjudged-table") === null ? null : unjudgedTable(api);
  return {
    parts: ["reliability", "progress"],
    refresh: () => Promise.all([statistics.refresh(), checks?.refresh(), unjudged?.refresh()]),
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

function unjudgedTable(api) {
  const pending = new Map();
  const decide = async (what, item, reason, words, undo) => {
    try {
      await post(`${api}/${what}`, { item, reason });
    } catch (refused) {
      toast(refused.message);
      return;
    }
    pending.set(item, what === "set-aside" ? reason : "");
    await table.refresh();
    toast(words, undo);
  };
  const askAgain = (item, reason) => decide("ask-again", item, "", `${item} is asked about again.`, () => setAside(item, reason));
  const setAside = (item, reason) => decide("set-aside", item, reason, `${item} is set aside.`, () => askAgain(item, reason));
  const chooseAside = async (item) => {
    const reason = await askReason({
      title: `Set ${item} aside?`,
      why: "Nobody is asked about it any more. Its judgments are kept and count as before. You can undo it.",
      action: "Set aside",
      needed: true,
    });
    if (reason !== null) await setAside(item, reason);
  };
  const asideOf = (row) => pending.get(row.item) ?? row.set_aside;
  const button = (row) => {
    const reason = asideOf(row);
    const act = reason ? () => askAgain(row.item, reason) : () => chooseAside(row.item);
    const words = reason ? "Ask again" : "Set aside…";
    return h("button", { type: "button", class: "m-small", onclick: act, "aria-label": `${words} ${row.item}` }, words);
  };
  const table = new Table(part("unjudged-table"), {
    url: `${api}/tables/unjudged`,
    label: "Items that cannot be judged",
    empty: "No annotator has answered “cannot judge” yet.",
    size: 10,
    cards: true,
    columns: [
      { key: "item", title: "Item", heading: true, cell: (row) => h("a", { href: `item?id=${encodeURIComponent(row.item)}`, dir: "auto" }, row.item) },
      { key: "cannot_judge", title: "Cannot judge", number: true, cell: (row) => `${number(row.cannot_judge)} of ${number(row.answers)}` },
      { key: "reasons", title: "Reasons", sort: false, wide: true, cell: (row) => h("span", { class: "small", dir: "auto" }, row.reasons || "–") },
      { key: "set_aside", title: "Set aside", wide: true, cell: (row) => h("span", { class: "small", dir: "auto" }, asideOf(row) || "no") },
      "manage" in document.body.dataset && { key: "action", title: "Actions", sort: false, action: true, cell: button },
    ].filter(Boolean),
  });
  return { refresh: () => (pending.clear(), table.refresh()) };
}
