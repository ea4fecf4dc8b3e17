"""Bootstrap intervals: Poisson(1) weights over the sampling units of a statistic.

Agreement is resampled over units (items, pairs, tuples), never over annotators: an annotator drawn twice would
be two copies that agree perfectly, which raises every agreement. A unit drawn twice only counts twice.

Weights are hashes of the units' names (models/inference/resampling.py), so that neither the order of the rows nor
the engine matters. Units without names are identified by their order; if there are many, their weights come from a
random generator. Beyond 2,000 units, statistics that are functions of a few sums use the infinitesimal jackknife,
the limit of the bootstrap variance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from steelyard.errors import ConfigError
from steelyard.models.inference.hashing import hashed
from steelyard.models.inference.resampling import poisson_weights, scrambled_weights
from steelyard.observations import FloatArray
from steelyard.reliability.statistic import Statistic

WeightedStatistic: TypeAlias = Callable[[FloatArray], FloatArray]
"""Maps weights (units × replicates) to one number per replicate, NaN if undefined."""

Seed: TypeAlias = int | np.random.Generator

Names: TypeAlias = Callable[[], tuple[str, ...]]
"""Returns the names of the units; called only when they are needed."""

HASHED_UNITS = 2_000
"""Number of units up to which each replicate has its own digests; beyond, each unit has one digest."""

_BLOCK = 4_000_000
_SAME = 1e-12


def _poisson_table() -> FloatArray:
    """Return a 16-bit lookup table of Poisson(1): five times faster than sampling, exact to 1/65536."""
    edges = np.rint(scipy.special.pdtr(np.arange(9), 1.0) * 65536).astype(np.int64)
    return np.searchsorted(edges, np.arange(65536), side="right").astype(np.float64)


_POISSON = _poisson_table()


@dataclass(frozen=True, slots=True, eq=False)
class SumStatistic:
    """A function of a few weighted sums over units: `of` takes Σ w·column for each column."""

    columns: tuple[FloatArray, ...]
    of: Callable[[FloatArray], FloatArray]

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Return the function for each replicate, shape (r,)."""
        return self.of(np.stack([column @ weights for column in self.columns]))

    def influence(self) -> FloatArray:
        """Return the derivative with respect to each unit's weight, shape (U,), by central differences in the sums."""
        sums = np.array([column.sum() for column in self.columns])
        step = 1e-5 * np.maximum(np.abs(sums), 1e-6 * np.array([np.abs(column).sum() for column in self.columns]))
        step = np.maximum(step, 1e-300)
        ends = [self.of(sums[:, None] + sign * np.diag(step)) for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * step)
        return np.asarray(sum(d * column for d, column in zip(slope, self.columns, strict=True)), np.float64)


