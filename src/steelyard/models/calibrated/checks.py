"""Checks of the judgments behind calibrated scores: reversed annotators, opposite groups, unconnected items.

The checks use simple statistics of the judgments and not the model, so that they also hold where the model fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special
from scipy.sparse import csgraph

from steelyard.models.calibrated.evidence import Evidence
from steelyard.observations import UNKNOWN, FloatArray, Index, IntArray

MOST_NAMED = 5
"""Number of annotators that a note names."""

AGAINST = 1e-3
"""Significance, over all annotators together (Bonferroni), at which one counts as answering against the scale, or as
giving the same rating too often."""

LEANING = 0.05
"""Significance at which an annotator counts towards a camp."""

CAMP = 0.2
"""Smallest fraction of the annotators that makes a camp instead of single annotators against the scale."""

FEW_ANSWERS = 5
"""Number of answers below which nothing is said of an annotator."""


class Answers(NamedTuple):
    """Judgments of any kind as values of items by responders, relative to the answer's other items or to the mean."""

    responder: IntArray
    item: IntArray
    value: FloatArray


def judgment_warnings(evidence: Evidence, camps: Opposition, annotators: Index) -> tuple[str, ...]:
    """Return sentences about unlinked items, and about annotators whose answers carry no or contrary information."""
    return (*_unlinked(evidence), *_constant(evidence, annotators), *_against(evidence, camps, annotators))


def _names(responders: NDArray[np.integer], evidence: Evidence, annotators: Index) -> str:
    names = [annotators[int(evidence.annotator[r])] for r in responders]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _unlinked(evidence: Evidence) -> tuple[str, ...]:
    """Note whether items fall into parts that no annotator's ratings, and no comparison, links."""
    n_items, n_responders = len(evidence.item), len(evidence.annotator)
    who = np.repeat(np.arange(n_responders), np.diff(evidence.ratings.first))
    tuple_of = np.repeat(np.arange(len(evidence.tuples.responder)), np.diff(evidence.tuples.first))
    last = n_items + n_responders
    one = np.concatenate([evidence.ratings.item, evidence.pairs.left, evidence.tuples.item]).astype(np.int64)
    other = np.concatenate([n_items + who, evidence.pairs.right, last + tuple_of])
    size = last + len(evidence.tuples.responder)
    links = sparse.coo_array((np.ones(len(one), np.int8), (one, other)), shape=(size, size))
    part = csgraph.connected_components(links, directed=False)[1][:n_items]
    count = len(np.unique(part))
    if count == 1:
        return ()
    what = "annotator or comparison" if evidence.groups[0].rates else "comparison"
    return (
        f"the items form {count} groups not linked by any {what}: scores of different groups are comparable only if "
        f"the groups have the same average",
    )


def _constant(evidence: Evidence, annotators: Index) -> tuple[str, ...]:
    """Name annotators who gave every item the same rating, if others' ratings of these items make that surprising.

    Where most items are 0 on a scale of joy, somebody who rated five of them with 0 has done nothing wrong.
    """
    ratings = evidence.ratings
    rows = np.diff(ratings.first)
    who = np.repeat(np.arange(len(rows)), rows)
    least, most = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
    np.minimum.at(least, who, ratings.value)
    np.maximum.at(most, who, ratings.value)
    is_constant = (rows >= FEW_ANSWERS) & (least == most) & (evidence.annotator != UNKNOWN)
    if not is_constant.any():
        return ()
    levels, level = np.unique(ratings.value, return_inverse=True)
    _, cell, equal = np.unique(
        ratings.item.astype(np.int64) * len(levels) + level, return_inverse=True, return_counts=True
    )
    alike = np.bincount(who, equal[cell] - 1, minlength=len(rows))
    others = np.bincount(who, np.bincount(ratings.item)[ratings.item] - 1, minlength=len(rows))
    log_chance = rows * np.log((alike + 1) / (others + 2))
    constant = np.flatnonzero(is_constant & (log_chance < np.log(AGAINST / len(rows))))
    if len(constant) == 0:
        return ()
    verb = "gives" if len(constant) == 1 else "give"
    return (
        f"{_names(constant, evidence, annotators)} {verb} every item the same rating, which carries no information "
        "about items",
    )


