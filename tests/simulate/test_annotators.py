"""What simulated people do with a task."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.errors import ConfigError, DataError
from steelyard.protocols import BestWorst, Choice, Direct, Likert, Pairwise, Ranking, ScoredRanking
from steelyard.protocols.rated import Criterion
from steelyard.simulate import Population, SimulatedAnnotator, SimulatedAnnotators, answer_for, make_crowd
from tests.simulate.helpers import alone

TRUTH = {"low": 0.1, "mid": 0.5, "high": 0.8}
ITEMS = list(TRUTH)


def ratings(annotators: SimulatedAnnotators, item: str = "mid", count: int = 3000, name: str = "ann") -> np.ndarray:
    protocol = Direct(scale=(0, 1))
    return np.array([annotators.answer(name, protocol, [item])[item] for _ in range(count)])


def test_without_noise_the_answer_is_the_truth():
    assert alone(TRUTH).answer("ann", Direct(), ["high"]) == {"high": 80}
    assert alone(TRUTH).answer("ann", Likert(), ["mid"]) == {"mid": 3}
    assert alone(TRUTH).answer("ann", Pairwise(), ["low", "mid"]) == {"winner": "mid"}
    assert alone(TRUTH).answer("ann", BestWorst(size=3), ITEMS) == {"best": "high", "worst": "low"}
    assert alone(TRUTH).answer("ann", ScoredRanking(size=3), ITEMS) == {"low": 10, "mid": 50, "high": 80}
    assert alone(TRUTH).answer("ann", Ranking(size=3), ITEMS) == [["high"], ["mid"], ["low"]]
    labels = Choice(labels=("a", "b", "c", "d", "e"))
    assert alone(TRUTH).answer("ann", labels, ["low"]) == {"low": "a"}


def test_bias_moves_and_stretch_widens_around_the_middle():
    assert alone(TRUTH, bias=0.1).answer("ann", Direct(), ["mid"]) == {"mid": 60}
    # 0.5 + 1.5 · (0.8 - 0.5) = 0.95
    assert alone(TRUTH, stretch=1.5).answer("ann", Direct(), ["high"]) == {"high": 95}
    assert alone(TRUTH, stretch=1.5).answer("ann", Direct(), ["mid"]) == {"mid": 50}


def test_ratings_stay_on_the_scale_but_the_order_beyond_its_end_is_known():
    truth = {"a": 0.9, "b": 0.95}
    assert alone(truth, bias=0.5).answer("ann", Direct(), ["a"]) == {"a": 100}
    assert alone(truth, bias=0.5).answer("ann", Pairwise(), ["a", "b"]) == {"winner": "b"}


def test_noise_has_the_standard_deviation_that_is_set():
    result = ratings(alone(TRUTH, noise=0.1))
    assert result.mean() == pytest.approx(0.5, abs=5 * 0.1 / np.sqrt(3000))
    assert result.std() == pytest.approx(0.1, rel=0.06)


def test_lapses_come_as_often_as_is_set_and_are_uniform():
    result = ratings(alone(TRUTH, lapse=0.3))
    lapse_count = result[result != 0.5]
    assert len(lapse_count) / len(result) == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / 3000))
    assert stats.kstest(lapse_count, "uniform").pvalue > 1e-3


def test_drift_moves_the_bias_with_the_tasks_done():
    result = ratings(alone(TRUTH, drift=0.1), count=201)
    assert result[0] == 0.5
    assert result[100] == pytest.approx(0.6)
    assert result[200] == pytest.approx(0.7)


def after(annotators: SimulatedAnnotators, done: int, count: int = 1500) -> np.ndarray:
    """Ratings by somebody who has always just done so many tasks."""
    result = []
    for _ in range(count):
        annotators.done["ann"] = done
        result.append(annotators.answer("ann", Direct(scale=(0, 1)), ["mid"])["mid"])
    return np.array(result)


def test_fatigue_lets_noise_and_lapses_grow():
    tired = alone(TRUTH, noise=0.02, fatigue=3.0)
    # After 200 tasks the noise is 1 + 3·2 times what it was.
    assert after(tired, 0).std() == pytest.approx(0.02, rel=0.1)
    assert after(tired, 200).std() == pytest.approx(0.14, rel=0.1)
    wandering = alone(TRUTH, lapse_growth=0.25)
    assert (after(wandering, 0) == 0.5).all()
    assert (after(wandering, 200) != 0.5).mean() == pytest.approx(0.5, abs=0.07)


def test_items_seen_together_are_judged_with_less_noise_and_share_a_shift():
    truth = {"a": 0.5, "b": 0.5}
    protocol = ScoredRanking(size=2, scale=(0, 1))

    def both(**traits):
        people = alone(truth, **traits)
        return np.array([list(people.answer("ann", protocol, ["a", "b"]).values()) for _ in range(3000)])

    assert both(noise=0.1, together=0.5).std() == pytest.approx(0.05, rel=0.06)
    shifted_values = both(context_shift=0.1)
    assert shifted_values[:, 0].std() == pytest.approx(0.1, rel=0.08)
    assert (shifted_values[:, 0] == shifted_values[:, 1]).all()
    assert ratings(alone(truth, noise=0.1, together=0.5, context_shift=0.3), "a").std() == pytest.approx(0.1, rel=0.06)


def test_the_tie_margin_says_what_looks_the_same():
    for margin, winner in ((0.25, "high"), (0.35, None)):
        people = alone(TRUTH, tie_margin=margin)
        assert people.answer("ann", Pairwise(), ["mid", "high"]) == {"winner": winner}
    assert alone(TRUTH, tie_margin=0.35).answer("ann", Pairwise(ties=False), ["mid", "high"]) == {"winner": "high"}
    assert alone(TRUTH, tie_margin=0.35).answer("ann", Ranking(size=3), ITEMS) == [["high", "mid"], ["low"]]


def test_confusion_draws_labels_at_random_and_leaves_ratings_alone():
    protocol = Choice(labels=("a", "b"))
    people = alone(TRUTH, confusion=0.4)
    result = [people.answer("ann", protocol, ["high"])["high"] for _ in range(3000)]
    # Half of the labels drawn at random are right all the same.
    assert result.count("a") / 3000 == pytest.approx(0.2, abs=5 * np.sqrt(0.16 / 3000))
    assert set(ratings(alone(TRUTH, confusion=0.4), count=50)) == {0.5}


def test_spam_is_random_or_constant_or_a_copy():
    rng = np.random.default_rng(1)
    crowd = [
        SimulatedAnnotator("honest", noise=0.2, lapse=0.2),
        SimulatedAnnotator("copier", noise=0.9, careless="copy", copies="honest"),
        SimulatedAnnotator("robot", bias=0.2, careless="constant"),
        SimulatedAnnotator("blind", noise=0.0, careless="random"),
        SimulatedAnnotator("other", noise=0.2),
    ]
    truth = {f"i{number}": value for number, value in enumerate(rng.random(300))}
    people = SimulatedAnnotators(crowd, truth, rng)
    observations = {
        person.name: np.array([people.answer(person.name, Direct(), [item])[item] for item in truth])
        for person in crowd
    }
    assert (observations["copier"] == observations["honest"]).all()
    assert set(observations["robot"]) == {70}
    values = np.array(list(truth.values()))
    assert abs(np.corrcoef(observations["blind"], values)[0, 1]) < 0.2
    assert np.corrcoef(observations["honest"], values)[0, 1] > 0.6
    assert (observations["other"] != observations["honest"]).mean() > 0.9


def test_criteria_have_values_of_their_own():
    protocol = Direct(criteria={"joy": Criterion(), "fear": Criterion(scale=(-1, 1))})
    people = SimulatedAnnotators(
        [SimulatedAnnotator("ann", noise=0.0)], {"joy": {"x": 0.9}, "fear": {"x": 0.25}}, np.random.default_rng(0)
    )
    assert people.answer("ann", protocol, ["x"]) == {"x": {"joy": 90, "fear": -0.5}}
    with pytest.raises(DataError, match="no true values for criterion 'anger'"):
        people.answer("ann", Direct(criteria={"anger": Criterion()}), ["x"])


def test_criteria_that_share_a_truth_are_seen_with_noise_of_their_own():
    protocol = Direct(criteria={"joy": Criterion(), "fear": Criterion()})
    people = alone({"x": 0.5}, noise=0.1)
    result = np.array([list(people.answer("ann", protocol, ["x"])["x"].values()) for _ in range(2000)])
    assert abs(np.corrcoef(result.T)[0, 1]) < 5 / np.sqrt(2000)


def test_a_crowd_has_the_population_s_parameters():
    population = Population(bias=0.1, stretch=0.3, noise=0.2, noise_cv=0.4, lapse=0.05, careless=0.2)
    crowd = make_crowd(4000, np.random.default_rng(0), population)
    bias, stretch, noise, lapse = (
        np.array([getattr(person, name) for person in crowd]) for name in ("bias", "stretch", "noise", "lapse")
    )
    assert bias.std() == pytest.approx(0.1, rel=0.05)
    assert (stretch.mean(), np.log(stretch).std()) == pytest.approx((1, 0.3), rel=0.05)
    assert (noise.mean(), noise.std() / noise.mean()) == pytest.approx((0.2, 0.4), rel=0.06)
    assert lapse.mean() == pytest.approx(0.05, rel=0.1)
    kinds = [person.careless for person in crowd if person.careless]
    assert len(kinds) == 800
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"random": 267, "constant": 267, "copy": 266}
    honest = {person.name for person in crowd if person.careless is None}
    assert all(person.copies in honest for person in crowd if person.careless == "copy")


def test_values_have_the_mean_and_spread_that_are_set():
    values = Population(mean=0.3, item_sd=0.2).values(20_000, np.random.default_rng(0))
    assert (values.mean(), values.std()) == pytest.approx((0.3, 0.2), rel=0.03)
    assert values.min() >= 0
    assert values.max() <= 1


def test_what_no_population_can_be_is_refused():
    with pytest.raises(ConfigError, match=r"no setting 'nose'.*Did you mean 'noise'"):
        Population.of({"nose": 0.1})
    with pytest.raises(ConfigError, match="less than 1"):
        Population.of({"lapse": 2})
    with pytest.raises(ConfigError, match=r"mean 0\.1 cannot have"):
        Population.of({"mean": 0.1, "item_sd": 0.4})
    with pytest.raises(ConfigError, match="there are no annotators"):
        SimulatedAnnotators([], TRUTH, np.random.default_rng(0))


def test_a_protocol_nobody_can_answer_says_how_to_teach_it():
    class Unknown:
        name = "telepathy"

    with pytest.raises(ConfigError, match=r"cannot answer telepathy.*answer_for\.register"):
        answer_for(Unknown(), {})


@pytest.mark.parametrize(
    ("former", "new_name"), [("spam", "careless"), ("spread", "item_sd"), ("noise_spread", "noise_cv")]
)
def test_a_former_setting_of_a_population_is_refused_with_the_new_name(former, new_name):
    with pytest.raises(ConfigError, match=f"It is now called '{new_name}'"):
        Population.of({former: 0.1})
    assert getattr(Population.of({new_name: 0.1}), new_name) == 0.1
