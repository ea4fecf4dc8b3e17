"""Signs of careless work, each with an interval, so that nobody is accused on three answers.

A signal is shown for everybody; it excludes somebody only where a study's rules say so, and then by the lower
end of its interval.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import singledispatch

import numpy as np
import polars as pl
from scipy import stats

from steelyard.models.labels.majority import wilson
from steelyard.observations import Choice, Comparison, Label, Observation, RankedItems, Rating
from steelyard.protocols.base import Protocol
from steelyard.records import Judgment

LETTERS_A_SECOND = 75.0
"""Three times as fast as people read: who answers faster has not read the text."""
REACTION_SECONDS = 0.4
ONE_SIDED_P = 0.001
"""How improbable a preference for one place must be, over all annotators together, to be called one."""

_SCHEMA = {
    "annotator": pl.String,
    "judgments": pl.Int64,
    "too_fast": pl.Float64,
    "too_fast_lower": pl.Float64,
    "too_fast_upper": pl.Float64,
    "constant": pl.Float64,
    "constant_lower": pl.Float64,
    "constant_upper": pl.Float64,
    "commonest": pl.String,
    "place": pl.Int64,
    "place_share": pl.Float64,
    "place_lower": pl.Float64,
    "place_upper": pl.Float64,
    "one_sided": pl.Boolean,
}


def signals(
    judgments: Iterable[Judgment], protocols: Mapping[str, Protocol], letters: Mapping[str, int]
) -> pl.DataFrame:
    """Return a row for each annotator, the busiest first.

    `too_fast` is the share of timed answers given faster than the text can be read, `constant` the share of the
    commonest rating or label, `place` the place on the screen that was chosen most often (1 is the left or upper
    one) with `place_share`, and `one_sided` whether that is too often to be chance.

    Parameters
    ----------
    judgments
        All of them, checks and repeats too: they are work like any other.
    protocols
        By stage.
    letters
        How long each item's text is, with all that is shown beside it.
    """
    people: defaultdict[str, _Work] = defaultdict(_Work)
    for judgment in judgments:
        if judgment.annotator and not judgment.imported:
            people[judgment.annotator].take(judgment, protocols[judgment.stage], letters)
    rows = [work.row(name) for name, work in people.items()]
    found = pl.DataFrame(rows, schema=_SCHEMA, orient="row").sort(["judgments", "annotator"], descending=[True, False])
    suspects = len(people) or 1
    one_sided = [
        bool(work.p_value() is not None and (work.p_value() or 0) < ONE_SIDED_P / suspects)
        for work in (people[name] for name in found["annotator"])
    ]
    return found.with_columns(pl.Series("one_sided", one_sided, dtype=pl.Boolean))


class _Work:
    """What one annotator did, counted."""

    def __init__(self) -> None:
        self.judgments = 0
        self.timed = 0
        self.fast = 0
        self.values: Counter[str] = Counter()
        self.places: Counter[int] = Counter()
        self.chances: list[int] = []

    def take(self, judgment: Judgment, protocol: Protocol, letters: Mapping[str, int]) -> None:
        """Count one judgment."""
        self.judgments += 1
        if judgment.seconds is not None:
            self.timed += 1
            text = sum(letters.get(item, 0) for item in judgment.items)
            self.fast += judgment.seconds < REACTION_SECONDS + text / LETTERS_A_SECOND
        said = protocol.observations(judgment.items, judgment.answer)
        for one in said:
            value = _value(one)
            if value is not None:
                self.values[value] += 1
        place = None if "ratings" in protocol.kinds else _place(judgment.items, said)
        if place is not None:
            self.places[place] += 1
            self.chances.append(len(judgment.items))

    def row(self, name: str) -> tuple[object, ...]:
        """Lay it out as a row of the table; whether it is one-sided is seen when all are known."""
        commonest, often = self.values.most_common(1)[0] if self.values else (None, 0)
        place, times = self.places.most_common(1)[0] if self.places else (None, 0)
        return (
            name,
            self.judgments,
            *_share(self.fast, self.timed),
            *_share(often, self.values.total()),
            commonest,
            place,
            *_share(times, self.places.total()),
            False,
        )

    def p_value(self) -> float | None:
        """How probable so strong a preference for some place is, if the order shown means nothing."""
        if not self.chances:
            return None
        sizes = np.array(self.chances)
        most = max(self.places.values())
        # One place among several: the commonest of them is bound to be above its fair share now and then.
        tail = float(stats.binom.sf(most - 1, len(sizes), float((1 / sizes).mean())))
        return min(1.0, tail * int(sizes.max()))


def _share(hits: int, of: int) -> tuple[float | None, float | None, float | None]:
    if not of:
        return None, None, None
    lower, upper = wilson(np.array([hits], np.int32), np.array([of], np.int32), 0.95)
    return hits / of, float(lower[0]), float(upper[0])


@singledispatch
def _value(said: Observation) -> str | None:
    """The answer by itself, where it can be one and the same for every item."""
    return None


@_value.register
def _(said: Rating) -> str | None:
    return f"{said.criterion} {said.value:g}".strip()


@_value.register
def _(said: Label) -> str | None:
    return f"{said.criterion} {said.label}".strip()


def _place(items: Sequence[str], observations: Iterable[Observation]) -> int | None:
    """Where on the screen the item stood that came out best; none for ties."""
    for said in observations:
        best: str | None = None
        if isinstance(said, Comparison) and len(items) == 2:
            best = {1: said.left, -1: said.right}.get(said.outcome)
        elif isinstance(said, Choice):
            best = said.best
        elif isinstance(said, RankedItems) and len(said.tiers[0]) == 1:
            best = said.tiers[0][0]
        if best is not None:
            return items.index(best) + 1
    return None


Limits = Mapping[str, float | bool | None]


def broken_rules(table: pl.DataFrame, limits: Limits, agreement: pl.DataFrame | None = None) -> dict[str, str]:
    """Say who breaks a study's rules, and why; a rule that is not set accuses nobody.

    `agreement` has `annotator`, `agreement`, `agreement_lower`, `agreement_upper`, as for all annotators.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for row in table.iter_rows(named=True):
        for name, told in _TOLD.items():
            limit = limits.get(name)
            if limit and name != "one_sided" and (row[f"{name}_lower"] or 0.0) >= float(limit):
                found[row["annotator"]].append(told(row))
        if limits.get("one_sided") and row["one_sided"]:
            found[row["annotator"]].append(_TOLD["one_sided"](row))
    if limits.get("disagreement") and agreement is not None:
        for name in far_below(agreement):
            found[name].append("agreement with the others far below everybody else's")
    return {name: "; ".join(reasons) for name, reasons in found.items()}


_TOLD: dict[str, Callable[[Mapping[str, object]], str]] = {
    "too_fast": lambda row: f"{row['too_fast']:.0%} of the answers came faster than the text can be read",
    "constant": lambda row: f"{row['constant']:.0%} of the answers are the same ({row['commonest']})",
    "one_sided": lambda row: f"place {row['place']} was chosen in {row['place_share']:.0%} of the tasks",
}


def far_below(agreement: pl.DataFrame, margin: float = 0.1) -> list[str]:
    """Name those whose whole interval lies below the median of everybody's agreement, less a margin."""
    known = agreement.drop_nulls(["agreement", "agreement_upper"])
    if known.height < 3:
        return []
    middle = float(np.median(known["agreement"].to_numpy()))
    return known.filter(pl.col("agreement_upper") < middle - margin)["annotator"].to_list()
