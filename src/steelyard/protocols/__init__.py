"""Protocols: what a task shows, which answers are valid, and which observations an answer yields."""

from steelyard.protocols.base import Protocol
from steelyard.protocols.best_worst import BestWorst
from steelyard.protocols.choice import Choice
from steelyard.protocols.direct import Direct
from steelyard.protocols.error_spans import ErrorSpans
from steelyard.protocols.likert import Likert
from steelyard.protocols.pairwise import Pairwise
from steelyard.protocols.ranking import Ranking
from steelyard.protocols.scored_ranking import ScoredRanking

__all__ = [
    "BestWorst",
    "Choice",
    "Direct",
    "ErrorSpans",
    "Likert",
    "Pairwise",
    "Protocol",
    "Ranking",
    "ScoredRanking",
]