def _answers(evidence: Evidence) -> Answers:
    """Bring all judgments into one form, those of annotators without a name left out."""
    ratings, pairs, tuples = evidence.ratings, evidence.pairs, evidence.tuples
    who = np.repeat(np.arange(len(evidence.annotator)), np.diff(ratings.first))
    mean = np.bincount(who, ratings.value, minlength=len(evidence.annotator)) / np.maximum(np.diff(ratings.first), 1)
    size = np.diff(tuples.first)
    tuple_of = np.repeat(np.arange(len(size)), size)
    middle = np.bincount(tuple_of, tuples.tier, minlength=len(size)) / np.maximum(size, 1)
    responder = [who, pairs.responder, pairs.responder, tuples.responder[tuple_of]]
    item = [ratings.item, pairs.left, pairs.right, tuples.item]
    outcome = np.sign(pairs.outcome).astype(np.float64)
    value = [ratings.value - mean[who], outcome, -outcome, middle[tuple_of] - tuples.tier]
    responders = np.concatenate([np.asarray(part, np.int32) for part in responder])
    is_named = (evidence.annotator[responders] != UNKNOWN) & ~evidence.gold[responders]
    # All answers of one annotator about one item count as one.
    key = responders[is_named].astype(np.int64) * len(evidence.item) + np.concatenate(item)[is_named]
    cells, cell, count = np.unique(key, return_inverse=True, return_counts=True)
    mean_value = np.bincount(cell, np.concatenate(value)[is_named], minlength=len(cells)) / np.maximum(count, 1)
    return Answers(
        (cells // len(evidence.item)).astype(np.int32), (cells % len(evidence.item)).astype(np.int32), mean_value
    )


@dataclass(frozen=True, slots=True, eq=False)
class Opposition:
    """Responders whose answers oppose the scale of all others, of how many, and whether they are a camp."""

    against: NDArray[np.integer]
    tested: int
    is_divided: bool


def opposition(evidence: Evidence) -> Opposition:
    """Find the annotators whose answers oppose the others': single ones, or a camp.

    Of a camp, each annotator may have too few answers to be sure of; it shows in how many lean that way.
    """
    answers = _answers(evidence)
    if len(answers.value) == 0:
        return Opposition(np.zeros(0, np.int64), 0, is_divided=False)
    statistic, is_tested = _agreement(answers, len(evidence.annotator), len(evidence.item))
    tested = int(is_tested.sum())
    against = np.flatnonzero(is_tested & (statistic < special.ndtri(AGAINST / max(tested, 1))))
    leaning = np.flatnonzero(is_tested & (statistic < special.ndtri(LEANING)))
    is_divided = len(against) >= max(2, CAMP * tested) or len(leaning) >= max(3, CAMP * tested)
    return Opposition(leaning if is_divided else against, tested, is_divided)


def _against(evidence: Evidence, result: Opposition, annotators: Index) -> tuple[str, ...]:
    """Name annotators whose answers oppose the others', and say if there are two camps."""
    if len(result.against) == 0:
        return ()
    names = _names(result.against, evidence, annotators)
    if result.is_divided:
        return (
            f"annotators disagree about the direction of the scale: {len(result.against)} of {result.tested} rank "
            f"items in the opposite direction ({names}); one scale does not describe all annotators",
        )
    verb = "answers" if len(result.against) == 1 else "answer"
    return (f"{names} {verb} against the other annotators: check whether they reversed the scale",)


def _agreement(answers: Answers, n_responders: int, n_items: int) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return a z statistic of each responder's agreement with the scale of all others, and who has enough answers.

    The scale is the first factor of answers by responders and items, with a sign for each responder, found by
    alternating least squares, so that two camps do not cancel; the larger camp determines its direction.
    """
    responder, item, value = answers
    loading = np.ones(n_responders)
    for _ in range(30):
        weight = np.bincount(item, loading[responder] ** 2, minlength=n_items)
        factor = np.bincount(item, loading[responder] * value, minlength=n_items) / np.maximum(weight, 1e-12)
        square = np.bincount(responder, factor[item] ** 2, minlength=n_responders)
        loading = np.bincount(responder, factor[item] * value, minlength=n_responders) / np.maximum(square, 1e-12)
        loading /= max(float(np.abs(loading).max()), 1e-12)
    weight = np.bincount(item, loading[responder] ** 2, minlength=n_items)
    pull = np.bincount(item, loading[responder] * value, minlength=n_items)
    # Agreement of each with the factor from everybody else's answers.
    rest = weight[item] - loading[responder] ** 2
    others = np.where(rest > 1e-9, (pull[item] - loading[responder] * value) / np.maximum(rest, 1e-9), 0.0)
    answered = np.bincount(responder, others != 0, minlength=n_responders)
    mean = np.bincount(responder, others, minlength=n_responders) / np.maximum(
        np.bincount(responder, minlength=n_responders), 1
    )
    centred = np.where(others != 0, others - mean[responder], 0.0)
    cross, squares, values = (
        np.bincount(responder, product, minlength=n_responders)
        for product in (centred * value, centred**2, value**2 * (others != 0))
    )
    is_tested = (answered >= FEW_ANSWERS) & (squares > 0) & (values > 0)
    r = np.where(is_tested, cross / np.sqrt(np.maximum(squares * values, 1e-300)), 0.0)
    statistic = np.arctanh(np.clip(r, -0.999999, 0.999999)) * np.sqrt(np.maximum(answered - 3, 1))
    return statistic if statistic[is_tested].sum() >= 0 else -statistic, is_tested
