"""Pairwise comparison: which of two items is better, or are they about equal?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from steelyard.observations import Comparison, Observation
from steelyard.protocols.base import Protocol, check_item, need_items, refuse
from steelyard.records import Answer


@dataclass(frozen=True, slots=True)
class Pairwise(Protocol):
    """Ask which of two items is better; ties are allowed unless switched off."""

    name: ClassVar[str] = "pairwise"
    default_design: ClassVar[str] = "random_tuples"
    default_model: ClassVar[str] = "bradley_terry"
    kinds: ClassVar[tuple[str, ...]] = ("comparisons",)

    ties: Annotated[bool, Field(description="whether annotators may answer that both are about the same")] = True

    @property
    def task_size(self) -> int:
        """Two items per task."""
        return 2

    def validate(self, items: Sequence[str], answer: Any, *, lenient: bool = False) -> Answer:
        """Return `{"winner": item}`, or `{"winner": None}` for a tie."""
        need_items(items, 2, self.name)
        if not isinstance(answer, Mapping) or set(answer) != {"winner"}:
            raise refuse(
                f"a comparison is answered with its winner, not {answer!r}.",
                'Answer with {"winner": item}, or {"winner": null} for a tie.',
            )
        winner = answer["winner"]
        if winner is None:
            if not self.ties:
                raise refuse("ties are not allowed in this study.", f"Choose {' or '.join(items)}.", "winner")
            return {"winner": None}
        return {"winner": check_item(items, winner, "winner")}

    def observations(self, items: Sequence[str], answer: Any) -> list[Observation]:
        """Return one comparison, in display order."""
        left, right = items
        winner = answer["winner"]
        return [Comparison(left, right, 0 if winner is None else 1 if winner == left else -1)]
