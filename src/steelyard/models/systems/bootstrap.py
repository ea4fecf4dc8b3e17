"""Two-way bootstrap: sources and annotators are resampled, and a judgment counts the product of their weights.

Weights are Poisson(1) (Owen & Eckles 2012). In large samples the variance of the replicates is at least the true one;
independent noise counts three times in it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from steelyard.errors import DataError
from steelyard.models.comparisons.paired_model import PairLikelihood
from steelyard.models.systems.adjusted_means import Cells
from steelyard.models.systems.strengths import Strengths, refit
from steelyard.observations import FloatArray, IntArray

BLOCK = 4_000_000
"""Weights drawn at a time."""


def cell_weights(
    units: list[IntArray], replicates: int, rng: np.random.Generator
) -> tuple[NDArray[np.float32], IntArray]:
    """Return the weight of every cell (columns) in every replicate (rows), and the cell of every judgment.

    A cell holds the judgments that share all their units; its weight is the product of the units' weights.
    """
    key = np.zeros(len(units[0]), np.int64)
    for unit in units:
        key = key * (int(unit.max()) + 1) + unit
    _, first, cell = np.unique(key, return_index=True, return_inverse=True)
    weights = np.ones((replicates, len(first)), np.float32)
    for unit in units:
        own = rng.poisson(1.0, (replicates, int(unit.max()) + 1)).astype(np.float32)
        weights *= own[:, unit[first]]
    return weights, cell.astype(np.int32)


def resampled_means(cells: Cells, replicates: int, rng: np.random.Generator) -> FloatArray:
    """Return the mean over sources of every system (columns) in every replicate (rows).

    The means of items are weighted by annotator, and averaged with the weights of their sources.
    """
    item = cells.item
    n_items, n = int(item.max()) + 1, cells.n_systems
    _, first = np.unique(item, return_index=True)
    system, source = cells.system[first], cells.source[first]
    draws = np.empty((replicates, n))
    step = max(1, BLOCK // max(n_items, len(item)))
    to_item = sparse.csr_array((np.ones(len(item)), (np.arange(len(item)), item)), shape=(len(item), n_items))
    to_system = sparse.csr_array((np.ones(n_items), (np.arange(n_items), system)), shape=(n_items, n))
    for start in range(0, replicates, step):
        count = min(step, replicates - start)
        by_source = rng.poisson(1.0, (count, int(source.max()) + 1))[:, source]
        if cells.annotator is None:
            counts = np.tile(np.bincount(item).astype(np.float64), (count, 1))
            totals = np.tile(np.bincount(item, cells.value), (count, 1))
        else:
            by_annotator = rng.poisson(1.0, (count, int(cells.annotator.max()) + 1))[:, cells.annotator]
            counts = np.asarray(by_annotator @ to_item)
            totals = np.asarray((by_annotator * cells.value) @ to_item)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(counts > 0, totals / counts, 0.0)
            weight = by_source * (counts > 0)
            draws[start : start + count] = ((weight * means) @ to_system) / (weight @ to_system)
    return draws


def resampled_strengths(
    strengths: Strengths, units: list[IntArray], replicates: int, rng: np.random.Generator
) -> FloatArray:
    """Fit the model again to every resample of the comparisons; rows without a finite fit are left out."""
    likelihood = strengths.prepared.likelihood
    if not isinstance(likelihood, PairLikelihood) or likelihood.pairs is None:
        raise DataError(
            f"{strengths.model.name} cannot be resampled by source and annotator.",
            "Use bradley_terry or thurstone, or the default intervals.",
        )
    left, right, outcome, row = likelihood.pairs
    cell_units = units if row is None else [unit[row] for unit in units]
    kind = np.where(outcome == 0, 2, (np.where(left > right, -outcome, outcome) < 0).astype(np.int64))
    place = likelihood.raw.cell_of(left, right) + kind * len(likelihood.first)
    draws: list[FloatArray] = []
    step = max(1, BLOCK // len(left))
    for start in range(0, replicates, step):
        weights, cell = cell_weights(cell_units, min(step, replicates - start), rng)
        totals = sparse.csr_array(
            (np.ones(len(place)), (cell, place)), shape=(weights.shape[1], 3 * len(likelihood.first))
        )
        draws += [refit(strengths, counts.reshape(3, -1)) for counts in weights.astype(np.float64) @ totals]
    replicates_fitted = np.array(draws)
    return replicates_fitted[~np.isnan(replicates_fitted[:, strengths.prepared.items[0]])]
