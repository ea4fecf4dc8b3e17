"""Reliability of judgments: agreement between and within annotators, and stability of scores."""

from __future__ import annotations

from steelyard.reliability.agreement import Agreement, agreement
from steelyard.reliability.alpha import krippendorff_alpha
from steelyard.reliability.comparison import ScoringComparison, compare_scorings
from steelyard.reliability.cycles import Cycles, cycle_consistency
from steelyard.reliability.distributions import answer_distributions, soft_labels
from steelyard.reliability.gamma import Gamma, gamma
from steelyard.reliability.ita import ita_with_experts
from steelyard.reliability.marks import MarkAgreement, mark_agreement
from steelyard.reliability.meta_annotator import MetaAnnotator, meta_annotator
from steelyard.reliability.position_bias import position_bias
from steelyard.reliability.self_consistency import SelfConsistency, self_consistency
from steelyard.reliability.separation import Separation, scale_separation
from steelyard.reliability.split_half import (
    SplitHalf,
    split_half,
    split_half_by_budget,
    split_half_by_subset,
    split_half_difference,
)
from steelyard.reliability.statistic import Significance, Statistic

__all__ = [
    "agreement",
    "answer_distributions",
    "Agreement",
    "compare_scorings",
    "cycle_consistency",
    "Cycles",
    "Statistic",
    "gamma",
    "Gamma",
    "ita_with_experts",
    "krippendorff_alpha",
    "mark_agreement",
    "MarkAgreement",
    "meta_annotator",
    "MetaAnnotator",
    "position_bias",
    "scale_separation",
    "ScoringComparison",
    "self_consistency",
    "SelfConsistency",
    "Separation",
    "Significance",
    "soft_labels",
    "split_half",
    "split_half_by_budget",
    "split_half_by_subset",
    "split_half_difference",
    "SplitHalf",
]
