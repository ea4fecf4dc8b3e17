"""Pairwise comparison: which of two items is better, and by how much, or are they about equal?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from steelyard.errors import Problem
from steelyard.observations import Comparison, Observation
from steelyard.protocols.base import check_item, criteria_problems, need_items, refuse
from steelyard.protocols.whole_task import AskedCriterion, WholeTaskProtocol
from steelyard.records import Answer

_KEYS = ("winner", "strength", "both_bad")

STRENGTHS: dict[int, tuple[str, ...]] = {
    1: ("better",),
    2: ("better", "much better"),
    3: ("slightly better", "better", "much better"),
}
"""Usual words for the strengths of a preference, by their number."""


@dataclass(frozen=True, slots=True)
class Pairwise(WholeTaskProtocol):
    """Ask which of two items is better; ties are allowed unless switched off.

    With 5 or 7 steps, annotators also say how much better: the strength of the preference, from 1 (slightly) to 2 or 3
    (much).
    """

    name: ClassVar[str] = "pairwise"
    default_design: ClassVar[str] = "random_tuples"
    default_model: ClassVar[str] = "bradley_terry"
    kinds: ClassVar[tuple[str, ...]] = ("comparisons",)

    # Simulated annotators perceive a pair alike under all settings that are not in the repr.
    ties: Annotated[bool, Field(description="whether annotators may answer that both are about the same")] = True
    steps: Annotated[
        Literal[3, 5, 7],
        Field(description="number of answers, including the tie; 3: only which is better; 5 or 7: also how much"),
    ] = field(default=3, repr=False)
    labels: Annotated[
        tuple[str, ...],
        Field(description="words for the strengths, slightest first; default: better, much better (5 steps)"),
    ] = field(default=(), repr=False)

    both_bad: Annotated[
        bool, Field(description="whether annotators may answer that both are bad; counts as a tie in the scores")
    ] = field(default=False, repr=False)

    criteria: Annotated[
        dict[str, AskedCriterion], Field(description="several criteria on one screen, each with its own answer")
    ] = field(default_factory=dict, repr=False)

    @property
    def task_size(self) -> int:
        """Two items per task."""
        return 2

    @property
    def strengths(self) -> int:
        """Number of strengths of a preference; 1 if only the winner is asked."""
        return (self.steps - 1) // 2

    @property
    def strength_names(self) -> tuple[str, ...]:
        """Words for the strengths, the slightest first."""
        return self.labels or STRENGTHS[self.strengths]

    def fitting_model(self) -> str | None:
        """The cumulative link model, if annotators say how much better."""
        return "cumulative_link" if self.strengths > 1 else None

    def problems(self) -> list[Problem]:
        """Refuse labels that do not fit the steps."""
        if problems := criteria_problems(self.criteria):
            return problems
        if not self.labels or len(self.labels) == self.strengths > 1:
            return []
        if self.strengths == 1:
            return [Problem("labels are for the strengths of 5 or 7 steps.", "Leave them out.", field="labels")]
        return [
            Problem(
                f"{len(self.labels)} labels do not fit {self.steps} steps.",
                f"Give {self.strengths}, the slightest preference first.",
                field="labels",
            )
        ]

    def validate_one(self, items: Sequence[str], answer: Any, *, lenient: bool = False) -> Answer:
        """Return `{"winner": item}`, `{"winner": item, "strength": 2}`, or `{"winner": None}` for a tie.

        `{"winner": None, "both_bad": True}` says that both are bad, where the study offers it.
        An imported log may lack strengths; those of a study that asks for the winner only are left out.
        """
        need_items(items, 2, self.name)
        form = self._form
        if not isinstance(answer, Mapping) or "winner" not in answer or set(answer) - set(_KEYS):
            raise refuse(f"a comparison is answered with its winner, not {answer!r}.", form)
        winner, strength = answer["winner"], answer.get("strength")
        if answer.get("both_bad"):
            if not self.both_bad or winner is not None or strength is not None:
                raise refuse("“both bad” is not an answer here.", form, "both_bad")
            return {"winner": None, "both_bad": True}
        if winner is None:
            if not self.ties:
                raise refuse("ties are not allowed in this study.", f"Choose {' or '.join(items)}.", "winner")
            if strength is not None:
                raise refuse("a tie has no strength.", form, "strength")
            return {"winner": None}
        choice: dict[str, object] = {"winner": check_item(items, winner, "winner")}
        if strength is None:
            if self.strengths > 1 and not lenient:
                raise refuse("the answer does not say how much better.", form, "strength")
            return choice
        if self.strengths == 1:
            if lenient:
                return choice
            raise refuse("this study does not ask how much better.", form, "strength")
        is_whole = isinstance(strength, Integral) and not isinstance(strength, bool)
        if not is_whole or int(strength) not in range(1, self.strengths + 1):
            raise refuse(f"{strength!r} is not a strength.", f"Give 1 to {self.strengths}.", "strength")
        return choice | {"strength": int(strength)}

    @property
    def _form(self) -> str:
        strength = f', "strength": 1 to {self.strengths}' if self.strengths > 1 else ""
        return f'Answer with {{"winner": item{strength}}}, or {{"winner": null}} for a tie.'

    def observations_of_one(self, items: Sequence[str], answer: Any) -> list[Observation]:
        """Return one comparison, in display order."""
        left, right = items
        winner = answer["winner"]
        if winner is None:
            return [Comparison(left, right, 0)]
        return [Comparison(left, right, 1 if winner == left else -1, answer.get("strength", 0))]


def is_both_bad(answer: Any) -> bool:
    """Return whether an accepted answer calls both items bad, by any criterion."""
    if not isinstance(answer, Mapping):
        return False
    return answer.get("both_bad") is True or any(
        isinstance(own, Mapping) and own.get("both_bad") is True for own in answer.values()
    )
