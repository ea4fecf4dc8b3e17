"""agreement(): which figures fit which kind, and that they are those of the definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from steelyard.errors import ConfigError
from steelyard.observations import Choices, Comparisons, Index, IntArray, Labels, Observations, Rankings, Ratings
from steelyard.reliability import Agreement, agreement


def index(count: int, letter: str) -> Index:
    return Index(f"{letter}{number}" for number in range(count))


Row = tuple[int, int, int, int, int]  # annotator, task, left, right, outcome


def int32(codes: ArrayLike) -> IntArray:
    return np.asarray(codes, np.int32)


def comparisons_of(rows: list[Row], *, tasks: bool = False) -> Comparisons:
    annotator, task, left, right, outcome = int32(rows).T
    return Comparisons(
        items=index(5, "i"),
        annotators=index(9, "w"),
        annotator=annotator,
        tasks=index(9, "t"),
        task=task if tasks else int32([]),
        left=left,
        right=right,
        outcome=outcome.astype(np.int8),
    )


def choices_of(rows: Sequence[tuple[tuple[int, ...], int, int]], annotator: ArrayLike = ()) -> Choices:
    """From (items shown, best, worst)."""
    shown, best, worst = zip(*rows, strict=True)
    return Choices(
        items=index(9, "i"),
        annotators=index(9, "w"),
        annotator=int32(annotator),
        shown=int32(shown),
        best=int32(best),
        worst=int32(worst),
    )


def random_ratings(seed: int = 0) -> Ratings:
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(30), 5).astype(np.int32)
    value = np.clip(np.rint(50 + 20 * rng.normal(size=30)[item] + 15 * rng.normal(size=150)), 0, 100)
    return Ratings(
        items=index(30, "i"),
        annotators=index(8, "w"),
        annotator=int32(np.concatenate([rng.permutation(8)[:5] for _ in range(30)])),
        item=item,
        value=value,
        scale=(0.0, 100.0),
    )


def values(found: Agreement) -> dict[str, float | None]:
    return {figure.key: figure.value for figure in found.statistics}


comparison_rows = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3), st.integers(0, 3), st.integers(-1, 1)).filter(
        lambda row: row[2] != row[3]
    ),
    min_size=1,
    max_size=40,
)


def naive_share(rows: list[Row], tasks: bool) -> tuple[int, int]:
    """Agreeing pairs and all pairs of judgments by different judges of one pair (in one task)."""
    agree = total = 0
    for (a, s, left, right, x), (b, t, other_left, other_right, y) in combinations(rows, 2):
        if a == b or {left, right} != {other_left, other_right} or (tasks and s != t):
            continue
        total += 1
        agree += x == (y if left == other_left else -y)
    return agree, total


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(rows=comparison_rows, tasks=st.booleans())
def test_observed_agreement_of_comparisons_is_the_share_over_all_pairs_of_judgments(
    rows: list[Row], tasks: bool
) -> None:
    agree, total = naive_share(rows, tasks)
    if tasks and not total:  # no pair answered twice within a task: pairs across tasks are used, and said so
        agree, total = naive_share(rows, False)
    statistics = agreement(comparisons_of(rows, tasks=tasks), replicates=0)
    share = statistics["observed_agreement"].value
    chance = 1 / 3 if any(row[4] == 0 for row in rows) else 1 / 2
    if total == 0:
        assert share is None
        assert statistics["alpha_nominal"].value is None
    else:
        assert share == pytest.approx(agree / total, abs=1e-12)
        assert statistics["kappa_fixed_chance"].value == pytest.approx((agree / total - chance) / (1 - chance))


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(rows=comparison_rows, data=st.data())
def test_names_order_and_side_of_comparisons_do_not_matter(rows: list[Row], data: st.DataObject) -> None:
    items, people = data.draw(st.permutations(range(4))), data.draw(st.permutations(range(4)))
    renamed = [
        (people[a], t, items[right], items[left], -x) if swap else (people[a], t, items[left], items[right], x)
        for a, t, left, right, x in data.draw(st.permutations(rows))
        for swap in [data.draw(st.booleans())]
    ]
    before = values(agreement(comparisons_of(rows, tasks=True), replicates=0))
    after = values(agreement(comparisons_of(renamed, tasks=True), replicates=0))
    for name, value in before.items():
        # Halves are drawn by names, and position bias is about sides.
        if not name.startswith(("split_half", "position_bias")):
            assert after[name] == pytest.approx(value, abs=1e-12, nan_ok=False), name


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(rows=comparison_rows, data=st.data())
def test_order_of_rows_does_not_matter_to_any_figure_or_interval(rows: list[Row], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(rows))
    before, after = (agreement(comparisons_of(each), replicates=20).statistics for each in (rows, shuffled))
    for first, second in zip(before, after, strict=True):
        assert second.key == first.key
        assert second.note == first.note
        for end in ("value", "lower", "upper"):
            assert getattr(second, end) == pytest.approx(getattr(first, end), abs=1e-9, nan_ok=False), first.key


def test_alpha_of_comparisons_is_that_of_both_ways_round() -> None:
    # Pair (0,1): won, won; pair (2,3): won, tied. Seen both ways: 1.5 won, 1.5 lost, 1 tied of 4.
    rows = [(0, 0, 0, 1, 1), (1, 0, 0, 1, 1), (0, 0, 2, 3, 1), (1, 0, 2, 3, 0)]
    expected = (16 - 1.5**2 - 1.5**2 - 1) / (4 * 3)
    observed = (2 * 0 + 2 * 1) / 4
    statistics = agreement(comparisons_of(rows))["alpha_nominal"].value
    assert statistics == pytest.approx(1 - observed / expected, abs=1e-12)


def test_within_a_task_only_judgments_of_that_task_are_held_against_each_other() -> None:
    rows = [(0, 0, 0, 1, 1), (1, 0, 0, 1, 1), (0, 1, 0, 1, -1), (1, 1, 0, 1, -1)]
    by_task = agreement(comparisons_of(rows, tasks=True))
    assert by_task["observed_agreement"].value == 1.0
    assert "a unit is a pair of items within one task" in by_task.notes
    assert agreement(comparisons_of(rows))["observed_agreement"].value == pytest.approx(2 / 4)


def test_tasks_that_are_each_judged_once_fall_back_to_pairs_across_tasks_and_say_so() -> None:
    statistics = agreement(comparisons_of([(0, 0, 0, 1, 1), (1, 1, 1, 0, -1)], tasks=True))
    assert statistics["observed_agreement"].value == 1.0
    assert any("across tasks" in note for note in statistics.notes)


def test_rankings_agree_as_their_pairs_do() -> None:
    rankings = Rankings(
        items=index(3, "i"),
        annotators=index(2, "w"),
        annotator=int32([0, 1]),
        start=np.array([0, 3, 6]),
        item=int32([0, 1, 2, 2, 1, 0]),
        rank=int32([1, 2, 2, 3, 2, 1]),
    )
    statistics = agreement(rankings)
    assert statistics.kind == "rankings"
    # 0 > 1 and 0 > 2 by both; 1 = 2 by the first, 1 > 2 by the second.
    assert statistics["observed_agreement"].value == pytest.approx(2 / 3)


def test_ratings_get_alpha_ita_and_the_mean_difference_each_with_an_interval() -> None:
    statistics = agreement(random_ratings())
    assert list(values(statistics)) == [
        "alpha_interval",
        "alpha_ordinal",
        "ita_pearson",
        "ita_spearman",
        "mean_absolute_difference",
        "split_half_spearman",
        "split_half_spearman_corrected",
        "split_half_spearman_fixed_items",
        "split_half_spearman_corrected_fixed_items",
        "split_half_pearson",
        "split_half_pearson_corrected",
    ]
    for figure in statistics.statistics:
        assert figure.value is not None
        assert figure.lower is not None
        assert figure.upper is not None
        assert figure.lower <= figure.value <= figure.upper
        assert figure.interval.startswith(("bootstrap(", "jackknife("))


def test_mean_absolute_difference_is_over_pairs_of_different_annotators() -> None:
    ratings = random_ratings()
    rows = list(zip(ratings.item, ratings.annotator, ratings.value, strict=True))
    rows.append((ratings.item[0], ratings.annotator[0], 99.0))  # a repeat
    item, annotator, value = (np.array(column) for column in zip(*rows, strict=True))
    repeated = Ratings(
        items=ratings.items,
        annotators=ratings.annotators,
        annotator=int32(annotator),
        item=int32(item),
        value=value.astype(float),
        scale=ratings.scale,
    )
    gaps = [abs(x - y) for (i, a, x), (j, b, y) in combinations(rows, 2) if i == j and a != b]
    statistics = agreement(repeated)
    assert statistics["mean_absolute_difference"].value == pytest.approx(np.mean(gaps), abs=1e-12)
    assert any("more than once" in note for note in statistics.notes)


def test_choices_agree_on_best_and_worst_of_one_set_in_whatever_order_it_was_shown() -> None:
    rows = [((0, 1, 2, 3), 0, 3), ((3, 2, 1, 0), 0, 2), ((4, 5, 6, 7), 4, 7), ((4, 5, 6, 7), 5, 7)]
    statistics = agreement(choices_of(rows, [0, 1, 0, 1]))
    assert statistics["observed_agreement_best"].value == pytest.approx(1 / 2)
    assert statistics["observed_agreement_worst"].value == pytest.approx(1 / 2)
    # By chance two people name different items of four in 3/4 of all cases, however many answers there are.
    assert statistics["alpha_nominal_best"].value == pytest.approx(1 - (1 / 2) / (3 / 4))


def test_two_people_who_disagree_on_one_set_agree_less_than_chance() -> None:
    statistics = agreement(choices_of([((0, 1, 2, 3), 0, 3), ((0, 1, 2, 3), 1, 3)], [0, 1]))
    assert statistics["alpha_nominal_best"].value == pytest.approx(1 - 1 / (3 / 4))
    assert statistics["alpha_nominal_worst"].value == pytest.approx(1)


def test_alpha_of_choices_weighs_chance_by_the_answers_to_each_set() -> None:
    # Three answers to a set of two items, of which one pair of three agrees; two that agree on one of four.
    rows = [((0, 1, -1, -1), 0, 1), ((0, 1, -1, -1), 0, 1), ((1, 0, -1, -1), 1, 0)]
    rows += [((2, 3, 4, 5), 2, 5), ((2, 3, 4, 5), 2, 5)]
    statistics = agreement(choices_of(rows, [0, 1, 2, 0, 1]))
    observed = (3 * (2 / 3) + 2 * 0) / 5
    chance = (3 * (1 / 2) + 2 * (3 / 4)) / 5
    assert statistics["alpha_nominal_best"].value == pytest.approx(1 - observed / chance)


def test_alpha_of_choices_is_zero_on_average_over_all_answers_that_two_people_can_give() -> None:
    items = (0, 1, 2, 3)
    alphas = [
        agreement(choices_of([(items, one, (one + 1) % 4), (items, other, (other + 1) % 4)], [0, 1]), replicates=0)[
            "alpha_nominal_best"
        ].value
        for one in items
        for other in items
    ]
    assert np.mean([alpha for alpha in alphas if alpha is not None]) == pytest.approx(0, abs=1e-12)
    assert alphas.count(1.0) == 4


def test_choices_at_random_have_an_alpha_near_zero() -> None:
    rng = np.random.default_rng(1)
    tuples = np.array([rng.permutation(9)[:4] for _ in range(100)])
    rows = [(tuple(t), *rng.permutation(t)[:2]) for t in tuples for _ in range(8)]
    statistics = agreement(choices_of(rows))
    for side in ("best", "worst"):
        figure = statistics[f"alpha_nominal_{side}"]
        assert figure.value == pytest.approx(0, abs=0.05)


def test_choices_that_name_no_best_are_left_out_of_best_only() -> None:
    rows = [((0, 1, 2), 0, 2), ((0, 1, 2), -1, 2), ((0, 1, 2), 0, 2)]
    statistics = agreement(choices_of(rows, [0, 1, 2]))
    assert "2 answers, 1 pairs" in statistics["observed_agreement_best"].note
    assert "3 answers, 3 pairs" in statistics["observed_agreement_worst"].note
    assert "1 answers that name no best item are left out" in statistics.notes


def test_unknown_annotators_leave_alpha_and_say_why_the_rest_is_missing() -> None:
    ratings = random_ratings()
    unknown = Ratings(items=ratings.items, item=ratings.item, value=ratings.value, scale=ratings.scale)
    statistics = agreement(unknown)
    assert statistics["alpha_interval"].value == agreement(ratings)["alpha_interval"].value
    assert statistics["ita_pearson"].value is None
    assert "unknown" in statistics["ita_pearson"].note
    assert any("unknown" in note for note in statistics.notes)


def empty_of_each_kind() -> list[Observations]:
    none, items = int32([]), index(2, "i")
    return [
        Ratings(items=items, item=none, value=np.empty(0), scale=(0.0, 1.0)),
        Labels(items=items, item=none, label=none, classes=index(2, "c")),
        Comparisons(items=items, left=none, right=none, outcome=np.empty(0, np.int8)),
        Rankings(items=items, start=np.zeros(1, np.int64), item=none, rank=none),
        Choices(items=items, shown=np.empty((0, 4), np.int32), best=none, worst=none),
    ]


@pytest.mark.parametrize("nothing", empty_of_each_kind(), ids=lambda observations: observations.kind)
def test_no_judgments_give_figures_without_values_and_with_reasons(nothing: Observations) -> None:
    statistics = agreement(nothing)
    assert statistics.statistics
    for figure in statistics.statistics:
        assert figure.value is None
        assert figure.note


def test_comparisons_get_cycles_and_position_bias_and_repeats_where_there_are_any() -> None:
    rows = [(0, 0, 0, 1, 1), (0, 0, 1, 2, 1), (0, 0, 2, 0, 1), (1, 0, 0, 1, -1), (1, 0, 0, 1, 1)]
    statistics = agreement(comparisons_of(rows))
    assert list(values(statistics))[3:] == [
        "split_half_spearman",
        "split_half_spearman_corrected",
        "split_half_spearman_fixed_items",
        "split_half_spearman_corrected_fixed_items",
        "split_half_pearson",
        "split_half_pearson_corrected",
        "cyclic_graphs",
        "items_in_no_cycle",
        "circular_triads",
        "coefficient_of_consistence",
        "position_bias",
        "inconsistency_rate",
        "intra_annotator_agreement",
        "intra_annotator_kappa",
    ]
    assert statistics["inconsistency_rate"].value == 1.0
    assert statistics["cyclic_graphs"].value == 1.0
    assert statistics["position_bias"].value == pytest.approx(4 / 5)
    assert "inconsistency_rate" not in values(agreement(comparisons_of(rows[:4])))


def test_pairs_that_are_judged_once_have_no_split_half_but_a_reason() -> None:
    statistics = agreement(comparisons_of([(0, 0, 0, 1, 1), (0, 0, 1, 2, 1), (0, 0, 2, 3, 1), (0, 0, 3, 4, 1)]))
    assert statistics["split_half_spearman"].value is None
    assert "cannot be split" in statistics["split_half_spearman"].note


def test_the_same_seed_gives_the_same_agreement_and_the_table_has_no_nan() -> None:
    first, again = agreement(random_ratings(), seed=3), agreement(random_ratings(), seed=3)
    assert first.statistics == again.statistics
    assert first.table.columns == ["statistic", "label", "value", "lower", "upper", "interval", "n", "note"]
    assert first.table.select(pl.col("value", "lower", "upper").is_nan().any()).row(0) == (False, False, False)


def test_an_unknown_figure_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"Did you mean 'alpha_interval'"):
        agreement(random_ratings())["alpha interval"]


def test_annotators_are_split_if_no_pair_was_judged_twice():
    rng = np.random.default_rng(3)
    left, right = np.triu_indices(40, 1)
    comparisons = Comparisons(
        items=Index([f"i{n}" for n in range(40)]),
        annotators=Index([f"a{n}" for n in range(6)]),
        annotator=rng.integers(6, size=len(left)).astype(np.int32),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=np.where(rng.random(len(left)) < 0.9, 1, -1).astype(np.int8),
    )
    figures = {figure.key: figure for figure in agreement(comparisons).statistics}
    reliability = figures["split_half_spearman"]
    # The earlier item wins nine times in ten, whoever is asked: two halves of the annotators give much the same order.
    assert reliability.value > 0.7
    assert "annotators are split" in reliability.note
    alone = {f.key: f for f in agreement(replace(comparisons, annotator=comparisons.annotator % 3)).statistics}
    assert alone["split_half_spearman"].value is None


def test_with_ties_alpha_is_also_ordinal_loss_tie_win() -> None:
    # The same answers. Ordinal distances with 1.5 lost, 1 tied, 1.5 won: (1.5 + 1 − 2.5/2)² to the next, 2.5² across.
    rows = [(0, 0, 0, 1, 1), (1, 0, 0, 1, 1), (0, 0, 2, 3, 1), (1, 0, 2, 3, 0)]
    next_to, across = 1.25**2, 2.5**2
    expected = (4 * 1.5 * 1 * next_to + 2 * 1.5 * 1.5 * across) / (4 * 3)
    statistic = agreement(comparisons_of(rows))["alpha_ordinal"]
    assert statistic.value == pytest.approx(1 - (2 * next_to / 4) / expected, abs=1e-12)
    assert "loss, tie and win" in statistic.note
    without_ties = agreement(comparisons_of([(*row[:4], 1) for row in rows]))
    assert "alpha_ordinal" not in {each.key for each in without_ties.statistics}
