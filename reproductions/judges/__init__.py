"""Models as judges: what they save, and whether the intervals hold, on recorded and simulated judgments."""

from __future__ import annotations

from reproductions.base import Experiment
from reproductions.judges.alternative_annotator import AlternativeAnnotators
from reproductions.judges.covariate_prior import CovariatePrior
from reproductions.judges.coverage import JudgeCoverage
from reproductions.judges.llmbar import LLMBar
from reproductions.judges.pandalm import PandaLM
from reproductions.judges.powered_means import PoweredMeans
from reproductions.judges.who_next import WhoNext

EXPERIMENTS: tuple[type[Experiment], ...] = (
    AlternativeAnnotators,
    CovariatePrior,
    JudgeCoverage,
    LLMBar,
    PandaLM,
    PoweredMeans,
    WhoNext,
)
