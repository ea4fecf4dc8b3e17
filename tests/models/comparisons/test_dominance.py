"""Dominance: the paper's tournament, ties and cycles by hand, and a slow twin on any graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from scipy import stats

from steelyard.errors import ConfigError, DataError
from steelyard.formats import read_judgments
from steelyard.models.comparisons.dominance import Dominance, average_dominance
from steelyard.observations import Comparisons, Index, Rankings
from tests.models.online_cases import Row, check_intervals, comparisons_of, some_comparisons

# Six comparisons in three brackets (3 + 2 + 1) that give what the text says of Fig. 1: LW dominates Google,
# Systran, Moses and Bing; the reference was compared with Bing alone; Google and Systran are equivalent.
FIGURE_1: list[Row] = [
    ("Reference", "Bing", 1),
    ("LW", "Google", 1),
    ("Systran", "Moses", 1),
    ("Google", "Systran", 0),
    ("Moses", "Bing", 1),
    ("LW", "Moses", 1),
]


def dominance_of(rows: Sequence[Row], count: Literal["items", "vertices"] = "items") -> dict[str, int]:
    comparisons = comparisons_of(rows)
    graphs = Dominance(count=count).graphs(comparisons)
    return {comparisons.items[int(i)]: int(f) for i, f in zip(graphs.item, graphs.dominance, strict=True)}


def ranks_of(rows: Sequence[Row]) -> dict[str, int]:
    comparisons = comparisons_of(rows)
    graphs = Dominance().graphs(comparisons)
    return {comparisons.items[int(i)]: int(r) for i, r in zip(graphs.item, graphs.rank, strict=True)}


def test_the_ranks_of_figure_1_are_the_papers() -> None:
    assert ranks_of(FIGURE_1) == {"LW": 1, "Reference": 2, "Google": 2, "Systran": 2, "Moses": 3, "Bing": 4}


def test_the_values_of_figure_1_count_translations() -> None:
    """LW is 4 and Bing −4 in the paper's text; with Google over Bing, counting translations gives both."""
    rows = [row for row in FIGURE_1 if row[:2] != ("Moses", "Bing")] + [("Google", "Bing", 1)]
    dominance = dominance_of(rows)
    assert dominance == {"LW": 4, "Google": 1, "Systran": 1, "Reference": 1, "Moses": -3, "Bing": -4}
    assert sum(dominance.values()) == 0
    # Google and Systran are one vertex, so LW dominates three.
    assert dominance_of(rows, "vertices")["LW"] == 3


def test_graphs_of_unequal_size_are_weighted_by_the_other_items_and_a_note_says_so() -> None:
    comparisons = Comparisons(
        items=Index("abc"),
        annotators=Index(["ann", "bob"]),
        annotator=np.array([0, 0, 1], np.int32),
        left=np.array([0, 0, 1], np.int32),
        right=np.array([1, 2, 0], np.int32),
        outcome=np.ones(3, np.int8),
    )
    fit = Dominance().fit(comparisons)
    scores = dict(fit.scores.select("item", "score").iter_rows())
    # Ann: a over b and c, two others; Bob: b over a, one other. a: (2·2 − 1·1) / 3, b: (2·(−1) + 1·1) / 3.
    assert scores == pytest.approx({"a": 1.0, "b": -1 / 3, "c": -1.0})
    assert any("graphs have 2 to 3 items" in note for note in fit.notes)


def test_a_chain_counts_those_below_less_those_above() -> None:
    assert dominance_of([("a", "b", 1), ("b", "c", 1), ("d", "c", -1)]) == {"a": 3, "b": 1, "c": -1, "d": -3}


def test_tied_items_are_one_vertex() -> None:
    rows: list[Row] = [("a", "b", 0), ("b", "c", 1), ("c", "d", 0), ("d", "e", 0)]
    assert dominance_of(rows, "vertices") == {**dict.fromkeys("ab", 1), **dict.fromkeys("cde", -1)}
    assert dominance_of(rows) == {**dict.fromkeys("ab", 3), **dict.fromkeys("cde", -2)}


def test_a_cycle_is_collapsed_and_counted_as_a_contradiction() -> None:
    rows = [("a", "b", 1), ("b", "c", 1), ("c", "a", 1), ("c", "d", 1)]
    assert dominance_of(rows, "vertices") == {"a": 1, "b": 1, "c": 1, "d": -1}
    assert dominance_of(rows) == {"a": 1, "b": 1, "c": 1, "d": -3}
    consistency = Dominance().graphs(comparisons_of(rows)).consistency
    assert (consistency.cyclic_share, consistency.consistency) == (1.0, 0.25)


def test_a_win_between_items_that_ties_make_equal_is_a_contradiction() -> None:
    graphs = Dominance().graphs(comparisons_of([("a", "b", 0), ("b", "c", 0), ("a", "c", 1), ("c", "d", 1)]))
    assert graphs.in_cycle.tolist() == [True, True, True, False]
    assert graphs.dominance.tolist() == [1, 1, 1, -3]


