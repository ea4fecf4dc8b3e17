"""A study: items, stages and a model bound together; `ask` and `tell` are the whole of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, get_args

import polars as pl

from steelyard.errors import TaskError
from steelyard.models.display import html_table
from steelyard.observations import Index
from steelyard.quality.pay import pay_table
from steelyard.quality.questions import Question, read_questions
from steelyard.quality.signals import broken_rules, signals
from steelyard.quality.stopping import Look, StopRule, take_look
from steelyard.records import ABOUT_PEOPLE, Item, Judgment, Task
from steelyard.reliability.annotators import with_others
from steelyard.store import Access, Store
from steelyard.store.engine import study_url
from steelyard.store.events import to_json
from steelyard.study.asking import now_in_microseconds
from steelyard.study.collect import collect
from steelyard.study.config_tables import Stop
from steelyard.study.ledger import Ledger, State, item_to_data
from steelyard.study.opening import changed_items, check_same_questions, check_study, items_digest
from steelyard.study.outcome import Outcome
from steelyard.study.people import Answered, Feedback, Standing, Texts, read_texts, text_digest
from steelyard.study.private import Private
from steelyard.study.results import judgment_of, kind_for
from steelyard.study.status import status_of
from steelyard.study.tasks import (
    annotator_name,
    checked_reason,
)
from steelyard.study.vetting import CheckStatus, question_data
from steelyard.version import __version__

_ITEMS_PER_EVENT = 1000


class Study(Private, Outcome):
    """Ask people and tell what they answered.

    Open one with `Study.open(folder)`. Several threads and processes may use the same study at once.
    """

    @classmethod
    def open(
        cls, folder: str | Path, *, database: str | None = None, clock: Callable[[], int] = now_in_microseconds
    ) -> Study:
        """Open the study in a folder, creating its database the first time.

        `database` overrides the one in study.toml; one that several studies share needs their names. Items that
        were added to the items file since the last time join the study; items that vanished, or show annotators
        something else than before, are refused.
        """
        folder = Path(folder)
        config, items = check_study(folder)
        url = study_url(folder, config.database, database)
        study = cls(folder, config, Store.open(url, config.name), clock)
        try:
            study._take_in(items, items_digest(folder, config.items))
        except BaseException:
            study.close()
            raise
        return study

    def close(self) -> None:
        """Give the database back."""
        self._journal.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Study({self.config.title!r}, {len(self.items)} items, {self.status().judgments} judgments)"

    def _repr_html_(self) -> str:
        """Show in a notebook how far the study is."""
        status = self.status()
        rows = [(s.name, s.protocol, s.design, s.done, s.total, s.tasks_out) for s in status.stages]
        names = ["stage", "protocol", "design", "done", "planned", "out"]
        said = f"{status.judgments:,} answers of {status.annotators:,} annotators about {status.items:,} items"
        notes = [self.config.question, f"{said}; the study is {status.state}"]
        if status.excluded:
            notes.append(f"{status.excluded:,} annotators excluded, {status.set_aside:,} judgments set aside")
        return html_table(pl.DataFrame(rows, schema=names, orient="row"), self.config.title, notes)

    # People

    @property
    def state(self) -> State:
        """Whether the study is open, paused or closed."""
        with self._journal.reading() as ledger:
            return ledger.state

    @property
    def state_reason(self) -> str:
        """What annotators read while the study is paused or closed."""
        with self._journal.reading() as ledger:
            return ledger.state_reason

    def exclude(self, annotator: str, reason: str) -> None:
        """Ask an annotator nothing more and set their judgments aside: kept, not counted, asked of others again."""
        annotator = annotator_name(annotator)
        with self._journal.writing() as entry:
            if annotator in entry.ledger.excluded:
                return
            if not entry.ledger.knows(annotator):
                raise TaskError(f"nobody called '{annotator}' has worked on this study.", "Check the name's spelling.")
            self._exclude(entry, annotator, {"reason": checked_reason(reason)}, self._clock())

    def readmit(self, annotator: str, reason: str = "") -> None:
        """Undo an exclusion: the annotator's judgments count again."""
        annotator = annotator_name(annotator)
        with self._journal.writing() as entry:
            if annotator in entry.ledger.excluded:
                data = {"reason": checked_reason(reason)}
                entry.append("readmission", at=self._clock(), annotator=annotator, data=data)

    def set_state(self, state: State, reason: str = "") -> None:
        """Open, pause or close the study. A study that is not open asks nothing; answers on their way are kept."""
        if state not in get_args(State):
            raise TaskError(f"a study cannot be '{state}'.", f"Use one of: {', '.join(get_args(State))}.")
        with self._journal.writing() as entry:
            if (entry.ledger.state, entry.ledger.state_reason) != (state, reason):
                data = {"state": state, "reason": checked_reason(reason)}
                entry.append("state", at=self._clock(), data=data)

    def consent(self, annotator: str) -> None:
        """Note that an annotator agreed to the study's consent, in its present wording."""
        text = self.texts().consent or ""
        digest = text_digest(text)
        self._note_person("consent", annotator, {"digest": digest})

    def note_training(self, annotator: str, right: int, asked: int) -> None:
        """Note that an annotator has done the training."""
        self._note_person("trained", annotator, {"right": right, "asked": asked})

    def tested(self, annotator: str) -> int:
        """How many questions of the qualification test an annotator has answered."""
        with self._journal.reading() as ledger:
            return len(ledger.test_answers.get(annotator_name(annotator), ()))

    def answer_test(self, annotator: str, number: int, answer: Any) -> bool | None:
        """Answer question `number` (from 1) of the qualification test; after the last, say whether it was passed.

        Answers stay in the log, so the test cannot be taken twice; answering the same question again is a retry
        and changes nothing.
        """
        annotator, questions = annotator_name(annotator), self.qualification()
        test = self.config.quality.qualification
        with self._journal.writing() as entry:
            given = entry.ledger.test_answers[annotator]
            if 1 <= number <= len(given):
                return entry.ledger.qualified.get(annotator)
            if test is None or number != len(given) + 1 or number > len(questions):
                raise TaskError(f"question {number} of the test is not next.", f"Answer question {len(given) + 1}.")
            right = questions[len(given)].grade(answer)
            now = self._clock()
            entry.append("tested", at=now, annotator=annotator, data={"right": right})
            if len(given) < len(questions):
                return None
            passed = sum(given) >= test.pass_ * len(given)
            entry.append("qualified", at=now, annotator=annotator, data={"passed": passed, "right": sum(given)})
        return passed

    def checks(self) -> list[CheckStatus]:
        """How the checks were answered, and which are disputed."""
        with self._journal.reading() as ledger:
            return ledger.vetting.checks()

    def check_results(self) -> dict[str, tuple[int, int]]:
        """How many checks each annotator got right, of how many that count."""
        with self._journal.reading() as ledger:
            return ledger.vetting.results()

    def settle_check(self, key: str, verdict: Literal["right", "wrong"]) -> None:
        """Say what a look at a disputed check found: is its known answer right or wrong?"""
        if verdict not in {"right", "wrong"}:
            raise TaskError(f"a check's answer cannot be '{verdict}'.", "Say right or wrong.")
        with self._journal.writing() as entry:
            if key not in {check.key for check in entry.ledger.vetting.checks()}:
                raise TaskError(f"there is no check '{key}'.", "See the list of checks.")
            now = self._clock()
            entry.append("settled", at=now, data={"check": key, "verdict": verdict})
            self._apply_checks(entry, now)

    def signals(self) -> pl.DataFrame:
        """Signs of careless work, a row for each annotator, with their agreement with the others."""
        judgments = list(self._effective())
        protocols = {stage.name: stage.protocol for stage in self.config.stages}
        letters = {item.id: len(item.text) + len(item.context or "") + len(item.reference or "") for item in self.items}
        # Who is excluded is still held against the rest, but the rest not against them.
        kinds = {kind for stage in self.config.stages for kind in stage.protocol.kinds[:1]}
        index = Index([item.id for item in self.items])
        said = [j for j in judgments if j.purpose not in ABOUT_PEOPLE]
        found = [with_others(collect(kind, said, protocols, index), set(self.excluded)) for kind in sorted(kinds)]
        columns = ["annotator", "agreement", "agreement_lower", "agreement_upper"]
        others = pl.concat([part.select(columns) for part in found]).unique("annotator", maintain_order=True)
        return signals(judgments, protocols, letters).join(others, on="annotator", how="left", maintain_order="left")

    def vet(self) -> dict[str, str]:
        """Exclude who breaks the rules of [quality.rules]; return whom, and why."""
        rules = self.config.quality.rules.model_dump()
        if not any(rules.values()):
            return {}
        table = self.signals()
        broken = broken_rules(table, rules, table)
        excluded = {}
        with self._journal.writing() as entry:
            for annotator, reason in broken.items():
                if annotator not in entry.ledger.excluded and annotator not in entry.ledger.vetting.pardoned:
                    self._exclude(entry, annotator, {"reason": reason, "by": "rules"}, self._clock())
                    excluded[annotator] = reason
        return excluded

    def pay(self) -> pl.DataFrame:
        """What every annotator has earned by [pay], a row each: annotator, tasks, hours, pay, bonus, total and more.

        The platform's fee is not in it: people do not get it.
        """
        checks, pay = self.config.quality.checks, self.config.pay
        threshold = 0.0 if checks is None else checks.pass_
        return pay_table(self.judgments(), self.check_results(), self.excluded, pay.rates, pay.formula, threshold)

    def feedback(self, judgment: Judgment) -> Feedback | None:
        """What to tell an annotator after a loud check; None where nothing is to be told."""
        rule = self.config.quality.checks
        if judgment.purpose != "check" or rule is None or not rule.loud or judgment.right is None:
            return None
        with self._journal.reading() as ledger:
            out = ledger.out_task(judgment.judgment_id)
            question = ledger.vetting.questions.get(out.about) if out is not None else None
        return None if question is None else Feedback(judgment.right, question.expected, question.feedback)

    def knows(self, annotator: str) -> bool:
        """Whether anything in the log is about an annotator."""
        annotator = annotator_name(annotator)
        with self._journal.reading() as ledger:
            return (
                ledger.knows(annotator)
                or annotator in ledger.consented
                or annotator in ledger.trained
                or annotator in ledger.test_answers
                or annotator in ledger.recruits.arrivals
                or annotator in ledger.recruits.quotas
            )

    def standing(self, annotator: str) -> Standing:
        """How far an annotator is."""
        annotator = annotator_name(annotator)
        consent = self.texts().consent
        with self._journal.reading() as ledger:
            return Standing(
                answered=ledger.answered_by(annotator),
                limit=ledger.recruits.quotas.get(annotator, self.config.people.tasks),
                consented=consent is None or ledger.consented.get(annotator) == text_digest(consent),
                trained=self.config.people.training is None or annotator in ledger.trained,
                qualified=self.config.quality.qualification is None or ledger.qualified.get(annotator),
                excluded=ledger.excluded.get(annotator),
            )

    def recent(self, annotator: str, count: int) -> list[Answered]:
        """An annotator's last answers with their tasks, the last one first."""
        found = self._journal.answered_by(annotator_name(annotator), count)
        with self._journal.reading() as ledger:
            return [
                Answered(self._task(ledger, stored), judgment_of(event, self.config.stages)) for stored, event in found
            ]

    def stored_task(self, judgment_id: str) -> Task:
        """Return a task that went out, open or not."""
        stored = self._journal.task(judgment_id)
        if stored is None:
            raise TaskError(f"there is no task {judgment_id} in this study.", "Ask for a task first.")
        with self._journal.reading() as ledger:
            return self._task(ledger, stored)

    def texts(self) -> Texts:
        """What annotators read before they begin, as Markdown."""
        return self._texts

    @cached_property
    def _texts(self) -> Texts:
        return read_texts(self.folder, self.config.people)

    def training(self) -> list[Question]:
        """The practice questions, with their answers."""
        return self._questions(self.config.people.training)

    def qualification(self) -> list[Question]:
        """The questions of the test before the first task, with their answers."""
        return self._test

    @cached_property
    def _test(self) -> list[Question]:
        test = self.config.quality.qualification
        return self._questions(None if test is None else test.file)

    def last_seq(self) -> int:
        """The number of the log's last event: while it stays the same, so does everything else."""
        return self._journal.last_seq()

    @cached_property
    def access(self) -> Access:
        """The tokens that let people in."""
        return self._journal.access(self._clock)

    # When it is enough

    def look_is_due(self) -> bool:
        """Whether `look` would look; this is cheap."""
        rule = self.config.stop
        if rule is None:
            return False
        with self._journal.reading() as ledger:
            return self._next_look(rule, ledger)[1]

    def look(self) -> Look | None:
        """Look whether the study may stop, if a look is due; close the study when it may.

        Looks are due after even shares of the planned judgments; calling this at any time is harmless.
        """
        rule = self.config.stop
        if rule is None:
            return None
        with self._journal.reading() as ledger:
            number, due = self._next_look(rule, ledger)
        if not due:
            return None
        plan = StopRule(rule.measure, rule.target, rule.looks, rule.alpha, rule.spearman_brown)
        by_criterion = self.observations(kind_for(self.config.model, self.config.stages))
        looks = [take_look(plan, number, part, self.config.model) for part in by_criterion.values()]
        # Every criterion must have reached the target: the one that is furthest from it speaks for all.
        seen = min(looks, key=lambda look: look.reached)
        with self._journal.writing() as entry:
            if self._next_look(rule, entry.ledger) != (number, True):
                return None
            now = self._clock()
            entry.append("look", at=now, data=asdict(seen))
            if seen.reached:
                reason = f"The target was reached: {seen.said}."
                entry.append("state", at=now, data={"state": "closed", "reason": reason})
        return seen

    def _next_look(self, rule: Stop, ledger: Ledger) -> tuple[int, bool]:
        status = status_of(self.config, ledger)
        done, total = (sum(getattr(stage, name) for stage in status.stages) for name in ("done", "total"))
        number = ledger.looks + 1
        due = ledger.state == "open" and number <= rule.looks and done * rule.looks >= number * total > 0
        return number, due

    # Inside

    def _questions(self, file: str | None) -> list[Question]:
        return [] if file is None else self._questions_of(file, self.items)

    def _questions_of(self, file: str, items: Sequence[Item]) -> list[Question]:
        return read_questions(self.folder / file, self.config.stages[0].protocol, items)

    def _note_person(self, kind: str, annotator: str, data: dict[str, Any]) -> None:
        with self._journal.writing() as entry:
            entry.append(kind, at=self._clock(), annotator=annotator_name(annotator), data=data)

    def _take_in(self, items: Sequence[Item], source_digest: str) -> None:
        """Bring the log up to date with study.toml and the items file; usually there is nothing to do."""
        # Where the database is, and with which password, is nobody's business who reads the log.
        config = {key: value for key, value in (self.config.source or {}).items() if key != "database"}
        data: dict[str, Any] = {"config": config, "items_digest": source_digest, "software": __version__}
        checks = self.config.quality.checks
        questions = [] if checks is None else question_data(self._questions_of(checks.file, items))
        if questions:
            data["checks_digest"] = text_digest(to_json(questions))
        last = self._journal.config_event()
        if last is not None and last.data == data:
            self._journal.settle(last.seq)
            return
        if last is not None and self._journal.has_tasks():
            check_same_questions(last.data["config"], self.config)
        with self._journal.writing(alone=True) as entry:
            now = self._clock()
            if entry.ledger.config.get("items_digest") != source_digest:
                new = changed_items(entry.ledger, items, self.config.items.file)
                for start in range(0, len(new), _ITEMS_PER_EVENT):
                    chunk = [item_to_data(item) for item in new[start : start + _ITEMS_PER_EVENT]]
                    entry.append("items", at=now, data={"items": chunk})
            if questions and entry.ledger.config.get("checks_digest") != data["checks_digest"]:
                entry.append("checks", at=now, data={"questions": questions})
            if entry.ledger.config != data:
                entry.append("config", at=now, data=data)
            self._journal.settle(entry.ledger.seq)
