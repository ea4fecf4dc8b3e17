"""Sessions of comparative judgement (Kinnear, Jones & Davies, 2025)."""

from steelyard.experiments.base import Experiment
from steelyard.experiments.comparative_judgement.separation import ScaleSeparation
from steelyard.experiments.comparative_judgement.split_half import JudgeSplitHalf

EXPERIMENTS: tuple[type[Experiment], ...] = (ScaleSeparation, JudgeSplitHalf)

__all__ = ["EXPERIMENTS", "JudgeSplitHalf", "ScaleSeparation"]
