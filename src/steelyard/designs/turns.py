"""Planned sets of items, taken in turn: each once, then each again, until all have had their annotators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from math import comb
from typing import ClassVar, Literal, NamedTuple, cast

import numpy as np

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS, WAITING, Design, Goal, Nothing, Pick
from steelyard.designs.memory import Planning
from steelyard.designs.progress import Progress
from steelyard.records import Item


class SetPlan(ABC):
    """Sets of items, codes ascending, in the order to ask them; it may make them up as they are read."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, place: int) -> tuple[int, ...]: ...


class Turn(NamedTuple):
    """What an annotator is to be shown, the slot it fills, and whether it begins a plan."""

    items: tuple[int, ...]
    slot: int
    from_new_plan: bool = False


class Line:
    """Slots that wait, first come first served; each stands in it once, where it joined last."""

    __slots__ = ("_entries", "_head", "_place", "_read")

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._place: dict[int, int] = {}
        self._head = 0
        self._read: dict[str, int] = {}

    def join(self, slot: int) -> None:
        """Put a slot at the end."""
        self._place[slot] = len(self._entries)
        self._entries.append(slot)

    def leave(self, slot: int) -> None:
        """Take a slot out, if it is there."""
        self._place.pop(slot, None)
        while self._head < len(self._entries) and not self._stands(self._head):
            self._head += 1

    def _stands(self, place: int) -> bool:
        return self._place.get(self._entries[place]) == place

    def first_for(self, annotator: str, suits: Callable[[int], bool]) -> int | None:
        """Return the first slot that suits an annotator; one that does not now must join anew before it can."""
        for place in range(max(self._head, self._read.get(annotator, 0)), len(self._entries)):
            if self._stands(place) and suits(self._entries[place]):
                return self._entries[place]
            self._read[annotator] = place + 1
        return None


