"""Read ratings and labels: one value or class for one item per row."""

from __future__ import annotations

import numpy as np
import polars as pl

from steelyard.formats.rows import BoolArray, Reading, Rows, encode, subset
from steelyard.observations import UNKNOWN, FloatArray, Labels, Ratings


def read_ratings(rows: Rows, scale: tuple[float, float] | None) -> Reading:
    """Read `item` and `value`; the default scale is the range of the values."""
    index, (item,) = encode(rows.text("item"))
    rows.refuse_empty(item, "item")
    value, answered = _numbers(rows)
    if scale is not None:
        low, high = scale
        rows.problems.at(
            answered & ((value < low) | (value > high)),
            lambda row: f"value {rows.shown('value', row)} is outside the scale {low:g} to {high:g}.",
            "Correct it, or set the scale the values were given on.",
            rows.header("value"),
        )
    rows.irregular(~answered, "no value", "left out", "value")

    def build(keep: BoolArray) -> Ratings:
        items, (codes,) = subset(index, keep, item)
        values = value[keep]
        return Ratings(
            items=items,
            item=codes,
            value=values,
            scale=scale or observed_scale(float(values.min()), float(values.max()), rows.notes),
            scale_known=scale is not None,
            **rows.sources(keep),
        )

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


def observed_scale(low: float, high: float, notes: list[str]) -> tuple[float, float]:
    """Use the range of the values as their scale, and add a note."""
    if low == high:
        # At least one unit in the last place, so that huge values still have a range.
        margin = max(0.5, float(np.spacing(abs(low))))
        notes.append(f"All values are {low:g}; the scale was set to {low - margin:g} to {high + margin:g} around it.")
        return low - margin, high + margin
    notes.append(
        f"The scale was taken from the values, {low:g} to {high:g}; if it was another, give it (--scale LOW HIGH)."
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
