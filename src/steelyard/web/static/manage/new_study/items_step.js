import { h, uniqueId } from "../../annotate/dom.js";
import { announcement, button, details, labelled, section, uploadWithProgress } from "./controls.js";
import { changeColumns, createFromJudgments, draft, refresh, uploadItems, uploadMedia } from "./draft.js";

/** Step 1: the items, from a file or pasted lines, and what each column holds. */

const ROLES = {
  text: "Text to judge",
  id: "Identifier",
  system: "System",
  source: "Source",
  reference: "Reference",
  media: "Image, audio, video, PDF",
  gold: "Known answer",
  tags: "Tags",
  output: "Outputs of a system",
  extra: "Extra information",
  ignore: "Leave out",
};
const SEPARATORS = { ",": "Comma", ";": "Semicolon", "\t": "Tab", "|": "Bar" };
const ACCEPTED = ".csv,.tsv,.txt,.jsonl,.ndjson,.json,.parquet,.xlsx";
const MEDIA = "image/png,image/jpeg,image/gif,image/webp,image/avif,audio/*,video/mp4,video/webm,video/ogg,application/pdf";

export function itemsStep({ render }) {
  const place = announcement();
  const { items, study, item_count: count } = draft.state;

  async function send(file) {
    if (await uploadWithProgress([file], (one, options) => uploadItems(one, one.name, options), place)) render({ focus: "items-table" });
  }

  const known = study && !items
    ? h("p", { class: "m-notice" }, `The study has ${count.toLocaleString("en")} items. Upload a new file only to add items: it must contain all existing items, unchanged.`)
    : null;
  return [
    h("p", { class: "muted" }, "An item is one thing to judge: a sentence, a translation, an image. Use one row per item."),
    known,
    dropZone(send, place),
    items ? fileSection(items, render, place) : null,
    mediaSection(render),
  ];
}

function dropZone(send, place) {
  const { items } = draft.state;
  const input = h("input", { type: "file", accept: ACCEPTED, class: "visually-hidden", id: "items-file" });
  input.addEventListener("change", () => {
    if (input.files[0]) send(input.files[0]);
    input.value = "";
  });
  const zone = h(
    "div",
    { class: "n-drop" },
    input,
    h("label", { for: "items-file", class: `button ${items ? "" : "primary"}` }, items ? "Choose another file" : "Choose a file"),
    h("p", {}, "or drop it here"),
    h("p", { class: "small muted" }, "CSV, TSV, Excel (.xlsx), JSON lines, Parquet or plain text, up to 50 MB. Column names do not matter."),
  );
  for (const kind of ["dragover", "dragenter"]) {
    zone.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.classList.add("n-over");
    });
  }
  for (const kind of ["dragleave", "drop"]) zone.addEventListener(kind, () => zone.classList.remove("n-over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files[0]) send(event.dataTransfer.files[0]);
  });
  const lines = h("textarea", { rows: 6, dir: "auto", placeholder: "The first item\nThe second item" });
  const paste = details(
    "Paste lines instead",
    {},
    labelled({ label: "One item per line", control: lines }),
    button("Use these lines", () => {
      if (!lines.value.trim()) {
        place.fail("There are no lines yet. Write or paste at least two.");
        return;
      }
      send(new File([lines.value], "pasted lines.txt", { type: "text/plain" }));
    }),
  );
  return h("div", { class: "n-stack", "data-path": "items" }, zone, place.element, paste);
}

function fileSection(items, render, place) {
  const columns = async (changes, focus) => {
    place.say(h("p", { class: "late muted" }, "Reading the file…"));
    try {
      await changeColumns(changes);
      place.say();
      render({ focus });
    } catch (refused) {
      place.fail(refused.message);
    }
  };
  const parts = [judgmentsOffer(items), summary(items), headerQuestion(items, columns)];
  for (const { what, remedy } of items.problems) parts.push(h("p", { class: "m-notice", role: "alert" }, `${what} ${remedy}`));
  const repeats = items.drop_repeats || items.problems.some(({ what }) => what.includes("appears twice"));
  if (repeats) parts.push(repeatsField(items, columns));
  if (items.columns.length) parts.push(tableOf(items, columns));
  parts.push(...items.notes.map((note) => h("p", { class: "small muted" }, note)));
  parts.push(readingOptions(items, columns));
  return section(items.name, null, parts);
}

