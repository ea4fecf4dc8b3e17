"""Self-consistency: agreement of repeated answers by the same annotator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from steelyard.errors import ConfigError, DataError
from steelyard.observations import (
    UNKNOWN,
    Choices,
    Comparisons,
    FloatArray,
    Labels,
    Observations,
    Rankings,
    Ratings,
)
from steelyard.reliability.bootstrap import Bootstrap, Names, Seed, WeightedStatistic, weighted_proportion
from steelyard.reliability.proportions import proportion
from steelyard.reliability.statistic import Statistic, Statistics, statistics_table
from steelyard.reliability.units import Codes, Units, group_codes

PAIR_LIMIT = 5_000_000
"""Number of pairs of repeated answers beyond which they are not listed one by one."""

ROUNDING = 1e-12
"""Variance relative to the mean square up to which values are equal but for rounding."""

CORRELATION = "correlation_of_repeats"
DIFFERENCES = ("difference_if_inconsistent", "difference_of_repeats")
KAPPA = "intra_annotator_kappa"

_NONE = "undefined: no annotator answered a question twice"
_NO_ANNOTATORS = "undefined: the annotators are unknown"


@dataclass(frozen=True, slots=True)
class SelfConsistency(Statistics):
    """Self-consistency of annotators.

    `by_time` has the rate of differing pairs by the time between them, if times are known.
    """

    kind: str
    statistics: tuple[Statistic, ...]
    by_time: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()


class _Answers(NamedTuple):
    """The question and answer of each row; `side` is best or worst for choices."""

    side: str
    question: Codes
    answer: NDArray[Any]
    annotator: NDArray[np.int32]
    row: Codes


def self_consistency(
    observations: Observations,
    *,
    when: ArrayLike | None = None,
    edges: Sequence[float] | None = None,
    seed: Seed = 0,
    replicates: int = 200,
    level: float = 0.95,
) -> SelfConsistency:
    """Compare the answers of each annotator to the same question with each other.

    A question is an item, a pair (of one task if tasks are known) or a tuple; all pairs of repeated answers
    count. Kiritchenko & Mohammad (2017, §4) report the inconsistency rate and the mean difference of the
    inconsistent pairs; Callison-Burch et al. (2010) the agreement and κ of comparisons.

    Parameters
    ----------
    observations
        Of any kind, with annotators.
    when
        The time (or position in the order) of each observation, as a number. With times, the correlation is of the
        earlier with the later answer, and the inconsistency rate is tabulated by the time between them.
    edges
        Ascending bounds of the classes of time between; by default five classes with equally many pairs.
    seed, replicates, level
        Settings of the intervals, which are resampled over annotators.
    """
    bootstrap = Bootstrap.of(seed, replicates, level)
    if isinstance(observations, Rankings):
        times = None if when is None else np.repeat(_times(when, len(observations)), observations.pairs_per_ranking)
        consistency = self_consistency(
            observations.to_comparisons(),
            when=times,
            edges=edges,
            seed=bootstrap.seed,
            replicates=replicates,
            level=level,
        )
        return SelfConsistency(
            observations.kind,
            consistency.statistics,
            consistency.by_time,
            ("rankings are analysed as their pairs", *consistency.notes),
        )
    times = None if when is None else _times(when, len(observations))
    sides = _ANSWERS[type(observations)](observations)
    statistics: list[Statistic] = []
    for answers in sides:
        statistics += _statistics(observations, answers, times, bootstrap)
    by_time = None if times is None else _by_time(sides[0], times, edges, bootstrap)
    notes = ("times are unknown, so each pair of answers counts in both orders",) if times is None else ()
    return SelfConsistency(observations.kind, tuple(statistics), by_time, notes)


def _times(when: ArrayLike, count: int) -> FloatArray:
    times = np.asarray(when, np.float64)
    if times.shape != (count,):
        raise DataError(f"{count} observations but times of shape {times.shape}.", "Give one time for each.")
    if not np.isfinite(times).all():
        raise DataError("a time is not a number.", "Give one for each observation, or none at all.")
    return times


def _answers(
    observations: Observations, side: str, question: Codes, answer: NDArray[Any], keep: NDArray[np.bool_] | None = None
) -> _Answers:
    has_annotator = observations.annotator != UNKNOWN
    rows = np.flatnonzero(has_annotator if keep is None else has_annotator & keep)
    return _Answers(side, question[rows], answer[rows], observations.annotator[rows], rows)


def _comparison_answers(comparisons: Comparisons) -> list[_Answers]:
    turned = np.where(comparisons.left > comparisons.right, -comparisons.outcome, comparisons.outcome)
    low, high = np.minimum(comparisons.left, comparisons.right), np.maximum(comparisons.left, comparisons.right)
    task = (comparisons.task,) if comparisons.knows_tasks else ()
    return [_answers(comparisons, "", group_codes(*task, low, high), turned)]


def _choice_answers(choices: Choices) -> list[_Answers]:
    items = np.sort(choices.shown, axis=1)
    question = group_codes(*items.T) if len(choices) else np.empty(0, np.int64)
    return [
        _answers(choices, "best", question, choices.best, choices.best != UNKNOWN),
        _answers(choices, "worst", question, choices.worst, choices.worst != UNKNOWN),
    ]


_ANSWERS: dict[type[Observations], Callable[[Any], list[_Answers]]] = {
    Ratings: lambda ratings: [_answers(ratings, "", ratings.item.astype(np.int64), ratings.value)],
    Labels: lambda labels: [_answers(labels, "", labels.item.astype(np.int64), labels.label)],
    Comparisons: _comparison_answers,
    Choices: _choice_answers,
}


@dataclass(frozen=True, slots=True, eq=False)
class _Repeats:
    """The questions that one annotator answered repeatedly, and how statistics over them are resampled.

    `cluster` is the annotator of each unit, coded from 0 in the order of `names`; None with a single annotator, whose
    questions are then resampled.
    """

    units: Units
    names: tuple[str, ...]
    annotator: Codes
    bootstrap: Bootstrap

    @classmethod
    def of(cls, answers: _Answers, observations: Observations, bootstrap: Bootstrap) -> _Repeats:
        cell = group_codes(answers.annotator, answers.question) if len(answers.row) else np.empty(0, np.int64)
        units = Units.of(cell, answers.answer)
        annotator = np.zeros(int(cell.max(initial=-1)) + 1, np.int64)
        annotator[cell] = answers.annotator
        codes, of_unit = np.unique(annotator[units.kept], return_inverse=True)
        names = tuple(observations.annotators[int(code)] for code in codes)
        return cls(units, names, of_unit.astype(np.int64), bootstrap)

    @property
    def cluster(self) -> Codes | None:
        return self.annotator if len(self.names) > 1 else None

    @property
    def unit(self) -> str:
        return "repeated questions" if self.cluster is None else "annotators"

    @property
    def basis(self) -> str:
        return f"{int(self.units.pairs.sum()):,} pairs of repeated answers by {len(self.names):,} annotators"

    def _names(self) -> Names | None:
        return None if self.cluster is None else lambda: self.names

    def proportion(self, key: str, part: FloatArray, note: str) -> Statistic:
        """Compute a proportion of the pairs of repeated answers."""
        return proportion(
            key,
            part,
            self.units.pairs,
            self.bootstrap,
            unit=self.unit,
            note=f"{note}; {self.basis}",
            undefined=_NONE,
            cluster=self.cluster,
            counted="repeats",
            names=self._names(),
        )

    def statistic(
        self, key: str, function: WeightedStatistic, note: str, undefined: str, low: float, high: float
    ) -> Statistic:
        """Compute another statistic of the pairs of repeated answers."""
        return self.bootstrap.statistic(
            key,
            function,
            len(self.units) if self.cluster is None else len(self.names),
            unit=self.unit,
            note=f"{note}; {self.basis}",
            undefined=undefined,
            low=low,
            high=high,
            cluster=self.cluster,
            names=self._names(),
        )


def _statistics(
    observations: Observations, answers: _Answers, times: FloatArray | None, bootstrap: Bootstrap
) -> list[Statistic]:
    side = f"_{answers.side}" if answers.side else ""
    rate, agreement = f"inconsistency_rate{side}", f"intra_annotator_agreement{side}"
    repeats = _Repeats.of(answers, observations, bootstrap)
    if not len(repeats.units):
        why = _NONE if observations.knows_annotators or len(answers.row) else _NO_ANNOTATORS
        keys = {Ratings: (*DIFFERENCES, CORRELATION), Comparisons: (agreement, KAPPA)}
        return [Statistic(key, None, note=why) for key in (rate, *keys.get(type(observations), (agreement,)))]
    same, pairs = repeats.units.agreeing(), repeats.units.pairs
    statistics = [repeats.proportion(rate, pairs - same, "proportion of pairs that differ")]
    if isinstance(observations, Ratings):
        return statistics + _rating_statistics(observations, answers, times, repeats)
    statistics.append(repeats.proportion(agreement, same, "proportion of pairs that agree"))
    if isinstance(observations, Comparisons):
        statistics.append(_kappa(observations, repeats))
    return statistics


def _rating_statistics(
    ratings: Ratings, answers: _Answers, times: FloatArray | None, repeats: _Repeats
) -> list[Statistic]:
    low, high = ratings.scale
    units, width = repeats.units, high - low
    distances, differing = units.distances(), units.pairs - units.agreeing()
    scale = f"on the scale {low:g} to {high:g}"
    function, order = _correlation_of_repeats(answers, times, units)
    same, flat = "undefined: no pair differs", "undefined: the repeated answers do not vary"
    return [
        repeats.statistic(DIFFERENCES[0], weighted_proportion(distances, differing), scale, same, 0.0, width),
        repeats.statistic(DIFFERENCES[1], weighted_proportion(distances, units.pairs), scale, _NONE, 0.0, width),
        repeats.statistic(CORRELATION, function, order, flat, -1.0, 1.0),
    ]


def _kappa(comparisons: Comparisons, repeats: _Repeats) -> Statistic:
    chance, why = (1 / 3, "") if (comparisons.outcome == 0).any() else (1 / 2, ", as no pair was tied")
    agreement = weighted_proportion(repeats.units.agreeing(), repeats.units.pairs)
    return repeats.statistic(
        KAPPA,
        lambda weights: (agreement(weights) - chance) / (1 - chance),
        f"P(E) = 1/{round(1 / chance)}{why}",
        _NONE,
        -1.0,
        1.0,
    )


def _correlation_of_repeats(answers: _Answers, times: FloatArray | None, units: Units) -> tuple[WeightedStatistic, str]:
    """Return Pearson's r over pairs of repeats, and the order of the answers in a pair.

    The function takes a weight for each unit (a question that one annotator answered repeatedly).
    """
    count = len(units)
    if times is None or units.pairs.sum() > PAIR_LIMIT:
        # Each pair in both orders: a value is in m - 1 pairs, and Σ xᵢxⱼ over i ≠ j is (Σx)² - Σx².
        centred = units.values - units.values.mean()
        first, second = units.counts @ centred, units.counts @ centred**2
        others = units.answers - 1
        sums = (2 * units.pairs, others * first, others * first, others * second, others * second, first**2 - second)
        return _weighted_pearson(sums), "each pair in both orders"
    pair = _pairs(answers, times)
    unit = np.searchsorted(units.kept, pair.cell)
    x, y = pair.earlier - units.values.mean(), pair.later - units.values.mean()
    columns = (np.ones(len(x)), x, y, x * x, y * y, x * y)
    sums = tuple(np.bincount(unit, column, count) for column in columns)  # type: ignore[assignment]
    return _weighted_pearson(sums), "the later answer with the earlier"


def _weighted_pearson(sums: tuple[FloatArray, ...]) -> WeightedStatistic:
    """Return r from each unit's number of pairs, Σx, Σy, Σx², Σy² and Σxy."""

    def function(weights: FloatArray) -> FloatArray:
        n, x, y, xx, yy, xy = (column @ weights for column in sums)
        n = np.maximum(n, 1e-300)
        x_variance, y_variance = xx / n - (x / n) ** 2, yy / n - (y / n) ** 2
        # Relative to the mean square: the variance of equal values is not exactly 0.
        varies = (x_variance > ROUNDING * xx / n) & (y_variance > ROUNDING * yy / n)
        scale = np.sqrt(np.where(varies, x_variance * y_variance, 1.0))
        r: FloatArray = np.where(varies, np.clip((xy / n - x / n * y / n) / scale, -1, 1), np.nan)
        return r

    return function


