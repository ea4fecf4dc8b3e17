"""Designs: which task an annotator gets next."""

from steelyard.designs.adaptive import Adaptive
from steelyard.designs.all_pairs import AllPairs
from steelyard.designs.balanced_tuples import BalancedTuples
from steelyard.designs.base import Design, Goal, NoTask, Pick
from steelyard.designs.match_quality import MatchQuality
from steelyard.designs.per_item import PerItem
from steelyard.designs.progress import Progress
from steelyard.designs.propagation import Propagation
from steelyard.designs.random_tuples import RandomTuples
from steelyard.designs.tournament import Tournament

__all__ = [
    "Adaptive",
    "AllPairs",
    "BalancedTuples",
    "Design",
    "Goal",
    "MatchQuality",
    "NoTask",
    "PerItem",
    "Pick",
    "Progress",
    "Propagation",
    "RandomTuples",
    "Tournament",
]
