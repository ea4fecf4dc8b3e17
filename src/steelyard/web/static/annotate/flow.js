import { ActiveTime } from "./active_time.js";
import { Refused, Unreachable } from "./api.js";
import { askReason, confirmSignOut, help, keysAreOn } from "./dialogs.js";
import { keyIsTaken } from "./dom.js";
import { Effort } from "./effort.js";
import { Feedback } from "./feedback.js";
import { History } from "./history.js";
import * as local from "./local.js";
import { t } from "./messages.js";
import { Outbox } from "./outbox.js";
import * as screens from "./screens.js";
import { Supply } from "./supply.js";
import { taskView } from "./task.js";
import { askQuestions } from "./training.js";

/** A person's way through a study: name, consent, questionnaire, instructions, practice, test, then task after task. */

const LOOK_AGAIN_MS = { waiting: 15_000, paused: 30_000 };
const SERVER_RETRY_MS = 3_000;
const DOUBLE_CLICK_MS = 300;
const NEEDED_FIRST = new Set(["consent_needed", "questionnaire_needed", "training_needed", "test_needed"]);

export class Flow {
  #api;
  #study;
  #frame;
  #languages;
  #embedding;
  #welcome = null;
  #outbox = null;
  #supply = null;
  #history = null;
  #feedback = null;
  #activeTime = new ActiveTime();
  #current = null; // {task, view, shownAt}: the task to answer
  #revised = null; // {task, view, steps, before}: the answer being changed, if any
  #redraw = () => {};
  #timer = null;
  #progress = null;
  #stopped = false;
  #atEnd = null; // Why there is nothing to ask, while the screen says so.

  constructor({ api, study, frame, languages, embedding = null }) {
    this.#api = api;
    this.#embedding = embedding;
    this.#study = study;
    this.#frame = frame;
    this.#languages = languages;
    this.#listen();
    this.#watch();
  }

