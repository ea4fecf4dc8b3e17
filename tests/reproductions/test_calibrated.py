"""The calibrated scale beside the plain estimates, in small; the full runs are in docs/concepts/calibrated-scale.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from reproductions.calibrated import FewerRatings, HeldOut, MixedProtocols, NonInferior, Spam
from reproductions.calibrated.methods import Crowd, needed
from reproductions.running import ignore_progress
from tests.sizes import FULL


def test_judgments_needed_lie_between_those_tried():
    counts, reached = np.array([2.0, 4.0, 8.0]), np.array([0.5, 0.7, 0.8])
    assert needed(counts, reached, 0.6) == pytest.approx(np.sqrt(8))
    assert needed(counts, reached, 0.7) == pytest.approx(4)
    assert needed(counts, reached, 0.4) == 2
    assert np.isnan(needed(counts, reached, 0.9))


def test_a_crowd_answers_around_the_truth_and_its_spammers_do_not():
    crowd = Crowd(items=400, people=10, random=0.3).drawn(np.random.default_rng(0))
    ratings = crowd.ratings(*crowd.who(10))
    by_person = [
        (ratings.value[ratings.annotator == n], crowd.truth[ratings.item[ratings.annotator == n]]) for n in range(10)
    ]
    r = [np.corrcoef(said, truth)[0, 1] for said, truth in by_person]
    assert np.abs(r[:3]).max() < 0.2
    assert np.mean(r[3:]) > 0.5


@pytest.mark.slow
def test_sliders_and_comparisons_together_do_about_as_well_as_the_better_alone():
    outcome = MixedProtocols(budgets=(8,), runs=8 if FULL else 3, draws=20).run(Path(), ignore_progress)
    # Tried: without half of the comparisons it is -0.015, with a fifth of them turned round -0.027, without any -0.05.
    assert outcome.claims[0].ours > (-0.008 if FULL else -0.02)


@pytest.mark.slow
@pytest.mark.shared_data
def test_fewer_sliders_do(shared_data: Path):
    outcome = FewerRatings().small().run(shared_data, ignore_progress)
    assert outcome.table is not None
    for (_, _), part in outcome.table.group_by("data", "judgments"):
        by_method = dict(part.select("method", "r").iter_rows())
        assert by_method["calibrated scale"] > by_method["mean (DA, EASL)"]


@pytest.mark.slow
@pytest.mark.shared_data
def test_spam_costs_less_than_half_of_what_it_costs_the_mean(shared_data: Path):
    # Under a third in the full runs; one run is noisier.
    claims = {claim.what: claim.ours for claim in Spam().small().run(shared_data, ignore_progress).claims}
    for where in ("NLI sliders", "simulation"):
        assert claims[f"{where}: loss of the calibrated scale, of the mean's"] < 50


@pytest.mark.slow
@pytest.mark.shared_data
def test_held_out_judgments_are_predicted(shared_data: Path):
    claims = HeldOut().small().run(shared_data, ignore_progress).claims
    assert 88 < claims[0].ours < 99


@pytest.mark.slow
@pytest.mark.shared_data
def test_no_set_of_recordings_is_scored_much_worse(shared_data: Path):
    outcome = NonInferior().small().run(shared_data, ignore_progress)
    assert outcome.table is not None
    assert {"affect, anger", "RTE", "WMT 2021 cs-en", "word similarity"} <= set(outcome.table["data"])
    # One trial a set, of few judgments; .033 and -.001 when written. WMT is left out: with systems as items, single
    # trials gave -.002, -.07 and -.13. docs/concepts/calibrated-scale.md reports losses of that kind.
    is_compared = pl.col("data").str.contains("session")
    ratings = outcome.table.filter(~is_compared & ~pl.col("data").str.starts_with("WMT"))
    comparisons = outcome.table.filter(is_compared)
    assert ratings["gain"].to_numpy().mean() > 0.015
    assert comparisons["gain"].to_numpy().mean() > -0.01
