"""Newton's method for scores on a latent scale, for any likelihood whose curvature is a Laplacian of item pairs.

The likelihood depends on differences of scores alone, so the rows of its curvature sum to zero, and it is determined
by one weight for each pair of items that were compared. Up to `DENSE_ITEMS` items the equations are solved by Cholesky
factors; beyond, by conjugate gradients, in memory linear in the pairs.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import linalg, sparse, special

from steelyard.errors import ConvergenceWarning
from steelyard.models.inference.newton_kernels import Laplacian, conjugate_gradients, edge_noise, fill_laplacian
from steelyard.models.inference.resampling import Units
from steelyard.observations import FloatArray, IntArray

DENSE_ITEMS = 2000

_QUANTILES = special.ndtri((np.arange(256) + 0.5) / 256)
_NORMAL = (_QUANTILES / _QUANTILES.std()).astype(np.float32)


TieParameters: TypeAlias = "float | FloatArray"
"""The tie parameter of a model, or several thresholds."""


class Terms(NamedTuple):
    """A log-likelihood at a point, with its derivatives."""

    value: float
    gradient: FloatArray
    """By item."""
    weight: FloatArray
    """By pair: minus the mixed second derivative of its two items, with the sign turned."""
    tie_slope: TieParameters = 0.0
    tie_mixed: FloatArray | None = None
    """Minus the second derivative in each item's score and the tie parameter; a column for each of several."""
    tie_bend: TieParameters = 0.0


class Scatter(NamedTuple):
    """Parallel arrays: observation `row` pulls `item` with `slope`, and tells `information` about it.

    The item codes from n stand for the tie parameters.
    """

    row: IntArray
    item: IntArray
    slope: FloatArray
    information: FloatArray


class UnitScatter(NamedTuple):
    """Sparse tables of units (rows) and items (columns, tie parameters last): summed slopes and information."""

    slope: sparse.csr_array
    information: sparse.csr_array


