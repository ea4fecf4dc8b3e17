import { h } from "../../annotate/dom.js";
import { post, read, toast } from "../api.js";
import { announcement, button, details, generatedField, labelled, section, selectField } from "./controls.js";
import { change, draft, finish, get, set, valuesChanged } from "./draft.js";
import { SETTINGS } from "./words.js";

/** Step 5: who takes part and how they get here; then the study is created. */

const { study } = document.body.dataset;
const absolute = (link) => (link.startsWith("/") ? `${location.origin}${link}` : link);

export function shareStep({ render, forms, goTo, languages }) {
  return [
    study ? linksSection(render) : h("p", { class: "muted" }, "You get the link for your annotators as soon as the study is created."),
    section(
      "Joining",
      null,
      openField(),
      selectField({ label: "Language of the annotator page", help: "Buttons and messages; your question and items stay as you wrote them.", path: "annotators.language", options: [["", "The language of each browser"], ...languages] }),
      generated(forms, "annotators", ["max_tasks", "contact"]),
      details("More", {}, generated(forms, "annotators", ["lease_minutes", "revisable_answers"]), generated(forms, "page", ["prefetch"])),
    ),
    panelSection(forms, render),
    prolificSection(forms, render),
    finishSection(goTo),
  ];
}

function generated(forms, table, names) {
  return names.map((name) => generatedField(forms.sections[table].find((about) => about.name === name), `${table}.${name}`, SETTINGS[`${table}.${name}`]));
}

function openField() {
  const open = get("annotators.open") ?? true;
  const options = [[true, "Anyone with the link", "They choose a name and start."], [false, "Invited people only", "Each person gets a personal link."]];
  const inputs = options.map(([value], place) => {
    const input = h("input", { type: "radio", name: "open", id: `open-${place}` });
    input.checked = value === open;
    input.addEventListener("change", () => {
      set("annotators.open", value ? undefined : false);
      valuesChanged();
    });
    return input;
  });
  return h("fieldset", { class: "n-stack", "data-path": "annotators.open" }, h("legend", { class: "n-label" }, "Who may join"), options.map(([, words, help], place) => h("div", { class: "n-check" }, inputs[place], h("label", { for: `open-${place}` }, words, h("span", { class: "small muted" }, ` ${help}`)))));
}

function toggled(label, help, path, blank, render) {
  const box = h("input", { type: "checkbox", id: `toggle-${path}` });
  box.checked = get(path) !== undefined;
  box.addEventListener("change", () => {
    set(path, box.checked ? blank : undefined);
    change({ values: draft.values }, { now: true });
    render({ focus: box.id });
  });
  return { box, element: labelled({ label, help, control: box, check: true }) };
}

function panelSection(forms, render) {
  const { box, element } = toggled("Participants come from a panel", "The panel adds the participant's id to the link, and participants return to it by a code or a link.", "link", { participant_parameter: "PROLIFIC_PID" }, render);
  const parts = box.checked ? [generated(forms, "link", ["completed", "screened_out", "failed"]), details("Names of the link's parameters", {}, generated(forms, "link", ["participant_parameter", "study_parameter", "session_parameter", "study_id", "pattern", "signed"]))] : [];
  return details("Panel", { open: box.checked, note: "any provider that sends participants by a link" }, element, parts);
}

function prolificSection(forms, render) {
  const { box, element } = toggled("Run this study on Prolific", "Steelyard creates the study on Prolific, and pays approved participants after you confirm.", "prolific", { places: 20 }, render);
  const needs = h("ol", { class: "n-list" }, h("li", {}, "A server that participants can reach, with its public address below."), h("li", {}, "Your API token in the server's environment, as STEELYARD_PROLIFIC_TOKEN."), h("li", {}, "A number of tasks per annotator (above) and the pay (step 3), from which the reward follows."));
  const names = forms.sections.prolific.map(({ name }) => name);
  const main = ["places", "url", "reward", "countries", "languages"];
  const parts = box.checked ? [needs, generated(forms, "prolific", main), details("More", {}, generated(forms, "prolific", names.filter((name) => !main.includes(name))))] : [];
  return details("Prolific", { open: box.checked }, element, parts);
}

