/** The page's words in the reader's language; English stands in for what a catalogue lacks. */

import * as local from "./local.js";

let messages = {};
let language = "en";

const CHOSEN = "steelyard:language";

export function chosenLanguage(offered) {
  return local.get(CHOSEN) ?? offered;
}

/** Turn the page to a language; where its catalogue cannot be had, the page stays as it is. */
export async function speak(wanted) {
  try {
    const catalogue = await catalogueOf(wanted);
    ({ messages, language } = catalogue);
    document.documentElement.lang = language;
    document.documentElement.dir = catalogue.direction;
  } catch {
    return;
  }
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = t(element.dataset.text);
}

/** Messages are named by their English wording, so English needs no catalogue. */
async function catalogueOf(wanted) {
  if (wanted === "en") return { language: "en", direction: "ltr", messages: {} };
  const { root, scripts } = document.body.dataset;
  const part = scripts === undefined ? "" : `?scripts=${encodeURIComponent(scripts)}`;
  const response = await fetch(`${root}/api/v1/messages/${encodeURIComponent(wanted)}${part}`);
  if (!response.ok) throw new Error(String(response.status));
  return response.json();
}

export async function choose(wanted) {
  local.set(CHOSEN, wanted);
  await speak(wanted);
}

export function currentLanguage() {
  return language;
}

/** Say a message: t("{done} of {limit}", {done: 12, limit: 40}). Plural forms are chosen by the first number. */
export function t(message, values = {}) {
  const entry = messages[message] || message;
  const words = Array.isArray(entry) ? pluralForm(entry, values) : entry;
  return words.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === "number" ? number(value) : String(value);
  });
}

const CATEGORIES = ["zero", "one", "two", "few", "many", "other"];

/** Catalogues have a form for each category that whole numbers have in the language, in the order of CLDR. */
function pluralForm(forms, values) {
  const rules = new Intl.PluralRules(language);
  const used = new Set(Array.from({ length: 200 }, (_, count) => rules.select(count)));
  const place = CATEGORIES.filter((name) => used.has(name)).indexOf(
    rules.select(Object.values(values).find((value) => typeof value === "number") ?? 0),
  );
  return forms[Math.min(Math.max(place, 0), forms.length - 1)];
}

/** A number as the reader writes it, in the digits that are on the keys. */
export function number(value) {
  return new Intl.NumberFormat(`${language}-u-nu-latn`, { maximumFractionDigits: 2 }).format(value);
}
