import { h, uniqueId } from "../annotate/dom.js";
import { read } from "./api.js";

/**
 * A table that the server sorts, searches and cuts into pages.
 * `columns` are {key, title, cell(row), help (its meaning), number (right-aligned), wide (left out on phones), sort (false: not),
 * heading (of its row), action (buttons)}; columns that the server leaves out, because they are empty, are hidden.
 * `rowClass(row, previous)` is the class of a row. With `cards`, a phone shows each row as a card with all columns.
 */
export class Table {
  #offset = 0;
  #sort = null;
  #descending = false;
  #search = "";
  #wanted = 0;

  constructor(place, { url, columns, label, search = "", empty = "Nothing yet.", size = 25, sort = null, descending = false, rowClass = () => "", cards = false, further = "" }) {
    // A phone shows fewer rows at a time, so that the parts below stay within reach.
    const rows = matchMedia("(max-width: 640px)").matches ? Math.min(size, 10) : size;
    Object.assign(this, { place, url, columns: [...columns], empty, size: rows, rowClass, further });
    this.#sort = sort;
    this.#descending = descending;
    this.heads = columns.map((column) => this.#head(column));
    this.body = h("tbody", {});
    this.words = h("p", { class: "small muted m-table-words", role: "status" }, "Computing…");
    this.before = h("button", { type: "button", onclick: () => this.#turn(-1) }, "← Previous");
    this.after = h("button", { type: "button", onclick: () => this.#turn(1) }, "Next →");
    this.pages = h("div", { class: "m-pages", hidden: true }, this.before, this.after);
    this.#skeleton(Math.min(rows, 6));
    this.headRow = h("tr", {}, this.heads);
    this.chooser = h("div");
    const table = h("table", { class: cards ? "m-table m-cards" : "m-table", "aria-label": label }, h("thead", {}, this.headRow), this.body);
    this.scroll = h("div", { class: "m-scroll", tabindex: "0", role: "region", "aria-label": `${label}: table` }, table);
    place.replaceChildren(search ? this.#searchBox(search) : "", this.chooser, this.scroll, h("div", { class: "m-table-foot" }, this.words, this.pages), this.#meanings());
  }

  /** Grey rows until the first ones are there, so that the page does not jump. */
  #skeleton(rows) {
    const cells = () => this.columns.map((column) => h("td", { class: this.#classes(column) }, h("span", { class: "m-skeleton-line" }, " ")));
    this.body.replaceChildren(...Array.from({ length: rows }, () => h("tr", { "aria-hidden": "true" }, cells())));
  }

  /** What the columns mean, for those who have no pointer to hover with. */
  #meanings() {
    const explained = this.columns.filter((column) => column.help);
    if (!explained.length) return "";
    this.explanations = new Map(explained.map((column) => [column, [h("dt", {}, column.title), h("dd", {}, column.help)]]));
    const list = [...this.explanations.values()].flat();
    this.meanings = h("details", { class: "m-details" }, h("summary", { class: "small" }, "What the columns mean"), h("dl", { class: "m-glossary" }, list));
    return this.meanings;
  }

  #head(column) {
    const attributes = { scope: "col", class: this.#classes(column), title: column.help };
    if (column.sort === false || !column.key) return h("th", attributes, column.title);
    const button = h("button", { type: "button", class: "m-sort", onclick: () => this.#sortBy(column) }, column.title);
    return h("th", attributes, button);
  }

  #cell(column, row) {
    const content = column.cell(row);
    const isBlank = content === "–" || content === "0" || content?.textContent === "–";
    const attributes = { class: [this.#classes(column), isBlank && "m-blank"].filter(Boolean).join(" ") || null, "data-label": column.title || null };
    return column.heading ? h("th", { ...attributes, scope: "row" }, content) : h("td", attributes, content);
  }

  #classes(column) {
    return [column.heading && "m-heading", column.number && "m-number", column.wide && "m-wide", column.action && "m-action"].filter(Boolean).join(" ") || null;
  }

  #searchBox(label) {
    const id = uniqueId("search");
    const input = h("input", { type: "search", id, placeholder: label, autocomplete: "off" });
    let timer;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        this.#search = input.value;
        this.#offset = 0;
        this.refresh();
      }, 200);
    });
    return h("div", { class: "m-search" }, h("label", { for: id, class: "visually-hidden" }, label), input);
  }

  /** Columns of the items beyond the usual ones, to show and to filter by; `further` is what their keys begin with. */
  #offer(columns, empty) {
    const keys = columns.filter((key) => this.further && key.startsWith(this.further) && !empty?.includes(key));
    if (this.offered || !keys.length) return;
    this.offered = true;
    const nameOf = (key) => key.slice(this.further.length);
    const boxes = keys.map((key) => {
      const input = h("input", { type: "checkbox", onchange: () => this.#toggle(key, nameOf(key), input.checked) });
      return h("label", { class: "m-choice" }, input, " ", h("span", { dir: "auto" }, nameOf(key)));
    });
    const column = h("select", { "aria-label": "Column to filter by" }, h("option", { value: "" }, "all items"), keys.map((key) => h("option", { value: key }, nameOf(key))));
    const value = h("input", { type: "text", placeholder: "value", dir: "auto", "aria-label": "Value to filter by" });
    const apply = () => {
      this.where = column.value && value.value.trim() ? `${column.value}=${value.value.trim()}` : "";
      this.#offset = 0;
      this.refresh();
    };
    column.addEventListener("change", apply);
    value.addEventListener("change", apply);
    this.chooser.append(
      h(
        "details",
        { class: "m-details" },
        h("summary", { class: "small" }, "Columns and filter"),
        h("div", { class: "m-choices", role: "group", "aria-label": "Columns to show" }, boxes),
        h("div", { class: "m-choices" }, h("span", {}, "Only items with"), column, h("span", { "aria-hidden": "true" }, "="), value),
      ),
    );
  }

  #toggle(key, title, shown) {
    const place = this.columns.findIndex((column) => column.key === key);
    if (shown && place < 0) {
      const column = { key, title, cell: (row) => h("span", { class: "m-text", dir: "auto" }, row[key] ?? "–") };
      this.columns.push(column);
      this.heads.push(this.#head(column));
      this.headRow.append(this.heads.at(-1));
    } else if (!shown && place >= 0) {
      this.columns.splice(place, 1);
      this.heads.splice(place, 1)[0].remove();
    }
    this.refresh();
  }

  #sortBy(column) {
    const same = this.#sort === column.key;
    this.#descending = same ? !this.#descending : Boolean(column.number);
    this.#sort = column.key;
    this.#offset = 0;
    this.refresh();
  }

  #turn(by) {
    this.#offset = Math.max(0, this.#offset + by * this.size);
    this.refresh();
  }

  /** Load the page that is looked at again. */
  async refresh() {
    const asked = (this.#wanted += 1);
    const query = new URLSearchParams({ search: this.#search, offset: this.#offset, limit: this.size });
    if (this.where) query.set("where", this.where);
    if (this.#sort) query.set("sort", this.#sort);
    if (this.#sort) query.set("descending", this.#descending);
    let page;
    try {
      page = await read(`${this.url}?${query}`);
    } catch (refused) {
      this.words.textContent = refused.message;
      this.words.className = "small error m-table-words";
      return;
    }
    // Whoever types fast gets the answer to what was typed last.
    if (asked !== this.#wanted) return;
    this.#show(page);
  }

  #show({ rows, total, as_of: asOf, columns, empty_columns: empty }) {
    // The skeleton stays until there is something to show.
    this.words.className = "small muted m-table-words";
    if (asOf === null) {
      this.words.textContent = "Computing…";
      return;
    }
    this.#offer(columns, empty);
    const isShown = ({ key, action }) => !key || action || !columns.length || (columns.includes(key) && !empty?.includes(key));
    const shown = this.columns.map(isShown);
    this.columns.forEach((column, place) => {
      const head = this.heads[place];
      head.hidden = !shown[place];
      for (const element of this.explanations?.get(column) ?? []) element.hidden = !shown[place];
      const sorted = column.key && column.key === this.#sort;
      if (sorted) head.setAttribute("aria-sort", this.#descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.body.replaceChildren(
      ...rows.map((row, number) =>
        h(
          "tr",
          { class: this.rowClass(row, rows[number - 1]) || null },
          this.columns.filter((_, place) => shown[place]).map((column) => this.#cell(column, row)),
        ),
      ),
    );
    this.scroll.hidden = !rows.length;
    const last = Math.min(total, this.#offset + rows.length);
    const range = total > rows.length ? `${(this.#offset + 1).toLocaleString("en")}–${last.toLocaleString("en")} of ${total.toLocaleString("en")}` : "";
    this.words.textContent = rows.length ? range : this.#search || this.where ? "Nothing matches the search." : this.empty;
    this.pages.hidden = total <= this.size;
    this.before.disabled = this.#offset === 0;
    this.after.disabled = last >= total;
  }
}
