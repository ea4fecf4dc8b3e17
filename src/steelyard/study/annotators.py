"""The annotators of a study: consent, questionnaire, training and test, progress, exclusion, pay."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from steelyard.errors import ConfigError, TaskError, did_you_mean
from steelyard.quality.pay import pay_table
from steelyard.quality.questions import Question
from steelyard.records import AnnotatorKind, Judgment, Task
from steelyard.study import events as ev
from steelyard.study.config.tables import AnnotatorSettings, EntryQuestion
from steelyard.study.core import Core
from steelyard.study.events import decode_own
from steelyard.study.judges import people_only
from steelyard.study.judgments import effective_judgments, judgment_frame, judgment_of
from steelyard.study.leases import annotator_name, checked_reason
from steelyard.study.questionnaire import checked_answers, group_name

_TEXT_FILES = (".md", ".txt")


@dataclass(frozen=True, slots=True)
class AnnotatorProgress:
    """The progress of one annotator; `excluded` is the reason of an exclusion, if there is one.

    `qualified` is None for annotators who have not taken the test yet.
    """

    answered: int
    limit: int | None
    consented: bool
    questioned: bool
    trained: bool
    qualified: bool | None
    excluded: str | None


@dataclass(frozen=True, slots=True)
class AnsweredTask:
    """A task with its answer."""

    task: Task
    judgment: Judgment


@dataclass(frozen=True, slots=True)
class Texts:
    """What annotators read before they begin, as Markdown."""

    consent: str | None
    instructions: str | None


class Annotators:
    """The annotators of a study, available as `study.annotators`."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._log = core.log
        self._clock = core.clock

    def names(self) -> list[str]:
        """All people who were assigned a task, consented, took the test, were excluded or recruited; and all models."""
        with self._log.read() as state:
            return state.names()

    def kind(self, annotator: str) -> AnnotatorKind:
        """Return whether an annotator is a person or a model."""
        with self._log.read() as state:
            return state.kind_of(annotator_name(annotator))

    def knows(self, annotator: str) -> bool:
        """Whether the log contains anything about an annotator."""
        with self._log.read() as state:
            return state.has_record(annotator_name(annotator))

    # Exclusion

    @property
    def excluded(self) -> dict[str, str]:
        """The excluded annotators, whose judgments do not count, with the reasons."""
        with self._log.read() as state:
            return dict(state.excluded)

    def exclude(self, annotator: str, reason: str, *, member: str = "") -> None:
        """Exclude an annotator: no further tasks, their judgments do not count, and their tasks are reassigned.

        `member` is the member of the study's team who excludes them.
        """
        annotator = annotator_name(annotator)
        with self._log.write() as transaction:
            if annotator in transaction.state.excluded:
                return
            if not transaction.state.knows(annotator):
                raise TaskError(f"there is no annotator '{annotator}' in this study.", "Check the name's spelling.")
            exclusion = ev.Excluded(reason=checked_reason(reason), member=member)
            self._core.exclude(transaction, annotator, exclusion, self._clock())

    def readmit(self, annotator: str, reason: str = "", *, member: str = "") -> None:
        """Undo an exclusion: the annotator's judgments count again."""
        annotator = annotator_name(annotator)
        with self._log.write() as transaction:
            if annotator in transaction.state.excluded:
                readmission, now = ev.Readmitted(reason=checked_reason(reason), member=member), self._clock()
                transaction.append(readmission, at=now, annotator=annotator)
                self._core.apply_item_rule(transaction, None, now)

    # Before the first task

    def texts(self) -> Texts:
        """Return what annotators read before they begin, as Markdown."""
        return self._texts

    def record_consent(self, annotator: str) -> None:
        """Record that an annotator agreed to the current wording of the consent text."""
        self._record(ev.Consented(digest=text_digest(self._texts.consent or "")), annotator)

    def questionnaire(self, annotator: str | None = None) -> list[EntryQuestion]:
        """Return the questions about annotators themselves; of an annotator, those not yet asked."""
        questions = list(self._core.config.annotators.questionnaire)
        if annotator is None:
            return questions
        with self._log.read() as state:
            answered = state.questionnaires.get(annotator_name(annotator), {})
        return [question for question in questions if question.name not in answered]

    def record_questionnaire(self, annotator: str, answers: Mapping[str, object]) -> None:
        """Record an annotator's answers to the questionnaire, by the name of the question.

        None stands for “Prefer not to say”. Questions that the annotator has answered before keep their answer.
        """
        questions = self.questionnaire(annotator)
        names = {question.name for question in self.questionnaire()} - {question.name for question in questions}
        result = checked_answers(questions, {name: answer for name, answer in answers.items() if name not in names})
        if questions:
            self._record(ev.QuestionnaireAnswered(asked=list(result), answers=result), annotator)

    def attributes(self) -> pl.DataFrame:
        """Return the answers to the questionnaire: annotator, and one column for each question."""
        questions = self.questionnaire()
        with self._log.read() as state:
            answers = {name: state.questionnaires[name] for name in sorted(state.questionnaires)}
        columns = {
            question.name: pl.Series(
                [given.get(question.name) for given in answers.values()],
                dtype=pl.Float64 if question.type == "number" else pl.String,
                strict=False,
            )
            for question in questions
        }
        return pl.DataFrame({"annotator": pl.Series(list(answers), dtype=pl.String), **columns})

    def groups(self, name: str) -> dict[str, str]:
        """Return the group of each annotator by their answer to a question; those without an answer are left out."""
        questions = {question.name: question for question in self.questionnaire()}
        if name not in questions:
            raise ConfigError(
                f"the questionnaire has no question '{name}'.",
                did_you_mean(name, list(questions)) or "Add it to [[annotators.questionnaire]], or give a table.",
            )
        with self._log.read() as state:
            answers = {annotator: given.get(name) for annotator, given in state.questionnaires.items()}
        groups = {annotator: group_name(questions[name], answer) for annotator, answer in answers.items()}
        return {annotator: group for annotator, group in groups.items() if group is not None}

    def training(self) -> list[Question]:
        """Return the practice questions, with their answers."""
        return self._core.questions(self._core.config.annotators.training)

    def record_training(self, annotator: str, right: int, asked: int) -> None:
        """Record that an annotator has finished the training."""
        self._record(ev.Trained(right=right, asked=asked), annotator)

    def qualification(self) -> list[Question]:
        """Return the questions of the qualification test, with their answers."""
        return self._test

    def test_answers(self, annotator: str) -> int:
        """How many questions of the qualification test an annotator has answered."""
        with self._log.read() as state:
            return len(state.test_answers.get(annotator_name(annotator), ()))

    def answer_test(self, annotator: str, number: int, answer: Any) -> bool | None:
        """Answer question `number` (from 1) of the qualification test; after the last, return whether it was passed.

        Answers are kept in the log, so the test cannot be taken twice. Answering the same question again has no effect.
        """
        annotator, questions = annotator_name(annotator), self._test
        test = self._core.config.quality.qualification
        with self._log.write() as transaction:
            results = transaction.state.test_answers[annotator]
            if 1 <= number <= len(results):
                return transaction.state.qualified.get(annotator)
            if test is None or number != len(results) + 1 or number > len(questions):
                raise TaskError(f"question {number} of the test is not next.", f"Answer question {len(results) + 1}.")
            right = questions[len(results)].grade(answer)
            now = self._clock()
            transaction.append(ev.TestAnswered(right=right), at=now, annotator=annotator)
            if len(results) < len(questions):
                return None
            passed = sum(results) >= test.min_accuracy * len(results)
            transaction.append(ev.TestFinished(passed=passed, right=sum(results)), at=now, annotator=annotator)
        return passed

    # Work

    def progress(self, annotator: str, *, latest: bool = True) -> AnnotatorProgress:
        """Return the progress of an annotator; without `latest`, newer events of other processes are not read."""
        annotator = annotator_name(annotator)
        config, consent = self._core.config, self._texts.consent
        with self._log.read() if latest else self._log.peek() as state:
            return AnnotatorProgress(
                answered=state.answered_by(annotator),
                limit=None
                if annotator in state.judges
                else state.recruitment.quotas.get(annotator, config.annotators.max_tasks),
                consented=consent is None or state.consents.get(annotator) == text_digest(consent),
                questioned=state.questionnaires.get(annotator, {}).keys()
                >= {question.name for question in config.annotators.questionnaire},
                trained=config.annotators.training is None or annotator in state.trained,
                qualified=config.quality.qualification is None or state.qualified.get(annotator),
                excluded=state.excluded.get(annotator),
            )

    def recent_answers(self, annotator: str, count: int) -> list[AnsweredTask]:
        """Return an annotator's last answers with their tasks, the latest first."""
        answered = self._log.store.answered_by(annotator_name(annotator), count)
        stages = self._core.config.stages
        with self._log.read() as state:
            return [
                AnsweredTask(self._core.task(state, stored), judgment_of(decode_own(event), stages))
                for stored, event in answered
            ]

    def counted(self, annotator: str) -> int:
        """How many of an annotator's judgments count."""
        with self._log.read() as state:
            return state.counted_of(annotator)

    def pay(self) -> pl.DataFrame:
        """Return the earnings of every annotator by [pay]: annotator, tasks, hours, pay, bonus, total and more.

        The platform's fee is not included. Models are not paid.
        """
        config = self._core.config
        threshold = 0.0 if config.quality.checks is None else config.quality.checks.min_accuracy
        judgments = judgment_frame(people_only(effective_judgments(self._log, config.stages)))
        with self._log.read() as state:
            results, excluded = state.quality.results(), dict(state.excluded)
        return pay_table(judgments, results, excluded, config.pay.rates, config.pay.formula, threshold)

    def _record(self, payload: ev.Payload, annotator: str) -> None:
        with self._log.write() as transaction:
            transaction.append(payload, at=self._clock(), annotator=annotator_name(annotator))

    @cached_property
    def _texts(self) -> Texts:
        return read_texts(self._core.folder, self._core.config.annotators)

    @cached_property
    def _test(self) -> list[Question]:
        test = self._core.config.quality.qualification
        return self._core.questions(None if test is None else test.file)


def read_texts(folder: Path, settings: AnnotatorSettings) -> Texts:
    """Return the texts; a value that ends in .md or .txt is the name of a file in the study's folder."""
    return Texts(_text(folder, settings.consent, "consent"), _text(folder, settings.instructions, "instructions"))


def names_a_file(text: str) -> bool:
    """Whether a text in study.toml is the name of a file that contains the text."""
    return "\n" not in text and text.endswith(_TEXT_FILES)


def _text(folder: Path, value: str | None, key: str) -> str | None:
    if value is None or not names_a_file(value):
        return value
    try:
        return (folder / value).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(
            f"{folder / value} cannot be read: {why}.",
            "Create the file, or write the text into study.toml.",
            field=f"annotators.{key}",
        ) from None


def text_digest(text: str) -> str:
    """Return a digest that identifies a wording."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
