"""information_gain: whom it asks what, and what it learns."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from steelyard.designs import InformationGain, Nothing, Pick, Progress
from steelyard.designs.information_gain_memory import GainMemory
from steelyard.designs.memory import Heard
from steelyard.observations import Comparison
from steelyard.protocols import BestWorst, Choice, Direct, Pairwise, Protocol, ScoredRanking
from steelyard.records import Item
from steelyard.simulate import answer_for
from tests.designs.making import make_items

PAIRS = Pairwise(ties=False)


def memory_of(progress: Progress) -> GainMemory:
    assert isinstance(progress.memory, GainMemory)
    return progress.memory


def pick(design: InformationGain, progress: Progress, annotator: str, step: int, size: int = 2) -> Pick:
    """Pick a task that stays out."""
    picked = design.pick(progress, size, annotator, np.random.default_rng(step))
    assert isinstance(picked, Pick), picked
    progress.picked(annotator, picked.items, picked.slot, picked.round, np.random.default_rng(step))
    return picked


def answer(
    progress: Progress,
    protocol: Protocol,
    annotator: str,
    items: tuple[int, ...],
    value: Any,
    name: str,
) -> Heard:
    ids = [f"item-{code}" for code in items]
    said = protocol.observations(ids, answer_for(protocol, dict(zip(ids, value, strict=True)), 0.0))
    heard = Heard(name, annotator, items, said)
    progress.answer(items, None)
    progress.hear(heard)
    return heard


def run(
    design: InformationGain,
    n: int,
    tasks: int,
    *,
    protocol: Protocol = PAIRS,
    noise: dict[str, float] | None = None,
    seed: int = 0,
    items: list[Item] | None = None,
) -> tuple[Progress, list[tuple[int, ...]], list[Heard]]:
    """Work through some tasks; an item's value is its code on a scale of unit spread, seen with everyone's noise."""
    people = noise or {f"ann-{number}": 0.3 for number in range(10)}
    rng = np.random.default_rng(seed)
    value = (np.arange(n) - (n - 1) / 2) / n * np.sqrt(12)
    low, high = -6, 6
    progress = design.progress(protocol, items or make_items(n))
    shown, said = [], []
    for step in range(tasks):
        annotator = list(people)[step % len(people)]
        picked = pick(design, progress, annotator, step, protocol.task_size)
        seen = value[list(picked.items)] + people[annotator] * rng.normal(size=len(picked.items))
        said.append(answer(progress, protocol, annotator, picked.items, (seen - low) / (high - low), str(step)))
        shown.append(picked.items)
    return progress, shown, said


@pytest.mark.slow
def test_fifty_people_who_ask_at_once_get_fifty_different_pairs_and_different_items():
    design = InformationGain(explore=0.0)
    progress, _, _ = run(design, 200, 300)
    picks = [pick(design, progress, f"new-{number}", 1000 + number) for number in range(50)]
    assert len({tuple(sorted(each.items)) for each in picks}) == 50
    # A hundred places for two hundred items: few items are with two people.
    assert len({item for each in picks for item in each.items}) >= 80


def test_many_people_and_few_items_still_get_different_pairs():
    design = InformationGain(explore=0.0, judgments=100)
    progress, _, _ = run(design, 12, 20)
    picks = [pick(design, progress, f"new-{number}", 1000 + number) for number in range(60)]
    assert len({tuple(sorted(each.items)) for each in picks}) == 60


def test_what_is_out_counts_until_it_comes_back():
    design = InformationGain(explore=0.0)
    progress, _, _ = run(design, 30, 60)
    memory = memory_of(progress)
    before = memory.variance
    picked = pick(design, progress, "late", 99)
    assert (memory.variance[list(picked.items)] < before[list(picked.items)]).all()
    progress.released("late", picked.items, picked.slot)
    progress.forget("late", picked.items)
    assert memory.variance == pytest.approx(before)
    again = design.pick(progress, 2, "late", np.random.default_rng(99))
    assert isinstance(again, Pick)
    assert set(again.items) == set(picked.items)


def test_every_item_is_looked_at_before_any_is_looked_at_for_its_gain():
    design = InformationGain(explore=0.0, aim="top", top=1)
    _, shown, _ = run(design, 40, 40)
    assert {item for items in shown for item in items} == set(range(40))
    _, shown, _ = run(InformationGain(explore=0.0, first_looks=3, judgments=20), 40, 120)
    assert min(Counter(item for items in shown for item in items).values()) >= 3


def test_an_answer_taken_back_leaves_no_trace():
    design = InformationGain(explore=0.0)
    # One more answer is no occasion to go over all of them.
    progress, _, said = run(design, 20, 16)
    memory = memory_of(progress)
    mean, variance = memory.mean, memory.variance
    heard = Heard("more", "ann-0", (0, 19), [Comparison("item-0", "item-19", 1)])
    progress.hear(heard)
    assert memory.mean != pytest.approx(mean)
    progress.unhear(heard)
    assert memory.mean == pytest.approx(mean)
    assert memory.variance == pytest.approx(variance)
    for each in said:
        progress.unhear(each)
    assert memory.mean == pytest.approx(np.zeros(20), abs=1e-9)
    assert memory.variance == pytest.approx(np.ones(20))


@pytest.mark.slow
def test_it_learns_who_is_noisy_and_asks_them_about_pairs_further_apart():
    noise = {"precise": 0.05, "good": 0.2, "noisy": 2.0}
    design = InformationGain(explore=0.0, judgments=60)
    distances: dict[str, list[float]] = {"precise": [], "noisy": []}
    for seed in range(2):
        progress, _, _ = run(design, 60, 450, noise=noise, seed=seed)
        memory = memory_of(progress)
        assert memory.noise("precise") < memory.noise("good") < memory.noise("noisy")
        for annotator, found in distances.items():
            # What each would get now, and the next five if that were out.
            for step in range(6):
                picked = pick(design, progress, annotator, 5000 + step)
                found.append(abs(float(np.diff(memory.mean[list(picked.items)])[0])))
    assert np.mean(distances["noisy"]) > 1.5 * np.mean(distances["precise"])


@pytest.mark.slow
def test_it_asks_about_what_the_study_is_for():
    """Of 60 items: the top six need the items near sixth place; a ranking needs all."""

    def near_the_cut(design: InformationGain) -> float:
        _, shown, _ = run(design, 60, 250)
        late = Counter(item for items in shown[80:] for item in items)
        return sum(late[item] for item in range(48, 60)) / late.total()

    even = 12 / 60
    assert near_the_cut(InformationGain(explore=0.0, judgments=20)) == pytest.approx(even, abs=0.1)
    assert near_the_cut(InformationGain(explore=0.0, judgments=20, aim="top", top=6)) > 2 * even
    assert near_the_cut(InformationGain(explore=0.0, judgments=20, aim="threshold", threshold=0.9)) > 2 * even


@pytest.mark.slow
def test_pairs_chosen_by_gain_place_the_items_better_than_random_ones():
    def error(design: InformationGain) -> float:
        found = []
        for seed in range(2):
            progress, _, _ = run(design, 60, 300, seed=seed)
            ranks = np.argsort(np.argsort(memory_of(progress).mean))
            found.append(np.mean((ranks - np.arange(60)) ** 2))
        return float(np.mean(found))

    assert error(InformationGain(explore=0.0)) < 0.75 * error(InformationGain(explore=1.0))


def test_nobody_is_asked_about_a_set_that_enough_have_seen():
    design = InformationGain(judgments=100, annotators=2)
    progress = design.progress(PAIRS, make_items(5))
    shown: Counter[tuple[int, ...]] = Counter()
    for number in range(30):
        picked = design.pick(progress, 2, f"ann-{number}", np.random.default_rng(number))
        if isinstance(picked, Nothing):
            assert picked.complete
            break
        progress.picked(f"ann-{number}", picked.items, picked.slot)
        answer(progress, PAIRS, f"ann-{number}", picked.items, picked.items, str(number))
        shown[tuple(sorted(picked.items))] += 1
    assert shown == dict.fromkeys(combinations(range(5), 2), 2)


def test_nobody_meets_an_item_twice_where_that_is_asked_for():
    design = InformationGain(same_item_again=False, judgments=50)
    progress = design.progress(PAIRS, make_items(9))
    met: list[int] = []
    for step in range(4):
        met += pick(design, progress, "ann", step).items
    assert len(set(met)) == 8
    nothing = design.pick(progress, 2, "ann", np.random.default_rng(9))
    assert isinstance(nothing, Nothing)
    assert not nothing.complete


def _labelled(n: int) -> list[Item]:
    return [Item(f"item-{c}", "", group=f"system {c % 4}", context=f"source {c // 4}") for c in range(n)]


@pytest.mark.slow
@pytest.mark.parametrize("explore", [0.0, 1.0])
def test_only_items_that_may_stand_together_do(explore):
    items = _labelled(240)
    same = InformationGain(together="same_context", explore=explore, judgments=3)
    _, shown, _ = run(same, 240, 200, items=items)
    assert all(a // 4 == b // 4 for a, b in shown)
    assert {item for pair in shown for item in pair} == set(range(240)) or explore
    other = InformationGain(together="other_groups", explore=explore)
    _, shown, _ = run(other, 240, 100, items=items)
    assert all(a % 4 != b % 4 for a, b in shown)


def test_groups_are_compared_by_their_items_for_one_source():
    design = InformationGain(by="group", judgments=40)
    items = _labelled(80)
    progress, shown, _ = run(design, 80, 60, items=items, noise={f"ann-{n}": 0.0 for n in range(10)})
    assert all(a // 4 == b // 4 and a % 4 != b % 4 for a, b in shown)
    assert memory_of(progress).units.count == 4
    # Within a source, the higher code is the higher value: system 3 is best.
    assert np.argsort(memory_of(progress).mean).tolist() == [0, 1, 2, 3]
    sources = Counter(a // 4 for a, _ in shown)
    assert max(sources.values()) - min(sources.values()) <= 1


@pytest.mark.parametrize("protocol", [BestWorst(size=4), ScoredRanking(size=5)], ids=lambda protocol: protocol.name)
def test_larger_tasks_place_the_items_too(protocol):
    progress, shown, _ = run(InformationGain(judgments=12), 30, 70, protocol=protocol)
    assert np.corrcoef(memory_of(progress).mean, np.arange(30))[0, 1] > 0.95
    assert all(len(set(items)) == protocol.task_size for items in shown)


def test_ratings_are_learnt_from_and_asked_for_where_they_help():
    """With sliders one at a time, the items near the threshold are asked about more; nobody meets an item twice."""
    design = InformationGain(aim="threshold", threshold=0.8, explore=0.0, judgments=8)
    people = {f"ann-{number}": 0.5 for number in range(20)}
    progress, shown, said = run(design, 40, 300, protocol=Direct(), noise=people)
    assert np.corrcoef(memory_of(progress).mean, np.arange(40))[0, 1] > 0.8
    late = Counter(item for items in shown[80:] for item in items)
    near, far = range(26, 38), range(12)
    assert sum(late[item] for item in near) > 2 * sum(late[item] for item in far)
    met = Counter((heard.annotator, heard.items) for heard in said)
    assert max(met.values()) == 1
    for each in said:
        progress.unhear(each)
    # Nothing of the answers is left but where they say that items lie in general.
    assert np.ptp(memory_of(progress).mean) == pytest.approx(0.0, abs=1e-9)


def test_items_about_which_people_disagree_are_rated_more_often():
    """Ten items have one answer each from everybody; about ten, answers are all over the scale."""
    design = InformationGain(aim="scores", explore=0.0, judgments=8)
    protocol = Direct()
    items = make_items(20)
    progress = design.progress(protocol, items)
    rng = np.random.default_rng(0)
    asked: Counter[int] = Counter()
    for step in range(160):
        who = f"ann-{step % 30}"
        found = pick(design, progress, who, step, 1)
        (item,) = found.items
        asked[item] += 1
        progress.answer(found.items, None)
        value = float(rng.integers(0, 101)) if item >= 10 else 10.0
        said = protocol.observations([items[item].id], {items[item].id: value})
        progress.hear(Heard(str(step), who, found.items, said))
    assert sum(asked[item] for item in range(10, 20)) > 1.5 * sum(asked[item] for item in range(10))
    assert min(asked.values()) >= 2


def test_the_last_page_may_be_short():
    design = InformationGain(judgments=40, explore=0.0)
    progress = design.progress(Direct(items_per_page=4), make_items(10))
    sizes = [len(pick(design, progress, "ann", step, 4).items) for step in range(3)]
    assert sizes == [4, 4, 2]
    nothing = design.pick(progress, 4, "ann", np.random.default_rng(9))
    assert isinstance(nothing, Nothing)


@pytest.mark.slow
def test_a_whole_batch_is_as_good_as_picking_one_by_one():
    design = InformationGain(explore=0.0)
    progress, _, _ = run(design, 100, 200)
    batch = design.batch(progress, 50)
    assert len(batch) == 50
    assert len({item for task in batch for item in task}) >= 96
    one_by_one = [pick(design, progress, f"new-{step}", 900 + step).weight for step in range(10)]
    assert min(one_by_one) > 0
    mean = memory_of(progress).mean
    # Close pairs: the nearest of a random hundred are no closer on average than these, up to a few.
    distance = np.abs(np.diff(mean[np.array(batch)], axis=1)).mean()
    apart = np.abs(np.subtract.outer(mean, mean)).mean()
    assert distance < 0.4 * apart


@pytest.mark.parametrize(
    ("settings", "protocol", "field"),
    [
        ({}, Choice(labels=("a", "b")), "design.name"),
        ({"aim": "top"}, PAIRS, "design.top"),
        ({"top": 3}, PAIRS, "design.top"),
        ({"aim": "top", "top": 20}, PAIRS, "design.top"),
        ({"aim": "threshold"}, PAIRS, "design.threshold"),
        ({"by": "group", "same_item_again": False}, PAIRS, "design.by"),
        ({}, ScoredRanking(size=21), "protocol.size"),
    ],
)
def test_what_does_not_fit_is_named(settings: dict[str, Any], protocol: Protocol, field: str):
    (problem,) = InformationGain(**settings).problems(protocol, 20)
    assert problem.field == field


def test_what_fits_is_not_named():
    for design in (
        InformationGain(),
        InformationGain(aim="top", top=3),
        InformationGain(aim="threshold", threshold=0.5),
    ):
        assert design.problems(PAIRS, 20) == []
