"""Counting: by hand, SemEval-2012's published scores, and wins in pairs and rankings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.formats import read_judgments, read_table
from steelyard.models.choices.counting import Counting
from steelyard.observations import UNKNOWN, Choices, Index, Rankings
from tests.models.online_cases import check_intervals, comparisons_of

Tuple = tuple[str, str | None, str | None]


def choices_of(rows: Sequence[Tuple], *, annotator: Sequence[str] = (), items: Sequence[str] | None = None) -> Choices:
    """Build choices from (items as letters, best, worst)."""
    index = Index(items if items is not None else sorted({item for row in rows for item in row[0]}))
    width = max(len(row[0]) for row in rows)
    people = Index(sorted(set(annotator)))
    return Choices(
        items=index,
        annotators=people,
        annotator=people.codes(list(annotator)) if annotator else np.full(len(rows), UNKNOWN, np.int32),
        shown=np.array([[*index.codes(list(row[0])), *[UNKNOWN] * (width - len(row[0]))] for row in rows], np.int32),
        best=index.codes([row[1] for row in rows]),
        worst=index.codes([row[2] for row in rows]),
    )


def scores(table: pl.DataFrame) -> dict[str, float | None]:
    return dict(table.select("item", "score").iter_rows())


def test_the_score_is_times_best_less_times_worst_over_times_shown() -> None:
    rows: list[Tuple] = [("abcd", "a", "d"), ("abce", "a", "c"), ("abde", "e", "d"), ("acde", "c", None)]
    table = Counting().fit(choices_of(rows, items="abcdef")).scores
    assert scores(table) == pytest.approx(
        {"a": 2 / 4, "b": 0.0, "c": 0 / 3, "d": -2 / 3, "e": 1 / 3, "f": None}, nan_ok=True
    )
    assert dict(table.select("item", "judgments").iter_rows())["f"] == 0


def test_an_item_named_best_and_worst_counts_as_neither() -> None:
    assert scores(Counting().fit(choices_of([("abcd", "a", "a")])).scores) == dict.fromkeys("abcd", 0.0)


def test_tuples_of_different_sizes_mix() -> None:
    table = Counting().fit(choices_of([("abcd", "a", "b"), ("ab", "b", "a")])).scores
    assert scores(table) == {"a": 0.0, "b": 0.0, "c": 0.0, "d": 0.0}


def test_a_pair_is_a_tuple_of_two_and_a_ranking_its_pairs() -> None:
    table = Counting().fit(comparisons_of([("a", "b", 1), ("b", "c", 0), ("c", "a", -1)])).scores
    assert scores(table) == {"a": 1.0, "b": -0.5, "c": -0.5}
    ranking = Rankings(
        items=Index("abc"),
        start=np.array([0, 3]),
        item=np.arange(3, dtype=np.int32),
        rank=np.array([1, 2, 3], np.int32),
    )
    assert scores(Counting().fit(ranking).scores) == {"a": 1.0, "b": 0.0, "c": -1.0}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.permutations("abcdef"), st.integers(2, 5), st.sampled_from("uvw")), min_size=1, max_size=20),
    st.booleans(),
)
def test_every_interval_holds_its_score_within_minus_one_and_one(
    rows: list[tuple[list[str], int, str]], named: bool
) -> None:
    tuples: list[Tuple] = [("".join(order[:size]), order[0], order[1]) for order, size, _ in rows]
    annotator = [who for _, _, who in rows] if named else ()
    fit = Counting(draws=20).fit(choices_of(tuples, annotator=annotator, items="abcdef"))
    check_intervals(fit)
    table = fit.scores.drop_nulls("score")
    assert table["score"].is_between(-1, 1).all()
    assert table["unit_score"].to_list() == pytest.approx([(score + 1) / 2 for score in table["score"]])
    backwards = Counting(draws=20).fit(choices_of(tuples[::-1], annotator=annotator[::-1], items="abcdef"))
    assert scores(backwards.scores) == scores(fit.scores)
    mirrored = Counting(draws=20).fit(choices_of([(t, w, b) for t, b, w in tuples], items="abcdef"))
    assert {k: None if v is None else -v for k, v in scores(mirrored.scores).items()} == scores(fit.scores)


def test_one_annotator_gives_no_interval_and_the_notes_say_why() -> None:
    fit = Counting().fit(choices_of([("abcd", "a", "d")] * 3, annotator=["u"] * 3))
    assert fit.scores["lower"].null_count() == 4
    assert "no item was judged by two annotators" in fit.notes[0]


@pytest.mark.shared_data
def test_the_scores_of_semeval_2012_are_the_published_ones_to_their_rounding(shared_data: Path) -> None:
    answers = read_table(shared_data / "bws" / "semeval2012_answers.csv.gz")
    gold = read_table(shared_data / "bws" / "semeval2012_gold.csv.gz")
    compared, widest = 0, 0.0
    for (relation,), part in answers.partition_by("relation", as_dict=True).items():
        choices = read_judgments(part.drop("relation"), kind="choices").observations
        assert isinstance(choices, Choices)
        joined = (
            Counting(draws=20)
            .fit(choices)
            .scores.join(
                gold.filter(pl.col("relation") == relation).select(
                    "item", pl.col("score").cast(pl.Float64).alias("gold")
                ),
                on="item",
            )
        )
        compared += joined.height
        widest = max(widest, float((joined["score"] * 100 - joined["gold"]).abs().max()))  # type: ignore[arg-type]
    assert compared == gold.height == 3218
    assert widest <= 0.05 + 1e-9
