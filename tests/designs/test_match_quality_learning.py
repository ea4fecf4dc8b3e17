"""What answers teach the design match_quality."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.designs import MatchQuality
from steelyard.designs.memory import Heard
from steelyard.models.comparisons.bounded_ranking import BoundedRanking
from steelyard.models.comparisons.trueskill import TrueSkill
from steelyard.models.ratings.easl import EASL
from steelyard.observations import Comparison, Comparisons, Index, Rating
from steelyard.protocols import Direct, Pairwise, ScoredRanking
from steelyard.protocols.rated import Criterion
from tests.designs.making import make_items, take
from tests.designs.match_quality_states import heard, memory_of

COMPARED = {"bounded_ranking": BoundedRanking(), "trueskill": TrueSkill(gamma=0.1)}


# What answers teach


@pytest.mark.parametrize("steps", [1, 30])
def test_learning_task_by_task_equals_the_models_update(steps):
    rng = np.random.default_rng(steps)
    index = Index(f"item-{n}" for n in range(9))
    tasks = [tuple(rng.permutation(9)[:4].tolist()) for _ in range(steps)]
    values = rng.integers(0, 21, (steps, 4)) * 5.0
    protocol = ScoredRanking(size=4)
    progress = {model: MatchQuality(model=model).progress(protocol, make_items(9)) for model in ("easl", *COMPARED)}
    rows: list[tuple[int, int, int, int]] = []
    for number, (items, told) in enumerate(zip(tasks, values.tolist(), strict=True)):
        ids = [f"item-{code}" for code in items]
        said = protocol.observations(ids, dict(zip(ids, told, strict=True)))
        rows += [
            (index.code(s.left), index.code(s.right), s.outcome, number) for s in said if isinstance(s, Comparison)
        ]
        for each in progress.values():
            each.hear(heard(items, said, str(number)))
    easl = EASL().update(EASL().start(9), np.array(tasks, np.int32).ravel(), values.ravel() / 100)
    assert memory_of(progress["easl"]).beliefs.state.mode == pytest.approx(easl.mode)
    assert memory_of(progress["easl"]).beliefs.state.variance == pytest.approx(easl.variance)
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
        expected, found = model.update(model.start(9), pairs), memory_of(progress[name]).beliefs.state
        assert found.mode == pytest.approx(expected.mode)
        assert found.variance == pytest.approx(expected.variance)


@pytest.mark.parametrize("model", ["easl", *COMPARED])
def test_no_variance_is_below_the_bound_that_rejection_rests_on(model):
    design, protocol = MatchQuality(model=model, mode="continuous"), ScoredRanking(size=3)
    progress = design.progress(protocol, make_items(20))
    for step in range(25):
        beliefs = memory_of(progress).beliefs
        assert 0 < beliefs.least <= beliefs.state.variance.min() < np.inf
        take(design, progress, protocol, f"ann-{step % 5}", (step,))
    assert beliefs.least < beliefs.state.variance.max()


def test_easl_unlearns_what_is_set_aside_and_learns_the_revision():
    protocol = ScoredRanking(size=3)
    progress = MatchQuality().progress(protocol, make_items(5))
    state = memory_of(progress).beliefs
    ids = ["item-0", "item-1", "item-2"]
    first = heard((0, 1, 2), protocol.observations(ids, {"item-0": 10, "item-1": 30, "item-2": 70}))
    second = heard((0, 1, 2), protocol.observations(ids, {"item-0": 90, "item-1": 30, "item-2": 1}))
    progress.hear(first)
    progress.unhear(first)
    progress.hear(second)
    assert state.state.mode[:3] == pytest.approx([0.9, 0.3, 0.01])
    progress.unhear(second)
    # Exactly as at the start: what rounding left would make a mode of 0 or 1 of nothing.
    assert state.state.mode.tolist() == [0.5] * 5
    assert state.state.variance.tolist() == [EASL().start(1).variance[0]] * 5


@pytest.mark.parametrize("model", COMPARED)
def test_models_that_cannot_unlearn_keep_the_first_version_and_count_it_once(model):
    progress = MatchQuality(model=model).progress(Pairwise(), make_items(4))
    state = memory_of(progress).beliefs
    progress.hear(heard((0, 1), [Comparison("item-0", "item-1", 1)]))
    once = state.first[:2].tolist()
    progress.unhear(heard((0, 1), [Comparison("item-0", "item-1", 1)]))
    progress.hear(heard((0, 1), [Comparison("item-0", "item-1", -1)]))
    assert state.first[:2].tolist() == once
    progress.hear(heard((0, 1), [Comparison("item-0", "item-1", 1)], "another"))
    assert state.first[0] > once[0] > state.start[0]


def test_several_criteria_are_one_rating_their_mean():
    protocol = Direct(criteria={"a": Criterion(), "b": Criterion(scale=(-100, 100))})
    progress = MatchQuality().progress(protocol, make_items(2))
    progress.hear(heard((0,), protocol.observations(["item-0"], {"item-0": {"a": 20, "b": 20}})))
    beliefs = memory_of(progress).beliefs
    assert beliefs.first[0] == pytest.approx(1 + (0.2 + 0.6) / 2)
    assert beliefs.first[0] + beliefs.second[0] == pytest.approx(3)


def test_comparisons_of_other_stages_teach_and_ratings_on_an_unknown_scale_do_not():
    for model, said, moves in (
        ("trueskill", [Comparison("item-0", "item-1", 1)], True),
        ("easl", [Rating("item-0", 3.0), Rating("item-1", 1.0)], False),
    ):
        progress = MatchQuality(model=model).progress(ScoredRanking(size=3), make_items(4))
        start = np.array(memory_of(progress).beliefs.state.variance)
        progress.hear(Heard("j", "ann", (0, 1), said, own=False))
        assert (memory_of(progress).beliefs.state.variance.tolist() != start.tolist()) == moves
