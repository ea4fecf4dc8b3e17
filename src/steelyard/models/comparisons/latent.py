"""Common parts of Bradley–Terry, Thurstone, Plackett–Luce and maxdiff: settings, prior, intervals, warnings."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from steelyard.errors import DataError, NoEvidenceError, SteelyardWarning
from steelyard.models.comparisons.paired import Gaps, PairTable, expected_share
from steelyard.models.fit import Fit, Model
from steelyard.models.inference.laplace import around, bootstrap, posterior, sandwich, settle
from steelyard.models.inference.newton import Estimate, Likelihood, maximise, warn_unless_converged
from steelyard.models.inference.resampling import Units
from steelyard.models.table import Uncertainty, aligned_draws, count_by_item, score_table
from steelyard.models.unscored import null_without_evidence
from steelyard.observations import FloatArray, Index, IntArray, Observations

LEAST_UNITS = 10
"""Fewer annotators than this tell too little of how annotators differ; judgments are the unit then."""


UNBOUNDED_TIES = "wins and ties never contradict each other, so that the tie parameter could grow without bound"


class Prepared(NamedTuple):
    """Prepared observations: the likelihood of the items that appear, and the inputs of the score table."""

    likelihood: Likelihood
    items: NDArray[np.int64]
    """The codes of the likelihood's items."""
    beats: tuple[IntArray, IntArray]
    """Winners and losers, in the likelihood's own codes."""
    share: Callable[[FloatArray, float], FloatArray]
    """Expected share of wins at a difference of scores and a tie parameter."""
    notes: Callable[[Estimate], list[str]]
    appearances: IntArray | None = None
    """Number of comparisons of each item, if they were counted with the pairs."""
    dependent: str = ""
    """Why judgments depend on one another beyond the scores, where they do."""
    is_tie_unbounded: Callable[[], bool] = lambda: False
    """Tells whether the likelihood alone lets the tie parameter grow without bound, and the scores with it."""


class Sample(ABC):
    """Counts and resampling units of the judgments, which a fit needs beside their likelihood."""

    items: Index

    @abstractmethod
    def units(self) -> Units:
        """Choose the units that are resampled."""

    @abstractmethod
    def single(self) -> Units:
        """Resample single judgments."""

    @abstractmethod
    def counts(self, n_judgments: IntArray | None) -> tuple[IntArray, IntArray | None]:
        """Return the number of judgments of each item (`n_judgments`, if counted before) and of its annotators."""


class ObservedSample(Sample):
    """Observations in memory."""

    def __init__(self, observations: Observations) -> None:
        self.items = observations.items
        self._observations = observations

    def units(self) -> Units:
        """Choose the annotators where known, else the tasks, else the judgments."""
        units = Units.of(self._observations)
        if units.kind == "judgments":
            return units
        return replace(units, size=len(np.unique(units.of_row)))

    def single(self) -> Units:
        """Number the observations."""
        return Units("judgments", (), np.arange(len(self._observations), dtype=np.int32))

    def counts(self, n_judgments: IntArray | None) -> tuple[IntArray, IntArray | None]:
        """Count them."""
        return appearances(self._observations, n_judgments)


