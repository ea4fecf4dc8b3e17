"""Before anybody is asked, a study says what will be compared, how much, and what is left out."""

from __future__ import annotations

import pytest

from steelyard.designs import AllPairs, BalancedTuples, PerItem, RandomTuples
from steelyard.designs.description import describe_plan
from steelyard.protocols import BestWorst, Direct, Pairwise
from steelyard.records import Item
from tests.contracts.test_contexts import outputs


def test_systems_are_compared_within_the_same_source():
    plan = describe_plan(AllPairs(), Pairwise(), outputs(50, 6))
    assert plan.sentences == (
        "Items are compared within the same source: 50 sources × 6 systems, 750 possible pairs.",
        "The plan has 750 judgments: 750 tasks of 2 items; about 5 judgments per item.",
    )
    assert plan.warnings == ()


def test_annotators_of_each_task_multiply_judgments():
    # 2 · 6 tuples of four for each of 50 sources, three annotators each; each item is in 8 of the tuples.
    plan = describe_plan(BalancedTuples(), BestWorst(), outputs(50, 6))
    assert plan.sentences[1] == (
        "The plan has 1,800 judgments: 600 tasks of 4 items, each by 3 annotators; about 24 judgments per item."
    )


def test_pages_of_ratings_count_pages():
    plan = describe_plan(PerItem(judgments=3), Direct(items_per_page=4), outputs(10, 4))
    assert plan.sentences == ("The plan has 30 judgments: 30 tasks of 4 items; about 3 judgments per item.",)


def test_comparing_across_sources_is_said():
    plan = describe_plan(RandomTuples(judgments=2, across_contexts=True), Pairwise(), outputs(10, 2))
    assert "also of other sources, because across_contexts = true: 20 items, 190 possible pairs" in (plan.sentences[0])


@pytest.mark.parametrize(
    ("more", "warning"),
    [
        ([Item("x", "x", "s", "lonely")], "1 source has only one item, and is left out: “lonely”"),
        (
            [Item(f"x{n}", "x", "s", f"lonely {n}") for n in range(5)],
            "5 sources have only one item, and are left out: “lonely 0”, “lonely 1”, “lonely 2” and 2 more",
        ),
        (
            [Item(f"x{n}", "x") for n in range(3)],
            "3 items have no source; they are compared with one another, never with items that have one",
        ),
        ([Item("x", "x")], "1 items have no source; they are never shown"),
        (
            [Item("x", "x", "system 0", "source 1")],
            "in 1 sources a system has several outputs, which may be compared with each other: “source 1”",
        ),
    ],
)
def test_what_cannot_be_compared_is_named(more, warning):
    plan = describe_plan(AllPairs(), Pairwise(), outputs(4, 3) + more)
    assert plan.warnings == (warning,)


def test_systems_without_sources_are_pointed_out():
    items = [Item(f"i{n}", f"t{n}", f"system {n % 2}") for n in range(6)]
    (warning,) = describe_plan(AllPairs(), Pairwise(), items).warnings
    assert "add a column source" in warning


def test_sources_with_too_few_different_tuples_are_counted():
    items = outputs(3, 6) + [Item(f"x{n}", f"x{n}", f"system {n}", "small") for n in range(4)]
    plan = describe_plan(BalancedTuples(factor=2, annotators_per_task=1), BestWorst(), items)
    (warning,) = plan.warnings
    assert warning.startswith("1 of 4 sources have fewer distinct tuples than factor requires; all of them are used")
    # 12 tuples for each source of six, and the only one of the source of four.
    assert plan.size.judgments == 37
