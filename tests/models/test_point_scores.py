"""Point scores are those of the model, or nearly so."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.point_scores import PointScores, calibrated_scores
from steelyard.observations import Observations
from steelyard.reliability.correlation import spearman
from steelyard.simulate import simulate_study
from tests.simulate.helpers import make_annotators, make_config, make_items


def judgments(protocol: str, each: int, seed: int = 0) -> tuple[Observations, np.ndarray]:
    items = make_items(40)
    config = make_config({"name": protocol}, {"judgments": each}, seed=seed)
    annotators = make_annotators(15, items, seed)
    observations = simulate_study(config, items, annotators, np.random.default_rng(seed)).observations()[""]
    return observations, annotators.true_values(observations.items.ids)


def fitted(model, observations: Observations) -> np.ndarray:
    scores = dict(model.fit(observations).scores.select("item", "score").rows())
    return np.array([scores[item] for item in observations.items.ids])


def test_latent_models_give_their_own_scores():
    comparisons, _ = judgments("pairwise", 30)
    assert PointScores(BradleyTerry()).scores(comparisons) == pytest.approx(
        fitted(BradleyTerry(), comparisons), abs=1e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "each"), [("direct", 8), ("pairwise", 20)])
def test_the_calibrated_scale_s_stand_in_ranks_items_as_the_model_does(protocol, each):
    observations, truth = judgments(protocol, each)
    stand_in, sampled = calibrated_scores(observations)[0], fitted(CalibratedScale(draws=200), observations)
    assert spearman(stand_in, sampled).r > 0.97
    assert spearman(stand_in, truth).r == pytest.approx(spearman(sampled, truth).r, abs=0.02)


def test_items_without_judgments_have_no_score():
    ratings, _ = judgments("direct", 4)
    scores = PointScores(CalibratedScale()).scores(ratings.subset(ratings.item != 3))
    assert np.flatnonzero(np.isnan(scores)).tolist() == [3]
