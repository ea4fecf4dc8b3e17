import { h, key } from "./dom.js";
import { number, t } from "./messages.js";
import { addCompanion } from "./task.js";

/** Pictures to enlarge, PDFs, recordings that share one player, and what must be played before an answer. */

const MOST_ZOOM = 8;
const STEP = 1.25;
const ENOUGH = 0.95;

// Pictures

function enlargeable(element) {
  for (const image of element.querySelectorAll("img.media")) {
    const open = () => enlarge(image);
    const button = h("button", { type: "button", class: "enlarge", title: t("Enlarge"), "aria-label": `${t("Enlarge")}: ${image.alt}`, onclick: open }, "⤢");
    const frame = h("span", { class: "enlargeable" });
    image.replaceWith(frame);
    frame.append(image, button);
    // In a card that is a button, a click on the picture chooses the card.
    if (!frame.closest("label")) {
      image.classList.add("opens");
      image.addEventListener("click", open);
    }
  }
}

function enlarge({ src, alt }) {
  const image = h("img", { src, alt });
  const area = h("div", { class: "zoom-area", tabindex: "0", role: "region", "aria-label": alt }, image);
  const button = (face, label, action) => h("button", { type: "button", title: label, "aria-label": label, onclick: action }, face);
  let scale = 1;
  function show(wanted) {
    const middle = [(area.scrollLeft + area.clientWidth / 2) / scale, (area.scrollTop + area.clientHeight / 2) / scale];
    scale = Math.min(MOST_ZOOM, Math.max(1, wanted));
    const fit = Math.min(area.clientWidth / image.naturalWidth, area.clientHeight / image.naturalHeight);
    image.style.width = `${Math.floor(image.naturalWidth * fit * scale)}px`;
    area.scrollTo(middle[0] * scale - area.clientWidth / 2, middle[1] * scale - area.clientHeight / 2);
  }
  const dialog = h(
    "dialog",
    { class: "zoom", "aria-label": alt, onclose: () => dialog.remove() },
    h(
      "div",
      { class: "zoom-buttons" },
      button("−", t("Smaller"), () => show(scale / STEP)),
      button("+", t("Larger"), () => show(scale * STEP)),
      button("✕", t("Close"), () => dialog.close()),
    ),
    area,
  );
  dialog.addEventListener("keydown", (event) => {
    const factor = { "+": STEP, "=": STEP, "-": 1 / STEP, 0: 1 / scale }[event.key];
    if (!factor || event.ctrlKey || event.metaKey) return;
    show(scale * factor);
    event.preventDefault();
  });
  image.addEventListener("dblclick", () => show(scale > 1 ? 1 : 2.5));
  pinch(area, (factor) => show(scale * factor));
  document.body.append(dialog);
  dialog.showModal();
  image.decode().then(() => show(1), () => {});
  area.focus();
}

/** Two fingers on an element: call `zoom` with the change of their distance. */
function pinch(area, zoom) {
  const fingers = new Map();
  const distance = () => {
    const [a, b] = [...fingers.values()];
    return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
  };
  area.addEventListener("pointerdown", (event) => fingers.set(event.pointerId, event));
  area.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    const before = fingers.size === 2 ? distance() : 0;
    fingers.set(event.pointerId, event);
    if (before > 0) zoom(distance() / before);
  });
  for (const kind of ["pointerup", "pointercancel"]) area.addEventListener(kind, (event) => fingers.delete(event.pointerId));
}

// PDFs

/** Show a PDF in the browser's own viewer where there is one; phones get the link alone. */
function openPdfs(element, task) {
  for (const link of element.querySelectorAll("a.media")) {
    const position = Number(link.closest("[data-position]").dataset.position);
    const { url } = task.items[position].media;
    const name = link.textContent;
    link.classList.remove("media");
    link.classList.add("pdf-link");
    link.textContent = t("Open the PDF in a new tab");
    if (navigator.pdfViewerEnabled) link.before(h("iframe", { class: "pdf", src: `${url}${url.includes("#") ? "&" : "#"}navpanes=0`, title: name }));
  }
}

// Recordings

