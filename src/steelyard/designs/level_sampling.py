"""Random samples of items from the lowest levels, without a scan of all items."""

from __future__ import annotations

from math import comb

import numpy as np

from steelyard.designs.progress import Levels, ShownSets


def sample_unseen(
    levels: Levels, below: int, count: int, seen_sets: ShownSets, rng: np.random.Generator
) -> tuple[list[int], int]:
    """Draw up to `count` items that were not shown from the lowest levels, all below `below`.

    Returns the items and the number of equally likely sets that they were drawn from.
    """
    items: list[int] = []
    sets = 1
    shown_items = seen_sets.rows.ravel()
    if levels.withheld:
        shown_items = shown_items[~np.isin(shown_items, list(levels.withheld))]
    shown_at = np.bincount(levels.level[shown_items], minlength=levels.height)
    for level in range(min(below, levels.height)):
        eligible = len(levels.members(level)) - int(shown_at[level])
        if eligible > 0:
            sample, level_sets = sample_from_level(levels, level, count - len(items), eligible, seen_sets, rng)
            items += sample
            sets *= level_sets
        if len(items) == count:
            break
    return items, sets


def sample_from_level(
    levels: Levels, level: int, count: int, eligible: int, seen_sets: ShownSets | None, rng: np.random.Generator
) -> tuple[list[int], int]:
    """Draw up to `count` items of a level uniformly from the `eligible` ones, those that were not shown.

    Returns the items and the number of sets that they were drawn from. Rejection sampling gives the same distribution
    as a scan, in constant time unless nearly all items of the level were shown.
    """
    members = levels.members(level)
    count = min(count, eligible)
    items: list[int] = []
    if eligible * 10 >= len(members) and count * 2 <= eligible:
        while len(items) < count:
            item = members[int(rng.integers(len(members)))]
            if item not in items and (seen_sets is None or (item,) not in seen_sets):
                items.append(item)
    else:
        candidates = members if seen_sets is None else [item for item in members if (item,) not in seen_sets]
        items = [candidates[place] for place in rng.choice(eligible, size=count, replace=False)]
    return items, comb(eligible, count)
