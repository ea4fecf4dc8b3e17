"""Models of paired comparisons: a link from the difference of two scores to a win, and a rule for ties."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from steelyard.errors import DataError
from steelyard.models.comparisons import paired_kernels as kernels
from steelyard.models.comparisons.latent import LatentScale, Prepared, compressed
from steelyard.models.comparisons.paired import Pairs, PairTable, pairs_of
from steelyard.models.inference.newton import Estimate, Likelihood, Scatter, Terms
from steelyard.models.inference.resampling import Units, row_weights
from steelyard.observations import Choices, Comparisons, FloatArray, Rankings

DEPENDENT = {
    "choices": "the pairs of one best–worst choice are dependent",
    "rankings": "the pairs of one ranking are dependent",
}


TABLED_MEANS, LARGEST_TABLED = 500, 400


class TieRule(NamedTuple):
    """How a model treats ties: a family with a tie parameter, half wins, or left out."""

    family: int
    half: bool = False
    drop: bool = False

    @property
    def learns(self) -> bool:
        """Whether there is a tie parameter."""
        return self.family in (kernels.RAO_KUPPER, kernels.GLENN_DAVID, kernels.DAVIDSON)


class PairLikelihood(Likelihood):
    """The likelihood of counted pairs.

    With `anchor`, half a tie and half a decision between equal items are added to the data, so that the tie parameter
    stays finite when all comparisons tie.
    """

    def __init__(self, table: PairTable, rule: TieRule, pairs: Pairs | None = None, *, anchor: bool = False) -> None:
        self.raw, self.rule, self.pairs, self.anchor = table, rule, pairs, anchor
        self.table = table.halved() if rule.half else table
        self.n_items, self.first, self.second = table.n_items, table.first, table.second
        self.tie_start = self._tie_start() if rule.learns else None

    def start(self) -> FloatArray:
        """Start from the log-odds of each item's wins, as if all its opponents were average."""
        table, n = self.table, self.n_items
        won = table.wins + table.ties / 2
        lost = table.losses + table.ties / 2
        up = np.bincount(table.first, won, n) + np.bincount(table.second, lost, n)
        down = np.bincount(table.first, lost, n) + np.bincount(table.second, won, n)
        odds = np.log((up + 1) / (down + 1))
        if self.rule.family in (kernels.PROBIT, kernels.GLENN_DAVID):
            odds *= 0.6
        return np.asarray(odds - odds.mean())

    def _tie_start(self) -> float:
        tied = self.table.ties.sum() + 0.5
        share = tied / (tied + self.table.wins.sum() + self.table.losses.sum() + 0.5)
        if self.rule.family == kernels.DAVIDSON:
            return float(np.log(2 * share / (1 - share)))
        if self.rule.family == kernels.RAO_KUPPER:
            return float(2 * np.arctanh(share))
        return float(special.ndtri((1 + share) / 2))

    def at(self, theta: FloatArray, tie: float) -> Terms:
        """Evaluate; −∞ where a threshold is not positive."""
        family = self.rule.family
        if self.rule.learns and family != kernels.DAVIDSON and tie <= 0:
            nothing = np.zeros(self.n_items)
            return Terms(-np.inf, nothing, np.zeros(len(self.first)), 0.0, nothing, 1.0)
        value, gradient, weight, slope, mixed, bend = kernels.pair_pass(family, theta, tie, self.table.counts)
        if self.rule.learns and self.anchor:
            more = kernels.pair_terms(family, 0.0, tie, 0.25, 0.25, 0.5)
            value, slope, bend = value + more[0], slope + more[3], bend + more[5]
        return Terms(value, gradient, weight, slope, mixed, bend)

    def scatter(self, theta: FloatArray, tie: float) -> Scatter:
        """Give each comparison's slope to its left item, less it to its right one, and its tie slope to the tie."""
        if self.pairs is None:
            raise DataError("a resample cannot be split into single comparisons.")
        left, right, outcome, row = self.pairs
        slope, bend, tie_slope, tie_bend = kernels.row_pass(
            self.rule.family, theta, tie, kernels.PairAnswers(left, right, outcome), self.rule.half
        )
        rows = np.arange(len(left), dtype=np.int32) if row is None else row
        items, slopes, bends, times = [left, right], [slope, -slope], [bend, bend], 2
        if self.rule.learns:
            items.append(np.full(len(left), self.n_items, np.int32))
            slopes.append(tie_slope)
            bends.append(tie_bend)
            times = 3
        return Scatter(np.tile(rows, times), np.concatenate(items), np.concatenate(slopes), np.concatenate(bends))

    def skew(self, theta: FloatArray, tie: float, variance: FloatArray) -> FloatArray:
        """Sum over the counted pairs."""
        return kernels.skew_pass(self.rule.family, theta, tie, self.table.counts, variance)

    def perturbations(self, theta: FloatArray, tie: float, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw noise along every pair."""
        return self.edge_noise(self.at(theta, tie).weight, count, rng)

    def resamples(self, units: Units, replicates: int, seed: int) -> Iterator[Likelihood]:
        """Draw counts: one Poisson per cell where judgments are the unit, else sums over weighted units."""
        cells = np.stack([self.raw.wins, self.raw.losses, self.raw.ties])
        if units.kind == "judgments" and (self.pairs is None or self.pairs.row is None):
            for counts in poisson_cells(cells.ravel(), replicates, np.random.default_rng(seed)):
                yield self.with_counts(counts.reshape(cells.shape))
            return
        totals = self._by_unit(units)
        for weight in row_weights(
            Units(units.kind, units.names, np.arange(len(units), dtype=np.int32)), replicates, seed
        ):
            yield self.with_counts((weight @ totals).reshape(cells.shape))

    def with_counts(self, cells: FloatArray) -> PairLikelihood:
        """Return the likelihood of other wins, losses and ties of every pair (3 × pairs)."""
        raw = self.raw
        return PairLikelihood(PairTable(raw.n_items, raw.first, raw.second, *cells), self.rule, anchor=self.anchor)

    def _by_unit(self, units: Units) -> sparse.csr_array:
        """Count each unit's (rows) wins, losses and ties of every pair (columns)."""
        if self.pairs is None:
            raise DataError("a resample cannot be resampled.")
        left, right, outcome, row = self.pairs
        swapped = np.where(left > right, -outcome, outcome)
        kind = np.where(swapped == 0, 2, (swapped < 0).astype(np.int64))
        cell = self.raw.cell_of(left, right) + kind * len(self.first)
        unit = units.of_row if row is None else units.of_row[row]
        return sparse.csr_array((np.ones(len(cell)), (unit, cell)), shape=(len(units), 3 * len(self.first)))


def poisson_cells(mean: FloatArray, replicates: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield Poisson draws of many cells, again and again.

    Counts repeat, so up to `TABLED_MEANS` different ones are drawn from tables of their distributions, which is
    faster than one by one; means beyond `LARGEST_TABLED` would need long tables.
    """
    distinct, code = np.unique(mean, return_inverse=True)
    if len(distinct) > TABLED_MEANS or distinct[-1] > LARGEST_TABLED:
        for _ in range(replicates):
            yield rng.poisson(mean).astype(np.float64)
        return
    # Fifteen sds above the mean the tail is under 1e-20; the last entry makes sure of an end.
    longest = int(distinct[-1] + 15 * np.sqrt(distinct[-1]) + 30)
    cumulative = np.asarray(special.pdtr(np.arange(longest), distinct[:, None]), np.float64)
    cumulative[:, -1] = 1.0
    for _ in range(replicates):
        yield kernels.poisson_by_inversion(code.astype(np.int32), distinct, cumulative, rng.random(len(mean)))


@dataclass(frozen=True, slots=True)
class PairedModel(LatentScale):
    """Scores from comparisons, or from the pairs within choices and rankings."""

    accepts: ClassVar[tuple[str, ...]] = ("comparisons", "choices", "rankings")

    @abstractmethod
    def _rule(self, tied: bool, decided: bool) -> TieRule:
        """Choose the family for data with or without ties and decisions."""

    @abstractmethod
    def _share(self, rule: TieRule, d: FloatArray, tie: float) -> FloatArray:
        """Return the chance of a win plus half that of a tie."""

    @abstractmethod
    def _tie_note(self, rule: TieRule, tie: float) -> str:
        """Describe what was found about ties."""

    def _prepare(self, observations: Comparisons | Choices | Rankings) -> Prepared:
        pairs, n_items = pairs_of(observations), len(observations.items)

        def likelihood(table: PairTable, rule: TieRule, items: NDArray[np.int64]) -> PairLikelihood:
            left, right, outcome, row = pairs
            if rule.drop and not outcome.all():
                is_decided = outcome != 0
                row = np.flatnonzero(is_decided).astype(np.int32) if row is None else row[is_decided]
                left, right, outcome = left[is_decided], right[is_decided], outcome[is_decided]
            if len(items) < n_items:
                code = np.zeros(n_items, np.int32)
                code[items] = np.arange(len(items), dtype=np.int32)
                left, right = code[left], code[right]
            return PairLikelihood(table, rule, Pairs(left, right, outcome, row), anchor=self.has_prior)

        return self.prepared(PairTable.count(pairs, n_items), observations.kind, likelihood)

    def prepared(
        self,
        table: PairTable,
        kind: str,
        likelihood: Callable[[PairTable, TieRule, NDArray[np.int64]], PairLikelihood],
    ) -> Prepared:
        """Make ready the counted pairs of observations of a kind.

        `likelihood` makes it of the table of items that were compared, the rule for ties, and these items' codes.
        """
        appearances = table.appearances.astype(np.int32) if kind == Comparisons.kind else None
        n_ties, n_decided = table.ties.sum(), table.wins.sum() + table.losses.sum()
        rule = self._rule(bool(n_ties), bool(n_decided))
        if rule.drop and n_ties:
            table = table.untied()
        table, items = compressed(table)

        def notes(estimate: Estimate) -> list[str]:
            sentences = []
            if n_ties and rule.drop:
                sentences.append(f"{n_ties:.0f} ties were left out")
            elif n_ties and rule.half:
                sentences.append(f"{n_ties:.0f} ties count as half a win for each side")
            elif n_ties:
                sentences.append(f"{n_ties:.0f} ties; {self._tie_note(rule, estimate.tie)}")
            return sentences

        return Prepared(
            likelihood(table, rule, items),
            items,
            table.beats(),
            lambda d, tie: self._share(rule, d, tie),
            notes,
            appearances,
            DEPENDENT.get(kind, ""),
            table.allows_unbounded_ties if rule.learns else lambda: False,
        )
