"""Published tables and figures, made again with the product's own code: a package per paper, a module per result."""

from steelyard.experiments.base import Claim, Experiment, Outcome
from steelyard.experiments.catalogue import find, names

__all__ = ["Claim", "Experiment", "find", "names", "Outcome"]
