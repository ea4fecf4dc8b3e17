"""An estimate of the systems' scores, broken up by judgment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from steelyard.observations import FloatArray, IntArray


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

    def by_cluster(self, code: IntArray, rows: FloatArray | sparse.csr_array) -> FloatArray:
        """Return how much each cluster (rows) moves the score of each system (columns)."""
        n = len(code)
        members = sparse.csr_array((np.ones(n), (code, np.arange(n))), shape=(int(code.max()) + 1, n))
        sums = members @ rows
        return np.asarray(sums @ self.bread.T)
