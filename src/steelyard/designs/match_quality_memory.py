"""What match_quality remembers: the state of its model, who looks at what, and the round's plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS
from steelyard.designs.beliefs import Beliefs
from steelyard.designs.match_quality_plans import Plan, Round, Running
from steelyard.designs.match_quality_sampling import draw_by_rejection, draw_in_proportion, qualities, set_probability
from steelyard.designs.memory import Heard, Planning
from steelyard.designs.progress import Person, Progress
from steelyard.designs.units import GroupUnits, ItemUnits, Units
from steelyard.observations import UNKNOWN, FloatArray
from steelyard.protocols.base import Protocol
from steelyard.records import Item

_TRIES = 1000
"""How often partners are drawn for a head before it is passed over, when its annotator has seen nearly all."""


class Drawn(NamedTuple):
    """A task's items, head first, and how they came to be drawn."""

    items: tuple[int, ...]
    weight: float
    propensity: float | None


class MatchQualityMemory(Planning[Plan]):
    """The fold behind match_quality."""

    def __init__(
        self,
        protocol: Protocol,
        beliefs: Beliefs,
        *,
        by_group: bool,
        continuous: bool,
        tasks_per_round: int | None,
        same_item_again: bool,
    ) -> None:
        super().__init__()
        self.units: Units = GroupUnits() if by_group else ItemUnits()
        self.beliefs = beliefs
        self.task_size = protocol.task_size
        self._continuous = continuous
        self._tasks_per_round = tasks_per_round
        self._only_new_items = not same_item_again or (self.task_size == 1 and not by_group)
        self._out: list[int] = []
        self._next_slot = 0
        self._going_out = False

    @property
    def tasks_per_round(self) -> int:
        """How many tasks a round has; none while there are too few units for one."""
        if self.units.count < self.task_size:
            return 0
        return self._tasks_per_round or self.units.count // self.task_size

    # The fold

    def add_items(self, items: Sequence[Item]) -> None:
        """Take in new items; they join with the next plan."""
        self.units.add_items(items)
        self.beliefs.grow(self.units.count)
        self._out += [0] * (self.units.count - len(self._out))

    def open_round(self, number: int, progress: Progress, rng: np.random.Generator) -> None:
        """Bring the next plan into force, if this is a new round; the task it was picked from goes out next."""
        super().open_round(number, progress, rng)
        self._going_out = True

    def picked(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Cross a new task off the plan; one that goes out again, or was made elsewhere, is not in it."""
        new = slot is not None and slot >= self._next_slot
        if slot is not None:
            self._next_slot = max(self._next_slot, slot + 1)
        units = self._count_out(items, 1)
        if self.plan is not None and new and self._going_out:
            self.plan.planned(units)
        self._going_out = False
        self.units.asked(items, 1)

    def released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Note that nobody looks at a task any more."""
        self._count_out(items, -1)
        self.units.asked(items, -1)

    def heard(self, answer: Heard) -> None:
        """Learn from an answer; of other stages, only comparisons, which have no scale."""
        if answer.own or self.beliefs.accepts == "comparisons":
            self.beliefs.learn(answer.judgment_id, self._units_of(answer), answer.observations)
        self._count_out(answer.items, -1 if answer.own else 0)

    def unheard(self, answer: Heard) -> None:
        """Unlearn an answer, where the model can."""
        if answer.own or self.beliefs.accepts == "comparisons":
            self.beliefs.unlearn(answer.judgment_id, self._units_of(answer), answer.observations)
        self._count_out(answer.items, 1 if answer.own else 0)

    def make_plan(self, progress: Progress, rng: np.random.Generator) -> Plan:
        """Return the next round's heads, or the order of all units in continuous mode."""
        if self._continuous:
            return Running(self.beliefs, self._out, rng)
        return Round(self.beliefs, self.task_size, self.tasks_per_round, rng)

    def _units_of(self, answer: Heard) -> dict[str, int]:
        units = self.units.of_items(answer.items)
        return {self.units.ids[item]: unit for item, unit in zip(answer.items, units, strict=True)}

    def _count_out(self, items: tuple[int, ...], by: int) -> list[int]:
        """Count who looks at the items' units; say what they are to the plan."""
        units = [unit for unit in dict.fromkeys(self.units.of_items(items)) if unit != UNKNOWN]
        for unit in units:
            self._out[unit] += by
        if self.plan is not None:
            self.plan.moved(units)
        return units

    # Drawing a task; nothing below changes anything

    def knows_all(self, person: Person) -> bool:
        """Whether there can be no task for a person, since nobody meets an item twice."""
        return self._only_new_items and self.units.count - len(person.items.rows) < self.task_size

    def draw(self, plan: Plan, person: Person, rng: np.random.Generator) -> Drawn | None:
        """Draw the next task for a person: the first head that has one they have not seen."""
        for head in plan.heads():
            if self._only_new_items and (head,) in person.items:
                continue
            drawn = self._draw_for(head, plan, person, rng)
            if drawn is not None:
                return drawn
        return None

    def _draw_for(self, head: int, plan: Plan, person: Person, rng: np.random.Generator) -> Drawn | None:
        if self.task_size == 1:
            shown = self.units.show((head,), person, rng)
            return None if shown is None else Drawn(shown.items, 1.0, self._known(shown.chance))
        if self.units.count <= EXACT_PROPENSITY_ITEMS:
            return self._draw_exactly(head, plan, person, rng)
        return self._draw_quickly(head, plan, person, rng)

    def _draw_exactly(self, head: int, plan: Plan, person: Person, rng: np.random.Generator) -> Drawn | None:
        """Weigh every possible partner, so that the task's probability is known."""
        count = self.task_size - 1
        partners = np.flatnonzero(self._may_join(np.arange(plan.count), head, plan, person))
        if len(partners) < count:
            return None
        weights = qualities(plan.state, head, partners, self.beliefs.gamma)
        total = float(weights.sum())
        seen = self._probability_of_seen(head, partners, weights, total, person)
        if seen > 1 - 1 / _TRIES:
            return None
        for _ in range(_TRIES):
            places = draw_in_proportion(weights, count, rng)
            shown = self.units.show((head, *partners[places].tolist()), person, rng)
            if shown is not None:
                drawn = weights[places]
                of_set = float(set_probability(drawn[None], np.array([np.delete(weights, places).sum()]))[0])
                exact = self._known(of_set / (1 - seen) * shown.chance)
                return Drawn(shown.items, float(drawn.prod()), exact)
        return None

    def _probability_of_seen(
        self, head: int, partners: NDArray[np.integer], weights: FloatArray, total: float, person: Person
    ) -> float:
        """Return the probability of drawing partners with which this person has seen the head in every way."""
        sets = self.units.exhausted(head, self.task_size, person)
        if not sets:
            return 0.0
        others = np.array([[unit for unit in units if unit != head] for units in sets])
        others = others[np.isin(others, partners).all(axis=1)]
        drawn = weights[np.searchsorted(partners, others)]
        rest = total - drawn.sum(axis=1) if len(partners) >= self.task_size else np.zeros(len(drawn))
        return float(set_probability(drawn, rest).sum())

    def _draw_quickly(self, head: int, plan: Plan, person: Person, rng: np.random.Generator) -> Drawn | None:
        """Look only at the partners proposed."""

        def allowed(units: NDArray[np.integer]) -> NDArray[np.bool_]:
            return self._may_join(units, head, plan, person)

        count, gamma = self.task_size - 1, self.beliefs.gamma
        # Counting them takes a look at all, which is needed only where something keeps them apart.
        kept_apart = self._only_new_items or not self.units.complete
        if kept_apart and allowed(np.arange(plan.count)).sum() < count:
            return None
        for _ in range(_TRIES):
            partners = draw_by_rejection(plan.state, head, count, plan.count, plan.least, gamma, allowed, rng)
            shown = self.units.show((head, *partners), person, rng)
            if shown is not None:
                weight = qualities(plan.state, head, np.array(partners), gamma).prod()
                return Drawn(shown.items, float(weight), None)
        return None

    def _may_join(self, units: NDArray[np.integer], head: int, plan: Plan, person: Person) -> NDArray[np.bool_]:
        """Say which units may be shown to a person beside a head."""
        may = plan.may_join(units, head)
        if self._only_new_items:
            may &= ~np.isin(units, person.items.rows)
        companions = self.units.companions(head)
        if companions is not None:
            may &= np.isin(units, companions)
        return may

    def _known(self, probability: float) -> float | None:
        """Return a probability, unless it is not the whole of it: some groups cannot be shown together."""
        return probability if self.units.complete else None
