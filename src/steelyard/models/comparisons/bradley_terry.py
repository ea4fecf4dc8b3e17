"""Bradley–Terry: scores whose differences are the log-odds of winning a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import special

from steelyard.errors import DataError
from steelyard.models.comparisons import paired_kernels as kernels
from steelyard.models.comparisons.latent import compressed
from steelyard.models.comparisons.paired import Gaps, PairTable, pairs_of
from steelyard.models.comparisons.paired_model import PairedModel, PairLikelihood, TieRule
from steelyard.models.inference.newton import inverse, maximise, warn_unless_converged
from steelyard.observations import Comparisons, FloatArray


@dataclass(frozen=True, slots=True)
class BradleyTerry(PairedModel):
    """P(i beats j) = σ(θᵢ − θⱼ) (Bradley & Terry 1952).

    Ties are modelled by Davidson's (1970) or Rao & Kupper's (1967) parameter, count as half wins, or are left out.
    Under the default prior N(0, 2²), the difference of two random items has a standard deviation of 2.8, so that a
    win probability of 90 % is common. The prior carries about as much information as one comparison with an equal
    item.
    """

    name: ClassVar[str] = "bradley_terry"

    ties: Annotated[
        Literal["davidson", "rao_kupper", "half", "drop"],
        Field(description="tie model: Davidson, Rao–Kupper, half a win each, or left out"),
    ] = "davidson"

    def _rule(self, tied: bool, decided: bool) -> TieRule:
        if self.ties == "drop":
            return TieRule(kernels.LOGIT, drop=True)
        # A tie parameter needs ties, and without a prior decisions too.
        if self.ties == "half" or not tied or (not decided and self._prior_sd is None):
            return TieRule(kernels.LOGIT, half=True)
        return TieRule(kernels.DAVIDSON if self.ties == "davidson" else kernels.RAO_KUPPER)

    def _share(self, rule: TieRule, d: FloatArray, tie: float) -> FloatArray:
        if rule.family == kernels.DAVIDSON:
            top = np.maximum(np.abs(d) / 2, tie)
            win, loss, draw = np.exp(d / 2 - top), np.exp(-d / 2 - top), np.exp(tie - top)
            return np.asarray((win + draw / 2) / (win + loss + draw))
        if rule.family == kernels.RAO_KUPPER:
            return np.asarray((special.expit(d - tie) + special.expit(d + tie)) / 2)
        return np.asarray(special.expit(d))

    def _tie_note(self, rule: TieRule, tie: float) -> str:
        name = "Davidson's ν" if rule.family == kernels.DAVIDSON else "Rao–Kupper's θ"
        return f"{name} = {np.exp(tie):.3g}"


class Unpenalised(NamedTuple):
    """Scores without a prior, with their standard errors; `items` are the codes of those that were compared."""

    items: NDArray[np.int64]
    theta: FloatArray
    se: FloatArray
    """From the whole information matrix, of scores centred at 0."""
    se_alone: FloatArray
    """From its diagonal alone, 1/√Iᵢᵢ, as comparative judgement software reports it."""
    covariance: FloatArray


def unpenalised(comparisons: Comparisons, adjustment: float = 0.0) -> Unpenalised:
    """Fit without a prior, ties as half wins.

    `adjustment` ε replaces an item's wins w of m by ε + (m − 2ε)/m · w, as `sirt::btm` does (ε = 0.3 there), which
    keeps items finite that won or lost everything.
    """
    table, items = compressed(PairTable.count(pairs_of(comparisons), len(comparisons.items)))
    table = table.halved()
    if adjustment == 0:
        ids = comparisons.items.ids
        gaps = Gaps.find(*table.beats(), [ids[code] for code in items])
        if not gaps.finite_without_prior:
            raise DataError(f"no finite scores: {'; '.join(gaps.sentences())}.", "Set an adjustment, such as 0.3.")
    n = len(items)
    count = table.wins + table.losses
    appearance_count = np.bincount(table.first, count, n) + np.bincount(table.second, count, n)
    won = np.bincount(table.first, table.wins, n) + np.bincount(table.second, table.losses, n)
    pull = adjustment + (appearance_count - 2 * adjustment) / appearance_count * won - appearance_count / 2
    # Bradley–Terry sees the data through wins by item alone, so they can be set without touching any pair. The
    # adjusted wins need not add up to the comparisons; what is over would push all scores together, and is shared.
    even = PairTable(n, table.first, table.second, count / 2, count / 2, table.ties)
    likelihood = PairLikelihood(even, TieRule(kernels.LOGIT))
    estimate = maximise(likelihood, prior_sd=None, pull=pull - pull.mean(), tolerance=1e-9)
    warn_unless_converged("bradley_terry", estimate)
    covariance = inverse(estimate.matrix(likelihood))
    covariance -= covariance.mean(axis=0)
    covariance -= covariance.mean(axis=1, keepdims=True)
    weight = estimate.terms.weight
    information = np.bincount(table.first, weight, n) + np.bincount(table.second, weight, n)
    return Unpenalised(items, estimate.theta, np.sqrt(np.diag(covariance)), 1 / np.sqrt(information), covariance)
