"""The calibrated scale and the adaptive design against the papers' estimates: fewer judgments, and non-inferior."""

from reproductions.base import Experiment
from reproductions.calibrated.comparisons import Comparisons
from reproductions.calibrated.held_out import HeldOut
from reproductions.calibrated.mixed import MixedProtocols
from reproductions.calibrated.never_worse import NeverWorse
from reproductions.calibrated.ratings import FewerRatings
from reproductions.calibrated.spam import Spam

EXPERIMENTS: tuple[type[Experiment], ...] = (FewerRatings, Comparisons, NeverWorse, MixedProtocols, HeldOut, Spam)

__all__ = ["EXPERIMENTS", "Comparisons", "FewerRatings", "HeldOut", "MixedProtocols", "NeverWorse", "Spam"]