def test_consistency_is_over_all_graphs() -> None:
    rows = [("a", "b", 1), ("b", "a", 1), ("x", "y", 1), ("y", "z", 0)]
    fit = Dominance().fit(comparisons_of(rows))
    consistency = Dominance().graphs(comparisons_of(rows)).consistency
    assert consistency == (2, 1, 5, 3)
    assert any("1 of 2 graphs have a cycle" in note for note in fit.notes)


def slow_dominance(rows: list[tuple[int, int, int]], n: int, count: str) -> list[int | None]:
    """The twin: reachability by walking, with ties walked both ways and then collapsed by mutual reachability."""
    wins = [set() for _ in range(n)]  # type: list[set[int]]
    for left, right, outcome in rows:
        if outcome >= 0:
            wins[left].add(right)
        if outcome <= 0:
            wins[right].add(left)
    reach = []
    for v in range(n):
        found, todo = {v}, [v]
        while todo:
            new = wins[todo.pop()] - found
            found |= new
            todo += new
        reach.append(found)
    vertex = (
        list(range(n))
        if count == "items"
        else [min(u for u in range(n) if u in reach[v] and v in reach[u]) for v in range(n)]
    )
    compared_items = {item for row in rows for item in row[:2]}
    return [
        len({vertex[u] for u in reach[v]}) - len({vertex[u] for u in range(n) if v in reach[u]})
        if v in compared_items
        else None
        for v in range(n)
    ]


@pytest.mark.parametrize("count", ["items", "vertices"])
@settings(max_examples=100, deadline=None)
@given(comparisons=some_comparisons(with_tasks=True))
def test_any_graphs_give_what_the_slow_twin_gives(
    comparisons: Comparisons, count: Literal["items", "vertices"]
) -> None:
    graphs = Dominance(source="task", count=count).graphs(comparisons)
    rows = list(zip(comparisons.left.tolist(), comparisons.right.tolist(), comparisons.outcome.tolist(), strict=True))
    for task in np.unique(comparisons.task):
        expected = slow_dominance([row for row, t in zip(rows, comparisons.task, strict=True) if t == task], 6, count)
        mine = graphs.source[graphs.graph] == task
        dominance = dict(zip(graphs.item[mine].tolist(), graphs.dominance[mine].tolist(), strict=True))
        assert [dominance.get(item) for item in range(6)] == expected


def test_a_graph_of_more_than_4096_vertices_is_counted_in_blocks() -> None:
    n = 5000
    chain = Comparisons(
        items=Index(f"i{i}" for i in range(n)),
        left=np.arange(n - 1, dtype=np.int32),
        right=np.arange(1, n, dtype=np.int32),
        outcome=np.ones(n - 1, np.int8),
    )
    assert Dominance().graphs(chain).dominance.tolist() == [n - 1 - 2 * i for i in range(n)]


def test_within_one_source_there_is_no_interval_and_the_notes_say_why() -> None:
    fit = Dominance().fit(comparisons_of(FIGURE_1))
    assert fit.scores["lower"].null_count() == 6
    assert fit.scores["rank_lower"].null_count() == 6
    assert "one ranking, not a sample" in fit.notes[0]
    assert fit.scores["unit_score"].to_list() == pytest.approx([1, 2 / 3, 2 / 3, 2 / 3, 1 / 3, 0])
    check_intervals(fit)


def test_items_of_several_sources_are_ranked_within_their_own() -> None:
    rows = [*FIGURE_1, ("x", "y", 1), ("y", "z", 0)]
    table = Dominance().fit(comparisons_of(rows, items=[*sorted({n for r in rows for n in r[:2]}), "unseen"])).scores
    places = {row["item"]: (row["source"], row["rank"]) for row in table.iter_rows(named=True)}
    assert places["LW"][1] == places["x"][1] == 1
    assert places["Bing"][1] == 4
    assert places["y"] == places["z"]
    assert places["LW"][0] == places["Bing"][0] != places["x"][0]
    assert places["unseen"] == (None, None)


def test_each_annotators_answers_are_a_graph_of_their_own_and_scores_are_their_mean() -> None:
    rows: list[Row] = [("a", "b", 1), ("b", "c", 1), ("a", "b", -1), ("b", "c", 1)]
    comparisons = comparisons_of(rows, annotator=["u", "u", "v", "v"])
    assert Dominance().graphs(comparisons).consistency.cyclic == 0
    fit = Dominance().fit(comparisons)
    assert dict(fit.scores.select("item", "score").iter_rows()) == {"a": 0.5, "b": 1.0, "c": -1.5}
    assert set(fit.scores["interval"]) == {"bootstrap(annotators)"}
    check_intervals(fit)


