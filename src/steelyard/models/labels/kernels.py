"""Compiled passes over labels: grouping them by item, and one EM step of Dawid–Skene and of MACE.

Labels come grouped by item, each as one `cell` = annotator · classes + class given, so that what is known of an
annotator's label is one row of a table. Weights of annotators are folded into the tables by the caller.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray


class LabelCells(NamedTuple):
    """Labels grouped by item: item i has rows `start[i]` to `start[i + 1]`; gold is a class code, or negative."""

    start: NDArray[np.int64]
    cell: NDArray[np.int64]
    gold: IntArray


class GuessTables(NamedTuple):
    """MACE's parameters for every cell (annotator, class k), weighted by annotator.

    With θ the probability of knowing and g_k that of guessing k: log g_k; log((θ + g_k) / g_k), the log odds that
    class k gains; and θ / (θ + g_k), the probability that the label was known if k is true.
    """

    log_guess: FloatArray
    log_gain: FloatArray
    p_known: FloatArray


@compiled
def group_by_item(item: IntArray, n_items: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each item's labels start, and the order that groups them (a counting sort; stable)."""
    start = np.zeros(n_items + 1, np.int64)
    for row in range(len(item)):
        start[item[row] + 1] += 1
    for code in range(n_items):
        start[code + 1] += start[code]
    place = start[:-1].copy()
    order = np.empty(len(item), np.int64)
    for row in range(len(item)):
        order[place[item[row]]] = row
        place[item[row]] += 1
    return start, order


@compiled
def annotators_by_item(start: NDArray[np.int64], annotator: IntArray, n_annotators: int) -> IntArray:
    """Count the different annotators of each item."""
    last_item = np.full(n_annotators, -1, np.int64)
    count = np.zeros(len(start) - 1, np.int32)
    for item in range(len(start) - 1):
        for row in range(start[item], start[item + 1]):
            if last_item[annotator[row]] != item:
                last_item[annotator[row]] = item
                count[item] += 1
    return count


@compiled
def count_confusion(
    start: NDArray[np.int64], cell: NDArray[np.int64], posterior: FloatArray, counts: FloatArray
) -> None:
    """Add up the expected confusion: counts[cell, true] += posterior[item, true]."""
    counts[:] = 0.0
    n_classes = posterior.shape[1]
    for item in range(len(start) - 1):
        for row in range(start[item], start[item + 1]):
            for true in range(n_classes):
                counts[cell[row], true] += posterior[item, true]


@compiled
def sum_by_item(start: NDArray[np.int64], cell: NDArray[np.int64], values: FloatArray) -> FloatArray:
    """Add up the rows values[cell] of every item's labels."""
    n_classes = values.shape[1]
    sums = np.zeros((len(start) - 1, n_classes))
    for item in range(len(start) - 1):
        for row in range(start[item], start[item + 1]):
            for true in range(n_classes):
                sums[item, true] += values[cell[row], true]
    return sums


@compiled
def dawid_skene_step(
    labels: LabelCells, log_confusion: FloatArray, log_prior: FloatArray, posterior: FloatArray, counts: FloatArray
) -> float:
    """Compute the E step and the sums of the next M step in one pass, and return the log-likelihood.

    `log_confusion` and `counts` are (cell, true class). Items with gold keep that class; items without labels keep
    their row of `posterior`.
    """
    start, cell, gold = labels
    counts[:] = 0.0
    n_classes = len(log_prior)
    score = np.empty(n_classes)
    total = 0.0
    for item in range(len(start) - 1):
        if start[item] == start[item + 1]:
            continue
        for true in range(n_classes):
            score[true] = log_prior[true]
        for row in range(start[item], start[item + 1]):
            for true in range(n_classes):
                score[true] += log_confusion[cell[row], true]
        if gold[item] >= 0:
            total += score[gold[item]]
            for true in range(n_classes):
                score[true] = 1.0 if true == gold[item] else 0.0
        else:
            total += _normalise(score)
        for true in range(n_classes):
            posterior[item, true] = score[true]
        for row in range(start[item], start[item + 1]):
            for true in range(n_classes):
                counts[cell[row], true] += score[true]
    return total


@compiled
def mace_step(labels: LabelCells, tables: GuessTables, posterior: FloatArray, known: FloatArray) -> float:
    """Compute MACE's E step and the sums for its M step in one pass, and return the log-likelihood.

    Fills `known` with the expected number of labels of each cell that were known rather than guessed.
    """
    start, cell, gold = labels
    log_guess, log_gain, p_known = tables
    known[:] = 0.0
    n_classes = posterior.shape[1]
    score = np.empty(n_classes)
    total = 0.0
    for item in range(len(start) - 1):
        if start[item] == start[item + 1]:
            continue
        for true in range(n_classes):
            score[true] = 0.0
        shared = -np.log(n_classes)
        for row in range(start[item], start[item + 1]):
            shared += log_guess[cell[row]]
            score[cell[row] % n_classes] += log_gain[cell[row]]
        total += shared
        if gold[item] >= 0:
            total += score[gold[item]]
            for true in range(n_classes):
                score[true] = 1.0 if true == gold[item] else 0.0
        else:
            total += _normalise(score)
        for true in range(n_classes):
            posterior[item, true] = score[true]
        for row in range(start[item], start[item + 1]):
            known[cell[row]] += score[cell[row] % n_classes] * p_known[cell[row]]
    return total


@compiled
def _normalise(score: FloatArray) -> float:
    """Turn log-scores into probabilities in place, and return the log of their sum."""
    top = score[0]
    for true in range(1, len(score)):
        top = max(top, score[true])
    size = 0.0
    for true in range(len(score)):
        score[true] = np.exp(score[true] - top)
        size += score[true]
    for true in range(len(score)):
        score[true] /= size
    return float(top + np.log(size))
