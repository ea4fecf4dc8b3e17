"""Self-consistency: does an annotator answer the same question the same way again?"""

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
from steelyard.reliability.bootstrap import Bootstrap, Seed, WeightedStatistic, weighted_share
from steelyard.reliability.proportions import proportion
from steelyard.reliability.statistic import Statistic, Statistics, statistics_table
from steelyard.reliability.units import Codes, Units, group_codes

PAIR_LIMIT = 5_000_000
"""Pairs of repeated answers beyond which they are not listed one by one."""

_NONE = "undefined: no annotator answered a question twice"
_NOBODY = "undefined: the annotators are not known"


@dataclass(frozen=True, slots=True)
class SelfConsistency(Statistics):
    """How consistent annotators are with themselves.

    `by_time` has the rate of differing pairs against the time between, where times were given.
    """

    kind: str
    statistics: tuple[Statistic, ...]
    by_time: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()


class _Asked(NamedTuple):
    """What was asked in each row, and what was answered."""

    name: str
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
    """Hold the answers of one annotator to one question against each other.

    A question is an item, a pair (of one task where tasks are known) or a tuple; all pairs of repeated answers
    count. Kiritchenko & Mohammad (2017, §4) report the inconsistency rate and the mean difference among the
    inconsistent; Callison-Burch et al. (2010) the agreement and κ of comparisons.

    Parameters
    ----------
    observations
        Of any kind, with annotators.
    when
        The time (or the place in the order) of each observation, as a number. With it, the correlation is of
        the earlier with the later answer, and the inconsistency rate is given by the time between.
    edges
        Bounds of the classes of time between, ascending; by default such that five classes hold equally many pairs.
    seed, replicates, level
        Of the intervals, which are resampled over annotators.
    """
    bootstrap = Bootstrap.of(seed, replicates, level)
    if isinstance(observations, Rankings):
        times = None if when is None else np.repeat(_times(when, len(observations)), observations.pairs_per_ranking)
        found = self_consistency(
            observations.to_comparisons(),
            when=times,
            edges=edges,
            seed=bootstrap.seed,
            replicates=replicates,
            level=level,
        )
        return SelfConsistency(
            observations.kind, found.statistics, found.by_time, ("rankings are taken as their pairs", *found.notes)
        )
    times = None if when is None else _times(when, len(observations))
    asked = _ASKED[type(observations)](observations)
    statistics: list[Statistic] = []
    for each in asked:
        statistics += _statistics(observations, each, times, bootstrap)
    by_time = None if times is None else _by_time(asked[0], times, edges, bootstrap)
    notes = ("without times, either answer of a pair counts as the first",) if times is None else ()
    return SelfConsistency(observations.kind, tuple(statistics), by_time, notes)


def _times(when: ArrayLike, count: int) -> FloatArray:
    times = np.asarray(when, np.float64)
    if times.shape != (count,):
        raise DataError(f"{count} observations but times of shape {times.shape}.", "Give one time for each.")
    if not np.isfinite(times).all():
        raise DataError("a time is not a number.", "Give one for each observation, or none at all.")
    return times


def _asked(
    observations: Observations, name: str, question: Codes, answer: NDArray[Any], keep: NDArray[np.bool_] | None = None
) -> _Asked:
    known = observations.annotator != UNKNOWN
    rows = np.flatnonzero(known if keep is None else known & keep)
    return _Asked(name, question[rows], answer[rows], observations.annotator[rows], rows)


def _ask_comparisons(comparisons: Comparisons) -> list[_Asked]:
    turned = np.where(comparisons.left > comparisons.right, -comparisons.outcome, comparisons.outcome)
    low, high = np.minimum(comparisons.left, comparisons.right), np.maximum(comparisons.left, comparisons.right)
    task = (comparisons.task,) if comparisons.knows_tasks else ()
    return [_asked(comparisons, "", group_codes(*task, low, high), turned)]


