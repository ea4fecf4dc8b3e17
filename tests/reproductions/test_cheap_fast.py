"""The claims of Snow et al. (2008), on small versions of the experiments."""

from __future__ import annotations

from functools import cache
from math import sqrt
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from reproductions.base import Claim, Experiment
from reproductions.cheap_fast import EXPERIMENTS
from reproductions.cheap_fast.affect_by_annotators import AffectByAnnotators, error_share, five_for_six
from reproductions.cheap_fast.affect_classifier import AffectClassifier, bags_of_words, predict
from reproductions.cheap_fast.costs import Costs
from reproductions.cheap_fast.disputed_gold import DisputedGold
from reproductions.cheap_fast.gold_calibration import GoldCalibration, right_by_item
from reproductions.cheap_fast.majority_by_annotators import MajorityByAnnotators
from reproductions.cheap_fast.numeric_calibration import NumericCalibration
from reproductions.cheap_fast.recordings import few_of_each
from reproductions.cheap_fast.word_similarity import WordSimilarity
from reproductions.cheap_fast.worker_accuracy import WorkerAccuracy
from reproductions.formatting import agrees
from reproductions.running import Reproduction, reproduce
from steelyard.models.labels.majority import Majority
from steelyard.observations import Index, Labels


@cache
def ran(cls: type[Experiment], data: Path) -> Reproduction:
    """Run the small version once for all tests."""
    return reproduce(cls().small(), data)


def claim(outcome: Reproduction, what: str) -> Claim:
    (found,) = [one for one in outcome.claims if one.what.startswith(what)]
    return found


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("cls", EXPERIMENTS, ids=lambda cls: cls.name)
def test_every_experiment_gives_claims_within_their_intervals_and_a_figure_that_draws(cls, shared_data):
    outcome = ran(cls, shared_data)
    assert outcome.claims
    for one in outcome.claims:
        assert one.lower is None or one.lower <= one.ours <= one.upper
        assert one.published is None or agrees(one) or one.why, one
    assert outcome.svg is not None or cls is DisputedGold


@pytest.mark.shared_data
def test_ten_annotators_reach_the_published_accuracies(shared_data):
    assert all(map(agrees, ran(MajorityByAnnotators, shared_data).claims))


@pytest.mark.shared_data
def test_an_even_number_of_votes_does_no_better_than_one_fewer_where_there_are_two_classes(shared_data):
    table = ran(MajorityByAnnotators, shared_data).table
    for task in ("textual entailment", "temporal order"):
        accuracy = table.filter(pl.col("task") == task).sort("annotators")["accuracy"].to_numpy()
        np.testing.assert_allclose(accuracy[0::2], accuracy[1::2], atol=1e-12)
        assert (np.diff(accuracy[0::2]) > 0).all()


@pytest.mark.shared_data
def test_word_similarities_correlate_as_published(shared_data):
    assert agrees(ran(WordSimilarity, shared_data).claims[0])


@pytest.mark.shared_data
def test_four_annotators_match_an_expert_on_emotions_on_average(shared_data):
    outcome = ran(AffectByAnnotators, shared_data)
    assert agrees(claim(outcome, "mean of all seven: annotators"))
    assert agrees(claim(outcome, "mean of six emotions: annotators"))


@pytest.mark.shared_data
def test_a_gold_of_five_experts_explains_most_of_the_higher_correlations(shared_data):
    outcome = ran(AffectByAnnotators, shared_data)
    six, five = claim(outcome, "mean of all seven: r of ten"), claim(outcome, "mean of all seven: the same")
    assert six.difference > 0
    assert abs(five.difference) < 0.5 * six.difference


def test_the_reckoning_of_experts_errors_gives_back_their_agreement():
    for noise in (0.2, 1.0, 3.0):
        agreement = 1 / sqrt((1 + noise) * (1 + noise / 5))
        assert error_share(agreement) == pytest.approx(noise)


def test_five_experts_for_six_agrees_with_simulated_experts():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=200_000)
    experts = truth[:, None] + rng.normal(0, 1.2, (len(truth), 6))
    crowd = truth + rng.normal(0, 0.5, len(truth))
    six, five = (np.corrcoef(crowd, experts[:, :n].mean(axis=1))[0, 1] for n in (6, 5))
    agreement = np.corrcoef(experts[:, 0], experts[:, 1:].mean(axis=1))[0, 1]
    assert six * five_for_six(agreement) == pytest.approx(five, abs=2e-3)
    assert five < six


