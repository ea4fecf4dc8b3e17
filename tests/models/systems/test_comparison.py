"""The comparison of systems as a whole: sources, annotators, bootstrap, and the procedures of WMT."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from steelyard import Item, SystemOptions, compare_systems
from steelyard.errors import DataError
from steelyard.models.systems import wmt
from steelyard.models.systems.adjusted_means import Cells
from steelyard.models.systems.bootstrap import resampled_means
from steelyard.models.systems.comparison import compare
from steelyard.models.systems.judgments import SystemJudgments
from steelyard.observations import Comparisons, Index
from steelyard.report.systems import leaderboard
from tests.models.systems.data import complete, ratings


def test_wins_are_counted_source_by_source():
    frame = pl.DataFrame(
        {"system": list("xyxyxy"), "segment": [1, 1, 2, 2, 3, 3], "value": [5, 4, 3, 3, 1, 2], "annotator": ["a"] * 6}
    )
    row = compare_systems(frame, scale=(1, 5)).differences.row(0, named=True)
    assert (row["wins"], row["ties"], row["losses"]) == (1, 1, 1)


def test_scores_do_not_depend_on_the_order_of_judgments():
    cells = complete(4, 10, 3, np.random.default_rng(1))
    order = np.random.default_rng(2).permutation(len(cells.value))
    shuffled = Cells(*(part[order] for part in cells[:4]), 4)
    one, other = (compare(ratings(part)) for part in (cells, shuffled))
    assert one.scores["score"].to_list() == pytest.approx(other.scores["score"].to_list(), abs=1e-9)
    assert one.differences["p_holm"].to_list() == pytest.approx(other.differences["p_holm"].to_list(), rel=1e-6)


def test_comparisons_across_sources_are_left_out_and_counted():
    items = [Item(f"{system}{source}", "", group=system, context=source) for system in "xy" for source in "12"]
    index = Index([item.id for item in items])
    left, right = index.codes(["x1", "x1", "y2", "x2"]), index.codes(["y1", "y2", "x2", "x1"])
    pairs = Comparisons(items=index, left=left, right=right, outcome=np.array([1, 1, -1, 1], np.int8))
    sources = {item.id: item.context for item in items}
    judgments = SystemJudgments.of_items(pairs, {item.id: item.group for item in items}, sources)
    assert len(judgments.observations) == 2
    assert [judgments.sources[int(code)] for code in judgments.source] == ["1", "2"]
    assert "2 judgments compare items of different sources" in judgments.notes[0]


def test_nothing_but_comparisons_across_sources_is_refused():
    index = Index(["x1", "y2"])
    pairs = Comparisons(
        items=index, left=np.array([0], np.int32), right=np.array([1], np.int32), outcome=np.ones(1, np.int8)
    )
    with pytest.raises(DataError, match="1 compare items of different sources"):
        SystemJudgments.of_items(pairs, {"x1": "x", "y2": "y"}, {"x1": "1", "y2": "2"})


def test_bootstrap_of_means_equals_the_loop_over_ratings():
    cells = complete(3, 6, 4, np.random.default_rng(3))
    keep = np.random.default_rng(4).random(len(cells.value)) < 0.7
    cells = Cells(*(part[keep] for part in cells[:4]), 3)
    draws = resampled_means(cells, 5, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    by_source, by_annotator = rng.poisson(1.0, (5, 6)), rng.poisson(1.0, (5, 4))
    for replicate in range(5):
        for system in range(3):
            total = weight = 0.0
            for source in range(6):
                own = (cells.system == system) & (cells.source == source)
                count = by_annotator[replicate][cells.annotator[own]]
                if count.sum():
                    total += by_source[replicate, source] * (count @ cells.value[own]) / count.sum()
                    weight += by_source[replicate, source]
            expected = total / weight if weight else np.nan
            assert draws[replicate, system] == pytest.approx(expected, nan_ok=True)


def test_joint_draws_have_the_variance_of_the_differences():
    comparison = compare(ratings(complete(4, 30, 6, np.random.default_rng(6))), SystemOptions(draws=20_000))
    rows = {name: place for place, name in enumerate(comparison.scores["system"])}
    spreads = [
        np.std(comparison.draws[:, rows[row["system"]]] - comparison.draws[:, rows[row["other"]]]) / row["sd"]
        for row in comparison.differences.iter_rows(named=True)
    ]
    # Student's t is wider than the normal distribution.
    assert 0.9 < np.mean(spreads) < 1.3


def test_by_gives_one_comparison_for_each_value():
    frame = pl.DataFrame(
        {
            "system": ["x", "y"] * 20,
            "segment": np.repeat(np.arange(20), 2),
            "value": np.random.default_rng(7).integers(1, 6, 40),
            "domain": ["news"] * 20 + ["chat"] * 20,
        }
    )
    whole = compare_systems(frame, by="domain", scale=(1, 5))
    assert whole.scores.columns[:2] == ["domain", "system"]
    alone = compare_systems(frame.filter(pl.col("domain") == "chat"), scale=(1, 5))
    assert whole.scores.filter(pl.col("domain") == "chat").drop("domain").equals(alone.scores)
    # What holds for every part is noted once.
    assert [note for note in whole.notes if "annotators are unknown" in note] == [alone.notes[0]]
    assert whole.draws.shape[1] == whole.scores.height == 4


def test_a_misspelt_column_is_named():
    frame = pl.DataFrame({"system": ["x"], "value": [1], "segment": ["1"]})
    with pytest.raises(DataError, match="no column 'segmnt'"):
        compare_systems(frame, source="segmnt")


def test_sources_of_several_columns_are_told_apart():
    rng = np.random.default_rng(8)
    frame = pl.DataFrame(
        {
            "system": ["x", "y"] * 12,
            "story": np.repeat([1, 2, 3], 8),
            "question": np.tile(np.repeat([1, 2, 3, 4], 2), 3),
            "value": rng.integers(1, 6, 24),
        }
    )
    assert compare_systems(frame, scale=(1, 5)).scores["sources"].to_list() == [4, 4]
    several = compare_systems(frame, source=["story", "question"], scale=(1, 5))
    assert several.scores["sources"].to_list() == [12, 12]


# WMT


def test_scores_are_standardised_by_annotator():
    z_scores = wmt.standardized(np.array([1.0, 3, 10, 30, 7]), np.array([0, 0, 1, 1, 2]))
    # By hand: ±1/√2 for two ratings; an annotator with one rating has no standard deviation.
    assert z_scores == pytest.approx([-(0.5**0.5), 0.5**0.5, -(0.5**0.5), 0.5**0.5, 0.0])


def test_a_system_that_beats_all_below_closes_a_cluster():
    score = np.array([4.0, 3, 2, 1])
    is_better = np.zeros((4, 4), bool)
    # The second beats the two below it, the first does not.
    is_better[1, 2:] = True
    assert wmt.clusters_of_wins(score, is_better).tolist() == [1, 1, 2, 2]


# Labels


def labelled(*rows: tuple[str, str, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["system", "source", "label"], orient="row")


def test_labels_are_compared_by_their_proportions():
    rng = np.random.default_rng(9)
    frame = labelled(
        *((s, f"c{n}", rng.choice(["good", "fair", "bad"], p=p)) for n in range(40)
          for s, p in (("x", [0.7, 0.2, 0.1]), ("y", [0.3, 0.3, 0.4])))
    )  # fmt: skip
    comparison = compare_systems(frame)
    for name in ("good", "fair", "bad"):
        scores = comparison.scores.filter(pl.col("label") == name)
        counted = frame.group_by("system").agg((pl.col("label") == name).mean().alias("counted"))
        both = scores.join(counted, on="system")
        assert both["score"].to_list() == pytest.approx(both["counted"].to_list())
        # The sources are the sample: the difference has the standard error of a paired t test, within its corrections.
        (row,) = comparison.differences.filter(pl.col("label") == name).iter_rows(named=True)
        wide = frame.with_columns((pl.col("label") == name).cast(float)).pivot("system", index="source", values="label")
        paired = (wide["x"] - wide["y"]).std() / np.sqrt(40)
        assert row["sd"] == pytest.approx(paired, rel=0.02)
    only = compare_systems(frame, label="fair")
    assert only.scores.equals(comparison.scores.filter(pl.col("label") == "fair"))
    with pytest.raises(DataError, match="no label 'fairly'"):
        compare_systems(frame, label="fairly")


def test_of_two_labels_the_positive_one_is_compared_and_a_proportion_of_one_has_an_interval():
    frame = labelled(*((s, f"c{n}", "yes" if s == "x" or n % 2 else "no") for n in range(20) for s in "xy"))
    comparison = compare_systems(frame)
    assert comparison.scores.select("label", "system").rows() == [("yes", "x"), ("yes", "y")]
    assert comparison.scores["score"].to_list() == pytest.approx([1, 0.5])
    exact = stats.binomtest(20, 20).proportion_ci(method="exact")
    assert comparison.scores["lower"][0] == pytest.approx(exact.low)
    assert any("proportion of “yes”" in note for note in comparison.notes)
    assert "proportion of “yes”, with 95 % intervals" in leaderboard(comparison.scores).to_json(ensure_ascii=False)
