"""Which differences between annotators are modelled, positive slopes, convergence, and warnings about the judgments."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmarks.calibrated_scenes import compared, in_tuples, rated
from steelyard.errors import ConvergenceWarning, SteelyardWarning
from steelyard.models.calibrated.chain import Chain
from steelyard.models.calibrated.checks import Opposition, judgment_warnings, opposition
from steelyard.models.calibrated.evidence import Evidence
from steelyard.models.calibrated.ladder import RUNGS, Choice, choose_rung, fullest, gains
from steelyard.models.calibrated.posterior import sample
from steelyard.models.calibrated.reference import disagreement
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.fit import Fit
from steelyard.models.ratings.mean import Mean
from steelyard.observations import Comparisons, Index, Observations, Ratings
from steelyard.reliability.splitting import take

pytestmark = pytest.mark.slow

SEED = np.random.SeedSequence(0)


def panel(values: np.ndarray, scale: tuple[float, float] = (0, 100)) -> Ratings:
    """Return the ratings of annotators (rows) who all rated the same items (columns)."""
    who, item = np.indices(values.shape)
    return Ratings(
        items=Index([f"i{n:03d}" for n in range(values.shape[1])]),
        annotators=Index([f"a{n:02d}" for n in range(values.shape[0])]),
        annotator=who.ravel().astype(np.int32),
        item=item.ravel().astype(np.int32),
        value=values.ravel().astype(float),
        scale=scale,
    )


def scores(fit: Fit) -> np.ndarray:
    return fit.scores.sort("item")["score"].to_numpy()


def chosen(observations: Observations) -> Choice:
    evidence = Evidence.of("calibrated_scale", observations)
    return choose_rung(evidence, opposition(evidence), SEED)


def checked(ratings: Ratings) -> tuple[Evidence, Opposition, Index]:
    """Return what `judgment_warnings` takes."""
    evidence = Evidence.of("calibrated_scale", ratings)
    return evidence, opposition(evidence), ratings.annotators


def warned_by(observations: Observations, draws: int = 80) -> tuple[Fit, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = CalibratedScale(draws=draws).fit(observations)  # type: ignore[arg-type]
    return fit, [str(each.message) for each in caught if not issubclass(each.category, ConvergenceWarning)]


# The ladder


@pytest.mark.parametrize(("annotators", "rung"), [(1, "none"), (3, "bias"), (8, "bias")])
def test_with_few_annotators_only_bias_is_modelled(annotators: int, rung: str):
    rng = np.random.default_rng(0)
    values = np.clip(rng.uniform(20, 80, 40) + rng.normal(0, 10, (annotators, 40)), 0, 100)
    choice = chosen(panel(values))
    assert (choice.rung, choice.tried) == (rung, ())


def test_a_crowd_that_differs_is_calibrated_and_one_that_does_not_loses_nothing():
    data, _ = rated(np.random.default_rng(1), bias=0.15, use=0.5, each=8)
    choice = chosen(data)
    assert choice.rung in ("slope", "noise", "random")
    assert choice.gain > 0
    alike, truth = rated(np.random.default_rng(1), bias=0.0, use=0.0, each=8)
    fit, _ = warned_by(alike)
    plain = scores(Mean(draws=20).fit(alike))
    assert np.corrcoef(scores(fit), truth)[0, 1] > np.corrcoef(plain, truth)[0, 1] - 0.005


def test_the_fullest_rung_within_one_standard_error_is_chosen():
    # Losses by rung and annotator: the second is better than the first for everybody, the third for one annotator only.
    base = np.full(20, 10.0)
    one = base - 1 + 0.1 * np.arange(20) / 20
    other = one.copy()
    other[0] += 5.0
    assert fullest(np.array([base, one, other])) == 2
    assert fullest(np.array([base, one, one + 0.5])) == 1
    assert fullest(np.array([base, base + 1, base + 2])) == 0


def test_a_rung_of_comparisons_must_be_better_by_two_standard_errors():
    # Gains of four annotators: 2, 0, 2, 0 add up to 4 with a standard error of 2 · √(4/3) = 2.3; 2, 1, 2, 1 to 6 ± 1.2.
    assert not gains(np.array([[2.0, 0.0, 2.0, 0.0], np.zeros(4)]), 1)
    assert gains(np.array([[2.0, 1.0, 2.0, 1.0], np.zeros(4)]), 1)


def test_annotators_who_often_answer_with_a_tie_do_not_count_as_careless():
    """Half of the annotators answer with a tie nearly always, but their decisions are as good as anybody's."""
    rng = np.random.default_rng(0)
    data, _ = compared(rng, items=15, people=12, each=40)
    is_tie = (data.annotator < 6) & (rng.random(len(data)) < 0.85)
    choice = chosen(replace(data, outcome=np.where(is_tie, 0, data.outcome).astype(np.int8)))
    assert choice.rung == "none"
    assert choice.tried == ("none", "slope", "random")