class Turns(Planning[SetPlan]):
    """Hands out planned sets breadth first: what was given back, then new sets, then sets that need more people.

    So an unfinished study has asked as many different sets as it could, in the order of the plan. When items
    join, or the configuration changes, the next pick brings a plan of what is then lacking into force.
    """

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.n_items = 0
        self.covered = 0
        """Items that the plans in force take care of."""
        self.opened: dict[tuple[int, ...], int] = {}
        """Sets that have been asked, and their slots."""
        self.extra: set[int] = set()
        """Slots of sets that have another one: judgments from elsewhere beyond what is asked for."""
        self._out_of_turn: set[tuple[int, ...]] = set()
        """Sets asked before they stood at the front of a plan."""
        self._asked: dict[int, int] = {}
        self._plans: list[tuple[SetPlan, int]] = []
        self._given_back = Line()
        self._again = Line()

    @abstractmethod
    def make_plan(self, progress: Progress, rng: np.random.Generator) -> SetPlan:
        """Return the sets that are lacking."""

    @property
    @abstractmethod
    def total(self) -> int:
        """How many sets there are to ask: those asked, those planned, and those of the next plan."""

    @property
    def lacks(self) -> bool:
        """Whether some items are in no plan yet."""
        return self.covered < self.n_items

    def coming(self) -> Iterator[tuple[int, ...]]:
        """The sets of the plans in force that nobody has been asked yet."""
        for plan, read in self._plans:
            yield from self._unasked(plan, read)

    @property
    def sets(self) -> int:
        """How many sets have been asked or are in the plans in force."""
        if self._out_of_turn:
            return len(self.opened) + sum(1 for _ in self.coming())
        return len(self.opened) + sum(len(plan) - read for plan, read in self._plans)

    def _unasked(self, plan: SetPlan, read: int = 0) -> Iterator[tuple[int, ...]]:
        for place in range(read, len(plan)):
            if (items := plan[place]) not in self.opened:
                yield items

    def next_for(self, progress: Progress, annotator: str, rng: np.random.Generator) -> Turn | None:
        """Choose for an annotator, changing nothing."""
        seen = progress.person(annotator).sets

        def suits(slot: int) -> bool:
            return progress.slots[slot].items not in seen

        slot = self._given_back.first_for(annotator, suits)
        if slot is not None:
            return Turn(progress.slots[slot].items, slot)
        for items in self.coming():
            if items not in seen:
                return Turn(items, progress.next_slot)
        if self.lacks:
            for items in self._unasked(self.ahead(progress, rng)):
                if items not in seen:
                    return Turn(items, progress.next_slot, from_new_plan=True)
        slot = self._again.first_for(annotator, suits)
        return None if slot is None else Turn(progress.slots[slot].items, slot)

    def add_items(self, items: Sequence[Item]) -> None:
        """Note that there are more items to plan for."""
        self.n_items += len(items)

    def open_round(self, number: int, progress: Progress, rng: np.random.Generator) -> None:
        """Bring what is lacking into force, if this is a new round."""
        before = self.round
        super().open_round(number, progress, rng)
        if self.round > before and self.plan is not None:
            self._plans.append((self.plan, 0))
            self.covered = self.n_items

    def restart(self) -> None:
        """Forget the sets that nobody has been asked; the next pick plans anew."""
        super().restart()
        self._plans.clear()
        self.covered = 0

    def picked(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Note that a set is out with one more annotator."""
        if slot is None:
            return
        key = tuple(sorted(items))
        if slot not in self._asked:
            self._asked[slot] = 0
            if self.opened.setdefault(key, slot) != slot:
                self.extra.add(slot)
            self._out_of_turn.add(key)
            self._read_on()
        self._asked[slot] += 1
        self._given_back.leave(slot)
        self._again.leave(slot)
        if self._has_room(slot):
            self._again.join(slot)

    def released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Note that a set came back."""
        if slot is None:
            return
        self._asked[slot] -= 1
        if self._has_room(slot):
            self._again.leave(slot)
            self._given_back.join(slot)

    def _has_room(self, slot: int) -> bool:
        return slot not in self.extra and self._asked[slot] < self.capacity

    def _read_on(self) -> None:
        """Go past the sets that have been asked, so that nobody looks at them again."""
        while self._plans:
            plan, read = self._plans[0]
            while read < len(plan) and plan[read] in self.opened:
                self._out_of_turn.discard(plan[read])
                read += 1
            if read < len(plan):
                self._plans[0] = (plan, read)
                return
            del self._plans[0]


class InTurn(Design):
    """A design that hands out planned sets in turn: its memory says which."""

    __slots__ = ()

    plans: ClassVar[bool] = True
    what: ClassVar[str] = "sets"
    """What it calls the sets."""

    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | Nothing:
        """Choose the next set in turn that this annotator has not seen."""
        turns = cast("Turns", progress.memory)
        turn = turns.next_for(progress, annotator, rng)
        if turn is None:
            return self._nothing(progress)
        propensity: float | None = 1.0
        if turn.from_new_plan:
            # The first plan is drawn alike for all items, so it may begin with any set, each as likely.
            propensity = None if turns.opened else 1 / comb(progress.n_items, task_size)
        return Pick(
            tuple(rng.permutation(turn.items).tolist()),
            slot=turn.slot,
            round=turns.round + turns.lacks,
            propensity=propensity if progress.n_items <= EXACT_PROPENSITY_ITEMS else None,
        )

    def _nothing(self, progress: Progress) -> Nothing:
        turns = cast("Turns", progress.memory)
        wanted = turns.total * self.capacity
        if _places(progress, turns, "answered") >= wanted:
            each = "once" if self.capacity == 1 else f"by {self.capacity} annotators"
            return Nothing(f"All {turns.total:,} {self.what} have been judged {each}.", complete=True)
        if _places(progress, turns, "asked") >= wanted:
            return WAITING
        return Nothing(f"You have judged all {self.what} that still need judgments.")

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count answered tasks, those beyond a set's number of annotators left out."""
        turns = cast("Turns", progress.memory)
        return Goal(_places(progress, turns, "answered"), turns.total * self.capacity)


def _places(progress: Progress, turns: Turns, which: Literal["asked", "answered"]) -> int:
    """Return how many places of the planned sets are taken, or answered."""
    extra = [progress.slots[slot] for slot in turns.extra]
    if which == "asked":
        return progress.places_asked - sum(min(slot.asked, progress.capacity) for slot in extra)
    return progress.places_answered - sum(min(slot.answered, progress.capacity) for slot in extra)
