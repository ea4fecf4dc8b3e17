"""Numbers and texts as people read them, on pages, in charts and in the report."""

from __future__ import annotations

from steelyard.analysis.tables import Estimate


def number(value: float, digits: int = 3) -> str:
    """Write a number as people read it: 12,300, 87.3, 0.042."""
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    places = max(0, digits - 1 - _magnitude(abs(value)))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _magnitude(value: float) -> int:
    power = 0
    while value >= 10:
        value, power = value / 10, power + 1
    while value < 1:
        value, power = value * 10, power - 1
    return power


def between(estimate: Estimate, digits: int = 3) -> str:
    """Write an estimate with its interval, where it has one; the interval's width says how many places make sense."""
    low, high = estimate.lower, estimate.upper
    if low is None or high is None:
        return number(estimate.value)
    places = max(0, digits - 1 - _magnitude(high - low)) if high > low else digits
    if all(float(value).is_integer() for value in (estimate.value, low, high)):
        places = 0
    # Adding nought turns minus nought into nought.
    value, low, high = (round(number, places) + 0.0 for number in (estimate.value, low, high))
    until = "–" if low >= 0 else " to "
    return f"{value:,.{places}f} ({low:,.{places}f}{until}{high:,.{places}f})"


def rough(value: float, digits: int = 2) -> str:
    """Write a number with so many digits that mean something: 12,000 for 12,345."""
    if value < 10 ** (digits - 1):
        return number(value, digits)
    unit = 10 ** max(0, _magnitude(value) - digits + 1)
    return f"{round(value / unit) * unit:,}"


def duration(hours: float) -> str:
    """Write a time as people say it: 40 s, 12 min, 3.5 h, 4 days."""
    if hours * 3600 < 90:
        return f"{hours * 3600:.0f} s"
    if hours < 1.5:
        return f"{hours * 60:.0f} min"
    if hours < 48:
        return f"{number(hours, 2)} h"
    return f"{number(hours / 24, 2)} days"


def shortened(text: str, most: int = 32) -> str:
    """Cut a text to one short line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
