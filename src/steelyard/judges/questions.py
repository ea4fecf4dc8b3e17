"""Which questions a model is asked about a study's items."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.errors import ConfigError
from steelyard.records import Item
from steelyard.study import Study
from steelyard.study.config import Stage
from steelyard.study.judges import ModelPick, answer_id, people_only


@dataclass(frozen=True, slots=True)
class Question:
    """Items to show in this order, in one stage; `repeat` counts the calls with the same items in the same order.

    `reason` says why a model is asked and not a person, where they share the design.
    """

    stage: int
    items: tuple[str, ...]
    repeat: int = 0
    reason: str = ""

    def id_for(self, annotator: str, version: str, stage_name: str, repeat: int | None = None) -> str:
        """Return the id of the answer by a model in one version."""
        number = self.repeat if repeat is None else repeat
        return answer_id(annotator, version, stage_name, self.items, number)


@dataclass(frozen=True, slots=True)
class QuestionPlan:
    """How much a model is asked.

    `repeats` are calls for each question. Comparative protocols ask about the sets of items that people judged, and
    about random sets until each item is in `per_item` of them; with `both_orders` also in the reverse order.
    """

    repeats: int = 1
    per_item: int = 4
    both_orders: bool = True
    limit: int | None = None
    """Maximum number of items, drawn at random; all if absent."""
    seed: int = 0


def plan_questions(study: Study, plan: QuestionPlan) -> list[Question]:
    """Return all questions for a study: repeats of one question come after the first calls of all questions."""
    items = study.items
    rng = np.random.default_rng(plan.seed)
    if plan.limit is not None and plan.limit < len(items):
        items = [items[place] for place in sorted(rng.choice(len(items), plan.limit, replace=False).tolist())]
    first: list[Question] = []
    for number, stage in enumerate(study.config.stages):
        if stage.protocol.takes_short_pages or stage.protocol.task_size == 1:
            first += [Question(number, (item.id,)) for item in items]
        else:
            first += [Question(number, shown) for shown in _sets(study, number, stage, items, plan, rng)]
    return [Question(one.stage, one.items, repeat) for repeat in range(plan.repeats) for one in first]


class QuestionsByGain:
    """The items, or pairs, where a model's answer is worth more per cost than a person's, one after the other.

    Each is chosen from all answers so far; no question comes twice. `ending` says why there are no more.
    """

    def __init__(self, study: Study, limit: int | None = None) -> None:
        self._study, self._limit = study, limit
        self._sets: set[tuple[str, ...]] = set()
        self.ending = ""
        if study.judges.pick() is None:
            raise ConfigError(
                "the design of this study does not decide between people and models.",
                'Use [design] name = "adaptive" with model_cost and person_cost.',
            )

    def __iter__(self) -> Iterator[Question]:
        while self._limit is None or len(self._sets) < self._limit:
            pick = self._study.judges.pick(self._sets)
            if not isinstance(pick, ModelPick):
                self.ending = "" if pick is None else pick.reason
                return
            self._sets.add(pick.items)
            yield Question(pick.stage, pick.items, reason=pick.reason)
        self.ending = f"The limit of {self._limit} questions is reached."


def _sets(
    study: Study, number: int, stage: Stage, items: Sequence[Item], plan: QuestionPlan, rng: np.random.Generator
) -> Iterator[tuple[str, ...]]:
    chosen_names = {item.id for item in items}
    judged = {
        tuple(sorted(judgment.items)): judgment.items
        for judgment in people_only(study.stream_judgments())
        if judgment.stage == stage.name and chosen_names.issuperset(judgment.items)
    }
    sets = dict(judged)
    for shown in _random_sets(items, stage, judged, plan.per_item, rng):
        sets.setdefault(tuple(sorted(shown)), shown)
    for shown in sets.values():
        yield shown
        if plan.both_orders:
            yield shown[::-1]


def _random_sets(
    items: Sequence[Item],
    stage: Stage,
    judged: Iterable[tuple[str, ...]],
    per_item: int,
    rng: np.random.Generator,
) -> Iterator[tuple[str, ...]]:
    """Yield sets of items of one context each until every item is in `per_item` sets, or in all that exist."""
    times = Counter(name for names in judged for name in names)
    is_across = getattr(stage.design, "across_contexts", False)
    by_context: defaultdict[str | None, list[str]] = defaultdict(list)
    for item in items:
        by_context[None if is_across else item.context].append(item.id)
    size = stage.protocol.task_size
    for names in by_context.values():
        if len(names) < 2:
            continue
        number = min(size, len(names))
        # Each round shows every item once, so counts stay even; the last set of a round is filled up at random.
        for _ in range(max(0, per_item - min(times[name] for name in names))):
            order = rng.permutation(names).tolist()
            for start in range(0, len(order), number):
                names_in_set = order[start : start + number]
                others = [name for name in order if name not in names_in_set]
                names_in_set += rng.permutation(others).tolist()[: number - len(names_in_set)]
                yield tuple(names_in_set)
