"""All pairs: each of them, evenly, and without listing them."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from itertools import combinations, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.designs import AllPairs, NoTask
from steelyard.designs.all_pairs import PairPlan, round_robin
from steelyard.protocols import BestWorst, Direct, Pairwise
from tests.designs.helpers import make_items, take


@given(st.integers(2, 40))
def test_a_round_robin_makes_every_pair_once_and_nobody_is_twice_in_a_round(n):
    pairs = [round_robin(number, n) for number in range(n * (n - 1) // 2)]
    assert {frozenset(pair) for pair in pairs} == {frozenset(pair) for pair in combinations(range(n), 2)}
    each = n // 2
    for start in range(0, len(pairs), each):
        meeting = [item for pair in pairs[start : start + each] for item in pair]
        assert len(set(meeting)) == 2 * each


@given(st.integers(0, 12), st.integers(0, 12))
def test_the_pairs_of_newcomers_are_those_with_the_others_and_among_themselves(old, new):
    items = np.random.default_rng(old).permutation(old + new).astype(np.int32)
    plan = PairPlan(items[:old], items[old:])
    pairs = [plan[number] for number in range(len(plan))]
    among_old = {tuple(sorted(pair)) for pair in combinations(items[:old].tolist(), 2)}
    assert len(set(pairs)) == len(pairs)
    assert set(pairs) == set(combinations(range(old + new), 2)) - among_old


def asked_by(design, progress, people, steps=10_000, seed=0):
    """Let people take turns until there is nothing for any of them; return the pairs, and what the last was told."""
    asked_sets, idle = [], 0
    for step in range(steps):
        pick = take(design, progress, Pairwise(), people[step % len(people)], (seed, step))
        idle = idle + 1 if isinstance(pick, NoTask) else 0
        if idle == len(people):
            break
        if not idle:
            asked_sets.append(tuple(sorted(pick.items)))
    return asked_sets, pick


@pytest.mark.parametrize("n_items", [12, 13])
def test_at_any_time_every_item_has_been_shown_about_equally_often(n_items):
    design = AllPairs()
    progress = design.new_progress(Pairwise(), make_items(n_items))
    for step in range(n_items * (n_items - 1) // 2):
        take(design, progress, Pairwise(), f"ann-{step % 3}", (step,))
        assert np.ptp(progress.assignments.level) <= 2


def test_every_pair_is_asked_once_before_any_is_asked_again():
    design = AllPairs(annotators_per_task=2)
    progress = design.new_progress(Pairwise(), make_items(9))
    asked_sets, nothing = asked_by(design, progress, ["ann", "bob", "cleo"])
    assert len(set(asked_sets[:36])) == 36
    assert set(Counter(asked_sets).values()) == {2}
    assert nothing.complete
    assert nothing.reason == "All 36 pairs have been judged by 2 annotators."


def test_one_person_alone_is_told_why_it_ends():
    design = AllPairs(annotators_per_task=2)
    progress = design.new_progress(Pairwise(), make_items(5))
    asked_sets, nothing = asked_by(design, progress, ["ann"])
    assert len(set(asked_sets)) == len(asked_sets) == 10
    assert not nothing.complete
    assert nothing.reason == "You have judged all pairs that still need judgments."
    assert (design.goal(progress, 2).done, design.goal(progress, 2).total) == (10, 20)


@pytest.mark.slow
def test_a_hundred_thousand_items_start_at_once():
    design = AllPairs()
    progress = design.new_progress(Pairwise(), make_items(100_000))
    assert design.goal(progress, 2).total == 4_999_950_000
    tracemalloc.start()
    shown_items = [item for step in range(500) for item in take(design, progress, Pairwise(), "ann", (step,)).items]
    # Two permutations of the items and little else: a table of pairs would be forty thousand times that.
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    assert len(set(shown_items)) == 1000


def test_items_added_later_meet_everybody():
    design = AllPairs()
    progress = design.new_progress(Pairwise(), make_items(6))
    before, _ = asked_by(design, progress, ["ann", "bob"], steps=9)
    progress.add_items(make_items(3, first=6))
    later, nothing = asked_by(design, progress, ["ann", "bob"], seed=1)
    assert sorted(before + later) == sorted(combinations(range(9), 2))
    assert nothing.complete


def test_pairs_judged_elsewhere_are_not_asked_again():
    design = AllPairs()
    progress = design.new_progress(Pairwise(), make_items(5))
    for items in [(0, 1), (1, 0), (3, 4)]:
        slot = progress.slot_for(items)
        progress.on_leased("zoe", items, slot)
        progress.on_answered(items, slot)
    assert (design.goal(progress, 2).done, design.goal(progress, 2).total) == (2, 10)
    asked_sets, nothing = asked_by(design, progress, ["ann"])
    assert sorted([*asked_sets, (0, 1), (3, 4)]) == sorted(combinations(range(5), 2))
    assert nothing.complete


def test_more_annotators_later_are_asked_of_pairs_that_had_fewer():
    one, two = AllPairs(), AllPairs(annotators_per_task=2)
    progress, replayed = one.new_progress(Pairwise(), make_items(5)), two.new_progress(Pairwise(), make_items(5))
    for step in range(7):
        pick = take(one, progress, Pairwise(), "ann", (0, step))
        replayed.on_leased("ann", pick.items, pick.slot, pick.round, np.random.default_rng((0, step)))
        replayed.on_answered(pick.items, pick.slot)
    replayed.on_config_change()
    asked_sets, nothing = asked_by(two, replayed, ["bob", "cleo"], seed=1)
    assert len(asked_sets) == 13
    assert nothing.complete


def test_a_pair_that_is_given_back_comes_before_new_ones():
    design = AllPairs()
    progress = design.new_progress(Pairwise(), make_items(50))
    picks = [take(design, progress, Pairwise(), "ann", (step,), answer=False) for step in range(4)]
    progress.on_released("ann", picks[1].items, picks[1].slot)
    assert set(take(design, progress, Pairwise(), "bob", (9,)).items) == set(picks[1].items)


def test_only_pairs_of_items_will_do():
    assert "pairwise" in str(AllPairs().problems(BestWorst(), 10)[0])
    assert "pairwise" in str(AllPairs().problems(Direct(), 10)[0])
    assert "too few for pairs" in str(AllPairs().problems(Pairwise(), 1)[0])
    assert AllPairs().problems(Pairwise(), 100_000) == []


def test_the_order_of_the_pairs_hangs_on_the_seed():
    def first(seed):
        design = AllPairs()
        progress = design.new_progress(Pairwise(), make_items(20))
        return list(islice((take(design, progress, Pairwise(), "ann", (seed, step)).items for step in range(20)), 20))

    assert first(1) == first(1) != first(2)
