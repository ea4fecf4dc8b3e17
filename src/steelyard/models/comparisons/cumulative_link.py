"""Cumulative link model of graded comparisons: the winner, and the strength of the preference."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import linalg, optimize, sparse, special

from steelyard.errors import SteelyardWarning
from steelyard.models.comparisons import ordinal_kernels as kernels
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.comparisons.latent import LatentScale, Prepared, compressed
from steelyard.models.comparisons.ordinal_kernels import GradedCells
from steelyard.models.comparisons.paired import PairTable, pairs_of
from steelyard.models.comparisons.paired_model import PairedModel, poisson_cells
from steelyard.models.comparisons.thurstone import Thurstone
from steelyard.models.inference.newton import DENSE_ITEMS, Estimate, Likelihood, Scatter, Terms, item_diagonal, maximise
from steelyard.models.inference.resampling import Units, row_weights
from steelyard.observations import Comparisons, FloatArray, IntArray

FEWEST_ANSWERS = 5
"""A strength with fewer answers is merged with its neighbour: its threshold could not be estimated."""

NOISE_EVIDENCE = -3.0
"""Log evidence below which strengths count as noise: 20 to 1 against them ("strong", Kass & Raftery 1995)."""

_PROBIT_PRIOR_SD = 1.2
"""Prior of the scores in units of Gaussian noise, as in Thurstone's model."""

_SELECTION_PRIOR_SD = 2.0
"""Prior of the scores when strengths are examined for a model without a prior."""


class Levels(NamedTuple):
    """The strengths that can be told apart, numbered from 1: that of each comparison (0: unknown), and their number."""

    of_row: NDArray[np.int8]
    n_levels: int
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, comparisons: Comparisons) -> Levels:
        """Number the strengths from the slightest; merge those with fewer than `FEWEST_ANSWERS` answers."""
        strength = comparisons.strength
        if not strength.any():
            return cls(strength, 0)
        values, counts = np.unique(strength[strength > 0], return_counts=True)
        level_of, level, total = np.zeros(int(values[-1]) + 1, np.int8), 0, 0
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            if level == 0 or (total >= FEWEST_ANSWERS and counts[values >= value].sum() >= FEWEST_ANSWERS):
                level, total = level + 1, 0
            total += count
            level_of[value] = level
        notes = []
        if level < len(values):
            by_strength = ", ".join(f"{count} of strength {value}" for value, count in zip(values, counts, strict=True))
            notes.append(
                f"{by_strength}: strengths with fewer than {FEWEST_ANSWERS} answers are merged with the next ones"
            )
        if level < 2:
            notes.append("only one strength of preference can be distinguished, so only the winners are used")
        return cls(level_of[strength], level, tuple(notes))


