"""Adaptive design: the task with the largest expected variance reduction comes first."""

from steelyard.designs.adaptive.design import Adaptive

__all__ = ["Adaptive"]
