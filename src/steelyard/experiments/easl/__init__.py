"""Direct assessment, ranking aggregation and EASL (Sakaguchi & Van Durme, 2018)."""

from steelyard.experiments.base import Experiment
from steelyard.experiments.easl.curves_replayed import ReplayedCurves
from steelyard.experiments.easl.curves_simulated import SimulatedCurves
from steelyard.experiments.easl.histograms import Histograms
from steelyard.experiments.easl.match_quality_maps import MatchQualityMaps
from steelyard.experiments.easl.system_ranking import SystemRanking
from steelyard.experiments.easl.time_and_length import TimeAndLength

EXPERIMENTS: tuple[type[Experiment], ...] = (
    SimulatedCurves,
    ReplayedCurves,
    Histograms,
    MatchQualityMaps,
    SystemRanking,
    TimeAndLength,
)

__all__ = [
    "EXPERIMENTS",
    "Histograms",
    "MatchQualityMaps",
    "ReplayedCurves",
    "SimulatedCurves",
    "SystemRanking",
    "TimeAndLength",
]
