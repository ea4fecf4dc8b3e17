"""The table of labels, with the same columns for every label model, and the table of annotators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from steelyard.errors import DataError, NoEvidenceError
from steelyard.models.labels.tally import LabelTally
from steelyard.observations import FloatArray, Index, IntArray, Labels

MANY_CLASSES = 6
"""Above this, the annotator table shows each class's own accuracy, and not the whole confusion."""

_EQUAL = 1e-9
"""Probabilities closer than this are tied: the order of additions alone can part them."""


class Interval(NamedTuple):
    """The lower and upper end of something, NaN where there is none."""

    lower: FloatArray
    upper: FloatArray


class Winners(NamedTuple):
    """The most probable class of every item, its probability, and how many classes share it (0: not judged)."""

    label: NDArray[np.int64]
    probability: FloatArray
    tied: NDArray[np.int64]


def winners(probabilities: FloatArray) -> Winners:
    """Choose each row's class; the first in the classes' order stands for those tied."""
    is_judged = np.asarray(~np.isnan(probabilities).any(axis=1))
    filled = np.where(is_judged[:, None], probabilities, 0.0)
    top = filled.max(axis=1)
    level = filled >= top[:, None] - _EQUAL
    label = level.argmax(axis=1)
    return Winners(label, np.where(is_judged, top, np.nan), np.where(is_judged, level.sum(axis=1), 0))


def label_table(
    labels: Labels | LabelTally,
    probabilities: FloatArray,
    interval: Interval,
    how: str,
    is_gold: NDArray[np.bool_] | None = None,
    *,
    counts: tuple[IntArray, IntArray | None],
) -> pl.DataFrame:
    """Assemble the label table, in the order of the items.

    Parameters
    ----------
    labels
        What was fitted: items, classes, and who judged what.
    probabilities
        Of every class (columns) for every item (rows); NaN for items without judgments.
    interval
        Of the winning class's probability; widened to hold it, kept within [0, 1].
    how
        The way the interval was made.
    is_gold
        Items whose class is gold: their interval is the point itself, and its method is `gold`.
    counts
        Judgments of every item, and its annotators where they are known.
    """
    label, probability, tied = winners(probabilities)
    lower = np.clip(np.minimum(interval.lower, probability), 0, 1)
    upper = np.clip(np.maximum(interval.upper, probability), 0, 1)
    if is_gold is not None:
        lower, upper = (np.where(is_gold, probability, end) for end in (lower, upper))
    none = np.isnan(lower) | np.isnan(upper)
    methods = np.full(len(none), how, dtype=object)
    if is_gold is not None:
        methods[is_gold] = "gold"
    methods[none] = None
    judgments, annotators = counts
    ids = np.array([*labels.classes.ids, None], dtype=object)
    columns = {
        "item": pl.Series(labels.items.ids, dtype=pl.String),
        "label": pl.Series(ids[np.where(tied > 0, label, -1)].tolist(), dtype=pl.String),
        "probability": nullable(probability),
        "lower": nullable(np.where(none, np.nan, lower)),
        "upper": nullable(np.where(none, np.nan, upper)),
        "interval": pl.Series(methods.tolist(), dtype=pl.String),
        "tied": pl.Series(tied, dtype=pl.Int64),
        "judgments": pl.Series(judgments, dtype=pl.Int64),
        "annotators": pl.Series([None] * len(label) if annotators is None else annotators, dtype=pl.Int64),
    }
    shares = {f"p({name})": nullable(probabilities[:, code]) for code, name in enumerate(labels.classes.ids)}
    return pl.DataFrame(columns | shares).sort(pl.col("judgments") == 0, maintain_order=True)


def total_by(code: IntArray | NDArray[np.int64], value: FloatArray, n: int) -> FloatArray:
    """Add up the values of each code 0…n-1."""
    return np.asarray(np.bincount(code, value, minlength=n), np.float64)


def nullable(values: FloatArray) -> pl.Series:
    """Make a column in which NaN is null."""
    return pl.Series(values, dtype=pl.Float64).fill_nan(None)


def need_annotators(model: str, labels: Labels | LabelTally) -> None:
    """Refuse labels without annotators, or of fewer than two classes: nothing can be learnt of anyone."""
    if not labels.knows_annotators:
        raise DataError(
            f"{model} weighs annotators, but some labels have no annotator.",
            "Give every row an annotator, or use majority.",
        )
    if len(labels.classes) < 2:
        only = f"all labels are '{labels.classes[0]}'" if len(labels.classes) else "there are no classes"
        raise NoEvidenceError(f"{model} needs at least two classes; {only}.", "Check the label column.")


