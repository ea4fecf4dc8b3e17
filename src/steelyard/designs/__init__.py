"""Which task to ask next, and of whom."""

from steelyard.designs.base import Design, Goal, Nothing, Pick
from steelyard.designs.progress import Progress
from steelyard.designs.random_tuples import RandomTuples
from steelyard.designs.redundant import Redundant

__all__ = ["Design", "Goal", "Nothing", "Pick", "Progress", "RandomTuples", "Redundant"]