/** Say that the file holds judgments, not only items, and offer a study with their scores. */
function judgmentsOffer({ name, judgments }) {
  if (!judgments) return null;
  if (judgments.problem) {
    return h("p", { class: "m-notice" }, `${name} contains judgments, but they cannot be used: ${judgments.problem} You can still ask new annotators about the items.`);
  }
  const { tool, kind, count, annotators, items } = judgments;
  const number = (value, noun) => `${value.toLocaleString("en")} ${value === 1 ? noun : `${noun}s`}`;
  const by = annotators ? ` by ${number(annotators, "annotator")}` : "";
  const place = announcement();
  const create = button(
    "Create a study from these judgments",
    async () => {
      create.disabled = true;
      place.say(h("p", { class: "late muted" }, "Importing the judgments…"));
      try {
        const saved = await createFromJudgments();
        location.assign(saved.url);
      } catch (refused) {
        create.disabled = false;
        const problems = refused.body?.problems;
        place.fail(problems?.length ? `${problems[0].what} ${problems[0].remedy}` : refused.message);
      }
    },
    { kind: "primary" },
  );
  return h(
    "div",
    { class: "m-notice n-stack", role: "group", "aria-label": "Judgments in this file" },
    h("p", {}, h("strong", {}, tool ? `This is an export of ${tool} with judgments: ` : "This file contains judgments: "), `${number(count, kind.replace(/s$/, ""))} of ${number(items, "item")}${by}.`),
    h("p", {}, "Do you want scores, agreement and a report for these judgments? Create a study from them. To collect new judgments of the same items instead, continue below."),
    h("div", { class: "row" }, create),
    place.element,
  );
}

function summary(items) {
  const { item_count: count, systems, has_sources: sources } = draft.state;
  const words = [`${count.toLocaleString("en")} ${count === 1 ? "item" : "items"}`];
  if (systems.length > 1) words.push(`outputs of ${systems.length} systems: ${systems.slice(0, 6).join(", ")}${systems.length > 6 ? "…" : ""}`);
  if (sources) words.push("compared within the same source");
  return items.problems.length ? null : h("p", { id: "items-count" }, h("strong", {}, words[0]), words.length > 1 ? ` · ${words.slice(1).join(" · ")}` : "");
}

function headerQuestion(items, columns) {
  if (items.is_header_certain) return null;
  const first = items.first_row.filter(Boolean).join(" | ");
  return h(
    "div",
    { class: "m-notice", role: "group", "aria-label": "Is the first row a header?" },
    h("p", {}, "Is the first row an item, or does it name the columns? ", h("strong", { dir: "auto" }, first)),
    h("div", { class: "row" }, button("It is an item", () => columns({ has_header: false }, "items-table")), button("It names the columns", () => columns({ has_header: true }, "items-table"))),
  );
}

function repeatsField(items, columns) {
  const control = h("input", { type: "checkbox" });
  control.checked = items.drop_repeats;
  control.addEventListener("change", () => columns({ drop_repeats: control.checked }));
  return labelled({ label: "Leave out repeated rows", control, check: true });
}

