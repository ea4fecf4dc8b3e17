"""Influence of each judgment on the estimated scores of systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from steelyard.observations import FloatArray, IntArray

DENSE_CELLS = 20_000_000
"""Sums by cluster with up to so many cells are multiplied as dense matrices, which is faster."""


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """Scores of systems, and how much each judgment moves them: judgment i by `bread @ rows[i]`, to first order."""

    score: FloatArray
    bread: FloatArray
    """Systems × parameters."""
    rows: FloatArray | sparse.csr_array
    """Judgments × parameters: the estimating function of every judgment."""
    without_annotators: FloatArray | None = None
    """The rows without the estimated effects of annotators, where there are any."""
    without_sources: FloatArray | None = None
    without_both: FloatArray | None = None

    def rows_by_clustering(self, count: int) -> list[FloatArray | sparse.csr_array]:
        """Return the rows to cluster by source, by annotator and by both.

        An effect of annotators is part of the annotators' clusters alone: in those of sources it would count again.
        """
        if count == 1:
            return [self.rows]
        parts = (self.without_annotators, self.without_sources, self.without_both)
        return [self.rows if part is None else part for part in parts]

    def covariance(self, code: IntArray, rows: FloatArray | sparse.csr_array) -> FloatArray:
        """Return the sum over clusters of the outer products of how much each moves the scores."""
        n = len(code)
        members = sparse.csr_array((np.ones(n), (code, np.arange(n))), shape=(int(code.max()) + 1, n))
        sums: Any = members @ rows
        if not isinstance(sums, np.ndarray) and np.prod(sums.shape) <= DENSE_CELLS:
            sums = sums.toarray()
        middle: Any = sums.T @ sums
        dense = middle if isinstance(middle, np.ndarray) else middle.toarray()
        return np.asarray(self.bread @ dense @ self.bread.T)
