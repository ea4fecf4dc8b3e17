"""Elo by hand, against evalica, and at the extremes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from steelyard.errors import SteelyardWarning
from steelyard.models.comparisons.elo import Elo, EloState
from steelyard.observations import Comparisons
from tests.models.online_cases import (
    batches_of,
    check_intervals,
    comparisons_of,
    quiet_fit,
    random_comparisons,
    some_comparisons,
)


def test_a_lead_of_400_points_is_odds_of_ten_to_one() -> None:
    before = EloState(np.array([1900.0, 1500.0]))
    for outcome, result in ((1, 1.0), (0, 0.5), (-1, 0.0)):
        after = Elo(k=32).update(before, comparisons_of([("a", "b", outcome)])).rating
        assert after == pytest.approx([1900 + 32 * (result - 10 / 11), 1500 - 32 * (result - 10 / 11)])


def test_ratings_equal_those_of_evalica() -> None:
    evalica = pytest.importorskip("evalica")
    matches = random_comparisons(500, 9, seed=4)
    names = matches.items.ids
    winner = {1: evalica.Winner.X, -1: evalica.Winner.Y, 0: evalica.Winner.Draw}
    peer = evalica.elo(
        [names[i] for i in matches.left],
        [names[i] for i in matches.right],
        [winner[int(outcome)] for outcome in matches.outcome],
        initial=1500.0,
        k=32.0,
        scale=400.0,
        base=10.0,
    ).scores
    ours = Elo().update(Elo().start(9), matches).rating
    assert ours == pytest.approx([peer[name] for name in names], abs=1e-6)


def plain_pass(model: Elo, comparisons: Comparisons) -> list[float]:
    rating = [model.initial] * len(comparisons.items)
    for batch in batches_of(comparisons):
        before = list(rating)
        for i, j, outcome in batch:
            expected = 1 / (1 + model.base ** ((before[j] - before[i]) / model.scale))
            rating[i] += model.k * ((1 + outcome) / 2 - expected)
            rating[j] -= model.k * ((1 + outcome) / 2 - expected)
    return rating


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(some_comparisons())
def test_the_compiled_pass_equals_its_plain_twin_and_points_only_change_hands(comparisons: Comparisons) -> None:
    model = Elo(k=100, base=3, scale=50)
    ours = model.update(model.start(len(comparisons.items)), comparisons).rating
    assert ours == pytest.approx(plain_pass(model, comparisons), abs=1e-8)
    assert ours.mean() == pytest.approx(1500)


def test_the_table_has_resampled_intervals_and_expected_shares_of_wins() -> None:
    fit = Elo().fit(random_comparisons(600, 8, seed=5, annotators=15))
    check_intervals(fit)
    assert set(fit.scores["interval"]) == {"bootstrap(annotators)"}
    assert "order of the comparisons matters" in fit.notes[0]
    rating = fit.scores["score"].to_numpy()
    share = (1 / (1 + 10 ** ((rating - rating[:, None]) / 400))).sum(axis=1) - 0.5
    assert fit.scores["unit_score"].to_numpy() == pytest.approx(share / 7)


def test_a_whole_number_as_a_setting_is_a_real_number() -> None:
    assert Elo(initial=1000).update(
        Elo(initial=1000).start(2), comparisons_of([("a", "b", 1)])
    ).rating == pytest.approx([1016, 984])


def test_the_same_seed_gives_the_same_intervals() -> None:
    data = random_comparisons(200, 6, seed=6)
    one, two, other = (Elo(seed=seed).fit(data).scores for seed in (1, 1, 2))
    assert one.equals(two)
    assert not one.equals(other)


@pytest.mark.parametrize("rows", [[("a", "b", 0)] * 40, [("a", "b", 1)] * 3000], ids=["all ties", "undefeated"])
def test_extremes_stay_finite(rows: list[tuple[str, str, int]]) -> None:
    check_intervals(quiet_fit(Elo(draws=20), comparisons_of(rows)))


def test_islands_are_named() -> None:
    with pytest.warns(SteelyardWarning, match="2 groups of items were never compared"):
        Elo(draws=20).fit(comparisons_of([("a", "b", 0), ("x", "y", 0)]))