def test_the_fit_says_which_differences_it_models_and_why():
    data, _ = rated(np.random.default_rng(1), bias=0.15, use=0.5, each=8)
    fit, _ = warned_by(data)
    (note,) = [note for note in fit.notes if note.startswith("annotators:")]
    assert "improve the prediction of held-out judgments" in note
    assert any(note.startswith("chains: R̂") for note in fit.notes)
    forced = CalibratedScale(draws=100, annotator_effects="none").fit(data)
    assert any("no differences between annotators" in note for note in forced.notes)


# Failures on recorded panels of few annotators: a constant annotator, and a scale that turns around


def test_a_nearly_constant_annotator_does_not_take_over_the_scale():
    """A panel of three: two who see the items, and one who nearly always answers 4 of 5."""
    rng = np.random.default_rng(3)
    truth = rng.uniform(1, 5, 100)
    values = np.clip(np.rint(truth + rng.normal(0, 0.8, (3, 100))), 1, 5)
    values[2] = 4
    values[2, :3] = 5
    data = panel(values, (1, 5))
    plain = np.corrcoef(scores(Mean(draws=20).fit(data)), truth)[0, 1]
    for seed in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SteelyardWarning)
            fit = CalibratedScale(draws=100, seed=seed).fit(data)
        assert np.corrcoef(scores(fit), truth)[0, 1] > plain - 0.02


def test_a_third_of_reversed_judges_cannot_turn_the_scale_around():
    data, truth = compared(np.random.default_rng(4), each=20)
    is_reversed = data.annotator % 3 == 0
    data = replace(data, outcome=np.where(is_reversed, -data.outcome, data.outcome).astype(np.int8))
    # The default number of draws: items are hardly told apart, so that Monte Carlo error would matter.
    fit, _ = warned_by(data, draws=1000)
    plain = scores(BradleyTerry(draws=20).fit(data))
    assert stats.spearmanr(scores(fit), plain).statistic > 0.6
    assert stats.spearmanr(scores(fit), truth).statistic > stats.spearmanr(plain, truth).statistic - 0.05


def test_slopes_are_positive_in_every_draw():
    data, _ = rated(np.random.default_rng(5), random=0.3)
    chain = Chain(Evidence.of("calibrated_scale", data), np.random.default_rng(0), RUNGS["random"])
    trace = chain.collect(20, 20)
    assert (trace.line[0, 1] > 0).all()


# Convergence


def test_chains_from_dispersed_starts_agree():
    data, _ = rated(np.random.default_rng(6))
    posterior = sample(Evidence.of("calibrated_scale", data), RUNGS["bias"], 400, SEED)
    assert len(posterior.chains) == 4
    assert posterior.diagnostics.converged
    assert posterior.diagnostics.rhat < 1.05
    assert min(posterior.diagnostics.bulk_ess, posterior.diagnostics.tail_ess) >= 100


