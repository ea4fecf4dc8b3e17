/** Charts: pictures that the server draws in the page's colours and width; a new one takes the old one's place when it is there. */

const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 640px)");

export class Charts {
  #shown = new Map();
  #summary = null;

  constructor(api) {
    this.api = api;
    for (const media of [dark, narrow]) media.addEventListener("change", () => this.#summary && this.show(this.#summary));
  }

  /** Show the charts there are, as of the summary's events. */
  show(summary) {
    this.#summary = summary;
    for (const figure of document.querySelectorAll("[data-chart]")) {
      const name = figure.dataset.chart;
      const title = summary.charts[name];
      if (title === undefined) continue;
      this.#draw(figure, name, title, name === "reliability" ? `t${summary.reliability_as_of}` : `s${summary.seq}`);
    }
  }

  #draw(figure, name, title, version) {
    const query = new URLSearchParams({ theme: dark.matches ? "dark" : "light", width: narrow.matches ? 300 : 640, v: version });
    const source = `${this.api}/charts/${name}.svg?${query}`;
    if (this.#shown.get(name) === source) return;
    this.#shown.set(name, source);
    const picture = new Image();
    picture.addEventListener("load", () => {
      if (this.#shown.get(name) !== source) return;
      const image = figure.querySelector("img");
      image.src = source;
      image.width = picture.naturalWidth;
      image.height = picture.naturalHeight;
      image.alt = title;
      for (const link of figure.querySelectorAll("[data-form]")) {
        link.href = `${this.api}/charts/${name}.${link.dataset.form}?download=true`;
        link.setAttribute("aria-label", `Download “${title}” as ${link.textContent}`);
      }
      figure.hidden = false;
    });
    picture.addEventListener("error", () => this.#shown.delete(name));
    picture.src = source;
  }
}
