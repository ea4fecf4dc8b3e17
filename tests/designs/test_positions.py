"""Systems take turns on the screen: each is as often first as the others."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from steelyard.designs.positions import PositionCounts
from steelyard.records import Item

SYSTEMS = 4


def counts_of(sources: int) -> PositionCounts:
    positions = PositionCounts()
    positions.add_items(
        [Item(f"{source}-{system}", "", group=f"s{system}") for source in range(sources) for system in range(SYSTEMS)]
    )
    return positions


def test_every_pair_of_systems_is_shown_in_both_orders_equally_often():
    positions, rng = counts_of(30), np.random.default_rng(0)
    orders = Counter[tuple[int, int]]()
    for source in range(30):
        for one in range(SYSTEMS):
            for other in range(one):
                pair = tuple(rng.permutation([source * SYSTEMS + one, source * SYSTEMS + other]).tolist())
                order = positions.balance(pair)
                positions.count(order, 1)
                orders[order[0] % SYSTEMS, order[1] % SYSTEMS] += 1
    assert orders == Counter(dict.fromkeys(permutations(range(SYSTEMS), 2), 15))


@pytest.mark.parametrize("size", [3, 4])
def test_systems_take_every_position_of_larger_tasks_about_equally_often(size):
    positions, rng = counts_of(100), np.random.default_rng(1)
    places = Counter[tuple[int, int]]()
    for source in range(100):
        items = tuple((source * SYSTEMS + rng.permutation(SYSTEMS)[:size]).tolist())
        order = positions.balance(items)
        positions.count(order, 1)
        places.update((item % SYSTEMS, place) for place, item in enumerate(order))
    # 100 · size places for four systems at each of `size` positions: 25 each.
    assert all(abs(places[system, place] - 25) <= 3 for system in range(SYSTEMS) for place in range(size))


def test_released_tasks_do_not_count():
    positions = counts_of(1)
    positions.count((0, 1), 1)
    assert positions.balance((0, 1)) == (1, 0)
    positions.count((0, 1), -1)
    assert positions.balance((0, 1)) == (0, 1)


def test_items_without_a_group_stay_where_the_design_put_them():
    positions = PositionCounts()
    positions.add_items([Item("a", "", group="s0"), Item("b", "")])
    positions.count((0, 1), 1)
    assert positions.balance((0, 1)) == (0, 1)