function finishSection(goTo) {
  const place = announcement();
  const remaining = h("div", { class: "n-stack" });
  const create = button(study ? "Save changes" : "Create study", async () => {
    place.say(h("p", { class: "late" }, study ? "Saving…" : "Creating the study…"));
    create.disabled = true;
    try {
      const saved = await finish();
      addEventListener("beforeunload", (event) => event.stopImmediatePropagation(), { capture: true });
      location.assign(study ? saved.url : `${saved.url}edit?created#share`);
    } catch (refused) {
      create.disabled = false;
      const problems = refused.body?.problems;
      place.fail(problems?.length ? `${problems[0].what} ${problems[0].remedy}` : refused.message);
      show();
    }
  }, { kind: "primary" });
  function show() {
    const { problems } = draft.state;
    create.setAttribute("aria-disabled", String(problems.length > 0));
    remaining.replaceChildren(
      ...(problems.length
        ? [h("p", {}, "Before the study can be created:"), h("ul", { class: "n-list" }, problems.map((problem) => h("li", {}, h("a", { href: `#${problem.step}`, onclick: (event) => { event.preventDefault(); goTo(problem.step, { all: true }); } }, `${problem.what} ${problem.remedy}`))))]
        : [h("p", { class: "m-good" }, study ? "Everything is complete." : "Everything is complete. You can still change most things later.")]),
    );
  }
  show();
  const element = section(study ? "Save" : "Create", null, remaining, h("div", { class: "row" }, create), place.element);
  element.update = show;
  return element;
}

// Links of a study that exists

function copyRow(label, link) {
  const input = h("input", { type: "text", readonly: true, value: absolute(link) });
  input.addEventListener("focus", () => input.select());
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(input.value);
      toast("Copied.");
    } catch {
      input.focus();
      toast("Press Ctrl+C to copy.");
    }
  }, { label: `Copy: ${label}` });
  return labelled({ label, control: h("div", { class: "n-copy" }, input, copy), inputs: [input] });
}

function linksSection() {
  const place = h("div", { class: "n-stack" }, h("p", { class: "late muted" }, "Loading the links…"));
  const announce = announcement();
  const url = `${document.body.dataset.root}/api/v1/studies/${study}/manage`;
  const load = async (fresh = []) => {
    try {
      const sharing = await read(`${url}/sharing`);
      place.replaceChildren(...links(sharing, fresh, url, load, announce));
    } catch (refused) {
      place.replaceChildren(h("p", { class: "m-notice", role: "alert" }, refused.message));
    }
  };
  load();
  return section("Links", null, place, announce.element);
}

function links(sharing, fresh, url, load, announce) {
  const names = h("textarea", { rows: 3, placeholder: "ann\nbob" });
  const inviteThem = button("Create links", async () => {
    const list = names.value.split(/[\n,;]/).map((name) => name.trim()).filter(Boolean);
    if (!list.length) {
      announce.fail("Write at least one name.");
      return;
    }
    try {
      const made = await post(`${url}/invitations`, { names: list });
      announce.say(h("p", {}, `${made.length} ${made.length === 1 ? "link" : "links"} created. They are shown only now: copy or download them.`));
      load(made);
    } catch (refused) {
      announce.fail(refused.message);
    }
  });
  const revokeOne = (name) => async () => {
    try {
      await post(`${url}/invitations/revoke`, { names: [name] });
      announce.say(h("p", {}, `The links of ${name} no longer work. Their answers are kept.`));
      load();
    } catch (refused) {
      announce.fail(refused.message);
    }
  };
  const invited = sharing.invitations.map(({ annotator, answered }) => h("li", {}, h("span", { dir: "auto" }, annotator), h("span", { class: "small muted" }, ` ${answered} answered`), button("Revoke", revokeOne(annotator), { kind: "quiet", label: `Revoke the links of ${annotator}` })));
  return [
    copyRow("Link for annotators", sharing.link),
    sharing.is_open ? null : h("p", { class: "small muted" }, "Only people with a personal link can take part."),
    details(
      "Personal invitations",
      { open: !sharing.is_open || fresh.length > 0 || invited.length > 0 },
      labelled({ label: "Names", help: "One per line. Each person gets a personal link, which works on any device.", control: names }),
      inviteThem,
      fresh.length ? h("div", { class: "n-stack" }, fresh.map(({ annotator, link }) => copyRow(annotator, link)), button("Download as CSV", () => download(fresh))) : null,
      invited.length ? h("ul", { class: "n-invited" }, invited) : null,
    ),
    details(
      "Links for a panel",
      { open: Boolean(sharing.panel_link) },
      copyRow("Study URL for Prolific", sharing.prolific_link),
      h("p", { class: "small muted" }, "Choose “I'll use URL parameters” on Prolific; it fills in the parts in brackets. Completion codes: set them below under Panel, or they are created by Steelyard if it runs the study on Prolific."),
      sharing.panel_link ? copyRow("Link for any panel", sharing.panel_link) : null,
      sharing.panel_link ? h("p", { class: "small muted" }, "The panel replaces the words in capitals; only the participant is required.") : h("p", { class: "small muted" }, "These links identify participants once “Participants come from a panel” is switched on below."),
    ),
  ].filter(Boolean);
}

function download(rows) {
  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
  const csv = ["annotator,link", ...rows.map(({ annotator, link }) => `${quoted(/^[=+\-@]/.test(annotator) ? `'${annotator}` : annotator)},${quoted(absolute(link))}`)].join("\r\n");
  const url = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
  const anchor = h("a", { href: url, download: "invitations.csv" });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