class Likelihood(ABC):
    """The log-likelihood of the scores of items 0…n−1."""

    n_items: int
    first: IntArray
    second: IntArray
    """The pairs of items that meet, first < second."""
    tie_start: TieParameters | None = None
    """Where the search for the tie parameter, or for several thresholds, starts; None where there is none."""

    @property
    def n_ties(self) -> int:
        """Number of tie parameters."""
        return 0 if self.tie_start is None else int(np.size(self.tie_start))

    def start(self) -> FloatArray:
        """Return scores to start the search from."""
        return np.zeros(self.n_items)

    @abstractmethod
    def at(self, theta: FloatArray, tie: Any) -> Terms:
        """Evaluate at a point."""

    @abstractmethod
    def scatter(self, theta: FloatArray, tie: Any) -> Scatter:
        """Break the gradient up by observation."""

    def scatter_by_unit(self, theta: FloatArray, tie: Any, units: Units) -> UnitScatter:
        """Break the gradient up by unit."""
        pieces = self.scatter(theta, tie)
        shape = (len(units), self.n_items + self.n_ties)
        cells = (units.of_row[pieces.row], pieces.item)
        return UnitScatter(
            sparse.csr_array((pieces.slope, cells), shape=shape),
            sparse.csr_array((pieces.information, cells), shape=shape),
        )

    @abstractmethod
    def resamples(self, units: Units, replicates: int, seed: int) -> Iterator[Likelihood]:
        """Reweight the observations by Poisson(1) of their unit, again and again."""

    @abstractmethod
    def perturbations(self, theta: FloatArray, tie: Any, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw `count` columns of gradient noise, with the curvature at the point as their covariance."""

    @abstractmethod
    def skew(self, theta: FloatArray, tie: Any, variance: FloatArray) -> FloatArray:
        """Return −½ ∇ Σ w(θ) · variance over the pairs, by item: what turns the mode into the mean."""

    def edge_noise(self, weight: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw perturbations from non-negative weights: independent noise along every pair.

        One random byte picks each normal deviate from 256 equally likely ones of unit variance: an item's noise
        is a sum over its pairs, where the steps disappear, and a byte costs a tenth of a deviate.
        """
        byte = rng.integers(0, 256, (len(weight), count), np.uint8)
        return edge_noise(self.first, self.second, np.sqrt(weight), byte, _NORMAL, self.n_items).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """The maximum of the penalised likelihood."""

    theta: FloatArray
    tie: Any
    """The tie parameter: a float, or an array of thresholds."""
    terms: Terms
    precision: float
    """Of the Gaussian prior on every score; 0 where there is none."""
    iterations: int
    converged: bool
    gap: float

    def matrix(self, likelihood: Likelihood) -> FloatArray:
        """Return the upper triangle of minus the curvature, dense, the tie parameter as last row and column.

        Without a prior the direction in which all scores move together is made stiff, so that it can be inverted.
        """
        return curvature(likelihood, self.terms, self.precision)


def curvature(likelihood: Likelihood, terms: Terms, precision: float) -> FloatArray:
    """Return the matrix of `Estimate.matrix` for any terms and precision."""
    n, ties = likelihood.n_items, likelihood.n_ties
    matrix = fill_laplacian(likelihood.first, likelihood.second, terms.weight, n + ties)
    block = matrix[:n, :n]
    if precision > 0:
        block[np.diag_indices(n)] += precision
    else:
        block += max(np.trace(block) / n**2, 1e-12)
    if ties and terms.tie_mixed is not None:
        matrix[:n, n:] = terms.tie_mixed.reshape(n, ties)
        matrix[n:, n:] = terms.tie_bend
    return matrix


def inverse(upper: FloatArray) -> FloatArray:
    """Invert a positive definite matrix given by its upper triangle."""
    factor = linalg.cho_factor(upper.T, lower=True, overwrite_a=True, check_finite=False)
    solved = linalg.cho_solve(factor, np.eye(len(upper)), overwrite_b=True, check_finite=False)
    return np.asarray(solved, np.float64)


def item_diagonal(likelihood: Likelihood, weight: FloatArray, precision: float) -> FloatArray:
    """Return the diagonal of minus the curvature."""
    n = likelihood.n_items
    total = np.bincount(likelihood.first, weight, n) + np.bincount(likelihood.second, weight, n)
    return np.asarray(total + precision, np.float64)


Solver = Callable[[Likelihood, Terms, FloatArray, float, float], tuple[FloatArray, TieParameters]]


def dense_step(
    likelihood: Likelihood, terms: Terms, gradient: FloatArray, precision: float, _closeness: float
) -> tuple[FloatArray, TieParameters]:
    """Solve for the Newton step of scores and tie parameters by a Cholesky factor."""
    n, ties = likelihood.n_items, likelihood.n_ties
    matrix = curvature(likelihood, terms, precision)
    right = np.r_[gradient, terms.tie_slope] if ties else gradient
    # The transpose of the upper triangle is the lower one in the column order of LAPACK, without a copy.
    factor = linalg.cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    step = linalg.cho_solve(factor, right, check_finite=False)
    return step[:n], step[n:] if isinstance(likelihood.tie_start, np.ndarray) else float(step[n]) if ties else 0.0


def iterative_step(
    likelihood: Likelihood, terms: Terms, gradient: FloatArray, precision: float, closeness: float
) -> tuple[FloatArray, TieParameters]:
    """Solve for the Newton step by conjugate gradients, to a relative residual of `closeness`."""
    diagonal = np.maximum(item_diagonal(likelihood, terms.weight, precision), 1e-300)
    mixed = terms.tie_mixed if likelihood.tie_start is not None else None
    right = gradient[:, None] if mixed is None else np.column_stack([gradient, mixed])
    matrix = Laplacian(likelihood.first, likelihood.second, terms.weight, diagonal)
    solved: FloatArray = np.asarray(conjugate_gradients(matrix, right, closeness, 10 * likelihood.n_items), np.float64)
    if mixed is None:
        return solved[:, 0], 0.0
    if isinstance(likelihood.tie_start, np.ndarray):
        tie_steps: FloatArray = np.asarray(
            np.linalg.solve(
                terms.tie_bend - mixed.T @ solved[:, 1:], np.asarray(terms.tie_slope) - mixed.T @ solved[:, 0]
            ),
            np.float64,
        )
        return solved[:, 0] - solved[:, 1:] @ tie_steps, tie_steps
    tie_step = (terms.tie_slope - mixed @ solved[:, 0]) / (terms.tie_bend - mixed @ solved[:, 1])
    return solved[:, 0] - tie_step * solved[:, 1], float(tie_step)


def maximise(
    likelihood: Likelihood,
    *,
    prior_sd: float | None,
    tolerance: float = 1e-7,
    max_iterations: int = 100,
    pull: FloatArray | None = None,
    start: Estimate | None = None,
) -> Estimate:
    """Climb to the top of the likelihood plus the log of a N(0, prior_sd²) prior on every score.

    `pull` adds pull · θ to the log-likelihood. Steps are halved until they climb; the search is over when a
    step moves nothing by more than `tolerance`; the error left is about the square of that.
    """
    n = likelihood.n_items
    precision = 0.0 if prior_sd is None else prior_sd**-2
    linear = np.zeros(n) if pull is None else pull
    solve: Solver = dense_step if n <= DENSE_ITEMS else iterative_step
    theta = likelihood.start() if start is None else start.theta
    tie = start.tie if start is not None else 0.0 if likelihood.tie_start is None else likelihood.tie_start

    def objective(terms: Terms, at: FloatArray) -> float:
        return terms.value + float(linear @ at) - precision / 2 * float(at @ at)

    terms = likelihood.at(theta, tie)
    height = objective(terms, theta)
    gap, closeness, iterations = np.inf, 0.1, 0
    while iterations < max_iterations:
        iterations += 1
        gradient = terms.gradient + linear - precision * theta
        step, tie_step = solve(likelihood, terms, gradient, precision, closeness)
        fraction = 1.0
        while True:
            new_theta, new_tie = theta + fraction * step, tie + fraction * tie_step
            new_terms = likelihood.at(new_theta, new_tie)
            new_height = objective(new_terms, new_theta)
            # Rounding makes the last steps look level; a step that small is taken.
            if new_height >= height - 1e-12 * (1 + abs(height)) or fraction < 1e-10:
                break
            fraction /= 2
        gap = fraction * max(float(np.abs(step).max(initial=0.0)), float(np.abs(tie_step).max(initial=0.0)))
        theta, tie, terms, height = new_theta, new_tie, new_terms, new_height
        if gap <= tolerance:
            break
        closeness = max(min(0.1, gap * 0.1), tolerance * 0.1)
    theta = theta - theta.mean() if precision == 0 else theta
    return Estimate(theta, tie, terms, precision, iterations, bool(gap <= tolerance), float(gap))


def warn_unless_converged(name: str, estimate: Estimate) -> None:
    """Be loud about a search that was cut short."""
    if not estimate.converged:
        warnings.warn(
            f"{name} stopped after {estimate.iterations} iterations with a last step of {estimate.gap:.2g}; "
            "raise max_iterations.",
            ConvergenceWarning,
            stacklevel=4,
        )
