"""Scores of systems from ratings: means that are adjusted for the sources and the annotators behind them.

The model is y = system + source + annotator + item + noise, with fixed systems and everything else random. Given the
variance components, the generalised least-squares estimate of the systems is the best linear unbiased one. If every
system is rated equally often on every source and by every annotator, it is the plain mean. The components only set the
weights: the variance of the estimate does not rely on them (`clustered`), as in generalised estimating equations
(Liang & Zeger 1986).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from steelyard.models.systems.influence import Influence
from steelyard.observations import FloatArray, IntArray

LARGEST_DENSE = 40_000_000
"""Ratings times systems up to which the adjustment is computed; beyond, plain means are used."""
LARGEST_BLOCK = 3_000
"""Sources or annotators, whichever are fewer, up to which the adjustment is computed."""
LEAST_NOISE = 0.05
"""The noise is at least this fraction of the total variance, so that the weights stay finite."""


class Cells(NamedTuple):
    """Ratings as parallel arrays of codes and values; `annotator` is None where annotators are not known."""

    system: IntArray
    source: IntArray
    annotator: IntArray | None
    value: FloatArray
    n_systems: int

    @property
    def item(self) -> IntArray:
        """The codes of the items: one for every system and source."""
        key = self.source.astype(np.int64) * self.n_systems + self.system
        return np.asarray(np.unique(key, return_inverse=True)[1], np.int32)


class Components(NamedTuple):
    """Variance components of ratings."""

    source: float
    annotator: float
    item: float
    noise: float


def plain_means(cells: Cells) -> Influence:
    """Score every system by the mean over its sources of the mean rating of its item."""
    item = cells.item
    ratings_of_item = np.bincount(item)[item]
    items_of_system = np.bincount(cells.system, 1 / ratings_of_item, cells.n_systems)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = 1 / ratings_of_item / items_of_system[cells.system]
        score = np.bincount(cells.system, weight * cells.value, cells.n_systems).astype(np.float64)
    residual = weight * (cells.value - score[cells.system])
    rows = sparse.csr_array(
        (residual, (np.arange(len(residual)), cells.system)), shape=(len(residual), cells.n_systems)
    )
    return Influence(np.where(items_of_system > 0, score, np.nan), np.eye(cells.n_systems), rows)


def can_adjust(cells: Cells) -> bool:
    """Whether the adjusted means can be computed in reasonable time and memory."""
    n_annotators = 0 if cells.annotator is None else int(cells.annotator.max()) + 1
    smaller = min(int(cells.source.max()) + 1, n_annotators)
    return len(cells.value) * cells.n_systems <= LARGEST_DENSE and smaller <= LARGEST_BLOCK


def adjusted_means(cells: Cells) -> Influence:
    """Score every system by generalised least squares; see the module."""
    n = cells.n_systems
    is_rated = np.bincount(cells.system, minlength=n) > 0
    components = variance_components(cells)
    item = cells.item
    weight = 1 / (components.noise + np.bincount(item)[item] * components.item)
    indicators = sparse.csr_array(
        (np.ones(len(weight)), (np.arange(len(weight)), cells.system)), shape=(len(weight), n)
    )
    by_source, by_annotator = _random_effects(cells, components, weight, indicators)
    adjusted = np.zeros((len(weight), n))
    adjusted[np.arange(len(weight)), cells.system] = 1.0
    if by_source is not None:
        adjusted -= by_source[cells.source]
    if by_annotator is not None and cells.annotator is not None:
        adjusted -= by_annotator[cells.annotator]
    adjusted *= weight[:, None]
    information = np.zeros((n, n))
    np.add.at(information, cells.system, adjusted)
    information[~is_rated, ~is_rated] = 1.0
    bread = linalg.inv((information + information.T) / 2)
    score = bread @ (adjusted.T @ cells.value)
    residual = cells.value - score[cells.system]
    source, annotator = _predictions(cells, components, weight, residual)
    return Influence(
        np.where(is_rated, score, np.nan),
        bread,
        adjusted * residual[:, None],
        without_annotators=adjusted * (residual - annotator)[:, None],
        without_sources=adjusted * (residual - source)[:, None],
        without_both=adjusted * (residual - source - annotator)[:, None],
    )


def variance_components(cells: Cells) -> Components:
    """Estimate the components from products of residuals of ratings that share a source, an annotator or an item."""
    mean = np.bincount(cells.system, cells.value, cells.n_systems) / np.maximum(
        np.bincount(cells.system, minlength=cells.n_systems), 1
    )
    residual = cells.value - mean[cells.system]
    total = max(float(residual @ residual) / max(len(residual) - cells.n_systems, 1), 1e-12)
    item = cells.item
    source = _shared(residual, cells.source, item)
    annotator = 0.0
    own = np.arange(len(residual))
    if cells.annotator is not None:
        annotator = _shared(residual, cells.annotator, _crossed(cells.annotator, cells.source))
        own = _crossed(item, cells.annotator)
    of_item = _shared(residual, item, own) - source
    source, annotator, of_item = (min(max(part, 0.0), total) for part in (source, annotator, of_item))
    noise = max(total - source - annotator - of_item, LEAST_NOISE * total)
    return Components(source, annotator, of_item, noise)


def _crossed(one: IntArray, other: IntArray) -> NDArray[np.intp]:
    """Return a code for every combination of two codes."""
    key = one.astype(np.int64) * (int(other.max()) + 1) + other
    return np.asarray(np.unique(key, return_inverse=True)[1])


def _shared(residual: FloatArray, outer: NDArray[np.integer], inner: NDArray[np.integer]) -> float:
    """Return the mean product of two residuals of one `outer` group and different `inner` groups, which it contains."""
    squares = [float((np.bincount(code, residual) ** 2).sum()) for code in (outer, inner)]
    pairs = [float((np.bincount(code).astype(np.float64) ** 2).sum()) for code in (outer, inner)]
    return (squares[0] - squares[1]) / (pairs[0] - pairs[1]) if pairs[0] > pairs[1] else 0.0


def _predictions(
    cells: Cells, components: Components, weight: FloatArray, residual: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Predict the effects of the source and the annotator of every rating (best linear unbiased prediction)."""
    by_source, by_annotator = _random_effects(cells, components, weight, sparse.csr_array(residual[:, None]))
    source = np.zeros(len(residual)) if by_source is None else by_source[cells.source, 0]
    if by_annotator is None or cells.annotator is None:
        return source, np.zeros(len(residual))
    return source, by_annotator[cells.annotator, 0]