@lru_cache(maxsize=8)
def _hashed_weights(names: tuple[str, ...], replicates: int, seed: int) -> NDArray[np.uint8]:
    """Cache the weights of recent sets of units: a table has several statistics over the same units."""
    return poisson_weights(names, replicates, seed)


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Settings of intervals: seed, number of replicates and level.

    The interval is value ± t · (standard deviation over the replicates), with t at units − 1 degrees of
    freedom, clipped to the statistic's range. It always contains the value, and on simulated ratings it had
    better coverage than percentiles (docs/concepts/agreement.md).
    """

    seed: int = 0
    replicates: int = 200
    level: float = 0.95

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ConfigError(f"level {self.level:g} is not between 0 and 1.", "Give 0.95 for 95 %.")
        if self.replicates < 0:
            raise ConfigError(f"{self.replicates} replicates.", "Give 0 for no intervals, or 200.")

    @classmethod
    def of(cls, seed: Seed, replicates: int, level: float) -> Bootstrap:
        """Create the settings; a generator as seed draws one."""
        if isinstance(seed, np.random.Generator):
            seed = int(seed.integers(2**63))
        return cls(seed, replicates, level)

    def weights(self, units: int, rows: int, names: Names | None = None) -> Iterator[FloatArray]:
        """Yield Poisson(1) weights (units × replicates) in blocks, so that `rows` × replicates stays bounded.

        Units without `names` are named by their numbers.
        """
        step = max(1, _BLOCK // max(rows, 1))
        if units <= HASHED_UNITS:
            unit_names = tuple(map(str, range(units))) if names is None else names()
            digested = _hashed_weights(unit_names, self.replicates, self.seed)
            for start in range(0, self.replicates, step):
                yield np.ascontiguousarray(digested[start : start + step].T, np.float64)
            return
        if names is not None:
            key = hashed(names(), self.seed)
            for start in range(0, self.replicates, step):
                part = range(start, min(start + step, self.replicates))
                yield np.ascontiguousarray(scrambled_weights(key, part, self.seed).T, np.float64)
            return
        rng = np.random.default_rng(self.seed)
        for start in range(0, self.replicates, step):
            width = min(step, self.replicates - start)
            yield _POISSON[rng.integers(0, 65536, (units, width), dtype=np.uint16)]

    def statistic(
        self,
        key: str,
        function: WeightedStatistic,
        units: int,
        *,
        unit: str,
        note: str,
        undefined: str,
        low: float = -np.inf,
        high: float = 1.0,
        cluster: NDArray[np.int64] | None = None,
        names: Names | None = None,
    ) -> Statistic:
        """Compute a statistic and its interval over `units` units (named `unit`), clipped to `low` and `high`.

        With `cluster`, the units are clusters, and the function takes a weight for each of their members.
        `names` returns the names of the resampling units.
        """
        sums = function
        if cluster is not None:
            members, of_members = cluster, function
            function = lambda weights: of_members(weights[members])  # noqa: E731
        rows = units if cluster is None else len(cluster)
        value = float(function(np.ones((units, 1)))[0]) if units else float("nan")
        if not np.isfinite(value):
            return Statistic(key, None, n=units, note=undefined)
        if units > HASHED_UNITS and self.replicates > 1 and isinstance(sums, SumStatistic):
            # The limit of the variance over replicates as their number grows.
            influence = sums.influence()
            influence = influence if cluster is None else np.bincount(cluster, influence, units).astype(np.float64)
            return self.statistic_from_sd(
                key,
                value,
                float(np.sqrt(influence @ influence)),
                units,
                unit=unit,
                interval=f"jackknife({unit})",
                note=note,
                low=low,
                high=high,
            )
        draws = np.concatenate([function(weights) for weights in self.weights(units, rows, names)] or [np.empty(0)])
        draws = draws[np.isfinite(draws)]
        if units > 1 and self.replicates > 1 and len(draws) < max(2, self.replicates / 2):
            why = f"no interval: with so few {unit}, most resamples are undefined"
            return Statistic(key, value, n=units, note=f"{note}; {why}")
        sd = float(draws.std(ddof=1)) if len(draws) > 1 else 0.0
        return self.statistic_from_sd(
            key, value, sd, units, unit=unit, interval=f"bootstrap({unit})", note=note, low=low, high=high
        )

    def statistic_from_sd(
        self,
        key: str,
        value: float,
        sd: float,
        units: int,
        *,
        unit: str,
        interval: str,
        note: str,
        freedom: float | None = None,
        low: float = -np.inf,
        high: float = 1.0,
    ) -> Statistic:
        """Return a statistic with the interval value ± t · `sd`; by default t has units − 1 degrees of freedom."""
        why = ""
        if self.replicates < 2:
            why = "no interval was requested"
        elif units < 2:
            why = f"no interval: only one of the {unit}"
        elif sd < _SAME * max(1.0, abs(value)):
            why = f"no interval: all {unit} give the same value, so its uncertainty cannot be estimated"
        if why:
            return Statistic(key, value, n=units, note=f"{note}; {why}" if note else why)
        reach = float(scipy.special.stdtrit(freedom or units - 1, 0.5 + self.level / 2)) * sd
        return Statistic(key, value, max(value - reach, low), min(value + reach, high), interval, units, note)


def weighted_proportion(part: FloatArray, whole: FloatArray) -> WeightedStatistic:
    """Return the function Σ w·part / Σ w·whole."""

    def ratio(sums: FloatArray) -> FloatArray:
        count, total = sums
        proportion: FloatArray = np.where(total > 0, count / np.where(total > 0, total, 1), np.nan)
        return proportion

    return SumStatistic((part, whole), ratio)
