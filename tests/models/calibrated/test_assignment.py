"""Bias of annotators, or differences between the items that they were given."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import SteelyardWarning
from steelyard.models.calibrated.assignment import Assignment, check_assignment
from steelyard.models.calibrated.evidence import Evidence
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.observations import FloatArray, Index, Ratings

BATCH, ANNOTATORS = 8, 12


def batches(seed: int, *, overlap: int, bias: float = 0.0, is_random: bool = False) -> tuple[Ratings, FloatArray]:
    """Give each annotator a batch of items, and some of other batches; batches differ unless items are shuffled."""
    rng = np.random.default_rng(seed)
    n_items = BATCH * ANNOTATORS
    truth = np.repeat(rng.normal(0, 1.2, ANNOTATORS), BATCH) + rng.normal(0, 0.5, n_items)
    if is_random:
        rng.shuffle(truth)
    own = np.arange(n_items) // BATCH
    others = [rng.choice(np.flatnonzero(own != who), overlap, replace=False) for who in range(ANNOTATORS)]
    item = np.concatenate([np.arange(n_items), *others])
    who = np.concatenate([own, np.repeat(np.arange(ANNOTATORS), overlap)])
    shift = rng.normal(0, bias, ANNOTATORS)
    value = np.clip(50 + 12 * (truth[item] + shift[who] + rng.normal(0, 0.5, len(item))), 0, 100)
    return Ratings(
        items=Index([f"i{n:03d}" for n in range(n_items)]),
        annotators=Index([f"a{n:02d}" for n in range(ANNOTATORS)]),
        item=item.astype(np.int32),
        annotator=who.astype(np.int32),
        value=value,
        scale=(0.0, 100.0),
    ), truth


def checked(ratings: Ratings) -> Assignment:
    return check_assignment(Evidence.of("calibrated_scale", ratings))


def test_the_confirmed_part_is_that_of_least_squares():
    ratings, _ = batches(1, overlap=6, bias=0.5)
    n_items, value = len(ratings.items), ratings.unit_value - ratings.unit_value.mean()
    design = np.zeros((len(ratings), ANNOTATORS + n_items))
    design[np.arange(len(ratings)), ratings.annotator] = 1
    design[np.arange(len(ratings)), ANNOTATORS + ratings.item] = 1
    within = np.linalg.lstsq(design, value, rcond=None)[0]
    residual = value - design @ within
    noise = residual @ residual / (len(ratings) - n_items - ANNOTATORS + 1)
    mean = np.bincount(ratings.annotator, value) / np.bincount(ratings.annotator)
    between = ((value - mean[ratings.annotator]) ** 2).sum() / (len(ratings) - ANNOTATORS) - noise
    # Generalised least squares with random items.
    covariance = noise * np.eye(len(value)) + between * (ratings.item[:, None] == ratings.item)
    dummies = design[:, :ANNOTATORS]
    weighted = np.linalg.solve(covariance, dummies)
    overall = np.linalg.solve(dummies.T @ weighted, weighted.T @ value)
    rows = np.bincount(ratings.annotator)
    contrast = rows * (overall - rows @ overall / rows.sum())
    expected = contrast @ within[:ANNOTATORS] / (contrast @ overall)
    assert checked(ratings).confirmed == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_better_items_are_not_taken_for_a_bias():
    results = [checked(batches(seed, overlap=3)[0]) for seed in range(20)]
    assert np.mean([result.is_confounded for result in results]) > 0.5
    ratings, truth = batches(0, overlap=3)
    with pytest.warns(SteelyardWarning, match=r"annotators with high ratings were given better items: only \d+ %"):
        fit = CalibratedScale(draws=100).fit(ratings)
    score = fit.scores.sort("item")["score"].to_numpy()
    mean = np.bincount(ratings.item, ratings.value) / np.bincount(ratings.item)
    assert np.corrcoef(score, truth)[0, 1] > np.corrcoef(mean, truth)[0, 1] - 0.02


def test_biases_of_annotators_whose_items_are_random_are_confirmed():
    results = [checked(batches(seed, overlap=4, bias=0.8, is_random=True)[0]) for seed in range(100)]
    assert not any(result.is_confounded for result in results)
    assert np.mean([result.confirmed for result in results]) == pytest.approx(1, abs=0.05)
    # One-sided p-values are uniform, within three standard errors.
    assert np.mean([result.p_value < 0.1 for result in results]) == pytest.approx(0.1, abs=3 * np.sqrt(0.09 / 100))


def test_annotators_who_share_too_few_items_are_reported():
    ratings, _ = batches(2, overlap=1, bias=0.3)
    result, evidence = checked(ratings), Evidence.of("calibrated_scale", ratings)
    bias = np.bincount(ratings.annotator, ratings.unit_value) / np.bincount(ratings.annotator)
    (sentence,) = result.warnings(evidence, bias, is_corrected=True)
    assert sentence.startswith("annotators share too few items to tell their bias from differences")
    # Small biases make no difference.
    assert result.warnings(evidence, bias / 50, is_corrected=True) == ()


def test_the_check_needs_several_annotators_of_one_linked_set():
    ratings, _ = batches(0, overlap=0)
    assert checked(ratings) == Assignment()
