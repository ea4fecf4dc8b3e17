"""What every design offers: which task to ask next, and of whom."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, Literal

import numpy as np

from steelyard.designs.memory import Memory
from steelyard.designs.progress import Progress
from steelyard.errors import Problem
from steelyard.protocols.base import Protocol
from steelyard.records import Item

EXACT_PROPENSITY_ITEMS = 10_000
"""Up to this many items, every pick records the exact probability with which it was drawn."""


@dataclass(frozen=True, slots=True)
class Pick:
    """The items of a task in the order shown, and how they came to be chosen.

    `propensity` is the probability of this set of items given the state; `weight` what the draw was
    proportional to; `slot` the planned task it fills.
    """

    items: tuple[int, ...]
    slot: int | None = None
    round: int = 0
    weight: float = 1.0
    propensity: float | None = None


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is nothing to ask this annotator, and why. `complete`: nor anybody else, ever.

    `because` says it in one word, for programs: the design has nothing (`done`: for this annotator or anybody;
    `waiting`: something may come), or the study gives this annotator nothing (`quota`, `excluded`, `paused`, `closed`).
    """

    reason: str
    complete: bool = False
    because: Literal["done", "waiting", "quota", "excluded", "paused", "closed"] = "done"


WAITING = Nothing(
    "The last tasks are with other annotators; come back later in case one is given up.", because="waiting"
)


def generator_for(seed: int, stage: int, seq: int) -> np.random.Generator:
    """Return the generator of the pick made after event `seq` of the log."""
    return np.random.default_rng([seed, stage, seq])


@dataclass(frozen=True, slots=True)
class Goal:
    """How much of the stage is done, counted in judgments (answered tasks)."""

    done: int
    total: int


class Design(ABC):
    """Chooses tasks. Subclasses are frozen dataclasses of settings; all state is in Progress."""

    __slots__ = ()

    name: ClassVar[str]
    plans: ClassVar[bool] = False
    """Whether it plans tasks as slots, to be filled by `capacity` annotators each."""

    def settings(self) -> dict[str, object]:
        """The design's settings by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    @property
    def capacity(self) -> int:
        """How many annotators a slot is for."""
        return 1

    def memory(self, protocol: Protocol) -> Memory | None:
        """Return a new memory, for designs that plan ahead or learn from answers."""
        return None

    def progress(self, protocol: Protocol, items: Sequence[Item] = ()) -> Progress:
        """Return the progress of a stage that has not begun."""
        progress = Progress(self.capacity, self.memory(protocol))
        progress.add_items(items)
        return progress

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Name what does not go together with a protocol and this many items."""
        return []

    def same_as(self, progress: Progress) -> dict[int, int]:
        """Items that are never asked about because they are identical to another, and to which one."""
        return {}

    @abstractmethod
    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | Nothing:
        """Choose the next task for an annotator."""

    @abstractmethod
    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Say how far the stage has come."""
