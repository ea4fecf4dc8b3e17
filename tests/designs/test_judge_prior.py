"""Models' answers in the adaptive design: how much they are trusted, and who is asked next."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.designs import Adaptive
from steelyard.designs.adaptive.judge_prior import START_RESIDUAL, ItemPrior, JudgePrior, PeopleEvidence
from steelyard.designs.base import NoTask, Pick
from steelyard.designs.state import AnswerNotice
from steelyard.protocols import Direct, Pairwise
from tests.designs.helpers import make_items


def fitted_prior(correlation: float, *, n: int = 400, precision: float = 4.0) -> tuple[JudgePrior, np.ndarray]:
    """Fit to items of variance 1, a model of this correlation, and people with a known precision."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=n)
    model = correlation * truth + np.sqrt(1 - correlation**2) * rng.normal(size=n)
    judges = JudgePrior()
    for item, value in enumerate(model.tolist()):
        judges.add("m", item, f"j{item}", value)
    people = PeopleEvidence(truth + rng.normal(size=n) / np.sqrt(precision), np.full(n, precision))
    judges.refit(people, ItemPrior(0.0, 1.0), np.zeros(n, np.int32))
    return judges, truth


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_residual_variance_is_what_the_model_leaves(correlation):
    judges, _ = fitted_prior(correlation)
    assert judges.residual == pytest.approx(1 - correlation**2, abs=0.1)


def test_prior_and_evidence_together_are_the_regression_of_people_on_the_model():
    """A reversed model is as good as a good one; errors have the variance that the evidence claims."""
    judges, truth = fitted_prior(-0.9)
    precision = judges.precision + 1.0
    mean = judges.precision * judges.mean / precision
    z = (truth - mean) * np.sqrt(precision)
    assert np.std(z) == pytest.approx(1.0, abs=0.1)
    assert np.corrcoef(mean, truth)[0, 1] > 0.85


def test_without_people_a_model_is_expected_to_leave_the_stated_variance():
    judges = JudgePrior()
    judges.add("m", 0, "a", 0.3)
    judges.refit(PeopleEvidence(np.zeros(3), np.zeros(3)), ItemPrior(0.0, 2.0), np.zeros(3, np.int32))
    assert judges.expected == pytest.approx(1 / (2 * START_RESIDUAL) - 1 / 2)


def test_a_removed_answer_leaves_no_trace():
    judges, _ = fitted_prior(0.5, n=30)
    before = judges.scores(31)
    judges.add("m", 30, "new", 0.5)
    assert judges.remove("m", 30, "new")
    assert not judges.remove("m", 30, "new")
    np.testing.assert_array_equal(judges.scores(31), before)


def run(
    judge: list[float], truth: list[float], *, model_cost: float, tasks: int = 60, judgments: int = 50
) -> tuple[int, list[str]]:
    """Let the design choose between people and a model; return the model's answers and the reasons."""
    design, protocol = Adaptive(model_cost=model_cost, judgments=judgments), Direct()
    items = make_items(len(truth))
    progress = design.new_progress(protocol, items)
    rng = np.random.default_rng(1)
    reasons, by_model = [], 0
    for step in range(tasks):
        pick = design.pick_for_model(progress)
        is_model = isinstance(pick, Pick)
        who = "m" if is_model else f"p{step}"
        if not is_model:
            pick = design.pick(progress, 1, who, np.random.default_rng(step))
        assert isinstance(pick, Pick)
        (item,) = pick.items
        value = judge[item] if is_model else truth[item] + float(rng.normal(0, 10))
        answer = protocol.observations([items[item].id], {items[item].id: min(100.0, max(0.0, value))})
        notice = AnswerNotice(str(step), who, (item,), answer)
        if is_model:
            progress.notify_model_answer(notice)
            by_model += 1
        else:
            progress.on_leased(who, (item,), None)
            progress.on_answered((item,), None)
            progress.notify_answer(notice)
        reasons.append(pick.reason)
    return by_model, reasons


def test_a_cheap_model_is_asked_first_and_a_dear_one_not_at_all():
    truth = np.linspace(10, 90, 20).tolist()
    assert run(truth, truth, model_cost=0.01)[0] == 20
    by_model, reasons = run(truth, truth, model_cost=2.0)
    assert by_model == 0
    assert all(reason.startswith("person: ") for reason in reasons)


@pytest.mark.slow
def test_a_useless_model_is_asked_less_than_a_good_one_at_a_price_in_between():
    rng = np.random.default_rng(2)
    truth = rng.uniform(10, 90, 60).tolist()
    settings = {"model_cost": 0.4, "tasks": 110, "judgments": 2}
    good, _ = run(truth, truth, **settings)
    useless, _ = run(rng.uniform(10, 90, 60).tolist(), truth, **settings)
    assert useless <= 25 < good


def test_a_design_without_prices_does_not_decide_about_models():
    design = Adaptive()
    assert design.pick_for_model(design.new_progress(Direct(), make_items(3))) is None


def test_models_that_answered_everything_get_nothing_more():
    design, items = Adaptive(model_cost=0.01), make_items(2)
    progress = design.new_progress(Direct(), items)
    for code, item in enumerate(items):
        answer = Direct().observations([item.id], {item.id: 50.0})
        progress.notify_model_answer(AnswerNotice(item.id, "m", (code,), answer))
    pick = design.pick_for_model(progress)
    assert isinstance(pick, NoTask)
    assert pick.complete


@pytest.mark.parametrize(
    ("settings", "protocol", "field"),
    [
        ({"model_cost": 0.1, "explore": 0.0}, Direct(), "design.explore"),
        ({"model_cost": 0.1, "explore": 0.0}, Pairwise(), "design.explore"),
    ],
)
def test_settings_under_which_people_might_not_be_asked_are_refused(settings, protocol, field):
    assert field in {problem.field for problem in Adaptive(**settings).problems(protocol, 10)}
