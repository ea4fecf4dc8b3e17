"""Hostile input, made at random: a short form here, the full one by `make fuzz`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FULL = os.environ.get("STEELYARD_FUZZ") == "full"
"""Whether to go on for long, and otherwise each time."""


def examples(short: int, full: int) -> settings:
    """How many examples to try; the short form tries the same ones each time."""
    return settings(
        max_examples=full if FULL else short,
        derandomize=not FULL,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
