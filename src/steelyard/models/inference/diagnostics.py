"""Convergence diagnostics of Markov chains."""

from __future__ import annotations

import numpy as np

from steelyard.observations import FloatArray


def rhat(means: FloatArray, within: FloatArray) -> FloatArray:
    """Return the potential scale reduction R̂ = √(1 + between / within) (Gelman & Rubin 1992).

    Parameters
    ----------
    means
        Mean of every quantity (columns) in every chain (rows).
    within
        Variance of every quantity within a chain.
    """
    return np.asarray(np.sqrt(1 + means.var(axis=0, ddof=1) / np.maximum(within, 1e-12)))
