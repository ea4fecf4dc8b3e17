"""Simulated or recorded annotators who answer a real study through ask and tell."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from steelyard.designs import NoTask
from steelyard.errors import ConfigError
from steelyard.quality.questions import Question
from steelyard.records import Task
from steelyard.simulate.annotators import Annotators, SimulatedAnnotators, Truth
from steelyard.simulate.population import SimulatedAnnotator
from steelyard.study import Study
from steelyard.study.config.tables import EntryQuestion

_BLOCK = 4096

AnswerCheck: TypeAlias = Callable[[str, Question, Sequence[str]], Any]
"""Returns an annotator's answer to a check that shows these items."""


class AnnotatorQueue:
    """Which annotator asks next: a random one of those who may get a task.

    An annotator without a task waits until no other annotator has one, and then asks again if there was an answer in
    between, which may have started a round or a stage.
    """

    def __init__(self, names: Sequence[str], rng: np.random.Generator) -> None:
        self._available = list(names)
        self._waiting: list[str] = []
        self._rng = rng
        self._random_numbers: list[float] = []
        self._has_new_answer = False

    def next(self) -> str | None:
        """Return the next annotator; None if no annotator can get a task."""
        if not self._available and self._has_new_answer:
            self._available, self._waiting = self._waiting, []
            self._has_new_answer = False
        if not self._available:
            return None
        if not self._random_numbers:
            self._random_numbers = self._rng.random(_BLOCK).tolist()
        return self._available[int(self._random_numbers.pop() * len(self._available))]

    def on_answer(self) -> None:
        """Record that a task was answered."""
        self._has_new_answer = True

    def on_no_task(self, annotator: str, no_task: NoTask) -> None:
        """Record that there is no task for an annotator now, or for anybody if the study is complete."""
        if no_task.complete:
            self._available, self._waiting = [], []
        else:
            self._available.remove(annotator)
            self._waiting.append(annotator)


def answer_study(
    study: Study,
    annotators: Annotators,
    rng: np.random.Generator,
    *,
    on_progress: Callable[[], None] = lambda: None,
    most: int | None = None,
    threads: int = 1,
    answer_check: AnswerCheck | None = None,
) -> int:
    """Let annotators answer a study until no task is left; return the number of judgments.

    `on_progress` is called after each judgment; `most` limits the number of judgments. Several threads divide the
    annotators among them; the order of answers is then not reproducible. `answer_check` answers checks; by default
    annotators answer them like other tasks.
    """
    if threads < 1:
        raise ConfigError(f"{threads} threads.", "Use at least one.")
    lock = threading.Lock()
    count = 0
    failures: list[BaseException] = []

    def work(queue: AnnotatorQueue) -> None:
        nonlocal count
        try:
            while (annotator := queue.next()) is not None and (most is None or count < most):
                task = study.offer(annotator)
                if isinstance(task, NoTask):
                    queue.on_no_task(annotator, task)
                    continue
                question = None if answer_check is None else _check_of(study, task)
                with lock:
                    protocol = study.core.stage_of(task).protocol
                    if answer_check is not None and question is not None:
                        answer = answer_check(annotator, question, task.item_ids)
                    else:
                        answer = annotators.answer(annotator, protocol, task.item_ids)
                    seconds = annotators.seconds(protocol)
                    count += 1
                study.tell(task, answer, seconds=seconds)
                queue.on_answer()
                with lock:
                    on_progress()
        except BaseException as error:
            failures.append(error)

    _answer_questionnaires(study, annotators.names, rng)
    shares = [
        AnnotatorQueue(annotators.names[number::threads], child) for number, child in enumerate(rng.spawn(threads))
    ]
    workers = [threading.Thread(target=work, args=(share,)) for share in shares[1:]]
    for worker in workers:
        worker.start()
    work(shares[0])
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return count


def _answer_questionnaires(study: Study, names: Sequence[str], rng: np.random.Generator) -> None:
    """Give simulated annotators random answers to the questions that form groups; texts are left out."""
    for name in names if study.annotators.questionnaire() else ():
        questions = study.annotators.questionnaire(name)
        answers = {question.name: _random_attribute(question, rng) for question in questions}
        if questions:
            study.annotators.record_questionnaire(name, answers)


def _random_attribute(question: EntryQuestion, rng: np.random.Generator) -> str | float | None:
    if question.type == "choice":
        return str(rng.choice(question.choices))
    if question.type == "text":
        return None if question.optional or question.prefer_not_to_say else "simulated"
    inner = question.breaks or (0.0,)
    low = inner[0] - 1 if question.minimum is None else question.minimum
    high = max(inner[-1] + 1, low + 1) if question.maximum is None else question.maximum
    return float(rng.uniform(low, high))


def _check_of(study: Study, task: Task) -> Question | None:
    """Return the question of a check; None for any other task."""
    with study.core.log.read() as state:
        assigned = state.assigned_task(task.judgment_id)
        is_check = assigned is not None and assigned.purpose == "check"
        return state.quality.questions.get(assigned.about) if assigned is not None and is_check else None


def answer_study_with_crowd(
    study: Study,
    crowd: Sequence[SimulatedAnnotator],
    truth: Truth,
    rng: np.random.Generator,
    on_progress: Callable[[], None] = lambda: None,
    most: int | None = None,
    threads: int = 1,
) -> int:
    """Let a simulated crowd answer a study, as `answer_study` does; `truth` gives each item's value on [0, 1]."""
    return answer_study(
        study, SimulatedAnnotators(crowd, truth, rng), rng, on_progress=on_progress, most=most, threads=threads
    )
