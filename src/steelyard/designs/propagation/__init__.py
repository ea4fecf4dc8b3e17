"""Propagation design: labels inferred along a dominance graph (Pighin et al. 2012)."""

from steelyard.designs.propagation.design import Propagation

__all__ = ["Propagation"]
