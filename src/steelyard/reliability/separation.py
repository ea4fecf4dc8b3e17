"""Scale separation reliability of comparative judgement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import LinearOperator, cg

from steelyard.errors import ConfigError, DataError
from steelyard.observations import Comparisons, FloatArray, Observations
from steelyard.reliability.bootstrap import Bootstrap, Seed, weighted_proportion
from steelyard.reliability.statistic import Statistic, Statistics
from steelyard.reliability.units import Codes, group_codes, row_sums

EPSILON = 0.3
"""Correction of R's sirt::btm: added to the score of an item without wins, subtracted from one without losses."""

NAMES = ("scale_separation_reliability", "separation_index", "decision_consistency")

MAX_LEAVE_ONE_OUT = 100
"""Number of judges up to which each is left out in turn."""

_MAX_ITERATIONS, _TOLERANCE = 100, 1e-9
_Sparse: TypeAlias = Any  # scipy.sparse.csr_array, whose operators the stubs do not follow


@dataclass(frozen=True, slots=True)
class Separation(Statistics):
    """The reliability of a comparative-judgement scale.

    `scale` has item, theta, se and comparisons, best first; `pairs` is the number of distinct pairs judged.
    """

    statistics: tuple[Statistic, ...]
    scale: pl.DataFrame
    pairs: int


def scale_separation(
    observations: Observations,
    *,
    epsilon: float = EPSILON,
    seed: Seed = 0,
    replicates: int = 200,
    level: float = 0.95,
) -> Separation:
    """Compute SSR = 1 − mean(se²)/var(θ) of a Bradley–Terry scale, and the separation G = √(var(θ)/mean(se²)).

    The fit is that of R's sirt::btm, which comparative-judgement papers use: item i with W wins (a tie is half)
    in M comparisons is given the score s = ε + (M − 2ε)·W/M, so that all θ are finite; θ solves
    s − Σ p = c·Σ p(1 − p) with Σ θ = 0, where c absorbs the change of the total by the correction; and
    se = 1/√Σ p(1 − p) of each item. The variance has denominator n − 1.

    The interval is for these items and other judges, symmetric in log(1 − SSR): a leave-one-judge-out jackknife, or
    its infinitesimal form if there are over 100 judges, if the comparison graph is disconnected without some judge,
    or if judges are not known and decisions are the units. Decision consistency is measured on the decisions to
    which the scale was fitted.
    """
    bootstrap = Bootstrap.of(seed, replicates, level)
    if not observations.has_comparisons:
        raise DataError(f"scale separation needs comparisons or rankings; these are {observations.kind}.")
    comparisons = observations.to_comparisons()
    if not 0 < epsilon < 0.5:
        raise ConfigError(f"epsilon {epsilon:g} is not between 0 and 1/2.", "Give 0.3, as sirt does.")
    decisions = _Decisions.of(comparisons)
    obstacle = decisions.obstacle()
    if obstacle:
        return Separation(tuple(Statistic(name, None, note=obstacle) for name in NAMES), _no_scale(), decisions.pairs)
    fit = _fit(decisions, epsilon)
    order = np.argsort(-fit.theta, kind="stable")
    scale = pl.DataFrame(
        {
            "item": [comparisons.items[int(code)] for code in decisions.items[order]],
            "theta": fit.theta[order],
            "se": 1 / np.sqrt(fit.information[order]),
            "comparisons": decisions.appearances[order].astype(np.int64),
        }
    )
    return Separation(_statistics(decisions, fit, epsilon, comparisons, bootstrap), scale, decisions.pairs)


def _no_scale() -> pl.DataFrame:
    return pl.DataFrame(schema={"item": pl.String, "theta": pl.Float64, "se": pl.Float64, "comparisons": pl.Int64})


