from __future__ import annotations

import numpy as np
import pytest

from benchmarks.coverage_labels import POPULATIONS, one_label_set, one_population
from steelyard.models.labels.calibration import STRENGTHS, ConfusionPrior, softened
from steelyard.models.labels.dawid_skene import DawidSkene
from steelyard.models.labels.mace import MACE
from tests.models.label_data import accuracy, labels_of
from tests.sizes import FULL

SHAPE = {"items": 50, "annotators": 15, "per_item": 4, "classes": 2}


def test_claimed_probabilities_are_the_accuracies_where_the_model_holds():
    plain = DawidSkene(confusion_prior="none", calibrate=False)
    claimed, right = np.zeros(2), np.zeros(2)
    sets = 100 if FULL else 15
    for seed in range(sets):
        for number, model in enumerate((DawidSkene(), plain)):
            results = one_label_set(model, SHAPE, "confusion", 0.0, seed)
            claimed[number] += results["claimed"] / sets
            right[number] += results["right"] / sets
    assert abs(claimed[0] - right[0]) < 0.03
    assert claimed[1] - right[1] > 0.06
    assert right[0] >= right[1]


def test_intervals_cover_the_posterior_at_the_true_parameters():
    sets = 100 if FULL else 15
    coverage = [one_label_set(DawidSkene(), SHAPE, "confusion", 0.0, seed)["probability"] for seed in range(sets)]
    assert 0.9 <= np.mean(coverage) <= 0.99


@pytest.mark.parametrize("name", ["85 : 15, 60", "85 : 15, 300"])
def test_intervals_cover_the_posterior_where_one_class_is_rare(name):
    # .69 and .66 if the intervals rely on the prior of the classes' shares.
    sets = 100 if FULL else 15
    coverage = [one_population(POPULATIONS[name], seed)["probability"] for seed in range(sets)]
    assert 0.85 <= np.mean(coverage) <= 0.99


@pytest.mark.parametrize("model", [DawidSkene(interval="none"), MACE(interval="none", restarts=2)])
def test_difficult_items_do_not_make_the_model_sure(model):
    rng = np.random.default_rng(0)
    truth = {f"i{item:03}": "yes" if item % 2 else "no" for item in range(300)}
    rows = []
    for number, (item, true) in enumerate(truth.items()):
        # On every second pair of items, annotators do little better than guess.
        chance = 0.58 if number % 4 < 2 else 0.95
        for who in rng.choice(20, 10, replace=False):
            other = "no" if true == "yes" else "yes"
            rows.append((f"a{who:02}", item, true if rng.random() < chance else other))
    labels = labels_of(rows)
    fit, raw = (type(model)(**{**model.settings(), "calibrate": on}).fit(labels) for on in (True, False))
    assert any("tempered" in note for note in fit.notes)
    assert accuracy(fit, truth) == accuracy(raw, truth)
    excess, raw_excess = (x.scores["probability"].mean() - accuracy(x, truth) for x in (fit, raw))
    assert raw_excess > 0.06
    assert abs(excess) < 0.6 * raw_excess


def test_annotators_who_cannot_be_checked_are_not_taken_for_perfect():
    rows = [(f"a{item % 4}", f"i{item}", "yes" if item % 3 else "no") for item in range(40)]
    fit = DawidSkene().fit(labels_of(rows))
    assert any("no item has labels from two annotators" in note for note in fit.notes)
    assert any("an accuracy of about 70%" in note for note in fit.notes)
    assert fit.scores["probability"].max() < 0.9
    assert fit.scores["lower"].null_count() == 0


def test_the_prior_is_strong_where_annotators_are_alike_and_weak_where_they_differ():
    rng = np.random.default_rng(0)
    alike = np.array([[8.0, 2.0], [2.0, 8.0]])[None].repeat(50, axis=0)
    share = rng.beta(0.7, 0.3, 50)
    different = 10 * np.array([[share, 1 - share], [1 - share, share]]).transpose(2, 0, 1)
    strong, weak = (ConfusionPrior.learnt(counts, None, True) for counts in (alike, different))
    assert strong.strength > 30
    assert weak.strength == pytest.approx(STRENGTHS[0], abs=1.5)
    # Pooled accuracy, hardly moved by its prior of two labels at .7.
    assert strong.cells[0, 0] / strong.strength == pytest.approx(0.8, abs=0.01)


def test_softening_keeps_the_order_and_the_total():
    posterior = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
    soft = softened(posterior, 0.5)
    np.testing.assert_allclose(soft.sum(axis=1), 1.0)
    # By hand: √.9 / (√.9 + √.1) = 3 / 4.
    np.testing.assert_allclose(soft[0], [0.75, 0.25, 0.0])
    assert (soft.argsort(axis=1) == posterior.argsort(axis=1)).all()
