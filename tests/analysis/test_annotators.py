"""Annotators: agreement with the others and with themselves, recomputed by hand and by brute force."""

from __future__ import annotations

from math import atanh, sqrt, tanh

import numpy as np
import polars as pl
import pytest

from steelyard.analysis.annotators import annotator_table, checked
from steelyard.analysis.history import history_of
from steelyard.observations import UNKNOWN, Choices, Comparisons, Index, Labels, Rankings, Ratings
from steelyard.reliability.annotators import with_others, with_themselves
from tests.analysis.conftest import MINUTE, answer_all


def ratings(rows, scale=(0, 100)):
    items, people = Index(sorted({r[1] for r in rows})), Index(sorted({r[0] for r in rows}))
    return Ratings(
        items=items,
        annotators=people,
        annotator=people.codes([r[0] for r in rows]),
        item=items.codes([r[1] for r in rows]),
        value=np.array([r[2] for r in rows], float),
        scale=scale,
    )


def row(table, annotator):
    return table.row(by_predicate=pl.col("annotator") == annotator, named=True)


ROWS = [
    ("ann", "a", 10), ("ann", "b", 40), ("ann", "c", 50), ("ann", "d", 90), ("ann", "e", 70),
    ("bob", "a", 20), ("bob", "b", 30), ("bob", "c", 70), ("bob", "d", 80), ("bob", "e", 75),
    ("cleo", "a", 0), ("cleo", "b", 60), ("cleo", "c", 55), ("cleo", "d", 100), ("cleo", "e", 95),
]  # fmt: skip


def by_hand(rows, who, leave=()):
    own = {i: v for a, i, v in rows if a == who}
    rest = {i: np.mean([v for a, j, v in rows if j == i and a != who and a not in leave]) for i in own}
    mine, theirs = np.array(list(own.values())), np.array([rest[i] for i in own])
    return np.corrcoef(mine, theirs)[0, 1], mine - theirs


@pytest.mark.parametrize("who", ["ann", "bob", "cleo"])
def test_agreement_of_ratings_is_the_correlation_with_the_mean_of_the_others(who):
    agreement = row(with_others({"": ratings(ROWS)}), who)
    r, off = by_hand(ROWS, who)
    assert agreement["agreement"] == pytest.approx(r)
    assert agreement["agreement_lower"] == pytest.approx(tanh(atanh(r) - 1.959964 / sqrt(2)))
    assert agreement["agreement_upper"] == pytest.approx(tanh(atanh(r) + 1.959964 / sqrt(2)))
    assert agreement["bias"] == pytest.approx(off.mean())
    assert agreement["noise"] == pytest.approx(off.std(ddof=1))
    assert agreement["shared"] == 5


def test_excluded_people_are_held_against_the_rest_but_the_rest_not_against_them():
    table = with_others({"": ratings(ROWS)}, {"cleo"})
    for who in ("ann", "bob", "cleo"):
        assert row(table, who)["agreement"] == pytest.approx(by_hand(ROWS, who, leave=("cleo",))[0])


def test_nobody_is_accused_on_three_answers():
    table = with_others({"": ratings([r for r in ROWS if r[1] in "abc"])})
    assert table["agreement"].null_count() == 3
    assert table["bias"].null_count() == 3


def test_means_of_criteria_do_not_pass_for_agreement():
    # Within each criterion the two know nothing of each other; only the criteria's means differ.
    low = [("ann", i, v) for i, v in zip("abcd", (0, 10, 0, 10), strict=True)]
    low += [("bob", i, v) for i, v in zip("abcd", (0, 0, 10, 10), strict=True)]
    high = [(a, i, v + 90) for a, i, v in low]
    table = with_others({"x": ratings(low), "y": ratings(high)})
    assert row(table, "ann")["agreement"] == pytest.approx(0)


def comparisons(rows):
    items, people = Index(sorted({i for r in rows for i in r[1:3]})), Index(sorted({r[0] for r in rows}))
    return Comparisons(
        items=items,
        annotators=people,
        tasks=Index([str(n) for n in range(len(rows))]),
        annotator=people.codes([r[0] for r in rows]),
        task=np.arange(len(rows), dtype=np.int32),
        left=items.codes([r[1] for r in rows]),
        right=items.codes([r[2] for r in rows]),
        outcome=np.array([r[3] for r in rows], np.int8),
    )


