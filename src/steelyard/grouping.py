"""Observations of items as observations of the groups they belong to (MT systems, authors, topics)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.observations import UNKNOWN, Choices, Comparisons, Index, IntArray, Mixed, Observations, Rankings

Some = TypeVar("Some", bound=Observations)


def by_group(observations: Some, group_of: Mapping[str, str]) -> tuple[Some, int]:
    """Put each item's group in the item's place; return the observations and how many were left out.

    Left out are those that say nothing about groups: of items without a group, and comparisons, choices or
    rankings in which one group stands against itself.
    """
    groups = Index(sorted({group_of[item] for item in observations.items.ids if item in group_of}))
    if not len(groups):
        raise DataError("no item has a group.", "Fill the column 'group' of the items file.")
    place = np.array(
        [*(groups.code(group_of[item]) if item in group_of else UNKNOWN for item in observations.items.ids), UNKNOWN],
        np.int32,
    )
    if isinstance(observations, Mixed):
        parts, left_out = zip(*(by_group(part, group_of) for part in observations.parts), strict=True)
        # Without codes of its own it takes those of its parts.
        nobody = np.zeros(0, np.int32)
        return replace(observations, items=groups, parts=parts, annotator=nobody, task=nobody), sum(left_out)
    if isinstance(observations, Rankings):
        return _rankings(observations, groups, place)
    changed: dict[str, Any] = {"items": groups}
    if isinstance(observations, Comparisons):
        changed |= {"left": place[observations.left], "right": place[observations.right]}
        keep = (changed["left"] != changed["right"]) & (changed["left"] != UNKNOWN) & (changed["right"] != UNKNOWN)
    elif isinstance(observations, Choices):
        changed |= {name: place[getattr(observations, name)] for name in ("shown", "best", "worst")}
        keep = _all_different(changed["shown"], observations.shown != UNKNOWN)
    else:
        changed |= {"item": place[observations.item]}  # type: ignore[attr-defined]
        keep = changed["item"] != UNKNOWN
    return _kept(observations, changed, keep), int((~keep).sum())


def _kept(observations: Some, changed: dict[str, Any], keep: NDArray[np.bool_]) -> Some:
    rows = ("item", "value", "label", "left", "right", "outcome", "shown", "best", "worst", "annotator", "task")
    values = {name: changed.get(name, getattr(observations, name, None)) for name in rows}
    return replace(
        observations, items=changed["items"], **{name: v[keep] for name, v in values.items() if v is not None}
    )


def _all_different(shown: IntArray, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether the groups of each row are all known and none stands twice."""
    # Places of padding get codes of their own, so that they count as different.
    codes = np.where(there, shown, -2 - np.arange(shown.shape[1]))
    ordered = np.sort(codes, axis=1)
    distinct: NDArray[np.bool_] = (np.diff(ordered, axis=1) != 0).all(axis=1) & ~(there & (shown == UNKNOWN)).any(
        axis=1
    )
    return distinct


def _rankings(rankings: Rankings, groups: Index, place: IntArray) -> tuple[Any, int]:
    item = place[rankings.item]
    row = np.repeat(np.arange(len(rankings)), np.diff(rankings.start))
    order = np.lexsort((item, row))
    twice = (row[order][1:] == row[order][:-1]) & (item[order][1:] == item[order][:-1])
    keep = np.ones(len(rankings), np.bool_)
    keep[row[order][1:][twice]] = False
    keep[row[item == UNKNOWN]] = False
    kept = keep[row]
    grouped = replace(
        rankings,
        items=groups,
        start=np.concatenate([[0], np.cumsum(np.diff(rankings.start)[keep])]).astype(np.int64),
        item=item[kept],
        rank=rankings.rank[kept],
        annotator=rankings.annotator[keep],
        task=rankings.task[keep],
    )
    return grouped, int((~keep).sum())
