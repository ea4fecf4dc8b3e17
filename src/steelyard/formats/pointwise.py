"""Read ratings and labels: one value or class for one item per row."""

from __future__ import annotations

import numpy as np
import polars as pl

from steelyard.formats.rows import BoolArray, Reading, Rows, encode, subset
from steelyard.observations import UNKNOWN, FloatArray, Labels, Ratings

MOST_STEPS = 11
"""Maximum number of steps of a scale that is inferred from the values: 0 to 10 has eleven."""
_STEP_WIDTHS = (1, 2, 5, 10, 20, 25, 50, 100)
MOST_RANGE = 1e6
"""Scales of steps do not run further, so that differences of values are exact."""


def read_ratings(rows: Rows, scale: tuple[float, float] | None) -> Reading:
    """Read `item` and `value`; without a scale, it is inferred from the values."""
    index, (item,) = encode(rows.text("item"))
    rows.refuse_empty(item, "item")
    value, answered = _numbers(rows)
    if scale is not None:
        low, high = scale
        rows.problems.at(
            answered & ((value < low) | (value > high)),
            lambda row: f"value {rows.shown('value', row)} is outside the scale {low:g} to {high:g}.",
            "Correct the value, or set the scale of the ratings.",
            rows.header("value"),
        )
    rows.irregular(~answered, "no value", "left out", "value")

    def build(keep: BoolArray) -> Ratings:
        items, (codes,) = subset(index, keep, item)
        values = value[keep]
        ends, is_known = (scale, True) if scale else inferred_scale(values, rows.notes)
        return Ratings(items=items, item=codes, value=values, scale=ends, scale_known=is_known, **rows.sources(keep))

    return Reading(answered, build)


def _numbers(rows: Rows) -> tuple[FloatArray, BoolArray]:
    """Return the values, and which rows have one; values that are not finite numbers are recorded as problems."""
    raw = rows.frame["value"]
    if not (raw.dtype.is_numeric() or raw.dtype == pl.Boolean):
        raw = rows.text("value")
    number = raw.cast(pl.Float64, strict=False)
    missing = raw.is_null()
    if raw.dtype == pl.String and number.null_count() > raw.null_count():
        trimmed = raw.str.strip_chars()
        number = trimmed.cast(pl.Float64, strict=False)
        missing = (trimmed == "").fill_null(True)
    answered = ~missing.to_numpy()
    value = number.fill_null(float("nan")).to_numpy()
    rows.problems.at(
        answered & ~np.isfinite(value),
        lambda row: f"value '{rows.shown('value', row)}' is not a number.",
        "Write a number with a decimal point, or leave it empty if there was no answer.",
        rows.header("value"),
    )
    return value, answered


def inferred_scale(values: FloatArray, notes: list[str]) -> tuple[tuple[float, float], bool]:
    """Infer the scale of ratings, and whether it may be taken as known; add a note on what was inferred.

    Values of at most `MOST_STEPS` different whole numbers are the steps of a scale from the lowest to the highest.
    Of other values only the range is known: scores and intervals may exceed it.
    """
    low, high = float(values.min()), float(values.max())
    # Most sliders show more different values in their first rows than a scale of steps has.
    steps = np.unique(values[: 10 * MOST_STEPS])
    if low < high and len(steps) <= MOST_STEPS:
        steps = np.unique(values)
    return scale_of_steps(steps, notes) or (observed_scale(low, high, notes), False)


def scale_of_steps(steps: FloatArray, notes: list[str]) -> tuple[tuple[float, float], bool] | None:
    """Return the scale whose steps are the different values of ratings; None if they do not look like steps.

    Steps are evenly spaced, such as 1 to 5 or 0, 10 … 100; some may not occur. Three answers on a slider, 12, 37 and
    88, are whole numbers too, but they are no steps.
    """
    low, high = float(steps[0]), float(steps[-1])
    if not (1 < len(steps) <= MOST_STEPS and (steps == np.round(steps)).all() and high - low < MOST_RANGE):
        return None
    divisor = int(np.gcd.reduce(np.diff(steps).astype(np.int64)))
    width = max(width for width in _STEP_WIDTHS if divisor % width == 0)
    if (high - low) / width >= MOST_STEPS:
        return None
    notes.append(
        f"The scale was inferred from the values: steps from {low:g} to {high:g}. Set it if it differs "
        "(--scale LOW HIGH)."
    )
    return (low, high), True


def observed_scale(low: float, high: float, notes: list[str]) -> tuple[float, float]:
    """Use the range of the values as their scale, and add a note on what that costs."""
    if low == high:
        # At least one unit in the last place, so that huge values still have a range.
        margin = max(0.5, float(np.spacing(abs(low))))
        notes.append(f"All values are {low:g}; the scale was set to {low - margin:g} to {high + margin:g} around it.")
        return low - margin, high + margin
    notes.append(
        f"The scale is unknown; the values range from {low:g} to {high:g}. Answers at the ends of the scale are not "
        "recognised, and intervals may exceed it: set it (--scale LOW HIGH)."
    )
    return low, high


def read_labels(rows: Rows) -> Reading:
    """Read `item` and `label`."""
    index, (item,) = encode(rows.text("item"))
    rows.refuse_empty(item, "item")
    classes, (label,) = encode(rows.text("label"))
    rows.irregular(label == UNKNOWN, "no label", "left out", "label")

    def build(keep: BoolArray) -> Labels:
        items, (codes,) = subset(index, keep, item)
        used, (labels,) = subset(classes, keep, label)
        return Labels(items=items, item=codes, classes=used, label=labels, **rows.sources(keep))

    return Reading(label != UNKNOWN, build)
