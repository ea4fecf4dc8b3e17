"""Formatting of numbers, intervals, durations and texts for pages, charts and the report."""

from __future__ import annotations

from steelyard.analysis.tables import Estimate


def format_number(value: float, digits: int = 3) -> str:
    """Format a number with thousands separators and significant digits: 12,300, 87.3, 0.042."""
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


def format_interval(estimate: Estimate, digits: int = 3) -> str:
    """Format an estimate with its interval, if any; the interval's width determines the number of decimals."""
    low, high = estimate.lower, estimate.upper
    if low is None or high is None:
        return format_number(estimate.value)
    places = max(0, digits - 1 - _magnitude(high - low)) if high > low else digits
    if all(float(value).is_integer() for value in (estimate.value, low, high)):
        places = 0
    # Adding 0.0 turns -0.0 into 0.0.
    value, low, high = (round(number, places) + 0.0 for number in (estimate.value, low, high))
    until = "–" if low >= 0 else " to "
    return f"{value:,.{places}f} ({low:,.{places}f}{until}{high:,.{places}f})"


def format_rounded(value: float, digits: int = 2) -> str:
    """Round a number to significant digits and format it: 12,000 for 12,345."""
    if value < 10 ** (digits - 1):
        return format_number(value, digits)
    unit = 10 ** max(0, _magnitude(value) - digits + 1)
    return f"{round(value / unit) * unit:,}"


def format_duration(hours: float) -> str:
    """Format a duration: 40 s, 12 min, 3.5 h, 4 days."""
    if hours * 3600 < 90:
        return f"{hours * 3600:.0f} s"
    if hours < 1.5:
        return f"{hours * 60:.0f} min"
    if hours < 48:
        return f"{format_number(hours, 2)} h"
    return f"{format_number(hours / 24, 2)} days"


def shorten(text: str, most: int = 32) -> str:
    """Shorten a text to one line of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
