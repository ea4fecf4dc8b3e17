"""State that a design keeps for a stage beyond the counts of Progress: plans, and what it learned from answers.

It is part of the stage's Progress and, like it, a function of the stage's events: replaying the log gives the same
state. Designs that neither plan nor learn (`per_item`) have none.
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
class AnswerNotice:
    """An answer as designs are notified of it: item codes in display order, and the observations it yields.

    `own_stage` is false for answers to another stage of the study.
    """

    judgment_id: str
    annotator: str
    items: tuple[int, ...]
    observations: Sequence[Observation]
    own_stage: bool = True


class DesignState:
    """Handles the events of a stage. Subclasses override the handlers they need.

    `now` is the time of the current event or pick, in microseconds; 0 without a clock.
    """

    now = 0

    @property
    def learns(self) -> bool:
        """Whether the design learns from answers: other answers may lead to other tasks."""
        return type(self).on_answer is not DesignState.on_answer

    def add_items(self, items: Sequence[Item]) -> None:
        """Add new items; their codes continue those of the existing items."""

    def on_item_set_aside(self, item: int) -> None:
        """Handle that nobody is asked about an item any more."""

    def on_item_restored(self, item: int) -> None:
        """Handle that an item that was set aside is asked about again."""

    def on_leased(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Handle a task that is leased, or a late answer to a released task; `items` are in display order."""

    def on_released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Handle a task that was released without an answer, or whose answer no longer counts."""

    def on_answer(self, answer: AnswerNotice) -> None:
        """Learn from an answer to this stage or another."""

    def on_retract(self, answer: AnswerNotice) -> None:
        """Unlearn an answer that was revised or no longer counts, as far as the design can."""

    def on_model_answer(self, answer: AnswerNotice) -> None:
        """Learn from a model's answer that does not count as a judgment."""

    def on_model_retract(self, answer: AnswerNotice) -> None:
        """Unlearn a model's answer."""

    def on_shared(self, items: tuple[int, ...]) -> None:
        """Handle that every annotator gets a task with these items, to measure agreement."""

    def start_round(self, number: int, progress: Progress, rng: np.random.Generator) -> None:
        """Start the round of the next pick, if it has not started, from the state just before the pick."""

    def on_config_change(self) -> None:
        """Discard plans made under the previous configuration."""


class PlannedState(DesignState, ABC, Generic[P]):
    """State with one plan per round, computed from the state at the first pick of the round.

    `pick` must not change anything, so it reads the plan with `next_plan`; `start_round` puts that plan into effect
    when the pick is recorded. Both draw it from the same child of the pick's generator, so both get the same plan.
    """

    def __init__(self) -> None:
        self.round = -1
        self.plan: P | None = None
        self._next_plan: tuple[tuple[object, ...], P] | None = None

    @abstractmethod
    def make_plan(self, progress: Progress, rng: np.random.Generator) -> P:
        """Compute the plan of the next round without changing anything."""

    def next_plan(self, progress: Progress, rng: np.random.Generator) -> P:
        """Return the plan that a pick made now would put into effect.

        It is cached for this state and this generator. Events of other stages change the generator alone, and a replay
        only sees the generator of the pick that was recorded.
        """
        seed = rng.bit_generator.seed_seq
        key = (progress.version, str(seed.entropy), seed.spawn_key)  # type: ignore[attr-defined]
        if self._next_plan is None or self._next_plan[0] != key:
            self._next_plan = (key, self.make_plan(progress, rng.spawn(1)[0]))
        return self._next_plan[1]

    def start_round(self, number: int, progress: Progress, rng: np.random.Generator) -> None:
        """Put the next plan into effect, if this is a new round."""
        if number > self.round:
            self.plan = self.next_plan(progress, rng)
            self.round = number
        self._next_plan = None

    def on_config_change(self) -> None:
        """Discard the plan; the next pick starts a new round."""
        self.plan = None
        self._next_plan = None