def _random_effects(
    cells: Cells, components: Components, weight: FloatArray, right: sparse.csr_array
) -> tuple[FloatArray | None, FloatArray | None]:
    """Regress columns on sources and annotators, with effects shrunken by their variances."""
    has_source = components.source > 0
    has_annotator = cells.annotator is not None and components.annotator > 0
    if has_source and has_annotator and cells.annotator is not None:
        source = _Group(cells.source, components.source)
        annotator = _Group(cells.annotator, components.annotator)
        # The block of the normal equations of the larger one is eliminated first: it is diagonal.
        if source.size >= annotator.size:
            return _two_effects(source, annotator, weight, right)
        return _two_effects(annotator, source, weight, right)[::-1]
    by_source = _Group(cells.source, components.source).alone(weight, right) if has_source else None
    if not has_annotator or cells.annotator is None:
        return by_source, None
    return None, _Group(cells.annotator, components.annotator).alone(weight, right)


class _Group:
    """One random effect: the code of every rating, and the variance."""

    def __init__(self, code: IntArray, variance: float) -> None:
        self.code, self.variance, self.size = code, variance, int(code.max()) + 1

    def diagonal(self, weight: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self.code, weight, self.size) + 1 / self.variance)

    def sums(self, weight: FloatArray, columns: sparse.csr_array) -> FloatArray:
        members = sparse.csr_array((weight, (self.code, np.arange(len(weight)))), shape=(self.size, len(weight)))
        return np.asarray((members @ columns).todense())

    def alone(self, weight: FloatArray, columns: sparse.csr_array) -> FloatArray:
        return np.asarray(self.sums(weight, columns) / self.diagonal(weight)[:, None])


def _two_effects(
    large: _Group, small: _Group, weight: FloatArray, columns: sparse.csr_array
) -> tuple[FloatArray, FloatArray]:
    diagonal = large.diagonal(weight)
    cross = sparse.csr_array((weight, (small.code, large.code)), shape=(small.size, large.size))
    scaled = sparse.csr_array(cross.multiply(1 / diagonal))
    schur = np.diag(small.diagonal(weight)) - np.asarray((scaled @ cross.T).todense())
    of_large = large.sums(weight, columns)
    by_small = linalg.solve(schur, small.sums(weight, columns) - scaled @ of_large, assume_a="pos")
    return np.asarray((of_large - cross.T @ by_small) / diagonal[:, None]), np.asarray(by_small)