@dataclass(frozen=True, slots=True)
class LatentScale(Model):
    """A latent score θ for every item, which determines the probabilities of all answers, with a prior N(0, prior_sd²).

    The prior keeps the scores of items finite that never lost, never won or are not connected with the other items.
    Its weight decreases as judgments are added. Scores are centred at 0.
    """

    prior_sd: Annotated[
        float | None, Field(gt=0, description="standard deviation of the scores' Gaussian prior; none or inf: no prior")
    ] = 2.0
    interval: Annotated[
        Literal["auto", "posterior", "sandwich", "bootstrap"],
        Field(description="interval method; auto: posterior, or sandwich if judgments are dependent"),
    ] = "auto"
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 400
    seed: Annotated[int, Field(ge=0, description="random seed")] = 0
    tolerance: Annotated[float, Field(gt=0, description="convergence tolerance: size of the last Newton step")] = 1e-7
    max_iterations: Annotated[int, Field(ge=1, description="maximum number of Newton iterations")] = 100

    @abstractmethod
    def _prepare(self, observations: Any) -> Prepared:
        """Make the likelihood."""

    @property
    def has_prior(self) -> bool:
        """Whether there is a prior on the scores."""
        return self._prior_sd is not None

    @property
    def _prior_sd(self) -> float | None:
        return None if self.prior_sd is None or np.isinf(self.prior_sd) else self.prior_sd

    @null_without_evidence
    def fit(self, observations: Any) -> Fit:
        """Score every item, centred at 0."""
        self.check_kind(observations)
        return self.solve(self._prepare(observations), ObservedSample(observations))

    def point_scores(self, observations: Any) -> FloatArray:
        """Return the scores of `fit` by item code, without intervals and warnings; NaN for items not judged."""
        ready = self._prepare(observations)
        estimate = maximise(
            ready.likelihood, prior_sd=self._prior_sd, tolerance=1e-4, max_iterations=self.max_iterations
        )
        return _widened(estimate.theta - estimate.theta.mean(), ready.items, len(observations.items))

    def solve(self, ready: Prepared, sample: Sample) -> Fit:
        """Score every item from a likelihood made ready."""
        gap_notes = self._gaps(ready, sample.items)
        estimate = maximise(
            ready.likelihood,
            prior_sd=self._prior_sd,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )
        warn_unless_converged(self.name, estimate)
        theta = estimate.theta - estimate.theta.mean()
        uncertainty, notes = self._uncertainty(ready, sample, estimate)
        if ready.likelihood.n_items == 1:
            notes.append("a single item: its score is 0 by definition")
        uncertainty = _of_all(uncertainty, ready.items, len(sample.items))
        table = self._table(ready, sample, theta, estimate.tie, uncertainty)
        return Fit(
            self.name,
            self.settings(),
            table,
            notes=(*gap_notes, *ready.notes(estimate), *notes),
            iterations=estimate.iterations,
            converged=estimate.converged,
            draws=aligned_draws(table, sample.items, uncertainty.draws),
        )

    def _gaps(self, ready: Prepared, items: Index) -> list[str]:
        ids = items.ids
        gaps = Gaps.find(*ready.beats, [ids[code] for code in ready.items])
        sentences = gaps.sentences()
        if self._prior_sd is None and gaps.finite_without_prior and ready.is_tie_unbounded():
            raise DataError(
                f"{self.name} has no finite scores without a prior: {UNBOUNDED_TIES}.",
                'Set prior_sd (2 is the default of bradley_terry), or count ties as half wins (ties = "half").',
            )
        if self._prior_sd is None and not gaps.finite_without_prior:
            raise DataError(
                f"{self.name} has no finite scores without a prior: {'; '.join(sentences)}.",
                "Set prior_sd (2 is the default of bradley_terry), or judge the missing pairs.",
            )
        sentences = [f"{sentence}, so the prior determines it" for sentence in sentences]
        for sentence in sentences:
            warnings.warn(f"{self.name}: {sentence}.", SteelyardWarning, stacklevel=5)
        return sentences

    def _uncertainty(self, ready: Prepared, sample: Sample, estimate: Estimate) -> tuple[Uncertainty, list[str]]:
        how = self.interval
        notes: list[str] = []
        if how == "auto":
            how = "sandwich" if ready.dependent else "posterior"
        elif how == "posterior" and ready.dependent:
            notes.append(
                f"the posterior assumes independent judgments, but {ready.dependent}: its intervals are too narrow"
            )
        settled, root = settle(ready.likelihood, estimate) if how != "bootstrap" else (estimate, None)
        if how == "posterior":
            spread = posterior(ready.likelihood, settled, self.draws, self.seed, root)
            return around("posterior", settled, spread, self.level), notes
        units = self._units(sample, notes)
        label = f"{how}({units.kind})"
        if how == "sandwich":
            spread = sandwich(ready.likelihood, estimate, settled, units, self.draws, self.seed)
            return around(label, settled, spread, self.level, len(units)), notes
        draws = bootstrap(ready.likelihood, estimate, units, self.draws, self.seed, self._prior_sd)
        if lost := int(np.isnan(draws[:, 0]).sum()):
            notes.append(f"{lost} of {len(draws)} resamples had no finite fit and were left out of the intervals")
        return Uncertainty.from_draws(label, draws, self.level), notes

    @staticmethod
    def _units(sample: Sample, notes: list[str]) -> Units:
        units = sample.units()
        if units.kind == "judgments" or units.size >= LEAST_UNITS:
            return units
        notes.append(f"only {units.size} {units.kind}: too few to resample, so single judgments are resampled instead")
        return sample.single()

    def _table(
        self, ready: Prepared, sample: Sample, theta: FloatArray, tie: float, uncertainty: Uncertainty
    ) -> pl.DataFrame:
        share = expected_share(theta, lambda d: ready.share(d, tie))
        judgments, annotators = sample.counts(ready.appearances)
        theta, share = (_widened(values, ready.items, len(sample.items)) for values in (theta, share))
        return score_table(sample.items, theta, share, uncertainty, judgments, annotators, level=self.level)


def _widened(values: FloatArray, items: NDArray[np.int64], n: int) -> FloatArray:
    """Put NaN for the items that do not appear; the last axis is that of items."""
    if len(items) == n:
        return values
    wide = np.full((*values.shape[:-1], n), np.nan)
    wide[..., items] = values
    return wide


def _of_all(uncertainty: Uncertainty, items: NDArray[np.int64], n: int) -> Uncertainty:
    parts = (uncertainty.draws, uncertainty.sd, uncertainty.lower, uncertainty.upper)
    return Uncertainty(uncertainty.how, *(_widened(part, items, n) for part in parts))


def appearances(observations: Observations, shown: IntArray | None) -> tuple[IntArray, IntArray | None]:
    """Return how many observations show each item and, where known, how many annotators judged it."""
    if shown is not None and not observations.knows_annotators:
        return shown, None
    return count_by_item(observations, *observations.incidence())


def compressed(table: PairTable) -> tuple[PairTable, NDArray[np.int64]]:
    """Leave out the items without a pair; return their codes beside."""
    items = np.flatnonzero(table.appearances)
    if not len(items):
        raise NoEvidenceError("no two items are compared in these judgments.", "Collect comparisons between items.")
    return table.among(items), items
