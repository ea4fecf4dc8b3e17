from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.errors import DataError
from steelyard.models.labels.majority import Majority
from steelyard.models.labels.observed import ObservedLabels
from steelyard.models.labels.table import (
    Interval,
    beta_interval,
    label_table,
    log_odds_interval,
    need_annotators,
    share_interval,
    winners,
)
from steelyard.observations import Index, Labels
from tests.models.label_data import labels_of, random_labels


def test_majority_and_the_others_give_one_shape():
    from steelyard.models.labels.dawid_skene import DawidSkene
    from steelyard.models.labels.gold_calibrated import GoldCalibrated
    from steelyard.models.labels.mace import MACE
    from steelyard.models.labels.weighted_vote import WeightedVote

    labels, truth = random_labels(0)
    expected = Majority().fit(labels).scores.schema
    for fit in (
        DawidSkene().fit(labels),
        MACE().fit(labels),
        GoldCalibrated().fit(labels, gold=truth),
        WeightedVote().fit(labels, gold=truth),
    ):
        assert fit.scores.schema == expected, fit.model


def test_tied_classes_are_counted_and_the_first_stands_for_them():
    label, probability, tied = winners(np.array([[0.4, 0.4 + 1e-12, 0.2], [0.1, 0.2, 0.7], [np.nan] * 3]))
    assert label[:2].tolist() == [0, 2]
    assert tied.tolist() == [2, 1, 0]
    assert np.isnan(probability[2])


def test_intervals_hold_the_probability_and_stay_within_bounds():
    labels = labels_of([("a", "x", "p"), ("a", "y", "q"), ("b", "z", "q")])
    probabilities = np.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]])
    table = label_table(
        labels,
        probabilities,
        Interval(np.array([0.95, -1, np.nan]), np.array([0.97, 3, 1])),
        "model",
        counts=ObservedLabels(labels).counts,
    )
    assert table["lower"].to_list() == [0.9, 0.0, None]
    assert table["upper"].to_list() == [0.97, 1.0, None]
    assert table["interval"].to_list() == ["model", "model", None]
    assert table["tied"].to_list() == [1, 1, 2]


def test_known_items_are_certain_by_gold():
    labels = labels_of([("a", "x", "p"), ("a", "y", "q")])
    nothing = np.full(2, np.nan)
    table = label_table(
        labels,
        np.eye(2),
        Interval(nothing, nothing),
        "model",
        np.array([True, False]),
        counts=ObservedLabels(labels).counts,
    )
    assert table.select("lower", "upper", "interval").rows() == [(1.0, 1.0, "gold"), (None, None, None)]


def test_an_unjudged_item_has_nulls():
    labels = labels_of([("a", "x", "p"), ("a", "y", "q")], items=["z"])
    row = Majority().fit(labels).scores.row(2, named=True)
    assert (row["label"], row["probability"], row["lower"], row["judgments"], row["tied"]) == (None, None, None, 0, 0)


def test_a_share_interval_without_doubt_is_close_to_jeffreys_own():
    right, total = np.array([0.0, 3.0, 20.0]), np.array([5.0, 10.0, 20.0])
    lower, upper = share_interval(right, total, 0.95)
    exact = stats.beta(right + 0.5, total - right + 0.5)
    np.testing.assert_allclose(upper, exact.ppf(0.975).clip(right / total), atol=1e-9)
    np.testing.assert_allclose(lower, np.minimum(exact.ppf(0.025), right / total), atol=1e-9)


def test_doubt_widens_a_share_interval_and_nothing_counted_has_none():
    sure = share_interval(np.array([8.0]), np.array([10.0]), 0.95)
    unsure = share_interval(np.array([8.0]), np.array([10.0]), 0.95, np.array([1.5]))
    assert unsure.lower < sure.lower
    assert unsure.upper > sure.upper
    assert np.isnan(share_interval(np.zeros(1), np.zeros(1), 0.95).lower).all()


def test_a_beta_is_found_by_its_mean_and_variance():
    beta = stats.beta(3, 7)
    lower, upper = beta_interval(np.array([beta.mean()]), np.array([beta.var()]), 0.9)
    assert lower[0] == pytest.approx(beta.ppf(0.05))
    assert upper[0] == pytest.approx(beta.ppf(0.95))


def test_the_delta_method_agrees_with_sampling_log_scores():
    rng = np.random.default_rng(1)
    score, variance = np.array([[1.0, 0.2, -0.5]]), np.array([[0.05, 0.1, 0.02]])
    draws = score + np.sqrt(variance) * rng.standard_normal((200_000, 3))
    share = np.exp(draws[:, 0]) / np.exp(draws).sum(axis=1)
    plain = np.exp(score) / np.exp(score).sum()
    lower, upper = log_odds_interval(plain, score, variance, 0.95)
    assert lower[0] == pytest.approx(np.quantile(share, 0.025), abs=0.01)
    assert upper[0] == pytest.approx(np.quantile(share, 0.975), abs=0.01)


def test_labels_without_annotators_or_with_one_class_are_refused_with_a_remedy():
    unknown = Labels(items=Index("x"), item=np.zeros(1, np.int32), label=np.zeros(1, np.int32), classes=Index("pq"))
    with pytest.raises(DataError, match=r"mace weighs annotators.*use majority"):
        need_annotators("mace", unknown)
    with pytest.raises(DataError, match="at least two classes; all labels are 'p'"):
        need_annotators("mace", labels_of([("a", "x", "p"), ("b", "x", "p")]))
