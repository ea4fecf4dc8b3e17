"""Who fails the checks: how likely it is that an annotator's accuracy is below what was asked.

The accuracies of all annotators are taken to come from one population, of which nothing is assumed: its
distribution over a grid is estimated from everybody's checks, with the weight of half an annotator spread evenly.
So a crowd of which a fifth guesses teaches what guessing looks like, while with few annotators, or few checks,
the judgment stays as careful as under a uniform prior. The annotator judged does not vote on the population.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.observations import FloatArray

_GRID: FloatArray = (np.arange(100) + 0.5) / 100
_STEPS = 100
_TOLERANCE = 1e-6
_PSEUDO_ANNOTATORS = 0.5


def probability_below(right: NDArray[np.integer], asked: NDArray[np.integer], threshold: float) -> FloatArray:
    """Return, for every annotator, the posterior probability that their accuracy is below `threshold`.

    Parameters
    ----------
    right, asked : arrays of int
        How many checks each annotator got right, and how many there were.
    threshold : float
        The accuracy asked for, between 0 and 1.
    """
    if len(right) == 0:
        return np.zeros(0)
    # Annotators with the same counts are alike: what follows costs the same for ten and for ten thousand people.
    pairs, inverse, count = np.unique(np.stack([right, asked], axis=1), axis=0, return_inverse=True, return_counts=True)
    x, n = pairs[:, :1], pairs[:, 1:]
    log_likelihood = x * np.log(_GRID) + (n - x) * np.log1p(-_GRID)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    even = np.full(len(_GRID), _PSEUDO_ANNOTATORS / len(_GRID))
    population = even / even.sum()
    for _ in range(_STEPS):
        posterior = _normalised(likelihood * population)
        updated = even + count @ posterior
        updated /= updated.sum()
        gap = float(np.abs(updated - population).max())
        population = updated
        if gap < _TOLERANCE:
            break
    posterior = _normalised(likelihood * population)
    others = even + count @ posterior - posterior
    judged = _normalised(likelihood * np.maximum(others, 0))
    below: FloatArray = judged[:, threshold > _GRID].sum(axis=1)
    return below[inverse.ravel()]


def _normalised(weights: FloatArray) -> FloatArray:
    total: FloatArray = weights.sum(axis=1, keepdims=True)
    return weights / total
