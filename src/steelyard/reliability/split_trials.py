"""Trials of split-half reliability: random halves are scored and correlated, and the correlations averaged."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SteelyardWarning
from steelyard.models.choices.counting import Counting
from steelyard.models.comparisons.win_rate import WinRate
from steelyard.models.fit import Model
from steelyard.models.point_scores import PointScores
from steelyard.models.ratings.mean import Mean
from steelyard.observations import FloatArray, Observations, Ratings
from steelyard.reliability.bootstrap import Bootstrap
from steelyard.reliability.correlation import (
    Correlate,
    both_present,
    correlation_statistic,
    jackknife_variance,
    pearson,
    spearman,
)
from steelyard.reliability.splitting import FIRST, NEITHER, SECOND, UNIT_NAMES, Splitter, Sums, take
from steelyard.reliability.statistic import Statistic
from steelyard.reliability.units import group_codes

CORRELATIONS: dict[str, Correlate] = {"spearman": spearman, "pearson": pearson}

Scores: TypeAlias = Iterator[tuple[FloatArray, FloatArray]]
"""The scores of all items in both halves, trial by trial."""


def spearman_brown(r: float) -> float:
    """Return 2r/(1 + r), the reliability of all judgments from that of half of them, clipped at −1."""
    return max(2 * r / (1 + r), -1.0) if r > -1 else -1.0


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """Observations ready to be split and scored."""

    observations: Observations
    model: Model | PointScores | None
    by: str
    splitter: Splitter
    sums: Sums | None

    @classmethod
    def of(cls, observations: Observations, model: Model | PointScores | None, by: str, seed: int) -> Halves:
        splitter = Splitter.of(observations, by, seed)
        if model is not None:
            model.check_kind(observations)
        sums = Sums.of(observations) if model is None or _is_a_sum(model, observations) else None
        return cls(observations, model, by, splitter, sums)

    def scores(self, trials: int, per_half: int | None) -> Scores:
        """Yield the scores of all items in both halves, trial by trial."""
        for trial in range(trials):
            yield self.score(self.splitter.halves(trial, per_half))

    def score(self, halves: NDArray[np.int8]) -> tuple[FloatArray, FloatArray]:
        """Return the scores of all items in both halves, given the half of each row (FIRST, SECOND, NEITHER)."""
        if self.sums is not None:
            return self.sums.scores(halves)
        return self._fitted(halves == FIRST), self._fitted(halves == SECOND)

    def without_groups(self, group: NDArray[np.int64], trials: int) -> dict[str, FloatArray]:
        """Return each correlation without the rows of each group: its mean over the same random halves.

        A group without which the correlation is undefined in all trials is left out.
        """
        count = int(group.max()) + 1
        values = {name: np.full((count, trials), np.nan) for name in CORRELATIONS}
        for trial in range(trials):
            halves = self.splitter.halves(trial)
            for number in range(count):
                first, second = self.score(np.where(group == number, NEITHER, halves).astype(np.int8))
                scored = both_present(first, second)
                for name, correlate in CORRELATIONS.items():
                    correlation = correlate(first[scored], second[scored])
                    if correlation is not None:
                        values[name][number, trial] = correlation.r
        defined = {name: each[~np.isnan(each).all(axis=1)] for name, each in values.items()}
        return {name: np.nanmean(each, axis=1) if len(each) else np.empty(0) for name, each in defined.items()}

    def _fitted(self, keep: NDArray[np.bool_]) -> FloatArray:
        scores = np.full(len(self.observations.items), np.nan)
        if self.model is None or not keep.any():
            return scores
        if isinstance(self.model, PointScores):
            return self.model.scores(take(self.observations, keep))
        with warnings.catch_warnings():
            # Warnings of an undefeated item or a disconnected graph in a half concern the split, not the judgments.
            warnings.simplefilter("ignore", SteelyardWarning)
            table = self.model.fit(take(self.observations, keep)).scores
        scored = table.drop_nulls("score")
        scores[self.observations.items.codes(scored["item"].to_list())] = scored["score"].to_numpy()
        return scores

    def notes(self, per_half: int | None) -> tuple[str, ...]:
        """Return notes on the split, and on units with too few judgments."""
        if self.by == "annotator":
            return ("each annotator's judgments are in one half",)
        if self.by == "tuple":
            return (f"all judgments of a {UNIT_NAMES[type(self.observations)]} are in one half",)
        unit, sizes = UNIT_NAMES[type(self.observations)], self.splitter.sizes
        notes = [f"the judgments of each {unit} are split: {np.median(sizes):g} (median)"]
        if single := int((sizes == 1).sum()):
            notes.append(f"{single:,} of {len(sizes):,} have a single judgment, which is in a random half")
        if per_half is not None and (short := int((sizes < 2 * per_half).sum())):
            notes.append(
                f"{short:,} of {len(sizes):,} have fewer than {2 * per_half} judgments and contribute all of them"
            )
        return tuple(notes)


def _is_a_sum(model: Model | PointScores, observations: Observations) -> bool:
    """Return whether sums over rows give the model's scores; Mean averages an annotator's repeats first."""
    if isinstance(model, PointScores):
        return _is_a_sum(model.model, observations)
    if isinstance(model, Counting):
        return True
    if isinstance(model, WinRate):  # a win rate is (1 + counting)/2
        return observations.has_comparisons
    if not isinstance(model, Mean) or observations.kind != Ratings.kind:
        return False
    if not observations.knows_annotators:
        return True
    answered = group_codes(observations.incidence()[0], observations.annotator)
    return bool(answered.max() + 1 == len(answered))


@dataclass(slots=True, eq=False)
class Average:
    """One correlation over the trials so far: its sum, sum of squares, and the influence of each item."""

    influence: FloatArray
    used: NDArray[np.bool_]
    total: float = 0.0
    squares: float = 0.0
    count: int = 0

    @property
    def mean(self) -> float:
        return self.total / self.count

    @property
    def trial_variance(self) -> float:
        """The variance of the mean due to the finite number of trials."""
        if self.count < 2:
            return 0.0
        return max(self.squares / self.count - self.mean**2, 0.0) / (self.count - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Averages:
    """Both correlations over the trials, for one subset of items."""

    of: dict[str, Average]
    trials: int

    def add(self, a: FloatArray, b: FloatArray, chosen: NDArray[np.bool_]) -> None:
        scored = np.flatnonzero(chosen & both_present(a, b))
        for name, correlate in CORRELATIONS.items():
            correlation = correlate(a[scored], b[scored])
            if correlation is None:
                continue
            average = self.of[name]
            average.influence[scored] += correlation.influence
            average.used[scored] = True
            average.total += correlation.r
            average.squares += correlation.r**2
            average.count += 1

    def statistics(self, bootstrap: Bootstrap) -> tuple[Statistic, ...]:
        """Return the plain and the Spearman–Brown corrected value of both correlations."""
        statistics: list[Statistic] = []
        for name, average in self.of.items():
            plain, corrected = f"split_half_{name}", f"split_half_{name}_corrected"
            if not average.count:
                why = "undefined: fewer than three items have different scores in both halves"
                statistics += [Statistic(plain, None, note=why), Statistic(corrected, None, note=why)]
                continue
            items = int(average.used.sum())
            variance = jackknife_variance(average.influence / average.count, items) + average.trial_variance
            note = f"mean of {average.count} trials; items and their judgments vary"
            if average.count < self.trials:
                note += f"; it is undefined in {self.trials - average.count} more"
            statistic = correlation_statistic(plain, average.mean, variance, items, bootstrap, note=note)
            statistics += [statistic, spearman_brown_corrected(corrected, statistic)]
        return tuple(statistics)


def spearman_brown_corrected(name: str, plain: Statistic) -> Statistic:
    """Return a split-half correlation and both ends of its interval, Spearman–Brown corrected."""
    value, lower, upper = (
        None if end is None else spearman_brown(end) for end in (plain.value, plain.lower, plain.upper)
    )
    return Statistic(name, value, lower, upper, plain.interval, plain.n, f"Spearman–Brown; {plain.note}")


def averages_over(
    scores: Iterable[tuple[FloatArray, FloatArray]], subsets: Sequence[NDArray[np.bool_]], trials: int
) -> list[Averages]:
    """Correlate the halves of each trial over each subset of the items."""
    count = len(subsets[0])
    averages = [
        Averages({name: Average(np.zeros(count), np.zeros(count, bool)) for name in CORRELATIONS}, trials)
        for _ in subsets
    ]
    for a, b in scores:
        for average, chosen in zip(averages, subsets, strict=True):
            average.add(a, b, chosen)
    return averages
