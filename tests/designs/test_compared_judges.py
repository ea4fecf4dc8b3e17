"""Models' comparisons in the adaptive design: how much they are trusted, and who is asked next."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from steelyard.designs import Adaptive
from steelyard.designs.adaptive.compared_judges import ComparedJudges, ModelPairs
from steelyard.designs.adaptive.judge_prior import START_RESIDUAL, ItemPrior, PeopleEvidence
from steelyard.designs.base import NoTask, Pick
from steelyard.designs.state import AnswerNotice
from steelyard.observations import Comparison
from steelyard.protocols import BestWorst, Pairwise
from tests.designs.helpers import make_items

PRIOR = ItemPrior(0.0, 1.0)


def fitted(correlation: float, *, n: int = 120, precision: float = 10.0) -> tuple[ComparedJudges, np.ndarray]:
    """Fit to items of variance 1, a model that compares every item with 12 others, and people of known precision."""
    rng = np.random.default_rng(3)
    truth = stats.zscore(rng.normal(size=n))
    model = correlation * truth + np.sqrt(1 - correlation**2) * rng.normal(size=n)
    judges = ComparedJudges(ties=False)
    judges.grow(n)
    for shift in range(1, 7):
        for left in range(n):
            right = (left + shift) % n
            won = 1 if model[left] + 0.3 * rng.normal() > model[right] + 0.3 * rng.normal() else -1
            judges.add("m", f"{left}-{right}", ModelPairs([left], [right], [won]))
    people = PeopleEvidence(truth + rng.normal(size=n) / np.sqrt(precision), np.full(n, precision))
    judges.refit(people, PRIOR)
    return judges, truth


@pytest.fixture(scope="module", params=[0.0, -0.9, 0.9])
def case(request):
    return request.param, *fitted(request.param)


def test_the_models_explain_the_squared_correlation_of_the_variance(case):
    correlation, judges, _ = case
    assert judges.both == 120
    assert judges.explained == pytest.approx(correlation**2, abs=0.15)


def test_prior_and_evidence_together_predict_with_the_variance_that_they_claim(case):
    correlation, judges, truth = case
    precision = judges.precision + 1.0
    mean = judges.precision * judges.mean / precision
    z = (truth - mean) * np.sqrt(precision)
    # The standard error of an sd of 120 values is .06; the residual is drawn towards the assumption.
    assert np.std(z) == pytest.approx(1.0, abs=0.2)
    if correlation:
        assert np.corrcoef(mean, truth)[0, 1] > 0.8


def test_without_people_models_are_no_evidence_but_expected_to_explain_what_is_stated():
    judges = ComparedJudges(ties=False)
    judges.grow(3)
    judges.add("m", "a", ModelPairs([0], [1], [1]))
    judges.refit(PeopleEvidence(np.zeros(3), np.zeros(3)), PRIOR)
    assert judges.precision == pytest.approx(0.0)
    assert judges.residual == pytest.approx(START_RESIDUAL)


def test_added_precision_by_hand():
    """Half of the variance explained: an item known to w = .6 has 1 − .5·.4 = .8 left, and at w = .2 1 − .5·.8 = .6."""
    judges = ComparedJudges(ties=False)
    judges.explained = 0.5
    assert judges.added_precision(np.array([0.6]), np.array([0.2]), PRIOR) == pytest.approx(1 / 0.6 - 1 / 0.8)


def test_a_removed_answer_leaves_no_trace():
    judges, _ = fitted(0.9, n=6)
    before = judges.scores.copy(), judges.variance.copy(), judges.n_answers, judges.pairs
    judges._refit_at = np.inf
    judges.add("m", "new", ModelPairs([0], [3], [1]))
    assert judges.remove("new", ModelPairs([0], [3], [1]))
    assert not judges.remove("new", ModelPairs([0], [3], [1]))
    np.testing.assert_allclose(judges.scores, before[0], atol=1e-9)
    np.testing.assert_allclose(judges.variance, before[1], atol=1e-9)
    assert (judges.n_answers, judges.pairs) == before[2:]


class Trial:
    """People and a model compare items of known positions; the design chooses who is asked about what."""

    def __init__(self, model: np.ndarray, truth: np.ndarray, *, model_cost: float, tasks: int, judgments: int = 50):
        design, rng = Adaptive(model_cost=model_cost, judgments=judgments), np.random.default_rng(1)
        self.items = make_items(len(truth))
        self.progress = design.new_progress(Pairwise(), self.items)
        self.people: list[Pick] = []
        self.pairs: list[tuple[int, ...]] = []
        self.endings: set[str] = set()
        for step in range(tasks):
            pick = design.pick_for_model(self.progress)
            if isinstance(pick, Pick):
                self.pairs.append(pick.items)
                assert pick.reason.startswith("model: gain per cost")
                self.progress.notify_model_answer(self._notice(step, "m", pick.items, model))
                continue
            assert isinstance(pick, NoTask)
            self.endings.add(pick.reason_code)
            who = f"p{step % 7}"
            pick = design.pick(self.progress, 2, who, np.random.default_rng(step))
            assert isinstance(pick, Pick)
            self.people.append(pick)
            self.progress.on_leased(who, pick.items, None)
            self.progress.on_answered(pick.items, None)
            self.progress.notify_answer(self._notice(step, who, pick.items, truth + rng.normal(0, 0.4, len(truth))))

    def _notice(self, step: int, who: str, pair: tuple[int, ...], place: np.ndarray) -> AnswerNotice:
        left, right = pair
        outcome = 1 if place[left] > place[right] else -1
        comparison = Comparison(self.items[left].id, self.items[right].id, outcome)
        return AnswerNotice(str(step), who, pair, [comparison])


TRUTH = np.random.default_rng(2).normal(size=24)


@pytest.fixture(scope="module")
def good() -> Trial:
    return Trial(TRUTH, TRUTH, model_cost=0.2, tasks=150)


def test_a_dear_model_is_not_asked_and_a_useless_one_less_than_a_good_one(good):
    assert Trial(TRUTH, TRUTH, model_cost=20.0, tasks=10).pairs == []
    useless = Trial(np.random.default_rng(5).normal(size=24), TRUTH, model_cost=0.2, tasks=150)
    judges = useless.progress.design_state.judges
    assert judges.explained < 0.25 < good.progress.design_state.judges.explained
    assert len(useless.pairs) < 0.7 * len(good.pairs)
    # Once it is known to be useless, the rest is people's.
    assert len(useless.people) > len(good.people)


def test_every_pair_can_be_given_to_a_person_and_its_probability_is_logged(good):
    n_pairs = len(list(combinations(range(24), 2)))
    least = Adaptive().explore / n_pairs
    assert all(pick.propensity is not None and pick.propensity >= 0.999 * least for pick in good.people)
    # The best task has the rest of the probability.
    assert max(pick.propensity for pick in good.people) == pytest.approx(1 - Adaptive().explore, abs=0.01)
    assert all(pick.reason.startswith("person: ") for pick in good.people)


def test_a_model_gets_no_pair_twice_and_sees_items_first_and_second_equally_often(good):
    assert len({tuple(sorted(pair)) for pair in good.pairs}) == len(good.pairs) > 20
    first, second = (np.bincount([pair[side] for pair in good.pairs], minlength=24) for side in (0, 1))
    assert np.abs(first - second).max() <= 3


def test_avoided_pairs_are_not_picked_again():
    design = Adaptive(model_cost=0.001)
    progress = design.new_progress(Pairwise(), make_items(3))
    avoided: list[tuple[int, ...]] = []
    for _ in range(3):
        pick = design.pick_for_model(progress, avoided)
        assert isinstance(pick, Pick)
        avoided.append(pick.items)
    assert {tuple(sorted(pair)) for pair in avoided} == {(0, 1), (0, 2), (1, 2)}
    end = design.pick_for_model(progress, avoided)
    assert isinstance(end, NoTask)
    assert end.complete


def test_pairs_that_are_about_to_be_answered_count_as_if_they_were():
    design = Adaptive(model_cost=0.001)
    progress = design.new_progress(Pairwise(), make_items(8))
    first = design.pick_for_model(progress)
    second = design.pick_for_model(progress, [first.items])
    assert not set(first.items) & set(second.items)
    assert len({design.pick_for_model(progress, [first.items]).items for _ in range(3)}) == 1


def test_larger_tasks_and_groups_are_refused():
    for settings, protocol in (({}, BestWorst()), ({"by": "group"}, Pairwise())):
        problems = Adaptive(model_cost=0.1, **settings).problems(protocol, 10)
        assert "design.model_cost" in {problem.field for problem in problems}