@pytest.mark.shared_data
def test_one_gold_label_is_disputed_and_mending_it_makes_the_vote_perfect(shared_data):
    outcome = ran(DisputedGold, shared_data)
    assert claim(outcome, "word-sense items").ours == 1
    assert claim(outcome, "labels against the gold of the most disputed").ours == 9
    assert claim(outcome, "accuracy").ours == 1.0


@pytest.mark.shared_data
def test_the_cost_table_is_the_published_one_up_to_rounded_hours(shared_data):
    outcome = ran(Costs, shared_data)
    off = [one.what for one in outcome.claims if not agrees(one)]
    assert off == ["temporal order: labels per hour"]
    assert abs(claim(outcome, "temporal order: labels per hour").difference) < 0.1


@pytest.mark.shared_data
def test_everybody_did_twenty_items_and_some_who_did_many_are_near_chance(shared_data):
    outcome = ran(WorkerAccuracy, shared_data)
    assert outcome.claims[0].ours == 20
    assert outcome.table.height == 164
    prolific = outcome.table.sort("judgments", descending=True).head(10)
    assert prolific["accuracy"].min() < 0.6
    assert prolific["accuracy"].max() > 0.85


@pytest.mark.shared_data
def test_calibration_on_gold_gains_on_both_tasks_by_more_than_chance(shared_data):
    outcome = ran(GoldCalibration, shared_data)
    for task in ("textual entailment", "temporal order"):
        for first in (1, 3):
            gain = claim(outcome, f"{task}: gain of calibration, mean over {first}")
            assert gain.lower > 0
            # One label per item counts a quarter here, and a tenth in full.
            assert first == 1 or gain.lower <= gain.published <= gain.upper
            assert claim(outcome, f"{task}: gain of votes weighted by accuracy, mean over {first}").lower > 0


@pytest.mark.shared_data
def test_calibration_of_numbers_gains_little_and_the_published_gain_is_not_ruled_out(shared_data):
    gain = ran(NumericCalibration, shared_data).claims[0]
    assert gain.lower <= gain.published <= gain.upper
    assert abs(gain.ours) < 5


@pytest.mark.shared_data
def test_a_classifier_learns_from_non_experts_and_more_from_ten_than_from_one(shared_data):
    outcome = ran(AffectClassifier, shared_data)
    ten, one = claim(outcome, "trained on ten, mean of all"), claim(outcome, "trained on one")
    assert ten.lower > 0
    assert ten.ours > one.ours
    assert ten.lower <= ten.published <= ten.upper


def test_the_classifier_averages_known_words_only():
    bags = bags_of_words(["storm hits", "storm ends", "calm storm", "nothing here"])
    predicted = predict(bags[:2], np.array([10.0, 30.0]), bags[2:])
    # "storm" was in both headlines, (10 + 30) / 2; "calm" was in none; the last headline has no known word.
    np.testing.assert_allclose(predicted, [20.0, 20.0])
    np.testing.assert_allclose(predict(bags[:2], np.array([10.0, 30.0]), bags[:1]), [(20 + 10) / 2])


def made_up_labels() -> Labels:
    item = np.repeat(np.arange(3, dtype=np.int32), 4)
    return Labels(
        items=Index(["a", "b", "c"]),
        annotators=Index(["p", "q", "r", "s"]),
        annotator=np.tile(np.arange(4, dtype=np.int32), 3),
        item=item,
        label=np.array([0, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0], np.int32),
        classes=Index(["no", "yes"]),
    )


def test_ties_count_by_how_many_share_them():
    gold = {"a": "no", "b": "no", "c": "no"}
    right = right_by_item(Majority().fit(made_up_labels()), gold, ("a", "b", "c"))
    np.testing.assert_allclose(right, [1.0, 0.5, 0.0])


def test_a_few_of_each_item_are_kept_each_as_likely():
    labels = made_up_labels()
    times_sampled = np.zeros(len(labels))
    for seed in range(400):
        sample = few_of_each(labels, 2, np.random.default_rng(seed))
        assert np.bincount(sample.item).tolist() == [2, 2, 2]
        times_sampled += np.isin(np.arange(len(labels)), sample.item * 4 + sample.annotator)
    # Each is kept with chance 1/2: within four standard deviations of 200.
    assert np.abs(times_sampled - 200).max() < 40
    assert len(few_of_each(labels, 9, np.random.default_rng(0))) == len(labels)
