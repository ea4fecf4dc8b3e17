"""A reliability statistic: key, label, value, interval and notes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from steelyard.errors import ConfigError, did_you_mean
from steelyard.formats.tables import pandas_frame

LABELS = {
    "alpha_nominal": "alpha (nominal)",
    "alpha_ordinal": "alpha (ordinal)",
    "alpha_interval": "alpha (interval)",
    "alpha_ratio": "alpha (ratio)",
    "alpha_nominal_best": "alpha (nominal, best)",
    "alpha_nominal_worst": "alpha (nominal, worst)",
    "observed_agreement": "observed agreement",
    "observed_agreement_best": "observed agreement (best)",
    "observed_agreement_worst": "observed agreement (worst)",
    "mean_absolute_difference": "mean absolute difference",
    "kappa_fixed_chance": "kappa (fixed chance)",
    "fleiss_kappa": "Fleiss' kappa",
    "cohen_kappa": "Cohen's kappa (mean)",
    "ita_pearson": "ITA (Pearson)",
    "ita_spearman": "ITA (Spearman)",
    "expert_expert": "experts with other experts",
    "expert_all": "experts with everybody",
    "non_expert_expert": "others with experts",
    "non_expert_all": "others with everybody",
    "absolute_majority": "absolute majority",
    "position_bias": "position bias (proportion left)",
    "inconsistency_rate": "inconsistency rate",
    "inconsistency_rate_best": "inconsistency rate (best)",
    "inconsistency_rate_worst": "inconsistency rate (worst)",
    "intra_annotator_agreement": "intra-annotator agreement",
    "intra_annotator_agreement_best": "intra-annotator agreement (best)",
    "intra_annotator_agreement_worst": "intra-annotator agreement (worst)",
    "intra_annotator_kappa": "intra-annotator kappa (fixed chance)",
    "difference_if_inconsistent": "mean absolute difference (inconsistent)",
    "difference_of_repeats": "mean absolute difference (repeats)",
    "correlation_of_repeats": "correlation of repeats",
    "scale_separation_reliability": "scale separation reliability",
    "separation_index": "separation G",
    "decision_consistency": "decision consistency",
    "cyclic_graphs": "graphs with a cycle",
    "items_in_no_cycle": "items in no cycle",
    "circular_triads": "circular triads",
    "coefficient_of_consistence": "coefficient of consistence",
    "split_half_spearman": "split-half (Spearman)",
    "split_half_spearman_corrected": "split-half (Spearman, Spearman–Brown corrected)",
    "split_half_pearson": "split-half (Pearson)",
    "split_half_pearson_corrected": "split-half (Pearson, Spearman–Brown corrected)",
    "split_half_spearman_fixed_items": "split-half (Spearman, fixed items)",
    "split_half_spearman_corrected_fixed_items": "split-half (Spearman, Spearman–Brown corrected, fixed items)",
    "split_half_pearson_fixed_items": "split-half (Pearson, fixed items)",
    "split_half_pearson_corrected_fixed_items": "split-half (Pearson, Spearman–Brown corrected, fixed items)",
    "split_half_difference_spearman": "difference of split-half (Spearman)",
    "split_half_difference_pearson": "difference of split-half (Pearson)",
    "mean_score_difference": "mean score difference",
    "median_score_difference": "median score difference",
    "mean_rank_difference": "mean rank difference",
    "median_rank_difference": "median rank difference",
    "pair_correlation": "correlation of two annotators",
    "flip_rate": "flips with the order",
    "length_bias": "length bias",
    "texts_with_errors": "texts with any error",
    "agreement_on_any_error": "agreement on whether there is any error",
    "character_f1": "character F1",
    "character_f1_same_severity": "character F1 (same severity)",
    "gamma": "γ",
    "spearman": "Spearman",
    "pearson": "Pearson",
}
"""The display text of every statistic. Code identifies statistics by their keys."""

_ALPHA = "Agreement between annotators beyond chance: 1 is perfect, 0 is chance; .80 is good, below .67 is low."
_KAPPA = "Agreement beyond chance: 1 is perfect, 0 is chance; .60 to .80 is substantial (Landis & Koch 1977)."
_OBSERVED = "Proportion of pairs of answers about the same items that agree. Not corrected for chance."
_ITA = "Mean correlation of each annotator with the mean of the other annotators: 1 is perfect; .70 and above is good."
_SPLIT = "Correlation of scores from two random halves of the judgments: how well half of the data would replicate."
_CORRECTED = (
    "Split-half correlation extrapolated to all judgments: reliability of the scores. .80 is good, .90 excellent."
)
_FIXED_ITEMS = "The same value; its interval is for these items, judged by others, and not for other items too."
_INCONSISTENT = "Proportion of repeated questions to which the same annotator gave a different answer. Lower is better."
_INTRA = "Proportion of repeated questions to which the same annotator gave the same answer. Higher is better."
_EXPERTS = "Mean correlation between annotators of these groups: 1 is perfect."
_SCORE_GAP = "Difference between scores from two independent sets of judgments. Lower is better."
_RANK_GAP = "Difference between ranks from two independent sets of judgments. Lower is better."

EXPLANATIONS = {
    **dict.fromkeys((key for key in LABELS if key.startswith("alpha_")), _ALPHA),
    **dict.fromkeys((key for key in LABELS if key.startswith("observed_agreement")), _OBSERVED),
    **dict.fromkeys(("kappa_fixed_chance", "fleiss_kappa", "cohen_kappa", "intra_annotator_kappa"), _KAPPA),
    **dict.fromkeys(("ita_pearson", "ita_spearman"), _ITA),
    **dict.fromkeys(("split_half_spearman", "split_half_pearson"), _SPLIT),
    **dict.fromkeys(("split_half_spearman_corrected", "split_half_pearson_corrected"), _CORRECTED),
    **dict.fromkeys((key for key in LABELS if key.endswith("_fixed_items")), _FIXED_ITEMS),
    **dict.fromkeys((key for key in LABELS if key.startswith("inconsistency_rate")), _INCONSISTENT),
    **dict.fromkeys((key for key in LABELS if key.startswith("intra_annotator_agreement")), _INTRA),
    **dict.fromkeys(("expert_expert", "expert_all", "non_expert_expert", "non_expert_all"), _EXPERTS),
    **dict.fromkeys(("mean_score_difference", "median_score_difference"), _SCORE_GAP),
    **dict.fromkeys(("mean_rank_difference", "median_rank_difference"), _RANK_GAP),
    "mean_absolute_difference": "Mean distance between two ratings of the same item, on the scale. Lower is better.",
    "absolute_majority": "Proportion of items for which more than half of the annotators chose the same label.",
    "position_bias": "Proportion of choices for the left item: .50 means that the position does not matter.",
    "difference_if_inconsistent": "Mean distance between repeated ratings that differ, on the scale.",
    "difference_of_repeats": "Mean distance between repeated ratings by the same annotator. Lower is better.",
    "correlation_of_repeats": "Correlation of repeated ratings by the same annotator: 1 is perfect.",
    "scale_separation_reliability": "Proportion of the scores' variance that is not error: .80 is good, .90 excellent.",
    "separation_index": "Ratio of the items' standard deviation to the standard error: 2 corresponds to .80, 3 to .90.",
    "decision_consistency": "Probability that a repeated study would order two items the same way.",
    "cyclic_graphs": "Proportion of sets of comparisons with a contradiction (A > B > C > A). Lower is better.",
    "items_in_no_cycle": "Proportion of items that take part in no contradiction. Higher is better.",
    "circular_triads": "Number of contradictions among three items (A > B > C > A). Lower is better.",
    "coefficient_of_consistence": "1 without contradictions, 0 with as many as possible (Kendall & Smith 1940).",
    "split_half_difference_spearman": "Difference between two split-half reliabilities; 0 means equally reliable.",
    "split_half_difference_pearson": "Difference between two split-half reliabilities; 0 means equally reliable.",
    "flip_rate": "Proportion of pairs that are decided differently when their order is reversed. Lower is better.",
    "length_bias": "How much more a judge prefers longer items than people do: 0 means no difference.",
    "pair_correlation": "Correlation of two annotators' ratings of the same item: 1 is perfect, 0 no relation.",
    "texts_with_errors": "Proportion of judged texts in which at least one error was marked.",
    "agreement_on_any_error": "Proportion of pairs of annotations of a text that agree on whether it has any error.",
    "character_f1": "Overlap of the characters that two annotators marked: 1 is the same characters, 0 none in common.",
    "character_f1_same_severity": "Overlap of the characters that two annotators marked with the same severity.",
    "gamma": "Agreement on places and severities of marks: 1 is perfect, 0 is chance (Mathet et al. 2015).",
    "spearman": "Rank correlation: 1 is the same order, 0 no relation.",
    "pearson": "Linear correlation: 1 is perfect, 0 no relation.",
}
"""What each statistic is and which values are good, in one or two sentences."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic, as a paper would report it.

    Attributes
    ----------
    key
        Identifier for code, such as ``alpha_interval``.
    value, lower, upper
        The value and the ends of its interval; None (never NaN) if undefined, with the reason in `note`.
    interval
        How the interval was computed, such as ``bootstrap(items)``; empty if there is none.
    n
        Number of units (items, pairs, tasks, tuples or annotators, as named by `interval`) it is computed from.
    note
        Explanation for the reader in plain words.
    label
        Display text; by default that of the key.
    """

    key: str
    value: float | None
    lower: float | None = None
    upper: float | None = None
    interval: str = ""
    n: int = 0
    note: str = ""
    label: str = ""

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", LABELS.get(self.key, self.key))


@dataclass(frozen=True, slots=True)
class Significance:
    """A tested statistic: the probability of a value at least as far from `null` if `null` were true.

    `p_value` is None if the test is undefined, with the reason in the statistic's note.
    """

    statistic: Statistic
    p_value: float | None
    null: float
    test: str


class Statistics:
    """Base class of results with several statistics, with a table and access by key."""

    __slots__ = ()

    statistics: tuple[Statistic, ...]

    @property
    def table(self) -> pl.DataFrame:
        """The statistics as a table, one row each."""
        return statistics_table(self.statistics)

    def to_pandas(self) -> Any:
        """Return the statistics as a pandas frame, one row each."""
        return pandas_frame(self.table)

    def __getitem__(self, key: str) -> Statistic:
        """Return the statistic with this key."""
        for statistic in self.statistics:
            if statistic.key == key:
                return statistic
        keys = [statistic.key for statistic in self.statistics]
        raise ConfigError(f"there is no statistic '{key}' here.", did_you_mean(key, keys))


def statistics_table(statistics: Iterable[Statistic]) -> pl.DataFrame:
    """Tabulate statistics, one row each: statistic (its key), label, value, lower, upper, interval, n, note."""
    return pl.DataFrame(
        [(s.key, s.label, s.value, s.lower, s.upper, s.interval, s.n, s.note) for s in statistics],
        schema={
            "statistic": pl.String,
            "label": pl.String,
            "value": pl.Float64,
            "lower": pl.Float64,
            "upper": pl.Float64,
            "interval": pl.String,
            "n": pl.Int64,
            "note": pl.String,
        },
        orient="row",
    )
