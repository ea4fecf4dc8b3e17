"""Full ranking of a few items, ties allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated, Any, ClassVar

from pydantic import Field

from steelyard.errors import Problem
from steelyard.observations import Comparison, Observation, RankedItems
from steelyard.protocols.base import check_item, criteria_problems, need_items, refuse
from steelyard.protocols.whole_task import AskedCriterion, WholeTaskProtocol
from steelyard.records import Answer


@dataclass(frozen=True, slots=True)
class Ranking(WholeTaskProtocol):
    """Ask for an order from best to worst; items may be tied unless ties are switched off."""

    name: ClassVar[str] = "ranking"
    default_design: ClassVar[str] = "random_tuples"
    default_model: ClassVar[str] = "plackett_luce"
    kinds: ClassVar[tuple[str, ...]] = ("rankings", "comparisons")

    size: Annotated[int, Field(ge=2, description="items per task")] = 5
    ties: Annotated[bool, Field(description="whether items may be tied")] = True

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
        """Return `[[a], [b, c], [d]]`, best first; an imported log may omit items."""
        need_items(items, 2, self.name)
        if not isinstance(answer, list | tuple) or not all(isinstance(tier, list | tuple) and tier for tier in answer):
            raise refuse(
                f"a ranking is a list of ranks, best first, not {answer!r}.",
                "Answer with [[a], [b, c], [d]]; items in one inner list are tied.",
            )
        tiers = [[check_item(items, item, "ranking") for item in tier] for tier in answer]
        ranked = [item for tier in tiers for item in tier]
        for item in ranked:
            if ranked.count(item) > 1:
                raise refuse(f"'{item}' appears twice in the ranking.", "Rank every item once.", item)
        if len(ranked) < (2 if lenient else len(items)):
            first_missing = next(item for item in items if item not in ranked)
            raise refuse(f"'{first_missing}' is not ranked yet.", "Rank every item once.", first_missing)
        if not self.ties and len(tiers) < len(ranked):
            raise refuse("ties are not allowed in this study.", "Give every item a different rank.", "ranking")
        return tiers

    def observations_of_one(self, items: Sequence[str], answer: Any) -> list[Observation]:
        """Return the ranking, then every pair in display order."""
        place = {item: rank for rank, tier in enumerate(answer) for item in tier}
        ranked_items = [item for item in items if item in place]
        pairs: list[Observation] = [
            Comparison(a, b, (place[a] < place[b]) - (place[a] > place[b])) for a, b in combinations(ranked_items, 2)
        ]
        return [RankedItems(tuple(tuple(tier) for tier in answer)), *pairs]
