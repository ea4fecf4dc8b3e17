"""Experiments with the strength of preferences."""

from reproductions.graded.strength import Strength

EXPERIMENTS = (Strength,)
