"""Signals of careless work, each with an interval, so that a few answers are not enough to accuse an annotator.

Signals are reported for every annotator. They exclude an annotator only if the rules of the study say so, and then by
the lower end of the interval.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import singledispatch

import numpy as np
import polars as pl
import scipy

from steelyard.models.labels.majority import wilson
from steelyard.observations import Choice, Comparison, Label, Observation, RankedItems, Rating
from steelyard.protocols.base import Protocol
from steelyard.protocols.unjudged import observe
from steelyard.records import Judgment

LETTERS_PER_SECOND = 75.0
"""Three times the usual reading speed: a faster answer means that the text was not read."""
REACTION_SECONDS = 0.4
ONE_SIDED_P = 0.001
"""Significance level, over all annotators together, of a preference for one position."""

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
    """Return one row per annotator, those with most judgments first.

    `too_fast` is the fraction of timed answers given faster than the text can be read, `constant` the fraction of the
    most common rating or label, `place` the position on the screen chosen most often (1 is left or top) with its
    fraction `place_share`, and `one_sided` whether that is significantly too often.

    Parameters
    ----------
    judgments
        All judgments, including checks and repeats.
    protocols
        The protocol of each stage.
    letters
        Number of letters of each item's text and of everything displayed with it.
    """
    counts = SignalCounts(protocols)
    counts.add(judgments, letters)
    return counts.table()


class SignalCounts:
    """What `signals` counts, from judgments that arrive little by little."""

    def __init__(self, protocols: Mapping[str, Protocol]) -> None:
        self._protocols = protocols
        self._work_of: defaultdict[str, _Work] = defaultdict(_Work)

    def add(self, judgments: Iterable[Judgment], letters: Mapping[str, int]) -> None:
        """Count more judgments; `letters` as for `signals`."""
        for judgment in judgments:
            if judgment.annotator and not judgment.imported:
                self._work_of[judgment.annotator].add(judgment, self._protocols[judgment.stage], letters)

    def table(self) -> pl.DataFrame:
        """Return the signals of all judgments so far."""
        rows = [work.row(name) for name, work in self._work_of.items()]
        result = pl.DataFrame(rows, schema=_SCHEMA, orient="row").sort(
            ["judgments", "annotator"], descending=[True, False]
        )
        n_annotators = len(self._work_of) or 1
        one_sided = [
            bool(work.p_value() is not None and (work.p_value() or 0) < ONE_SIDED_P / n_annotators)
            for work in (self._work_of[name] for name in result["annotator"])
        ]
        return result.with_columns(pl.Series("one_sided", one_sided, dtype=pl.Boolean))


class _Work:
    """Counts of one annotator's answers."""

    def __init__(self) -> None:
        self.judgments = 0
        self.timed = 0
        self.fast = 0
        self.values: Counter[str] = Counter()
        self.places: Counter[int] = Counter()
        self.chances: list[int] = []

    def add(self, judgment: Judgment, protocol: Protocol, letters: Mapping[str, int]) -> None:
        """Count one judgment."""
        self.judgments += 1
        if judgment.seconds is not None:
            self.timed += 1
            text = sum(letters.get(item, 0) for item in judgment.items)
            self.fast += judgment.seconds < REACTION_SECONDS + text / LETTERS_PER_SECOND
        observations = observe(protocol, judgment.items, judgment.answer)
        for observation in observations:
            value = _value(observation)
            if value is not None:
                self.values[value] += 1
        place = None if "ratings" in protocol.kinds else _place(judgment.items, observations)
        if place is not None:
            self.places[place] += 1
            self.chances.append(len(judgment.items))

    def row(self, name: str) -> tuple[object, ...]:
        """Return a row of the table; `one_sided` is filled in when all annotators are counted."""
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
        """Return the p-value of the preference for one position, under random order; None without choices."""
        if not self.chances:
            return None
        sizes = np.array(self.chances)
        most = max(self.places.values())
        # Bonferroni correction: the most frequent of several positions was selected after the fact.
        tail = float(scipy.special.bdtrc(most - 1, len(sizes), float((1 / sizes).mean())))
        return min(1.0, tail * int(sizes.max()))


def _share(hits: int, of: int) -> tuple[float | None, float | None, float | None]:
    if not of:
        return None, None, None
    lower, upper = wilson(np.array([hits], np.int32), np.array([of], np.int32), 0.95)
    return hits / of, float(lower[0]), float(upper[0])


@singledispatch
def _value(observation: Observation) -> str | None:
    """Return the value of an observation where it can be the same for every item."""
    return None


@_value.register
def _(observation: Rating) -> str | None:
    return f"{observation.criterion} {observation.value:g}".strip()


@_value.register
def _(observation: Label) -> str | None:
    return f"{observation.criterion} {observation.label}".strip()


def _place(items: Sequence[str], observations: Iterable[Observation]) -> int | None:
    """Return the position on the screen of the best item; None for ties."""
    for observation in observations:
        best: str | None = None
        if isinstance(observation, Comparison) and len(items) == 2:
            best = {1: observation.left, -1: observation.right}.get(observation.outcome)
        elif isinstance(observation, Choice):
            best = observation.best
        elif isinstance(observation, RankedItems) and len(observation.tiers[0]) == 1:
            best = observation.tiers[0][0]
        if best is not None:
            return items.index(best) + 1
    return None


Limits = Mapping[str, float | bool | None]


def broken_rules(table: pl.DataFrame, limits: Limits, agreement: pl.DataFrame | None = None) -> dict[str, str]:
    """Return the annotators who break a rule of the study, with the reasons; rules that are not set are ignored.

    `agreement` has `annotator`, `agreement`, `agreement_lower`, `agreement_upper`, as for all annotators.
    """
    reasons_of: dict[str, list[str]] = defaultdict(list)
    for row in table.iter_rows(named=True):
        for name, describe in _DESCRIPTIONS.items():
            limit = limits.get(name)
            if limit and name != "one_sided" and (row[f"{name}_lower"] or 0.0) >= float(limit):
                reasons_of[row["annotator"]].append(describe(row))
        if limits.get("one_sided") and row["one_sided"]:
            reasons_of[row["annotator"]].append(_DESCRIPTIONS["one_sided"](row))
    if limits.get("disagreement") and agreement is not None:
        for name in far_below(agreement):
            reasons_of[name].append("agreement with other annotators far below the average")
    return {name: "; ".join(reasons) for name, reasons in reasons_of.items()}


_DESCRIPTIONS: dict[str, Callable[[Mapping[str, object]], str]] = {
    "too_fast": lambda row: f"{row['too_fast']:.0%} of the answers were faster than the text can be read",
    "constant": lambda row: f"{row['constant']:.0%} of the answers are the same ({row['commonest']})",
    "one_sided": lambda row: f"position {row['place']} was chosen in {row['place_share']:.0%} of the tasks",
}


def far_below(agreement: pl.DataFrame, margin: float = 0.1) -> list[str]:
    """Return the annotators whose whole interval lies below the median agreement minus a margin."""
    complete = agreement.drop_nulls(["agreement", "agreement_upper"])
    if complete.height < 3:
        return []
    middle = float(np.median(complete["agreement"].to_numpy()))
    return complete.filter(pl.col("agreement_upper") < middle - margin)["annotator"].to_list()
