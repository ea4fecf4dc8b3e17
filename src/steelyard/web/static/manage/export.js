import { h } from "../annotate/dom.js";
import { post, read } from "./api.js";
import { clock, number } from "./cells.js";

/** The tab Export: creating reports, and downloads. A report is created by the server; this page only watches it. */

const part = (id) => document.getElementById(id);
const WAIT = 700;

export function start({ api }) {
  const url = `${api}/reports`;
  let timer;

  async function watch() {
    clearTimeout(timer);
    let answer;
    try {
      answer = await read(url);
    } catch {
      timer = setTimeout(watch, 5 * WAIT);
      return;
    }
    const running = answer.reports.find((report) => report.state === "running");
    part("reports").replaceChildren(list(answer.reports.filter((report) => report.state === "done"), url));
    if (running) timer = setTimeout(watch, WAIT);
    if (!part("report-form")) return;
    showProgress(running);
    part("report-pdf").disabled = !answer.can_print;
    part("no-pdf").hidden = answer.can_print;
    const newest = answer.reports[0];
    part("report-error").textContent = newest?.error ?? "";
  }

  part("report-form")?.addEventListener("submit", async (event) => {
    event.preventDefault();
    part("report-error").textContent = "";
    const forms = part("report-pdf").checked ? ["html", "pdf"] : ["html"];
    part("create-report").disabled = true;
    try {
      showProgress(await post(url, { forms, real_ids: part("report-ids").checked }));
      watch();
    } catch (refused) {
      part("report-error").textContent = refused.message;
      part("create-report").disabled = false;
    }
  });
  part("real-ids")?.addEventListener("change", (event) => {
    for (const link of part("files").querySelectorAll("a[download]")) {
      const address = new URL(link.href);
      if (event.target.checked) address.searchParams.set("real_ids", "true");
      else address.searchParams.delete("real_ids");
      link.href = address.href;
    }
  });
  watch();
  return { parts: [], refresh: () => {} };
}

function showProgress(report) {
  part("create-report").disabled = Boolean(report);
  const box = part("report-progress");
  box.hidden = !report;
  if (!report) return;
  box.querySelector("progress").value = report.progress;
  part("report-step").textContent = `Creating the report: ${report.step}…`;
}

function list(reports, url) {
  if (!reports.length) return h("p", { class: "muted" }, "Reports that you create are kept here.");
  const rows = reports.map((report) =>
    h(
      "li",
      { class: "card m-report-row" },
      h("div", {}, h("strong", {}, clock(report.created)), h("p", { class: "small muted" }, `${number(report.judgments)} judgments${report.real_ids ? ", annotators' own names" : ""}`)),
      h("div", { class: "row" }, Object.entries(report.files).map(([form, size]) => h("a", { class: "button", href: `${url}/${report.id}.${form}`, download: true }, `Download ${form.toUpperCase()}`, h("span", { class: "small muted" }, ` ${kilobytes(size)}`)))),
    ),
  );
  return h("ul", { class: "m-reports", "aria-label": "Reports" }, rows);
}

function kilobytes(size) {
  return size < 1e6 ? `${Math.ceil(size / 1000)} kB` : `${(size / 1e6).toFixed(1)} MB`;
}
