"""What answers teach the design match_quality."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.designs import MatchQuality
from steelyard.designs.match_quality.online_models import AskedBeta
from steelyard.designs.state import AnswerNotice
from steelyard.models.comparisons.bounded_ranking import BoundedRanking
from steelyard.models.comparisons.trueskill import TrueSkill
from steelyard.models.ratings.easl import EASL
from steelyard.observations import Comparison, Comparisons, Index, Rating
from steelyard.protocols import Direct, Pairwise, ScoredRanking
from steelyard.protocols.rated import Criterion
from steelyard.protocols.unjudged import observe
from tests.designs.helpers import make_items, take
from tests.designs.match_quality_states import heard, state_of

COMPARED = {"bounded_ranking": BoundedRanking(), "trueskill": TrueSkill(gamma=0.1)}


# What answers teach


@pytest.mark.parametrize("steps", [1, 30])
def test_learning_task_by_task_equals_the_models_update(steps):
    rng = np.random.default_rng(steps)
    index = Index(f"item-{n}" for n in range(9))
    tasks = [tuple(rng.permutation(9)[:4].tolist()) for _ in range(steps)]
    values = rng.integers(0, 21, (steps, 4)) * 5.0
    protocol = ScoredRanking(size=4)
    progress = {model: MatchQuality(model=model).new_progress(protocol, make_items(9)) for model in ("easl", *COMPARED)}
    rows: list[tuple[int, int, int, int]] = []
    for number, (items, answer) in enumerate(zip(tasks, values.tolist(), strict=True)):
        ids = [f"item-{code}" for code in items]
        notices = protocol.observations(ids, dict(zip(ids, answer, strict=True)))
        rows += [
            (index.code(s.left), index.code(s.right), s.outcome, number) for s in notices if isinstance(s, Comparison)
        ]
        for each in progress.values():
            each.notify_answer(heard(items, notices, str(number)))
    easl = EASL().update(EASL().start(9), np.array(tasks, np.int32).ravel(), values.ravel() / 100)
    assert state_of(progress["easl"]).model.state.mode == pytest.approx(easl.mode)
    assert state_of(progress["easl"]).model.state.variance == pytest.approx(easl.variance)
    left, right, outcome, task = np.array(rows, np.int32).T
    pairs = Comparisons(
        items=index,
        left=left,
        right=right,
        outcome=outcome.astype(np.int8),
        tasks=Index(map(str, range(steps))),
        task=task,
    )
    for name, model in COMPARED.items():
        expected, result = model.update(model.start(9), pairs), state_of(progress[name]).model.state
        assert result.mode == pytest.approx(expected.mode)
        assert result.variance == pytest.approx(expected.variance)


def test_an_item_that_cannot_be_judged_is_left_out_counted_and_asked_less():
    protocol = ScoredRanking(size=3)
    progress = MatchQuality().new_progress(protocol, make_items(9))
    answer = {"item-0": 80.0, "item-1": {"cannot_judge": ""}, "item-2": 20.0}
    observations = observe(protocol, list(answer), answer)
    for number in range(2):
        progress.notify_answer(heard((0, 1, 2), observations, str(number)))
    state = state_of(progress).model.state
    assert isinstance(state, AskedBeta)
    assert state.alpha[:3] == pytest.approx([2.6, 1.0, 1.4])
    assert state.beta[:3] == pytest.approx([1.4, 1.0, 2.6])
    assert state.unjudged.tolist() == [0, 2] + [0] * 7
    assert state.mode[1] == 0.5
    # αβ / ((α + β + m)² (α + β + m + 1)), by hand for α = β = 1 and m = 2; less than items that were never shown.
    assert state.variance[1] == pytest.approx(1 / (16 * 5))
    assert state.variance[1] < state.variance[3] == pytest.approx(1 / 12)
    progress.notify_retraction(heard((0, 1, 2), observations, "0"))
    assert state_of(progress).model.state.unjudged[1] == 1


@pytest.mark.parametrize("model", ["easl", *COMPARED])
def test_no_variance_is_below_the_bound_that_rejection_rests_on(model):
    design, protocol = MatchQuality(model=model, mode="continuous"), ScoredRanking(size=3)
    progress = design.new_progress(protocol, make_items(20))
    for step in range(25):
        online_model = state_of(progress).model
        assert 0 < online_model.least_variance <= online_model.state.variance.min() < np.inf
        take(design, progress, protocol, f"ann-{step % 5}", (step,))
    assert online_model.least_variance < online_model.state.variance.max()


def test_easl_unlearns_what_is_set_aside_and_learns_the_revision():
    protocol = ScoredRanking(size=3)
    progress = MatchQuality().new_progress(protocol, make_items(5))
    state = state_of(progress).model
    ids = ["item-0", "item-1", "item-2"]
    first = heard((0, 1, 2), protocol.observations(ids, {"item-0": 10, "item-1": 30, "item-2": 70}))
    second = heard((0, 1, 2), protocol.observations(ids, {"item-0": 90, "item-1": 30, "item-2": 1}))
    progress.notify_answer(first)
    progress.notify_retraction(first)
    progress.notify_answer(second)
    assert state.state.mode[:3] == pytest.approx([0.9, 0.3, 0.01])
    progress.notify_retraction(second)
    # Exactly as at the start: what rounding left would make a mode of 0 or 1 of nothing.
    assert state.state.mode.tolist() == [0.5] * 5
    assert state.state.variance.tolist() == [EASL().start(1).variance[0]] * 5


@pytest.mark.parametrize("model", COMPARED)
def test_models_that_cannot_unlearn_keep_the_first_version_and_count_it_once(model):
    progress = MatchQuality(model=model).new_progress(Pairwise(), make_items(4))
    state = state_of(progress).model
    progress.notify_answer(heard((0, 1), [Comparison("item-0", "item-1", 1)]))
    once = state.first[:2].tolist()
    progress.notify_retraction(heard((0, 1), [Comparison("item-0", "item-1", 1)]))
    progress.notify_answer(heard((0, 1), [Comparison("item-0", "item-1", -1)]))
    assert state.first[:2].tolist() == once
    progress.notify_answer(heard((0, 1), [Comparison("item-0", "item-1", 1)], "another"))
    assert state.first[0] > once[0] > state.start[0]


def test_several_criteria_are_one_rating_their_mean():
    protocol = Direct(criteria={"a": Criterion(), "b": Criterion(scale=(-100, 100))})
    progress = MatchQuality().new_progress(protocol, make_items(2))
    progress.notify_answer(heard((0,), protocol.observations(["item-0"], {"item-0": {"a": 20, "b": 20}})))
    online_model = state_of(progress).model
    assert online_model.first[0] == pytest.approx(1 + (0.2 + 0.6) / 2)
    assert online_model.first[0] + online_model.second[0] == pytest.approx(3)


def test_comparisons_of_other_stages_teach_and_ratings_on_an_unknown_scale_do_not():
    for model, notices, moves in (
        ("trueskill", [Comparison("item-0", "item-1", 1)], True),
        ("easl", [Rating("item-0", 3.0), Rating("item-1", 1.0)], False),
    ):
        progress = MatchQuality(model=model).new_progress(ScoredRanking(size=3), make_items(4))
        start = np.array(state_of(progress).model.state.variance)
        progress.notify_answer(AnswerNotice("j", "ann", (0, 1), notices, own_stage=False))
        assert (state_of(progress).model.state.variance.tolist() != start.tolist()) == moves