class _Pairs(NamedTuple):
    """Pairs of repeated answers, by their cell (a question of one annotator), in the order of time."""

    cell: Codes
    annotator: NDArray[np.int32]
    earlier: FloatArray
    later: FloatArray
    between: FloatArray


def _pairs(answers: _Answers, times: FloatArray) -> _Pairs:
    cell = group_codes(answers.annotator, answers.question) if len(answers.row) else np.empty(0, np.int64)
    when = times[answers.row]
    # Sorted by answer too, so that the order of rows does not matter if two times are equal.
    order = np.lexsort((answers.answer, when, cell))
    ordered, firsts, seconds = cell[order], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    first, step = np.arange(len(order)), 0
    while len(first):
        step += 1
        first = first[first + step < len(order)]
        first = first[ordered[first] == ordered[first + step]]
        firsts.append(order[first])
        seconds.append(order[first + step])
    a, b = np.concatenate(firsts), np.concatenate(seconds)
    answer = answers.answer.astype(np.float64)
    return _Pairs(cell[a], answers.annotator[a], answer[a], answer[b], when[b] - when[a])


def _by_time(answers: _Answers, times: FloatArray, edges: Sequence[float] | None, bootstrap: Bootstrap) -> pl.DataFrame:
    """Tabulate the inconsistency rate by the time between answers: from, to, and the columns of a statistic."""
    pair = _pairs(answers, times)
    differ = (pair.earlier != pair.later).astype(np.float64)
    if edges is None:
        bounds = np.unique(np.quantile(pair.between, np.linspace(0, 1, 6))) if len(differ) else np.array([0.0, 1.0])
        bounds = np.array([bounds[0], bounds[0] + 1]) if len(bounds) == 1 else bounds
    else:
        bounds = np.asarray(edges, np.float64)
        if len(bounds) < 2 or (np.diff(bounds) <= 0).any():
            raise ConfigError("the edges do not ascend.", "Give at least two, the lowest first.")
    place = np.minimum(np.searchsorted(bounds, pair.between, side="right") - 1, len(bounds) - 2)
    # The last class includes its upper bound; pairs outside all classes are left out.
    inside = (pair.between >= bounds[0]) & (pair.between <= bounds[-1])
    statistics = []
    for number in range(len(bounds) - 1):
        in_class = inside & (place == number)
        cluster = np.unique(pair.annotator[in_class], return_inverse=True)[1].astype(np.int64)
        statistics.append(
            proportion(
                "inconsistency_rate",
                differ[in_class],
                np.ones(int(in_class.sum())),
                bootstrap,
                unit="annotators",
                note=f"{int(in_class.sum()):,} pairs",
                undefined="undefined: no pair of repeats is in this class",
                cluster=cluster,
                counted="repeats",
            )
        )
    return statistics_table(statistics).select(
        pl.Series("from", bounds[:-1]), pl.Series("to", bounds[1:]), pl.all().exclude("statistic")
    )