def test_agreement_of_comparisons_is_the_share_in_the_order_of_the_others():
    others = [("bob", "a", "b", 1), ("bob", "b", "c", 1), ("cleo", "a", "c", 1), ("cleo", "c", "b", -1)]
    # Without ann, a won 2 of 2, b 2 of 3, c 0 of 3.
    own = [
        ("ann", "a", "b", 1),
        ("ann", "c", "a", -1),
        ("ann", "b", "c", -1),
        ("ann", "b", "a", -1),
        ("ann", "a", "c", 0),
    ]
    agreement = row(with_others({"": comparisons(others + own)}), "ann")
    assert agreement["agreement"] == pytest.approx(3 / 4)
    assert agreement["shared"] == 4
    # Wilson's interval of 3 of 4 (Wilson 1927; any calculator): 0.3006 to 0.9544.
    assert (agreement["agreement_lower"], agreement["agreement_upper"]) == pytest.approx((0.3006, 0.9544), abs=1e-4)


def test_choices_and_rankings_agree_with_the_pairs_they_say():
    rng = np.random.default_rng(3)
    items, people = Index(list("abcdef")), Index(["p", "q", "r"])
    triples = np.array([rng.permutation(6)[:3] for _ in range(30)], np.int32)
    who = np.arange(30, dtype=np.int32) % 3
    tasks = Index([str(n) for n in range(30)])
    task = np.arange(30, dtype=np.int32)
    common = {"items": items, "annotators": people, "tasks": tasks, "annotator": who, "task": task}
    # The best first and the worst last of three: a choice says as much as the ranking.
    choices = Choices(shown=triples, best=triples[:, 0], worst=triples[:, 2], **common)
    rankings = Rankings(
        start=np.arange(0, 91, 3, dtype=np.int64),
        item=triples.ravel(),
        rank=np.tile([1, 2, 3], 30).astype(np.int32),
        **common,
    )
    one, other = (with_others({"": part}).sort("annotator") for part in (choices, rankings))
    assert one["agreement"].to_list() == pytest.approx(other["agreement"].to_list())
    assert one["shared"].to_list() == other["shared"].to_list() == [10, 10, 10]


def test_agreement_of_labels_counts_the_others_most_frequent_and_shares_ties():
    rows = [
        ("ann", "a", 0), ("bob", "a", 0), ("cleo", "a", 1), ("dan", "a", 0),
        ("ann", "b", 1), ("bob", "b", 0), ("cleo", "b", 1), ("dan", "b", 0),
        ("ann", "c", 1), ("bob", "c", 1), ("cleo", "c", 1), ("dan", "c", 1),
        ("ann", "d", 0), ("bob", "d", 1), ("cleo", "d", 1), ("dan", "d", 1),
    ]  # fmt: skip
    items, people = Index(list("abcd")), Index(["ann", "bob", "cleo", "dan"])
    labels = Labels(
        items=items,
        annotators=people,
        annotator=people.codes([r[0] for r in rows]),
        item=items.codes([r[1] for r in rows]),
        label=np.array([r[2] for r in rows], np.int32),
        classes=Index(["yes", "no"]),
    )
    table = with_others({"": labels})
    # ann: a like two of three; b against two of three; c with all; d against all.
    assert row(table, "ann")["agreement"] == pytest.approx(2 / 4)
    # bob: a: the others say 0, 1, 0, so right; b: 1, 1, 0: wrong; c right; d: 0, 1, 1: right.
    assert row(table, "bob")["agreement"] == pytest.approx(3 / 4)
    # Two who disagree with each other on a tie share it.
    tied = Labels(
        items=items,
        annotators=people,
        annotator=np.array([0, 1, 2] * 4, np.int32),
        item=np.repeat(np.arange(4, dtype=np.int32), 3),
        label=np.array([0, 0, 1] * 4, np.int32),
        classes=Index(["yes", "no"]),
    )
    assert row(with_others({"": tied}), "ann")["agreement"] == pytest.approx(1 / 2)


def test_self_consistency_of_ratings_is_one_less_the_mean_difference_on_the_scale():
    rows = [("ann", "a", 10), ("ann", "a", 20), ("ann", "a", 40), ("ann", "b", 50), ("bob", "a", 5), ("bob", "a", 5)]
    table = with_themselves({"": ratings(rows)})
    # ann: |10−20|, |10−40|, |20−40| = 60 over three pairs: 20 of 100.
    assert row(table, "ann") == {"annotator": "ann", "self_consistency": pytest.approx(0.8), "repeats": 3}
    assert row(table, "bob") == {"annotator": "bob", "self_consistency": 1.0, "repeats": 1}