  /** Begin, with the answer to a first request if one is under way. */
  async begin(underWay = null) {
    let first = underWay;
    const welcome = await this.#insist(() => {
      const request = first ?? this.#api.me();
      first = null;
      return request;
    });
    if (welcome) this.#enter(welcome);
  }

  /** Go where the server says that something is wanted. */
  #enter(welcome) {
    this.#welcome = welcome;
    this.#frame.title(welcome.study.title, welcome.study.question);
    const around = { languages: this.#languages, languageChanged: () => this.#speakAnew() };
    if (welcome.needs.includes("name") && !welcome.study.open) {
      this.#screen(() => screens.invitedOnlyScreen(welcome, around));
    } else if (welcome.needs.includes("name")) {
      this.#screen(() =>
        screens.nameScreen({ ...around, join: async (name) => this.#enter(await this.#api.join(name)) }),
      );
      this.#frame.main.querySelector("input")?.focus();
    } else if (welcome.needs.includes("consent")) {
      this.#askConsent(around);
    } else if (welcome.needs.includes("questionnaire")) {
      this.#askQuestionnaire(around);
    } else {
      this.#prepare();
      const first = ["training", "qualification"].find((kind) => welcome.needs.includes(kind));
      if (first) this.#askQuestions(first);
      else this.#advance();
    }
  }

  #askConsent(around) {
    const agree = async () => {
      const welcome = await this.#insist(() => this.#api.agree());
      if (welcome) this.#enter(welcome);
    };
    const decline = () => this.#screen(() => screens.declinedScreen(() => this.#askConsent(around)));
    this.#screen(() => screens.consentScreen(this.#welcome.consent_html ?? "", { ...around, agree, decline }));
  }

  #askQuestionnaire(around) {
    let isSent = false;
    const send = async (answers) => {
      if (isSent) return;
      isSent = true;
      const welcome = await this.#insist(() => this.#api.answerQuestionnaire(answers));
      if (welcome) this.#enter(welcome);
    };
    const draft = {};
    this.#screen(() => screens.questionnaireScreen(this.#welcome.questionnaire, draft, { ...around, send }));
  }

  #prepare() {
    if (this.#outbox) return;
    const { key, page, progress } = this.#welcome;
    this.#progress = progress;
    this.#outbox = new Outbox(this.#api, this.#study, key);
    this.#supply = new Supply(this.#api, this.#outbox, page.prefetch, this.#activeTime);
    this.#history = new History(this.#api, page.revisable_answers);
    this.#feedback = new Feedback({
      api: this.#api,
      study: this.#study,
      key,
      frame: this.#frame,
      page,
      refresh: () => this.#report(),
    });
    this.#outbox.addEventListener("change", () => (this.#atEnd ? this.#redraw() : this.#report()));
    this.#outbox.addEventListener("saved", ({ detail: { entry, answer } }) => {
      if (answer?.progress) this.#progress = answer.progress;
      this.#feedback.receive(entry, answer?.feedback);
    });
    this.#outbox.addEventListener("elsewhere", ({ detail }) => this.#answeredElsewhere(detail));
    this.#outbox.addEventListener("refused", ({ detail }) => this.#refused(detail));
    this.#outbox.send();
    this.#report();
    this.#feedback.show();
  }

  /** Practice ("training") or the test ("qualification"): questions whose answers are known. */
  async #askQuestions(kind) {
    const ask = () => this.#insist(() => this.#api.get(`/${kind}`));
    const first = await ask();
    if (!first) return;
    if (!first.question) return this.#stop({ what: "", remedy: "" });
    await this.#instruct(first.question);
    await this.#read((go) => (kind === "training" ? screens.trainingIntro(go) : screens.testIntro(first, go)));
    const result = await askQuestions(kind, first, {
      ask,
      grade: (body) => this.#insist(() => this.#api.post(`/${kind}`, body)),
      page: this.#welcome.page,
      frame: this.#frame,
      show: (current, redraw) => {
        this.#current = current;
        this.#redraw = redraw;
      },
    });
    if (result?.passed) await this.#read((go) => screens.passedScreen(go));
    if (result) await this.begin();
  }

  // Tasks

  async #advance() {
    clearTimeout(this.#timer);
    const next = await this.#insist(() => this.#supply.next());
    if (!next) return;
    if (this.#supply.progress) this.#progress = this.#supply.progress;
    this.#report();
    if (next.noTask) return this.#noTask(next.noTask);
    await this.#instruct(next.task);
    return this.#showTask(next.task);
  }

  /** The first time: say how it works. */
  async #instruct(task) {
    const seen = `steelyard:seen:${this.#study}:${this.#welcome.key}`;
    if (this.#progress.answered > 0 || local.get(seen) !== null) return;
    this.#frame.title(this.#welcome.study.title, task.question);
    await this.#read((go) => screens.instructionsScreen(this.#welcome, task, go));
    local.set(seen, "1");
  }

  /** Pass on what happens within the answer to the current task. */
  #watch() {
    for (const kind of ["input", "click", "keydown", "pointerdown", "paste"]) {
      const pass = (event) => this.#current?.view.element.contains(event.target) && this.#current.effort?.event(event);
      document.addEventListener(kind, pass, { capture: true, passive: true });
    }
  }

  #showTask(task) {
    const draft = JSON.parse(local.tab.get(draftName(task)) ?? "null");
    const view = taskView(task, this.#welcome.page, () => this.#changed());
    if (draft) view.fill(draft.answer, draft.comment);
    const effort = new Effort(task, this.#activeTime, draft?.effort);
    this.#current = { task, view, effort, shownAt: performance.now() };
    this.#activeTime.start(draft?.seconds ?? 0);
    this.#show();
  }

  /** Show the task to answer, or the answer being changed. */
  #show() {
    this.#atEnd = null;
    const { task, view } = this.#revised ?? this.#current;
    this.#redraw = () => this.#showAnew();
    this.#frame.title(this.#welcome.study.title, task.question);
    this.#frame.buttons.help.hidden = false;
    this.#frame.mode(this.#revised ? "revised" : "task", this.#history.possible);
    this.#frame.show(view.element);
    if (this.#revised) this.#frame.notice(t("You are changing an earlier answer."));
    this.#frame.complete(view.missing() === null);
  }

  /** The language has changed: build the same task again with the same answer. */
  #showAnew() {
    const at = this.#revised ?? this.#current;
    const [answer, comment] = [at.view.answer(), at.view.comment()];
    at.view = taskView(at.task, this.#welcome.page, () => this.#changed());
    at.view.fill(answer, comment);
    this.#report();
    this.#show();
  }

  #changed() {
    const at = this.#revised ?? this.#current;
    this.#frame.complete(at.view.missing() === null);
    this.#frame.say("");
    if (this.#revised) return;
    const answer = at.view.answer();
    at.effort.note(answer);
    const draft = { answer, comment: at.view.comment(), seconds: this.#activeTime.seconds(), effort: at.effort.state() };
    local.tab.set(draftName(at.task), JSON.stringify(draft));
  }

  #submit() {
    const at = this.#revised ?? this.#current;
    if (!at || performance.now() - at.shownAt < DOUBLE_CLICK_MS) return;
    const missing = at.view.missing();
    if (missing) {
      this.#frame.say(missing.message);
      missing.focus();
      this.#frame.complete(at.view.missing() === null);
      return;
    }
    if (at.submit) at.submit(at.view.answer());
    else if (this.#revised) this.#saveChange();
    else this.#answer();
  }

  #answer() {
    const { task, view, effort } = this.#current;
    const answer = view.answer();
    const comment = view.comment();
    this.#history.note(task, answer, comment);
    this.#feedback.expect(task, answer);
    const played = view.played();
    const body = { ...effort.body(), ...(played ? { played } : {}) };
    this.#settle(task, "judgment", { answer, seconds: this.#activeTime.seconds(), effort: body, ...(comment ? { comment } : {}) });
  }

  #settle(task, kind, body) {
    this.#supply.settle(task.judgment_id);
    local.tab.remove(draftName(task));
    this.#current = null;
    this.#outbox.put(kind, task.judgment_id, body);
    this.#advance();
  }

  // Looking back

  async #back() {
    if (!this.#current || this.#current.submit || !this.#history.possible) return;
    const steps = this.#revised ? this.#revised.steps + 1 : 0;
    let past = null;
    try {
      past = await this.#history.back(steps);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
    }
    if (!past) {
      this.#frame.say(t("There is no earlier answer to change."));
      return;
    }
    const view = taskView(past.task, this.#welcome.page, () => this.#changed());
    view.fill(past.answer, past.comment);
    const before = JSON.stringify([past.answer, past.comment ?? ""]);
    this.#revised = { task: past.task, view, steps, before, shownAt: performance.now() };
    this.#show();
  }

  #saveChange() {
    const { task, view, before } = this.#revised;
    const [answer, comment] = [view.answer(), view.comment()];
    if (JSON.stringify([answer, comment]) !== before) {
      this.#history.note(task, answer, comment);
      this.#outbox.put("revision", task.judgment_id, this.#welcome.page.comments ? { answer, comment } : { answer });
    }
    this.#return();
  }

  #return() {
    this.#revised = null;
    this.#show();
  }

  // Skip, flag, help

  async #giveReason(kind) {
    const { task } = this.#revised ?? this.#current;
    const reason = await askReason(kind);
    if (reason === null) return;
    if (kind === "skip") {
      this.#settle(task, "skip", { reason });
    } else {
      this.#outbox.put("flag", task.judgment_id, { reason });
      this.#frame.notice(t("Flagged. Thank you; you can still answer."));
    }
  }

  #help() {
    help({
      welcome: this.#welcome,
      task: (this.#revised ?? this.#current)?.task ?? null,
      languages: this.#languages,
      languageChanged: () => this.#speakAnew(),
      signOut: () => this.#signOut(),
    });
  }

  /** Ask, end the session on the server, and begin anew; answers on their way are sent first. */
  async #signOut() {
    const { resume_url: link, annotator } = this.#welcome;
    if (!(await confirmSignOut({ link, annotator, underWay: this.#outbox.entries().length }))) return;
    await this.#outbox.send();
    if (this.#outbox.entries().length) {
      this.#frame.notice(t("Some answers are not saved yet, so you are still signed in. Try again when they are saved."));
      return;
    }
    try {
      await this.#api.signOut();
    } catch (error) {
      if (!(error instanceof Refused && error.status === 401)) {
        this.#frame.notice(t("No connection. Please try again."));
        return;
      }
    }
    this.#stopped = true;
    location.reload();
  }

  #speakAnew() {
    this.#redraw();
    this.#feedback?.show({ anew: true });
  }

  // Screens and trouble

  /** Show a screen until its button is pressed. */
  #read(make) {
    return new Promise((go) => this.#screen(() => make(go)));
  }

  #screen(make, atEnd = null) {
    clearTimeout(this.#timer);
    this.#atEnd = atEnd;
    this.#current = null;
    this.#revised = null;
    this.#redraw = () => {
      if (this.#outbox) this.#report();
      this.#frame.mode("screen");
      this.#frame.show(make());
    };
    this.#redraw();
  }

  #noTask(noTask) {
    this.#frame.buttons.help.hidden = true;
    const lookAgain = () => this.#advance();
    const around = () => ({
      answered: this.#progress.answered,
      underWay: this.#outbox.entries().length,
      welcome: this.#welcome,
      lookAgain,
      signOut: () => this.#signOut(),
    });
    // Looking again by itself must not take the focus from whoever reads or copies something here.
    const asBefore = this.#atEnd === noTask.reason_code;
    const explain = () => {
      const now = around();
      this.#embedding?.end(noTask, now.answered, now.underWay);
      return screens.noTaskScreen(noTask, now);
    };
    if (!asBefore) this.#screen(explain, noTask.reason_code);
    if (noTask.reason_code in LOOK_AGAIN_MS) this.#timer = setTimeout(lookAgain, LOOK_AGAIN_MS[noTask.reason_code]);
  }

  /** Ask until there is an answer, saying so on the screen; null when it makes no sense to go on. */
  async #insist(request) {
    for (;;) {
      try {
        return await request();
      } catch (error) {
        if (error instanceof Refused) {
          if (NEEDED_FIRST.has(error.code)) this.begin();
          else this.#stop(error);
          return null;
        }
        if (!(error instanceof Unreachable)) throw error;
        await this.#waitOut(error);
      }
    }
  }

  #waitOut(error) {
    return new Promise((resolve) => {
      const retry = () => {
        clearTimeout(timer);
        removeEventListener("online", retry);
        this.#outbox?.send();
        resolve();
      };
      const timer = setTimeout(retry, (error.waitSeconds ?? 0) * 1000 || SERVER_RETRY_MS);
      addEventListener("online", retry);
      this.#screen(() => screens.troubleScreen(error.why, this.#outbox?.entries().length ?? 0, retry));
    });
  }

  #stop(error) {
    this.#stopped = true;
    const waiting = this.#outbox?.entries().length ?? 0;
    this.#screen(() =>
      error.status === 401 ? screens.staleScreen(waiting) : screens.brokenScreen(error.what, error.remedy),
    );
  }

  /** The server did not take an answer: say why; the task may come again. */
  #refused({ entry, refusal }) {
    if (entry.kind === "judgment" || entry.kind === "skip") {
      this.#history.forget(entry.id);
      if (refusal.status === 422) this.#supply.unsettle(entry.id);
    }
    if (entry.kind === "skip") return; // It had gone back already.
    this.#frame.notice(
      refusal.status === 409 && entry.kind !== "flag"
        ? t("You have already answered this task, perhaps in another window. That answer is kept.")
        : [t(refusal.what), t(refusal.remedy)].join(" "),
    );
  }

  #report() {
    const entries = this.#outbox.entries();
    const underWay = entries.filter((entry) => entry.kind === "judgment").length;
    this.#frame.progress(this.#progress, underWay);
    this.#embedding?.progress(this.#progress);
    this.#frame.saving(entries.length, this.#outbox.trouble, () => this.#outbox.send());
    if (this.#outbox.trouble === "session" && !this.#stopped) this.#stop({ status: 401 });
  }

  /** Another tab has answered a task. It is on this screen only where tabs cannot keep out of each other's way. */
  #answeredElsewhere({ kind, id }) {
    if (kind !== "judgment" && kind !== "skip") return;
    this.#supply.settle(id);
    if (this.#current?.task.judgment_id === id) this.#advance();
  }

  // Keys and buttons

  #listen() {
    const { help: helpButton, back, skip, flag, return: leave, submit } = this.#frame.buttons;
    submit.addEventListener("click", () => this.#submit());
    back.addEventListener("click", () => this.#back());
    leave.addEventListener("click", () => this.#return());
    skip.addEventListener("click", () => this.#giveReason("skip"));
    flag.addEventListener("click", () => this.#giveReason("flag"));
    helpButton.addEventListener("click", () => this.#help());
    this.#frame.main.addEventListener("played", () => {
      const at = this.#revised ?? this.#current;
      if (at) this.#frame.complete(at.view.missing() === null);
    });
    document.addEventListener("keydown", (event) => {
      if (!keyIsTaken(event) && this.#key(event)) event.preventDefault();
    });
  }

  /** Act on a key; true when it was used. */
  #key(event) {
    const at = this.#revised ?? this.#current;
    if (event.key === "Enter") {
      if (event.repeat) return true;
      const primary = at ? null : this.#frame.main.querySelector("button.primary, a.primary");
      const toDo = at ? at.view.missing() === null : primary !== null;
      if (!toDo && this.#feedback?.dismiss({ byEnter: true })) return true;
      if (at) this.#submit();
      else primary?.click();
      return true;
    }
    if (event.key === "Escape" && this.#feedback?.dismiss()) return true;
    if (!at) return false;
    if (event.key === "Escape" && this.#revised) return this.#did(() => this.#return());
    if (event.key === "Backspace") return this.#did(() => this.#back());
    if (event.key.length === 1 && !keysAreOn()) return false;
    if (at.view.key(event)) return true;
    if (event.key === "?") return this.#did(() => this.#help());
    const { skip, flag } = this.#frame.buttons;
    if (event.key.toLowerCase() === "s" && !skip.hidden) return this.#did(() => this.#giveReason("skip"));
    if (event.key === "!" && !flag.hidden) return this.#did(() => this.#giveReason("flag"));
    return false;
  }

  #did(action) {
    action();
    return true;
  }
}

function draftName(task) {
  return `steelyard:draft:${task.judgment_id}`;
}
