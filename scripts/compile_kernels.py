"""Compile all kernels, so that processes which run side by side find them on disk.

Numba does not notice that a kernel in another file has changed: cached code is removed first.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np

import steelyard
from steelyard import registry
from steelyard.errors import SteelyardError
from steelyard.models.calibrated import compilation
from steelyard.observations import Observations
from steelyard.records import Item
from steelyard.simulate import SimulatedAnnotators, make_crowd, simulate_study
from steelyard.study import parse_config

_ITEMS = [Item(id=f"item {number}", text="") for number in range(12)]
_CALIBRATED = "calibrated_scale"


def main() -> None:
    """Remove the cache, then use every design and fit every model once, in two processes."""
    for file in Path(steelyard.__file__).parent.rglob("__pycache__/*.nb[ic]"):
        file.unlink()
    with ProcessPoolExecutor(2) as pool:
        calibrated, others = pool.submit(compilation.compile_kernels), pool.submit(compile_others)
        calibrated.result()
        others.result()


def compile_others() -> None:
    """Simulate a small study with each protocol and design, and fit the other models that accept its observations."""
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for study in _studies():
            crowd = SimulatedAnnotators(make_crowd(6, rng), {item.id: rng.uniform() for item in _ITEMS}, rng)
            try:
                config = parse_config(study)
                if config.problems_with(_ITEMS):
                    continue
                simulated = simulate_study(config, _ITEMS, crowd, rng, most=60)
                observations = [simulated.observations(kind=kind) for kind in config.stages[0].protocol.kinds]
            except SteelyardError:
                continue  # a protocol with a design that does not fit it
            for name, by_criterion in product(registry.names("models"), observations):
                if name != _CALIBRATED:
                    _fit(name, by_criterion[""])


def _studies() -> Iterator[dict[str, object]]:
    for protocol in registry.names("protocols"):
        settings = {"name": protocol} | ({"labels": ["yes", "no"]} if protocol == "choice" else {})
        for design in registry.names("designs"):
            yield {"title": "x", "question": "x", "items": "x", "protocol": settings, "design": {"name": design}}


def _fit(name: str, observations: Observations) -> None:
    try:
        registry.find("models", name)().fit(observations)
    except SteelyardError:
        return  # a model of other observations, or one that needs known answers


if __name__ == "__main__":
    main()
