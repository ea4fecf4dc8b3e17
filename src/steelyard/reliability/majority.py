"""Size of the majority: items by the size of their largest class, and its distribution by chance."""

from __future__ import annotations

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from steelyard.observations import FloatArray, Labels
from steelyard.reliability.bootstrap import Bootstrap, weighted_proportion
from steelyard.reliability.statistic import Statistic
from steelyard.reliability.units import table

CHANCE_LIMIT = 1000
"""Number of answers to an item beyond which the chance level is not computed."""


def largest_class_chance(answers: int, classes: int) -> FloatArray:
    """Return P(largest class has at most s answers), s = 0…answers, when each class is equally likely.

    The exact multinomial, as [xᵐ] (Σ_{j≤s} xʲ/j!)ᴷ · m!/Kᵐ, with the terms scaled to Poisson(m/K)
    probabilities so that nothing overflows.
    """
    term = scipy.stats.poisson.pmf(np.arange(answers + 1), answers / classes)
    whole = scipy.stats.poisson.pmf(answers, answers)
    chance = np.zeros(answers + 1)
    for size in range(-(-answers // classes), answers + 1):
        term_up_to = np.where(np.arange(answers + 1) <= size, term, 0.0)
        chance[size] = _power(term_up_to, classes)[answers] / whole
    return np.minimum(chance, 1.0)


def _power(series: FloatArray, exponent: int) -> FloatArray:
    """Raise a polynomial to a power, truncated to its length."""
    product = np.zeros_like(series)
    product[0] = 1.0
    while exponent:
        if exponent & 1:
            product = np.convolve(product, series)[: len(series)]
        series = np.convolve(series, series)[: len(series)]
        exponent >>= 1
    return product


def _largest(labels: Labels) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
    """Return the answers, the size of the largest class and the code of each item with at least two answers."""
    counts = table(
        labels.item.astype(np.int64), labels.label.astype(np.int64), (len(labels.items), len(labels.classes))
    )
    answers: FloatArray = counts.sum(axis=1)
    largest: FloatArray = counts.max(axis=1).toarray().ravel()
    return answers[answers > 1], largest[answers > 1], np.flatnonzero(answers > 1)


def majority(labels: Labels, bootstrap: Bootstrap) -> Statistic:
    """Compute the proportion of items on which more than half of the answers name one class."""
    name = "absolute_majority"
    answers, largest, items = _largest(labels)
    if not answers.size:
        return Statistic(name, None, note="undefined: no item has two answers")
    sizes, times = np.unique(answers.astype(np.int64), return_counts=True)
    note = "proportion of items on which more than half of the answers name one class"
    if sizes[-1] <= CHANCE_LIMIT:
        beyond = [1 - largest_class_chance(int(m), len(labels.classes))[m // 2] for m in sizes]
        note += f"; by chance {np.average(beyond, weights=times):.3f}"
    return bootstrap.statistic(
        name,
        weighted_proportion((2 * largest > answers).astype(np.float64), np.ones(len(answers))),
        len(answers),
        unit="items",
        note=note,
        undefined="",
        low=0.0,
        names=lambda: tuple(labels.items[int(code)] for code in items),
    )


def majority_histogram(labels: Labels, level: float = 0.95) -> pl.DataFrame:
    """Count items by the size of their largest class, among the items with the most common number of answers.

    Columns: answers, size, items, share, lower, upper (Wilson's interval of the share), at_least (the proportion
    with this size or more), chance and chance_at_least (the same, if all classes were equally likely).
    """
    answers, largest, _ = _largest(labels)
    schema = ("answers", "size", "items", "share", "lower", "upper", "at_least", "chance", "chance_at_least")
    if not answers.size:
        return pl.DataFrame(schema=dict.fromkeys(schema, pl.Float64))
    sizes, times = np.unique(answers.astype(np.int64), return_counts=True)
    commonest = int(sizes[np.argmax(times)])
    of_these = largest[answers == commonest].astype(np.int64)
    size = np.arange(-(-commonest // max(len(labels.classes), 1)), commonest + 1)
    items = np.bincount(of_these, minlength=commonest + 1)[size].astype(np.int64)
    lower, upper = _wilson(items, len(of_these), level)
    share = items / len(of_these)
    frame = pl.DataFrame(
        {
            "answers": np.full(len(size), commonest),
            "size": size,
            "items": items,
            "share": share,
            "lower": lower,
            "upper": upper,
            "at_least": np.cumsum(share[::-1])[::-1],
        }
    )
    if commonest > CHANCE_LIMIT:
        missing = pl.lit(None, pl.Float64)
        return frame.with_columns(chance=missing, chance_at_least=missing)
    up_to = np.concatenate([[0.0], largest_class_chance(commonest, len(labels.classes))])
    return frame.with_columns(
        chance=pl.Series(up_to[size + 1] - up_to[size]), chance_at_least=pl.Series(1 - up_to[size])
    )


def _wilson(hits: NDArray[np.int64], total: int, level: float) -> tuple[FloatArray, FloatArray]:
    z = float(scipy.stats.norm.ppf(0.5 + level / 2))
    share = hits / total
    centre = (share + z * z / (2 * total)) / (1 + z * z / total)
    reach = z / (1 + z * z / total) * np.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    return np.maximum(centre - reach, 0.0), np.minimum(centre + reach, 1.0)
