import { t } from "./messages.js";
import { feedback } from "./screens.js";
import { taskView } from "./task.js";

/** Questions with known answers before the first task: training with feedback, and the test without. */

const FAR = {
  training: ({ number, of }) => t("Practice {number} of {of}", { number, of }),
  qualification: ({ number, of }) => t("Test: question {number} of {of}", { number, of }),
};

/** Ask one question after the other; returns the result of the last answer, or null when it was interrupted. */
export async function askQuestions(kind, first, { ask, grade, page, frame, show }) {
  let current = first;
  for (;;) {
    const { view, answer } = await askOne(kind, current, { page, frame, show });
    const result = await grade({ number: current.number, answer });
    if (!result) return null;
    if (kind === "training") await showFeedback(view, result, { frame, show });
    if (result.done) return result;
    current = await ask();
    if (!current?.question) return current && { done: true };
  }
}

function askOne(kind, current, { page, frame, show }) {
  const { question } = current;
  const shownAt = performance.now();
  return new Promise((submit) => {
    function draw(before = null) {
      const view = taskView(question, page, () => {
        frame.complete(view.missing() === null);
        frame.say("");
      });
      if (before) view.fill(before);
      const done = (answer) => {
        show(null, () => {});
        submit({ view, answer });
      };
      show({ task: question, view, shownAt, submit: done }, () => draw(view.answer()));
      frame.title(document.getElementById("study-title").textContent, question.question);
      frame.buttons.help.hidden = false;
      frame.mode("training");
      frame.show(view.element);
      frame.far(FAR[kind](current));
      frame.complete(view.missing() === null);
    }
    draw();
  });
}

/** Show the expected answer, and wait until it is read. */
function showFeedback(view, result, { frame, show }) {
  return new Promise((go) => {
    function draw() {
      const notice = feedback(result, go);
      view.element.inert = true;
      frame.mode("screen");
      frame.show(view.element);
      frame.main.append(notice);
      notice.querySelector("button").focus();
    }
    show(null, draw);
    draw();
  });
}
