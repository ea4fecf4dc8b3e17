"""What a design remembers of a stage beyond who was shown what: plans, and what the answers said.

A memory is part of the stage's Progress, and like it a fold over the stage's events: replaying the log
brings it to the same state. Designs that need none (`redundant`) have none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from steelyard.observations import Observation
from steelyard.records import Item

if TYPE_CHECKING:
    from steelyard.designs.progress import Progress

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer as designs hear of it: the items' codes in the order shown, and what the answer says of them.

    `own` is false for answers to another stage of the study.
    """

    judgment_id: str
    annotator: str
    items: tuple[int, ...]
    observations: Sequence[Observation]
    own: bool = True


class Memory:
    """Takes in what happens in a stage. Subclasses override what concerns them.

    `now` is the time of the event being taken in, or of the pick being made, in microseconds; 0 without a clock.
    """

    now = 0

    def add_items(self, items: Sequence[Item]) -> None:
        """Take in new items; their codes go on from those before."""

    def picked(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Note that a task goes out (or a late answer brings it back); `items` are in the order shown."""

    def released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Note that a task came back unanswered, or that its answer no longer counts."""

    def heard(self, answer: Heard) -> None:
        """Learn from an answer; of any stage, as `own` says."""

    def unheard(self, answer: Heard) -> None:
        """Unlearn an answer that was revised or set aside, as far as that is possible."""

    def open_round(self, number: int, progress: Progress, rng: np.random.Generator) -> None:
        """Begin the round in which the next task is picked, from the state just before it."""

    def restart(self) -> None:
        """Drop plans that were made under another configuration."""


class Planning(Memory, ABC, Generic[P]):
    """A memory with a plan for each round, made from the state at the round's first pick.

    `pick` must not change anything, so it looks at the plan `ahead`; the plan comes into force when the pick
    is taken in. Both draw the plan from the same child of the pick's generator, so both see the same plan.
    """

    def __init__(self) -> None:
        self.round = -1
        self.plan: P | None = None
        self._ahead: tuple[tuple[object, ...], P] | None = None

    @abstractmethod
    def make_plan(self, progress: Progress, rng: np.random.Generator) -> P:
        """Return the plan of the next round, changing nothing."""

    def ahead(self, progress: Progress, rng: np.random.Generator) -> P:
        """Return the plan that a pick made now would bring into force.

        It is kept for this state and this generator: events that do not concern the stage change the
        generator alone, and who replays the log sees only the one that counts.
        """
        seed = rng.bit_generator.seed_seq
        key = (progress.version, str(seed.entropy), seed.spawn_key)  # type: ignore[attr-defined]
        if self._ahead is None or self._ahead[0] != key:
            self._ahead = (key, self.make_plan(progress, rng.spawn(1)[0]))
        return self._ahead[1]

    def open_round(self, number: int, progress: Progress, rng: np.random.Generator) -> None:
        """Bring the next plan into force, if this is a new round."""
        if number > self.round:
            self.plan = self.ahead(progress, rng)
            self.round = number
        self._ahead = None

    def restart(self) -> None:
        """Drop the plan; the next pick opens a new round."""
        self.plan = None
        self._ahead = None
