/**
 * Charts: drawings of the server, in the page's colours, width and typeface. They are part of the page rather than images, as
 * images cannot use the page's typeface. A new drawing takes the old one's place when it is there.
 */

const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 640px)");

let drawings = 0;

/** Fetch a chart and put it into an element; its finding becomes the element's name. */
export async function drawInto(place, address, parameters = {}) {
  const query = new URLSearchParams({ ...drawingOptions(), ...parameters });
  const response = await fetch(`${address}?${query}`);
  if (!response.ok) throw new Error(`The server answered with ${response.status}.`);
  return putDrawing(place, await response.text());
}

/** What a drawing depends on: the page's colours and its width. */
export const drawingOptions = () => ({ theme: dark.matches ? "dark" : "light", width: narrow.matches ? 300 : 640 });

/** Put a drawing into an element; its finding becomes the element's name. */
export function putDrawing(place, svg) {
  drawings += 1;
  // Ids of several drawings in one page must differ.
  const text = svg.replace(/(\bid="|url\(#|href="#)([\w-]+)/g, `$1d${drawings}-$2`);
  const drawing = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (drawing.localName !== "svg") throw new Error("The server did not return a chart.");
  const name = drawing.getAttribute("aria-label");
  for (const element of [drawing, ...drawing.querySelectorAll("*")]) element.removeAttribute("style");
  for (const element of drawing.querySelectorAll("script, foreignObject")) element.remove();
  drawing.removeAttribute("role");
  drawing.setAttribute("aria-hidden", "true");
  place.replaceChildren(document.importNode(drawing, true));
  place.classList.remove("m-skeleton");
  if (name) place.setAttribute("aria-label", name);
  return name;
}

export class Charts {
  #shown = new Map();
  #summary = null;

  constructor(api) {
    this.api = api;
    for (const media of [dark, narrow]) media.addEventListener("change", () => this.#summary && this.show(this.#summary));
  }

  /** Show the charts there are, as of the versions in the summary; resolves when they are drawn. */
  show(summary) {
    this.#summary = summary;
    const drawings = [];
    for (const figure of document.querySelectorAll("[data-chart]")) {
      const { chart, part } = figure.dataset;
      const version = summary.parts[part];
      const isThere = summary.charts.includes(chart);
      // Before its part is computed, nobody knows whether there will be a chart.
      figure.hidden = !isThere && (version !== undefined || summary.judgments === 0);
      if (isThere) drawings.push(this.#draw(figure, chart, version));
    }
    return Promise.all(drawings);
  }

  async #draw(figure, chart, version) {
    const key = [version, dark.matches, narrow.matches].join();
    if (this.#shown.get(chart) === key) return;
    this.#shown.set(chart, key);
    try {
      const name = await drawInto(figure.querySelector(".m-picture"), `${this.api}/charts/${chart}.svg`, { v: version });
      for (const link of figure.querySelectorAll("[data-form]")) {
        link.href = `${this.api}/charts/${chart}.${link.dataset.form}?download=true`;
        link.setAttribute("aria-label", `Download “${name}” as ${link.textContent}`);
      }
    } catch {
      // The next summary tries again.
      this.#shown.delete(chart);
    }
  }
}
