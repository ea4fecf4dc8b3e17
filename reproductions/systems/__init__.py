"""Comparisons of systems: direct assessment at WMT21, votes of MTEB Arena."""

from reproductions.base import Experiment
from reproductions.systems.mteb_arena import MtebArena
from reproductions.systems.wmt21 import Wmt21Clusters
from reproductions.systems.wmt21_held_out import Wmt21HeldOut

EXPERIMENTS: tuple[type[Experiment], ...] = (Wmt21Clusters, Wmt21HeldOut, MtebArena)

__all__ = ["EXPERIMENTS", "MtebArena", "Wmt21Clusters", "Wmt21HeldOut"]
