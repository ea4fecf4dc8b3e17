"""Designs that plan sets of items and assign them in order: each set once, then again until it has its annotators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from math import comb
from typing import ClassVar, Literal, NamedTuple, cast

import numpy as np

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS, WAITING, Design, Goal, NoTask, Pick
from steelyard.designs.contexts import ItemContexts
from steelyard.designs.progress import Progress
from steelyard.designs.state import PlannedState
from steelyard.records import Item


class SetPlan(ABC):
    """Sets of items, codes ascending, in the order to assign them; they may be computed when they are read."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, place: int) -> tuple[int, ...]: ...


class ListedPlan(SetPlan):
    """Sets as they are given."""

    def __init__(self, sets: Sequence[tuple[int, ...]]) -> None:
        self._sets = list(sets)

    def __len__(self) -> int:
        return len(self._sets)

    def __getitem__(self, place: int) -> tuple[int, ...]:
        return self._sets[place]


class InterleavedPlan(SetPlan):
    """The sets of several plans, one of each in turn: the first set of every plan, then the second, and so on.

    Plans with more sets come first in each turn, and go on alone when the others are used up.
    """

    def __init__(self, plans: Sequence[SetPlan]) -> None:
        self._plans = sorted((plan for plan in plans if len(plan)), key=lambda plan: -len(plan))
        lengths = np.array([len(plan) for plan in self._plans], np.int64)
        # Turns in which the same number of plans take part: until the next shorter plan is used up.
        self._turn_end, n_shorter = np.unique(lengths, return_counts=True)
        self._n_plans = len(lengths) - np.concatenate([[0], np.cumsum(n_shorter)[:-1]]).astype(np.int64)
        turns = np.diff(self._turn_end, prepend=0)
        self._end = np.cumsum(turns * self._n_plans)
        self._length = int(lengths.sum())

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place: int) -> tuple[int, ...]:
        block = int(np.searchsorted(self._end, place, side="right"))
        first_turn = int(self._turn_end[block - 1]) if block else 0
        first_place = int(self._end[block - 1]) if block else 0
        turn, number = divmod(place - first_place, int(self._n_plans[block]))
        return self._plans[number][first_turn + turn]


class NextSet(NamedTuple):
    """A set of items for an annotator, the slot it fills, and whether it comes from a plan not yet in effect."""

    items: tuple[int, ...]
    slot: int
    from_new_plan: bool = False


class SlotQueue:
    """First-in, first-out queue of slots; each slot is in it at most once, where it joined last."""

    __slots__ = ("_entries", "_head", "_place", "_position_of")

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._place: dict[int, int] = {}
        self._head = 0
        self._position_of: dict[str, int] = {}
        """No entry before this position suits the annotator."""

    def join(self, slot: int) -> None:
        """Add a slot at the end."""
        self._place[slot] = len(self._entries)
        self._entries.append(slot)

    def leave(self, slot: int) -> None:
        """Remove a slot, if it is in the queue."""
        self._place.pop(slot, None)
        while self._head < len(self._entries) and not self._is_current(self._head):
            self._head += 1

    def _is_current(self, place: int) -> bool:
        return self._place.get(self._entries[place]) == place

    def first_for(self, annotator: str, suits: Callable[[int], bool]) -> int | None:
        """Return the first slot that suits an annotator; one that does not must join again before it can."""
        for place in range(max(self._head, self._position_of.get(annotator, 0)), len(self._entries)):
            if self._is_current(place) and suits(self._entries[place]):
                return self._entries[place]
            self._position_of[annotator] = place + 1
        return None


