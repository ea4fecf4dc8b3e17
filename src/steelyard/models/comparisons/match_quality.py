"""Match quality: how informative the comparison of two items would be (Eq. 11 and 23).

It is defined by the mode and the variance of each item, for Gaussian skills (TrueSkill) and for Beta scores (bounded
ranking, EASL).
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from steelyard.observations import FloatArray


class Located(Protocol):
    """The state of an online model: mode and variance of every item."""

    @property
    def mode(self) -> FloatArray: ...

    @property
    def variance(self) -> FloatArray: ...


S = TypeVar("S", bound=Located)


def of_items(state: S, items: NDArray[np.integer] | int) -> S:
    """Return the state of some items only; a state is a NamedTuple of parallel arrays."""
    return type(state)(*(np.asarray(parameter)[items] for parameter in state))  # type: ignore[attr-defined]


def match_quality(
    state: Located, item: NDArray[np.integer] | int, other: NDArray[np.integer] | int, gamma: float
) -> FloatArray:
    """Return q = √(2γ²/c²) · exp(−(Mᵢ − Mⱼ)² / 2c²), with c² = 2γ² + σᵢ² + σⱼ², between 0 and 1.

    Parameters
    ----------
    state : SkillState or BetaState
        Only the items asked for are read, so the cost does not grow with the number of items.
    item, other : int or array of int
        Item codes, broadcast against each other.
    gamma : float
        The skill chain γ, in units of the scores; the paper takes 0.1 for scores on [0, 1].
    """
    one, two = of_items(state, item), of_items(state, other)
    c2 = 2 * gamma**2 + one.variance + two.variance
    quality: FloatArray = np.sqrt(2 * gamma**2 / c2) * np.exp(-((one.mode - two.mode) ** 2) / (2 * c2))
    return quality