class Graded(NamedTuple):
    """Graded comparisons, counted: the pairs, equal answers about each (`cells`), and the cell of every comparison."""

    n_items: int
    first: IntArray
    second: IntArray
    cells: GradedCells
    cell_of_row: IntArray
    has_ties: bool
    n_cuts: int

    @classmethod
    def of(cls, comparisons: Comparisons, levels: Levels) -> tuple[Graded, PairTable, NDArray[np.int64]]:
        """Count comparisons; also return their pairs and the codes of the items that are compared."""
        level, n_levels = levels.of_row, levels.n_levels
        table, items = compressed(PairTable.count(pairs_of(comparisons), len(comparisons.items)))
        code = np.zeros(len(comparisons.items), np.int32)
        code[items] = np.arange(len(items), dtype=np.int32)
        left, right = code[comparisons.left], code[comparisons.right]
        outcome = np.where(left > right, -comparisons.outcome, comparisons.outcome)
        # Answers about a pair: 0 for a tie, 1 to n_levels, and n_levels + 1 where the strength is unknown.
        answer = np.where(outcome == 0, 0, np.where(level == 0, n_levels + 1, level)).astype(np.int64)
        key = (table.cell_of(left, right).astype(np.int64) * 2 + (outcome < 0)) * (n_levels + 2) + answer
        distinct, cell_of_row, count = np.unique(key, return_inverse=True, return_counts=True)
        pair_and_side, answer = np.divmod(distinct, n_levels + 2)
        is_unknown = answer == n_levels + 1
        cells = GradedCells(
            (pair_and_side // 2).astype(np.int32),
            np.where(pair_and_side % 2 == 1, -1, 1).astype(np.int8),
            np.where(is_unknown, 0, answer - 1).astype(np.int8),
            np.where(is_unknown, n_levels, answer).astype(np.int8),
            count.astype(np.float64),
        )
        has_ties = bool((outcome == 0).any())
        graded = cls(
            len(items), table.first, table.second, cells, cell_of_row.astype(np.int32), has_ties, n_cuts=n_levels
        )
        return graded, table, items


class GradedLikelihood(Likelihood):
    """The likelihood of counted graded comparisons; without ties the lowest cut is 0.

    With `anchor`, one comparison between equal items, spread over all answers, is added to the data, so that the cuts
    stay finite.
    """

    def __init__(self, graded: Graded, link: int, *, anchor: bool) -> None:
        self.graded, self.link, self.anchor = graded, link, anchor
        self.n_items, self.first, self.second = graded.n_items, graded.first, graded.second
        self.fixed = 0 if graded.has_ties else 1
        self.tie_start = self._start_cuts()[self.fixed :]

    def cuts(self, tie: FloatArray) -> FloatArray:
        """Return all cuts: 0, if it is fixed, and the parameters."""
        return np.concatenate([np.zeros(self.fixed), tie])

    def _start_cuts(self) -> FloatArray:
        cells, n_cuts = self.graded.cells, self.graded.n_cuts
        is_known = cells.high - cells.low == 1
        by_answer = np.bincount(cells.high[is_known], cells.times[is_known], n_cuts + 1) + 0.5
        if self.fixed:
            by_answer[0] = 0
        below = np.cumsum(by_answer)[:-1] / by_answer.sum()
        quantile = special.logit if self.link == kernels.LOGISTIC else special.ndtri
        return np.asarray(quantile((1 + below) / 2), np.float64)

    def start(self) -> FloatArray:
        """Start from the log-odds of each item's wins, as if all its opponents were average."""
        cells, n = self.graded.cells, self.n_items
        won = np.where(cells.low < 0, 0.5, cells.sign > 0) * cells.times
        lost = cells.times - won
        first, second = self.first[cells.pair], self.second[cells.pair]
        up = np.bincount(first, won, n) + np.bincount(second, lost, n)
        down = np.bincount(first, lost, n) + np.bincount(second, won, n)
        odds = np.log((up + 1) / (down + 1)) * (1.0 if self.link == kernels.LOGISTIC else 0.6)
        return np.asarray(odds - odds.mean())

    def at(self, theta: FloatArray, tie: FloatArray) -> Terms:
        """Evaluate; −∞ where the cuts do not rise from 0."""
        cuts, n, k = self.cuts(tie), self.n_items, self.n_ties
        if (np.diff(cuts, prepend=0.0)[self.fixed :] <= 0).any():
            nothing = np.zeros(n)
            return Terms(-np.inf, nothing, np.zeros(len(self.first)), np.zeros(k), np.zeros((n, k)), np.eye(k))
        value, gradient, weight, slope, mixed, bend = kernels.graded_pass(
            self.link, theta, cuts, self.first, self.second, self.graded.cells
        )
        if self.anchor:
            more, more_slope, more_bend = self._anchor(cuts)
            value, slope, bend = value + more, slope + more_slope, bend + more_bend
        own = slice(self.fixed, None)
        return Terms(value, gradient, weight, slope[own], mixed[:, own], bend[own, own])

    def _anchor(self, cuts: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        levels = np.arange(1, self.graded.n_cuts + 1, dtype=np.int8)
        tied = 0.0 if self.fixed else 0.5
        high = np.concatenate([[0], levels]).astype(np.int8)
        cells = GradedCells(
            np.zeros(len(high), np.int32),
            np.ones(len(high), np.int8),
            (high - 1).astype(np.int8),
            high,
            np.concatenate([[tied], np.full(len(levels), (1 - tied) / len(levels))]),
        )
        if self.fixed:
            pair, sign, low, high, times = cells
            cells = GradedCells(pair[1:], sign[1:], low[1:], high[1:], times[1:])
        ends = np.zeros(1, np.int32), np.ones(1, np.int32)
        value, _, _, slope, _, bend = kernels.graded_pass(self.link, np.zeros(2), cuts, *ends, cells)
        return value, slope, bend

    def scatter(self, theta: FloatArray, tie: FloatArray) -> Scatter:
        """Give each comparison's slope to its two items, and its slopes in the cuts to the cuts."""
        graded, n = self.graded, self.n_items
        slope, bend, cut_slope, cut_bend = kernels.graded_cells(
            self.link, theta, self.cuts(tie), self.first, self.second, graded.cells
        )
        cell = graded.cell_of_row
        pair, rows = graded.cells.pair[cell], np.arange(len(cell), dtype=np.int32)
        items = [self.first[pair], self.second[pair]]
        slopes, bends = [slope[cell], -slope[cell]], [bend[cell], bend[cell]]
        for parameter in range(self.n_ties):
            items.append(np.full(len(cell), n + parameter, np.int32))
            slopes.append(cut_slope[cell, self.fixed + parameter])
            bends.append(cut_bend[cell, self.fixed + parameter])
        return Scatter(np.tile(rows, len(items)), np.concatenate(items), np.concatenate(slopes), np.concatenate(bends))

    def skew(self, theta: FloatArray, tie: FloatArray, variance: FloatArray) -> FloatArray:
        """Sum over the counted answers."""
        return kernels.graded_skew(
            self.link, theta, self.cuts(tie), (self.first, self.second), self.graded.cells, variance
        )

    def perturbations(self, theta: FloatArray, tie: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw noise along every pair."""
        return self.edge_noise(self.at(theta, tie).weight, count, rng)

    def resamples(self, units: Units, replicates: int, seed: int) -> Iterator[Likelihood]:
        """Draw counts: one Poisson per cell where judgments are the unit, else sums over weighted units."""
        cells, cell_of_row = self.graded.cells, self.graded.cell_of_row
        if units.kind == "judgments":
            for count in poisson_cells(cells.times, replicates, np.random.default_rng(seed)):
                yield self._with_counts(count)
            return
        shape = (len(units), len(cells.times))
        by_unit = sparse.csr_array((np.ones(len(cell_of_row)), (units.of_row, cell_of_row)), shape=shape)
        numbered = Units(units.kind, units.names, np.arange(len(units), dtype=np.int32))
        for weight in row_weights(numbered, replicates, seed):
            yield self._with_counts(np.asarray(weight @ by_unit, np.float64))

    def _with_counts(self, count: FloatArray) -> GradedLikelihood:
        graded = self.graded._replace(cells=self.graded.cells._replace(times=np.asarray(count, np.float64)))
        return GradedLikelihood(graded, self.link, anchor=self.anchor)

    def is_unbounded(self) -> bool:
        """Whether the likelihood has no maximum: some scores and cuts contradict no answer, however far they grow.

        Every answer is two inequalities between a difference of scores and the cuts at its ends. A direction in which
        all of them hold, and one strictly, lowers no answer's probability.
        """
        cells, n, k, fixed = self.graded.cells, self.n_items, self.n_ties, self.fixed
        rows = []
        for pair, sign, low, high in zip(cells.pair, cells.sign, cells.low, cells.high, strict=True):
            difference = np.zeros(n + k)
            difference[self.first[pair]], difference[self.second[pair]] = sign, -sign
            for cut, way, is_negative in ((low, 1.0, low < 0), (high, -1.0, False)):
                if cut > self.graded.n_cuts - 1:
                    continue
                bound = way * difference
                parameter = (0 if is_negative else cut) - fixed
                if parameter >= 0:
                    bound[n + parameter] -= way * (-1.0 if is_negative else 1.0)
                rows.append(bound)
        holds = np.array(rows)
        solution = optimize.linprog(-holds.sum(axis=0), -holds, np.zeros(len(holds)), bounds=[(-1, 1)] * (n + k))
        return float(solution.fun or 0.0) < -1e-9


@dataclass(frozen=True, slots=True)
class CumulativeLink(LatentScale):
    """P(the difference of two impressions is below τ) = F(τ − θᵢ + θⱼ), for several thresholds τ (Agresti 1992).

    The thresholds are symmetric around 0, so that the order of presentation does not matter. Without strengths the
    model is that of Rao & Kupper (link logit) or of Glenn & David (link probit).
    """

    name: ClassVar[str] = "cumulative_link"
    accepts: ClassVar[tuple[str, ...]] = ("comparisons",)

    link: Annotated[
        Literal["logit", "probit"], Field(description="distribution of the noise: logit, or probit with prior_sd 1.2")
    ] = "logit"
    strength: Annotated[
        Literal["auto", "use", "ignore"],
        Field(description="strengths of preferences; auto: used unless they are unrelated to the scores"),
    ] = "auto"

    def _prepare(self, observations: Comparisons) -> Prepared:
        levels = self.levels(observations)
        notes = list(levels.notes)
        for note in notes:
            warnings.warn(f"{self.name}: {note}.", SteelyardWarning, stacklevel=4)
        if levels.n_levels < 2:
            return self._ungraded(observations, notes)
        graded, table, items = Graded.of(observations, levels)
        likelihood = GradedLikelihood(graded, self._link, anchor=self.has_prior)
        n_ties, n_known = int((observations.outcome == 0).sum()), int((levels.of_row > 0).sum())

        def describe(estimate: Estimate) -> list[str]:
            cuts = ", ".join(f"{cut:.3g}" for cut in likelihood.cuts(estimate.tie))
            ties = f"{n_ties} ties and the " if n_ties else "the "
            return [*notes, f"{ties}strengths of {n_known} preferences were used; thresholds {cuts}"]

        return Prepared(
            likelihood,
            items,
            table.beats(),
            lambda d, tie: self._share(d, float(likelihood.cuts(np.atleast_1d(tie))[0])),
            describe,
            table.appearances.astype(np.int32) if len(items) == len(observations.items) else None,
            "",
            likelihood.is_unbounded,
        )

    @property
    def _link(self) -> int:
        return kernels.LOGISTIC if self.link == "logit" else kernels.GAUSSIAN

    def _share(self, d: FloatArray, tie: float) -> FloatArray:
        below = special.expit if self.link == "logit" else special.ndtr
        return np.asarray((below(d - tie) + below(d + tie)) / 2)

    def levels(self, observations: Comparisons) -> Levels:
        """Number the strengths that are used."""
        if self.strength == "ignore":
            return Levels(np.zeros(len(observations), np.int8), 0)
        levels = Levels.of(observations)
        if self.strength == "use" or levels.n_levels < 2:
            return levels
        gain = self._strength_gain(observations, levels)
        if gain >= NOISE_EVIDENCE:
            return levels
        note = (
            "the strengths of the preferences are unrelated to the scores "
            f"(log evidence {gain:.0f} against using them), so only the winners are used"
        )
        return Levels(np.zeros(len(observations), np.int8), 0, (*levels.notes, note))

    def _ungraded(self, observations: Comparisons, notes: list[str]) -> Prepared:
        """Prepare the model of the same family without strengths."""
        model: PairedModel = BradleyTerry(ties="rao_kupper") if self.link == "logit" else Thurstone()
        prepared = replace(model, prior_sd=self.prior_sd)._prepare(observations)
        return prepared._replace(notes=lambda estimate: [*notes, *prepared.notes(estimate)])

    def _strength_gain(self, observations: Comparisons, levels: Levels) -> float:
        """Return by how much using the strengths raises the log evidence over strengths that are pure noise.

        Both models have as many parameters: thresholds in one; in the other a tie parameter and the proportions of the
        strengths, which do not depend on the items.
        """
        graded = GradedLikelihood(Graded.of(observations, levels)[0], self._link, anchor=True)
        counts = np.bincount(levels.of_row[levels.of_row > 0])[1:]
        noise = float((counts * np.log(counts / counts.sum())).sum())
        plain = self._ungraded(observations, []).likelihood
        return self._log_evidence(graded) - self._log_evidence(plain) - noise

    def _log_evidence(self, likelihood: Likelihood) -> float:
        """Return the log marginal likelihood of the scores by Laplace's method, up to a constant."""
        prior_sd = self._prior_sd or _SELECTION_PRIOR_SD
        estimate = maximise(likelihood, prior_sd=prior_sd, tolerance=1e-4, max_iterations=self.max_iterations)
        value = estimate.terms.value - 0.5 * estimate.precision * float(estimate.theta @ estimate.theta)
        n = likelihood.n_items
        if n > DENSE_ITEMS:
            volume = np.log(item_diagonal(likelihood, estimate.terms.weight, estimate.precision)).sum()
        else:
            root = linalg.cholesky(estimate.matrix(likelihood)[:n, :n].T, lower=True, check_finite=False)
            volume = 2 * np.log(np.diag(root)).sum()
        return float(value - 0.5 * volume)


def strength_levels(comparisons: Comparisons) -> Levels:
    """Number the strengths that the calibrated scale uses; there are none if they are unrelated to the scores."""
    return CumulativeLink(link="probit", prior_sd=_PROBIT_PRIOR_SD).levels(comparisons)
