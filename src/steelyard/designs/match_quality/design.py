"""The match-quality design: uncertain items with similar partners (Algorithm 1 of Sakaguchi & Van Durme 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from steelyard.designs.base import WAITING, Design, Goal, NoTask, Pick
from steelyard.designs.contexts import AcrossContexts
from steelyard.designs.match_quality.online_models import ONLINE_MODELS
from steelyard.designs.match_quality.state import MatchQualityState
from steelyard.designs.progress import Progress, free_slot
from steelyard.errors import Problem
from steelyard.protocols.base import Protocol

_BETWEEN_ROUNDS = NoTask(
    "The last tasks of this round are assigned to other annotators. The next round starts when they are answered.",
    reason_code="waiting",
)


@dataclass(frozen=True, slots=True)
class MatchQuality(Design):
    """Show the items of highest variance, each with partners drawn by match quality.

    A task has a head, one of the k = N/n items of highest variance, and n − 1 partners from outside those k, drawn
    without replacement with probability proportional to match quality (Eq. 23). In rounds, the state is frozen when a
    round starts (Algorithm 1); in continuous mode, every answer counts for the next task. The first round shows every
    item: a random partition into tasks, as in the authors' implementation; `first_round = "match_quality"` is the
    algorithm as printed, whose first round leaves some items out. Each task has one annotator. With contexts,
    Algorithm 1 runs within each of them: the heads of a context are its n_c/n items of highest variance, and partners
    are of the same context.

    Every pick records the product of its partners' match qualities as `weight` and, up to 10,000 items, the exact
    probability as `propensity` that this head draws this set of partners, in any order, given the sets that the
    annotator has seen. The head itself is not drawn; only ties of variance are ordered at random when a round starts.
    A released task keeps its items for the next annotator who has not seen them.

    With the model easl, answers that are revised or no longer count are unlearned. The other models cannot unlearn, so
    the first version of an answer keeps guiding the tasks (scores are not affected).
    """

    name: ClassVar[str] = "match_quality"
    uses_slots: ClassVar[bool] = True

    rounds: Annotated[
        int, Field(ge=1, description="number of rounds; the number of tasks is about rounds × tasks_per_round")
    ] = 10
    tasks_per_round: Annotated[
        int | None, Field(ge=1, description="tasks per round; default: number of items / items per task")
    ] = None
    mode: Annotated[
        Literal["rounds", "continuous"],
        Field(description="when tasks are chosen: at the start of each round, or after every answer"),
    ] = "rounds"
    first_round: Annotated[
        Literal["cover", "match_quality"],
        Field(
            description="tasks of the first round: a random partition that shows every item, or chosen by match "
            "quality (Algorithm 1 as printed); continuous mode and groups have no such round"
        ),
    ] = "cover"
    model: Annotated[
        Literal["easl", "bounded_ranking", "trueskill"],
        Field(description="online model: easl for ratings; bounded_ranking or trueskill for comparisons"),
    ] = "easl"
    by: Annotated[
        Literal["item", "group"],
        Field(
            description="unit that is scored: items, or groups (systems), each represented by its items for a context"
        ),
    ] = "item"
    across_contexts: AcrossContexts = False
    when_waiting: Annotated[
        Literal["next_round", "wait"],
        Field(
            description="while the last tasks of a round are leased: start the next round early, or let annotators wait"
        ),
    ] = "next_round"
    same_item_again: Annotated[
        bool, Field(description="whether an annotator may see an item again in a task with other items")
    ] = True
    gamma: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="γ, the performance noise in the match quality")
    ] = 0.1
    epsilon: Annotated[float, Field(ge=0, allow_inf_nan=False, description="ε, the tie margin; for comparisons")] = 0.1

    def initial_state(self, protocol: Protocol) -> MatchQualityState:
        """Return the state before the first answer."""
        return MatchQualityState(
            protocol,
            ONLINE_MODELS[self.model](protocol, self.gamma, self.epsilon),
            by_group=self.by == "group",
            across=not self.within_contexts(protocol),
            continuous=self.mode == "continuous",
            cover=self.first_round == "cover",
            tasks_per_round=self.tasks_per_round,
            same_item_again=self.same_item_again,
        )

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse protocols whose answers the model does not accept, and tasks larger than the study."""
        kind = ONLINE_MODELS[self.model].accepts
        if kind not in protocol.kinds:
            suitable = [f'"{name}"' for name, model in ONLINE_MODELS.items() if model.accepts in protocol.kinds]
            return [
                Problem(
                    f"match_quality with {self.model} learns from {kind}, but {protocol.name} gives "
                    f"{', '.join(protocol.kinds)}.",
                    f"Set model = {' or '.join(suitable)} in [design]." if suitable else "Use the design per_item.",
                    field="design.model" if suitable else "design.name",
                )
            ]
        if self.by == "group" and not self.same_item_again:
            return [
                Problem(
                    "same_item_again = false applies to single items, not to groups, which are shown many times.",
                    'Remove it, or set by = "item".',
                    field="design.same_item_again",
                )
            ]
        if self.by == "group" and self.across_contexts:
            return [
                Problem(
                    "groups are always compared by their items for the same context.",
                    'Remove across_contexts, or set by = "item".',
                    field="design.across_contexts",
                )
            ]
        if protocol.task_size > n_items:
            return [
                Problem(
                    f"a task shows {protocol.task_size} items, but there are only {n_items}.",
                    "Show fewer items per task, or add items.",
                    field="protocol.items_per_page" if protocol.takes_short_pages else "protocol.size",
                )
            ]
        return []

    def budget(self, progress: Progress) -> int:
        """Return the total number of tasks; it grows with the number of items unless tasks_per_round is set."""
        return _state_of(progress).budget(self.rounds)

    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | NoTask:
        """Choose a released task, else the next head with newly drawn partners."""
        state, history = _state_of(progress), progress.history(annotator)
        slot = free_slot(progress, history)
        if slot is not None:
            items = _shuffled(progress.slots[slot].items, rng)
            return Pick(items, slot=slot, round=max(state.round, 0), propensity=1.0)
        no_task = self._no_task(progress, state)
        if no_task is not None:
            return no_task
        plan, number = state.plan, state.round
        if plan is None or plan.is_done:
            plan, number = state.next_plan(progress, rng), number + 1
        task = state.draw(plan, history, rng)
        if task is None and state.is_exhausted_for(history):
            return NoTask("You have judged every item.")
        if task is None:
            return NoTask("You have judged every task that is available now; more may follow.", reason_code="waiting")
        return Pick(
            _shuffled(task.items, rng),
            slot=progress.next_slot,
            round=number,
            weight=task.weight,
            propensity=task.propensity,
        )

    def _no_task(self, progress: Progress, state: MatchQualityState) -> NoTask | None:
        """Return why there is no new task for any annotator, or None if there is one."""
        if state.targets.largest_set < state.task_size and progress.set_aside:
            return NoTask("Too few items are left for a task: the others were set aside.", complete=True)
        if state.targets.largest_set < state.task_size:
            return NoTask(
                f"A task shows {state.task_size} {self.by}s, but there are {state.targets.largest_set}: add items"
                f"{' and fill their column group' if self.by == 'group' else ''}, or show fewer per task."
            )
        tasks = len(progress.slots) - progress.closed_places("answers")
        assignable = len(progress.slots) - progress.closed_places("assignments")
        if assignable >= self.budget(progress):
            if progress.places_answered >= tasks:
                return NoTask(f"All {tasks} tasks have been answered.", complete=True)
            all_seen = NoTask("You have seen every task that still needs an answer.")
            return WAITING if progress.places_assigned >= assignable else all_seen
        is_between_rounds = self.mode == "rounds" and (state.plan is None or state.plan.is_done)
        if is_between_rounds and self.when_waiting == "wait" and progress.places_answered < tasks:
            return _BETWEEN_ROUNDS
        return None

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count answered tasks."""
        tasks = len(progress.slots) - progress.closed_places("answers")
        state = _state_of(progress)
        is_over = progress.set_aside and state.targets.largest_set < state.task_size
        return Goal(progress.places_answered, tasks if is_over else max(self.budget(progress), tasks))


def _state_of(progress: Progress) -> MatchQualityState:
    state = progress.design_state
    if not isinstance(state, MatchQualityState):
        raise TypeError("match_quality needs a Progress made by its own method new_progress")
    return state


def _shuffled(items: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(rng.permutation(items).tolist())
