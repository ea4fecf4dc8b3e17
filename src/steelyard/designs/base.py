"""The interface of every design: which task an annotator gets next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, Literal

import numpy as np

from steelyard.designs.contexts import context_sizes
from steelyard.designs.progress import Progress
from steelyard.designs.state import DesignState
from steelyard.errors import Problem
from steelyard.protocols.base import Protocol
from steelyard.records import Item

EXACT_PROPENSITY_ITEMS = 10_000
"""Up to this many items, every pick records the exact probability with which it was drawn."""


@dataclass(frozen=True, slots=True)
class Pick:
    """The items of a task in display order, and how they were chosen.

    `propensity` is the probability of this set of items given the state, `weight` the quantity that the draw was
    proportional to, and `slot` the planned task that it fills. `reason` says why a person, or a model, is asked.
    """

    items: tuple[int, ...]
    slot: int | None = None
    round: int = 0
    weight: float = 1.0
    propensity: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NoTask:
    """The design or the study has no task for this annotator.

    `reason` is the message for the annotator. `complete` means that no annotator will ever get another task.
    `reason_code` is for programs: the design has no task (`done`) or none at the moment (`waiting`), or the study gives
    this annotator none (`quota`, `excluded`, `paused`, `closed`).
    """

    reason: str
    complete: bool = False
    reason_code: Literal["done", "waiting", "quota", "excluded", "paused", "closed"] = "done"


WAITING = NoTask(
    "The last tasks are assigned to other annotators. Come back later: one may be released.", reason_code="waiting"
)


def generator_for(seed: int, stage: int, seq: int) -> np.random.Generator:
    """Return the random generator of the pick that follows event `seq` of the log."""
    return np.random.default_rng([seed, stage, seq])


@dataclass(frozen=True, slots=True)
class Goal:
    """Progress of a stage, counted in judgments (answered tasks)."""

    done: int
    total: int


class Design(ABC):
    """Chooses tasks. Subclasses are frozen dataclasses of settings; everything that changes is in Progress."""

    __slots__ = ()

    name: ClassVar[str]
    uses_slots: ClassVar[bool] = False
    """Whether tasks are planned as slots, each for `capacity` annotators."""

    def settings(self) -> dict[str, object]:
        """Return the settings by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    @property
    def capacity(self) -> int:
        """Number of annotators per slot."""
        return 1

    def initial_state(self, protocol: Protocol) -> DesignState | None:
        """Return the state before the first event; None for designs that neither plan nor learn from answers."""
        return None

    def new_progress(self, protocol: Protocol, items: Sequence[Item] = ()) -> Progress:
        """Return the progress of a stage before its first task."""
        progress = Progress(self.capacity, self.initial_state(protocol))
        progress.add_items(items)
        return progress

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """List the settings that conflict with the protocol or the number of items."""
        return []

    def within_contexts(self, protocol: Protocol) -> bool:
        """Whether tasks show items of one context only, because they compare items and the setting says so."""
        return protocol.is_contrastive and getattr(self, "across_contexts", None) is False

    def item_problems(self, protocol: Protocol, items: Sequence[Item]) -> list[Problem]:
        """List the settings that conflict with the items' contexts: no context may have enough items for a task."""
        sizes = context_sizes(items)
        size = protocol.task_size
        if not self.within_contexts(protocol) or set(sizes) <= {None} or max(sizes.values()) >= size:
            return []
        return [
            Problem(
                f"a task compares {size} items of the same source (context), but no source has more than "
                f"{max(sizes.values())}.",
                "Show fewer per task, add items, or compare items of different sources: across_contexts = true in "
                "[design].",
                field="design.across_contexts",
            )
        ]

    def plan_warnings(self, protocol: Protocol, items: Sequence[Item]) -> list[str]:
        """Return what the items keep the design from doing as its settings ask."""
        return []

    @property
    def shares_sources(self) -> bool:
        """Whether overlap gives every annotator whole sources or documents, by `shared_pick`, not single tasks."""
        return False

    def shared_pick(self, progress: Progress, annotator: str, rng: np.random.Generator) -> Pick | None:
        """Choose the first task of a source that all annotators get and this annotator has not started."""
        return None

    def is_continued(self, progress: Progress, annotator: str, items: tuple[int, ...]) -> bool:
        """Whether a pick continues a source that the annotator has begun."""
        return False

    def is_overlap(self, progress: Progress, annotator: str, items: tuple[int, ...]) -> bool:
        """Whether a pick belongs to a source that all annotators get."""
        return False

    def duplicates(self, progress: Progress) -> dict[int, int]:
        """Return the items that are never shown because they equal an earlier item, with that item."""
        return {}

    @abstractmethod
    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | NoTask:
        """Choose the next task for an annotator, without changing the progress."""

    def pick_for_model(self, progress: Progress, avoided: Collection[tuple[int, ...]] = ()) -> Pick | NoTask | None:
        """Choose the items that a model should answer next; None if the design does not decide about models."""
        return None

    @abstractmethod
    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Return how many judgments are done, and how many there will be."""