/** One player for all recordings of a task: switching goes on at the same position. */
function shareOnePlayer(element) {
  const sounds = [...element.querySelectorAll("audio.media")];
  if (sounds.length < 2) return null;
  const pair = Boolean(element.querySelector(".pair"));
  let at = 0;
  const names = sounds.map((_, place) => (pair ? "AB"[place] : number(place + 1)));
  const word = h("span");
  const play = h("button", { type: "button", class: "play", "aria-keyshortcuts": "P", onclick: toggle }, word, " ", key("P"));
  const line = h("input", { type: "range", min: 0, max: 0, step: 0.1, value: 0, "aria-label": t("Position"), oninput: () => seek(Number(line.value)) });
  const time = h("span", { class: "play-time" });
  const buttons = sounds.map((sound, place) => {
    const button = h("button", { type: "button", class: "listen", "aria-keyshortcuts": "X", onclick: () => listen(place) }, t("Listen to {letter}", { letter: names[place] }), " ", key("X"));
    sound.before(button);
    sound.hidden = true;
    sound.controls = false;
    sound.preload = "auto";
    for (const kind of ["timeupdate", "loadedmetadata", "play", "pause", "ended"]) sound.addEventListener(kind, show);
    return button;
  });
  const player = h("div", { class: "player", role: "group", "aria-label": t("Player") }, play, line, time);
  element.prepend(player);

  function show() {
    const sound = sounds[at];
    const length = Math.max(0, ...sounds.map((one) => one.duration || 0));
    line.max = length;
    line.value = sound.currentTime;
    time.textContent = `${names[at]} · ${clock(sound.currentTime)} / ${clock(length)}`;
    word.textContent = sound.paused ? t("Play") : t("Pause");
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(place === at)));
  }
  function seek(seconds) {
    sounds[at].currentTime = Math.min(seconds, sounds[at].duration || seconds);
  }
  function toggle() {
    if (sounds[at].paused) sounds[at].play().catch(() => {});
    else sounds[at].pause();
  }
  function listen(place) {
    const { currentTime, ended } = sounds[at];
    sounds[at].pause();
    at = place;
    seek(ended ? 0 : currentTime);
    sounds[at].play().catch(() => {});
    show();
  }
  show();
  return {
    key(event) {
      const pressed = event.key.toLowerCase();
      if (pressed === "p") toggle();
      else if (pressed === "x") listen((at + 1) % sounds.length);
      else return false;
      return true;
    },
  };
}

function clock(seconds) {
  const whole = Math.floor(seconds || 0);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** How much of each recording was played; an answer needs all of them, apart from those that cannot be judged. */
function mustPlay(element, task) {
  const recordings = [...element.querySelectorAll("audio.media, video.media")].map((recording) => {
    const content = recording.closest("[data-position]");
    return { recording, content, item: task.items[Number(content.dataset.position)] };
  });
  if (!recordings.length) return null;
  const store = `steelyard:played:${task.judgment_id}`;
  const played = JSON.parse(sessionStorage.getItem(store) ?? "{}");
  for (const { recording, item } of recordings) {
    const before = played[item.id] ?? 0;
    recording.addEventListener("timeupdate", () => {
      const fraction = Math.max(before, Math.min(1, playedPart(recording)));
      const done = fraction >= ENOUGH && (played[item.id] ?? 0) < ENOUGH;
      played[item.id] = Math.round(100 * fraction) / 100;
      sessionStorage.setItem(store, JSON.stringify(played));
      if (done) element.dispatchEvent(new Event("played", { bubbles: true }));
    });
  }
  return {
    missing() {
      const open = recordings.find(({ item, content }) => (played[item.id] ?? 0) < ENOUGH && !content.closest(".unjudged"));
      if (!open) return null;
      const name = open.content.querySelector(".listen")?.firstChild.textContent ?? open.recording.getAttribute("aria-label");
      const focus = () => (open.content.querySelector(".listen") ?? open.recording).focus();
      return { message: t("Please play this to the end first: {thing}", { thing: name }), focus };
    },
    played: () => Object.fromEntries(recordings.map(({ item }) => [item.id, played[item.id] ?? 0])),
  };
}

function playedPart({ played, duration }) {
  const seconds = Array.from({ length: played.length }, (_, place) => played.end(place) - played.start(place));
  return duration > 0 ? seconds.reduce((sum, one) => sum + one, 0) / duration : 0;
}

addCompanion((element, task, page) => {
  enlargeable(element);
  openPdfs(element, task);
  const player = page.sync_audio ? shareOnePlayer(element) : null;
  const duty = page.must_play ? mustPlay(element, task) : null;
  return { ...player, ...duty };
});
