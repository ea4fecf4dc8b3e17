"""A population fitted to the judgments of a pilot.

The population is fitted by simulating the pilot with the same layout of annotators and items, and adjusting the
parameters until a few statistics of the simulated answers equal those of the real ones (indirect inference). Effects of
the simulation on the answers, such as truncation at the ends of the scale, occur on both sides and do not bias the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import ConfigError, DataError
from steelyard.formats.judgments import JudgmentFile
from steelyard.observations import (
    UNKNOWN,
    Choices,
    Comparisons,
    FloatArray,
    Index,
    IntArray,
    Observations,
    Rankings,
    Ratings,
)
from steelyard.protocols import BestWorst, Direct, Pairwise, Protocol, Ranking
from steelyard.reliability import split_half
from steelyard.simulate.annotators import SimulatedAnnotators
from steelyard.simulate.batch_answers import TaskBatch, batch_observations
from steelyard.simulate.population import Population, make_crowd

_ROUNDS, _COPIES, _SAMPLES = 20, 16, 12
_WIDEST_STRETCH = 0.5
_CORRECTION = 0.25
"""Lapses and cut ends make the moments too small. They are corrected for that, by no more than this share: answers
that no population here can give would otherwise drive the parameters apart without end."""
_NOBODY_KNOWN = 40
"""Number of simulated annotators if the pilot does not identify its annotators."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """A population fitted to a pilot, and a sample of populations that could have produced the pilot.

    `samples` vary as the fit would over pilots of this size (parametric bootstrap); a plan draws from them, so its
    interval includes the uncertainty of a small pilot.
    """

    population: Population
    samples: tuple[Population, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Handle:
    """A parameter, the statistic that identifies it, and the power: statistic ∝ parameter^power, approximately."""

    parameter: str
    statistic: str
    power: float
    lowest: float
    highest: float

    def around(self, base: Population) -> _Handle:
        """Limit the parameter to a range around its moment estimate that lapses and truncation can explain."""
        if self not in _MOMENT_HANDLES:
            return self
        estimate = float(getattr(base, self.parameter))
        return replace(
            self, lowest=estimate * (1 - _CORRECTION), highest=min(estimate * (1 + _CORRECTION), self.highest)
        )


_MOMENT_HANDLES = (
    _Handle("bias", "between annotators", 2, 0.0, 0.5),
    _Handle("stretch", "between slopes", 2, 0.0, 0.5),
)
_RATING_HANDLES = (
    _Handle("item_sd", "between items", 2, 0.005, 1.5),
    *_MOMENT_HANDLES,
    _Handle("lapse", "tails", 0.5, 0.0, 0.12),
    _Handle("noise", "unreliability", 2, 0.005, 2.0),
)
_LOWEST_MEAN, _HIGHEST_MEAN = -1.0, 2.0
"""Range of the items' mean: most answers may be at an end of the scale."""
_ORDER_HANDLES = (_Handle("noise", "unreliability", 2, 0.01, 5.0),)
_TIE_HANDLE = _Handle("tie_margin", "ties", 1, 0.0, 0.5)


def read_pilot(
    pilot_data: JudgmentFile | Observations | Mapping[str, Observations],
    rng: np.random.Generator,
    *,
    start: Population | None = None,
) -> Pilot:
    """Fit a population to a pilot's judgments.

    Ratings give the items' mean and spread, and people's bias, scale use, noise and lapses. Comparisons, choices
    and rankings only say how large the noise is beside the spread of the items, which keeps its value in `start`;
    so do all other parameters. Of several criteria, the first is used.
    """
    by_criterion = pilot_data.by_criterion if isinstance(pilot_data, JudgmentFile) else pilot_data
    parts = {"": by_criterion} if isinstance(by_criterion, Observations) else dict(by_criterion)
    name, pilot = next(iter(parts.items()))
    notes = [f"the pilot has {len(parts)} criteria; '{name}' was used"] if len(parts) > 1 else []
    base = start or Population()
    if pilot.kind == Ratings.kind:
        fitting = _Fitting(pilot, base, rng, _rating_statistics, _RATING_HANDLES)
    elif pilot.kind in (Comparisons.kind, Choices.kind, Rankings.kind):
        has_ties = bool(_proportion_of_ties(pilot))
        handles = (*_ORDER_HANDLES, _TIE_HANDLE) if has_ties else _ORDER_HANDLES
        fitting = _Fitting(pilot, replace(base, lapse=0.0), rng, _order_statistics, handles)
        notes.append(
            f"{pilot.kind} determine the noise only relative to the items' standard deviation, which was assumed "
            f"to be {base.item_sd:g}"
        )
    else:
        raise DataError(
            f"values cannot be estimated from a pilot of {pilot.kind}.",
            "Use ratings, comparisons, choices or rankings.",
        )
    if not pilot.knows_annotators:
        notes.append("the pilot has no annotators, so biases and scale use are part of the noise")
    population = fitting.solve()
    samples = fitting.samples(population)
    return Pilot(population, samples, tuple(notes))


