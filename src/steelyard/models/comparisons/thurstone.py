"""Thurstone's Case V: scores in units of the noise in a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field
from scipy import special

from steelyard.models.comparisons import paired_kernels as kernels
from steelyard.models.comparisons.paired_model import PairedModel, TieRule
from steelyard.observations import FloatArray


@dataclass(frozen=True, slots=True)
class Thurstone(PairedModel):
    """P(i beats j) = Φ(θᵢ − θⱼ): the difference of two impressions has unit variance (Thurstone 1927, Case V).

    Ties are modelled by a threshold τ on the difference (Glenn & David 1960), count as half wins, or are left out. A
    difference of 1 is about 1.7 in Bradley–Terry, so the default prior N(0, 1.2²) is equivalent to N(0, 2²) there.
    """

    name: ClassVar[str] = "thurstone"

    prior_sd: Annotated[
        float | None, Field(gt=0, description="standard deviation of the scores' Gaussian prior; none or inf: no prior")
    ] = 1.2
    ties: Annotated[
        Literal["threshold", "half", "drop"],
        Field(description="tie model: threshold on the difference, half a win each, or left out"),
    ] = "threshold"

    def _rule(self, tied: bool, decided: bool) -> TieRule:
        if self.ties == "drop":
            return TieRule(kernels.PROBIT, drop=True)
        if self.ties == "half" or not tied or (not decided and self._prior_sd is None):
            return TieRule(kernels.PROBIT, half=True)
        return TieRule(kernels.GLENN_DAVID)

    def _share(self, rule: TieRule, d: FloatArray, tie: float) -> FloatArray:
        threshold = tie if rule.learns else 0.0
        return np.asarray((special.ndtr(d - threshold) + special.ndtr(d + threshold)) / 2)

    def _tie_note(self, rule: TieRule, tie: float) -> str:
        return f"differences below τ = {tie:.3g} are perceived as ties"
