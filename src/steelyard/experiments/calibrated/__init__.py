"""The calibrated scale and the information gain beside the usual ways: what they save."""

from steelyard.experiments.base import Experiment
from steelyard.experiments.calibrated.comparisons import Comparisons

EXPERIMENTS: tuple[type[Experiment], ...] = (Comparisons,)

__all__ = ["EXPERIMENTS", "Comparisons"]
