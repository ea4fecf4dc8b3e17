"""Measure how often the calibrated scale's 95 % intervals hold the truth, over simulated crowds of many kinds.

Run: python -m benchmarks.coverage_calibrated [data sets] [scene]. The scenes are in benchmarks/calibrated_scenes.py.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import warnings

import numpy as np

from benchmarks.calibrated_scenes import SCENES, Scene
from steelyard.errors import SteelyardWarning
from steelyard.models.calibrated.scale import CalibratedScale


def coverage(scene: Scene, sets: int, model: CalibratedScale | None = None) -> tuple[float, float, float]:
    """Return the share of items within their interval, the standard error over data sets, and mean r with the truth."""
    model = model or CalibratedScale()
    held, agreed = [], []
    for seed in range(sets):
        told, truth = scene(np.random.default_rng(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SteelyardWarning)
            table = model.fit(told).scores.sort("item")  # type: ignore[arg-type]
        has_interval = table["lower"].is_not_null().to_numpy()
        score, lower, upper = (
            table[name].to_numpy()[has_interval].astype(float) for name in ("score", "lower", "upper")
        )
        held.append(np.mean((lower <= truth[has_interval]) & (truth[has_interval] <= upper)))
        agreed.append(np.corrcoef(score, truth[has_interval])[0, 1])
    return float(np.mean(held)), float(np.std(held) / np.sqrt(sets)), float(np.mean(agreed))


def main() -> None:
    """Print a line for each scene."""
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    names = sys.argv[2:]
    print(f"{'scene':26s} {'within, %':>10s} {'± se':>6s} {'r':>6s}")
    for name, scene in SCENES.items():
        if not names or name in names:
            share, error, r = coverage(scene, sets)
            print(f"{name:26s} {100 * share:10.1f} {100 * error:6.1f} {r:6.3f}", flush=True)


if __name__ == "__main__":
    main()
