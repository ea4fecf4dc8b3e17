"""What every design promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import pytest

from steelyard import registry
from steelyard.designs import Design, NoTask, Pick, Progress
from tests.designs.helpers import make_items, protocol_of, take

SETTINGS: dict[str, list[tuple[dict[str, Any], int]]] = {
    "per_item": [({"judgments": 3}, 1), ({"judgments": 2}, 4), ({"judgments": 2, "document": "document"}, 1)],
    "random_tuples": [({"judgments": 4}, 2), ({"judgments": 6, "annotators_per_task": 2}, 4), ({"judgments": 5}, 5)],
    "match_quality": [
        ({"rounds": 3}, 1),
        ({"rounds": 4, "model": "trueskill"}, 2),
        ({"rounds": 6, "model": "bounded_ranking", "when_waiting": "wait"}, 4),
        ({}, 5),
        ({"mode": "continuous"}, 5),
        ({"mode": "continuous", "rounds": 3}, 1),
    ],
    "balanced_tuples": [({}, 4), ({"factor": 1.5, "annotators_per_task": 1}, 5)],
    "all_pairs": [({}, 2), ({"annotators_per_task": 2}, 2)],
    "tournament": [({}, 2), ({"annotators_per_source": 2, "follow_up": True}, 2)],
    "adaptive": [
        ({"judgments": 6}, 2),
        ({"judgments": 6, "objective": "top", "top": 3, "max_annotators_per_task": 1}, 2),
        ({"judgments": 8, "objective": "scores"}, 4),
        ({"judgments": 4, "objective": "threshold", "threshold": 0.5}, 1),
    ],
    "propagation": [({"below": 50}, 1), ({"below": 50, "annotators_per_task": 2}, 1)],
}
CASES = [(name, settings, size) for name in registry.names("designs") for settings, size in SETTINGS[name]]
N_ITEMS = 13
N_SOURCES = {"tournament": 3, "propagation": 3}
"""Contexts of the items; the designs that compare within contexts have a suite of their own in test_contexts.py."""


@dataclass(frozen=True)
class Promise:
    """What a whole design gives each item, least and most, and all together, in judgments of single items."""

    least: int
    most: int
    total: int


def _judgments_each(design: Any, size: int) -> Promise:
    # A tuple may need a filler or two: fewer than one more tuple's worth an item on average.
    return Promise(
        design.judgments,
        design.judgments + design.capacity * 2,
        N_ITEMS * design.judgments + size * design.capacity - 1,
    )


def _so_many_tasks(design: Any, size: int) -> Promise:
    # What was never asked is least certain, so that it comes before anything is asked again as a head.
    # The first round shows every item, so it has a task more where the size does not divide their number.
    is_covering = design.mode == "rounds" and design.by == "item"
    tasks = design.rounds * (N_ITEMS // size) + (is_covering and N_ITEMS % size > 0)
    return Promise(1, tasks, tasks * size)


def _on_average(design: Any, size: int) -> Promise:
    tasks = ceil(design.judgments * N_ITEMS / size)
    return Promise(design.views_before_gain(uses_ratings=False), tasks, tasks * size)


def _every_tuple(design: Any, size: int) -> Promise:
    tuples = ceil(design.factor * N_ITEMS) * design.annotators_per_task
    each = ceil(design.factor * N_ITEMS) * size / N_ITEMS
    return Promise(int(each) * design.annotators_per_task, ceil(each) * design.annotators_per_task, tuples * size)


def _every_pair(design: Any, size: int) -> Promise:
    each = (N_ITEMS - 1) * design.annotators_per_task
    return Promise(each, each, N_ITEMS * each)


def _every_source(design: Any, size: int) -> Promise:
    # Sources of 5, 4 and 4 items have 6, 3 and 3 comparisons; with follow-ups no more than their 10, 6 and 6 pairs.
    pairs = 22 if design.follow_up else 12
    return Promise(
        design.annotators_per_source, 4 * design.annotators_per_source, 2 * pairs * design.annotators_per_source
    )


def _every_item(design: Any, size: int) -> Promise:
    return Promise(design.annotators_per_task, design.annotators_per_task, N_ITEMS * design.annotators_per_task)


PROMISES: dict[str, Callable[[Any, int], Promise]] = {
    "per_item": _judgments_each,
    "random_tuples": _judgments_each,
    "match_quality": _so_many_tasks,
    "adaptive": _on_average,
    "balanced_tuples": _every_tuple,
    "all_pairs": _every_pair,
    "tournament": _every_source,
    "propagation": _every_item,
}


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> tuple[Design, int]:
    name, settings, size = request.param
    return registry.create("designs", name, settings), size


def promise(design: Design, size: int) -> Promise:
    return PROMISES[design.name](design, size)


def run(
    design: Design,
    size: int,
    *,
    people: int = 9,
    seed: int = 0,
    lose: float = 0.0,
    before_step: Callable[[int, Progress, list[tuple[str, tuple[int, ...]]]], None] | None = None,
) -> tuple[Progress, list[tuple[str, tuple[int, ...]]]]:
    """Work through a design; some tasks are given up. Return the progress and who was shown what.

    Who has to wait asks again when somebody else was given something.
    """
    progress = design.new_progress(protocol_of(size), make_items(N_ITEMS, sources=N_SOURCES.get(design.name, 0)))
    rng = np.random.default_rng(seed)
    shown_tasks: list[tuple[str, tuple[int, ...]]] = []
    active = [f"ann-{n}" for n in range(people)]
    waiting: list[str] = []
    steps = 0
    while active:
        if before_step is not None:
            before_step(steps, progress, shown_tasks)
        annotator = active[int(rng.integers(len(active)))]
        pick = take(design, progress, protocol_of(size), annotator, (seed, steps), answer=not rng.random() < lose)
        steps += 1
        if isinstance(pick, NoTask):
            active.remove(annotator)
            waiting += [annotator] if pick.reason_code == "waiting" else []
            continue
        active, waiting = active + waiting, []
        shown_tasks.append((annotator, pick.items))
        if progress.tasks_leased:
            progress.on_released(annotator, pick.items, pick.slot)
    return progress, shown_tasks


@pytest.mark.slow
def test_a_task_shows_different_items_and_never_more_than_it_should(case):
    design, size = case
    _, shown_tasks = run(design, size)
    for _, items in shown_tasks:
        assert len(items) == len(set(items)) <= size


def test_nobody_sees_the_same_task_twice(case):
    design, size = case
    _, shown_tasks = run(design, size, lose=0.2)
    tasks = [(annotator, tuple(sorted(items))) for annotator, items in shown_tasks]
    assert len(tasks) == len(set(tasks))


def test_every_item_gets_its_judgments_when_there_are_people_enough(case):
    design, size = case
    progress, _ = run(design, size, people=40)
    assert progress.answers.min() >= promise(design, size).least
    goal = design.goal(progress, size)
    assert goal.done == goal.total


def test_it_says_when_it_is_complete(case):
    design, size = case
    progress, _ = run(design, size, people=40)
    nothing = design.pick(progress, size, "newcomer", np.random.default_rng(0))
    assert isinstance(nothing, NoTask)
    assert nothing.complete
    assert nothing.reason


def test_it_says_why_there_is_nothing_while_tasks_are_out(case):
    design, size = case
    progress = design.new_progress(protocol_of(size), make_items(N_ITEMS, sources=N_SOURCES.get(design.name, 0)))
    for number in range(10_000):
        pick = take(design, progress, protocol_of(size), f"ann-{number}", (1, number), answer=False)
        if isinstance(pick, NoTask):
            break
    assert isinstance(pick, NoTask)
    assert not pick.complete
    assert "other annotators" in pick.reason


def test_what_is_given_up_is_asked_again(case):
    design, size = case
    progress, _ = run(design, size, people=60, lose=0.3)
    assert progress.answers.min() >= promise(design, size).least
    goal = design.goal(progress, size)
    assert goal.done == goal.total


def test_nothing_is_asked_beyond_the_plan(case):
    design, size = case
    progress, _ = run(design, size, people=40)
    promised = promise(design, size)
    assert progress.answers.sum() <= promised.total
    assert progress.answers.max() <= promised.most


def test_the_same_state_and_seed_give_the_same_task(case):
    design, size = case
    runs = [run(design, size, seed=5, lose=0.2)[1] for _ in range(2)]
    assert runs[0] == runs[1]
    assert run(design, size, seed=6, lose=0.2)[1] != runs[0]


def test_items_added_later_are_asked_too(case):
    design, size = case
    progress, _ = run(design, size, people=40)
    progress.add_items(make_items(3, first=N_ITEMS, sources=N_SOURCES.get(design.name, 0)))
    item_counts: Counter[int] = Counter()
    for number in range(200):
        for step in range(200):
            pick = take(design, progress, protocol_of(size), f"new-{number}", (number, step))
            if isinstance(pick, NoTask):
                break
            item_counts.update(pick.items)
        if isinstance(pick, NoTask) and pick.complete:
            break
    assert min(item_counts[item] for item in range(N_ITEMS, N_ITEMS + 3)) >= promise(design, size).least


@pytest.mark.slow
def test_the_order_shown_is_random(case):
    design, size = case
    shown_tasks = [items for seed in range(10) for _, items in run(design, size, people=40, seed=seed)[1]]
    places = Counter(items.index(max(items)) for items in shown_tasks if len(items) == size)
    expected = places.total() / size
    assert all(abs(places[place] - expected) < 5 * np.sqrt(expected) for place in range(size))


@pytest.mark.slow
def test_propensities_are_those_of_the_draw(case):
    """Draw the next task many times over: each set comes up as often as its recorded propensity says.

    A round's plan is drawn once, from the generator, and what follows given it.
    """
    design, size = case
    # Two sources: who begins one goes on with it, so that there is always something for ann.
    items = make_items(7, sources=2 if design.name in N_SOURCES else 0)
    progress, rng = design.new_progress(protocol_of(size), items), np.random.default_rng(3)
    for step, annotator in enumerate(["ann", "bob"]):
        assert isinstance(take(design, progress, protocol_of(size), annotator, (3, step)), Pick)
    draws = 3000
    picks = [design.pick(progress, size, "ann", rng) for _ in range(draws)]
    counts = Counter(tuple(sorted(pick.items)) for pick in picks if isinstance(pick, Pick))
    propensities = {tuple(sorted(pick.items)): pick.propensity for pick in picks if isinstance(pick, Pick)}
    assert propensities
    for items, propensity in propensities.items():
        assert propensity is not None
        assert counts[items] == pytest.approx(draws * propensity, abs=5 * np.sqrt(draws * propensity) + 1)


ASIDE = (3, 7)
"""Items that are set aside, one after the other."""


def test_items_that_are_set_aside_are_not_asked_and_the_others_are_completed(case):
    design, size = case
    n_shown: dict[int, int] = {}

    def before_step(step: int, progress: Progress, shown_tasks: list[tuple[str, tuple[int, ...]]]) -> None:
        if step in {0, 8}:
            item = ASIDE[step // 8]
            progress.on_item_set_aside(item)
            n_shown[item] = len(shown_tasks)

    progress, shown_tasks = run(design, size, people=30, lose=0.2, before_step=before_step)
    for item, n_tasks in n_shown.items():
        assert all(item not in items for _, items in shown_tasks[n_tasks:])
    goal = design.goal(progress, size)
    assert goal.done == goal.total
    if design.name != "tournament":  # Tournaments that were abandoned do not count.
        assert goal.done == progress.answers.sum() / (1 if design.name == "per_item" else size)
    nothing = design.pick(progress, size, "newcomer", np.random.default_rng(0))
    assert isinstance(nothing, NoTask)
    assert nothing.complete
    others = [item for item in range(N_ITEMS) if item not in ASIDE]
    # Planned tuples with an item that was set aside are not replaced.
    least = 1 if design.name in {"balanced_tuples", "all_pairs", "random_tuples"} else promise(design, size).least
    assert progress.answers[others].min() >= least


def test_items_that_are_asked_again_get_their_judgments(case):
    design, size = case

    def before_step(step: int, progress: Progress, shown_tasks: list[tuple[str, tuple[int, ...]]]) -> None:
        for number, item in enumerate(ASIDE):
            if step == 3 * number:
                progress.on_item_set_aside(item)
            if step == 8 + number:
                progress.on_item_restored(item)

    progress, _ = run(design, size, people=40, lose=0.2, before_step=before_step)
    assert progress.answers.min() >= promise(design, size).least
    goal = design.goal(progress, size)
    assert goal.done == goal.total


def test_a_study_of_which_every_item_is_set_aside_is_complete(case):
    design, size = case
    progress = design.new_progress(protocol_of(size), make_items(N_ITEMS, sources=N_SOURCES.get(design.name, 0)))
    take(design, progress, protocol_of(size), "ann", (0, 0))
    for item in range(N_ITEMS):
        progress.on_item_set_aside(item)
    nothing = design.pick(progress, size, "bea", np.random.default_rng(0))
    assert isinstance(nothing, NoTask)
    assert nothing.complete
    goal = design.goal(progress, size)
    assert goal.done == goal.total
