"""Models as judges: what they save, and whether the intervals hold, on recorded and simulated judgments."""

from __future__ import annotations

from reproductions.base import Experiment
from reproductions.judges.covariate_prior import CovariatePrior

EXPERIMENTS: tuple[type[Experiment], ...] = (CovariatePrior,)
