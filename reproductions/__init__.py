"""Published tables and figures, reproduced with the product's own code: a package per paper, a module per result."""

from reproductions.base import Claim, Experiment, Outcome
from reproductions.catalogue import find, names

__all__ = ["Claim", "Experiment", "find", "names", "Outcome"]
