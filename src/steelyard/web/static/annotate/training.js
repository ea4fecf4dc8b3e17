import { t } from "./messages.js";
import { feedback } from "./screens.js";
import { taskView } from "./task.js";

/** Questions whose answers are known, before the first task: practice with feedback, and the test without. */

const FAR = {
  training: ({ number, of }) => t("Practice {number} of {of}", { number, of }),
  qualification: ({ number, of }) => t("Test: question {number} of {of}", { number, of }),
};

/** Ask one question after the other; returns what the last answer led to, or null when it had to be broken off. */
export async function askKnown(kind, first, { ask, grade, page, frame, show }) {
  let asked = first;
  for (;;) {
    const { view, answer } = await answered(kind, asked, { page, frame, show });
    const result = await grade({ number: asked.number, answer });
    if (!result) return null;
    if (kind === "training") await discussed(view, result, { frame, show });
    if (result.done) return result;
    asked = await ask();
    if (!asked?.question) return asked && { done: true };
  }
}

function answered(kind, asked, { page, frame, show }) {
  const { question } = asked;
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
      frame.far(FAR[kind](asked));
      frame.complete(view.missing() === null);
    }
    draw();
  });
}

/** Tell what would have been right, and wait until it is read. */
function discussed(view, result, { frame, show }) {
  return new Promise((go) => {
    function draw() {
      const said = feedback(result, go);
      view.element.inert = true;
      frame.mode("screen");
      frame.show(view.element);
      frame.main.append(said);
      said.querySelector("button").focus();
    }
    show(null, draw);
    draw();
  });
}
