import { h } from "./dom.js";
import * as local from "./local.js";
import { t } from "./messages.js";

/** What stays while tasks come and go: the head with the progress, the bar of buttons, what is said about saving. */

const RIGHT_MS = 4_000;

const part = (id) => document.getElementById(id);

export class Frame {
  #everSaved = false;
  #right = false;
  #rightTimer = null;
  main = part("main");
  feedback = part("feedback");
  buttons = Object.fromEntries(["help", "back", "skip", "flag", "return", "submit"].map((id) => [id, part(id)]));

  /** Which buttons there are: for a "task", an answer being "revised", a "training" question, or a "screen". */
  mode(kind, mayGoBack = false) {
    part("actions").hidden = kind === "screen";
    const { back, skip, flag, return: leave, submit } = this.buttons;
    back.hidden = !mayGoBack || kind === "training";
    skip.hidden = kind !== "task";
    flag.hidden = kind === "training";
    leave.hidden = kind !== "revised";
    submit.firstElementChild.textContent = kind === "revised" ? t("Save the change") : t("Submit");
    this.say("");
    document.body.dataset.mode = kind;
  }

  title(title, question) {
    part("study-title").textContent = title;
    part("question").textContent = question;
  }

  /** Show a task or a screen in the middle, from its top. */
  show(element) {
    this.main.replaceChildren(element);
    scrollTo(0, 0);
    this.main.focus({ preventScroll: true });
  }

  /** How far along before the first task. */
  far(words) {
    part("progress").textContent = words;
  }

  complete(yes) {
    this.buttons.submit.setAttribute("aria-disabled", String(!yes));
  }

  /** Say what is missing, beside the Submit button. */
  say(message) {
    part("missing").textContent = message;
  }

  /** How far along; answers that are on their way count as given. */
  progress(progress, underWay) {
    const { answered, limit, minutes_left: minutes } = progress;
    const done = limit === null ? answered + underWay : Math.min(limit, answered + underWay);
    const count = done ? t("{done} answered", { done }) : null;
    const far = limit === null ? count : t("{done} of {limit}", { done, limit });
    const known = minutes !== null && done < (limit ?? Infinity);
    const short = minutes < 1 ? t("less than a minute") : t("about {minutes} min", { minutes: Math.ceil(minutes) });
    const time = known ? short : null;
    part("progress").textContent = [far, time].filter(Boolean).join(" · ");
    part("meter").hidden = limit === null;
    if (limit !== null) part("meter").firstElementChild.style.inlineSize = `${(100 * done) / limit}%`;
  }

  /** What is known about saving: only what the server has confirmed is called saved. */
  saving(waiting, trouble, retry) {
    this.#everSaved ||= waiting > 0;
    if (waiting) this.#right = false;
    const saved = part("saved");
    const words = !waiting
      ? this.#everSaved && (this.#right ? t("✓ saved, and correct") : t("✓ saved"))
      : trouble
        ? t("not sent yet: {count}", { count: waiting })
        : t("saving…");
    if (saved.textContent !== (words || "")) {
      saved.className = waiting ? (trouble ? "saved kept" : "saved late") : "saved";
      saved.textContent = words || "";
    }
    this.#banner(waiting, trouble, retry);
  }

  /** The answer saved last is known to be right: say so for a moment, then call `after`. */
  right(after) {
    this.#right = true;
    clearTimeout(this.#rightTimer);
    this.#rightTimer = setTimeout(() => {
      this.#right = false;
      after();
    }, RIGHT_MS);
  }

  #banner(waiting, trouble, retry) {
    const banner = part("banner");
    banner.hidden = !trouble || trouble === "session";
    if (banner.hidden) return banner.replaceChildren();
    const what =
      trouble === "offline"
        ? t("No connection. Answers stored on this device: {count}. You can continue; they are sent when the connection is back.", {
            count: waiting,
          })
        : t("The server has a problem. Nothing is lost; answers stored on this device: {count}. Trying again.", { count: waiting });
    const stay = local.keepsForGood() ? null : h("strong", {}, t("Please do not close this page."));
    const words = h("p", {}, what, " ", stay);
    if (banner.firstElementChild?.textContent === words.textContent) return undefined;
    return banner.replaceChildren(words, h("button", { type: "button", onclick: retry }, t("Try now")));
  }

  /** A short message that goes away when the next task comes. */
  notice(message) {
    this.main.prepend(h("p", { class: "notice", role: "status" }, message));
  }
}