class _Fitting:
    """The pilot's layout, and the search for parameters that reproduce its statistics."""

    def __init__(
        self,
        pilot: Observations,
        base: Population,
        rng: np.random.Generator,
        statistics: Callable[[Observations], dict[str, float]],
        handles: tuple[_Handle, ...],
    ) -> None:
        self._layout = _Layout.of(pilot)
        self._seed = int(rng.integers(2**62))
        self._statistics = statistics
        if not pilot.knows_annotators:
            handles = tuple(handle for handle in handles if handle.parameter not in {"bias", "stretch"})
            base = replace(base, bias=0.0, stretch=0.0, noise_cv=0.0)
        self._handles = handles
        self._pilot_statistics = statistics(pilot)
        if isinstance(pilot, Ratings):
            base = _from_moments(pilot, self._pilot_statistics, base)
            self._handles = tuple(handle.around(base) for handle in self._handles)
        self._base = base

    def solve(self) -> Population:
        """Return the parameters that reproduce the pilot's statistics."""
        # One parameter converges faster than five.
        few = len(self._handles) <= 2
        return self._search(
            self._base,
            self._pilot_statistics,
            _ROUNDS // 2 if few else _ROUNDS,
            range(_COPIES // 2 if few else _COPIES),
        )

    def samples(self, population: Population) -> tuple[Population, ...]:
        """Return what the fit would be on pilots simulated from it, by a shorter search."""
        return tuple(
            self._search(population, targets, _ROUNDS // 3, range(number, number + _COPIES // 4))
            for number, targets in enumerate(
                self._simulate(population, range(_COPIES, _COPIES + _SAMPLES)), _COPIES * 2
            )
        )

    def _search(self, at: Population, targets: Mapping[str, float], rounds: int, copies: range) -> Population:
        """Move the parameters until the statistics agree, more slowly after a few steps."""
        for number in range(rounds):
            simulations = self._simulate(at, copies)
            mean = {name: float(np.mean([one[name] for one in simulations])) for name in simulations[0]}
            at = self._step(at, targets, mean, damping=1.0 if number < 4 else 0.6)
        return at

    def _step(
        self, at: Population, targets: Mapping[str, float], estimates: Mapping[str, float], damping: float
    ) -> Population:
        now = asdict(at)
        for handle in self._handles:
            target, current = targets[handle.statistic], estimates[handle.statistic]
            # A statistic that has no room for the parameter (a variance below zero) sends it to its lower end.
            factor = (max(target, 0.0) / current) ** (damping / handle.power) if current > 0 else 1.0
            value = max(now[handle.parameter], 1e-3) * float(np.clip(factor, 0.2, 5.0))
            now[handle.parameter] = float(np.clip(value, handle.lowest, handle.highest))
        if "mean" in targets:
            step = damping * (targets["mean"] - estimates["mean"])
            now["mean"] = float(np.clip(now["mean"] + step, _LOWEST_MEAN, _HIGHEST_MEAN))
        return Population(**now)

    def _simulate(self, at: Population, copies: range) -> list[dict[str, float]]:
        return [
            self._statistics(self._layout.simulate(at, np.random.default_rng([self._seed, copy]))) for copy in copies
        ]


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """The layout of the pilot: which annotator judged which items."""

    protocol: Protocol
    who: IntArray
    items: IntArray
    index: Index
    people: int

    @classmethod
    def of(cls, pilot: Observations) -> _Layout:
        who = pilot.annotator
        people = len(pilot.annotators)
        if not pilot.knows_annotators:
            people = _NOBODY_KNOWN
            who = (np.arange(len(pilot)) % people).astype(np.int32)
        if pilot.kind not in _TASKS:
            raise ConfigError(f"{pilot.kind} cannot be simulated.")
        protocol, rows, items = _TASKS[pilot.kind](pilot)
        return cls(protocol, who[rows], items, pilot.items, people)

    def simulate(self, population: Population, rng: np.random.Generator) -> Observations:
        """Return the pilot as other annotators with other true values would have answered it."""
        crowd = make_crowd(self.people, rng, population)
        truth = population.truth(self.index.ids, rng)
        annotators = SimulatedAnnotators(crowd, truth, rng)
        count = len(self.who)
        percepts = annotators.percepts(
            self.protocol, self.who, np.zeros(count, np.int32), self.items, np.arange(count, dtype=np.int32)
        )
        batch = TaskBatch(
            self.items, self.who, percepts, annotators.tie_margins(self.who), self.index, annotators.people
        )
        estimates = batch_observations(self.protocol, batch)
        if estimates is None:
            raise ConfigError(f"{self.protocol.name} cannot be simulated in batches.")
        return estimates[""]


_Tasks: TypeAlias = tuple[Protocol, slice | NDArray[np.int64], NDArray[np.int32]]
"""A protocol, the observations that become its tasks, and the items of each task."""


def _tasks_of_ratings(pilot: Ratings) -> _Tasks:
    return Direct(scale=pilot.scale), slice(None), pilot.item[:, None]


def _tasks_of_comparisons(pilot: Comparisons) -> _Tasks:
    return Pairwise(ties=bool((pilot.outcome == 0).any())), slice(None), np.column_stack([pilot.left, pilot.right])


def _tasks_of_choices(pilot: Choices) -> _Tasks:
    rows = np.flatnonzero((pilot.shown != UNKNOWN).all(axis=1))
    return BestWorst(size=pilot.shown.shape[1]), rows, pilot.shown[rows]


def _tasks_of_rankings(pilot: Rankings) -> _Tasks:
    """Take the rankings of the most frequent size."""
    sizes = np.diff(pilot.start)
    size = int(np.bincount(sizes).argmax())
    rows = np.flatnonzero(sizes == size)
    return Ranking(size=size), rows, pilot.item[(pilot.start[rows][:, None] + np.arange(size))]


_TASKS: dict[str, Callable[[Any], _Tasks]] = {
    Ratings.kind: _tasks_of_ratings,
    Comparisons.kind: _tasks_of_comparisons,
    Choices.kind: _tasks_of_choices,
    Rankings.kind: _tasks_of_rankings,
}


def _rating_statistics(ratings: Observations) -> dict[str, float]:
    """Variances from products of different judgments, so that none is inflated by a judgment's own noise."""
    if not isinstance(ratings, Ratings):
        raise DataError("these are not ratings.")
    value, item = ratings.unit_value, ratings.item
    count = np.bincount(item, minlength=len(ratings.items))
    several = count[item] > 1
    if several.sum() < 10:
        raise DataError(
            "the pilot has too few items that were judged more than once.",
            "Have some items judged by several annotators.",
        )
    total = np.bincount(item, value, minlength=len(ratings.items))
    others = (total[item] - value)[several] / (count[item][several] - 1)
    error = value[several] - others
    between = _cross(item, value - value.mean())
    statistics = {
        "between items": between,
        "mean": float(value.mean()),
        # By ranks, as plans measure reliability: where many answers are at an end, variances say little about ranks.
        "unreliability": _unreliability(ratings, "split_half_spearman"),
        # How heavy the errors' tails are, whatever their size: lapses make them heavier.
        "tails": float(np.mean(error**4) / np.mean(error**2) ** 2),
    }
    if ratings.knows_annotators:
        person = ratings.annotator[several]
        statistics["between annotators"] = _cross(person, error)
        statistics["between slopes"] = _cross(person, error * (others - value.mean()))
    return statistics


def _from_moments(ratings: Ratings, estimates: Mapping[str, float], base: Population) -> Population:
    """Set what the moments of the ratings tell directly: the items' mean and spread, biases and scale use."""
    mean = float(np.clip(ratings.unit_value.mean(), 0.02, 0.98))
    between = max(estimates["between items"], 1e-4)
    at = replace(base, mean=mean, item_sd=between**0.5, censored=True)
    if not ratings.knows_annotators:
        return at
    # A slope's product with the items' deviations has their variance as a factor, twice over.
    stretch = min(max(estimates["between slopes"], 0.0) ** 0.5 / between, _WIDEST_STRETCH)
    return replace(at, bias=max(estimates["between annotators"], 0.0) ** 0.5, stretch=stretch)


def _cross(group: IntArray, value: FloatArray) -> float:
    """Return the mean product of two different values of one group."""
    count = np.bincount(group)
    total, squares = np.bincount(group, value), np.bincount(group, value**2)
    pairs = float((count * (count - 1)).sum())
    return float((total**2 - squares).sum() / pairs) if pairs else 0.0


def _order_statistics(observations: Observations) -> dict[str, float]:
    """How unreliable the counts are, and the share of ties."""
    statistics = {"unreliability": _unreliability(observations, "split_half_pearson")}
    if (ties := _proportion_of_ties(observations)) is not None:
        statistics["ties"] = ties
    return statistics


def _proportion_of_ties(observations: Observations) -> float | None:
    """Return the proportion of tied comparisons; None for other observations."""
    return float((observations.outcome == 0).mean()) if isinstance(observations, Comparisons) else None


def _unreliability(observations: Observations, correlation: str) -> float:
    """Return 1/r - 1 of the split-half correlation, which grows with the square of the noise."""
    estimates = split_half(observations, trials=4)[correlation].value
    if estimates is None:
        raise DataError(
            "the pilot is too small to estimate its reliability.", "Collect judgments of more items, several per item."
        )
    return 1 / max(estimates, 0.02) - 1
