"""What every design promises."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from steelyard import registry
from steelyard.designs import Design, Nothing, Pick
from tests.designs.making import make_items, protocol_of

SETTINGS: dict[str, list[tuple[dict[str, Any], int]]] = {
    "redundant": [({"judgments": 3}, 1), ({"judgments": 2}, 4)],
    "random_tuples": [({"judgments": 4}, 2), ({"judgments": 6, "annotators": 2}, 4), ({"judgments": 5}, 5)],
}
CASES = [(name, settings, size) for name in registry.names("designs") for settings, size in SETTINGS[name]]
N_ITEMS = 13


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> tuple[Design, int]:
    name, settings, size = request.param
    return registry.create("designs", name, settings), size


def run(design: Design, size: int, *, people: int = 9, seed: int = 0, lose: float = 0.0):
    """Work through a design; some tasks are given up. Return the progress and who was shown what."""
    progress = design.progress(protocol_of(size), make_items(N_ITEMS))
    rng = np.random.default_rng(seed)
    shown: list[tuple[str, tuple[int, ...]]] = []
    active = [f"ann-{n}" for n in range(people)]
    steps = 0
    while active:
        annotator = active[int(rng.integers(len(active)))]
        pick = design.pick(progress, size, annotator, np.random.default_rng([seed, steps]))
        steps += 1
        if isinstance(pick, Nothing):
            active.remove(annotator)
            continue
        progress.picked(annotator, pick.items, pick.slot)
        shown.append((annotator, pick.items))
        if rng.random() < lose:
            progress.released(annotator, pick.items, pick.slot)
        else:
            progress.answer(pick.items, pick.slot)
    return progress, shown


def test_a_task_shows_different_items_and_never_more_than_it_should(case):
    design, size = case
    _, shown = run(design, size)
    for _, items in shown:
        assert len(items) == len(set(items)) <= size


def test_nobody_sees_the_same_task_twice(case):
    design, size = case
    _, shown = run(design, size, lose=0.2)
    tasks = [(annotator, tuple(sorted(items))) for annotator, items in shown]
    assert len(tasks) == len(set(tasks))


def test_every_item_gets_its_judgments_when_there_are_people_enough(case):
    design, size = case
    progress, _ = run(design, size, people=40)
    assert progress.answered.min() >= design.settings()["judgments"]
    goal = design.goal(progress, size)
    assert goal.done == goal.total


def test_it_says_when_it_is_complete(case):
    design, size = case
    progress, _ = run(design, size, people=40)
    nothing = design.pick(progress, size, "newcomer", np.random.default_rng(0))
    assert isinstance(nothing, Nothing)
    assert nothing.complete
    assert nothing.reason


def test_it_says_why_there_is_nothing_while_tasks_are_out(case):
    design, size = case
    progress = design.progress(protocol_of(size), make_items(N_ITEMS))
    rng = np.random.default_rng(1)
    for number in range(10_000):
        pick = design.pick(progress, size, f"ann-{number}", rng)
        if isinstance(pick, Nothing):
            break
        progress.picked(f"ann-{number}", pick.items, pick.slot)
    assert isinstance(pick, Nothing)
    assert not pick.complete
    assert "other annotators" in pick.reason


def test_what_is_given_up_is_asked_again(case):
    design, size = case
    progress, _ = run(design, size, people=60, lose=0.3)
    assert progress.answered.min() >= design.settings()["judgments"]


def test_nothing_is_asked_beyond_the_plan(case):
    design, size = case
    progress, _ = run(design, size, people=40)
    judgments = design.settings()["judgments"]
    # A tuple may need a filler or two: fewer than one more tuple's worth an item on average.
    assert progress.answered.sum() < N_ITEMS * judgments + size * design.capacity
    assert progress.answered.max() <= judgments + design.capacity * 2


def test_the_same_state_and_seed_give_the_same_task(case):
    design, size = case
    runs = [run(design, size, seed=5, lose=0.2)[1] for _ in range(2)]
    assert runs[0] == runs[1]
    assert run(design, size, seed=6, lose=0.2)[1] != runs[0]


def test_items_added_later_are_asked_too(case):
    design, size = case
    progress, _ = run(design, size, people=40)
    progress.add_items(make_items(3, first=N_ITEMS))
    seen: Counter[int] = Counter()
    for number in range(200):
        pick = design.pick(progress, size, f"new-{number}", np.random.default_rng(number))
        if isinstance(pick, Nothing):
            break
        progress.picked(f"new-{number}", pick.items, pick.slot)
        progress.answer(pick.items, pick.slot)
        seen.update(pick.items)
    assert min(seen[item] for item in range(N_ITEMS, N_ITEMS + 3)) >= design.settings()["judgments"]


def test_the_order_shown_is_random(case):
    design, size = case
    shown = [items for seed in range(10) for _, items in run(design, size, people=40, seed=seed)[1]]
    places = Counter(items.index(max(items)) for items in shown if len(items) == size)
    expected = places.total() / size
    assert all(abs(places[place] - expected) < 5 * np.sqrt(expected) for place in range(size))


def test_propensities_are_those_of_the_draw(case):
    """Draw the next task many times over: each set comes up as often as its recorded propensity says."""
    design, size = case
    progress, rng = design.progress(protocol_of(size), make_items(7)), np.random.default_rng(3)
    for annotator in ("ann", "bob", "ann", "cleo"):
        pick = design.pick(progress, size, annotator, rng)
        assert isinstance(pick, Pick)
        progress.picked(annotator, pick.items, pick.slot)
    draws = 3000
    picks = [design.pick(progress, size, "ann", rng) for _ in range(draws)]
    counts = Counter(tuple(sorted(pick.items)) for pick in picks if isinstance(pick, Pick))
    stated = {tuple(sorted(pick.items)): pick.propensity for pick in picks if isinstance(pick, Pick)}
    for items, propensity in stated.items():
        assert propensity is not None
        assert counts[items] == pytest.approx(draws * propensity, abs=5 * np.sqrt(draws * propensity) + 1)
