"""Self-consistency against loops over pairs of repeats, and against the recorded repeats of WMT21 and NLI."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from steelyard.errors import ConfigError, DataError
from steelyard.formats import read_judgments
from steelyard.observations import Choices, Comparisons, Index, Labels, Ratings
from steelyard.reliability import self_consistency

Row = tuple[int, int, int]  # annotator, item, value


def int32(codes: ArrayLike) -> np.ndarray:
    return np.asarray(codes, np.int32)


def index(count: int, letter: str) -> Index:
    return Index(f"{letter}{number}" for number in range(count))


def ratings_of(rows: list[Row], known: bool = True) -> Ratings:
    annotator, item, value = np.array(rows).T
    return Ratings(
        items=index(9, "i"),
        annotators=index(9, "w"),
        annotator=int32(annotator if known else []),
        item=int32(item),
        value=value.astype(float),
        scale=(0.0, 8.0),
    )


def repeats(rows: list[Row]) -> list[tuple[int, int]]:
    return [(x, y) for (a, i, x), (b, j, y) in combinations(rows, 2) if (a, i) == (b, j)]


rows_of_ratings = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 8)), min_size=1, max_size=25)


@settings(deadline=None, max_examples=60)
@given(rows=rows_of_ratings)
@example(rows=[(0, 0, 0), *[(0, 0, 1)] * 4, (1, 1, 3), (1, 1, 1)])  # equal later answers, but for rounding
def test_figures_are_those_over_all_pairs_of_repeats(rows: list[Row]) -> None:
    consistency = self_consistency(ratings_of(rows), when=np.arange(len(rows)), replicates=20)
    pairs = repeats(rows)
    if not pairs:
        assert all(figure.value is None and figure.note for figure in consistency.statistics)
        return
    gaps = np.array([abs(x - y) for x, y in pairs])
    assert consistency["inconsistency_rate"].value == pytest.approx((gaps > 0).mean(), abs=1e-12)
    assert consistency["difference_of_repeats"].value == pytest.approx(gaps.mean(), abs=1e-9)
    among = consistency["difference_if_inconsistent"].value
    assert among == (None if not gaps.any() else pytest.approx(gaps[gaps > 0].mean(), abs=1e-9))
    earlier, later = np.array(pairs, float).T
    r = consistency["correlation_of_repeats"].value
    if len(set(earlier)) == 1 or len(set(later)) == 1:
        assert r is None
    else:
        assert r == pytest.approx(np.corrcoef(earlier, later)[0, 1], abs=1e-9)


def test_without_times_each_pair_counts_in_both_orders() -> None:
    rows = [(0, 0, 1), (0, 0, 3), (0, 1, 5), (0, 1, 5), (0, 1, 8), (1, 0, 2), (1, 0, 2)]
    pairs = repeats(rows)
    both = np.array(pairs + [(y, x) for x, y in pairs], float).T
    consistency = self_consistency(ratings_of(rows))
    assert consistency["correlation_of_repeats"].value == pytest.approx(np.corrcoef(*both)[0, 1], abs=1e-12)
    assert "both orders" in consistency["correlation_of_repeats"].note


def test_the_papers_rate_and_differences_come_out() -> None:
    """Kiritchenko & Mohammad (2017): of 100 repeats 37 differ, by 1.27 on average; over all that is 0.47."""
    annotator, item, value = [], [], []
    for number in range(100):
        gap = 0 if number >= 37 else (2 if number < 10 else 1)
        annotator += [number, number]
        item += [0, 0]
        value += [3.0, 3.0 + gap]
    ratings = Ratings(
        items=index(1, "i"),
        annotators=index(100, "w"),
        annotator=int32(annotator),
        item=int32(item),
        value=np.array(value),
        scale=(-4.0, 8.0),
    )
    consistency = self_consistency(ratings)
    assert consistency["inconsistency_rate"].value == pytest.approx(0.37)
    assert consistency["difference_if_inconsistent"].value == pytest.approx(1.27, abs=0.005)
    assert consistency["difference_of_repeats"].value == pytest.approx(0.47, abs=0.005)
    figure = consistency["inconsistency_rate"]
    assert figure.interval == "bootstrap(annotators)"
    assert figure.lower is not None
    assert figure.upper is not None
    # A share over 100 independent annotators: 0.37 ± 1.98 · √(.37 · .63/100).
    assert figure.upper - figure.lower == pytest.approx(2 * 1.98 * 0.0483, rel=0.2)


def test_never_differing_gets_wilsons_interval_rather_than_none() -> None:
    rows = [(annotator, item, 4) for annotator in range(5) for item in range(4) for _ in range(2)]
    figure = self_consistency(ratings_of(rows))["inconsistency_rate"]
    assert (figure.value, figure.lower) == (0.0, 0.0)
    # Wilson's upper end for 0 of 20: z²/(n + z²).
    assert figure.upper == pytest.approx(1.96**2 / (20 + 1.96**2), abs=1e-3)
    assert figure.interval == "wilson(repeats)"


def test_inconsistency_is_given_by_the_time_between() -> None:
    rows, when = [], []
    for annotator in range(8):
        for item in range(6):
            rows += [(annotator, item, 2), (annotator, item, 2 if item < 3 else 5)]
            when += [100.0 * annotator, 100.0 * annotator + (1 if item < 3 else 50)]
    consistency = self_consistency(ratings_of(rows), when=when, edges=[0, 10, 60])
    assert consistency.by_time is not None
    assert consistency.by_time.select("from", "to", "value").rows() == [(0.0, 10.0, 0.0), (10.0, 60.0, 1.0)]
    default = self_consistency(ratings_of(rows), when=when).by_time
    assert default is not None
    assert default["from"][0] == 1.0
    assert default["to"][-1] == 50.0


def test_comparisons_turn_with_their_pair_and_stay_within_their_task() -> None:
    comparisons = Comparisons(
        items=index(3, "i"),
        annotators=index(2, "w"),
        annotator=int32([0, 0, 0, 1, 1]),
        tasks=index(2, "t"),
        task=int32([0, 0, 1, 0, 0]),
        left=int32([0, 1, 0, 0, 0]),
        right=int32([1, 0, 1, 1, 1]),
        outcome=np.array([1, -1, -1, 1, 0], np.int8),
    )
    consistency = self_consistency(comparisons)
    # Annotator 0 said 0 > 1 twice in task 0, annotator 1 once 0 > 1 and once a tie.
    assert consistency["intra_annotator_agreement"].value == pytest.approx(1 / 2)
    assert consistency["intra_annotator_kappa"].value == pytest.approx((1 / 2 - 1 / 3) / (2 / 3))


def test_labels_and_choices_count_best_and_worst_apart() -> None:
    labels = Labels(
        items=index(2, "i"),
        annotators=index(2, "w"),
        annotator=int32([0, 0, 1, 1]),
        item=int32([0, 0, 1, 1]),
        label=int32([0, 0, 0, 1]),
        classes=index(2, "c"),
    )
    assert self_consistency(labels)["inconsistency_rate"].value == pytest.approx(1 / 2)
    choices = Choices(
        items=index(3, "i"),
        annotators=index(2, "w"),
        annotator=int32([0, 0, 1, 1]),
        shown=int32([[0, 1, 2], [2, 1, 0], [0, 1, 2], [0, 1, 2]]),
        best=int32([0, 0, 0, 1]),
        worst=int32([2, 1, 2, -1]),
    )
    consistency = self_consistency(choices)
    assert consistency["inconsistency_rate_best"].value == pytest.approx(1 / 2)
    assert consistency["inconsistency_rate_worst"].value == 1.0


def test_nobody_known_or_nobody_twice_is_none_with_the_reason() -> None:
    unknown = self_consistency(ratings_of([(0, 0, 1), (0, 0, 2)], known=False))
    once = self_consistency(ratings_of([(0, 0, 1), (1, 0, 2)]))
    assert "annotators are unknown" in unknown["inconsistency_rate"].note
    assert "answered a question twice" in once["inconsistency_rate"].note


def test_wrong_times_and_edges_are_refused() -> None:
    ratings = ratings_of([(0, 0, 1), (0, 0, 2)])
    with pytest.raises(DataError, match="one time for each"):
        self_consistency(ratings, when=[1.0])
    with pytest.raises(DataError, match="not a number"):
        self_consistency(ratings, when=[1.0, np.nan])
    with pytest.raises(ConfigError, match="ascend"):
        self_consistency(ratings, when=[1.0, 2.0], edges=[3, 1])


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("pair", "count", "r", "gap"),
    [("cs-en", 1202, 0.755, 10.8), ("de-en", 3029, 0.710, 12.2), ("ha-en", 2175, 0.673, 15.5)],
)
def test_wmt21_repeats_give_the_recorded_figures(
    shared_data: Path, pair: str, count: int, r: float, gap: float
) -> None:
    rows = pl.read_csv(shared_data / f"wmt21-da/{pair}.csv.gz", infer_schema_length=None).filter(
        pl.col("type").is_in(["SYSTEM", "REPEAT"])
    )
    item = pl.concat_str(["system", pl.col("segment").cast(pl.String), "hit"], separator="|")
    ratings = read_judgments(
        rows.select("annotator", item.alias("item"), value="score_raw"), scale=(0, 100)
    ).observations
    # The original is the earlier one, its repeat the later.
    consistency = self_consistency(ratings, when=(rows["type"] == "REPEAT").to_numpy().astype(float))
    assert f"{count:,} pairs" in consistency["inconsistency_rate"].note
    assert consistency["correlation_of_repeats"].value == pytest.approx(r, abs=6e-4)
    assert consistency["difference_of_repeats"].value == pytest.approx(gap, abs=0.05)


@pytest.mark.shared_data
def test_nli_repeats_give_the_recorded_correlation(shared_data: Path) -> None:
    rows = pl.read_csv(shared_data / "nli/sliders.csv.gz", infer_schema_length=None).filter(pl.col("na") == 0)
    ratings = read_judgments(rows.select("annotator", "item", "value"), scale=(0, 100)).observations
    consistency = self_consistency(ratings, when=np.arange(len(ratings)))
    assert "687 pairs" in consistency["correlation_of_repeats"].note
    assert consistency["correlation_of_repeats"].value == pytest.approx(0.660, abs=5e-4)
