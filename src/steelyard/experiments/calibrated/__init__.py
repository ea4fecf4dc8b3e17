"""The calibrated scale and the information gain against the papers' estimates: fewer judgments, and never worse."""

from steelyard.experiments.base import Experiment
from steelyard.experiments.calibrated.comparisons import Comparisons
from steelyard.experiments.calibrated.held_out import HeldOut
from steelyard.experiments.calibrated.mixed import MixedProtocols
from steelyard.experiments.calibrated.never_worse import NeverWorse
from steelyard.experiments.calibrated.ratings import FewerRatings
from steelyard.experiments.calibrated.spam import Spam

EXPERIMENTS: tuple[type[Experiment], ...] = (FewerRatings, Comparisons, NeverWorse, MixedProtocols, HeldOut, Spam)

__all__ = ["EXPERIMENTS", "Comparisons", "FewerRatings", "HeldOut", "MixedProtocols", "NeverWorse", "Spam"]
