"""Harmonization of ranks with adequacy: no inadequate item above an adequate one (Pighin et al. 2012, §4.3)."""

from __future__ import annotations

import numpy as np
import polars as pl
import scipy
from numpy.typing import ArrayLike, NDArray

from steelyard.errors import DataError


def harmonize(ranks: ArrayLike, adequate: ArrayLike) -> NDArray[np.int64]:
    """Return the ranks of one source's items after moving the adequate ones to the front.

    In the order by rank, adequate items first, r′₀ = 1 and r′ᵢ = min(max(rᵢ, r′ᵢ₋₁), r′ᵢ₋₁ + 1): ranks never
    fall and never skip one. This gives the example printed in the paper, [1, 2, 2, 3, 4]; the pseudo-code
    printed beside it would give [1, 2, 2, 2, 3], because it lowers all later ranks too when it closes a gap.

    Parameters
    ----------
    ranks : array of int
        1 for the best; ties share a rank.
    adequate : array of bool
        Whether each item is good enough, in the same order as `ranks`.
    """
    rank, good = np.asarray(ranks), np.asarray(adequate, np.bool_)
    if rank.shape != good.shape or rank.ndim != 1:
        raise DataError(f"{rank.size} ranks but {good.size} adequacies.", "Give one of each for every item.")
    order = np.lexsort((rank, ~good))
    harmonized = np.empty(len(rank), np.int64)
    last = 0
    for place, item in enumerate(order):
        last = min(max(int(rank[item]), last), last + 1) if place else 1
        harmonized[item] = last
    return harmonized


def harmonization_agreement(
    ranks: ArrayLike, adequate: ArrayLike, source: ArrayLike, *, level: float = 0.95
) -> pl.DataFrame:
    """Measure how much harmonization changes the ranks, on average over the sources (Table 3 of the paper).

    `ranks`, `adequate` and `source` are parallel. Figures: Spearman's ρ between a source's ranks before and
    after, their mean absolute error and root mean squared error, and the share of sources in which any rank
    differs. The interval is Student's t over sources (Wilson's for the share); ρ leaves out sources in which all
    ranks are equal before or after.
    """
    rank, good = np.asarray(ranks), np.asarray(adequate, np.bool_)
    codes = np.unique(np.asarray(source), return_inverse=True)[1]
    if not len(rank) == len(good) == len(codes):
        raise DataError(
            f"{len(rank)} ranks, {len(good)} adequacies and {len(codes)} sources.", "Give one of each for every item."
        )
    if len(codes) == 0:
        raise DataError("there are no ranks to harmonize.", "Give at least one source.")
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    rho, absolute, squared = [], [], []
    for members in np.split(order, bounds):
        before, after = rank[members], harmonize(rank[members], good[members])
        error = after - before
        absolute.append(float(np.abs(error).mean()))
        squared.append(float(np.sqrt((error**2).mean())))
        if len(set(before.tolist())) > 1 and len(set(after.tolist())) > 1:
            rho.append(float(scipy.stats.spearmanr(before, after).statistic))
    rows = [
        _statistic("spearman", rho, level),
        _statistic("mae", absolute, level),
        _statistic("rmse", squared, level),
        _share("differ", np.asarray(absolute) > 0, level),
    ]
    return pl.DataFrame(rows, orient="row", schema=_SCHEMA)


_SCHEMA = {
    "statistic": pl.String,
    "value": pl.Float64,
    "sd": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "sources": pl.Int64,
}


def _statistic(
    name: str, values: list[float], level: float
) -> tuple[str, float | None, *tuple[float | None, ...], int]:
    n = len(values)
    if n == 0:
        return name, None, None, None, None, 0
    mean = float(np.mean(values))
    if n == 1:
        return name, mean, None, None, None, 1
    sd = float(np.std(values, ddof=1))
    half = float(scipy.stats.t.ppf((1 + level) / 2, n - 1)) * sd / n**0.5
    low = -1.0 if name == "spearman" else 0.0
    high = 1.0 if name == "spearman" else np.inf
    return name, mean, sd, max(mean - half, low), min(mean + half, high), n


def _share(
    name: str, differs: NDArray[np.bool_], level: float
) -> tuple[str, float | None, *tuple[float | None, ...], int]:
    interval = scipy.stats.binomtest(int(differs.sum()), len(differs)).proportion_ci(level, method="wilson")
    sd = float(differs.std(ddof=1)) if len(differs) > 1 else None
    return name, float(differs.mean()), sd, float(interval.low), float(interval.high), len(differs)
