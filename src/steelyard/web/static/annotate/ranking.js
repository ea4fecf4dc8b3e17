import { itemContent, panels } from "./content.js";
import { h, key, uniqueId } from "./dom.js";
import { t } from "./messages.js";
import { addWidget } from "./task.js";

/** Cards to put in order, best first: by dragging the handle, by buttons, or by keys. Cards in one place are tied. */

function ranking(task, page, changed) {
  const mayTie = task.settings.ties !== false;
  let places = task.items.map((item) => [item.id]);
  let touched = false;
  let confirmed = false;

  const said = h("p", { class: "visually-hidden", role: "status" });
  const list = h("ol", { class: "ranking", "aria-labelledby": "question" });
  const cards = new Map(task.items.map((item, position) => [item.id, card(item, position)]));
  const element = h(
    "div",
    { class: "ranking-box" },
    h("p", { class: "ranking-end muted small" }, t("best first")),
    list,
    said,
  );

  function card(item, position) {
    const content = itemContent(item, position);
    const place = h("span", { class: "place", id: uniqueId("place") });
    const handle = h(
      "button",
      {
        type: "button",
        class: "handle",
        "data-no-action": true,
        "aria-labelledby": `${content.id} ${place.id}`,
        "aria-keyshortcuts": mayTie ? "ArrowUp ArrowDown =" : "ArrowUp ArrowDown",
        onpointerdown: (event) => drag(event, item.id),
      },
      h("span", { "aria-hidden": "true" }, "⠿"),
    );
    const button = (face, label, action) =>
      h(
        "button",
        {
          type: "button",
          class: "small-button",
          title: label,
          "aria-label": `${label}: ${content.name}`,
          onclick: action,
        },
        face,
      );
    const up = button("↑", t("Move up"), () => act(item.id, moveUp));
    const down = button("↓", t("Move down"), () => act(item.id, moveDown));
    const tie = mayTie ? button("=", t("Tie with the one above"), () => act(item.id, toggleTie)) : null;
    const row = h(
      "li",
      { class: "rank-card" },
      handle,
      place,
      h("div", { class: "thing" }, panels(item, page), content.element),
      h("div", { class: "rank-buttons" }, up, down, tie),
    );
    return { id: item.id, name: content.name, row, handle, place, up, down, tie };
  }

  const placeOf = (id) => places.findIndex((tied) => tied.includes(id));

  /** Take a card out of its place; the place goes if nobody is left in it. */
  function without(id) {
    return places.map((tied) => tied.filter((other) => other !== id));
  }

  function moveUp(id) {
    const at = placeOf(id);
    const shared = places[at].length > 1;
    if (!shared && at === 0) return;
    const rest = without(id);
    rest.splice(shared ? at : at - 1, 0, [id]);
    places = rest.filter((tied) => tied.length);
  }

  function moveDown(id) {
    const at = placeOf(id);
    const shared = places[at].length > 1;
    if (!shared && at === places.length - 1) return;
    const rest = without(id);
    rest.splice(shared ? at + 1 : at + 2, 0, [id]);
    places = rest.filter((tied) => tied.length);
  }

  /** Share the place of the card above; a card that does so already gets the next place to itself. */
  function toggleTie(id) {
    const at = placeOf(id);
    if (places[at].indexOf(id) > 0) return moveDown(id);
    if (at === 0) return undefined;
    const rest = without(id);
    rest[at - 1] = [...rest[at - 1], id];
    places = rest.filter((tied) => tied.length);
    return undefined;
  }

  function moveTo(id, wanted) {
    const rest = without(id).filter((tied) => tied.length);
    rest.splice(wanted, 0, [id]);
    places = rest;
  }

  function act(id, change) {
    change(id);
    touched = true;
    show(id);
    const at = placeOf(id);
    const words = { thing: cards.get(id).name, place: at + 1, of: places.length };
    said.textContent =
      places[at].length > 1 ? t("{thing}: rank {place}, tied", words) : t("{thing}: rank {place} of {of}", words);
    changed();
  }

  /** Show the order. The card in hand stays in the page and the others move around it: it keeps focus and pointer. */
  function show(inHand = null) {
    const order = places.flat().map((id) => cards.get(id).row);
    const still = inHand === null ? -1 : order.indexOf(cards.get(inHand).row);
    order.slice(0, Math.max(still, 0)).forEach((row) => list.insertBefore(row, order[still]));
    list.append(...order.slice(still + 1));
    places.forEach((tied, at) => {
      tied.forEach((id, within) => {
        const { row, place, up, down, tie } = cards.get(id);
        place.textContent = String(at + 1);
        row.classList.toggle("tied-above", within > 0);
        row.classList.toggle("tied-below", within < tied.length - 1);
        up.disabled = at === 0 && tied.length === 1;
        down.disabled = at === places.length - 1 && tied.length === 1;
        if (!tie) return;
        tie.disabled = at === 0 && within === 0;
        tie.setAttribute("aria-pressed", String(within > 0));
      });
    });
  }

  /** Follow the pointer; between two tied cards a card joins them, elsewhere it gets a place of its own. */
  function drag(event, id) {
    if (event.button !== 0) return;
    const { row, handle } = cards.get(id);
    event.preventDefault();
    handle.focus({ preventScroll: true });
    handle.setPointerCapture(event.pointerId);
    row.classList.add("dragged");
    const grip = event.clientY - row.getBoundingClientRect().top;

    const follow = (moved) => {
      row.style.transform = "";
      const top = moved.clientY - grip;
      const middle = top + row.offsetHeight / 2;
      const others = [...list.children].filter((other) => other !== row);
      const before = others.findIndex((other) => {
        const box = other.getBoundingClientRect();
        return middle < box.top + box.height / 2;
      });
      const index = before < 0 ? others.length : before;
      if (list.children[index] !== row) drop(index);
      row.style.transform = `translateY(${top - row.getBoundingClientRect().top}px)`;
    };
    const end = () => {
      handle.removeEventListener("pointermove", follow);
      row.classList.remove("dragged");
      row.style.transform = "";
    };
    const drop = (index) => {
      const rest = without(id).filter((tied) => tied.length);
      const flat = rest.flat();
      const above = index ? rest.findIndex((tied) => tied.includes(flat[index - 1])) : -1;
      const joins = mayTie && above >= 0 && rest[above].includes(flat[index]);
      if (joins) rest[above].splice(rest[above].indexOf(flat[index]), 0, id);
      else rest.splice(above + 1, 0, [id]);
      act(id, () => {
        places = rest;
      });
    };
    handle.addEventListener("pointermove", follow);
    handle.addEventListener("pointerup", end, { once: true });
    handle.addEventListener("pointercancel", end, { once: true });
    // Picking a card up and laying it down again says that its place is right.
    touched = true;
    changed();
  }

  show();
  return {
    element,
    wide: false,
    missing() {
      if (touched || confirmed) return null;
      return {
        message: t("Nothing has been moved yet. If this order is right, submit once more."),
        focus: () => {
          confirmed = true;
          cards.get(places[0][0]).handle.focus();
        },
      };
    },
    answer: () => (touched || confirmed ? places : null),
    fill(answer) {
      touched = Boolean(answer);
      places = answer ? answer.map((tied) => [...tied]) : task.items.map((item) => [item.id]);
      show();
    },
    key(event) {
      const current = [...cards.values()].find(({ row }) => row.contains(event.target));
      const steps = { ArrowUp: moveUp, ArrowDown: moveDown, ...(mayTie ? { "=": toggleTie } : {}) };
      const place = /^[1-9]$/.test(event.key) ? Number(event.key) : null;
      if (event.key in steps || (place && place <= places.length)) {
        const { id, handle } = current ?? cards.get(places[0][0]);
        if (!current) handle.focus();
        else act(id, event.key in steps ? steps[event.key] : () => moveTo(id, place - 1));
        return true;
      }
      return false;
    },
    hint: () =>
      t("Drag a card by its handle, or Tab to it and press ↑ or ↓; = ties it with the one above."),
  };
}

addWidget("ranking", ranking);
