"""What the checks, repeats and overlap say about annotators, as a fold over the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from steelyard.quality.accuracy import probability_below
from steelyard.quality.questions import Question
from steelyard.study.config_tables import Checks

_DISPUTED_ANSWERS = 5
"""A check is disputed when at least so many have answered it and most of them against its answer."""


@dataclass(frozen=True, slots=True)
class CheckStatus:
    """How a check was answered; a disputed one counts against nobody until somebody has looked."""

    key: str
    right: int
    wrong: int
    disputed: bool
    settled: str | None
    """`right` or `wrong`: what somebody who looked found its known answer to be."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A task that everybody gets."""

    stage: int
    items: tuple[int, ...]
    slot: int | None


@dataclass(slots=True)
class _Person:
    asked: set[str] = field(default_factory=set)
    """Checks that are out or answered."""
    results: dict[str, bool] = field(default_factory=dict)
    tasks: list[str] = field(default_factory=list)
    """Judgments that could be repeated, in the order they came."""
    repeated: set[str] = field(default_factory=set)


class Vetting:
    """Who was checked with what result, what was repeated, and what everybody gets."""

    def __init__(self) -> None:
        self.questions: dict[str, Question] = {}
        self.shared: list[Shared] = []
        self.settled: dict[str, str] = {}
        self.by_checks: set[str] = set()
        """Annotators excluded by the checks."""
        self.pardoned: set[str] = set()
        """Annotators whom a person readmitted: the checks leave them alone."""
        self._people: defaultdict[str, _Person] = defaultdict(_Person)

    def unseen_checks(self, annotator: str) -> list[str]:
        """The checks that an annotator has not had, in the file's order."""
        asked = self._people[annotator].asked
        return [key for key in self.questions if key not in asked and self.settled.get(key) != "wrong"]

    def repeatable(self, annotator: str, after: int) -> list[str]:
        """The judgments that lie far enough back to be asked again, and have not been."""
        person = self._people[annotator]
        return [key for key in person.tasks[: max(0, len(person.tasks) - after)] if key not in person.repeated]

    # What happens

    def check_asked(self, annotator: str, key: str, *, taken_back: bool = False) -> None:
        """Note that a check went out, or came back unanswered."""
        asked = self._people[annotator].asked
        if taken_back:
            asked.discard(key)
        else:
            asked.add(key)

    def check_answered(self, annotator: str, key: str, right: bool) -> None:
        """Note how a check was answered."""
        self._people[annotator].results[key] = right

    def repeat_asked(self, annotator: str, judgment_id: str, *, taken_back: bool = False) -> None:
        """Note that a task is asked again, or was not answered again."""
        repeated = self._people[annotator].repeated
        if taken_back:
            repeated.discard(judgment_id)
        else:
            repeated.add(judgment_id)

    def judged(self, annotator: str, judgment_id: str) -> None:
        """Note a judgment that may be repeated later."""
        self._people[annotator].tasks.append(judgment_id)

    # What it says

    def checks(self) -> list[CheckStatus]:
        """How each check was answered."""
        right: defaultdict[str, int] = defaultdict(int)
        wrong: defaultdict[str, int] = defaultdict(int)
        for person in self._people.values():
            for key, passed in person.results.items():
                (right if passed else wrong)[key] += 1
        keys = dict.fromkeys([*self.questions, *right, *wrong])
        return [
            CheckStatus(key, right[key], wrong[key], self._disputed(key, right[key], wrong[key]), self.settled.get(key))
            for key in keys
        ]

    def _disputed(self, key: str, right: int, wrong: int) -> bool:
        return key not in self.settled and right + wrong >= _DISPUTED_ANSWERS and wrong > right

    def results(self) -> dict[str, tuple[int, int]]:
        """How many checks each annotator got right, of how many that count."""
        void = {status.key for status in self.checks() if status.disputed or status.settled == "wrong"}
        counted = {
            name: [passed for key, passed in person.results.items() if key not in void]
            for name, person in self._people.items()
        }
        return {name: (sum(passed), len(passed)) for name, passed in counted.items() if passed}

    def failing(self, rule: Checks) -> dict[str, str]:
        """Who fails the checks, and the reason as the log keeps it."""
        counts = {name: pair for name, pair in self.results().items() if name not in self.pardoned}
        if not counts:
            return {}
        right, asked = np.array(list(counts.values())).T
        enough = asked >= rule.at_least
        if rule.rule == "plain":
            fails = enough & (right / asked < rule.pass_)
            told = ["" for _ in fails]
        else:
            below = probability_below(right, asked, rule.pass_)
            fails = enough & (below >= rule.confidence)
            told = [f"; below {rule.pass_:.0%} with probability {p:.3f}" for p in below]
        return {
            name: f"{x} of {n} checks right{how}"
            for (name, (x, n)), failed, how in zip(counts.items(), fails, told, strict=True)
            if failed
        }


def question_data(questions: Sequence[Question]) -> list[dict[str, object]]:
    """Return what the log keeps of questions: their rows, from which they are read again."""
    return [dict(question.cells) for question in questions]
