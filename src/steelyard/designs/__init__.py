"""Which task to ask next, and of whom."""

from steelyard.designs.all_pairs import AllPairs
from steelyard.designs.balanced_tuples import BalancedTuples
from steelyard.designs.base import Design, Goal, Nothing, Pick
from steelyard.designs.information_gain import InformationGain
from steelyard.designs.match_quality import MatchQuality
from steelyard.designs.progress import Progress
from steelyard.designs.propagation import Propagation
from steelyard.designs.random_tuples import RandomTuples
from steelyard.designs.redundant import Redundant
from steelyard.designs.tournament import Tournament

__all__ = [
    "AllPairs",
    "BalancedTuples",
    "Design",
    "Goal",
    "InformationGain",
    "MatchQuality",
    "Nothing",
    "Pick",
    "Progress",
    "Propagation",
    "RandomTuples",
    "Redundant",
    "Tournament",
]
