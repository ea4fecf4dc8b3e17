"""Split-half reliability: the halves, the scores, the figures, and the SemEval-2012 answers."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.errors import ConfigError, DataError
from steelyard.formats import read_judgments
from steelyard.models.choices.counting import Counting
from steelyard.models.comparisons.win_rate import WinRate
from steelyard.models.inference.hashing import PRIME, hashed
from steelyard.models.ratings.mean import Mean
from steelyard.observations import Choices, Comparisons, FloatArray, Index, Labels, Observations, Rankings, Ratings
from steelyard.reliability import split_half, split_half_by_budget, split_half_by_subset, split_half_difference
from steelyard.reliability.fixed_items import group_variance
from steelyard.reliability.splitting import FIRST, SECOND, Splitter, Sums, take


def index(count: int, letter: str) -> Index:
    return Index(f"{letter}{number}" for number in range(count))


def ratings_of(
    items: int, each: int, noise: float, rng: np.random.Generator, *, truth: FloatArray | None = None
) -> Ratings:
    quality = rng.normal(size=items) if truth is None else truth
    item = np.repeat(np.arange(items), each).astype(np.int32)
    value = np.clip(50 + 10 * (quality[item] + noise * rng.normal(size=len(item))), 0, 100)
    person = np.concatenate([rng.permutation(2 * each)[:each] for _ in range(items)]).astype(np.int32)
    return Ratings(
        items=index(items, "i"),
        annotators=index(2 * each, "w"),
        annotator=person,
        item=item,
        value=value,
        scale=(0.0, 100.0),
    )


def choices_of(items: int, tuples: int, each: int, rng: np.random.Generator) -> Choices:
    quality = rng.normal(size=items)
    shown_items = np.repeat(np.array([rng.permutation(items)[:4] for _ in range(tuples)], np.int32), each, axis=0)
    felt = quality[shown_items] + rng.gumbel(size=shown_items.shape)
    rows = np.arange(len(shown_items))
    return Choices(
        items=index(items, "i"),
        shown=shown_items,
        best=shown_items[rows, felt.argmax(axis=1)],
        worst=shown_items[rows, felt.argmin(axis=1)],
    )


def comparisons_of(items: int, each: int, rng: np.random.Generator) -> Comparisons:
    left, right = np.array(list(combinations(range(items), 2)), np.int32).T
    left, right = np.repeat(left, each), np.repeat(right, each)
    quality = rng.normal(size=items)
    felt = quality[left] - quality[right] + rng.logistic(size=len(left))
    outcome = np.where(np.abs(felt) < 0.3, 0, np.sign(felt)).astype(np.int8)
    return Comparisons(items=index(items, "i"), left=left, right=right, outcome=outcome)


def rankings_of(items: int, times: int, rng: np.random.Generator) -> Rankings:
    item = np.tile(np.arange(items, dtype=np.int32), times)
    rank = np.concatenate([rng.permutation(items) // 2 + 1 for _ in range(times)]).astype(np.int32)
    return Rankings(items=index(items, "i"), start=np.arange(0, len(item) + 1, items), item=item, rank=rank)


def all_kinds() -> list[Observations]:
    rng = np.random.default_rng(4)
    return [ratings_of(9, 5, 1, rng), comparisons_of(5, 5, rng), choices_of(8, 9, 5, rng), rankings_of(5, 7, rng)]


def naive_halves(splitter: Splitter, trial: int) -> np.ndarray:
    """The numpy twin of the kernel: ranks within groups by sorting Python integers."""
    multiplier, shift = (int(x) for x in hashed((f"trial {trial}", f"shift {trial}"), splitter.seed))
    halves = np.empty(len(splitter.order), int)
    for group, (low, high) in enumerate(zip(splitter.start[:-1], splitter.start[1:], strict=True)):
        random_keys = [pow(multiplier * int(key) + shift, 5, PRIME) for key in splitter.key[low:high]]
        coin = pow(multiplier * int(splitter.coin[group]) + shift, 5, PRIME) % 2
        size = int(high - low)
        first = size // 2 + (size % 2 and coin)
        for rank, place in enumerate(sorted(range(size), key=random_keys.__getitem__)):
            halves[splitter.order[low + place]] = FIRST if rank < first else SECOND
    return halves


@pytest.mark.parametrize("observations", all_kinds(), ids=lambda o: o.kind)
def test_the_kernel_splits_as_its_plain_twin(observations: Observations) -> None:
    splitter = Splitter.of(observations, "unit", 7)
    for trial in range(5):
        assert splitter.halves(trial).tolist() == naive_halves(splitter, trial).tolist()


@settings(deadline=None, max_examples=40)
@given(sizes=st.lists(st.integers(1, 80), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_halves_of_every_item_differ_by_at_most_one(sizes: list[int], seed: int) -> None:
    item = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    ratings = Ratings(items=index(len(sizes), "i"), item=item, value=np.zeros(len(item)), scale=(0.0, 1.0))
    splitter = Splitter.of(ratings, "unit", seed)
    assert splitter.halves(0).tolist() == naive_halves(splitter, 0).tolist()
    for trial in range(3):
        halves = splitter.halves(trial)
        first, second = (np.bincount(item[halves == half], minlength=len(sizes)) for half in (FIRST, SECOND))
        assert (first + second).tolist() == sizes
        assert np.abs(first - second).max() <= 1


def test_every_way_to_halve_four_judgments_comes_equally_often() -> None:
    item = np.repeat(np.arange(50), 4).astype(np.int32)
    ratings = Ratings(items=index(50, "i"), item=item, value=np.zeros(200), scale=(0.0, 1.0))
    splitter = Splitter.of(ratings, "unit", 0)
    halves = np.concatenate([splitter.halves(trial).reshape(50, 4) for trial in range(120)])
    counts = np.unique(halves @ [1, 2, 4, 8], return_counts=True)[1]
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-3
    # And from one trial to the next the split is new.
    ways = np.array([splitter.halves(trial).reshape(50, 4) @ [1, 2, 4, 8] for trial in range(120)])
    assert np.mean(ways[1:] == ways[:-1]) == pytest.approx(1 / 6, abs=0.03)
    assert np.mean(ways[:, 1:] == ways[:, :-1]) == pytest.approx(1 / 6, abs=0.03)


def test_split_tuples_stay_together_and_change_halves_from_trial_to_trial() -> None:
    rng = np.random.default_rng(2)
    for observations in (choices_of(8, 10, 5, rng), comparisons_of(5, 4, rng)):
        units = Splitter.of(observations, "unit", 3)
        group = np.empty(len(observations), int)
        for number, (low, high) in enumerate(zip(units.start[:-1], units.start[1:], strict=True)):
            group[units.order[low:high]] = number
        by_tuple, sides = Splitter.of(observations, "tuple", 3), []
        for trial in range(6):
            halves = by_tuple.halves(trial)
            first = [halves[group == number] for number in range(len(units.sizes))]
            assert all(len(set(half.tolist())) == 1 for half in first)
            sides.append([half[0] for half in first])
            assert abs(np.sum(np.array(sides[-1]) == FIRST) - len(first) / 2) <= 0.5
        assert len({tuple(side) for side in sides}) == 6


def test_ratings_have_no_tuples_to_split() -> None:
    with pytest.raises(DataError, match="ratings have no tuples"):
        split_half(ratings_of(5, 4, 1, np.random.default_rng(0)), by="tuple")


def test_an_annotator_is_not_always_in_the_same_half() -> None:
    ratings = ratings_of(200, 4, 1, np.random.default_rng(0))
    halves = Splitter.of(ratings, "unit", 0).halves(0)
    share = np.bincount(ratings.annotator, halves == FIRST) / np.bincount(ratings.annotator)
    assert np.abs(share - 0.5).max() < 0.2
    by_annotator = Splitter.of(ratings, "annotator", 0).halves(0)
    assert set(np.bincount(ratings.annotator, by_annotator == FIRST) / np.bincount(ratings.annotator)) == {0.0, 1.0}


@pytest.mark.parametrize("observations", all_kinds(), ids=lambda o: o.kind)
def test_order_of_judgments_does_not_change_the_figures(observations: Observations) -> None:
    order = np.random.default_rng(1).permutation(len(observations))
    if isinstance(observations, Rankings):
        size = int(observations.start[1])
        shuffled: Observations = Rankings(
            items=observations.items,
            start=observations.start,
            item=observations.item.reshape(-1, size)[order].ravel(),
            rank=observations.rank.reshape(-1, size)[order].ravel(),
        )
    else:
        shuffled = take(observations, order)  # type: ignore[arg-type]
    for first, second in zip(
        split_half(observations, trials=10).statistics, split_half(shuffled, trials=10).statistics, strict=True
    ):
        assert first.value is not None
        assert second.value == pytest.approx(first.value, abs=1e-9)
        assert second.upper == pytest.approx(first.upper, abs=1e-9)


def test_plain_and_stepped_up_values_are_those_of_the_definition() -> None:
    ratings = ratings_of(12, 6, 1, np.random.default_rng(2))
    splitter = Splitter.of(ratings, "unit", 0)
    rs, rhos = [], []
    for trial in range(7):
        halves = splitter.halves(trial)
        a, b = (
            [ratings.value[(ratings.item == item) & (halves == half)].mean() for item in range(12)]
            for half in (FIRST, SECOND)
        )
        rs.append(stats.pearsonr(a, b)[0])
        rhos.append(stats.spearmanr(a, b)[0])
    reliability = split_half(ratings, trials=7)
    assert reliability["split_half_pearson"].value == pytest.approx(np.mean(rs), abs=1e-9)
    assert reliability["split_half_spearman"].value == pytest.approx(np.mean(rhos), abs=1e-9)
    r = float(np.mean(rs))
    assert reliability["split_half_pearson_corrected"].value == pytest.approx(2 * r / (1 + r), abs=1e-9)
    for figure in reliability.statistics:
        assert figure.lower is not None
        assert figure.upper is not None
        assert figure.lower < (figure.value or 0.0) < figure.upper


@pytest.mark.parametrize(
    ("observations", "model"),
    [
        (all_kinds()[0], Mean(draws=20)),
        (all_kinds()[1], Counting(draws=20)),
        (all_kinds()[2], Counting(draws=20)),
        (all_kinds()[1], WinRate(draws=20)),
    ],
    ids=["mean", "counting pairs", "counting tuples", "win rate"],
)
def test_sums_give_what_fitting_the_model_to_each_half_gives(
    observations: Observations, model: Mean | Counting | WinRate
) -> None:
    splitter, sums = Splitter.of(observations, "unit", 0), Sums.of(observations)
    halves = splitter.halves(0)
    for half, quick in zip((FIRST, SECOND), sums.scores(halves), strict=True):
        table = model.fit(take(observations, halves == half)).scores.drop_nulls("score")  # type: ignore[arg-type]
        fitted = np.full(len(observations.items), np.nan)
        fitted[observations.items.codes(table["item"].to_list())] = table["score"].to_numpy()
        both = ~np.isnan(fitted)
        assert both.tolist() == (~np.isnan(quick)).tolist()
        assert stats.pearsonr(fitted[both], quick[both])[0] == pytest.approx(1.0, abs=1e-9)


def test_any_model_can_score_the_halves() -> None:
    comparisons = comparisons_of(6, 6, np.random.default_rng(3))
    from steelyard.models.comparisons.bradley_terry import BradleyTerry

    reliability = split_half(comparisons, model=BradleyTerry(), trials=5)
    quick = split_half(comparisons, trials=5)
    assert reliability["split_half_spearman"].value == pytest.approx(quick["split_half_spearman"].value, abs=0.1)


def test_repeated_ratings_of_an_annotator_count_one_by_one_in_the_mean_of_a_half() -> None:
    ratings = ratings_of(12, 8, 1, np.random.default_rng(2))
    repeated = Ratings(
        items=ratings.items,
        annotators=ratings.annotators,
        annotator=np.tile(np.array([0, 0, 0, 0, 0, 1, 2, 3], np.int32), 12),
        item=ratings.item,
        value=ratings.value,
        scale=ratings.scale,
    )
    halves = Splitter.of(repeated, "unit", 0).halves(0)
    means = [
        [repeated.value[(repeated.item == item) & (halves == half)].mean() for item in range(12)]
        for half in (FIRST, SECOND)
    ]
    expected = pytest.approx(np.corrcoef(means)[0, 1], abs=1e-9)
    assert split_half(repeated, model=Mean(draws=20), trials=1)["split_half_pearson"].value == expected
    assert split_half(repeated, trials=1)["split_half_pearson"].value == expected


def test_more_judgments_in_each_half_are_more_reliable_and_the_budget_is_kept() -> None:
    ratings = ratings_of(60, 12, 2, np.random.default_rng(5))
    curve = split_half_by_budget(ratings, trials=20).filter(pl.col("statistic") == "split_half_pearson")
    assert curve["per_half"].to_list() == [1, 2, 3, 4, 5, 6]
    assert curve["judgments"].to_list() == [60.0 * k for k in range(1, 7)]
    assert curve["value"].is_sorted()
    # Noise of variance 4 on items of variance 1: r = 1/(1 + 4/k).
    for k, value, lower, upper in curve.select("per_half", "value", "lower", "upper").rows():
        assert lower < value < upper
        assert value == pytest.approx(1 / (1 + 4 / k), abs=0.12)
    halves = Splitter.of(ratings, "unit", 0).halves(0, 2)
    assert [int((halves == half).sum()) for half in (FIRST, SECOND)] == [120, 120]


def test_the_full_budget_is_the_plain_split() -> None:
    ratings = ratings_of(20, 6, 1, np.random.default_rng(5))
    assert split_half(ratings, per_half=3, trials=5).statistics == split_half(ratings, trials=5).statistics


def test_subsets_correlate_their_own_items() -> None:
    ratings = ratings_of(30, 6, 1, np.random.default_rng(6))
    tags = {f"i{number}": ("even", "all") if number % 2 == 0 else "all" for number in range(30)}
    table = split_half_by_subset(ratings, tags, trials=10)
    whole = split_half(ratings, trials=10)
    even = split_half(ratings, items=[f"i{number}" for number in range(0, 30, 2)], trials=10)
    rows = {(subset, name): value for subset, name, value in table.select("subset", "statistic", "value").rows()}
    assert rows["all", "split_half_pearson"] == whole["split_half_pearson"].value
    assert rows["even", "split_half_spearman"] == even["split_half_spearman"].value
    assert even["split_half_pearson"].n == 15


def test_a_noisier_method_is_found_less_reliable_and_an_equal_one_is_not() -> None:
    rng = np.random.default_rng(7)
    truth = rng.normal(size=150)
    good, equal = (ratings_of(150, 6, 1, rng, truth=truth) for _ in range(2))
    poor = ratings_of(150, 6, 3, rng, truth=truth)
    worse = split_half_difference(good, poor, trials=20)
    assert worse.statistic.value is not None
    assert worse.statistic.value > 0.1
    assert worse.p_value is not None
    assert worse.p_value < 0.001
    same = split_half_difference(good, equal, trials=20)
    assert same.p_value is not None
    assert same.p_value > 0.01
    assert same.statistic.lower is not None
    assert same.statistic.upper is not None
    assert same.statistic.lower < 0 < same.statistic.upper


def test_the_paired_test_keeps_its_level() -> None:
    rng = np.random.default_rng(8)
    rejected = 0
    for _ in range(60):
        truth = rng.normal(size=40)
        first, second = (ratings_of(40, 4, 1, rng, truth=truth) for _ in range(2))
        p_value = split_half_difference(first, second, trials=10, correlation="pearson").p_value
        assert p_value is not None
        rejected += p_value < 0.05
    assert rejected <= 9  # 3 expected; 9 has probability .002


def test_95_percent_intervals_cover_the_expected_correlation() -> None:
    """The truth: items of variance 1, noise of variance 2 in each half of two, so that r = 1/2."""
    rng = np.random.default_rng(9)
    hits = 0
    for _ in range(100):
        figure = split_half(ratings_of(60, 4, np.sqrt(2.0), rng), trials=20)["split_half_pearson"]
        assert figure.lower is not None
        assert figure.upper is not None
        hits += figure.lower <= 0.5 <= figure.upper
    assert 87 <= hits <= 100


@pytest.mark.shared_data
def test_semeval_2012_answers_have_the_recorded_split_half_reliability(shared_data: Path) -> None:
    """Recorded: .842, mean of 79 relations × 20 splits; how its splits treat odd tuples is not said."""
    by_relation = read_judgments(
        shared_data / "bws/semeval2012_answers.csv.gz", columns={"criterion": "relation"}
    ).by_criterion
    values = [split_half(choices, trials=20)["split_half_pearson"].value for choices in by_relation.values()]
    assert len(values) == 79
    assert np.mean([value for value in values if value is not None]) == pytest.approx(0.842, abs=0.004)


def test_wrong_input_is_refused_with_the_remedy() -> None:
    ratings = ratings_of(4, 2, 1, np.random.default_rng(0))
    labels = Labels(items=index(1, "i"), item=ratings.item[:1], label=ratings.item[:1], classes=index(1, "c"))
    with pytest.raises(DataError, match="these are labels"):
        split_half(labels)
    with pytest.raises(ConfigError, match="Did you mean 'annotator'"):
        split_half(ratings, by="anotator")
    with pytest.raises(ConfigError, match="trials"):
        split_half(ratings, trials=0)
    with pytest.raises(ConfigError, match="in each half"):
        split_half(ratings, per_half=0)
    with pytest.raises(DataError, match="unknown id"):
        split_half(ratings, items=["nobody"])
    with pytest.raises(DataError, match="no item has a tag"):
        split_half_by_subset(ratings, {})
    with pytest.raises(DataError, match="counting needs"):
        split_half(ratings, model=Counting())
    with pytest.raises(ConfigError, match="unknown correlation"):
        split_half_difference(ratings, ratings, correlation="Kendall")
    with pytest.raises(DataError, match="unknown"):
        split_half(comparisons_of(4, 2, np.random.default_rng(0)), by="annotator")


def test_items_without_spread_have_no_figure_but_a_reason() -> None:
    item = np.repeat(np.arange(5), 4).astype(np.int32)
    flat = Ratings(items=index(5, "i"), item=item, value=np.ones(20), scale=(0.0, 1.0))
    reliability = split_half(flat, trials=3)
    assert all(figure.value is None for figure in reliability.statistics)
    assert "different scores" in reliability["split_half_spearman"].note
    assert split_half_difference(flat, flat, trials=3).p_value is None


def test_fixed_items_keep_the_value_and_vary_only_the_annotators() -> None:
    ratings = ratings_of(40, 8, 0.8, np.random.default_rng(3))
    result = split_half(ratings, fixed_items=True, trials=5)
    for name in ("spearman", "pearson"):
        for end in ("", "_corrected"):
            over_items = result[f"split_half_{name}{end}"]
            fixed = result[f"split_half_{name}{end}_fixed_items"]
            assert fixed.value == over_items.value
            assert (fixed.interval, fixed.n) == ("jackknife(annotators)", 16)
            assert over_items.interval == "jackknife(items)"
            assert fixed.lower is not None
            assert fixed.upper is not None
            assert fixed.value is not None
            assert fixed.lower < fixed.value < fixed.upper
    shuffled = ratings.subset(np.random.default_rng(4).permutation(len(ratings)))
    assert split_half(shuffled, fixed_items=True, trials=5).statistics == result.statistics


def test_fixed_items_have_narrower_intervals_where_items_differ_more_than_annotators() -> None:
    """Two items far apart and two close together: which items there are matters more than who judged them."""
    truth = np.repeat([-2.0, -0.1, 0.0, 0.1, 2.0], 3)
    result = split_half(ratings_of(15, 30, 0.3, np.random.default_rng(5), truth=truth), fixed_items=True, trials=10)
    over_items, fixed = result["split_half_pearson"], result["split_half_pearson_fixed_items"]
    widths = [one.upper - one.lower for one in (fixed, over_items) if one.upper is not None and one.lower is not None]
    assert widths[0] < widths[1]


def test_the_variance_of_left_out_groups_is_that_of_the_jackknife() -> None:
    z = np.array([0.5, 0.7, 0.9])
    # (G − 1)/G · Σ (z − mean)² = 2/3 · 0.08
    assert group_variance(np.tanh(z)) == pytest.approx(2 / 3 * 0.08)


def test_judgments_are_left_out_where_annotators_are_unknown() -> None:
    choices = choices_of(20, 40, 4, np.random.default_rng(1))
    assert split_half(choices, fixed_items=True, trials=3)["split_half_spearman_fixed_items"].interval == (
        "jackknife(judgments)"
    )
    with pytest.raises(ConfigError, match="fixed items"):
        split_half(choices, fixed_items=True, items=["i1", "i2"])