def _ask_choices(choices: Choices) -> list[_Asked]:
    shown = np.sort(choices.shown, axis=1)
    question = group_codes(*shown.T) if len(choices) else np.empty(0, np.int64)
    return [
        _asked(choices, "best", question, choices.best, choices.best != UNKNOWN),
        _asked(choices, "worst", question, choices.worst, choices.worst != UNKNOWN),
    ]


_ASKED: dict[type[Observations], Callable[[Any], list[_Asked]]] = {
    Ratings: lambda ratings: [_asked(ratings, "", ratings.item.astype(np.int64), ratings.value)],
    Labels: lambda labels: [_asked(labels, "", labels.item.astype(np.int64), labels.label)],
    Comparisons: _ask_comparisons,
    Choices: _ask_choices,
}


def _repeated(asked: _Asked) -> tuple[Units, Codes, Codes]:
    """Return the questions that one annotator answered repeatedly, whose each is (from 0 on), and these people."""
    cell = group_codes(asked.annotator, asked.question) if len(asked.row) else np.empty(0, np.int64)
    units = Units.of(cell, asked.answer)
    person = np.zeros(int(cell.max(initial=-1)) + 1, np.int64)
    person[cell] = asked.annotator
    people, whose = np.unique(person[units.kept], return_inverse=True)
    return units, whose.astype(np.int64), people


def _statistics(
    observations: Observations, asked: _Asked, times: FloatArray | None, bootstrap: Bootstrap
) -> list[Statistic]:
    side = f"_{asked.name}" if asked.name else ""
    rate, agreement = f"inconsistency_rate{side}", f"intra_annotator_agreement{side}"
    names = [rate, agreement]
    rated = observations if isinstance(observations, Ratings) else None
    compared = observations if isinstance(observations, Comparisons) else None
    if rated is not None:
        names = [rate, "difference_if_inconsistent", "difference_of_repeats", CORRELATION]
    elif compared is not None:
        names.append("intra_annotator_kappa")
    units, person, codes = _repeated(asked)
    if not len(units):
        why = _NONE if observations.knows_annotators or len(asked.row) else _NOBODY
        return [Statistic(name, None, note=why) for name in names]
    same, pairs = units.agreeing(), units.pairs
    people = int(person.max()) + 1
    cluster, unit = (person, "annotators") if people > 1 else (None, "repeated questions")
    count = people if cluster is not None else len(units)
    rests = f"{int(pairs.sum()):,} pairs of repeated answers by {people:,} annotators"

    def people_names() -> tuple[str, ...]:
        return tuple(observations.annotators[int(code)] for code in codes)

    called = people_names if cluster is not None else None

    def share(name: str, part: FloatArray, note: str) -> Statistic:
        return proportion(
            name,
            part,
            pairs,
            bootstrap,
            unit=unit,
            note=note,
            undefined=_NONE,
            cluster=cluster,
            counted="repeats",
            names=called,
        )

    def resampled(
        name: str, function: WeightedStatistic, note: str, undefined: str, low: float, high: float
    ) -> Statistic:
        return bootstrap.statistic(
            name,
            function,
            count,
            unit=unit,
            note=note,
            undefined=undefined,
            low=low,
            high=high,
            cluster=cluster,
            names=called,
        )

    statistics = [share(rate, pairs - same, f"share of pairs that differ; {rests}")]
    if rated is not None:
        low, high = rated.scale
        apart, width = units.distances(), high - low
        scale = f"on the scale {low:g} to {high:g}; {rests}"
        function, how = _correlation_of_repeats(asked, times, units)
        flat = "undefined: the repeated answers do not vary"
        return [
            *statistics,
            resampled(names[1], weighted_share(apart, pairs - same), scale, "undefined: no pair differs", 0.0, width),
            resampled(names[2], weighted_share(apart, pairs), scale, _NONE, 0.0, width),
            resampled(CORRELATION, function, f"{how}; {rests}", flat, -1.0, 1.0),
        ]
    statistics.append(share(agreement, same, f"share of pairs that agree; {rests}"))
    if compared is not None:
        chance, why = (1 / 3, "") if (compared.outcome == 0).any() else (1 / 2, ", as no pair was tied")
        agreeing = weighted_share(same, pairs)
        statistics.append(
            resampled(
                names[2],
                lambda weights: (agreeing(weights) - chance) / (1 - chance),
                f"P(E) = 1/{round(1 / chance)}{why}; {rests}",
                _NONE,
                -1.0,
                1.0,
            )
        )
    return statistics


