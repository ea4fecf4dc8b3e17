"""Posterior probability that the accuracy of an annotator in the checks is below a threshold.

The accuracies of all annotators come from one population with an arbitrary distribution over a grid (nonparametric
empirical Bayes). It is estimated from all checks, with a uniform pseudo-count of half an annotator. A crowd of which a
fifth guesses therefore reveals what guessing looks like; with few annotators or checks, the posterior stays close to
that under a uniform prior. An annotator's own checks are left out of the population for their posterior.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.observations import FloatArray

_GRID: FloatArray = (np.arange(100) + 0.5) / 100
_STEPS = 100
_TOLERANCE = 1e-6
_PSEUDO_ANNOTATORS = 0.5


def probability_below(right: NDArray[np.integer], total: NDArray[np.integer], threshold: float) -> FloatArray:
    """Return, for every annotator, the posterior probability that their accuracy is below `threshold`.

    Parameters
    ----------
    right, total : arrays of int
        Number of correct checks, and of all checks, for each annotator.
    threshold : float
        The required accuracy, between 0 and 1.
    """
    if len(right) == 0:
        return np.zeros(0)
    # Annotators with equal counts have equal posteriors, so the cost does not grow with the number of annotators.
    pairs, inverse, count = np.unique(np.stack([right, total], axis=1), axis=0, return_inverse=True, return_counts=True)
    x, n = pairs[:, :1], pairs[:, 1:]
    log_likelihood = x * np.log(_GRID) + (n - x) * np.log1p(-_GRID)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    uniform = np.full(len(_GRID), _PSEUDO_ANNOTATORS / len(_GRID))
    population = uniform / uniform.sum()
    for _ in range(_STEPS):
        posterior = _normalised(likelihood * population)
        new_population = uniform + count @ posterior
        new_population /= new_population.sum()
        change = float(np.abs(new_population - population).max())
        population = new_population
        if change < _TOLERANCE:
            break
    posterior = _normalised(likelihood * population)
    others = uniform + count @ posterior - posterior
    own_posterior = _normalised(likelihood * np.maximum(others, 0))
    below: FloatArray = own_posterior[:, threshold > _GRID].sum(axis=1)
    return below[inverse.ravel()]


def _normalised(weights: FloatArray) -> FloatArray:
    total: FloatArray = weights.sum(axis=1, keepdims=True)
    return weights / total
