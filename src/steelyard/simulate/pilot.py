"""What a pilot says about the people and the items to come.

A population is fitted by simulating the pilot itself: the same people are asked about the same items, over and
over, and the parameters are moved until a few statistics of the simulated answers equal those of the real ones
(indirect inference). Whatever the simulation does to the answers, such as cutting them at the ends of the scale,
it does on both sides, so that it does not bias the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

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
from steelyard.simulate.columns import Seen, observed
from steelyard.simulate.population import Population, make_crowd

_ROUNDS, _COPIES, _SAMPLES = 20, 16, 12
_WIDEST_STRETCH = 0.5
_CORRECTION = 0.25
"""Lapses and cut ends make the moments too small. They are corrected for that, by no more than this share: answers
that no population here can give would otherwise drive the parameters apart without end."""
_NOBODY_KNOWN = 40
"""How many people are simulated where the pilot does not say who judged."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """A population fitted to a pilot, and others the pilot could as well have come from.

    `samples` spread as the fit would over pilots of this size; a plan draws from them, so that its interval
    says how little a small pilot knows.
    """

    population: Population
    samples: tuple[Population, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Handle:
    """A parameter, the statistic that moves with it, and the power: statistic ∝ parameter^power, about."""

    parameter: str
    statistic: str
    power: float
    lowest: float
    highest: float

    def around(self, base: Population) -> _Handle:
        """Keep what the moments told within what lapses and cut ends can explain."""
        if self not in _MOMENT_HANDLES:
            return self
        told = float(getattr(base, self.parameter))
        return replace(self, lowest=told * (1 - _CORRECTION), highest=min(told * (1 + _CORRECTION), self.highest))


_MOMENT_HANDLES = (
    _Handle("spread", "between items", 2, 0.005, 0.49),
    _Handle("bias", "between annotators", 2, 0.0, 0.5),
    _Handle("stretch", "between slopes", 2, 0.0, 0.5),
)
_RATING_HANDLES = (
    *_MOMENT_HANDLES,
    _Handle("lapse", "tails", 0.5, 0.0, 0.12),
    _Handle("noise", "unreliability", 2, 0.005, 1.0),
)
_ORDER_HANDLES = (_Handle("noise", "unreliability", 2, 0.01, 5.0),)
_TIE_HANDLE = _Handle("tie_margin", "ties", 1, 0.0, 0.5)


def read_pilot(
    recorded: JudgmentFile | Observations | Mapping[str, Observations],
    rng: np.random.Generator,
    *,
    start: Population | None = None,
) -> Pilot:
    """Fit a population to a pilot's judgments.

    Ratings give the items' mean and spread, and people's bias, scale use, noise and lapses. Comparisons, choices
    and rankings only say how large the noise is beside the spread of the items, which keeps its value in `start`;
    so do all other parameters. Of several criteria, the first is used.
    """
    given = recorded.by_criterion if isinstance(recorded, JudgmentFile) else recorded
    parts = {"": given} if isinstance(given, Observations) else dict(given)
    name, pilot = next(iter(parts.items()))
    notes = [f"the pilot has {len(parts)} criteria; '{name}' was used"] if len(parts) > 1 else []
    base = start or Population()
    if isinstance(pilot, Ratings):
        fitted = _Fitting(pilot, base, rng, _rating_statistics, _RATING_HANDLES)
    elif isinstance(pilot, Comparisons | Choices | Rankings):
        has_ties = isinstance(pilot, Comparisons) and bool((pilot.outcome == 0).any())
        handles = (*_ORDER_HANDLES, _TIE_HANDLE) if has_ties else _ORDER_HANDLES
        fitted = _Fitting(pilot, replace(base, lapse=0.0), rng, _order_statistics, handles)
        notes.append(f"{pilot.kind} tell noise only beside the items' spread, which was taken to be {base.spread:g}")
    else:
        raise DataError(
            f"a pilot of {pilot.kind} says nothing about values.", "Use ratings, comparisons, choices or rankings."
        )
    if not pilot.knows_annotators:
        notes.append("the pilot does not say who judged, so that biases and scale use count as noise")
    population = fitted.solve()
    samples = fitted.samples(population)
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
            base = replace(base, bias=0.0, stretch=0.0, noise_spread=0.0)
        self._handles = handles
        self._observed = statistics(pilot)
        if isinstance(pilot, Ratings):
            base = _from_moments(pilot, self._observed, base)
            self._handles = tuple(handle.around(base) for handle in self._handles)
        self._base = base

    def solve(self) -> Population:
        """Return the parameters that reproduce the pilot's statistics."""
        # One parameter settles sooner than five.
        few = len(self._handles) <= 2
        return self._search(
            self._base, self._observed, _ROUNDS // 2 if few else _ROUNDS, range(_COPIES // 2 if few else _COPIES)
        )

    def samples(self, population: Population) -> tuple[Population, ...]:
        """Return what the fit would be on pilots simulated from it, by a shorter search."""
        return tuple(
            self._search(population, wanted, _ROUNDS // 3, range(number, number + _COPIES // 4))
            for number, wanted in enumerate(
                self._simulated(population, range(_COPIES, _COPIES + _SAMPLES)), _COPIES * 2
            )
        )

    def _search(self, at: Population, wanted: Mapping[str, float], rounds: int, copies: range) -> Population:
        """Move the parameters until the statistics agree, more slowly after a few steps."""
        for number in range(rounds):
            simulated = self._simulated(at, copies)
            mean = {name: float(np.mean([one[name] for one in simulated])) for name in simulated[0]}
            at = self._moved(at, wanted, mean, damping=1.0 if number < 4 else 0.6)
        return at

    def _moved(
        self, at: Population, wanted: Mapping[str, float], found: Mapping[str, float], damping: float
    ) -> Population:
        now = asdict(at)
        for handle in self._handles:
            target, current = wanted[handle.statistic], found[handle.statistic]
            # A statistic that has no room for the parameter (a variance below zero) sends it to its lower end.
            factor = (max(target, 0.0) / current) ** (damping / handle.power) if current > 0 else 1.0
            value = max(now[handle.parameter], 1e-3) * float(np.clip(factor, 0.2, 5.0))
            now[handle.parameter] = float(np.clip(value, handle.lowest, handle.highest))
        return Population(**now)

    def _simulated(self, at: Population, copies: range) -> list[dict[str, float]]:
        return [
            self._statistics(self._layout.simulated(at, np.random.default_rng([self._seed, copy]))) for copy in copies
        ]


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Who judged what in the pilot."""

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
        if isinstance(pilot, Ratings):
            return cls(Direct(scale=pilot.scale), who, pilot.item[:, None], pilot.items, people)
        if isinstance(pilot, Comparisons):
            items = np.column_stack([pilot.left, pilot.right])
            return cls(Pairwise(ties=bool((pilot.outcome == 0).any())), who, items, pilot.items, people)
        if isinstance(pilot, Choices):
            sizes = (pilot.shown != UNKNOWN).sum(axis=1)
            whole = sizes == pilot.shown.shape[1]
            return cls(BestWorst(size=pilot.shown.shape[1]), who[whole], pilot.shown[whole], pilot.items, people)
        if isinstance(pilot, Rankings):
            sizes = np.diff(pilot.start)
            usual = int(np.bincount(sizes).argmax())
            rows = np.flatnonzero(sizes == usual)
            items = pilot.item[(pilot.start[rows][:, None] + np.arange(usual))]
            return cls(Ranking(size=usual), who[rows], items, pilot.items, people)
        raise ConfigError(f"{pilot.kind} cannot be simulated.")

    def simulated(self, population: Population, rng: np.random.Generator) -> Observations:
        """Return the pilot as other people, and other items, would have answered it."""
        crowd = make_crowd(self.people, rng, population)
        truth = population.truth(self.index.ids, rng)
        annotators = SimulatedAnnotators(crowd, truth, rng)
        count = len(self.who)
        percepts = annotators.percepts(
            self.protocol, self.who, np.zeros(count, np.int32), self.items, np.arange(count, dtype=np.int32)
        )
        seen = Seen(self.items, self.who, percepts, annotators.tie_margins(self.who), self.index, annotators.people)
        found = observed(self.protocol, seen)
        if found is None:
            raise ConfigError(f"{self.protocol.name} cannot be simulated at once.")
        return found[""]


def _rating_statistics(ratings: Observations) -> dict[str, float]:
    """Variances from products of different judgments, so that none is inflated by a judgment's own noise."""
    if not isinstance(ratings, Ratings):
        raise DataError("these are not ratings.")
    value, item = ratings.unit_value, ratings.item
    count = np.bincount(item, minlength=len(ratings.items))
    several = count[item] > 1
    if several.sum() < 10:
        raise DataError(
            "the pilot has too few items that were judged more than once.", "Have some items judged by several people."
        )
    total = np.bincount(item, value, minlength=len(ratings.items))
    others = (total[item] - value)[several] / (count[item][several] - 1)
    error = value[several] - others
    variance = float(np.var(value))
    between = _cross(item, value - value.mean())
    statistics = {
        "between items": between,
        # The variance within items, in units of that between: how unreliable a single judgment is.
        "unreliability": (variance - between) / max(between, 0.01 * variance),
        # How heavy the errors' tails are, whatever their size: lapses make them heavier.
        "tails": float(np.mean(error**4) / np.mean(error**2) ** 2),
    }
    if ratings.knows_annotators:
        person = ratings.annotator[several]
        statistics["between annotators"] = _cross(person, error)
        statistics["between slopes"] = _cross(person, error * (others - value.mean()))
    return statistics


def _from_moments(ratings: Ratings, found: Mapping[str, float], base: Population) -> Population:
    """Set what the moments of the ratings tell directly: the items' mean and spread, biases and scale use."""
    mean = float(np.clip(ratings.unit_value.mean(), 0.02, 0.98))
    widest = 0.95 * (mean * (1 - mean)) ** 0.5
    between = max(found["between items"], 1e-4)
    at = replace(base, mean=mean, spread=min(between**0.5, widest))
    if not ratings.knows_annotators:
        return at
    # A slope's product with the items' deviations has their variance as a factor, twice over.
    stretch = min(max(found["between slopes"], 0.0) ** 0.5 / between, _WIDEST_STRETCH)
    return replace(at, bias=max(found["between annotators"], 0.0) ** 0.5, stretch=stretch)


def _cross(group: IntArray, value: FloatArray) -> float:
    """Return the mean product of two different values of one group."""
    count = np.bincount(group)
    total, squares = np.bincount(group, value), np.bincount(group, value**2)
    pairs = float((count * (count - 1)).sum())
    return float((total**2 - squares).sum() / pairs) if pairs else 0.0


def _order_statistics(observations: Observations) -> dict[str, float]:
    """How unreliable the counts are, and the share of ties."""
    statistics = {"unreliability": _unreliability(observations, "split_half_pearson")}
    if isinstance(observations, Comparisons):
        statistics["ties"] = float((observations.outcome == 0).mean())
    return statistics


def _unreliability(observations: Observations, correlation: str) -> float:
    """Return 1/r - 1 of the split-half correlation, which grows with the square of the noise."""
    found = split_half(observations, trials=4)[correlation].value
    if found is None:
        raise DataError("the pilot is too small to tell how reliable it is.", "Judge more items, each several times.")
    return 1 / max(found, 0.02) - 1
