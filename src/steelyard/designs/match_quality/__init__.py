"""Match-quality design: Algorithm 1 of Sakaguchi & Van Durme (2018)."""

from steelyard.designs.match_quality.design import MatchQuality

__all__ = ["MatchQuality"]
