"""Checks, repeats and overlap: what was assigned and how it was answered, folded from the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard.quality.accuracy import probability_below
from steelyard.quality.questions import Question
from steelyard.study.config.tables import Checks

_DISPUTED_ANSWERS = 5
"""A check is disputed when at least this many annotators answered it and most contradict its known answer."""


@dataclass(frozen=True, slots=True)
class CheckStatus:
    """How a check was answered; a disputed check does not count until the researcher has resolved it."""

    key: str
    right: int
    wrong: int
    disputed: bool
    resolved: str | None
    """`right` or `wrong`: what the researcher decided about its known answer."""


@dataclass(frozen=True, slots=True)
class SharedTask:
    """A task that every annotator gets."""

    stage: int
    items: tuple[int, ...]
    slot: int | None


@dataclass(slots=True)
class _Annotator:
    assigned: set[str] = field(default_factory=set)
    """Checks that are leased or answered."""
    results: dict[str, bool] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)


class QualityState:
    """Results of checks by annotator, tasks repeated, and tasks that every annotator gets."""

    def __init__(self) -> None:
        self.questions: dict[str, Question] = {}
        self.shared: list[SharedTask] = []
        self.resolved: dict[str, str] = {}
        self.excluded_by_checks: set[str] = set()
        """Annotators excluded by the checks."""
        self.pardoned: set[str] = set()
        """Annotators readmitted by the researcher: checks no longer exclude them."""
        self._annotators: defaultdict[str, _Annotator] = defaultdict(_Annotator)

    def unseen_checks(self, annotator: str) -> list[str]:
        """Return the checks that an annotator has not had, in the order of the file."""
        assigned = self._annotators[annotator].assigned
        return [key for key in self.questions if key not in assigned and self.resolved.get(key) != "wrong"]

    def checks_assigned(self, annotator: str) -> int:
        """Return the number of checks that an annotator has answered or has leased."""
        return len(self._annotators[annotator].assigned)

    def repeatable(self, annotator: str, judgments: Sequence[str], after: int) -> list[str]:
        """Return those of an annotator's judgments that are old enough to be repeated and have not been."""
        repeated = self._annotators[annotator].repeated
        return [key for key in judgments[: max(0, len(judgments) - after)] if key not in repeated]

    # Updates

    def check_assigned(self, annotator: str, key: str, *, retracted: bool = False) -> None:
        """Record that a check was leased, or released unanswered."""
        assigned = self._annotators[annotator].assigned
        if retracted:
            assigned.discard(key)
        else:
            assigned.add(key)

    def check_answered(self, annotator: str, key: str, *, right: bool) -> None:
        """Record how a check was answered."""
        self._annotators[annotator].results[key] = right

    def repeat_assigned(self, annotator: str, judgment_id: str, *, retracted: bool = False) -> None:
        """Record that a task is repeated, or that its repeat was released unanswered."""
        repeated = self._annotators[annotator].repeated
        if retracted:
            repeated.discard(judgment_id)
        else:
            repeated.add(judgment_id)

    # Queries

    def checks(self) -> list[CheckStatus]:
        """Return how each check was answered."""
        right: defaultdict[str, int] = defaultdict(int)
        wrong: defaultdict[str, int] = defaultdict(int)
        for record in self._annotators.values():
            for key, passed in record.results.items():
                (right if passed else wrong)[key] += 1
        keys = dict.fromkeys([*self.questions, *right, *wrong])
        return [
            CheckStatus(
                key, right[key], wrong[key], self._disputed(key, right[key], wrong[key]), self.resolved.get(key)
            )
            for key in keys
        ]

    def _disputed(self, key: str, right: int, wrong: int) -> bool:
        return key not in self.resolved and right + wrong >= _DISPUTED_ANSWERS and wrong > right

    def results(self) -> dict[str, tuple[int, int]]:
        """Return how many checks each annotator answered correctly, and how many count."""
        void = {status.key for status in self.checks() if status.disputed or status.resolved == "wrong"}
        counted = {
            name: [passed for key, passed in record.results.items() if key not in void]
            for name, record in self._annotators.items()
        }
        return {name: (sum(passed), len(passed)) for name, passed in counted.items() if passed}

    def failing(self, rule: Checks) -> dict[str, str]:
        """Return the annotators who fail the checks, with the reason that goes into the log."""
        counts = {name: pair for name, pair in self.results().items() if name not in self.pardoned}
        if not counts:
            return {}
        right, asked = np.array(list(counts.values())).T
        enough = asked >= rule.min_checks
        if rule.rule == "threshold":
            fails = enough & (right / asked < rule.min_accuracy)
            details = ["" for _ in fails]
        else:
            below = probability_below(right, asked, rule.min_accuracy)
            fails = enough & (below >= rule.confidence)
            details = [f"; below {rule.min_accuracy:.0%} with probability {p:.3f}" for p in below]
        return {
            name: f"{x} of {n} checks right{detail}"
            for (name, (x, n)), failed, detail in zip(counts.items(), fails, details, strict=True)
            if failed
        }


def question_data(questions: Sequence[Question]) -> list[dict[str, str]]:
    """Return the rows of questions, from which they can be read again."""
    return [dict(question.cells) for question in questions]
