"""Uncertainty of scores on a latent scale: Laplace approximation, sandwich estimator, and bootstrap.

With minus the curvature of the likelihood H₀, the prior's precision P and H = H₀ + P, the posterior is about
N(θ̂, H⁻¹), and closer to it with θ̂ moved from mode to mean. The sandwich H⁻¹ (G + P) H⁻¹ puts in H₀'s place the
spread G of the gradients of whole units (annotators, tasks), so that judgments of one unit may depend on one
another. Scores are differences from their mean, and so are all spreads here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy
from scipy import linalg, sparse

from steelyard.models.inference.newton import (
    DENSE_ITEMS,
    Estimate,
    Likelihood,
    dense_step,
    inverse,
    item_diagonal,
    iterative_step,
    maximise,
)
from steelyard.models.inference.newton_kernels import Laplacian, conjugate_gradients, neighbours
from steelyard.models.inference.resampling import Units
from steelyard.models.table import Uncertainty
from steelyard.observations import FloatArray

ITERATIVE_DRAWS = 100
"""Joint draws where each costs an iterative solution (more than `DENSE_ITEMS` items), at most."""


SHARP = 0.05
"""Where every sd is below this, the posterior is as good as normal around its mode."""

WHOLE_COVARIANCE = 400
"""Up to so many items the shift from mode to mean sees covariances as well as variances."""


class Spread(NamedTuple):
    """Standard deviations, and joint draws (rows) around zero."""

    sd: FloatArray
    draws: FloatArray


def settle(likelihood: Likelihood, estimate: Estimate) -> tuple[Estimate, FloatArray | None]:
    """Move from the posterior's mode to (nearly) its mean, where a normal distribution fits it better.

    The posterior of an item that nearly always won has its long tail upwards, so its mean lies beyond its mode, to
    first order by H⁻¹ · (−½ ∇ tr(H(θ) H⁻¹)) (Tierney & Kadane 1986). Covariances of pairs of items are left out of
    the trace beyond `WHOLE_COVARIANCE` items, where they are small. Without a prior there is no posterior, and where
    all sds are under `SHARP` the shift is a few hundredths of one: nothing is moved then, and the root of the
    covariance that showed it comes along.
    """
    n, first, second = likelihood.n_items, likelihood.first, likelihood.second
    if estimate.precision == 0:
        return estimate, None
    if n > DENSE_ITEMS:
        alone = 1 / item_diagonal(likelihood, estimate.terms.weight, estimate.precision)
        variance = alone[first] + alone[second]
    else:
        root = _root(likelihood, estimate)
        alone = (root**2).sum(axis=0)
        if alone.max() < SHARP**2:
            return estimate, root
        variance = alone[first] + alone[second]
        if n <= WHOLE_COVARIANCE:
            variance = variance - 2 * (root.T @ root)[first, second]
    push = likelihood.skew(estimate.theta, estimate.tie, variance)
    solve = dense_step if n <= DENSE_ITEMS else iterative_step
    still = estimate.terms._replace(tie_slope=0.0 * estimate.terms.tie_slope)
    shift, tie_shift = solve(likelihood, still, push, estimate.precision, 1e-4)
    theta, tie = estimate.theta + shift, estimate.tie + tie_shift
    return replace(estimate, theta=theta, tie=tie, terms=likelihood.at(theta, tie)), None


def _root(likelihood: Likelihood, estimate: Estimate) -> FloatArray:
    """Return R with RᵀR the covariance of the centred scores: H = LLᵀ, R = L⁻¹ less the mean of its columns."""
    matrix = estimate.matrix(likelihood)
    factor = linalg.cholesky(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    root, _ = linalg.lapack.dtrtri(factor, lower=1, overwrite_c=1)
    scores = root[:, : likelihood.n_items]
    return np.asarray(scores - scores.mean(axis=1, keepdims=True), np.float64)


def posterior(
    likelihood: Likelihood, estimate: Estimate, draws: int, seed: int, root: FloatArray | None = None
) -> Spread:
    """Draw from the normal distribution of precision H at the estimate, centred.

    Up to `DENSE_ITEMS` items, exact. Beyond, each draw solves H x = b for noise b of covariance H, and variances are
    the draws' Rao–Blackwellised ones, 1/Hᵢᵢ + mean (Σⱼ Hᵢⱼxⱼ/Hᵢᵢ)² (Sidén et al. 2018), with the tie parameter held
    at its estimate. `root` is that of `settle`, where it found nothing to move.
    """
    rng = np.random.default_rng(seed)
    if likelihood.n_items > DENSE_ITEMS:
        return _iterative_posterior(likelihood, estimate, min(draws, ITERATIVE_DRAWS), rng)
    root = _root(likelihood, estimate) if root is None else root
    noise = rng.standard_normal((draws, len(root)))
    return Spread(np.sqrt((root**2).sum(axis=0)), noise @ root)


def _iterative_posterior(likelihood: Likelihood, estimate: Estimate, draws: int, rng: np.random.Generator) -> Spread:
    weight, precision = estimate.terms.weight, estimate.precision
    noise = likelihood.perturbations(estimate.theta, estimate.tie, draws, rng)
    noise += np.sqrt(precision) * rng.standard_normal(noise.shape)
    solved = _solve_roughly(likelihood, estimate, noise)
    centred = solved - solved.mean(axis=0)
    if precision == 0:
        return Spread(centred.std(axis=1, ddof=1), centred.T)
    diagonal = item_diagonal(likelihood, weight, precision)
    moved = neighbours(likelihood.first, likelihood.second, weight, solved) / diagonal[:, None]
    variance = 1 / diagonal + (moved**2).mean(axis=1)
    # All scores together move by the prior alone (H·1 = P·1); their mean is taken off.
    variance = np.maximum(variance - 1 / (precision * len(variance)), 0.01 * variance)
    return Spread(np.sqrt(variance), centred.T)


def _solve_roughly(likelihood: Likelihood, estimate: Estimate, right: FloatArray) -> FloatArray:
    """Solve H X = right in single precision to a thousandth, far below the Monte Carlo error of the draws."""
    diagonal = item_diagonal(likelihood, estimate.terms.weight, estimate.precision)
    diagonal = np.maximum(diagonal, 1e-30).astype(np.float32)
    matrix = Laplacian(likelihood.first, likelihood.second, estimate.terms.weight, diagonal)
    solved = conjugate_gradients(matrix, right.astype(np.float32), 1e-3, 10 * likelihood.n_items)
    return np.asarray(solved, np.float64)


def sandwich(
    likelihood: Likelihood, estimate: Estimate, settled: Estimate, units: Units, draws: int, seed: int
) -> Spread:
    """Spread by unit: gradients at the estimate, curvature where it settled.

    Gradients are blown up by 1/√(1 − h), where h is the unit's share of the item's information. That is the diagonal
    form of the correction CR2 (Bell & McCaffrey 2002): a unit pulls the scores towards its own judgments, so its
    gradient at the estimate is too small.
    """
    rng = np.random.default_rng(seed)
    n = likelihood.n_items
    size = n + likelihood.n_ties
    slope, information = likelihood.scatter_by_unit(estimate.theta, estimate.tie, units)
    whole: FloatArray = np.asarray(information.sum(axis=0), np.float64).ravel()
    whole[:n] += estimate.precision
    share = information.copy()
    share.data = information.data / np.maximum(whole[information.indices], 1e-300)
    share.data = 1 / np.sqrt(np.maximum(1 - share.data, 0.05)) - 1
    slope = (slope + slope.multiply(share)).tocsr()
    if n > DENSE_ITEMS:
        return _iterative_sandwich(likelihood, settled, slope[:, :n].tocsr(), draws, rng)
    bread = inverse(settled.matrix(likelihood))[:n]
    bread -= bread.mean(axis=0)
    middle = (slope.T @ slope).toarray()
    middle[np.arange(n), np.arange(n)] += estimate.precision
    # Fewer units than items and no prior leave the middle singular; the jitter is far below its size.
    middle[np.diag_indices(size)] += 1e-12 * max(np.trace(middle) / size, 1e-300)
    root = bread @ linalg.cholesky(middle, lower=True, overwrite_a=True, check_finite=False)
    return Spread(np.sqrt((root**2).sum(axis=1)), rng.standard_normal((draws, size)) @ root.T)


def _iterative_sandwich(
    likelihood: Likelihood, estimate: Estimate, slope: sparse.csr_array, draws: int, rng: np.random.Generator
) -> Spread:
    noise = slope.T @ rng.standard_normal((slope.shape[0], draws))
    noise += np.sqrt(estimate.precision) * rng.standard_normal(noise.shape)
    solved = _solve_roughly(likelihood, estimate, noise)
    centred = solved - solved.mean(axis=0)
    return Spread(centred.std(axis=1, ddof=1), centred.T)


def bootstrap(
    likelihood: Likelihood,
    estimate: Estimate,
    units: Units,
    replicates: int,
    seed: int,
    prior_sd: float | None,
) -> FloatArray:
    """Fit again to resamples of the units; rows are replicates, those without a finite fit NaN.

    Each search starts from the estimate and ends at a step of 0.003: Newton's error left is about its square, 1e-5.
    """
    draws = np.full((replicates, likelihood.n_items), np.nan)
    for row, sample in enumerate(likelihood.resamples(units, replicates, seed)):
        try:
            again = maximise(sample, prior_sd=prior_sd, tolerance=3e-3, max_iterations=30, start=estimate)
        except linalg.LinAlgError:
            continue
        if again.converged:
            draws[row] = again.theta - again.theta.mean()
    return draws


def around(how: str, settled: Estimate, spread: Spread, level: float, units: int | None = None) -> Uncertainty:
    """Turn standard errors into intervals: normal, or Student's t with this number of units."""
    centre = settled.theta - settled.theta.mean()
    reach = (
        scipy.special.ndtri((1 + level) / 2)
        if units is None
        else scipy.special.stdtrit(max(units - 1, 1), (1 + level) / 2)
    )
    half = reach * spread.sd
    return Uncertainty(how, centre + spread.draws, spread.sd, centre - half, centre + half)