def test_systems_compared_on_many_segments_get_their_average_dominance() -> None:
    """The items are systems, the tasks source segments: s beats t on two of three, u loses always."""
    rows: list[Row] = [("s", "t", 1), ("t", "u", 1), ("s", "t", 1), ("t", "u", 1), ("t", "s", 1), ("s", "u", 1)]
    fit = Dominance().fit(comparisons_of(rows, task=["1", "1", "2", "2", "3", "3"]))
    assert dict(fit.scores.select("item", "score").iter_rows()) == pytest.approx({"s": 4 / 3, "t": 2 / 3, "u": -2})
    # A system that always wins, or always loses, has no interval: nothing shows how far it may be off.
    assert set(fit.scores["interval"]) <= {"bootstrap(tasks)", None}
    assert "bootstrap(tasks)" in set(fit.scores["interval"])


def test_average_dominance_by_system_has_a_t_interval_over_items() -> None:
    rows: list[Row] = [("s1", "t1", 1), ("s2", "t2", 1), ("s3", "t3", -1), ("s4", "t4", 1)]
    scores = Dominance().fit(comparisons_of(rows)).scores
    table = average_dominance(scores, {f"{system}{n}": system for system in "st" for n in range(1, 5)})
    assert table["group"].to_list() == ["s", "t"]
    assert table["score"].to_list() == [0.5, -0.5]
    assert table["sd"].to_list() == pytest.approx([0.5, 0.5])
    assert table["upper"][0] == pytest.approx(0.5 + stats.t.ppf(0.975, 3) * 0.5)
    with pytest.raises(DataError, match="no scored item"):
        average_dominance(scores, {"other": "s"})


def test_sources_of_different_sizes_are_weighted_as_asked() -> None:
    """A pair that s wins, and five items of which s is the second: f is 1 of 1, and 3 − 1 = 2 of 4."""
    chain: list[Row] = [("t2", "s2", 1), ("s2", "u2", 1), ("u2", "v2", 1), ("v2", "w2", 1)]
    scores = Dominance().fit(comparisons_of([("s1", "t1", 1), *chain])).scores
    group = {name: name[0] for name in scores["item"]}
    means = {
        weighting: dict(average_dominance(scores, group, weighting=weighting).select("group", "score").iter_rows())
        for weighting in ("sources", "items", "normalized")
    }
    assert means["sources"]["s"] == pytest.approx((1 + 2) / 2)
    assert means["items"]["s"] == pytest.approx((1 * 1 + 4 * 2) / 5)
    assert means["normalized"]["s"] == pytest.approx((1 / 1 + 2 / 4) / 2)
    # Of f, t is as good as s; relative to the size of its sources it is worse: it lost the pair.
    assert means["sources"]["t"] == pytest.approx((-1 + 4) / 2)
    assert means["normalized"]["t"] == pytest.approx((-1 + 1) / 2)
    table = average_dominance(scores, group, weighting="items")
    assert set(table["weighting"]) == {"items"}
    # Σ w²(x − m)² · n/(n − 1) = (0.8² + 0.8²) · 2, over (Σ w)².
    assert table.filter(pl.col("group") == "s")["sd"].item() == pytest.approx(np.sqrt(1.28 * 2) / 5)
    with pytest.raises(ConfigError, match="unknown weighting"):
        average_dominance(scores, group, weighting="size")  # type: ignore[arg-type]


def test_tasks_must_be_known_to_tell_sources_apart() -> None:
    with pytest.raises(DataError, match='source = "items"'):
        Dominance(source="task").fit(comparisons_of(FIGURE_1))


def test_one_pair_asked_per_task_is_not_taken_for_a_source() -> None:
    comparisons = comparisons_of(FIGURE_1, task=[f"pair {n}" for n in range(6)])
    assert Dominance().graphs(comparisons).consistency.graphs == 1


@pytest.mark.shared_data
def test_dominance_gives_back_every_complete_ranking_of_wmt10(shared_data: Path) -> None:
    rankings = read_judgments(shared_data / "wmt10" / "rankings.csv.gz").observations
    assert isinstance(rankings, Rankings)
    once = Rankings(
        items=rankings.items,
        tasks=Index(f"row {row}" for row in range(len(rankings))),
        task=np.arange(len(rankings), dtype=np.int32),
        start=rankings.start,
        item=rankings.item,
        rank=rankings.rank,
    )
    graphs = Dominance(source="task").graphs(once)
    assert graphs.consistency.cyclic == 0
    row = np.repeat(np.arange(len(rankings)), np.diff(rankings.start))
    in_order = np.lexsort((rankings.item, row))
    source = graphs.source[graphs.graph]
    several = np.isin(row[in_order], source)
    dense = np.concatenate(
        [stats.rankdata(rankings.rank[a:b], "dense") for a, b in zip(rankings.start, rankings.start[1:], strict=False)]
    )
    assert graphs.rank.tolist() == dense[in_order][several].tolist()
