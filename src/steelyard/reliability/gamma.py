"""γ of Mathet, Widlöcher & Métivier (2015): agreement on where units lie and what they are, of two annotators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from steelyard.observations import FloatArray, Span

EMPTY = 1.0
"""ΔØ: the cost of a unit that has no counterpart, and of a categorical mismatch."""
SAMPLES = 30
"""Random annotations from which the expected disorder is estimated (the authors' first number)."""


@dataclass(frozen=True, slots=True)
class Gamma:
    """Observed and expected disorder; γ = 1 − observed / expected."""

    observed: float
    expected: float

    @property
    def value(self) -> float | None:
        """γ: 1 is perfect, 0 is chance; None if nothing is marked."""
        return 1 - self.observed / self.expected if self.expected > 0 else None


def gamma(
    first: Sequence[Span], second: Sequence[Span], length: int, rng: np.random.Generator, samples: int = SAMPLES
) -> Gamma:
    """Compute γ of two annotators' units in one text of `length` characters.

    Units have a place; omissions must be left out. The random annotations shift the units of randomly chosen
    annotators around the text (§5.2 of the paper), which keeps their number, lengths and categories.
    """
    units = [*first, *second]
    if not units:
        return Gamma(0.0, 0.0)
    least_apart = sum(end - start for start, end in map(_ends, units)) / len(units) / 2
    expected = [_random_disorder((first, second), length, least_apart, rng) for _ in range(samples)]
    return Gamma(disorder(first, second), float(np.mean(expected)))


def _random_disorder(
    pair: tuple[Sequence[Span], Sequence[Span]], length: int, least_apart: float, rng: np.random.Generator
) -> float:
    """Return the disorder of two random annotations, of which at least one has a unit.

    The two shifts differ by more than half the mean length of a unit, where the text is long enough, so that one
    annotator's units are not compared with themselves.
    """
    chosen = [pair[int(rng.integers(2))] for _ in range(2)]
    while not any(chosen):
        chosen = [pair[int(rng.integers(2))] for _ in range(2)]
    shift = int(rng.integers(length))
    below, above = max(0.0, shift - least_apart), max(0.0, length - shift - least_apart)
    place = rng.uniform(0, below + above) if below + above else rng.uniform(0, length)
    other = int(place if place < below or not below + above else place - below + shift + least_apart)
    return disorder(_shifted(chosen[0], shift, length), _shifted(chosen[1], other, length))


def _shifted(units: Sequence[Span], shift: int, length: int) -> list[Span]:
    moved = []
    for unit in units:
        start, end = _ends(unit)
        place = (start + shift) % length
        moved.append(unit._replace(start=place, end=place + end - start))
    return moved


def _ends(unit: Span) -> tuple[int, int]:
    if unit.start is None or unit.end is None:
        raise ValueError("an omission has no place in the text")
    return unit.start, unit.end


def disorder(first: Sequence[Span], second: Sequence[Span]) -> float:
    """Return the disorder of the best alignment: the sum of its costs over the mean number of units (Eq. 6, 7).

    Of two annotators, the best alignment is an assignment, so no integer programme is needed.
    """
    n, m = len(first), len(second)
    if n + m == 0:
        return 0.0
    if not n or not m:
        return 2 * EMPTY
    cost = np.full((n + m, n + m), 0.0)
    cost[:n, :m] = dissimilarities(first, second)
    # A unit without a counterpart may only take its own empty place.
    cost[:n, m:] = np.where(np.eye(n, dtype=bool), EMPTY, np.inf)
    cost[n:, :m] = np.where(np.eye(m, dtype=bool), EMPTY, np.inf)
    rows, columns = linear_sum_assignment(cost)
    return float(cost[rows, columns].sum() / ((n + m) / 2))


def dissimilarities(first: Sequence[Span], second: Sequence[Span]) -> FloatArray:
    """Return d(u, v) of every two units: the sporadic positional one (Eq. 2) plus ΔØ for different severities."""
    places = [np.array([_ends(unit) for unit in units], np.float64) for units in (first, second)]
    one, other = places[0][:, None, :], places[1][None, :, :]
    gap = np.abs(one - other).sum(axis=2)
    lengths = (one[..., 1] - one[..., 0]) + (other[..., 1] - other[..., 0])
    position = np.square(gap / lengths)
    severities = [np.array([unit.severity for unit in units], object) for units in (first, second)]
    mismatch = severities[0][:, None] != severities[1][None, :]
    return np.asarray(EMPTY * position + EMPTY * mismatch, np.float64)
