"""Win rate: shares by hand, ties, and what is resampled."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from steelyard import read_judgments
from steelyard.models.comparisons.win_rate import WinRate
from steelyard.observations import Comparisons, Index
from tests.models import paired_data as data
from tests.models.paired_data import by_item

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")


def test_shares_by_hand_with_half_for_a_tie():
    comparisons = Comparisons(
        items=Index("abcz"),
        left=np.array([0, 0, 1, 2], np.int32),
        right=np.array([1, 2, 2, 0], np.int32),
        outcome=np.array([1, 0, -1, 1], np.int8),
    )
    fit = WinRate().fit(comparisons)
    # a: won, tied, lost; b: lost twice; c: tied, won, won.
    assert by_item(fit) == {"a": 0.5, "b": 0.0, "c": pytest.approx(2.5 / 3), "z": None}
    assert by_item(fit, "judgments") == {"a": 3, "b": 2, "c": 3, "z": 0}


def test_a_choice_counts_by_its_five_pairs():
    choices = data.choices(n=4, rows=1)
    values = sorted(by_item(WinRate().fit(choices)).values())
    # Worst loses 3, best wins 3; the two between each won one and lost one.
    assert values == [0, 0.5, 0.5, 1]


def test_answers_are_resampled_whole():
    """Copies of one ranking in pairs look like many judgments; as whole answers they are one coin each."""
    rankings = data.rankings(n=10, rows=400, size=10)
    whole = WinRate().fit(rankings)
    single = WinRate().fit(rankings.to_comparisons())
    # 45 pairs of one ranking: an item's 9 pairs move together, so its share varies more than 9 separate coins.
    assert whole.scores["interval"][0] == single.scores["interval"][0] == "bootstrap(judgments)"
    assert whole.scores["sd"].mean() > 1.3 * single.scores["sd"].mean()


def test_intervals_hold_their_score_and_stay_within_0_and_1():
    table = WinRate().fit(data.comparisons(n=12, rows=60, annotators=6)).scores
    with_interval = table.filter(table["lower"].is_not_null())
    assert (with_interval["lower"] <= with_interval["score"]).all()
    assert (with_interval["score"] <= with_interval["upper"]).all()
    assert with_interval["lower"].min() >= 0
    assert with_interval["upper"].max() <= 1


def test_order_of_judgments_does_not_change_the_scores():
    comparisons = data.comparisons(n=6, rows=80, ties=0.3)
    order = np.random.default_rng(0).permutation(80)
    mixed = dataclasses.replace(
        comparisons, left=comparisons.left[order], right=comparisons.right[order], outcome=comparisons.outcome[order]
    )
    assert by_item(WinRate().fit(mixed)) == by_item(WinRate().fit(comparisons))


def test_items_that_never_met_or_never_lost_are_named():
    comparisons = read_judgments(
        [{"left": a, "right": b, "winner": w} for a, b in (("a", "b"), ("c", "d")) for w in ("left", "right")]
    ).observations
    fit = WinRate().fit(comparisons)
    assert "'a', 'b'" in " ".join(fit.notes)
    best = read_judgments([{"left": "a", "right": b, "winner": "left"} for b in ("b", "c")]).observations
    assert "never beaten: 'a'" in " ".join(WinRate().fit(best).notes)
