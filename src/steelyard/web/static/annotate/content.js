import { h, shorten, uniqueId } from "./dom.js";
import { t } from "./messages.js";

/** What there is to judge: texts, pictures, sound, what is shown beside them, and what would have been right. */

function media({ kind, url }, name) {
  if (kind === "image") return h("img", { class: "media", src: url, alt: name });
  if (kind === "pdf") return h("a", { class: "media", href: url, target: "_blank" }, name);
  return h(kind, { class: "media", src: url, controls: true, preload: "metadata", "aria-label": name });
}

/** One thing to judge. `position` (from 0) names it where it has no words of its own. */
export function itemContent(item, position) {
  const id = uniqueId("item");
  const body = h("div", { class: "content", id, dir: item.dir, "data-position": position, html: item.html });
  const words = body.querySelector(".turn-text, .field-text") ?? body;
  const name = shorten(words.textContent) || t("Number {number}", { number: position + 1 });
  if (item.media) body.append(media(item.media, name));
  if (item.media_missing)
    body.append(h("p", { class: "error" }, t("Some content cannot be shown here. Please flag this task.")));
  if (!body.textContent.trim()) body.setAttribute("aria-label", name);
  const short = body.textContent.trim().length <= 40;
  if (short && words === body && !item.media) body.classList.add("brief");
  return { element: body, id, name };
}

function panel(title, html) {
  const heading = uniqueId("panel");
  return h(
    "section",
    { class: "panel", "aria-labelledby": heading },
    h("h2", { id: heading, class: "panel-title" }, h("bdi", {}, title)),
    h("div", { class: "content", dir: "auto", html }),
  );
}

/** The context and the reference of an item, or those that all items of a task share; often none. The study may name them. */
export function panels(holder, page) {
  return [
    holder.context_html ? panel(page.context_label || t("Context"), holder.context_html) : null,
    holder.reference_html ? panel(page.reference_label || t("Reference"), holder.reference_html) : null,
  ].filter(Boolean);
}

// Within a sentence that may run the other way.
const isolated = (text) => `\u2068${text}\u2069`;

/** What would have been right, and why, where the answer is known. */
export function explained({ right, expected, feedback_html: html }) {
  return [
    right ? null : h("p", { dir: "auto" }, t("Expected: {answer}", { answer: isolated(expected) })),
    html ? h("div", { class: "content", dir: "auto", html }) : null,
  ];
}
