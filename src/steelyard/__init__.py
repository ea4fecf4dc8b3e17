"""Graded human judgments: collect them with as few questions as possible, and turn them into scores with intervals.

items ──▶ design picks a Task ──▶ protocol asks it ──▶ annotator answers ──▶ Judgment in the log
            ▲                                                                     │
            │                                                              observations
            └────────────── model (scores + uncertainty) ◀───────────────────────┘

    study = steelyard.Study.open("verbs")
    task = study.ask("ann-7")
    study.tell(task, {"ambulate": 4, "bring": 71, "cook": 66, "dwell": 22, "go": 98})
    study.scores()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.errors import (
        AnswerError,
        ConfigError,
        ConvergenceWarning,
        DataError,
        SteelyardError,
        SteelyardWarning,
        StoreError,
        TaskError,
    )
    from steelyard.formats import judgment_table, read_gold, read_items, read_judgments, read_table, write_table
    from steelyard.models.calibrated.scale import CalibratedScale
    from steelyard.models.choices.counting import Counting
    from steelyard.models.choices.maxdiff import MaxDiff
    from steelyard.models.comparisons.bounded_ranking import BoundedRanking
    from steelyard.models.comparisons.bradley_terry import BradleyTerry
    from steelyard.models.comparisons.cumulative_link import CumulativeLink
    from steelyard.models.comparisons.dominance import Dominance, average_dominance
    from steelyard.models.comparisons.elo import Elo
    from steelyard.models.comparisons.plackett_luce import PlackettLuce
    from steelyard.models.comparisons.thurstone import Thurstone
    from steelyard.models.comparisons.trueskill import TrueSkill
    from steelyard.models.comparisons.win_rate import WinRate
    from steelyard.models.fit import Fit
    from steelyard.models.gold import disputed_gold
    from steelyard.models.labels.dawid_skene import DawidSkene
    from steelyard.models.labels.gold_calibrated import GoldCalibrated, accuracy_by_annotators
    from steelyard.models.labels.mace import MACE
    from steelyard.models.labels.majority import Majority
    from steelyard.models.labels.weighted_vote import WeightedVote
    from steelyard.models.linking import LinkedScales, link_scales
    from steelyard.models.ratings.easl import EASL
    from steelyard.models.ratings.gaussian_calibration import GaussianCalibration
    from steelyard.models.ratings.harmonization import harmonization_agreement, harmonize
    from steelyard.models.ratings.mean import Mean
    from steelyard.models.ratings.median import Median, Mode
    from steelyard.models.systems.compare_systems import compare_systems
    from steelyard.models.systems.comparison import SystemComparison, SystemOptions
    from steelyard.observations import Choices, Comparisons, Index, Labels, Mixed, Rankings, Ratings
    from steelyard.records import Item, Judgment, Task
    from steelyard.reliability.agreement import agreement
    from steelyard.reliability.alpha import krippendorff_alpha
    from steelyard.reliability.comparison import compare_scorings
    from steelyard.reliability.cycles import cycle_consistency
    from steelyard.reliability.distributions import answer_distributions, soft_labels
    from steelyard.reliability.ita import ita_with_experts
    from steelyard.reliability.meta_annotator import meta_annotator
    from steelyard.reliability.position_bias import position_bias
    from steelyard.reliability.self_consistency import self_consistency
    from steelyard.reliability.separation import scale_separation
    from steelyard.reliability.split_half import (
        split_half,
        split_half_by_budget,
        split_half_by_subset,
        split_half_difference,
    )
    from steelyard.report import plot
    from steelyard.study import Study
    from steelyard.version import __version__

# Loaded on first use, so that `import steelyard` and the command line start at once.
_HOMES = {
    "steelyard.client": ("Client",),
    "steelyard.errors": (
        "AnswerError",
        "ConfigError",
        "ConvergenceWarning",
        "DataError",
        "SteelyardError",
        "SteelyardWarning",
        "StoreError",
        "TaskError",
    ),
    "steelyard.formats": ("judgment_table", "read_gold", "read_items", "read_judgments", "read_table", "write_table"),
    "steelyard.models.comparisons.bounded_ranking": ("BoundedRanking",),
    "steelyard.models.comparisons.bradley_terry": ("BradleyTerry",),
    "steelyard.models.comparisons.cumulative_link": ("CumulativeLink",),
    "steelyard.models.labels.dawid_skene": ("DawidSkene",),
    "steelyard.models.comparisons.dominance": (
        "Dominance",
        "average_dominance",
    ),
    "steelyard.models.comparisons.elo": ("Elo",),
    "steelyard.models.ratings.gaussian_calibration": ("GaussianCalibration",),
    "steelyard.models.gold": ("disputed_gold",),
    "steelyard.models.labels.gold_calibrated": (
        "GoldCalibrated",
        "accuracy_by_annotators",
    ),
    "steelyard.models.linking": ("LinkedScales", "link_scales"),
    "steelyard.models.ratings.harmonization": (
        "harmonization_agreement",
        "harmonize",
    ),
    "steelyard.models.labels.mace": ("MACE",),
    "steelyard.models.choices.maxdiff": ("MaxDiff",),
    "steelyard.models.ratings.median": (
        "Median",
        "Mode",
    ),
    "steelyard.models.comparisons.plackett_luce": ("PlackettLuce",),
    "steelyard.models.comparisons.thurstone": ("Thurstone",),
    "steelyard.models.comparisons.trueskill": ("TrueSkill",),
    "steelyard.models.labels.weighted_vote": ("WeightedVote",),
    "steelyard.models.comparisons.win_rate": ("WinRate",),
    "steelyard.models.calibrated.scale": ("CalibratedScale",),
    "steelyard.models.choices.counting": ("Counting",),
    "steelyard.models.ratings.easl": ("EASL",),
    "steelyard.models.fit": ("Fit",),
    "steelyard.models.labels.majority": ("Majority",),
    "steelyard.models.ratings.mean": ("Mean",),
    "steelyard.models.systems.compare_systems": ("compare_systems",),
    "steelyard.models.systems.comparison": ("SystemComparison", "SystemOptions"),
    "steelyard.observations": ("Choices", "Comparisons", "Index", "Labels", "Mixed", "Rankings", "Ratings"),
    "steelyard.records": ("Item", "Judgment", "Task"),
    "steelyard.reliability.agreement": ("agreement",),
    "steelyard.reliability.alpha": ("krippendorff_alpha",),
    "steelyard.reliability.comparison": ("compare_scorings",),
    "steelyard.reliability.cycles": ("cycle_consistency",),
    "steelyard.reliability.distributions": ("answer_distributions", "soft_labels"),
    "steelyard.reliability.ita": ("ita_with_experts",),
    "steelyard.reliability.meta_annotator": ("meta_annotator",),
    "steelyard.reliability.position_bias": ("position_bias",),
    "steelyard.reliability.self_consistency": ("self_consistency",),
    "steelyard.reliability.separation": ("scale_separation",),
    "steelyard.reliability.split_half": (
        "split_half",
        "split_half_by_budget",
        "split_half_by_subset",
        "split_half_difference",
    ),
    "steelyard.study": ("Study",),
    "steelyard.version": ("__version__",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Client",
    "AnswerError",
    "BoundedRanking",
    "BradleyTerry",
    "CalibratedScale",
    "Choices",
    "Comparisons",
    "ConfigError",
    "ConvergenceWarning",
    "Counting",
    "CumulativeLink",
    "DataError",
    "DawidSkene",
    "Dominance",
    "EASL",
    "Elo",
    "Fit",
    "GaussianCalibration",
    "GoldCalibrated",
    "Index",
    "Item",
    "Judgment",
    "Labels",
    "LinkedScales",
    "MACE",
    "Majority",
    "MaxDiff",
    "Mean",
    "Median",
    "Mixed",
    "Mode",
    "PlackettLuce",
    "Rankings",
    "Ratings",
    "SteelyardError",
    "SteelyardWarning",
    "StoreError",
    "Study",
    "SystemComparison",
    "SystemOptions",
    "Task",
    "TaskError",
    "Thurstone",
    "TrueSkill",
    "WeightedVote",
    "WinRate",
    "__version__",
    "accuracy_by_annotators",
    "agreement",
    "answer_distributions",
    "average_dominance",
    "compare_scorings",
    "compare_systems",
    "cycle_consistency",
    "disputed_gold",
    "harmonization_agreement",
    "harmonize",
    "ita_with_experts",
    "judgment_table",
    "krippendorff_alpha",
    "link_scales",
    "meta_annotator",
    "plot",
    "position_bias",
    "read_gold",
    "read_items",
    "read_judgments",
    "read_table",
    "scale_separation",
    "self_consistency",
    "soft_labels",
    "split_half",
    "split_half_by_budget",
    "split_half_by_subset",
    "split_half_difference",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name == "plot":
        return import_module("steelyard.report.plot")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'steelyard' has no attribute '{name}'")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
