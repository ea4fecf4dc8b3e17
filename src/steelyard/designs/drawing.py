"""Drawing items at random from a level, without looking at every item."""

from __future__ import annotations

from math import comb

import numpy as np

from steelyard.designs.progress import Levels, Seen


def draw_unseen(levels: Levels, below: int, count: int, seen: Seen, rng: np.random.Generator) -> tuple[list[int], int]:
    """Draw up to `count` items from the lowest levels, all below `below`, among those not seen.

    Returns them and how many sets it chose from, every one as likely as the others.
    """
    chosen: list[int] = []
    sets = 1
    seen_at = np.bincount(levels.level[seen.rows].ravel(), minlength=levels.height)
    for level in range(min(below, levels.height)):
        eligible = len(levels.members(level)) - int(seen_at[level])
        if eligible > 0:
            drawn, of = draw_from_level(levels, level, count - len(chosen), eligible, seen, rng)
            chosen += drawn
            sets *= of
        if len(chosen) == count:
            break
    return chosen, sets


def draw_from_level(
    levels: Levels, level: int, count: int, eligible: int, seen: Seen | None, rng: np.random.Generator
) -> tuple[list[int], int]:
    """Draw up to `count` items of a level, uniformly among the `eligible` ones, which are those not seen.

    Returns them and how many sets it chose from. Proposing and rejecting gives the same distribution as a
    scan, in O(1) unless nearly all of the level has been seen.
    """
    members = levels.members(level)
    count = min(count, eligible)
    chosen: list[int] = []
    if eligible * 10 >= len(members) and count * 2 <= eligible:
        while len(chosen) < count:
            item = members[int(rng.integers(len(members)))]
            if item not in chosen and (seen is None or (item,) not in seen):
                chosen.append(item)
    else:
        candidates = members if seen is None else [item for item in members if (item,) not in seen]
        chosen = [candidates[place] for place in rng.choice(eligible, size=count, replace=False)]
    return chosen, comb(eligible, count)
