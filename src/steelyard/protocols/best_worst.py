"""Best–worst scaling: of k items, which is best and which is worst?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import Field

from steelyard.errors import Problem
from steelyard.observations import Choice, Comparison, Observation
from steelyard.protocols.base import check_item, criteria_problems, need_items, refuse
from steelyard.protocols.whole_task import AskedCriterion, WholeTaskProtocol
from steelyard.records import Answer


@dataclass(frozen=True, slots=True)
class BestWorst(WholeTaskProtocol):
    """Ask for the best and the worst of k items (Kiritchenko & Mohammad 2017).

    One answer is one choice and determines 2k-3 of the pairs: five of the six pairs of a 4-tuple.
    """

    name: ClassVar[str] = "best_worst"
    default_design: ClassVar[str] = "random_tuples"
    default_model: ClassVar[str] = "counting"
    kinds: ClassVar[tuple[str, ...]] = ("choices", "comparisons")

    size: Annotated[int, Field(ge=3, description="items per task")] = 4
    labels: Annotated[
        tuple[str, str], Field(description="words for best and worst, e.g. most positive, most negative")
    ] = ("best", "worst")

    criteria: Annotated[
        dict[str, AskedCriterion], Field(description="several criteria on one screen, each with its own answer")
    ] = field(default_factory=dict, repr=False)

    @property
    def task_size(self) -> int:
        """Number of items per task."""
        return self.size

    def problems(self) -> list[Problem]:
        """Refuse a criterion with the name of the combined score."""
        return criteria_problems(self.criteria)

    def validate_one(self, items: Sequence[str], answer: Any, *, lenient: bool = False) -> Answer:
        """Return `{"best": item, "worst": item}`; an imported log may lack one, or name one item as both."""
        need_items(items, 2, self.name)
        if not isinstance(answer, Mapping) or set(answer) - {"best", "worst"}:
            raise refuse(
                f"a best–worst answer names the best and the worst item, not {answer!r}.",
                'Answer with {"best": item, "worst": item}.',
            )
        choice = {}
        for end in ("best", "worst"):
            item = answer.get(end)
            if item is None and not lenient:
                raise refuse(f"the {end} item is missing.", f"Choose one of: {', '.join(items)}.", end)
            choice[end] = None if item is None else check_item(items, item, end)
        if choice["best"] is not None and choice["best"] == choice["worst"] and not lenient:
            raise refuse(f"'{choice['best']}' is both best and worst.", "Choose two different items.", "worst")
        return choice

    def observations_of_one(self, items: Sequence[str], answer: Any) -> list[Observation]:
        """Return the choice, then the comparisons with the best and the worst item, in display order."""
        best, worst = answer["best"], answer["worst"]
        choice = Choice(tuple(items), best, worst)
        if best == worst:
            return [choice]
        pairs: list[Observation] = []
        for i, a in enumerate(items):
            for b in items[i + 1 :]:
                if best in (a, b):
                    pairs.append(Comparison(a, b, 1 if best == a else -1))
                elif worst in (a, b):
                    pairs.append(Comparison(a, b, 1 if worst == b else -1))
        return [choice, *pairs]