def test_chains_that_cannot_agree_in_time_are_reported(monkeypatch: pytest.MonkeyPatch):
    # Five draws from each of four dispersed starts, without burn-in.
    monkeypatch.setattr("steelyard.models.calibrated.posterior.MOST_ROUNDS", 1)
    monkeypatch.setattr("steelyard.models.calibrated.posterior.SMALL_TRACE", 0)
    monkeypatch.setattr("steelyard.models.calibrated.posterior.BURN_IN", 0)
    data, _ = compared(np.random.default_rng(7), each=40)
    with pytest.warns(ConvergenceWarning, match=r"R̂ .* increase draws"):
        fit = CalibratedScale(draws=20).fit(data)
    assert not fit.converged


# Warnings about the judgments


def test_ordinary_judgments_are_not_warned_about():
    for seed in range(5):
        for data in (
            rated(np.random.default_rng(seed))[0],
            compared(np.random.default_rng(seed))[0],
            in_tuples(np.random.default_rng(seed), ranked=True)[0],
        ):
            assert len(opposition(Evidence.of("calibrated_scale", data)).against) == 0


def test_a_constant_annotator_is_named():
    data, _ = rated(np.random.default_rng(8), each=8)
    _, messages = warned_by(replace(data, value=np.where(data.annotator == 2, 60.0, data.value)))
    assert any("w002 gives every item the same rating" in message for message in messages)


def test_the_same_rating_where_nearly_everybody_gives_it_is_not_warned_about():
    # Ten annotators, ten items: nine items are 0 to all, and annotator 0 has rated only these.
    values = np.zeros((10, 10))
    values[:, 9] = np.arange(10, 110, 10)
    whole = panel(values)
    few = take(whole, np.flatnonzero((whole.annotator != 0) | (whole.item != 9)))
    assert judgment_warnings(*checked(few)) == ()
    # Of ten items that the others spread over the scale, the same one for all has a chance of about 2 %^10.
    spread = panel(np.vstack([np.full(10, 50.0), np.random.default_rng(0).uniform(0, 100, (9, 10))]))
    assert any("a00 gives every item the same rating" in each for each in judgment_warnings(*checked(spread)))


def test_a_reversed_annotator_is_named():
    data, _ = rated(np.random.default_rng(8), each=10)
    _, messages = warned_by(replace(data, value=np.where(data.annotator == 3, 100 - data.value, data.value)))
    assert any("w003 answers against the other annotators" in message for message in messages)


@pytest.mark.parametrize("kind", ["ratings", "comparisons"])
def test_two_camps_are_reported(kind: str):
    data: Ratings | Comparisons
    if kind == "ratings":
        data, _ = rated(np.random.default_rng(8), each=8)
        data = replace(data, value=np.where(data.annotator % 2 == 0, 100 - data.value, data.value))
    else:
        data, _ = compared(np.random.default_rng(8), each=20)
        data = replace(
            data,
            outcome=np.where(data.annotator % 2 == 0, -data.outcome, data.outcome).astype(np.int8),
        )
    _, messages = warned_by(data)
    assert any("annotators disagree about the direction of the scale" in message for message in messages)


def test_items_that_nothing_links_are_reported():
    data, _ = compared(np.random.default_rng(9), items=20, each=40)
    _, messages = warned_by(take(data, (data.left < 10) == (data.right < 10)))
    assert any("2 groups not linked by any comparison" in message for message in messages)


def test_scores_that_contradict_the_simple_estimate_are_reported():
    data, _ = rated(np.random.default_rng(10), each=10)
    evidence = Evidence.of("calibrated_scale", data)
    mean = scores(Mean(draws=20).fit(data)) / 100
    sd = np.full(len(mean), 0.05)
    assert disagreement(evidence, mean, sd) == ()
    (sentence,) = disagreement(evidence, -mean, sd)
    assert "disagree with mean ratings" in sentence
    shuffled = np.random.default_rng(0).permutation(mean)
    assert disagreement(evidence, shuffled, sd) != ()
