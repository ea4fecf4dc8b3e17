"""The adaptive design: each annotator gets the task with the largest expected variance reduction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from steelyard.designs.adaptive.settings import Costs, Objective, ObjectiveSettings
from steelyard.designs.base import EXACT_PROPENSITY_ITEMS, WAITING, Design, Goal, NoTask, Pick
from steelyard.designs.contexts import AcrossContexts
from steelyard.designs.progress import Progress
from steelyard.errors import Problem
from steelyard.protocols.base import Protocol
from steelyard.records import Item

if TYPE_CHECKING:
    # These modules load numba, which studies with other designs do not need; methods import them when called.
    from steelyard.designs.adaptive.selection import SelectedTask, TaskSelector
    from steelyard.designs.adaptive.state import AdaptiveState

_BATCH_WINDOW = 64
"""Neighbours on either side of a head that are tried as partners for a batch."""

PROVEN_ITEMS, RISK = 20, 0.05
"""A model is proven when people have judged this many of its items. Until then it may answer this many items, and as
many as cost this fraction of the people's budget."""


@dataclass(frozen=True, slots=True)
class Adaptive(Design):
    """Give each annotator the task with the largest expected variance reduction, given all answers so far.

    Variances are weighted by the `objective` of the study. The posterior is that of the model calibrated_scale: mean
    and variance of every item, noise of every annotator. Leased tasks count as if they were answered, so that
    annotators who work at the same time get different tasks.

    Every pick records its expected gain as `weight` and, up to 10,000 items, the probability with which it was chosen
    as `propensity`: for the best task, 1 minus the fraction that is drawn at random.

    With `model_cost`, people and models share the design: `pick_for_model` gives a model the items, or the pairs of
    items, where its answer is worth more per cost than a person's. Models' answers are evidence whose precision is
    estimated from people's answers about the same items, so a useless model is soon asked no more. People may be asked
    about any item: a fraction `explore` of their tasks is drawn at random.
    """

    name: ClassVar[str] = "adaptive"

    judgments: Annotated[
        int, Field(ge=1, description="judgments per item, on average (tasks answered that show the item)")
    ] = 10
    objective: Annotated[
        Objective,
        Field(
            description="objective: rank all items, find the top items, find the items above a threshold, or "
            "estimate all scores precisely"
        ),
    ] = "ranking"
    top: Annotated[int | None, Field(ge=1, description='number of top items; for objective = "top"')] = None
    threshold: Annotated[
        float | None,
        Field(gt=0, lt=1, description='fraction of items below the threshold; for objective = "threshold"'),
    ] = None
    explore: Annotated[
        float, Field(ge=0, le=1, description="fraction of tasks drawn at random from all possible tasks")
    ] = 0.05
    initial_views: Annotated[
        int | None,
        Field(
            ge=0,
            description="times every item is shown before tasks are chosen by expected gain; default: 2 for "
            "ratings, 1 for comparisons",
        ),
    ] = None
    max_annotators_per_task: Annotated[
        int | None, Field(ge=1, description="maximum number of distinct annotators per task; default: unlimited")
    ] = None
    same_item_again: Annotated[
        bool, Field(description="whether an annotator may see an item again in a task with other items")
    ] = True
    by: Annotated[
        Literal["item", "group"],
        Field(
            description="unit that is scored: items, or groups (systems), each represented by its items for a context"
        ),
    ] = "item"
    across_contexts: AcrossContexts = False
    different_groups: Annotated[
        bool,
        Field(description="whether the items of a task must belong to different groups; for items without contexts"),
    ] = False
    model_cost: Annotated[
        float | None,
        Field(
            gt=0,
            description="cost of a model's answer, in any currency: people and models share the design; for ratings "
            "and pairs",
        ),
    ] = None
    person_cost: Annotated[float, Field(gt=0, description="cost of a person's task, in the currency of model_cost")] = (
        1.0
    )

    def initial_state(self, protocol: Protocol) -> AdaptiveState:
        """Return the state before the first answer."""
        from steelyard.designs.adaptive.state import AdaptiveState

        return AdaptiveState(
            protocol,
            ObjectiveSettings(self.objective, self.top, self.threshold),
            by_group=self.by == "group",
            across=not self.within_contexts(protocol),
            different_groups=self.different_groups,
            limit=self.max_annotators_per_task,
            costs=None if self.model_cost is None else Costs(self.person_cost, self.model_cost),
        )

    def views_before_gain(self, *, uses_ratings: bool) -> int:
        """Return how often every item is shown at first; 2 for ratings, as one rating says nothing of their spread."""
        if self.initial_views is not None:
            return self.initial_views
        # Where a model knows an item well enough, people need not see it.
        return 0 if self.model_cost is not None else 2 if uses_ratings else 1

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse protocols without comparisons or ratings, tasks larger than the study, and settings that conflict."""
        problems = []
        if not {"comparisons", "ratings"} & set(protocol.kinds):
            problems.append(
                Problem(
                    f"adaptive learns from comparisons or ratings, but {protocol.name} gives "
                    f"{', '.join(protocol.kinds)}.",
                    "Use the design per_item.",
                    field="design.name",
                )
            )
        if protocol.task_size > n_items:
            problems.append(
                Problem(
                    f"a task shows {protocol.task_size} items, but there are only {n_items}.",
                    "Show fewer items per task, or add items.",
                    field="protocol.items_per_page" if protocol.takes_short_pages else "protocol.size",
                )
            )
        problems += self._objective_problems(n_items)
        problems += self._cost_problems(protocol)
        if self.by == "group" and (self.across_contexts or self.different_groups or not self.same_item_again):
            problems.append(
                Problem(
                    "across_contexts, different_groups and same_item_again apply to single items, not to groups.",
                    'Remove them, or set by = "item".',
                    field="design.by",
                )
            )
        return problems

    def _cost_problems(self, protocol: Protocol) -> list[Problem]:
        if self.model_cost is None:
            return []
        problems = []
        if self.by == "group" or ("comparisons" in protocol.kinds and protocol.task_size != 2):
            problems.append(
                Problem(
                    "model_cost applies to ratings and to comparisons of two items.",
                    'Remove it, or use the protocol direct, likert or pairwise with by = "item".',
                    field="design.model_cost",
                )
            )
        if self.explore == 0:
            problems.append(
                Problem(
                    "with model_cost, people must have a chance to be asked about every item, but explore is 0.",
                    "Set explore to 0.05 or more.",
                    field="design.explore",
                )
            )
        return problems

    def item_problems(self, protocol: Protocol, items: Sequence[Item]) -> list[Problem]:
        """Refuse contexts that are too small, and different_groups where items are compared within contexts."""
        problems = Design.item_problems(self, protocol, items)
        if self.different_groups and self.within_contexts(protocol) and any(item.context for item in items):
            problems.append(
                Problem(
                    "different_groups applies to items without contexts, but these items are compared within their "
                    "contexts.",
                    "Remove it, or set across_contexts = true.",
                    field="design.different_groups",
                )
            )
        return problems

    def _objective_problems(self, n_items: int) -> list[Problem]:
        problems = []
        for objective, parameter in (("top", self.top), ("threshold", self.threshold)):
            if (self.objective == objective) != (parameter is not None):
                is_missing = self.objective == objective
                verb = "needs" if is_missing else "is the only objective with the setting"
                remedy = (
                    f"Set {objective} in [design]."
                    if is_missing
                    else f'Remove {objective}, or set objective = "{objective}".'
                )
                problems.append(
                    Problem(f'objective = "{objective}" {verb} {objective}.', remedy, field=f"design.{objective}")
                )
        if self.top is not None and self.top >= n_items:
            problems.append(
                Problem(
                    f"top = {self.top} includes all {n_items} items.", "Choose a smaller number.", field="design.top"
                )
            )
        return problems

    def budget(self, progress: Progress) -> int:
        """Return the total number of tasks; it grows with items that are added later."""
        state = _state_of(progress)
        count, size = state.n_comparable, state.task_size
        if count < state.smallest_task and not progress.set_aside:
            return 0
        # What was asked about items that were set aside is not taken from the others.
        n_spent = int(state.views[~state.is_comparable].sum()) if progress.set_aside else 0
        tasks = ceil((self.judgments * count + n_spent) / size)
        if self.max_annotators_per_task is None or self.by == "group" or self.different_groups:
            return tasks
        return min(tasks, state.n_sets * self.max_annotators_per_task)

    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | NoTask:
        """Choose the task of largest gain or, with probability `explore`, a random one."""
        from steelyard.designs.adaptive.selection import TaskSelector

        state, budget = _state_of(progress), self.budget(progress)
        if state.targets.largest_set < state.smallest_task and progress.set_aside:
            return NoTask("Too few items are left for a task: the others were set aside.", complete=True)
        if state.targets.largest_set < state.smallest_task:
            return NoTask(
                f"A task shows {task_size} {self.by}s, but there are {state.targets.largest_set}: add items"
                f"{' and fill their column group' if self.by == 'group' else ''}, or show fewer per task."
            )
        if progress.tasks_answered >= budget:
            return NoTask(f"All {progress.tasks_answered:,} tasks have been answered.", complete=True)
        if progress.tasks_assigned >= budget:
            return WAITING
        only_new = not self.same_item_again or (state.short_pages and self.by == "item")
        views = self.views_before_gain(uses_ratings=state.uses_ratings)
        selector = TaskSelector(state, progress.history(annotator), annotator, initial_views=views, only_new=only_new)
        random_task = selector.random(rng) if rng.random() < self.explore else None
        best = selector.best(rng)
        task = random_task or best
        if task is None:
            return NoTask("You have judged every task that is available to you.")
        return Pick(
            tuple(rng.permutation(task.items).tolist()),
            weight=task.gain,
            propensity=self._propensity(selector, task, best),
            reason="" if state.judges is None else self._person_reason(state, task, random_task is not None),
        )

    def pick_for_model(self, progress: Progress, avoided: Collection[tuple[int, ...]] = ()) -> Pick | NoTask | None:
        """Choose the item or pair where a model's answer is worth most, unless a person's is worth more per cost.

        Items or pairs in `avoided` are about to be answered.
        """
        from steelyard.designs.adaptive.who_next import best_by_kind

        state = _state_of(progress)
        if state.judges is None or self.model_cost is None:
            return None
        if state.targets.count < state.task_size:
            return NoTask("There are too few items.", complete=True)
        best = best_by_kind(state, avoided)
        model_rate, person_rate = best.model / self.model_cost, best.person / self.person_cost
        words = (
            f"gain per cost {model_rate:.3g} ({best.model:.3g} for {self.model_cost:g}), a person's best "
            f"{person_rate:.3g} ({best.person:.3g} for {self.person_cost:g})"
        )
        if (unproven := self._unproven(progress, state, len(avoided))) is not None:
            return unproven
        if best.model <= 0:
            what = "item" if state.uses_ratings else "pair"
            return NoTask(f"Models have answered every {what} for which their answers are informative.", complete=True)
        if model_rate < person_rate:
            return NoTask(f"A person's gain per cost is higher than a model's now: {words}.", reason_code="waiting")
        return Pick(best.items, weight=best.model, reason=f"model: {words}")

    def _unproven(self, progress: Progress, state: AdaptiveState, pending: int) -> NoTask | None:
        """Limit what models may cost before people's ratings show what they are worth."""
        if state.judges is None or self.model_cost is None or state.judges.both >= PROVEN_ITEMS:
            return None
        answers = max(state.judges.n_answers, pending)
        most = max(PROVEN_ITEMS, RISK * self.budget(progress) * self.person_cost / self.model_cost)
        if answers < most:
            return None
        return NoTask(
            f"Models have answered {answers:,} {'items' if state.uses_ratings else 'pairs'}, and people have judged "
            f"{state.judges.both} of these items. Ask models again when people have judged {PROVEN_ITEMS} of them.",
            reason_code="waiting",
        )

    def _person_reason(self, state: AdaptiveState, task: SelectedTask, is_random: bool) -> str:
        """Say why a person is asked about the items of a task rather than a model."""
        from steelyard.designs.adaptive.who_next import model_gain

        if is_random or self.model_cost is None:
            return "person: drawn at random"
        by_model = model_gain(state, task.items)
        return (
            f"person: gain per cost {task.gain / self.person_cost:.3g} ({task.gain:.3g} for {self.person_cost:g}), "
            f"a model's {by_model / self.model_cost:.3g} ({by_model:.3g} for {self.model_cost:g})"
        )

    def _propensity(self, selector: TaskSelector, task: SelectedTask, best: SelectedTask | None) -> float | None:
        sets = selector.count() if selector.state.targets.count <= EXACT_PROPENSITY_ITEMS else None
        if sets is None:
            return None
        is_best = best is not None and sorted(task.items) == sorted(best.items)
        return self.explore / max(sets, 1) + (1 - self.explore) * is_best

    def batch(self, progress: Progress, count: int) -> list[tuple[int, ...]]:
        """Choose many tasks at once for any annotator, as if no answers arrived in between.

        Returns item codes; fewer than `count` tasks if there are no more. Only for single items.
        """
        from steelyard.designs.adaptive.kernels import best_batch

        state = _state_of(progress)
        n = state.targets.count
        tasks, gains = np.empty((count, state.task_size), np.int64), np.empty(count)
        candidates = state.candidates(~state.is_comparable, np.empty(0, np.int64))
        size = best_batch(min(_BATCH_WINDOW, n), candidates, state.information_of(""), tasks, gains)
        return [tuple(row) for row in tasks[:size].tolist()]

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count answered tasks."""
        return Goal(progress.tasks_answered, max(self.budget(progress), progress.tasks_assigned))


def _state_of(progress: Progress) -> AdaptiveState:
    from steelyard.designs.adaptive.state import AdaptiveState

    state = progress.design_state
    if not isinstance(state, AdaptiveState):
        raise TypeError("adaptive needs a Progress made by its own method new_progress")
    return state