CORRELATION = "correlation_of_repeats"


def _correlation_of_repeats(asked: _Asked, times: FloatArray | None, units: Units) -> tuple[WeightedStatistic, str]:
    """Return Pearson's r over pairs of repeats, and which answer was taken as the first.

    The function takes a weight for each unit (a question that one annotator answered repeatedly).
    """
    count = len(units)
    if times is None or units.pairs.sum() > PAIR_LIMIT:
        # Every pair both ways round: a value stands in m - 1 pairs, and Σ xᵢxⱼ over i ≠ j is (Σx)² - Σx².
        centred = units.values - units.values.mean()
        first, second = units.counts @ centred, units.counts @ centred**2
        others = units.answers - 1
        sums = (2 * units.pairs, others * first, others * first, others * second, others * second, first**2 - second)
        return _weighted_pearson(sums), "each pair both ways round"
    pair = _pairs(asked, times)
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
        varies = (x_variance > 1e-18) & (y_variance > 1e-18)
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


def _pairs(asked: _Asked, times: FloatArray) -> _Pairs:
    cell = group_codes(asked.annotator, asked.question) if len(asked.row) else np.empty(0, np.int64)
    when = times[asked.row]
    # Sorted by answer too, so that the order of rows does not matter where two times are the same.
    order = np.lexsort((asked.answer, when, cell))
    ordered, firsts, seconds = cell[order], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    first, step = np.arange(len(order)), 0
    while len(first):
        step += 1
        first = first[first + step < len(order)]
        first = first[ordered[first] == ordered[first + step]]
        firsts.append(order[first])
        seconds.append(order[first + step])
    a, b = np.concatenate(firsts), np.concatenate(seconds)
    answer = asked.answer.astype(np.float64)
    return _Pairs(cell[a], asked.annotator[a], answer[a], answer[b], when[b] - when[a])


def _by_time(asked: _Asked, times: FloatArray, edges: Sequence[float] | None, bootstrap: Bootstrap) -> pl.DataFrame:
    """Tabulate the inconsistency rate by the time between: from, to, and the columns of a statistic."""
    pair = _pairs(asked, times)
    differ = (pair.earlier != pair.later).astype(np.float64)
    if edges is None:
        bounds = np.unique(np.quantile(pair.between, np.linspace(0, 1, 6))) if len(differ) else np.array([0.0, 1.0])
        bounds = np.array([bounds[0], bounds[0] + 1]) if len(bounds) == 1 else bounds
    else:
        bounds = np.asarray(edges, np.float64)
        if len(bounds) < 2 or (np.diff(bounds) <= 0).any():
            raise ConfigError("the edges do not ascend.", "Give at least two, the lowest first.")
    place = np.minimum(np.searchsorted(bounds, pair.between, side="right") - 1, len(bounds) - 2)
    # The last class includes its upper bound; what lies outside all of them is left out.
    inside = (pair.between >= bounds[0]) & (pair.between <= bounds[-1])
    statistics = []
    for number in range(len(bounds) - 1):
        here = inside & (place == number)
        cluster = np.unique(pair.annotator[here], return_inverse=True)[1].astype(np.int64)
        statistics.append(
            proportion(
                "inconsistency_rate",
                differ[here],
                np.ones(int(here.sum())),
                bootstrap,
                unit="annotators",
                note=f"{int(here.sum()):,} pairs",
                undefined="undefined: no pair of repeats lies so far apart",
                cluster=cluster,
                counted="repeats",
            )
        )
    return statistics_table(statistics).select(
        pl.Series("from", bounds[:-1]), pl.Series("to", bounds[1:]), pl.all().exclude("statistic")
    )
