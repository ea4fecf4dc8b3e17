"""Balanced tuples: even, distinct, and in company that changes as much as it can."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import ceil, comb

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from steelyard.designs import BalancedTuples, NoTask, Pick
from steelyard.designs.balanced_tuples import tuple_count
from steelyard.designs.balancing import plan_tuples, repeated_pairs
from steelyard.designs.balancing_kernels import TupleTable, exchange_items, rows_with_repeated_pairs
from steelyard.protocols import BestWorst, Direct
from tests.designs.helpers import make_items, take


def shown_in(rows: np.ndarray, n_items: int) -> np.ndarray:
    return np.bincount(rows.ravel(), minlength=n_items)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(3, 30), st.integers(2, 6), st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0]), st.integers(0, 9999))
def test_tuples_are_distinct_and_show_every_item_equally_often(n_items, size, factor, seed):
    required = tuple_count(factor, n_items)
    assume(size <= n_items <= required * size and required <= comb(n_items, size))
    rows = plan_tuples(n_items, required, size, (), np.random.default_rng(seed))
    assert rows.shape == (required, size)
    assert len({frozenset(row) for row in rows.tolist()}) == required
    assert all(len(set(row)) == size for row in rows.tolist())
    item_counts = shown_in(rows, n_items)
    assert item_counts.max() - item_counts.min() <= 1


@pytest.mark.parametrize("missing", range(6))
def test_nearly_all_tuples_there_are_can_be_asked_for(missing):
    required = comb(7, 4) - missing
    rows = plan_tuples(7, required, 4, (), np.random.default_rng(missing))
    assert len({frozenset(row) for row in rows.tolist()}) == required
    assert np.ptp(shown_in(rows, 7)) <= 1


@pytest.mark.parametrize("n_items", [10, 16, 20, 40, 60, 200, 3000])
def test_no_pair_recurs_more_than_it_must(n_items):
    """2N 4-tuples have 12N pairs, and there are N(N-1)/2."""
    rows = plan_tuples(n_items, 2 * n_items, 4, (), np.random.default_rng(3))
    share, least = repeated_pairs(rows, n_items)
    assert least == pytest.approx(max(0, 1 - n_items * (n_items - 1) / 2 / (12 * n_items)))
    assert share == pytest.approx(least)


@pytest.mark.slow
def test_where_every_pair_would_have_to_come_exactly_once_few_recur():
    """25 items in 50 4-tuples: a perfect plan exists (a block design), and is hard to find."""
    shares = [repeated_pairs(plan_tuples(25, 50, 4, (), np.random.default_rng(seed)), 25)[0] for seed in range(3)]
    assert max(shares) < 0.06
    random = np.random.default_rng(0)
    sample = np.array([random.choice(25, 4, replace=False) for _ in range(50)])
    assert repeated_pairs(sample, 25)[0] > 0.3


def exchanged_plainly(tuples, first, size, rows, heat, draws):
    """The search again, with a table of all pairs and sets of tuples."""
    rows_of = [set(row) - {-1} for row in tuples.tolist()]

    def cost():
        pairs = Counter(pair for row in rows_of for pair in combinations(sorted(row), 2))
        return sum(count**2 for count in pairs.values())

    total = 0
    for draw in draws:
        row = int(rows[int(draw[0] * len(rows))])
        other = first + int(draw[1] * (len(tuples) - first))
        i, j = int(draw[2] * size), int(draw[3] * size)
        a, b = int(tuples[row, i]), int(tuples[other, j])
        if row == other or a in rows_of[other] or b in rows_of[row]:
            continue
        retained, before = (set(rows_of[row]), set(rows_of[other])), cost()
        rows_of[row], rows_of[other] = rows_of[row] - {a} | {b}, rows_of[other] - {b} | {a}
        change = cost() - before
        hot = heat > 0 and draw[4] < np.exp(-change / heat)
        double = sum(r in (rows_of[row], rows_of[other]) for r in rows_of) > 2
        if (change >= 0 and not hot) or double:
            rows_of[row], rows_of[other] = retained
            continue
        tuples[row, i], tuples[other, j] = b, a
        total += change
    return total


@settings(max_examples=40, deadline=None)
@given(st.integers(5, 9), st.integers(2, 4), st.integers(0, 3), st.sampled_from([0.0, 0.7, 3.0]), st.integers(0, 999))
def test_the_compiled_search_does_what_a_plain_one_does(n_items, size, fixed, heat, seed):
    rng = np.random.default_rng(seed)
    tuples = np.array([rng.choice(n_items, size, replace=False) for _ in range(8)], np.int32)
    tuples = np.pad(tuples, ((0, 0), (0, 1)), constant_values=-1)
    row, column = np.nonzero(tuples >= 0)
    item = tuples[row, column]
    order = np.lexsort((row, item))
    start = np.searchsorted(item[order], np.arange(n_items + 1))
    holds = row[order].astype(np.int32)
    pairs = Counter(pair for r in tuples.tolist() for pair in combinations(sorted(set(r) - {-1}), 2))
    crowded = [
        n for n, r in enumerate(tuples.tolist()) if n >= fixed
        and any(pairs[pair] > 1 for pair in combinations(sorted(set(r) - {-1}), 2))
    ]  # fmt: skip
    table = TupleTable(tuples, start, holds, fixed, size)
    assert rows_with_repeated_pairs(table).tolist() == crowded
    twin = tuples.copy()
    rows, draws = np.arange(fixed, 8, dtype=np.int32), rng.random((60, 5))
    total = exchange_items(table, rows, heat, draws)
    assert total == exchanged_plainly(twin, fixed, size, rows, heat, draws)
    assert tuples.tolist() == twin.tolist()
    for number in range(n_items):
        assert sorted(holds[start[number] : start[number + 1]]) == np.flatnonzero((tuples == number).any(1)).tolist()


def test_too_few_items_are_told_how_many_tuples_there_are_and_what_to_set():
    (problem,) = BalancedTuples(factor=2).problems(BestWorst(), 5)
    assert "5 items make 5 different tuples of 4, but factor = 2 needs 10" in str(problem)
    assert "Set factor to 1 or less, or use at least 6 items." in str(problem)
    assert BalancedTuples(factor=1).problems(BestWorst(), 5) == []
    assert BalancedTuples(factor=2).problems(BestWorst(), 6) == []


def test_protocols_of_single_items_and_tuples_too_large_or_too_few_are_refused():
    assert "per_item" in str(BalancedTuples().problems(Direct(), 50)[0])
    assert "only 3" in str(BalancedTuples().problems(BestWorst(), 3)[0])
    (problem,) = BalancedTuples(factor=0.1).problems(BestWorst(), 100)
    assert "cannot show all 100 items" in problem.what
    assert BalancedTuples(factor=0.25).problems(BestWorst(), 100) == []


def work(design, progress, protocol, people, steps, seed=0):
    """Let people take turns; return the sets in the order asked."""
    asked_sets = []
    for step in range(steps):
        pick = take(design, progress, protocol, people[step % len(people)], (seed, step))
        if isinstance(pick, NoTask):
            break
        asked_sets.append(tuple(sorted(pick.items)))
    return asked_sets


def test_every_tuple_is_asked_once_before_any_is_asked_again():
    design, protocol = BalancedTuples(annotators_per_task=3), BestWorst()
    progress = design.new_progress(protocol, make_items(30))
    asked_sets = work(design, progress, protocol, ["ann", "bob", "cleo", "dan"], 60)
    assert len(set(asked_sets)) == 60
    assert set(work(design, progress, protocol, ["ann", "bob", "cleo", "dan"], 60, seed=1)) == set(asked_sets)


@pytest.mark.slow
@pytest.mark.parametrize("n_items", [30, 100, 1000])
def test_an_unfinished_study_is_even(n_items):
    design, protocol = BalancedTuples(annotators_per_task=1), BestWorst()
    progress = design.new_progress(protocol, make_items(n_items))
    for step in range(n_items):
        take(design, progress, protocol, "ann", (0, step), answer=False)
    item_counts = progress.assignments.level
    assert item_counts.sum() == 4 * n_items
    assert np.quantile(item_counts, 0.01) >= 3
    assert np.quantile(item_counts, 0.99) <= 5


def test_what_is_given_back_comes_first_but_not_to_who_skipped_it():
    design, protocol = BalancedTuples(annotators_per_task=2), BestWorst()
    progress = design.new_progress(protocol, make_items(20))
    first = take(design, progress, protocol, "ann", (0,), answer=False)
    progress.on_released("ann", first.items, first.slot)
    assert take(design, progress, protocol, "ann", (1,)).slot != first.slot
    assert take(design, progress, protocol, "bob", (2,)).slot == first.slot
    assert take(design, progress, protocol, "cleo", (3,)).slot != first.slot


def components(sets) -> int:
    root: dict[int, int] = {}

    def find(item):
        while root.setdefault(item, item) != item:
            item = root[item]
        return item

    for items in sets:
        for item in items[1:]:
            root[find(item)] = find(items[0])
    return len({find(item) for item in root})


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), [(20, 1), (20, 3), (20, 20), (20, 60), (40, 37)])
def test_items_added_later_get_their_tuples_and_are_no_island(old, new):
    design, protocol = BalancedTuples(annotators_per_task=1), BestWorst()
    progress = design.new_progress(protocol, make_items(old))
    before = work(design, progress, protocol, ["ann"], 10_000)
    progress.add_items(make_items(new, first=old))
    later = work(design, progress, protocol, ["ann"], 10_000, seed=1)
    assert progress.answers[old:].min() == 8
    assert progress.answers[old:].max() <= 9
    assert len(set(before + later)) == len(before + later)
    assert components(before + later) == 1
    # No more than needed: eight tuples for a single item, else its share of the places and one for company.
    assert len(later) <= max(8, ceil(8 * new / 4) + 1)
    assert design.goal(progress, 4).done == design.goal(progress, 4).total == len(before + later)


def test_items_added_while_a_plan_is_under_way_do_not_upset_it():
    design, protocol = BalancedTuples(annotators_per_task=1), BestWorst()
    progress = design.new_progress(protocol, make_items(20))
    asked_sets = work(design, progress, protocol, ["ann"], 15)
    progress.add_items(make_items(10, first=20))
    total = design.goal(progress, 4).total
    asked_sets += work(design, progress, protocol, ["ann"], 1000, seed=1)
    assert len(set(asked_sets)) == len(asked_sets) == total
    assert progress.answers.min() == 8
    assert progress.answers.max() <= 9


def test_a_larger_factor_adds_only_what_is_lacking():
    """A study is replayed under its new configuration, then planned on from what was asked."""
    protocol = BestWorst()
    small, large = BalancedTuples(factor=1, annotators_per_task=1), BalancedTuples(factor=2, annotators_per_task=1)
    progress, replayed = small.new_progress(protocol, make_items(24)), large.new_progress(protocol, make_items(24))
    for step in range(24):
        pick = take(small, progress, protocol, "ann", (0, step))
        replayed.on_leased("ann", pick.items, pick.slot, pick.round, np.random.default_rng((0, step)))
        replayed.on_answered(pick.items, pick.slot)
    replayed.on_config_change()
    assert large.goal(replayed, 4).total == 48
    later = work(large, replayed, protocol, ["ann"], 1000, seed=1)
    assert len(later) == len(set(later)) == 24
    assert set(replayed.answers.tolist()) == {8}


def test_judgments_from_elsewhere_count_as_tuples():
    design, protocol = BalancedTuples(annotators_per_task=1), BestWorst()
    progress = design.new_progress(protocol, make_items(24))
    for items in [(0, 1, 2, 3), (0, 1, 2, 3), (4, 5, 6, 7)]:
        slot = progress.slot_for(items)
        progress.on_leased("zoe", items, slot)
        progress.on_answered(items, slot)
    # The same set twice, where once was wanted, is no more than once.
    assert design.goal(progress, 4).done == 2
    asked_sets = work(design, progress, protocol, ["ann"], 1000)
    assert not {(0, 1, 2, 3), (4, 5, 6, 7)} & set(asked_sets)
    goal = design.goal(progress, 4)
    assert goal.done == goal.total == len(asked_sets) + 2


def test_the_first_tuple_may_be_any_with_equal_chance():
    design, protocol = BalancedTuples(factor=1), BestWorst()
    counts: Counter[tuple[int, ...]] = Counter()
    for seed in range(600):
        pick = design.pick(design.new_progress(protocol, make_items(6)), 4, "ann", np.random.default_rng(seed))
        assert isinstance(pick, Pick)
        assert pick.propensity == pytest.approx(1 / 15)
        counts[tuple(sorted(pick.items))] += 1
    assert len(counts) == 15
    assert max(counts.values()) < 40 + 5 * 40**0.5
