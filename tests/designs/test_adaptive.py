"""The adaptive design: which tasks it picks, and what it learns."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from steelyard.designs import Adaptive, NoTask, Pick, Progress
from steelyard.designs.adaptive.state import AdaptiveState
from steelyard.designs.state import AnswerNotice
from steelyard.observations import Comparison
from steelyard.protocols import BestWorst, Choice, Direct, Pairwise, Protocol, ScoredRanking
from steelyard.records import Item
from steelyard.simulate import answer_for
from tests.designs.helpers import make_items

PAIRS = Pairwise(ties=False)


def state_of(progress: Progress) -> AdaptiveState:
    assert isinstance(progress.design_state, AdaptiveState)
    return progress.design_state


def pick(design: Adaptive, progress: Progress, annotator: str, step: int, size: int = 2) -> Pick:
    """Pick a task that stays out."""
    picked_task = design.pick(progress, size, annotator, np.random.default_rng(step))
    assert isinstance(picked_task, Pick), picked_task
    progress.on_leased(annotator, picked_task.items, picked_task.slot, picked_task.round, np.random.default_rng(step))
    return picked_task


def answer(
    progress: Progress,
    protocol: Protocol,
    annotator: str,
    items: tuple[int, ...],
    value: Any,
    name: str,
) -> AnswerNotice:
    ids = [f"item-{code}" for code in items]
    notices = protocol.observations(ids, answer_for(protocol, dict(zip(ids, value, strict=True)), 0.0))
    notice = AnswerNotice(name, annotator, items, notices)
    progress.on_answered(items, None)
    progress.notify_answer(notice)
    return notice


def run(
    design: Adaptive,
    n: int,
    tasks: int,
    *,
    protocol: Protocol = PAIRS,
    noise: dict[str, float] | None = None,
    seed: int = 0,
    items: list[Item] | None = None,
) -> tuple[Progress, list[tuple[int, ...]], list[AnswerNotice]]:
    """Work through some tasks; an item's value is its code on a scale of unit spread, seen with everyone's noise."""
    people = noise or {f"ann-{number}": 0.3 for number in range(10)}
    rng = np.random.default_rng(seed)
    value = (np.arange(n) - (n - 1) / 2) / n * np.sqrt(12)
    low, high = -6, 6
    progress = design.new_progress(protocol, items or make_items(n))
    shown_sets, notices = [], []
    for step in range(tasks):
        annotator = list(people)[step % len(people)]
        picked_task = pick(design, progress, annotator, step, protocol.task_size)
        percepts = value[list(picked_task.items)] + people[annotator] * rng.normal(size=len(picked_task.items))
        notices.append(
            answer(progress, protocol, annotator, picked_task.items, (percepts - low) / (high - low), str(step))
        )
        shown_sets.append(picked_task.items)
    return progress, shown_sets, notices


@pytest.mark.slow
def test_fifty_people_who_ask_at_once_get_fifty_different_pairs_and_different_items():
    design = Adaptive(explore=0.0)
    progress, _, _ = run(design, 200, 300)
    picks = [pick(design, progress, f"new-{number}", 1000 + number) for number in range(50)]
    assert len({tuple(sorted(each.items)) for each in picks}) == 50
    # A hundred places for two hundred items: few items are with two people.
    assert len({item for each in picks for item in each.items}) >= 80


def test_many_people_and_few_items_still_get_different_pairs():
    design = Adaptive(explore=0.0, judgments=100)
    progress, _, _ = run(design, 12, 20)
    picks = [pick(design, progress, f"new-{number}", 1000 + number) for number in range(60)]
    assert len({tuple(sorted(each.items)) for each in picks}) == 60


def test_what_is_out_counts_until_it_comes_back():
    design = Adaptive(explore=0.0)
    progress, _, _ = run(design, 30, 60)
    state = state_of(progress)
    before = state.variance
    picked_task = pick(design, progress, "late", 99)
    assert (state.variance[list(picked_task.items)] < before[list(picked_task.items)]).all()
    progress.on_released("late", picked_task.items, picked_task.slot)
    progress.allow_again("late", picked_task.items)
    assert state.variance == pytest.approx(before)
    again = design.pick(progress, 2, "late", np.random.default_rng(99))
    assert isinstance(again, Pick)
    assert set(again.items) == set(picked_task.items)


def test_every_item_is_looked_at_before_any_is_looked_at_for_its_gain():
    design = Adaptive(explore=0.0, objective="top", top=1)
    _, shown_sets, _ = run(design, 40, 40)
    assert {item for items in shown_sets for item in items} == set(range(40))
    _, shown_sets, _ = run(Adaptive(explore=0.0, initial_views=3, judgments=20), 40, 120)
    assert min(Counter(item for items in shown_sets for item in items).values()) >= 3


def test_an_answer_taken_back_leaves_no_trace():
    design = Adaptive(explore=0.0)
    # One more answer is no occasion to go over all of them.
    progress, _, notices = run(design, 20, 16)
    state = state_of(progress)
    mean, variance = state.mean, state.variance
    notice = AnswerNotice("more", "ann-0", (0, 19), [Comparison("item-0", "item-19", 1)])
    progress.notify_answer(notice)
    assert state.mean != pytest.approx(mean)
    progress.notify_retraction(notice)
    assert state.mean == pytest.approx(mean)
    assert state.variance == pytest.approx(variance)
    for each in notices:
        progress.notify_retraction(each)
    assert state.mean == pytest.approx(np.zeros(20), abs=1e-9)
    assert state.variance == pytest.approx(np.ones(20))


@pytest.mark.slow
def test_it_learns_who_is_noisy_and_asks_them_about_pairs_further_apart():
    noise = {"precise": 0.05, "good": 0.2, "noisy": 2.0}
    design = Adaptive(explore=0.0, judgments=60)
    distances: dict[str, list[float]] = {"precise": [], "noisy": []}
    for seed in range(2):
        progress, _, _ = run(design, 60, 450, noise=noise, seed=seed)
        state = state_of(progress)
        assert state.noise("precise") < state.noise("good") < state.noise("noisy")
        for annotator, result in distances.items():
            # What each would get now, and the next five if that were out.
            for step in range(6):
                picked_task = pick(design, progress, annotator, 5000 + step)
                result.append(abs(float(np.diff(state.mean[list(picked_task.items)])[0])))
    assert np.mean(distances["noisy"]) > 1.5 * np.mean(distances["precise"])


@pytest.mark.slow
def test_it_asks_about_what_the_study_is_for():
    """Of 60 items: the top six need the items near sixth place; a ranking needs all."""

    def near_the_cut(design: Adaptive) -> float:
        _, shown_sets, _ = run(design, 60, 250)
        late = Counter(item for items in shown_sets[80:] for item in items)
        return sum(late[item] for item in range(48, 60)) / late.total()

    even = 12 / 60
    assert near_the_cut(Adaptive(explore=0.0, judgments=20)) == pytest.approx(even, abs=0.1)
    assert near_the_cut(Adaptive(explore=0.0, judgments=20, objective="top", top=6)) > 2 * even
    assert near_the_cut(Adaptive(explore=0.0, judgments=20, objective="threshold", threshold=0.9)) > 2 * even


@pytest.mark.slow
def test_pairs_chosen_by_gain_place_the_items_better_than_random_ones():
    def error(design: Adaptive) -> float:
        result = []
        for seed in range(2):
            progress, _, _ = run(design, 60, 300, seed=seed)
            ranks = np.argsort(np.argsort(state_of(progress).mean))
            result.append(np.mean((ranks - np.arange(60)) ** 2))
        return float(np.mean(result))

    assert error(Adaptive(explore=0.0)) < 0.75 * error(Adaptive(explore=1.0))


def test_nobody_is_asked_about_a_set_that_enough_have_seen():
    design = Adaptive(judgments=100, max_annotators_per_task=2)
    progress = design.new_progress(PAIRS, make_items(5))
    shown_sets: Counter[tuple[int, ...]] = Counter()
    for number in range(30):
        picked_task = design.pick(progress, 2, f"ann-{number}", np.random.default_rng(number))
        if isinstance(picked_task, NoTask):
            assert picked_task.complete
            break
        progress.on_leased(f"ann-{number}", picked_task.items, picked_task.slot)
        answer(progress, PAIRS, f"ann-{number}", picked_task.items, picked_task.items, str(number))
        shown_sets[tuple(sorted(picked_task.items))] += 1
    assert shown_sets == dict.fromkeys(combinations(range(5), 2), 2)


def test_nobody_meets_an_item_twice_where_that_is_asked_for():
    design = Adaptive(same_item_again=False, judgments=50)
    progress = design.new_progress(PAIRS, make_items(9))
    items_met: list[int] = []
    for step in range(4):
        items_met += pick(design, progress, "ann", step).items
    assert len(set(items_met)) == 8
    nothing = design.pick(progress, 2, "ann", np.random.default_rng(9))
    assert isinstance(nothing, NoTask)
    assert not nothing.complete


def _labelled(n: int) -> list[Item]:
    return [Item(f"item-{c}", "", group=f"system {c % 4}", context=f"source {c // 4}") for c in range(n)]


def test_every_item_of_every_context_is_shown_before_the_gain_alone_decides():
    design = Adaptive(explore=0.0, judgments=3)
    _, shown_sets, _ = run(design, 240, 200, items=_labelled(240))
    assert {item for pair in shown_sets for item in pair} == set(range(240))


@pytest.mark.parametrize("explore", [0.0, 1.0])
def test_tasks_respect_the_setting_together(explore):
    items = _labelled(240)
    same = Adaptive(explore=explore, judgments=3)
    _, shown_sets, _ = run(same, 240, 200, items=items)
    assert all(a // 4 == b // 4 for a, b in shown_sets)
    other = Adaptive(across_contexts=True, different_groups=True, explore=explore)
    _, shown_sets, _ = run(other, 240, 100, items=items)
    assert all(a % 4 != b % 4 for a, b in shown_sets)


def test_groups_are_compared_by_their_items_for_one_source():
    design = Adaptive(by="group", judgments=40)
    items = _labelled(80)
    progress, shown_sets, _ = run(design, 80, 60, items=items, noise={f"ann-{n}": 0.0 for n in range(10)})
    assert all(a // 4 == b // 4 and a % 4 != b % 4 for a, b in shown_sets)
    assert state_of(progress).targets.count == 4
    # Within a source, the higher code is the higher value: system 3 is best.
    assert np.argsort(state_of(progress).mean).tolist() == [0, 1, 2, 3]
    sources = Counter(a // 4 for a, _ in shown_sets)
    assert max(sources.values()) - min(sources.values()) <= 1


@pytest.mark.parametrize("protocol", [BestWorst(size=4), ScoredRanking(size=5)], ids=lambda protocol: protocol.name)
def test_larger_tasks_place_the_items_too(protocol):
    progress, shown_sets, _ = run(Adaptive(judgments=12), 30, 70, protocol=protocol)
    assert np.corrcoef(state_of(progress).mean, np.arange(30))[0, 1] > 0.95
    assert all(len(set(items)) == protocol.task_size for items in shown_sets)


def test_ratings_are_learnt_from_and_asked_for_where_they_help():
    """With sliders one at a time, the items near the threshold are asked about more; nobody meets an item twice."""
    design = Adaptive(objective="threshold", threshold=0.8, explore=0.0, judgments=8)
    people = {f"ann-{number}": 0.5 for number in range(20)}
    progress, shown_sets, notices = run(design, 40, 300, protocol=Direct(), noise=people)
    assert np.corrcoef(state_of(progress).mean, np.arange(40))[0, 1] > 0.8
    late = Counter(item for items in shown_sets[80:] for item in items)
    near, far = range(26, 38), range(12)
    assert sum(late[item] for item in near) > 2 * sum(late[item] for item in far)
    items_met = Counter((notice.annotator, notice.items) for notice in notices)
    assert max(items_met.values()) == 1
    for each in notices:
        progress.notify_retraction(each)
    # Nothing of the answers is left but where they say that items lie in general.
    assert np.ptp(state_of(progress).mean) == pytest.approx(0.0, abs=1e-9)


def test_items_about_which_people_disagree_are_rated_more_often():
    """Ten items have one answer each from everybody; about ten, answers are all over the scale."""
    design = Adaptive(objective="scores", explore=0.0, judgments=8)
    protocol = Direct()
    items = make_items(20)
    progress = design.new_progress(protocol, items)
    rng = np.random.default_rng(0)
    item_counts: Counter[int] = Counter()
    for step in range(160):
        who = f"ann-{step % 30}"
        result = pick(design, progress, who, step, 1)
        (item,) = result.items
        item_counts[item] += 1
        progress.on_answered(result.items, None)
        value = float(rng.integers(0, 101)) if item >= 10 else 10.0
        notices = protocol.observations([items[item].id], {items[item].id: value})
        progress.notify_answer(AnswerNotice(str(step), who, result.items, notices))
    assert sum(item_counts[item] for item in range(10, 20)) > 1.5 * sum(item_counts[item] for item in range(10))
    assert min(item_counts.values()) >= 2


def test_the_last_page_may_be_short():
    design = Adaptive(judgments=40, explore=0.0)
    progress = design.new_progress(Direct(items_per_page=4), make_items(10))
    sizes = [len(pick(design, progress, "ann", step, 4).items) for step in range(3)]
    assert sizes == [4, 4, 2]
    nothing = design.pick(progress, 4, "ann", np.random.default_rng(9))
    assert isinstance(nothing, NoTask)


@pytest.mark.full
@pytest.mark.slow
def test_a_whole_batch_is_as_good_as_picking_one_by_one():
    design = Adaptive(explore=0.0)
    progress, _, _ = run(design, 100, 200)
    batch = design.batch(progress, 50)
    assert len(batch) == 50
    assert len({item for task in batch for item in task}) >= 96
    one_by_one = [pick(design, progress, f"new-{step}", 900 + step).weight for step in range(10)]
    assert min(one_by_one) > 0
    mean = state_of(progress).mean
    # Close pairs: the nearest of a random hundred are no closer on average than these, up to a few.
    distance = np.abs(np.diff(mean[np.array(batch)], axis=1)).mean()
    apart = np.abs(np.subtract.outer(mean, mean)).mean()
    assert distance < 0.4 * apart


@pytest.mark.parametrize(
    ("settings", "protocol", "field"),
    [
        ({}, Choice(labels=("a", "b")), "design.name"),
        ({"objective": "top"}, PAIRS, "design.top"),
        ({"top": 3}, PAIRS, "design.top"),
        ({"objective": "top", "top": 20}, PAIRS, "design.top"),
        ({"objective": "threshold"}, PAIRS, "design.threshold"),
        ({"by": "group", "same_item_again": False}, PAIRS, "design.by"),
        ({}, ScoredRanking(size=21), "protocol.size"),
    ],
)
def test_what_does_not_fit_is_named(settings: dict[str, Any], protocol: Protocol, field: str):
    (problem,) = Adaptive(**settings).problems(protocol, 20)
    assert problem.field == field


def test_what_fits_is_not_named():
    for design in (
        Adaptive(),
        Adaptive(objective="top", top=3),
        Adaptive(objective="threshold", threshold=0.5),
    ):
        assert design.problems(PAIRS, 20) == []