def beta_interval(share: FloatArray, variance: FloatArray, level: float) -> Interval:
    """Return the middle `level` of the Beta with a given mean and variance; NaN where either is NaN."""
    share = np.clip(share, 1e-9, 1 - 1e-9)
    size = np.maximum(share * (1 - share) / np.maximum(variance, 1e-300) - 1, 1e-3)
    lower, upper = (
        np.asarray(special.betaincinv(share * size, (1 - share) * size, tail), np.float64)
        for tail in ((1 - level) / 2, (1 + level) / 2)
    )
    return Interval(lower, upper)


def share_interval(right: FloatArray, total: FloatArray, level: float, spread: FloatArray | None = None) -> Interval:
    """Return an interval of a share, of which `right` of `total` were counted; NaN where nothing was.

    Bayes with Jeffreys' prior; `spread` is the variance of `right` where it is itself an expectation, and widens
    the interval. It is made to hold right / total.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (right + 0.5) / (total + 1)
        variance = mean * (1 - mean) / (total + 2)
        if spread is not None:
            variance = variance + spread / ((total + 1) * (total + 2))
        lower, upper = beta_interval(mean, variance, level)
        share = right / total
    none = ~(total > 0)
    return Interval(
        np.where(none, np.nan, np.fmin(lower, share)),
        np.where(none, np.nan, np.fmax(upper, share)),
    )


def log_odds_interval(probabilities: FloatArray, score: FloatArray, variance: FloatArray, level: float) -> Interval:
    """Return an interval of the winning class's probability, by the delta method on its log-odds.

    `score` is the expected log-score s_c of every class (columns), each independent of the others, with `variance`
    V_c. The log-odds of class c are s_c − log Σ_{d≠c} exp s_d, of variance V_c + Σ_{d≠c} w_d² V_d, where w_d is the
    share of class d among the others.
    """
    label, top, _ = winners(probabilities)
    rows = np.arange(len(label))
    others = score.copy()
    others[rows, label] = -np.inf
    rest = special.logsumexp(others, axis=1)
    share = np.exp(others - rest[:, None])
    spread = np.sqrt(variance[rows, label] + (share**2 * variance).sum(axis=1))
    half = special.ndtri((1 + level) / 2) * spread
    centre = score[rows, label] - rest
    ends = (special.expit(centre - half), special.expit(centre + half))
    return Interval(*(np.where(np.isnan(top), np.nan, end) for end in ends))


def annotator_table(
    annotators: Index, judgments: NDArray[np.int64], columns: Mapping[str, FloatArray | NDArray[np.int64]]
) -> pl.DataFrame:
    """Assemble the annotator table, in the order of their index; NaN becomes null."""
    series = {
        name: pl.Series(values, dtype=pl.Int64) if values.dtype.kind == "i" else pl.Series(values).fill_nan(None)
        for name, values in columns.items()
    }
    return pl.DataFrame(
        {
            "annotator": pl.Series(annotators.ids, dtype=pl.String),
            "judgments": pl.Series(judgments, dtype=pl.Int64),
        }
        | series
    )


def with_interval(name: str, value: FloatArray, interval: Interval) -> dict[str, FloatArray]:
    """Name three columns: the value and its ends."""
    return {name: value, f"{name}_lower": interval.lower, f"{name}_upper": interval.upper}


def confusion_columns(
    classes: Index, counts: FloatArray, smoothing: float | FloatArray, level: float
) -> dict[str, FloatArray]:
    """Return the columns `p(given|true)` with intervals, from counts of (annotator, true, given).

    Each row of an annotator's matrix is a Dirichlet(counts + max(smoothing, ½)) for the interval; smoothing may be
    a matrix (true, given). Where an annotator never met a class, its row is null.
    """
    has_answers = counts.sum(axis=2) > 1e-6
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (counts + smoothing) / (counts + smoothing).sum(axis=2, keepdims=True)
    alpha = counts + np.maximum(smoothing, 0.5)
    rest = alpha.sum(axis=2, keepdims=True) - alpha
    columns: dict[str, FloatArray] = {}
    for true, true_name in enumerate(classes.ids):
        for given, given_name in enumerate(classes.ids):
            if len(classes) > MANY_CLASSES and true != given:
                continue
            value = np.where(has_answers[:, true], share[:, true, given], np.nan)
            ends = (
                np.asarray(special.betaincinv(alpha[:, true, given], rest[:, true, given], tail), np.float64)
                for tail in ((1 - level) / 2, (1 + level) / 2)
            )
            lower, upper = (np.where(has_answers[:, true], end, np.nan) for end in ends)
            interval = Interval(np.fmin(lower, value), np.fmax(upper, value))
            columns |= with_interval(f"p({given_name}|{true_name})", value, interval)
    return columns
