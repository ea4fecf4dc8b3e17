"""Compile the calibrated scale's kernels, so that processes which run side by side find them on disk.

Numba does not notice that a kernel in another file has changed: cached code of these files is removed first, unless
the option --keep is given.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

import steelyard.models.calibrated as package
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.observations import Comparisons, Index


def main() -> None:
    """Remove the cache, then fit a few comparisons, which needs every kernel."""
    if "--keep" not in sys.argv:
        for file in Path(package.__file__).parent.glob("__pycache__/*.nb[ic]"):
            file.unlink()
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


if __name__ == "__main__":
    main()
