"""Poisson bootstrap with weights from hashes, so that every engine draws the same ones.

The weight of a unit in a replicate is Poisson(1), read off a hash by inversion: a few SQL functions give the same
number (engines/sql/weights_of_few_units.sql and weights_of_many_units.sql). Up to `HASHED_UNITS` units the hash is
the first 32 bits of md5("seed:replicate:unit"). With more units, a digest for every replicate would take minutes, so
each unit has one digest, which integer arithmetic scrambles for each replicate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import exp, factorial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from steelyard.models.inference.hashing import PRIME, hashed, multiplier_and_shift, scrambled
from steelyard.observations import FloatArray, IntArray, Observations

_CUMULATIVE = np.cumsum([exp(-1) / factorial(k) for k in range(12)])


HASHED_UNITS = 20_000
"""Up to so many units every replicate has a digest of its own; beyond, every unit has one."""


def poisson_weights(units: tuple[str, ...], replicates: int, seed: int) -> NDArray[np.uint8]:
    """Return the weight of every unit (columns) in every replicate (rows)."""
    if len(units) > HASHED_UNITS:
        return scrambled_weights(hashed(units, seed), range(replicates), seed)
    weights = np.empty((replicates, len(units)), np.uint8)
    threshold = poisson_thresholds(2**32)
    for replicate in range(replicates):
        digests = b"".join(
            hashlib.md5(f"{seed}:{replicate}:{unit}".encode(), usedforsecurity=False).digest()[:4] for unit in units
        )
        hashes = np.frombuffer(digests, ">u4").astype(np.int64)
        weights[replicate] = np.searchsorted(threshold, hashes, side="right")
    return weights


def scrambled_weights(key: NDArray[np.int64], replicates: range, seed: int) -> NDArray[np.uint8]:
    """Return the weights of many units (columns), each with its hash as key, in some replicates (rows)."""
    threshold = poisson_thresholds(PRIME)
    weights = np.empty((len(replicates), len(key)), np.uint8)
    for row, replicate in enumerate(replicates):
        hashes = scrambled(key, *multiplier_and_shift(replicate, seed, "replicate"))
        weights[row] = np.searchsorted(threshold, hashes, side="right")
    return weights


def poisson_thresholds(size: int) -> NDArray[np.int64]:
    """Return the least whole numbers below `size`, all equally likely, at which Poisson(1) reaches 1, 2, 3 …"""
    thresholds: NDArray[np.int64] = np.ceil(_CUMULATIVE * size).astype(np.int64)
    return thresholds


@cache
def poisson_quantiles() -> NDArray[np.uint8]:
    """Return Poisson(1) for each of 2^16 equally likely cases: right to 1e-5, and ten times faster to draw."""
    return np.searchsorted(_CUMULATIVE, (np.arange(2**16) + 0.5) / 2**16, side="right").astype(np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """What is resampled: annotators where known, else tasks, else single judgments; and each row's unit."""

    kind: str
    names: tuple[str, ...]
    of_row: IntArray
    size: int = 0
    """How many there are, where neither names nor rows are at hand."""

    @classmethod
    def of(cls, observations: Observations) -> Units:
        """Choose the unit for some observations."""
        if observations.knows_annotators:
            return cls("annotators", observations.annotators.ids, observations.annotator)
        if observations.knows_tasks:
            return cls("tasks", observations.tasks.ids, observations.task)
        return cls("judgments", (), np.arange(len(observations), dtype=np.int32))

    def __len__(self) -> int:
        return len(self.names) or len(self.of_row) or self.size

    def per_item(self, item: IntArray, row: IntArray, n_items: int) -> NDArray[np.int64]:
        """Count the units behind each item; `item` and `row` are parallel."""
        return distinct_by_item(item, self.of_row[row], n_items, len(self)).astype(np.int64)


def distinct_by_item(item: IntArray, unit: IntArray, n_items: int, n_units: int) -> IntArray:
    """Count the different units of each item; `item` and `unit` are parallel."""
    cell = item.astype(np.int64) * n_units + unit
    if n_items * n_units <= max(1 << 24, 4 * len(cell)):
        is_present = np.zeros(n_items * n_units, bool)
        is_present[cell] = True
        return np.asarray(is_present.reshape(n_items, n_units).sum(axis=1), np.int32)
    cell.sort()
    distinct = cell[np.r_[True, cell[1:] != cell[:-1]]]
    return np.bincount(distinct // n_units, minlength=n_items).astype(np.int32)


def row_weights(units: Units, replicates: int, seed: int) -> Iterator[FloatArray]:
    """Yield the Poisson(1) weight of every observation's unit, replicate by replicate."""
    block = max(1, min(replicates, 4_000_000 // max(1, len(units))))
    if units.kind != "judgments":
        for weight in poisson_weights(units.names, replicates, seed):
            yield weight[units.of_row].astype(np.float64)
        return
    rng = np.random.default_rng(seed)
    for at in range(0, replicates, block):
        yield from rng.poisson(1.0, (min(block, replicates - at), len(units))).astype(np.float64)


def resampled_means(
    units: Units,
    item: IntArray,
    row: IntArray,
    value: FloatArray,
    n_items: int,
    *,
    replicates: int,
    seed: int,
) -> FloatArray:
    """Return the mean value of every item (columns) in every replicate (rows); NaN where none was drawn.

    `item`, `row` and `value` are parallel: observation `row` gives `item` the value.
    """
    if units.kind == "judgments":
        values, code = np.unique(value, return_inverse=True)
        cells, count = np.unique(item.astype(np.int64) * len(values) + code, return_counts=True)
        rng = np.random.default_rng(seed)
        return means_by_cell(cells // len(values), values[cells % len(values)], count, n_items, replicates, rng)
    shape = (len(units), n_items)
    cells = (units.of_row[row], item)
    totals = sparse.csr_array((value, cells), shape=shape)
    counts = sparse.csr_array((np.ones(len(item)), cells), shape=shape)
    weights = poisson_weights(units.names, replicates, seed)
    means = np.empty((replicates, n_items))
    # A few replicates at a time: as floats, all weights at once could fill the memory.
    step = max(1, 10_000_000 // max(1, len(units)))
    for start in range(0, replicates, step):
        part = weights[start : start + step].astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            means[start : start + step] = (part @ totals) / (part @ counts)
    return means


def means_by_cell(
    item: NDArray[np.signedinteger],
    value: FloatArray,
    count: NDArray[np.int64],
    n_items: int,
    replicates: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw one Poisson per distinct (item, value): the same distribution as one per judgment, and far fewer.

    The cells come in the order of their items, and of the values within them; `count` is how often each occurs.
    """
    means = np.empty((replicates, n_items))
    for replicate in range(replicates):
        weight = np.asarray(rng.poisson(count), np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            means[replicate] = np.bincount(item, weight * value, minlength=n_items) / np.bincount(
                item, weight, minlength=n_items
            )
    return means


Weights: TypeAlias = NDArray[np.uint8]


def replicate_weights(units: Units, replicates: int, seed: int) -> Iterator[Weights]:
    """Yield the weight of every unit, one replicate at a time."""
    if units.kind == "judgments":
        # Sixteen random bits and a table give Poisson(1) to 1e-5, ten times faster than Generator.poisson.
        rng, quantiles = np.random.default_rng(seed), poisson_quantiles()
        for _ in range(replicates):
            yield quantiles[rng.integers(0, 2**16, len(units), np.uint16)]
    else:
        yield from poisson_weights(units.names, replicates, seed)
