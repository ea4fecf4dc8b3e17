"""Covariance of systems' scores when judgments of one source, and of one annotator, depend on each other.

Two-way clustering (Cameron, Gelbach & Miller 2011): the covariance is V(sources) + V(annotators) − V(both), where each
V sums the outer products of the clusters' influences, times G/(G − 1) for G clusters and (N − 1)/(N − S) for N
judgments of S systems. It allows for any dependence within a source and within an annotator, such as sources that are
hard for one system or annotators who prefer one system. A two-way bootstrap estimates the same quantity, but counts
independent noise three times (Owen 2007).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.models.systems.influence import Influence
from steelyard.observations import FloatArray, IntArray

PRIOR_FREEDOM = 8.0
"""Weight of all differences together in the annotators' part of one of them, in degrees of freedom."""


@dataclass(frozen=True, slots=True, eq=False)
class Covariance:
    """Covariance of the scores; `parts` are those by source, by annotator and by both, with their clusters."""

    matrix: FloatArray
    """Positive semi-definite; for joint draws."""
    parts: tuple[FloatArray, ...]
    clusters: tuple[int, ...]
    units: str

    def of_scores(self) -> tuple[FloatArray, FloatArray]:
        """Return variance and degrees of freedom of each score."""
        return self._combined([np.diag(part) for part in self.parts])

    def of_differences(self) -> tuple[FloatArray, FloatArray]:
        """Return variance and degrees of freedom of each difference of two scores (systems × systems)."""
        return self._combined([spread(part) for part in self.parts])

    def _combined(self, parts: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
        if len(parts) == 1:
            return parts[0], np.full_like(parts[0], max(self.clusters[0] - 1, 1))
        source, annotator, both = parts
        annotator, annotator_freedom = self._moderated(annotator, both)
        # Sampling error can make the sum smaller than the sources' part, which the true variance never is.
        variance = np.maximum(source + annotator - both, source)
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = variance**2 / (
                annotator**2 / annotator_freedom + np.maximum(source - both, 0.0) ** 2 / max(self.clusters[0] - 1, 1)
            )
        return variance, np.nan_to_num(freedom, nan=1.0, posinf=1e6)

    def _moderated(self, annotator: FloatArray, both: FloatArray) -> tuple[FloatArray, float]:
        """Shrink the annotators' part of every difference towards its usual ratio to the part of single cells.

        Few annotators say little about the variance between annotators of one difference, and more about that of
        all differences together (as in Smyth 2004). Return the part and its degrees of freedom.
        """
        own = max(self.clusters[1] - 1, 1)
        systems = len(self.matrix)
        pooled = min(PRIOR_FREEDOM, own * max(systems - 2, 0))
        usual = annotator.sum() / max(both.sum(), 1e-300)
        return (own * annotator + pooled * usual * both) / (own + pooled), float(own + pooled)


def spread(covariance: FloatArray) -> FloatArray:
    """Return the variance of every difference of two scores."""
    variance = np.diag(covariance)
    return np.maximum(variance[:, None] + variance - 2 * covariance, 0.0)


def clustered_covariance(
    influence: Influence, source: IntArray | None, annotator: IntArray | None, units: str
) -> Covariance:
    """Compute the covariance by source and annotator, or by one of them."""
    codes = [code for code in (source, annotator) if code is not None]
    if len(codes) == 2:
        n = int(codes[1].max()) + 1
        both = np.unique(codes[0].astype(np.int64) * n + codes[1], return_inverse=True)[1]
        codes.append(both.astype(np.int32))
    n_rows, n_systems = len(codes[0]), len(influence.score)
    correction = (n_rows - 1) / max(n_rows - n_systems, 1)
    parts, clusters = [], []
    for code, rows in zip(codes, influence.rows_by_clustering(len(codes)), strict=True):
        count = int(code.max()) + 1
        parts.append(influence.covariance(code, rows) * (count / max(count - 1, 1) * correction))
        clusters.append(count)
    total = parts[0] if len(parts) == 1 else parts[0] + parts[1] - parts[2]
    values, vectors = np.linalg.eigh((total + total.T) / 2)
    matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return Covariance(matrix, tuple(parts), tuple(clusters), units)
