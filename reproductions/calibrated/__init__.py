"""The calibrated scale and the adaptive design against the papers' estimates: fewer judgments, and non-inferior."""

from reproductions.base import Experiment
from reproductions.calibrated.best_worst import BestWorst
from reproductions.calibrated.comparisons import Comparisons
from reproductions.calibrated.held_out import HeldOut
from reproductions.calibrated.mixed import MixedProtocols
from reproductions.calibrated.non_inferior import NonInferior
from reproductions.calibrated.panels import Panels
from reproductions.calibrated.ratings import FewerRatings
from reproductions.calibrated.replayed_comparisons import ReplayedComparisons
from reproductions.calibrated.spam import Spam

EXPERIMENTS: tuple[type[Experiment], ...] = (
    FewerRatings,
    Comparisons,
    ReplayedComparisons,
    BestWorst,
    NonInferior,
    Panels,
    MixedProtocols,
    HeldOut,
    Spam,
)

__all__ = [
    "EXPERIMENTS",
    "BestWorst",
    "Comparisons",
    "FewerRatings",
    "HeldOut",
    "MixedProtocols",
    "NonInferior",
    "Panels",
    "ReplayedComparisons",
    "Spam",
]
