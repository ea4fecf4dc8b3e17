"""The alternative annotator test against hand calculation and the authors' printed results."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from reproductions.judges.alternative_annotator import EPSILON, PUBLISHED, _prompts
from steelyard.errors import DataError
from steelyard.reliability.alternative_annotator import alternative_annotator_test


def answers(rows):
    return pl.DataFrame(rows, schema=["annotator", "item", "value"], orient="row")


def test_wins_are_counted_as_by_hand():
    # Others of a: b and c. Item 1: a is off by 2 and 2, the judge by 0. Item 2: a agrees exactly, the judge is off.
    people = answers(
        [(who, "1", value) for who, value in (("a", 1.0), ("b", 3.0), ("c", 3.0))]
        + [(who, "2", value) for who, value in (("a", 2.0), ("b", 2.0), ("c", 2.0))]
    )
    result = alternative_annotator_test(people, {"1": 3.0, "2": 5.0}, min_items=2)
    row = result.table.row(by_predicate=pl.col("annotator") == "a", named=True)
    assert (row["judge_as_good"], row["annotator_as_good"]) == (0.5, 0.5)
    # b agrees with c in item 1 and not with a: RMSE √2, and so does the judge: a draw counts for both.
    row = result.table.row(by_predicate=pl.col("annotator") == "b", named=True)
    assert (row["judge_as_good"], row["annotator_as_good"]) == (0.5, 1.0)


def test_labels_are_compared_by_the_proportion_equal_and_p_values_are_those_of_the_t_test():
    rng = np.random.default_rng(0)
    rows = [(who, str(i), rng.choice(["x", "y"])) for who in "abc" for i in range(60)]
    judge = {str(i): rng.choice(["x", "y"]) for i in range(60)}
    result = alternative_annotator_test(answers(rows), judge, alignment="accuracy", epsilon=0.15)
    table = {(who, item): value for who, item, value in rows}
    difference = []
    for i in map(str, range(60)):
        others = [table["b", i], table["c", i]]
        human, machine = (sum(given == other for other in others) for given in (table["a", i], judge[i]))
        difference.append(int(human >= machine) - int(machine >= human))
    expected = stats.ttest_1samp(difference, 0.15, alternative="less").pvalue
    assert result.table.row(by_predicate=pl.col("annotator") == "a", named=True)["p_value"] == pytest.approx(expected)


def test_a_judge_who_copies_the_majority_passes_and_a_reversed_one_does_not():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=200)
    rows = [(who, str(i), float(truth[i] + rng.normal())) for who in "abcde" for i in range(200)]
    good = {str(i): float(truth[i]) for i in range(200)}
    bad = {str(i): float(-truth[i]) for i in range(200)}
    assert alternative_annotator_test(answers(rows), good).winning_rate == 1
    assert alternative_annotator_test(answers(rows), bad).winning_rate == 0


def test_too_few_items_are_refused():
    with pytest.raises(DataError, match="no annotator has 30 items"):
        alternative_annotator_test(answers([("a", "1", 1.0), ("b", "1", 2.0)]), {"1": 1.0})


@pytest.mark.parametrize("model", ["gpt-4o", "gemini_pro"])
def test_the_authors_results_are_reproduced(shared_data, model):
    table = _prompts(shared_data)
    people = table.filter(pl.col("kind") == "human").select("annotator", "item", "value")
    judge = dict(table.filter(pl.col("annotator") == model).select("item", "value").iter_rows())
    result = alternative_annotator_test(people, judge, epsilon=EPSILON["10K Prompts"])
    assert (round(result.winning_rate, 2), round(result.advantage, 2)) == PUBLISHED["10K Prompts"][model]