@dataclass(frozen=True, slots=True, eq=False)
class _Decisions:
    """Decisions over the judged items: `won` is 1 if `first` won, 1/2 for a tie."""

    items: Codes
    first: Codes
    second: Codes
    won: FloatArray
    wins: FloatArray
    appearances: FloatArray
    pairs: int

    @classmethod
    def of(cls, comparisons: Comparisons) -> _Decisions:
        turned = comparisons.outcome < 0
        winner = np.where(turned, comparisons.right, comparisons.left)
        loser = np.where(turned, comparisons.left, comparisons.right)
        return cls._among(winner, loser, np.where(comparisons.outcome == 0, 0.5, 1.0))

    @classmethod
    def _among(cls, winner: NDArray[Any], loser: NDArray[Any], won: FloatArray) -> _Decisions:
        items, codes = np.unique(np.concatenate([winner, loser]), return_inverse=True)
        first, second = codes[: len(winner)].astype(np.int64), codes[len(winner) :].astype(np.int64)
        n = len(items)
        wins = row_sums(first, won, n) + row_sums(second, 1 - won, n)
        appearances = (np.bincount(first, minlength=n) + np.bincount(second, minlength=n)).astype(np.float64)
        pair = group_codes(np.minimum(first, second), np.maximum(first, second)) if len(first) else first
        return cls(items.astype(np.int64), first, second, won, wins, appearances, int(pair.max(initial=-1)) + 1)

    def only(self, keep: NDArray[np.bool_]) -> _Decisions:
        """Return some of the decisions; `items` are then numbers of these items."""
        return self._among(self.first[keep], self.second[keep], self.won[keep])

    def matrix(self, value: FloatArray) -> _Sparse:
        """Sum a value of each decision over both orders of its pair, items by items."""
        n = len(self.items)
        row, column = np.concatenate([self.first, self.second]), np.concatenate([self.second, self.first])
        return sparse.csr_array((np.concatenate([value, value]), (row, column)), shape=(n, n))

    def by_item(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Sum the values of decisions for their first and second items."""
        n = len(self.items)
        return row_sums(self.first, first, n) + row_sums(self.second, second, n)

    def obstacle(self) -> str:
        """Return why there is no scale, or an empty string."""
        if len(self.items) < 3:
            return "undefined: fewer than three items were compared"
        components = csgraph.connected_components(self.matrix(np.ones(len(self.first))), directed=False)[0]
        if components > 1:
            return f"undefined: the items form {components:,} groups that were never compared with each other"
        return ""


@dataclass(frozen=True, slots=True, eq=False)
class _Scale:
    """θ, the information Σ p(1 − p) of each item, the surplus c, and p and p(1 − p) of each decision."""

    theta: FloatArray
    information: FloatArray
    surplus: float
    p: FloatArray
    q: FloatArray


def _state(decisions: _Decisions, score: FloatArray, theta: FloatArray) -> tuple[_Scale, FloatArray]:
    p = 1 / (1 + np.exp(theta[decisions.second] - theta[decisions.first]))
    q = p * (1 - p)
    information = decisions.by_item(q, q)
    residual = score - decisions.by_item(p, 1 - p)
    surplus = float(residual.sum() / information.sum())
    return _Scale(theta, information, surplus, p, q), residual - surplus * information


def _solve(decisions: _Decisions, scale: _Scale, right: FloatArray) -> FloatArray:
    """Solve (diag(Σq) − Q) x = right with Σ x = 0; singular along 1, so `right` must sum to zero."""
    matrix = sparse.diags_array(scale.information) - decisions.matrix(scale.q)
    n = len(right)
    inverse = LinearOperator((n, n), matvec=lambda x: x / scale.information, dtype=np.float64)
    solution, _ = cg(matrix, right - right.mean(), rtol=1e-10, maxiter=20 * n, M=inverse)
    centred: FloatArray = solution - solution.mean()
    return centred


def _fit(
    decisions: _Decisions, epsilon: float, start: FloatArray | None = None, tolerance: float = _TOLERANCE
) -> _Scale:
    appearances = decisions.appearances
    score = epsilon + (appearances - 2 * epsilon) * decisions.wins / appearances
    theta = 0.8 * np.log(score / (appearances - score)) if start is None else start
    theta = theta - theta.mean()
    for _ in range(_MAX_ITERATIONS):
        scale, residual = _state(decisions, score, theta)
        step = _solve(decisions, scale, residual)
        largest = float(np.abs(step).max())
        # Far from the solution Newton steps may overshoot, so no θ moves by more than 1 in one step.
        theta = theta + step * min(1.0, 1.0 / max(largest, 1e-300))
        if largest < tolerance:
            break
    return _state(decisions, score, theta)[0]


def _unreliability(scale: _Scale) -> float:
    """Return 1 − SSR."""
    return float((1 / scale.information).mean()) / float(scale.theta.var(ddof=1))


def _leave_one_out_error(decisions: _Decisions, fit: _Scale, of: Codes, epsilon: float) -> float | None:
    """Return the jackknife's standard error of log(1 − SSR), or None if there is no scale without some judge."""
    units = int(of.max()) + 1
    without = np.empty(units)
    for unit in range(units):
        others = decisions.only(of != unit)
        if others.obstacle():
            return None
        without[unit] = np.log(_unreliability(_fit(others, epsilon, fit.theta[others.items], 1e-3)))
    return float(np.sqrt((units - 1) * without.var()))


def _influence(decisions: _Decisions, fit: _Scale, epsilon: float) -> FloatArray:
    """Return the derivative of log(1 − SSR) with respect to the weight of each decision.

    log(1 − SSR) = log mean(1/I) − log var(θ) depends on a decision's weight directly, through I, and through
    θ, for which one linear system (the adjoint) is solved.
    """
    theta, information = fit.theta, fit.information
    first, second, p, q = decisions.first, decisions.second, fit.p, fit.q
    share = -1 / information**2 / np.sum(1 / information)
    curvature = q * (1 - 2 * p) * (share[first] + share[second])
    gradient = decisions.by_item(curvature, -curvature)
    centred = theta - theta.mean()
    gradient -= 2 * centred / float(centred @ centred)
    adjoint = _solve(decisions, fit, gradient)
    wins, appearances, won = decisions.wins, decisions.appearances, decisions.won
    # s = ε + W − 2εW/M, so a decision with v wins (1, 1/2 or 0) of the item changes it by v − 2ε(v·M − W)/M².
    gain_first = won - 2 * epsilon * (won * appearances[first] - wins[first]) / appearances[first] ** 2
    gain_second = (1 - won) - 2 * epsilon * ((1 - won) * appearances[second] - wins[second]) / appearances[second] ** 2
    moves = adjoint[first] * (gain_first - p - fit.surplus * q) + adjoint[second] * (
        gain_second - (1 - p) - fit.surplus * q
    )
    surplus = (gain_first + gain_second - 1 - 2 * fit.surplus * q) / float(information.sum())
    influence: FloatArray = moves - surplus * float(adjoint @ information) + q * (share[first] + share[second])
    return influence


def _statistics(
    decisions: _Decisions, fit: _Scale, epsilon: float, comparisons: Comparisons, bootstrap: Bootstrap
) -> tuple[Statistic, ...]:
    n = len(fit.theta)
    if float(fit.theta.var(ddof=1)) < 1e-12:
        why = "undefined: all items have the same score"
        return tuple(Statistic(name, None, note=why) for name in NAMES)
    unreliability = _unreliability(fit)
    note = f"{n:,} items, {len(decisions.first):,} decisions on {decisions.pairs:,} pairs; ε = {epsilon:g}"
    by_judge = comparisons.knows_annotators
    unit = "judges" if by_judge else "decisions"
    of = np.unique(comparisons.annotator, return_inverse=True)[1] if by_judge else np.arange(len(decisions.first))
    of = of.astype(np.int64)
    units = int(of.max()) + 1
    names = [comparisons.annotators[int(code)] for code in np.unique(comparisons.annotator)] if by_judge else None
    half_width, how, why = _half_width(decisions, fit, of, epsilon, by_judge, bootstrap)

    def statistic(name: str, value: Callable[[float], float]) -> Statistic:
        if half_width is None:
            return Statistic(name, value(unreliability), n=units, note=f"{note}; {why}")
        lower, upper = (value(unreliability * float(np.exp(end))) for end in (half_width, -half_width))
        return Statistic(name, value(unreliability), lower, upper, how, units, note)

    in_line = np.sign(fit.theta[decisions.first] - fit.theta[decisions.second])
    decided = decisions.won == 1.0
    right, counted = (row_sums(of, x, units) for x in (decided * (in_line > 0), decided * 1.0))
    return (
        statistic(NAMES[0], lambda x: 1 - x),
        statistic(NAMES[1], lambda x: float(1 / np.sqrt(x))),
        bootstrap.statistic(
            NAMES[2],
            weighted_proportion(right, counted),
            units,
            unit=unit,
            note="proportion of the decisions to which the scale was fitted that the higher item won",
            undefined="undefined: all decisions are ties",
            low=0.0,
            names=None if names is None else lambda: tuple(names),
        ),
    )


def _half_width(
    decisions: _Decisions, fit: _Scale, of: Codes, epsilon: float, by_judge: bool, bootstrap: Bootstrap
) -> tuple[float | None, str, str]:
    """Return the half-width of the interval of log(1 − SSR) and its method, or why there is none."""
    units, unit = int(of.max()) + 1, "judges" if by_judge else "decisions"
    if bootstrap.replicates < 2:
        return None, "", "no interval was requested"
    if units < 2:
        return None, "", f"no interval: only one of the {unit}"
    how = f"jackknife({unit})"
    error = _leave_one_out_error(decisions, fit, of, epsilon) if by_judge and units <= MAX_LEAVE_ONE_OUT else None
    if error is None:
        how = f"infinitesimal {how}"
        influence = row_sums(of, _influence(decisions, fit, epsilon), units)
        error = float(np.std(influence) * units / np.sqrt(units - 1))
    return float(scipy.special.stdtrit(units - 1, 0.5 + bootstrap.level / 2)) * error, how, ""
