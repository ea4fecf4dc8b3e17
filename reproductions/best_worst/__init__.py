"""Best–worst scaling against rating scales (Kiritchenko & Mohammad, 2017)."""

from reproductions.base import Experiment
from reproductions.best_worst.against_rating_scale import AgainstRatingScale
from reproductions.best_worst.counting import CountedScores
from reproductions.best_worst.real_comments import RealComments
from reproductions.best_worst.repeats import Repeats
from reproductions.best_worst.score_differences import ScoreDifferences
from reproductions.best_worst.side_by_side import SideBySide
from reproductions.best_worst.split_half_by_budget import SplitHalfByBudget

EXPERIMENTS: tuple[type[Experiment], ...] = (
    CountedScores,
    SplitHalfByBudget,
    AgainstRatingScale,
    ScoreDifferences,
    Repeats,
    RealComments,
    SideBySide,
)

__all__ = [
    "Repeats",
    "EXPERIMENTS",
    "AgainstRatingScale",
    "CountedScores",
    "RealComments",
    "ScoreDifferences",
    "SideBySide",
    "SplitHalfByBudget",
]
