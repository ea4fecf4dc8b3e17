"""Compile the kernels of the calibrated scale ahead of their first use, which takes about half a minute of CPU."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.models.calibrated.chain_kernels import run
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.observations import Comparisons, Index


def is_compiled() -> bool:
    """Whether numba has compiled kernels on disk."""
    dispatcher: Any = run
    return any(Path(dispatcher.stats.cache_path).glob("chain_kernels.run-*.nbi"))


def compile_kernels() -> None:
    """Fit a few comparisons, which needs every kernel."""
    observations = Comparisons(
        items=Index("abc"),
        annotators=Index("xy"),
        annotator=np.array([0, 1, 0], np.int32),
        left=np.array([0, 1, 2], np.int32),
        right=np.array([1, 2, 0], np.int32),
        outcome=np.array([1, 0, -1], np.int8),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CalibratedScale(draws=20).fit(observations)
