/** Small pictures of the question types, drawn with the colours of the page. */

const NS = "http://www.w3.org/2000/svg";

function svg(...shapes) {
  const picture = document.createElementNS(NS, "svg");
  picture.setAttribute("viewBox", "0 0 96 56");
  picture.setAttribute("aria-hidden", "true");
  picture.setAttribute("class", "n-picture");
  for (const [tag, attributes] of shapes) {
    const shape = document.createElementNS(NS, tag);
    for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, value);
    picture.append(shape);
  }
  return picture;
}

const box = (x, y, width, height, kind = "n-line") => ["rect", { x, y, width, height, rx: 3, class: kind }];
const rail = (x, y, width) => ["rect", { x, y, width, height: 3, rx: 1.5, class: "n-fill" }];
const dot = (cx, cy, r = 5, kind = "n-accent") => ["circle", { cx, cy, r, class: kind }];
const line = (x, y, width) => ["rect", { x, y, width, height: 4, rx: 2, class: "n-text" }];

export const PICTURES = {
  direct: () => svg(line(16, 14, 64), rail(16, 36, 64), dot(58, 37.5, 7)),
  likert: () => svg(line(16, 14, 64), ...[16, 32, 48, 64, 80].map((x, place) => dot(x, 38, 6, place === 3 ? "n-accent" : "n-line"))),
  choice: () => svg(line(16, 8, 64), box(16, 18, 64, 10), box(16, 31, 64, 10, "n-accent"), box(16, 44, 64, 10)),
  pairwise: () => svg(box(8, 10, 36, 36, "n-accent"), box(52, 10, 36, 36), line(15, 22, 22), line(15, 30, 16), line(59, 22, 22), line(59, 30, 16)),
  best_worst: () => svg(...[6, 18, 30, 42].flatMap((y, place) => [line(26, y + 3, 44), dot(14, y + 5, 4, place === 1 ? "n-accent" : "n-line"), dot(82, y + 5, 4, place === 3 ? "n-warm" : "n-line")])),
  scored_ranking: () => svg(...[6, 18, 30, 42].flatMap((y, place) => [line(6, y + 3, 24), rail(38, y + 4, 50), dot(38 + [40, 14, 28, 6][place], y + 5, 4.5)])),
  error_spans: () => svg(line(10, 8, 76), line(10, 18, 26), box(40, 15, 26, 10, "n-warm"), line(70, 18, 16), line(10, 28, 60), rail(16, 44, 64), dot(58, 45.5, 6)),
  ranking: () => svg(...[4, 18, 32, 46].flatMap((y, place) => [box(26, y, 60, 9), dot(13, y + 4.5, 4.5, place ? "n-line" : "n-accent"), line(32, y + 2.5, [44, 30, 38, 26][place])])),
};