function tableOf(items, columns) {
  const title = uniqueId("table");
  const heads = items.columns.map((name) => {
    const select = h("select", { "aria-label": `What the column ${name} holds`, class: "n-role" }, Object.entries(ROLES).map(([role, words]) => h("option", { value: role }, words)));
    select.value = items.roles[name] ?? "extra";
    select.dataset.role = select.value;
    select.addEventListener("change", () => columns({ roles: changedRoles(items, name, select.value) }, "items-table"));
    return h("th", { scope: "col" }, h("span", { class: "n-column", dir: "auto" }, name), select);
  });
  const shown = (name) => !["ignore"].includes(items.roles[name]);
  const rows = items.rows.map((row) => h("tr", {}, row.map((cell, place) => h("td", { dir: "auto", class: shown(items.columns[place]) ? null : "n-left-out" }, h("span", { class: "n-cell" }, cell)))));
  return h(
    "div",
    { class: "n-stack" },
    h("p", { class: "small muted", id: title }, `The first ${items.rows.length} of ${items.total.toLocaleString("en")} rows. Correct the role of a column if the guess is wrong. A source is shown beside the item; extra information is kept, and shown only if you select it in the next step.`),
    h("div", { class: "m-scroll n-scroll", tabindex: "0", role: "region", "aria-labelledby": title }, h("table", { class: "m-table n-table", id: "items-table", "aria-describedby": title }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows))),
  );
}

/** One column has each role: the one that had it before becomes extra information. */
function changedRoles(items, name, role) {
  const roles = { ...items.roles };
  const several = ["output", "extra", "ignore"].includes(role);
  for (const other of items.columns) {
    if (other === name) continue;
    if (!several && roles[other] === role) roles[other] = "extra";
    if (role === "output" && roles[other] === "text") roles[other] = "output";
    if (role === "text" && roles[other] === "output") roles[other] = "extra";
  }
  roles[name] = role;
  return roles;
}

function readingOptions(items, columns) {
  const parts = [];
  const header = h("input", { type: "checkbox" });
  header.checked = items.has_header;
  header.addEventListener("change", () => columns({ has_header: header.checked }));
  if (items.separator || items.encoding || items.sheet) parts.push(labelled({ label: "The first row names the columns", control: header, check: true }));
  const choose = (label, key, options, value) => {
    const select = h("select", {}, options.map(([option, words]) => h("option", { value: option }, words)));
    select.value = value;
    select.addEventListener("change", () => columns({ [key]: select.value }));
    parts.push(labelled({ label, control: select }));
  };
  if (items.separator) choose("Columns are separated by", "separator", Object.entries(SEPARATORS), items.separator);
  if (items.encoding) choose("Encoding", "encoding", Object.entries(items.encodings), items.encoding);
  if (items.sheets.length > 1) choose("Sheet", "sheet", items.sheets.map((name) => [name, name]), items.sheet);
  return parts.length ? details("How the file is read", {}, parts) : null;
}

function mediaSection(render) {
  const { media, items } = draft.state;
  const place = announcement();
  const input = h("input", { type: "file", multiple: true, accept: MEDIA, id: "media-files", class: "visually-hidden" });
  input.addEventListener("change", async () => {
    const files = [...input.files];
    input.value = "";
    if (!files.length) return;
    const complete = await uploadWithProgress(files, uploadMedia, place);
    await refresh();
    if (complete) render({ focus: "media-files" });
  });
  const names = media.missing.slice(0, 5).join(", ") + (media.missing_count > 5 ? " …" : "");
  const status = [];
  if (media.needed) status.push(`${media.needed - media.missing_count} of ${media.needed} files that the items name are uploaded.`);
  else if (media.count) status.push(`${media.count} files are uploaded. No column of the items is marked as image, audio, video or PDF.`);
  if (media.missing_count) status.push(`Missing: ${names}`);
  if (media.unused_count && media.needed) status.push(`${media.unused_count} uploaded files belong to no item.`);
  const needsMedia = media.needed > 0 || Object.values(items?.roles ?? {}).includes("media");
  return details(
    "Images, audio, video and PDFs",
    { open: needsMedia || media.count > 0 },
    h("p", { class: "muted small" }, "Upload the files that a column of your table names, such as cat.png, or report.pdf#page=3 for a page of a PDF. Items without text show the file alone."),
    h("div", { class: "row" }, input, h("label", { for: "media-files", class: "button" }, "Upload media files")),
    place.element,
    status.map((words) => h("p", { class: media.missing_count ? "m-notice" : "small" }, words)),
  );
}
