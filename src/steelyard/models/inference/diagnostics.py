"""Convergence diagnostics of Markov chains (Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021)."""

from __future__ import annotations

import numpy as np
from scipy import special

from steelyard.observations import FloatArray


def rhat(draws: FloatArray) -> FloatArray:
    """Return the rank-normalised split R̂ of every quantity: the larger of that of the values and of their folds.

    Parameters
    ----------
    draws
        Array of chains × draws × quantities, with at least four draws a chain.
    """
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_plain_rhat(_rank_normalised(halves)), _plain_rhat(_rank_normalised(folded)))


def bulk_ess(draws: FloatArray) -> FloatArray:
    """Return the effective sample size for the centre of every quantity's distribution."""
    return _ess(_rank_normalised(_split(draws)))


def tail_ess(draws: FloatArray) -> FloatArray:
    """Return the effective sample size for the 5 % and 95 % quantiles, the smaller of both."""
    low, high = np.quantile(draws, (0.05, 0.95), axis=(0, 1))
    return np.minimum(_ess(_split((draws <= low).astype(float))), _ess(_split((draws <= high).astype(float))))


def _split(draws: FloatArray) -> FloatArray:
    """Halve every chain, so that a drift within a chain shows as a difference between chains."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _rank_normalised(draws: FloatArray) -> FloatArray:
    """Replace draws by Gaussian quantiles of their ranks over all chains."""
    flat = draws.reshape(-1, draws.shape[2])
    return np.asarray(special.ndtri((_ranks(flat) - 0.375) / (len(flat) + 0.25))).reshape(draws.shape)


def _ranks(values: FloatArray) -> FloatArray:
    """Return the ranks within each column from 1 on; equal values share their mean rank.

    As `scipy.stats.rankdata`, whose module takes longer to import than a small model to fit.
    """
    count = len(values)
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    position = np.arange(1.0, count + 1)[:, None]
    is_first = np.ones(values.shape, np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    is_last = np.ones(values.shape, np.bool_)
    is_last[:-1] = is_first[1:]
    first = np.maximum.accumulate(np.where(is_first, position, 0.0), axis=0)
    last = np.minimum.accumulate(np.where(is_last, position, np.inf)[::-1], axis=0)[::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2, axis=0)
    return ranks


def _plain_rhat(draws: FloatArray) -> FloatArray:
    count = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    between = draws.mean(axis=1).var(axis=0, ddof=1)
    # A quantity that never changes has converged.
    is_constant = (within <= 1e-12) & (between <= 1e-12)
    return np.where(is_constant, 1.0, np.sqrt((count - 1) / count + between / np.maximum(within, 1e-12)))


def _ess(draws: FloatArray) -> FloatArray:
    """Return the effective sample size from the autocorrelations, cut off by Geyer's initial monotone sequence."""
    chains, count, quantities = draws.shape
    total = float(chains * count)
    centred = draws - draws.mean(axis=1, keepdims=True)
    size = 1 << (2 * count - 1).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=1)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :count].mean(axis=0) / count
    within = covariance[0] * count / (count - 1)
    pooled = within * (count - 1) / count + draws.mean(axis=1).var(axis=0, ddof=1)
    correlation = 1.0 - (within - covariance) / np.maximum(pooled, 1e-300)
    correlation[0] = 1.0
    even = max(2 * ((count - 3) // 2), 2)  # the last lags rest on too few draws
    pairs = correlation[:even:2] + correlation[1:even:2]
    is_positive = np.cumprod(pairs > 0, axis=0).astype(bool)
    monotone = np.minimum.accumulate(np.where(is_positive, pairs, np.inf), axis=0)
    time = -1.0 + 2.0 * np.where(is_positive, monotone, 0.0).sum(axis=0)
    # The first lag after the sequence counts by half if it is positive: a lower variance where chains alternate.
    following = np.minimum(2 * is_positive.sum(axis=0), count - 1)
    time += np.maximum(np.take_along_axis(correlation, following[None], axis=0)[0], 0.0)
    ess = total / np.maximum(time, 1.0 / np.log10(max(total, 10.0)))
    return np.where(pooled <= 1e-12, total, ess) if quantities else ess
