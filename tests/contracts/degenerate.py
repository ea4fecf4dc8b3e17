"""Valid but degenerate answers: constant, tied, extreme, disconnected, of one item or one annotator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from steelyard.observations import (
    UNKNOWN,
    Choices,
    Comparisons,
    Index,
    Labels,
    Mixed,
    Observations,
    Rankings,
    Ratings,
)
from tests.sizes import FULL


def codes(values: Any) -> Any:
    return np.asarray(values, np.int32)


def shared_fields(n_items: int, annotator: Any) -> dict[str, Any]:
    who = codes(annotator)
    return {
        "items": Index(f"i{n}" for n in range(n_items)),
        "annotators": Index(f"a{n}" for n in range(int(who.max()) + 1)),
        "annotator": who,
    }


def crossed(n_items: int, n_annotators: int) -> tuple[Any, Any]:
    """Return item and annotator codes: every annotator judges every item."""
    return np.tile(np.arange(n_items), n_annotators), np.repeat(np.arange(n_annotators), n_items)


def ratings(value: Any, item: Any, annotator: Any, scale: tuple[float, float] = (0.0, 100.0)) -> Ratings:
    item = codes(item)
    return Ratings(
        item=item,
        value=np.asarray(value, np.float64),
        scale=scale,
        **shared_fields(int(item.max()) + 1, annotator),
    )


def comparisons(left: Any, right: Any, outcome: Any, annotator: Any) -> Comparisons:
    left, right = codes(left), codes(right)
    n_items = int(max(left.max(), right.max())) + 1
    return Comparisons(
        left=left, right=right, outcome=np.asarray(outcome, np.int8), **shared_fields(n_items, annotator)
    )


def choices(shown: Any, best: Any, worst: Any, annotator: Any) -> Choices:
    tuples = codes(shown)
    fields = shared_fields(int(tuples.max()) + 1, annotator)
    return Choices(shown=tuples, best=codes(best), worst=codes(worst), **fields)


def rankings(rows: Sequence[Sequence[int]], ranks: Sequence[Sequence[int]], annotator: Any) -> Rankings:
    item = codes(np.concatenate(rows))
    return Rankings(
        start=np.cumsum([0, *map(len, rows)]),
        item=item,
        rank=codes(np.concatenate(ranks)),
        **shared_fields(int(item.max()) + 1, annotator),
    )


def labels(item: Any, label: Any, annotator: Any, n_classes: int = 2) -> Labels:
    item = codes(item)
    return Labels(
        item=item,
        label=codes(label),
        classes=Index(f"c{n}" for n in range(n_classes)),
        **shared_fields(int(item.max()) + 1, annotator),
    )


def rating_cases() -> dict[str, Observations]:
    item, annotator = crossed(6, 4)
    cases: dict[str, Observations] = {
        f"constant {value:g}, {n_items} items, {n_annotators} annotators": ratings(
            np.full(n_items * n_annotators, value), *crossed(n_items, n_annotators)
        )
        for value in ((0.0, 30.0, 33.7, 50.0, 100.0) if FULL else (0.0, 33.7, 50.0))
        for n_items, n_annotators in ((1, 6), (2, 1), (20, 1), (5, 6))
    }
    return cases | {
        "one judgment": ratings([12], [0], [0]),
        "one judgment at the end": ratings([100], [0], [0]),
        "one annotator repeats one item": ratings(np.full(8, 40), np.zeros(8), np.zeros(8)),
        "extremes only": ratings(np.where((item + annotator) % 2, 0, 100), item, annotator),
        "annotators identical": ratings(item * 13.3, item, annotator),
        "annotators identical, in steps": ratings(item * 10, item, annotator),
        "each annotator constant": ratings(annotator * 23.1, item, annotator),
        "two halves": ratings((item * 7.3 + annotator) % 100, item % 3 + 3 * (annotator >= 2), annotator),
        "an annotator with one answer": ratings(
            np.append(item * 7.3 + annotator, 50), np.append(item, 2), np.append(annotator, 4)
        ),
        "one answer per annotator": ratings(np.arange(6) * 11.1, np.arange(6), np.arange(6)),
        "constant on a binary scale": ratings(np.zeros(24), item, annotator, (0.0, 1.0)),
    }


def comparison_cases() -> dict[str, Observations]:
    left, right = np.tile(list(combinations(range(5), 2)), (4, 1)).T
    annotator = np.repeat(np.arange(4), 10)
    return {
        "all ties": comparisons(left, right, np.zeros(40), annotator),
        "all agree": comparisons(left, right, np.ones(40), annotator),
        "left always wins": comparisons(
            np.append(left, right), np.append(right, left), np.ones(80), np.append(annotator, annotator)
        ),
        "one win": comparisons([0], [1], [1], [0]),
        "one tie": comparisons([0], [1], [0], [0]),
        "one annotator": comparisons(left[:10], right[:10], -np.ones(10), annotator[:10]),
        "two halves": comparisons([0, 1, 2, 3] * 3, [1, 0, 3, 2] * 3, [1, -1, 1, 0] * 3, np.arange(12) % 4),
        "an annotator with one answer": comparisons(
            np.append(left, 0), np.append(right, 1), np.append(np.ones(40), -1), np.append(annotator, 4)
        ),
        "contradictions": comparisons([0] * 4, [1] * 4, [1, -1, 1, -1], [0, 0, 1, 1]),
    }


def choice_cases() -> dict[str, Observations]:
    tuples = np.tile(list(combinations(range(6), 4)), (3, 1))
    annotator = np.repeat(np.arange(3), 15)
    neither = np.full(45, UNKNOWN)
    return {
        "all agree": choices(tuples, tuples[:, 0], tuples[:, 3], annotator),
        "one judgment": choices(tuples[:1], tuples[:1, 0], tuples[:1, 3], [0]),
        "one annotator": choices(tuples[:15], tuples[:15, 0], tuples[:15, 3], annotator[:15]),
        "two halves": choices([[0, 1, 2], [3, 4, 5]] * 3, [0, 3] * 3, [2, 5] * 3, [0, 1, 2] * 2),
        "best only": choices(tuples, tuples[:, 0], neither, annotator),
        "worst only": choices(tuples, neither, tuples[:, 0], annotator),
        "neither": choices(tuples, neither, neither, annotator),
        "the same item as best and worst": choices(tuples, tuples[:, 0], tuples[:, 0], annotator),
        "contradictions": choices([[0, 1, 2]] * 2, [0, 2], [2, 0], [0, 1]),
        "pairs": choices([[0, 1]] * 3, [0] * 3, [1] * 3, [0, 1, 2]),
        "an annotator with one answer": choices(
            np.vstack([tuples, tuples[:1]]),
            np.append(tuples[:, 0], tuples[0, 1]),
            np.append(tuples[:, 3], tuples[0, 0]),
            np.append(annotator, 3),
        ),
    }


def ranking_cases() -> dict[str, Observations]:
    five = range(5)
    return {
        "all agree": rankings([five] * 4, [range(1, 6)] * 4, range(4)),
        "all tied": rankings([five] * 4, [[1] * 5] * 4, range(4)),
        "one judgment": rankings([range(3)], [range(1, 4)], [0]),
        "one tie": rankings([range(2)], [[1, 1]], [0]),
        "one item": rankings([[0]], [[1]], [0]),
        "single items": rankings([[0], [1]], [[1], [1]], [0, 1]),
        "two halves": rankings([[0, 1], [2, 3]] * 3, [[1, 2]] * 6, [0, 1, 2] * 2),
        "contradictions": rankings([[0, 1, 2], [2, 1, 0]], [[1, 2, 3]] * 2, [0, 1]),
        "an annotator with one answer": rankings([five] * 4 + [[4, 3]], [range(1, 6)] * 4 + [[1, 2]], [0, 0, 1, 1, 2]),
    }


def label_cases() -> dict[str, Observations]:
    item, annotator = crossed(6, 4)
    return {
        "constant": labels(item, np.zeros(24), annotator),
        "constant, of one class": labels(item, np.zeros(24), annotator, 1),
        "one judgment": labels([0], [0], [0]),
        "one judgment, of one class": labels([0], [0], [0], 1),
        "one item": labels([0] * 4, [0, 1, 0, 1], range(4)),
        "one annotator": labels(range(6), np.arange(6) % 2, [0] * 6),
        "all ties": labels(item, annotator % 2, annotator),
        "annotators identical": labels(item, item % 3, annotator, 3),
        "two halves": labels(item % 3 + 3 * (annotator >= 2), (item + annotator) % 2, annotator),
        "an annotator with one answer": labels(np.append(item, 0), np.append(item % 2, 1), np.append(annotator, 4)),
        "classes nobody chose": labels(item, item % 2, annotator, 4),
    }


def mixed_cases() -> dict[str, Observations]:
    rated, compared, ranked, chosen = rating_cases(), comparison_cases(), ranking_cases(), choice_cases()
    others = {"all ties": compared, "one win": compared, "two halves": compared, "all tied": ranked, "neither": chosen}
    cases: dict[str, Observations] = {
        f"{first}; {second}": Mixed.of([rated[first], kind[second]])
        for first in ("constant 50, 5 items, 6 annotators", "one judgment", "extremes only")
        for second, kind in others.items()
    }
    constant = rated["constant 33.7, 20 items, 1 annotators"]
    return cases | {
        "two constant ratings": Mixed.of([constant, rated["constant 50, 5 items, 6 annotators"]]),
        "no ratings": Mixed.of([compared["all ties"], ranked["all tied"], chosen["neither"]]),
        "all kinds": Mixed.of([constant, compared["all ties"], ranked["all tied"], chosen["neither"]]),
    }


CASES: dict[str, dict[str, Observations]] = {
    "ratings": rating_cases(),
    "comparisons": comparison_cases(),
    "choices": choice_cases(),
    "rankings": ranking_cases(),
    "labels": label_cases(),
    "mixed": mixed_cases(),
}


def without_names(observations: Any) -> Any:
    """Remove who gave the answers."""
    nobody = np.full(len(observations), UNKNOWN, np.int32)
    if isinstance(observations, Mixed):
        parts = tuple(without_names(part) for part in observations.parts)
        return replace(observations, parts=parts, annotators=Index(), annotator=nobody)
    return replace(observations, annotators=Index(), annotator=nobody)


def with_some_names(observations: Any) -> Any:
    """Remove who gave every other answer."""
    annotator = observations.annotator.copy()
    annotator[::2] = UNKNOWN
    return replace(observations, annotator=annotator)
