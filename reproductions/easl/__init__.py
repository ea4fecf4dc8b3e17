"""Direct assessment, ranking aggregation and EASL (Sakaguchi & Van Durme, 2018)."""

from reproductions.base import Experiment
from reproductions.easl.curves_replayed import ReplayedCurves
from reproductions.easl.curves_simulated import SimulatedCurves
from reproductions.easl.histograms import Histograms
from reproductions.easl.match_quality_maps import MatchQualityMaps
from reproductions.easl.surprisal import Surprisal
from reproductions.easl.system_ranking import SystemRanking
from reproductions.easl.time_and_length import TimeAndLength

EXPERIMENTS: tuple[type[Experiment], ...] = (
    Surprisal,
    SimulatedCurves,
    ReplayedCurves,
    Histograms,
    MatchQualityMaps,
    SystemRanking,
    TimeAndLength,
)

__all__ = [
    "Surprisal",
    "EXPERIMENTS",
    "Histograms",
    "MatchQualityMaps",
    "ReplayedCurves",
    "SimulatedCurves",
    "SystemRanking",
    "TimeAndLength",
]