def test_self_consistency_of_comparisons_does_not_mind_the_sides():
    rows = [("ann", "a", "b", 1), ("ann", "b", "a", -1), ("ann", "a", "b", 0), ("bob", "a", "b", 1)]
    table = with_themselves({"": comparisons(rows)})
    # Of the three pairs of answers, one is alike.
    assert table.rows() == [("ann", pytest.approx(1 / 3), 3)]


def test_self_consistency_of_choices_looks_at_best_and_worst():
    items, people = Index(list("abc")), Index(["ann"])
    choices = Choices(
        items=items,
        annotators=people,
        annotator=np.zeros(2, np.int32),
        shown=np.array([[0, 1, 2], [2, 1, 0]], np.int32),
        best=np.array([0, 0], np.int32),
        worst=np.array([2, 1], np.int32),
    )
    assert with_themselves({"": choices}).rows() == [("ann", 0.5, 2)]


def test_unknown_annotators_count_among_the_others_but_have_no_row():
    part = ratings(ROWS)
    hidden = part.annotator.copy()
    hidden[part.annotators.code("cleo") == hidden] = UNKNOWN
    table = with_others(
        {
            "": Ratings(
                items=part.items,
                annotators=part.annotators,
                annotator=hidden,
                item=part.item,
                value=part.value,
                scale=(0, 100),
            )
        }
    )
    assert sorted(table["annotator"]) == ["ann", "bob"]
    assert row(table, "ann")["agreement"] == pytest.approx(by_hand(ROWS, "ann")[0])


def test_the_table_has_a_row_for_everybody_with_their_work(open_study, clock):
    study = open_study(design='name = "per_item"\njudgments = 3', items=5)
    values = {
        name: {i.id: v for i, v in zip(study.items, given, strict=True)}
        for name, given in {"ann": (10, 40, 50, 90, 70), "bob": (20, 30, 70, 80, 75)}.items()
    }
    for name in values:
        answer_all(
            study, name, lambda ids, name=name: {i: values[name][i] for i in ids}, seconds=4 if name == "ann" else 9
        )
        clock.now += MINUTE
    task = study.ask("cleo")
    study.flag(task, "typo")
    study.skip(task, "cannot say")
    study.tell(study.ask("cleo"), {study.ask("cleo").item_ids[0]: 50})
    study.annotators.exclude("bob", "too fast")
    study.ask("zoe")
    study.annotators.exclude("zoe", "known from elsewhere")
    history = history_of(study)
    table = annotator_table(history, study)
    assert table["annotator"].to_list() == ["ann", "bob", "cleo", "zoe"]
    assert table["judgments"].to_list() == [5, 5, 1, 0]
    assert table["median_seconds"].to_list() == [4, 9, None, None]
    assert table["seconds_per_item"].to_list() == [None] * 4
    assert table["excluded"].to_list() == [None, "too fast", None, "known from elsewhere"]
    assert row(table, "cleo")["flags"] == row(table, "cleo")["skips"] == 1
    own = [(n, i, v) for n in values for i, v in values[n].items()]
    assert row(table, "bob")["agreement"] is not None
    assert row(table, "ann")["first"] < row(table, "bob")["first"]
    item = history.judgments.filter(history.judgments["annotator"] == "cleo")["items"][0][0]
    full = [*own, ("cleo", item, 50)]
    assert row(table, "bob")["agreement"] == pytest.approx(by_hand(full, "bob")[0])


def test_accuracy_in_the_checks_has_wilsons_interval():
    [found] = checked({"ann": (3, 4)}).to_dicts()
    assert (found["accuracy"], found["checks"]) == (0.75, 4)
    assert (found["accuracy_lower"], found["accuracy_upper"]) == pytest.approx((0.3006, 0.9544), abs=1e-4)
    assert checked({}).height == 0


def test_two_hundred_thousand_ratings_take_seconds_at_most():
    import time

    rng = np.random.default_rng(0)
    n, people = 200_000, 500
    part = Ratings(
        items=Index([str(i) for i in range(10_000)]),
        annotators=Index([f"p{i}" for i in range(people)]),
        annotator=rng.integers(0, people, n).astype(np.int32),
        item=rng.integers(0, 10_000, n).astype(np.int32),
        value=rng.random(n) * 100,
        scale=(0, 100),
    )
    begin = time.perf_counter()
    assert with_others({"": part}).height == people
    assert with_themselves({"": part}).height > 0
    assert time.perf_counter() - begin < 5
