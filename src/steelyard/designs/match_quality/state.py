"""State of the match-quality design: the posterior of its online model, leases, and the plan of the round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.designs.base import EXACT_PROPENSITY_ITEMS
from steelyard.designs.contexts import ItemContexts
from steelyard.designs.match_quality.heads import ContinuousHeads, CoveringTasks, HeadPlan, RoundHeads, covering_size
from steelyard.designs.match_quality.online_models import OnlineModel
from steelyard.designs.match_quality.selection import (
    PartnerPool,
    draw_by_rejection,
    draw_in_proportion,
    qualities,
    set_probability,
)
from steelyard.designs.progress import AnnotatorHistory, Progress
from steelyard.designs.state import AnswerNotice, PlannedState
from steelyard.designs.targets import GroupTargets, ItemTargets, Targets
from steelyard.observations import UNKNOWN, FloatArray
from steelyard.protocols.base import Protocol
from steelyard.records import Item

_MAX_DRAWS = 1000
"""Draws of partners for a head before it is skipped, when the annotator has seen nearly all of them."""


class DrawnTask(NamedTuple):
    """The items of a task, head first, and how they were drawn."""

    items: tuple[int, ...]
    weight: float
    propensity: float | None


class MatchQualityState(PlannedState[HeadPlan]):
    """Posterior, leases and plan of a stage with the match-quality design."""

    def __init__(
        self,
        protocol: Protocol,
        model: OnlineModel,
        *,
        by_group: bool,
        across: bool,
        continuous: bool,
        cover: bool,
        tasks_per_round: int | None,
        same_item_again: bool,
    ) -> None:
        super().__init__()
        self.targets: Targets = GroupTargets() if by_group else ItemTargets(across=across)
        self.model = model
        self.task_size = protocol.task_size
        self._continuous = continuous
        self._cover = cover and not by_group and not continuous
        self._tasks_per_round = tasks_per_round
        self._only_new_items = not same_item_again or (self.task_size == 1 and not by_group)
        self._leases: list[int] = []
        self._round_size = 0
        self._covering_size = 0
        self._next_slot = 0
        self._is_pick_pending = False
        """Whether the next lease comes from a pick, rather than from an import or a late answer."""

    @property
    def tasks_per_round(self) -> int:
        """Number of tasks per round; 0 while there are too few targets for a task."""
        return self._tasks_per_round or self._round_size if self._round_size else 0

    @property
    def first_round_size(self) -> int:
        """Number of tasks of the first round: at least as many as show every item once, if it covers all of them."""
        if not self._cover or not self._round_size:
            return self.tasks_per_round
        return max(self._covering_size, self._tasks_per_round or 0)

    def budget(self, rounds: int) -> int:
        """Return the number of tasks of all rounds together."""
        if self._tasks_per_round is not None or not self._round_size:
            return rounds * self.tasks_per_round
        return self.first_round_size + (rounds - 1) * self.tasks_per_round

    # Events

    def add_items(self, items: Sequence[Item]) -> None:
        """Add new items; the next plan includes them."""
        self.targets.add_items(items)
        self.model.grow(self.targets.count)
        self._leases += [0] * (self.targets.count - len(self._leases))
        self._round_size = self.targets.round_size(self.task_size)
        if self._cover:
            self._covering_size = covering_size(self._comparable_sets, self.task_size)

    def on_item_set_aside(self, item: int) -> None:
        """Leave an item out; a new round starts without it."""
        self.targets.withhold(item)
        self.on_config_change()

    def on_item_restored(self, item: int) -> None:
        """Take an item in again; a new round starts with it."""
        self.targets.restore(item)
        self.on_config_change()

    def start_round(self, number: int, progress: Progress, rng: np.random.Generator) -> None:
        """Put the next plan into effect, if this is a new round; the task that was picked is leased next."""
        super().start_round(number, progress, rng)
        self._is_pick_pending = True

    def on_leased(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Mark a new task of the plan as leased; tasks leased again or imported are not in the plan."""
        is_new = slot is not None and slot >= self._next_slot
        if slot is not None:
            self._next_slot = max(self._next_slot, slot + 1)
        targets = self._count_leases(items, 1)
        if self.plan is not None and is_new and self._is_pick_pending:
            self.plan.on_task_leased(targets)
        self._is_pick_pending = False
        self.targets.count_assignment(items, 1)

    def on_released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """End the lease of a task."""
        self._count_leases(items, -1)
        self.targets.count_assignment(items, -1)

    def on_answer(self, answer: AnswerNotice) -> None:
        """Learn from an answer; from other stages only comparisons, which do not depend on a scale."""
        if answer.own_stage or self.model.accepts == "comparisons":
            self.model.learn(answer.judgment_id, self._targets_of(answer), answer.observations)
        self._count_leases(answer.items, -1 if answer.own_stage else 0)

    def on_retract(self, answer: AnswerNotice) -> None:
        """Unlearn an answer, if the model can."""
        if answer.own_stage or self.model.accepts == "comparisons":
            self.model.unlearn(answer.judgment_id, self._targets_of(answer), answer.observations)
        self._count_leases(answer.items, 1 if answer.own_stage else 0)

    def make_plan(self, progress: Progress, rng: np.random.Generator) -> HeadPlan:
        """Return the heads of the next round, or the order of all targets in continuous mode."""
        if self._cover and self.round < 0:
            return CoveringTasks(self.model, self.task_size, self.first_round_size, rng, self._comparable_sets)
        contexts = self._contexts
        eligible = None if contexts is None else contexts.is_comparable(self.task_size)
        if self.targets.withheld and eligible is None:
            eligible = np.ones(self.targets.count, np.bool_)
            eligible[list(self.targets.withheld)] = False
        if self._continuous:
            return ContinuousHeads(self.model, self._leases, rng, eligible)
        context = None if contexts is None else contexts.of_item
        return RoundHeads(self.model, self.task_size, self.tasks_per_round, rng, context, eligible)

    @property
    def _contexts(self) -> ItemContexts | None:
        """The contexts that items are compared within; None if any targets can be compared."""
        contexts = self.targets.contexts if isinstance(self.targets, ItemTargets) else None
        return None if contexts is None or contexts.is_single else contexts

    @property
    def _comparable_sets(self) -> list[Sequence[int]]:
        """The sets of items that may be shown together and are large enough for a task."""
        contexts = self._contexts
        sets: Sequence[Sequence[int]] = [range(self.targets.count)] if contexts is None else contexts.members
        if contexts is None and self.targets.withheld:
            sets = [[target for target in range(self.targets.count) if target not in self.targets.withheld]]
        return [members for members in sets if len(members) >= self.task_size]

    def _targets_of(self, answer: AnswerNotice) -> dict[str, int]:
        targets = self.targets.of_items(answer.items)
        return {self.targets.ids[item]: target for item, target in zip(answer.items, targets, strict=True)}

    def _count_leases(self, items: tuple[int, ...], by: int) -> list[int]:
        """Change the number of leases of the items' targets, and tell the plan."""
        targets = [target for target in dict.fromkeys(self.targets.of_items(items)) if target != UNKNOWN]
        for target in targets:
            self._leases[target] += by
        if self.plan is not None:
            self.plan.on_change(targets)
        return targets

    # Drawing a task; nothing below changes the state

    def is_exhausted_for(self, history: AnnotatorHistory) -> bool:
        """Whether there can be no task for an annotator, because no item may be shown to them twice."""
        if not self._only_new_items:
            return False
        contexts, seen_items = self._contexts, history.items.rows.ravel()
        seen_items = seen_items[~np.isin(seen_items, list(self.targets.withheld))]
        if contexts is None:
            return self.targets.count - len(self.targets.withheld) - len(seen_items) < self.task_size
        n_seen = np.bincount(contexts.of_item[seen_items], minlength=len(contexts.members))
        return bool((contexts.sizes - n_seen).max() < self.task_size)

    def draw(self, plan: HeadPlan, history: AnnotatorHistory, rng: np.random.Generator) -> DrawnTask | None:
        """Draw the next task for an annotator: that of the first head with a task they have not seen."""
        for targets in plan.open_tasks():
            if self._only_new_items and any((target,) in history.items for target in targets):
                continue
            if len(targets) == self.task_size:
                task = self._draw_planned(targets, plan, history, rng)
            else:
                task = self._draw_for(targets[0], plan, history, rng)
            if task is not None:
                return task
        return None

    def _draw_planned(
        self, targets: tuple[int, ...], plan: HeadPlan, history: AnnotatorHistory, rng: np.random.Generator
    ) -> DrawnTask | None:
        """Return a task whose targets are all planned, or that has one target only."""
        task_items = self.targets.choose_items(targets, history, rng)
        if task_items is None:
            return None
        head, *partners = targets
        weight = qualities(plan.state, head, np.array(partners, np.int32), self.model.gamma).prod()
        probability = 1.0 if plan is self.plan else plan.probability_of_planned(targets)
        propensity = None if probability is None else self._if_exact(probability * task_items.probability)
        return DrawnTask(task_items.items, float(weight), propensity)

    def _draw_for(
        self, head: int, plan: HeadPlan, history: AnnotatorHistory, rng: np.random.Generator
    ) -> DrawnTask | None:
        companions = self.targets.companions(head)
        if companions is not None or self.targets.count <= EXACT_PROPENSITY_ITEMS:
            candidates = np.arange(plan.count) if companions is None else companions[companions < plan.count]
            return self._draw_exactly(head, candidates, plan, history, rng)
        return self._draw_quickly(head, plan, history, rng)

    def _draw_exactly(
        self,
        head: int,
        candidates: NDArray[np.integer],
        plan: HeadPlan,
        history: AnnotatorHistory,
        rng: np.random.Generator,
    ) -> DrawnTask | None:
        """Weigh every possible partner among the candidates (ascending), so that the task's probability is known."""
        count = self.task_size - 1
        partners = candidates[self._may_join(candidates, head, plan, history)]
        if len(partners) < count:
            return None
        weights = qualities(plan.state, head, partners, self.model.gamma)
        seen_probability = self._probability_of_seen(head, partners, weights, history)
        if seen_probability > 1 - 1 / _MAX_DRAWS:
            return None
        for _ in range(_MAX_DRAWS):
            places = draw_in_proportion(weights, count, rng)
            task_items = self.targets.choose_items((head, *partners[places].tolist()), history, rng)
            if task_items is not None:
                partner_weights = weights[places]
                other_weight = np.array([np.delete(weights, places).sum()])
                probability = float(set_probability(partner_weights[None], other_weight)[0])
                propensity = self._if_exact(probability / (1 - seen_probability) * task_items.probability)
                return DrawnTask(task_items.items, float(partner_weights.prod()), propensity)
        return None

    def _probability_of_seen(
        self, head: int, partners: NDArray[np.integer], weights: FloatArray, history: AnnotatorHistory
    ) -> float:
        """Return the probability of drawing partners with which the annotator has seen every task of the head."""
        total = float(weights.sum())
        sets = self.targets.exhausted_sets(head, self.task_size, history)
        if not sets:
            return 0.0
        others = np.array([[target for target in targets if target != head] for targets in sets])
        others = others[np.isin(others, partners).all(axis=1)]
        partner_weights = weights[np.searchsorted(partners, others)]
        rest = (
            total - partner_weights.sum(axis=1) if len(partners) >= self.task_size else np.zeros(len(partner_weights))
        )
        return float(set_probability(partner_weights, rest).sum())

    def _draw_quickly(
        self, head: int, plan: HeadPlan, history: AnnotatorHistory, rng: np.random.Generator
    ) -> DrawnTask | None:
        """Weigh only the partners that are proposed."""

        def is_allowed(targets: NDArray[np.integer]) -> NDArray[np.bool_]:
            return self._may_join(targets, head, plan, history)

        count, gamma = self.task_size - 1, self.model.gamma
        # Counting the allowed partners takes a scan, which is needed only where something restricts them.
        if (self._only_new_items or self.targets.withheld) and is_allowed(np.arange(plan.count)).sum() < count:
            return None
        pool = PartnerPool(plan.state, plan.count, plan.least_variance, gamma, is_allowed)
        for _ in range(_MAX_DRAWS):
            partners = draw_by_rejection(pool, head, count, rng)
            task_items = self.targets.choose_items((head, *partners), history, rng)
            if task_items is not None:
                weight = qualities(plan.state, head, np.array(partners), gamma).prod()
                return DrawnTask(task_items.items, float(weight), None)
        return None

    def _may_join(
        self, targets: NDArray[np.integer], head: int, plan: HeadPlan, history: AnnotatorHistory
    ) -> NDArray[np.bool_]:
        """Return which targets may be shown to an annotator together with a head."""
        is_allowed = plan.may_join(targets, head)
        if self._only_new_items:
            is_allowed &= ~np.isin(targets, history.items.rows)
        if self.targets.withheld:
            is_allowed &= ~np.isin(targets, list(self.targets.withheld))
        return is_allowed

    def _if_exact(self, probability: float) -> float | None:
        """Return the probability; None if some groups cannot be shown together, and in studies of many items."""
        is_exact = self.targets.is_complete and self.targets.count <= EXACT_PROPENSITY_ITEMS
        return probability if is_exact else None
