"""Sessions of comparative judgement (Kinnear, Jones & Davies, 2025)."""

from reproductions.base import Experiment
from reproductions.comparative_judgement.separation import ScaleSeparation
from reproductions.comparative_judgement.split_half import JudgeSplitHalf

EXPERIMENTS: tuple[type[Experiment], ...] = (ScaleSeparation, JudgeSplitHalf)

__all__ = ["EXPERIMENTS", "JudgeSplitHalf", "ScaleSeparation"]
