"""Correlations with the truth by the number of annotations, over many runs, and what they save."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reproductions.base import Claim
from reproductions.easl.methods import Method
from steelyard.observations import FloatArray
from steelyard.reliability.correlation import Correlate, pearson, spearman

CORRELATIONS: dict[str, Correlate] = {"Spearman": spearman, "Pearson": pearson}
_RESAMPLES = 500


def correlations(score: FloatArray, truth: FloatArray) -> tuple[float, ...]:
    """Return ρ and r; 0 where all scores are the same."""
    correlations = (correlate(score, truth) for correlate in CORRELATIONS.values())
    return tuple(0.0 if one is None else one.r for one in correlations)


def curve_table(runs: Mapping[Method, FloatArray]) -> pl.DataFrame:
    """Lay out runs × rounds × (ρ, r) of each method: the mean, and the band that holds 95 % of the runs."""
    rows = [
        (str(method), name, round_ + 1, *band(of_method[:, round_, which]))
        for method, of_method in runs.items()
        for which, name in enumerate(CORRELATIONS)
        for round_ in range(of_method.shape[1])
    ]
    schema = {"method": pl.String, "correlation": pl.String, "annotations": pl.Int64}
    return pl.DataFrame(rows, schema=schema | dict.fromkeys(("value", "lower", "upper"), pl.Float64), orient="row")


def band(values: FloatArray) -> tuple[float, float, float]:
    """Return the mean of runs, and the ends of the band that holds 95 % of them."""
    lower, upper = np.quantile(values, [0.025, 0.975]).tolist()
    return float(values.mean()), lower, upper


def gain(
    runs: Mapping[Method, FloatArray], method: Method, annotations: int, seed: int
) -> tuple[float, float | None, float | None]:
    """Return how many more annotations direct assessment needs for the same ρ, in %, with an interval over runs.

    Where it needs fewer, the gain is below 0. Between whole numbers of annotations ρ is taken as a straight line.
    """
    of_method, direct = runs[method][:, annotations - 1, 0], runs[Method.DA][:, :, 0]
    rng = np.random.default_rng(seed)
    samples: NDArray[np.int64] = rng.integers(len(of_method), size=(_RESAMPLES, len(of_method)))
    resampled = [_more(of_method[rows].mean(), direct[rows].mean(axis=0), annotations) for rows in samples]
    lower, upper = np.quantile(resampled, [0.025, 0.975]).tolist()
    return _more(of_method.mean(), direct.mean(axis=0), annotations), lower, upper


def _more(reached: float, direct: FloatArray, annotations: int) -> float:
    # With no annotation at all the correlation is 0.
    needed = np.interp(reached, np.r_[0.0, np.maximum.accumulate(direct)], np.arange(len(direct) + 1))
    return 100 * (float(needed) / annotations - 1)


def gain_claim(
    runs: Mapping[Method, FloatArray],
    method: Method,
    annotations: int,
    *,
    where: str,
    seed: int,
    published: float | None = None,
    why: str = "",
) -> Claim:
    """State what a method saves over direct assessment."""
    what = f"annotations that direct assessment needs beyond {annotations} of {method}, {where}"
    return Claim(what, *gain(runs, method, annotations, seed), published=published, unit="%", why=why)
