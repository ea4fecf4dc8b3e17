"""Observations of thousands of simulated answers at once.

Does for all tasks of a stage what `answer_for` and `Protocol.observations` do for one task, for the most informative
kind of observations of each built-in protocol. The results are identical (tests/simulate).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np

from steelyard.observations import (
    UNKNOWN,
    Choices,
    Comparisons,
    FloatArray,
    Index,
    IntArray,
    Labels,
    Observations,
    Rankings,
    Ratings,
)
from steelyard.protocols import BestWorst, Choice, ErrorSpans, Pairwise, Protocol, Ranking, ScoredRanking
from steelyard.protocols.rated import Rated
from steelyard.protocols.whole_task import WholeTaskProtocol
from steelyard.simulate.answers import STRENGTH_EDGES, decimals


@dataclass(frozen=True, slots=True, eq=False)
class TaskBatch:
    """The tasks of a stage: items, annotators and perceived values.

    `items` has one row of codes per task, padded with UNKNOWN; `percepts` are criteria × tasks × places.
    """

    items: IntArray
    who: IntArray
    percepts: FloatArray
    tie_margin: FloatArray
    index: Index
    people: Index

    def subset(self, rows: IntArray) -> TaskBatch:
        """Return some of the tasks, by row number."""
        return TaskBatch(
            self.items[rows], self.who[rows], self.percepts[:, rows], self.tie_margin[rows], self.index, self.people
        )

    def by_task(self) -> dict[str, Any]:
        """Return the common columns of observations, one observation per task."""
        return {"items": self.index, "annotators": self.people, "annotator": self.who}

    def by_item(self) -> tuple[dict[str, Any], tuple[IntArray, IntArray]]:
        """Return the common columns of observations, one per displayed item, and the tasks and places of the items."""
        task, place = np.nonzero(self.items != UNKNOWN)
        return {"items": self.index, "annotators": self.people, "annotator": self.who[task]}, (
            task.astype(np.int32),
            place.astype(np.int32),
        )


@singledispatch
def batch_observations(protocol: Protocol, batch: TaskBatch) -> dict[str, Observations] | None:
    """Return the observations by criterion; None for protocols that must be answered one by one."""
    return None


@batch_observations.register(Rated)
@batch_observations.register(ScoredRanking)
def _(protocol: Rated | ScoredRanking, batch: TaskBatch) -> dict[str, Observations] | None:
    return _rated(protocol, batch)


def _rated(protocol: Protocol, batch: TaskBatch) -> dict[str, Observations]:
    columns, (task, place) = batch.by_item()
    item = batch.items[task, place]
    by_criterion: dict[str, Observations] = {}
    for number, (criterion, (low, high)) in enumerate(protocol.scales().items()):
        value = low + np.clip(batch.percepts[number, task, place], 0, 1) * (high - low)
        value = np.round(value, decimals(protocol, (low, high)))
        by_criterion[criterion] = Ratings(item=item, value=value, scale=(low, high), **columns)
    return by_criterion


@batch_observations.register
def _(protocol: ErrorSpans, batch: TaskBatch) -> dict[str, Observations] | None:
    # Scores that are calculated from marks need the marks.
    return _rated(protocol, batch) if protocol.score == "slider" else None


@batch_observations.register
def _(protocol: Choice, batch: TaskBatch) -> dict[str, Observations] | None:
    columns, (task, place) = batch.by_item()
    item = batch.items[task, place]
    by_criterion: dict[str, Observations] = {}
    for number, (criterion, labels) in enumerate(protocol.classes().items()):
        value = np.clip(batch.percepts[number, task, place], 0, 1)
        label = np.minimum((value * len(labels)).astype(np.int32), len(labels) - 1)
        by_criterion[criterion] = Labels(item=item, label=label, classes=Index(labels), **columns)
    return by_criterion


def _by_each_criterion(protocol: WholeTaskProtocol, batch: TaskBatch) -> dict[str, Observations]:
    plain = protocol.without_criteria()
    by_criterion: dict[str, Observations] = {}
    for number, name in enumerate(protocol.criterion_names()):
        own = batch_observations(plain, replace(batch, percepts=batch.percepts[number : number + 1]))
        by_criterion[name] = next(iter((own or {}).values()))
    return by_criterion


@batch_observations.register
def _(protocol: Pairwise, batch: TaskBatch) -> dict[str, Observations] | None:
    if protocol.criteria:
        return _by_each_criterion(protocol, batch)
    difference = batch.percepts[0, :, 0] - batch.percepts[0, :, 1]
    outcome = np.where(difference > 0, 1, -1).astype(np.int8)
    if protocol.ties:
        outcome[np.abs(difference) < batch.tie_margin] = 0
    strength = np.zeros(len(outcome), np.int8)
    if protocol.strengths > 1:
        steps = np.searchsorted(STRENGTH_EDGES[protocol.strengths], np.abs(difference), side="right")
        strength = np.where(outcome == 0, 0, 1 + steps).astype(np.int8)
    left, right = batch.items[:, 0], batch.items[:, 1]
    return {"": Comparisons(left=left, right=right, outcome=outcome, strength=strength, **batch.by_task())}


@batch_observations.register
def _(protocol: BestWorst, batch: TaskBatch) -> dict[str, Observations] | None:
    if protocol.criteria:
        return _by_each_criterion(protocol, batch)
    value = batch.percepts[0]
    task = np.arange(len(value))
    # Among equal values, the last item is the best and the first the worst, as in a stable sort.
    best = value.shape[1] - 1 - np.argmax(value[:, ::-1], axis=1)
    worst = np.argmin(value, axis=1)
    return {
        "": Choices(shown=batch.items, best=batch.items[task, best], worst=batch.items[task, worst], **batch.by_task())
    }


@batch_observations.register
def _(protocol: Ranking, batch: TaskBatch) -> dict[str, Observations] | None:
    if protocol.criteria:
        return _by_each_criterion(protocol, batch)
    order = np.argsort(-batch.percepts[0], axis=1, kind="stable")
    value = np.take_along_axis(batch.percepts[0], order, axis=1)
    tasks, width = value.shape
    rank = np.ones((tasks, width), np.int32)
    head = value[:, 0].copy()
    for place in range(1, width):
        is_new_tier = head - value[:, place] >= batch.tie_margin if protocol.ties else np.ones(tasks, bool)
        rank[:, place] = rank[:, place - 1] + is_new_tier
        head = np.where(is_new_tier, value[:, place], head)
    item = np.take_along_axis(batch.items, order, axis=1)
    start = np.arange(0, tasks * width + 1, width, dtype=np.int64)
    return {"": Rankings(start=start, item=item.ravel(), rank=rank.ravel(), **batch.by_task())}
