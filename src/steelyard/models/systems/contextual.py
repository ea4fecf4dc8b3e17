"""Bradley–Terry with covariates: P(a beats b) = σ(θ_a − θ_b + x · β), with a tie as half a win for each.

Covariates are differences between the two outputs, such as their lengths; β takes out what they explain, and θ compares
systems whose outputs do not differ in them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse, special

from steelyard.errors import DataError
from steelyard.models.systems.influence import Influence
from steelyard.observations import Comparisons, FloatArray

MAX_ITERATIONS = 50
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Contextual:
    """Strengths of systems and coefficients of covariates; the covariance is by cluster (`Influence`)."""

    coefficients: FloatArray
    influence: Influence
    """Of the scores, followed by the coefficients."""


def fit_contextual(comparisons: Comparisons, covariates: FloatArray) -> Contextual:
    """Fit by Newton's method, without a prior.

    `covariates` has a row for each comparison and a column for each covariate: its value for the left system minus
    that for the right one. Scores are centred at 0.
    """
    if covariates.shape[0] != len(comparisons):
        raise DataError(f"{len(comparisons)} comparisons but {covariates.shape[0]} rows of covariates.")
    if not np.isfinite(covariates).all():
        raise DataError("a covariate is missing or not finite.", "Fill it in, or leave that comparison out.")
    n, left, right = len(comparisons.items), comparisons.left, comparisons.right
    # Standardised, so that the tolerance means the same for characters and for seconds.
    scale = np.maximum(covariates.std(axis=0), 1e-300)
    scaled = covariates / scale
    outcome = (comparisons.outcome + 1) / 2
    theta, beta = np.zeros(n), np.zeros(scaled.shape[1])
    for _ in range(MAX_ITERATIONS):
        share = special.expit(theta[left] - theta[right] + scaled @ beta)
        residual = outcome - share
        hessian = _information(comparisons, scaled, share * (1 - share))
        gradient = np.r_[np.bincount(left, residual, n) - np.bincount(right, residual, n), scaled.T @ residual]
        try:
            step = linalg.solve(hessian, gradient, assume_a="pos")
        except linalg.LinAlgError:
            raise DataError(
                "the covariates are collinear with the systems: a covariate is constant or a linear combination of "
                "others.",
                "Leave out a covariate.",
            ) from None
        theta, beta = theta + step[:n], beta + step[n:]
        if np.abs(step).max() < TOLERANCE:
            break
    else:
        raise DataError(
            "the strengths do not converge: a system won or lost all its comparisons.",
            "Leave that system out, or fit without covariates.",
        )
    return Contextual(beta / scale, _influence(comparisons, scaled, scale, (theta, beta)))


def _information(comparisons: Comparisons, scaled: FloatArray, weight: FloatArray) -> FloatArray:
    """Return minus the curvature; the direction in which all strengths move together is made stiff."""
    n, left, right = len(comparisons.items), comparisons.left, comparisons.right
    width = n + scaled.shape[1]
    matrix = np.zeros((width, width))
    pairs = np.bincount(left.astype(np.int64) * n + right, weight, n * n).reshape(n, n)
    pairs += pairs.T
    matrix[:n, :n] = np.diag(pairs.sum(axis=1)) - pairs + max(weight.sum() / n**2, 1e-12)
    weighted = scaled * weight[:, None]
    for column in range(scaled.shape[1]):
        mixed = np.bincount(left, weighted[:, column], n) - np.bincount(right, weighted[:, column], n)
        matrix[:n, n + column] = matrix[n + column, :n] = mixed
    matrix[n:, n:] = scaled.T @ weighted
    return matrix


def _influence(
    comparisons: Comparisons, scaled: FloatArray, scale: FloatArray, at: tuple[FloatArray, FloatArray]
) -> Influence:
    n, left, right = len(comparisons.items), comparisons.left, comparisons.right
    theta, beta = at
    share = special.expit(theta[left] - theta[right] + scaled @ beta)
    residual = (comparisons.outcome + 1) / 2 - share
    number = np.arange(len(left))
    systems = sparse.csr_array(
        (np.concatenate([residual, -residual]), (np.tile(number, 2), np.concatenate([left, right]))),
        shape=(len(left), n),
    )
    rows = sparse.hstack([systems, sparse.csr_array(scaled * residual[:, None])]).tocsr()
    bread = linalg.inv(_information(comparisons, scaled, share * (1 - share)))
    bread[:n] -= bread[:n].mean(axis=0)
    bread[n:] /= scale[:, None]
    return Influence(np.r_[theta - theta.mean(), beta / scale], bread, rows)
