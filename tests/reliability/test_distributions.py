"""Distributions of answers by item: each kind of judgment, soft labels, and groups too small to show."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from steelyard.errors import ConfigError, DataError
from steelyard.formats import read_judgments
from steelyard.observations import Index, Observations, Rankings
from steelyard.reliability import answer_distributions, soft_labels


def read(rows: list[dict[str, object]], scale: tuple[float, float] | None = None) -> Observations:
    return read_judgments(rows, scale=scale).observations


def labelled(answers: dict[str, str]) -> Observations:
    """The nth letter is the answer of annotator n."""
    return read(
        [
            {"annotator": f"w{n}", "item": item, "label": label}
            for item, labels in answers.items()
            for n, label in enumerate(labels)
        ]
    )


def counts(table: pl.DataFrame) -> dict[tuple[str, ...], int]:
    keys = [name for name in ("item", "group", "answer") if name in table.columns]
    return {tuple(row[:-1]): row[-1] for row in table.select(*keys, "judgments").iter_rows() if row[-1]}


def test_labels_are_counted_by_class_and_become_soft_labels() -> None:
    table = answer_distributions(labelled({"a": "yyyn", "b": "nnnn", "c": "yn"}))
    assert counts(table) == {("a", "y"): 3, ("a", "n"): 1, ("b", "n"): 4, ("c", "y"): 1, ("c", "n"): 1}
    assert table.height == 3 * 2  # also the answers that nobody gave
    soft = soft_labels(table).sort("item")
    assert soft["p(y)"].to_list() == [0.75, 0.0, 0.5]
    assert soft["p(n)"].to_list() == [0.25, 1.0, 0.5]
    assert soft["hard_label"].to_list() == ["y", "n", None]
    # −¾·log₂ ¾ − ¼·log₂ ¼ = 2 − ¾·log₂ 3
    assert soft["entropy"].to_list() == pytest.approx([2 - 0.75 * 1.584962500721156, 0.0, 1.0])


def test_steps_are_counted_one_by_one_and_sliders_in_bins() -> None:
    steps = read([{"annotator": f"w{n}", "item": "a", "value": v} for n, v in enumerate((1, 5, 5))], (1, 5))
    assert answer_distributions(steps)["answer"].to_list() == ["1", "2", "3", "4", "5"]
    assert answer_distributions(steps)["judgments"].to_list() == [1, 0, 0, 0, 2]
    slider = read(
        [{"annotator": f"w{n}", "item": "a", "value": v} for n, v in enumerate((0, 9.9, 10, 50, 100))], (0, 100)
    )
    assert counts(answer_distributions(slider)) == {
        ("a", "0 to 10"): 2,
        ("a", "10 to 20"): 1,
        ("a", "50 to 60"): 1,
        ("a", "90 to 100"): 1,
    }
    assert answer_distributions(slider, bins=4)["judgments"].to_list() == [3, 0, 1, 1]


def test_comparisons_are_counted_from_the_side_of_each_item() -> None:
    pairs = read(
        [
            {"annotator": "ann", "left": "a", "right": "b", "winner": "left"},
            {"annotator": "bob", "left": "b", "right": "a", "winner": "right"},
            {"annotator": "cy", "left": "a", "right": "b", "winner": "tie"},
        ]
    )
    assert counts(answer_distributions(pairs)) == {
        ("a", "win"): 2,
        ("a", "tie"): 1,
        ("b", "loss"): 2,
        ("b", "tie"): 1,
    }


def test_choices_and_rankings_are_counted_by_what_was_chosen_and_by_rank() -> None:
    choices = read([{"annotator": "ann", "item1": "a", "item2": "b", "item3": "c", "best": "a", "worst": "c"}])
    assert counts(answer_distributions(choices)) == {("a", "best"): 1, ("b", "not chosen"): 1, ("c", "worst"): 1}
    rankings = Rankings(
        items=Index("abc"),
        start=np.array([0, 3]),
        item=np.array([0, 1, 2], np.int32),
        rank=np.array([1, 2, 2], np.int32),
    )
    assert counts(answer_distributions(rankings)) == {("a", "rank 1"): 1, ("b", "rank 2"): 1, ("c", "rank 2"): 1}


def test_groups_of_an_item_that_are_too_small_are_not_shown_nor_found_by_subtraction() -> None:
    judged = labelled({"a": "yyynnn", "b": "yyyyny", "c": "yyy"})
    halves = {f"w{n}": "old" if n < 3 else "young" for n in range(6)}
    by_group = answer_distributions(judged, group_of=halves, min_group=3)
    assert counts(by_group) == {
        ("a", "old", "y"): 3,
        ("a", "young", "n"): 3,
        ("b", "old", "y"): 3,
        ("b", "young", "y"): 2,
        ("b", "young", "n"): 1,
        ("c", "old", "y"): 3,
    }
    assert by_group.filter(pl.col("item") == "c")["proportion"].to_list() == [0.0, 1.0]
    # Four and two: the two are hidden, and with them the four, as all minus four would be the two.
    unequal = {f"w{n}": "old" if n < 4 else "young" for n in range(6)}
    assert set(answer_distributions(judged, group_of=unequal, min_group=3)["item"]) == {"c"}
    with pytest.raises(ConfigError, match="groups of 1"):
        answer_distributions(judged, group_of=halves, min_group=1)


def test_groups_need_annotators() -> None:
    with pytest.raises(DataError, match="no annotator"):
        answer_distributions(read([{"item": "a", "label": "y"}]), group_of={})
