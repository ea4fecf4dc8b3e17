"""The bookkeeping behind designs."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard.designs import RandomTuples
from steelyard.designs.progress import Levels, ShownSets
from steelyard.protocols import Pairwise
from tests.designs.helpers import make_items


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([-1, 1])), max_size=60))
def test_levels_hold_every_item_once_at_its_level(moves):
    levels = Levels()
    levels.add_items(6)
    expected = [0] * 6
    for item, by in moves:
        if expected[item] + by >= 0:
            expected[item] += by
            levels.move(item, by)
    assert levels.level.tolist() == expected
    for level in range(max(expected) + 1):
        assert sorted(levels.members(level)) == [item for item in range(6) if expected[item] == level]


@given(st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 4), min_size=1, max_size=3)), max_size=50))
def test_seen_forgets_a_set_only_when_every_showing_is(steps):
    seen_sets, twin = ShownSets(), Counter()
    for add, codes in steps:
        key = tuple(sorted(codes))
        if add:
            seen_sets.add(key)
            twin[key] += 1
        elif twin[key]:
            seen_sets.discard(key)
            twin[key] -= 1
        present_keys = {key for key, times in twin.items() if times}
        assert all((codes in seen_sets) for codes in present_keys)
        assert {tuple(sorted(set(row.tolist()))) for row in seen_sets.rows} == present_keys
        assert len(seen_sets.rows) == len(present_keys)


def test_a_slot_given_back_is_filled_by_the_next_who_has_not_seen_it():
    design = RandomTuples(judgments=2, annotators_per_task=2)
    progress = design.new_progress(Pairwise(), make_items(4))
    first = design.pick(progress, 2, "ann", np.random.default_rng(0))
    progress.on_leased("ann", first.items, first.slot)
    second = design.pick(progress, 2, "bob", np.random.default_rng(1))
    assert second.slot == first.slot
    progress.on_leased("bob", second.items, second.slot)
    progress.on_released("bob", second.items, second.slot)
    assert design.pick(progress, 2, "bob", np.random.default_rng(2)).slot != first.slot
    assert design.pick(progress, 2, "cleo", np.random.default_rng(3)).slot == first.slot


def test_one_person_alone_sees_every_pair_of_a_small_set_and_is_told_why_it_ends():
    design = RandomTuples(judgments=50)
    progress = design.new_progress(Pairwise(), make_items(5))
    seen_sets = set()
    for step in range(100):
        pick = design.pick(progress, 2, "ann", np.random.default_rng(step))
        if not hasattr(pick, "items"):
            break
        progress.on_leased("ann", pick.items, pick.slot)
        progress.on_answered(pick.items, pick.slot)
        seen_sets.add(tuple(sorted(pick.items)))
    assert len(seen_sets) == 10
    assert pick.reason == "You have judged every set of items that still needs judgments."
    assert not pick.complete


def test_items_are_shown_evenly():
    design = RandomTuples(judgments=12)
    progress = design.new_progress(Pairwise(), make_items(50))
    for step in range(100):
        pick = design.pick(progress, 4, f"ann-{step % 7}", np.random.default_rng(step))
        progress.on_leased(f"ann-{step % 7}", pick.items, pick.slot)
        assert progress.planned_tasks.level.max() - progress.planned_tasks.level.min() <= 1


def test_late_answers_beyond_a_slots_places_do_not_stand_for_another_slots():
    design = RandomTuples(judgments=2, annotators_per_task=2)
    progress = design.new_progress(Pairwise(), make_items(4))
    for slot, items in enumerate([(0, 1), (2, 3)]):
        progress.on_leased("ann", items, slot)
    progress.on_answered((0, 1), 0)
    for late in ("bob", "cleo", "dan"):
        progress.on_leased(late, (0, 1), 0)
        progress.on_answered((0, 1), 0)
    progress.on_answered((2, 3), 1)
    assert (design.goal(progress, 2).done, design.goal(progress, 2).total) == (3, 4)
    assert design.pick(progress, 2, "eve", np.random.default_rng(0)).slot == 1