class PlannedSets(PlannedState[SetPlan]):
    """Assigns planned sets breadth first: released sets, then new sets, then sets that need more annotators.

    An unfinished study has therefore asked about as many different sets as possible, in the order of the plan. When
    items are added or the configuration changes, the next pick puts a plan of the missing sets into effect. Plans
    cover all items; sets with an item that was set aside are passed over.
    """

    def __init__(self, capacity: int, *, across: bool = True) -> None:
        super().__init__()
        self.capacity = capacity
        self.contexts = ItemContexts(across=across)
        self.n_items = 0
        self.n_planned_items = 0
        """Number of items that the plans in effect cover."""
        self.slot_of: dict[tuple[int, ...], int] = {}
        """Slots of the sets that have been assigned."""
        self.extra_slots: set[int] = set()
        """Second slots of a set, from imported judgments beyond its capacity."""
        self._out_of_order: set[tuple[int, ...]] = set()
        """Sets assigned before their turn in a plan."""
        self._assignments: dict[int, int] = {}
        self._plans: list[tuple[SetPlan, int]] = []
        """The plans in effect, each with the number of leading sets that have been assigned."""
        self._released = SlotQueue()
        self._open = SlotQueue()
        self.set_aside: set[int] = set()
        self.n_closed_sets = 0
        """Number of assigned sets with an item that was set aside."""
        self._passed_over: list[tuple[int, ...]] = []
        """Sets of the plans that were passed over because an item was set aside."""

    @abstractmethod
    def make_plan(self, progress: Progress, rng: np.random.Generator) -> SetPlan:
        """Compute the missing sets."""

    @property
    @abstractmethod
    def total(self) -> int:
        """Number of sets: assigned, planned, and of the next plan."""

    def first_set_probability(self, items: tuple[int, ...]) -> float:
        """Return the probability that the first plan begins with this set.

        Plans begin with one of the contexts that have the most sets, each equally likely, and treat its items alike.
        """
        sets = [self.count_sets(context) for context in range(len(self.contexts.members))]
        n_items = len(self.contexts.members[self.contexts.context_of(items[0])])
        return 1 / (sets.count(max(sets)) * comb(n_items, len(items)))

    @abstractmethod
    def count_sets(self, context: int) -> int:
        """Return the number of sets in the first plan of a context."""

    @property
    def needs_plan(self) -> bool:
        """Whether some items are in no plan yet."""
        return self.n_planned_items < self.n_items

    def unassigned_sets(self) -> Iterator[tuple[int, ...]]:
        """Yield the sets of the plans in effect that have not been assigned."""
        for plan, start in self._plans:
            yield from self._unassigned(plan, start)

    @property
    def n_sets(self) -> int:
        """Number of sets that were assigned or are in the plans in effect."""
        if self._out_of_order or self.set_aside:
            return len(self.slot_of) + sum(1 for _ in self.unassigned_sets())
        return len(self.slot_of) + sum(len(plan) - start for plan, start in self._plans)

    def _unassigned(self, plan: SetPlan, start: int = 0) -> Iterator[tuple[int, ...]]:
        for place in range(start, len(plan)):
            if (items := plan[place]) not in self.slot_of and self.set_aside.isdisjoint(items):
                yield items

    def next_for(self, progress: Progress, annotator: str, rng: np.random.Generator) -> NextSet | None:
        """Choose a set for an annotator without changing the state."""
        seen_sets = progress.history(annotator).sets

        def suits(slot: int) -> bool:
            items = progress.slots[slot].items
            return items not in seen_sets and self.set_aside.isdisjoint(items)

        slot = self._released.first_for(annotator, suits)
        if slot is not None:
            return NextSet(progress.slots[slot].items, slot)
        for items in self.unassigned_sets():
            if items not in seen_sets:
                return NextSet(items, progress.next_slot)
        if self.needs_plan:
            for items in self._unassigned(self.next_plan(progress, rng)):
                if items not in seen_sets:
                    return NextSet(items, progress.next_slot, from_new_plan=True)
        slot = self._open.first_for(annotator, suits)
        return None if slot is None else NextSet(progress.slots[slot].items, slot)

    def add_items(self, items: Sequence[Item]) -> None:
        """Count new items; the next plan covers them."""
        self.n_items += len(items)
        self.contexts.add(items)

    def on_item_set_aside(self, item: int) -> None:
        """Pass over the sets with an item."""
        self.set_aside.add(item)
        self._count_closed_sets()

    def on_item_restored(self, item: int) -> None:
        """Assign the sets with an item again."""
        self.set_aside.discard(item)
        self._count_closed_sets()
        for items, slot in self.slot_of.items():
            if item in items and self._has_place(slot):
                self._released.leave(slot)
                self._open.leave(slot)
                (self._open if self._assignments[slot] else self._released).join(slot)
        again = [items for items in self._passed_over if self.set_aside.isdisjoint(items)]
        if again:
            self._plans.insert(0, (ListedPlan(again), 0))
            self._passed_over = [items for items in self._passed_over if not self.set_aside.isdisjoint(items)]

    def _count_closed_sets(self) -> None:
        self.n_closed_sets = sum(not self.set_aside.isdisjoint(items) for items in self.slot_of)

    def start_round(self, number: int, progress: Progress, rng: np.random.Generator) -> None:
        """Put a plan of the missing sets into effect, if this is a new round."""
        before = self.round
        super().start_round(number, progress, rng)
        if self.round > before and self.plan is not None:
            self._plans.append((self.plan, 0))
            self.n_planned_items = self.n_items

    def on_config_change(self) -> None:
        """Discard the sets that have not been assigned; the next pick makes a new plan."""
        super().on_config_change()
        self._plans.clear()
        self._passed_over.clear()
        self.n_planned_items = 0

    def on_leased(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Count one more annotator for a set."""
        if slot is None:
            return
        key = tuple(sorted(items))
        if slot not in self._assignments:
            self._assignments[slot] = 0
            self.n_closed_sets += key not in self.slot_of and not self.set_aside.isdisjoint(key)
            if self.slot_of.setdefault(key, slot) != slot:
                self.extra_slots.add(slot)
            self._out_of_order.add(key)
            self._skip_assigned()
        self._assignments[slot] += 1
        self._released.leave(slot)
        self._open.leave(slot)
        if self._has_place(slot):
            self._open.join(slot)

    def on_released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Put a released set at the end of the queue of released sets."""
        if slot is None:
            return
        self._assignments[slot] -= 1
        if self._has_place(slot):
            self._open.leave(slot)
            self._released.join(slot)

    def _has_place(self, slot: int) -> bool:
        return slot not in self.extra_slots and self._assignments[slot] < self.capacity

    def _skip_assigned(self) -> None:
        """Move the start of the plans past sets that were assigned or set aside, so that no pick reads them again."""
        while self._plans:
            plan, start = self._plans[0]
            while start < len(plan):
                items = plan[start]
                if items in self.slot_of:
                    self._out_of_order.discard(items)
                elif self.set_aside.isdisjoint(items):
                    break
                else:
                    self._passed_over.append(items)
                start += 1
            if start < len(plan):
                self._plans[0] = (plan, start)
                return
            del self._plans[0]


class PlannedSetsDesign(Design):
    """A design that assigns the sets of its state, a PlannedSets, in order."""

    __slots__ = ()

    uses_slots: ClassVar[bool] = True
    set_name: ClassVar[str] = "sets"
    """What messages call the sets."""

    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | NoTask:
        """Choose the next set in order that this annotator has not seen."""
        state = cast("PlannedSets", progress.design_state)
        next_set = state.next_for(progress, annotator, rng)
        if next_set is None:
            return self._no_task(progress)
        propensity: float | None = 1.0
        if next_set.from_new_plan:
            propensity = None if state.slot_of else state.first_set_probability(next_set.items)
        return Pick(
            tuple(rng.permutation(next_set.items).tolist()),
            slot=next_set.slot,
            round=state.round + state.needs_plan,
            propensity=propensity if progress.n_items <= EXACT_PROPENSITY_ITEMS else None,
        )

    def _no_task(self, progress: Progress) -> NoTask:
        state = cast("PlannedSets", progress.design_state)
        places = state.total * self.capacity
        if _places(progress, state, "answers") >= places - _closed_places(progress, state, "answers"):
            times = "once" if self.capacity == 1 else f"by {self.capacity} annotators"
            return NoTask(f"All {state.total:,} {self.set_name} have been judged {times}.", complete=True)
        if _places(progress, state, "assignments") >= places - _closed_places(progress, state, "assignments"):
            return WAITING
        return NoTask(f"You have judged all {self.set_name} that still need judgments.")

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count answered tasks, without those beyond the number of annotators per set."""
        state = cast("PlannedSets", progress.design_state)
        total = state.total * self.capacity - _closed_places(progress, state, "answers")
        return Goal(_places(progress, state, "answers"), total)


def _closed_places(progress: Progress, state: PlannedSets, status: Literal["assignments", "answers"]) -> int:
    """Return how many places of assigned sets stay free because an item was set aside."""
    return progress.closed_places(status, state.extra_slots) if state.set_aside else 0


def _places(progress: Progress, state: PlannedSets, status: Literal["assignments", "answers"]) -> int:
    """Return how many places of the planned sets are assigned or answered."""
    extra = [progress.slots[slot] for slot in state.extra_slots]
    if status == "assignments":
        return progress.places_assigned - sum(min(slot.assignments, progress.capacity) for slot in extra)
    return progress.places_answered - sum(min(slot.answers, progress.capacity) for slot in extra)
