import { explained } from "./content.js";
import { copyField, languageChoice, personalLink } from "./dialogs.js";
import { h, uniqueId } from "./dom.js";
import { t } from "./messages.js";
import { workedExample } from "./task.js";

/** Everything that is not a task: before the first one, after the last, and when something is in the way. */

function screen(title, ...children) {
  return h("section", { class: "screen flow" }, h("h2", {}, title), ...children);
}

function primary(words, action) {
  return h(
    "button",
    { type: "button", class: "primary", onclick: action },
    h("span", {}, words),
    h("kbd", { "aria-hidden": "true" }, "⏎"),
  );
}

const added = {};

/** Add a screen that only some studies have; their pages load its script. */
export function addScreen(name, make) {
  added[name] = make;
}

export function questionnaireScreen(...parts) {
  return added.questionnaire(...parts);
}

/** Choose a name; `join` throws with `what` and `remedy` when the name cannot be had. */
export function nameScreen({ join, languages, languageChanged }) {
  const id = uniqueId("name");
  const problem = uniqueId("problem");
  const input = h("input", {
    type: "text",
    id,
    name: "name",
    required: true,
    maxlength: 200,
    autocomplete: "username",
    dir: "auto",
    "aria-describedby": problem,
  });
  const error = h("p", { class: "error", id: problem, role: "alert" });
  const form = h(
    "form",
    {
      class: "flow",
      novalidate: true,
      onsubmit: async (event) => {
        event.preventDefault();
        const name = input.value.trim();
        if (!name) {
          error.textContent = t("Please type a name.");
          return input.focus();
        }
        try {
          await join(name);
        } catch (refusal) {
          error.textContent = refusal.what
            ? [t(refusal.what), t(refusal.remedy)].join(" ")
            : t("No connection. Please try again.");
          input.focus();
        }
        return undefined;
      },
    },
    h("div", { class: "field" }, h("label", { for: id }, t("Choose a name")), input, error),
    h("p", { class: "muted small" }, t("It is stored with your answers. It need not be your real name.")),
    h("p", { class: "muted small" }, t("Have you answered here before? Then open your personal link instead.")),
    h("button", { class: "primary" }, h("span", {}, t("Continue")), h("kbd", { "aria-hidden": "true" }, "⏎")),
  );
  return screen(t("Welcome"), form, languageChoice(languages, languageChanged));
}

export function invitedOnlyScreen(welcome, { languages, languageChanged }) {
  const { contact } = welcome.study;
  return screen(
    t("By invitation only"),
    h("p", {}, t("This study is open to people with a personal link. Open the link you were sent.")),
    contact ? h("p", {}, t("Questions? Write to {contact}.", { contact })) : null,
    languageChoice(languages, languageChanged),
  );
}

export function consentScreen(html, { agree, decline, languages, languageChanged }) {
  return screen(
    t("Before you begin"),
    h("div", { class: "content prose", dir: "auto", html }),
    h(
      "div",
      { class: "row" },
      primary(t("I agree"), agree),
      h("button", { type: "button", onclick: decline }, t("I do not agree")),
    ),
    languageChoice(languages, languageChanged),
  );
}

export function declinedScreen(back) {
  return screen(
    t("That is fine"),
    h("p", {}, t("No answer was stored. You can close this page.")),
    h("button", { type: "button", onclick: back }, t("Read it again")),
  );
}

/** The first time: what the researcher wrote, how to answer, and one example that is answered already. */
export function instructionsScreen(welcome, task, begin) {
  const example = workedExample(task, welcome.page);
  return screen(
    t("How it works"),
    welcome.instructions_html
      ? h("div", { class: "content prose", dir: "auto", html: welcome.instructions_html })
      : null,
    h("p", {}, example.hint),
    h(
      "figure",
      { class: "example" },
      h("figcaption", { class: "muted small" }, t("An example with its answer")),
      example.element,
    ),
    h("p", { class: "muted small" }, t("You can read this again under the question mark at the top.")),
    primary(t("Begin"), begin),
  );
}

export function trainingIntro(begin) {
  return screen(
    t("Practice"),
    h(
      "p",
      {},
      t("You start with some practice questions. After each one you see whether your answer was correct. Take your time."),
    ),
    primary(t("Begin"), begin),
  );
}

export function testIntro({ number, of }, begin) {
  return screen(
    t("A short test"),
    h("p", {}, t("Before the first task there is a test. Questions in it: {count}.", { count: of })),
    h(
      "p",
      {},
      t(
        "Answer as you would in the study, and take your time. You can take the test only once, and it does not show which answers were correct.",
      ),
    ),
    number > 1 ? h("p", {}, t("Answered so far: {count}.", { count: number - 1 })) : null,
    primary(t("Begin"), begin),
  );
}

export function passedScreen(begin) {
  return screen(
    t("You have passed the test"),
    h("p", {}, t("Thank you. The real questions start now.")),
    primary(t("Begin"), begin),
  );
}

