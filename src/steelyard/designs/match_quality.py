"""Ask about what is least certain, beside what is most alike: Algorithm 1 of Sakaguchi & Van Durme (2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from steelyard.designs.base import WAITING, Design, Goal, Nothing, Pick
from steelyard.designs.beliefs import BELIEFS
from steelyard.designs.match_quality_memory import MatchQualityMemory
from steelyard.designs.progress import Person, Progress
from steelyard.designs.units import seen_sets
from steelyard.errors import Problem
from steelyard.protocols.base import Protocol

_BETWEEN_ROUNDS = Nothing(
    "This round's last tasks are with other annotators; the next round opens when they are answered.",
    because="waiting",
)


@dataclass(frozen=True, slots=True)
class MatchQuality(Design):
    """Ask about the items of highest variance, each beside others drawn by match quality.

    A task has a head, one of the k = N/n items that are least certain, and n − 1 partners from outside those
    k, drawn without replacement with probability proportional to how much meeting the head would teach
    (Eq. 23). By rounds, the state is frozen when a round opens (Algorithm 1); continuously, every answer
    counts for the next task. Both ask `rounds` × `tasks_per_round` tasks in all, one annotator each.

    Every pick records the product of its partners' match qualities as `weight`, and up to 10,000 items as
    `propensity` the exact probability that this head draws this set of partners, in whatever order, given
    that its annotator has seen some sets before. The head itself is not drawn: only the order of items of
    equal variance is, when a round opens. A task that was given back keeps its items, for the next who has
    not seen them.

    With the model easl, answers that are revised or set aside are unlearnt; the others cannot unlearn, so
    there the first version of an answer goes on guiding the questions (scores are not touched by that).
    """

    name: ClassVar[str] = "match_quality"
    plans: ClassVar[bool] = True

    rounds: Annotated[int, Field(ge=1, description="rounds; with tasks_per_round, how much is asked in all")] = 10
    tasks_per_round: Annotated[
        int | None, Field(ge=1, description="tasks in a round; items divided by items a task if absent")
    ] = None
    mode: Annotated[
        Literal["rounds", "continuous"],
        Field(description="whether questions are chosen anew by rounds, or after every answer"),
    ] = "rounds"
    model: Annotated[
        Literal["easl", "bounded_ranking", "trueskill"],
        Field(description="what answers move: ratings easl, comparisons the others"),
    ] = "easl"
    by: Annotated[
        Literal["item", "group"],
        Field(description="whether each item is placed, or each group, shown by its items for one context"),
    ] = "item"
    when_waiting: Annotated[
        Literal["next_round", "wait"],
        Field(description="while a round's last tasks are out: open the next one early, or let people wait"),
    ] = "next_round"
    same_item_again: Annotated[
        bool, Field(description="whether an annotator may meet an item again, in another task with other items")
    ] = True
    gamma: Annotated[float, Field(gt=0, allow_inf_nan=False, description="γ, the skill chain of match quality")] = 0.1
    epsilon: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="ε, within which ties are usual; for comparisons")
    ] = 0.1

    def memory(self, protocol: Protocol) -> MatchQualityMemory:
        """Return a memory that has heard nothing."""
        return MatchQualityMemory(
            protocol,
            BELIEFS[self.model](protocol, self.gamma, self.epsilon),
            by_group=self.by == "group",
            continuous=self.mode == "continuous",
            tasks_per_round=self.tasks_per_round,
            same_item_again=self.same_item_again,
        )

    def problems(self, protocol: Protocol, n_items: int) -> list[Problem]:
        """Refuse protocols whose answers the model cannot learn from, and tasks larger than the study."""
        needed = BELIEFS[self.model].accepts
        if needed not in protocol.kinds:
            fitting = [f'"{name}"' for name, beliefs in BELIEFS.items() if beliefs.accepts in protocol.kinds]
            return [
                Problem(
                    f"match_quality with {self.model} learns from {needed}, but {protocol.name} gives "
                    f"{', '.join(protocol.kinds)}.",
                    f"Set model = {' or '.join(fitting)} in [design]." if fitting else "Use the design redundant.",
                    field="design.model" if fitting else "design.name",
                )
            ]
        if self.by == "group" and not self.same_item_again:
            return [
                Problem(
                    "same_item_again = false is for single items, not for groups, which come back all the time.",
                    'Leave it out, or set by = "item".',
                    field="design.same_item_again",
                )
            ]
        if protocol.task_size > n_items:
            return [
                Problem(
                    f"a task shows {protocol.task_size} items, but there are only {n_items}.",
                    "Show fewer at a time, or add items.",
                    field="protocol.items_per_page" if protocol.takes_short_pages else "protocol.size",
                )
            ]
        return []

    def budget(self, progress: Progress) -> int:
        """How many tasks there are in all; items that join bring more, unless tasks_per_round is given."""
        return self.rounds * _memory(progress).tasks_per_round

    def pick(self, progress: Progress, task_size: int, annotator: str, rng: np.random.Generator) -> Pick | Nothing:
        """Hand out a task that came back, else the next head with partners drawn now."""
        memory, person = _memory(progress), progress.person(annotator)
        returned = _returned(progress, person)
        if returned is not None:
            items = _shuffled(progress.slots[returned].items, rng)
            return Pick(items, slot=returned, round=max(memory.round, 0), propensity=1.0)
        nothing = self._nothing(progress, memory)
        if nothing is not None:
            return nothing
        plan, number = memory.plan, memory.round
        if plan is None or plan.done:
            plan, number = memory.ahead(progress, rng), number + 1
        drawn = memory.draw(plan, person, rng)
        if drawn is None and memory.knows_all(person):
            return Nothing("You have judged every item.")
        if drawn is None:
            return Nothing("You have judged everything that is asked at present; more may come.", because="waiting")
        return Pick(
            _shuffled(drawn.items, rng),
            slot=progress.next_slot,
            round=number,
            weight=drawn.weight,
            propensity=drawn.propensity,
        )

    def _nothing(self, progress: Progress, memory: MatchQualityMemory) -> Nothing | None:
        """Say why there is no new task for anybody, or return None where there is one."""
        asked = len(progress.slots)
        if memory.units.count < memory.task_size:
            return Nothing(
                f"A task shows {memory.task_size} {self.by}s, but there are {memory.units.count}: add items"
                f"{' and fill their column group' if self.by == 'group' else ''}, or show fewer at a time."
            )
        if asked >= self.budget(progress):
            if progress.places_answered >= asked:
                return Nothing(f"All {asked} tasks have been answered.", complete=True)
            seen = Nothing("You have seen every task that still needs an answer.")
            return WAITING if progress.places_asked >= asked else seen
        between = self.mode == "rounds" and (memory.plan is None or memory.plan.done)
        if between and self.when_waiting == "wait" and progress.places_answered < asked:
            return _BETWEEN_ROUNDS
        return None

    def goal(self, progress: Progress, task_size: int) -> Goal:
        """Count answered tasks."""
        return Goal(progress.places_answered, max(self.budget(progress), len(progress.slots)))


def _memory(progress: Progress) -> MatchQualityMemory:
    memory = progress.memory
    if not isinstance(memory, MatchQualityMemory):
        raise TypeError("match_quality needs the progress that its own `progress` makes")
    return memory


def _returned(progress: Progress, person: Person) -> int | None:
    """Return a slot whose task came back and is new to this person."""
    for place in range(person.queue_read, len(progress.queue)):
        number = progress.queue[place]
        slot = progress.slots[number]
        unseen = slot.items not in seen_sets(person, len(slot.items))
        if slot.queued_at == place and slot.asked < progress.capacity and unseen:
            return number
        # Full or seen: it cannot become right for this annotator again without joining the queue anew.
        person.queue_read = place + 1
    return None


def _shuffled(items: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(rng.permutation(items).tolist())
