"""Tournament design: items of one source compared bracket by bracket (Pighin et al. 2012)."""

from steelyard.designs.tournament.design import Tournament

__all__ = ["Tournament"]
