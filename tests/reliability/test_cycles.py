"""Cycle consistency against brute force over graphs and triples."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from steelyard.errors import DataError
from steelyard.observations import Comparisons, Index, Ratings
from steelyard.reliability import cycle_consistency

Edge = tuple[int, int, int, int, int]  # annotator, task, left, right, outcome


def int32(codes: ArrayLike) -> np.ndarray:
    return np.asarray(codes, np.int32)


def index(count: int, letter: str) -> Index:
    return Index(f"{letter}{number}" for number in range(count))


def comparisons_of(rows: list[Edge], *, annotators: bool = True, tasks: bool = True) -> Comparisons:
    annotator, task, left, right, outcome = np.array(rows).T
    return Comparisons(
        items=index(6, "i"),
        annotators=index(3, "w"),
        annotator=int32(annotator if annotators else []),
        tasks=index(3, "t"),
        task=int32(task if tasks else []),
        left=int32(left),
        right=int32(right),
        outcome=outcome.astype(np.int8),
    )


def naive_items_in_cycles(rows: list[Edge]) -> set[int]:
    """Items from which one returns to oneself by wins and ties, at least one of them a win."""
    items = {side for _, _, a, b, _ in rows for side in (a, b)}
    level, over = set(), set()
    for _, _, left, right, outcome in rows:
        if outcome == 0:
            level |= {(left, right), (right, left)}
        else:
            over.add((left, right) if outcome > 0 else (right, left))

    def reach(start: int) -> set[tuple[int, bool]]:
        seen, todo = {(start, False)}, [(start, False)]
        while todo:
            here, won = todo.pop()
            steps = [(b, won) for a, b in level if a == here] + [(b, True) for a, b in over if a == here]
            todo += [step for step in steps if step not in seen]
            seen |= set(steps)
        return seen

    return {item for item in items if (item, True) in reach(item)}


def naive_graphs(rows: list[Edge]) -> list[list[Edge]]:
    """Split rows by annotator and task; by annotator and connected items if every task has one comparison."""
    tasks = [[row for row in rows if row[:2] == key] for key in sorted({row[:2] for row in rows})]
    if max(map(len, tasks)) > 1:
        return tasks
    island = {item: {item} for row in rows for item in row[2:4]}
    for row in rows:
        joined = island[row[2]] | island[row[3]]
        for item in joined:
            island[item] = joined
    keys = {(row[0], min(island[row[2]])) for row in rows}
    return [[row for row in rows if (row[0], min(island[row[2]])) == key] for key in keys]


edges = st.lists(
    st.tuples(
        st.integers(0, 1), st.integers(0, 1), st.integers(0, 4), st.integers(0, 4), st.sampled_from([1, 1, -1, -1, 0])
    ).filter(lambda row: row[2] != row[3]),
    min_size=1,
    max_size=25,
)


@settings(deadline=None, max_examples=100)
@given(rows=edges)
def test_graphs_and_items_in_cycles_are_those_found_by_walking(rows: list[Edge]) -> None:
    cycles = cycle_consistency(comparisons_of(rows), replicates=20)
    groups = naive_graphs(rows)
    bad = [naive_items_in_cycles(group) for group in groups]
    items = [len({side for row in group for side in row[2:4]}) for group in groups]
    assert cycles["cyclic_graphs"].value == pytest.approx(np.mean([len(each) > 0 for each in bad]))
    assert cycles["items_in_no_cycle"].value == pytest.approx(1 - sum(map(len, bad)) / sum(items))
    assert sorted(cycles.graphs["items_in_cycles"].to_list()) == sorted(len(each) for each in bad)
    for figure in cycles.statistics[:2]:
        if figure.lower is None:
            assert "no interval" in figure.note
            continue
        assert figure.upper is not None
        assert figure.lower <= (figure.value or 0.0) <= figure.upper


@settings(deadline=None, max_examples=60)
@given(rows=edges)
def test_circular_triads_are_those_found_by_looking_at_every_three_items(rows: list[Edge]) -> None:
    circular = total = 0
    for group in naive_graphs(rows):
        net: dict[tuple[int, int], int] = {}
        for row in group:
            net[row[2], row[3]] = net.get((row[2], row[3]), 0) + row[4]
            net[row[3], row[2]] = net.get((row[3], row[2]), 0) - row[4]
        for three in combinations(range(5), 3):
            if all(net.get(pair, 0) != 0 for pair in combinations(three, 2)):
                total += 1
                circular += any(net[a, b] > 0 and net[b, c] > 0 and net[c, a] > 0 for a, b, c in permutations(three))
    cycles = cycle_consistency(comparisons_of(rows), replicates=0)["circular_triads"]
    if not total:
        assert cycles.value is None
    else:
        assert cycles.value == pytest.approx(circular / total, abs=1e-12)


def test_kendalls_coefficient_follows_its_formula() -> None:
    """Five items, 0 over 1 over 2 over 0, all else in order: d = 1 of at most 5, ζ = 1 - 24/(125 - 5)."""
    rows = [(0, 0, a, b, 1) for a, b in combinations(range(5), 2) if (a, b) != (0, 2)] + [(0, 0, 2, 0, 1)]
    scores = np.bincount([row[2] for row in rows], minlength=5)
    d = 5 * 4 * 9 / 12 - (scores**2).sum() / 2
    assert d == 1
    zeta = cycle_consistency(comparisons_of(rows))["coefficient_of_consistence"].value
    assert zeta == pytest.approx(1 - 24 * d / (5**3 - 5))
    # Four items, even: at most (64 - 16)/24 = 2 circular triads.
    four = [(0, 0, 0, 1, 1), (0, 0, 1, 2, 1), (0, 0, 2, 3, 1), (0, 0, 3, 0, 1), (0, 0, 0, 2, 1), (0, 0, 1, 3, 1)]
    scores = np.bincount([row[2] for row in four], minlength=4)
    d = 4 * 3 * 7 / 12 - (scores**2).sum() / 2
    zeta = cycle_consistency(comparisons_of(four))["coefficient_of_consistence"].value
    assert zeta == pytest.approx(1 - 24 * d / (4**3 - 16))


def test_an_incomplete_or_tied_graph_has_no_coefficient_but_a_reason() -> None:
    rows = [(0, 0, 0, 1, 1), (0, 0, 1, 2, 1), (0, 0, 2, 0, 0)]
    assert cycle_consistency(comparisons_of(rows))["coefficient_of_consistence"].value is None
    assert (
        "every pair" in cycle_consistency(comparisons_of([*rows, (0, 0, 2, 0, 1)]))["coefficient_of_consistence"].note
    )


def test_random_answers_make_a_quarter_of_the_triads_circular() -> None:
    rng = np.random.default_rng(0)
    pairs = list(combinations(range(6), 2))
    rows = [(0, t, a, b, int(x)) for t in range(3) for (a, b), x in zip(pairs, rng.choice([-1, 1], 15), strict=True)]
    left, right = np.tile(np.array(pairs).T, 400)
    many = Comparisons(
        items=index(6, "i"),
        tasks=index(400, "t"),
        task=int32(np.repeat(np.arange(400), 15)),
        left=int32(left),
        right=int32(right),
        outcome=rng.choice([-1, 1], 6000).astype(np.int8),
    )
    assert cycle_consistency(many)["circular_triads"].value == pytest.approx(0.25, abs=0.02)
    assert len(cycle_consistency(comparisons_of(rows)).graphs) == 3


def test_no_cycle_at_all_gets_wilsons_interval() -> None:
    rows = [(a, t, 0, side, 1) for a in range(3) for t in range(3) for side in (1, 2)]
    figure = cycle_consistency(comparisons_of(rows))["cyclic_graphs"]
    assert figure.value == 0.0
    assert figure.upper == pytest.approx(1.96**2 / (9 + 1.96**2), abs=1e-3)
    assert figure.interval == "wilson(graphs)"


def test_a_graph_is_what_is_known_of_annotator_and_task() -> None:
    rows = [(a, t, 0, side, 1) for a in range(3) for t in range(2) for side in (1, 2)]
    assert len(cycle_consistency(comparisons_of(rows)).graphs) == 6
    assert len(cycle_consistency(comparisons_of(rows, tasks=False)).graphs) == 3
    assert len(cycle_consistency(comparisons_of(rows, annotators=False)).graphs) == 2
    nobody = cycle_consistency(comparisons_of(rows, annotators=False, tasks=False))
    assert all(figure.value is None for figure in nobody.statistics)
    assert "without annotators or tasks" in nobody.statistics[0].note


def test_sources_are_separate_graphs_where_every_answer_is_one_comparison() -> None:
    """Two sources of three items; the annotator contradicts themselves about the second only."""
    first = [(0, 1), (1, 2), (0, 2)]
    second = [(3, 4), (4, 5), (5, 3)]
    rows = [(0, 0, a, b, 1) for a, b in first + second]
    unique_tasks = Comparisons(
        items=index(6, "i"),
        annotators=index(1, "w"),
        annotator=int32([0] * 6),
        tasks=index(6, "t"),
        task=int32(range(6)),
        left=int32([row[2] for row in rows]),
        right=int32([row[3] for row in rows]),
        outcome=np.ones(6, np.int8),
    )
    for comparisons in (unique_tasks, comparisons_of(rows, tasks=False)):
        cycles = cycle_consistency(comparisons)
        assert cycles["cyclic_graphs"].value == 0.5
        assert cycles["items_in_no_cycle"].value == 0.5
        assert cycles.graphs["items"].to_list() == [3, 3]


def test_ratings_are_refused() -> None:
    with pytest.raises(DataError, match="these are ratings"):
        cycle_consistency(Ratings(items=index(1, "i"), item=int32([0]), value=np.zeros(1), scale=(0.0, 1.0)))