/** What came of a training question, shown under it. */
export function feedback(result, go) {
  return h(
    "div",
    { class: `feedback flow ${result.right ? "right" : "wrong"}`, role: "status" },
    h("h2", {}, result.right ? t("✓ Correct") : t("Not quite")),
    explained(result),
    primary(result.done ? t("Start the real questions") : t("Next"), go),
  );
}

/** The way back to the panel somebody came from; only when every answer is saved, or it would be lost on the way. */
function wayBack(ending, underWay) {
  if (!ending) return null;
  if (underWay) return h("p", {}, t("When they are saved, the link back appears here."));
  const { url, code } = ending;
  return h(
    "div",
    { class: "way-back flow" },
    h(
      "p",
      {},
      url
        ? t("One step is left: return to the site you came from to confirm that you have finished.")
        : t("One step is left: enter this code on the site you came from."),
    ),
    url
      ? h(
          "a",
          { class: "button primary", href: url, rel: "noreferrer", target: "embedded" in document.body.dataset ? "_top" : null },
          h("span", {}, t("Go back")),
          h("kbd", { "aria-hidden": "true" }, "⏎"),
        )
      : null,
    code ? copyField(t("Your code"), code) : null,
  );
}

/** Nothing to ask: why, and what now. */
export function noTaskScreen(noTask, around) {
  const element = explainNoTask(noTask, around);
  element.append(
    h("div", { class: "row" }, h("button", { type: "button", class: "quiet", onclick: around.signOut }, t("Sign out…"))),
  );
  return element;
}

function explainNoTask({ reason_code: code, reason, ending }, { answered, underWay, welcome, lookAgain }) {
  const said = reason ? h("p", { dir: "auto" }, reason) : null;
  const given = underWay
    ? h(
        "p",
        {},
        t("Answers being saved: {count}. Please leave this page open until they are saved.", {
          count: underWay,
        }),
      )
    : h("p", {}, t("Answers you have given: {count}. All of them are saved.", { count: answered }));
  const back = wayBack(ending, underWay);
  const close = ending ? null : h("p", {}, t("You can close this page."));
  const link = welcome.resume_url && !ending ? personalLink(welcome.resume_url) : null;
  const again = h("button", { type: "button", onclick: lookAgain }, t("Check again now"));
  const contact = welcome.study.contact;
  const thanks = t("Thank you!");
  switch (code) {
    case "waiting":
      return screen(
        t("No tasks at the moment"),
        h("p", {}, t("Other annotators are still answering. There may be more tasks for you later. This page checks again automatically.")),
        given,
        again,
        back ? h("p", {}, t("You need not wait.")) : null,
        back,
        link,
      );
    case "quota":
      return screen(
        thanks,
        h("p", {}, t("You have answered all questions assigned to you.")),
        given,
        back ?? close,
      );
    case "excluded":
      return screen(
        t("There are no more questions for you"),
        h("p", {}, t("Thank you for your time."), " ", t(reason)),
        h(
          "p",
          {},
          contact
            ? t("If you think that this is a mistake, write to {contact}.", { contact })
            : t("If you think that this is a mistake, write to the people who gave you the link."),
        ),
        back,
      );
    case "paused":
      return screen(
        t("The study is paused"),
        said,
        h("p", {}, t("Your answers are safe. This page checks again automatically.")),
        given,
        again,
        link,
      );
    case "closed":
      return screen(
        t("The study is closed"),
        said,
        h("p", {}, t("Thank you for your interest. There is nothing more to do.")),
        given,
        back,
      );
    default:
      return screen(thanks, h("p", {}, t("Everything has been answered.")), given, back ?? close);
  }
}

/** No task in hand and no way to get one. */
export function troubleScreen(why, waiting, retry) {
  const title = why === "offline" ? t("No connection") : t("The server has a problem");
  return screen(
    title,
    h("p", {}, t("Nothing is lost. Answers stored on this device: {count}.", { count: waiting })),
    h("p", {}, t("This page retries automatically and continues when it can.")),
    h("button", { type: "button", onclick: retry }, t("Try now")),
  );
}

/** The server does not know this browser any more. */
export function staleScreen(waiting) {
  return screen(
    t("Please sign in again"),
    h(
      "p",
      {},
      t(
        "This page was open for too long, or you signed in elsewhere. Answers stored on this device: {count}; they are sent when you sign in again.",
        { count: waiting },
      ),
    ),
    h("p", {}, t("Open your personal link, or reload the page.")),
    primary(t("Reload the page"), () => location.reload()),
  );
}

export function brokenScreen(what, remedy) {
  return screen(
    t("Something went wrong"),
    h(
      "p",
      { dir: "auto" },
      [what, remedy]
        .filter(Boolean)
        .map((words) => t(words))
        .join(" "),
    ),
    primary(t("Reload the page"), () => location.reload()),
  );
}
