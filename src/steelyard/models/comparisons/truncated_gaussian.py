"""Means and variances of a Gaussian that is cut off: TrueSkill's v and w (Eq. 5–6, 9–10), safe in the tails.

For D ~ N(t, 1), v is how far the mean of D moves once its outcome is known, and w by how much its variance
falls: a win says D > ε, a tie |D| ≤ ε. Written as in the paper, φ/Φ is 0/0 for surprising outcomes.
"""

from __future__ import annotations

from math import erf, erfc, exp, expm1, pi, sinh, sqrt, tanh

from steelyard.models.compiled import compiled

_ROOT_HALF = sqrt(0.5)
_DENSITY_AT_ZERO = 1 / sqrt(2 * pi)
_FAR = 36.0  # beyond it erfc falls out of the normal numbers
_NARROW = 1e-4  # below it a Gaussian is an exponential across the margin, to 1e-12
_ONE_SIDED = 20.0  # beyond it the far edge of the margin weighs e^-40


@compiled
def mills_ratio(z: float) -> float:
    """Return (1 − Φ(z)) / φ(z) for z ≥ 0."""
    if z < _FAR:
        return 0.5 * erfc(z * _ROOT_HALF) * exp(0.5 * z * z) / _DENSITY_AT_ZERO
    return (1.0 - _mills_defect(z)) / z


@compiled
def _mills_defect(z: float) -> float:
    """Return 1 − z · mills_ratio(z) for large z, by its asymptotic series."""
    u = 1.0 / (z * z)
    return u * (1.0 - u * (3.0 - u * (15.0 - u * (105.0 - u * (945.0 - u * 10395.0)))))


@compiled
def win_moments(x: float) -> tuple[float, float]:
    """Return v and w of a win (Eq. 5 and 9); `x` is t − ε."""
    if x > -_FAR:
        v = _DENSITY_AT_ZERO * exp(-0.5 * x * x) / (0.5 * erfc(-x * _ROOT_HALF))
        return v, min(max(v * (v + x), 0.0), 1.0)
    # v + x is a small difference of large numbers here; the series gives it directly.
    defect = _mills_defect(-x)
    v = -x / (1.0 - defect)
    return v, min(v * (-x) * defect / (1.0 - defect), 1.0)


@compiled
def tie_moments(t: float, epsilon: float) -> tuple[float, float]:
    """Return v and w of a tie (Eq. 6 and 10); with ε = 0, D is known to be 0."""
    distance = abs(t)
    tilt = distance * epsilon
    if epsilon < _NARROW:
        v, w = _narrow_tie(distance, epsilon, tilt)
    elif tilt > _ONE_SIDED and distance > epsilon:
        against, w = win_moments(epsilon - distance)
        v = -against
    else:
        v, w = _wide_tie(distance, epsilon, tilt)
    return (v if t >= 0.0 else -v), min(max(w, 0.0), 1.0)


@compiled
def _wide_tie(distance: float, epsilon: float, tilt: float) -> tuple[float, float]:
    """Apply Eq. 6 and 10 with both densities divided by the larger one."""
    near, far = distance - epsilon, distance + epsilon
    fall = exp(-2.0 * tilt)
    if near > 0.0:
        mass = mills_ratio(near) - mills_ratio(far) * fall
    else:
        density = _DENSITY_AT_ZERO * exp(-0.5 * near * near)
        if density == 0.0:  # the margin is so wide that a tie says nothing
            return 0.0, 0.0
        mass = 0.5 * (erf(-near * _ROOT_HALF) + erf(far * _ROOT_HALF)) / density
    v = expm1(-2.0 * tilt) / mass
    return v, v * v + (far * fall - near) / mass


@compiled
def _narrow_tie(distance: float, epsilon: float, tilt: float) -> tuple[float, float]:
    """Take the density within the margin as exponential: D/ε has Langevin's mean."""
    if tilt < 0.05:
        mean = tilt / 3.0 - tilt**3 / 45.0
        variance = 1.0 / 3.0 - tilt**2 / 15.0
    else:
        mean = 1.0 / tanh(tilt) - 1.0 / tilt
        variance = 1.0 / tilt**2 - (1.0 / sinh(tilt) ** 2 if tilt < 300.0 else 0.0)
    return epsilon * mean - distance, 1.0 - epsilon**2 * variance
