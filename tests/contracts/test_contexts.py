"""What every design that compares items promises where items have contexts (sources) and groups (systems)."""

from __future__ import annotations

from collections import Counter
from math import comb
from typing import Any

import numpy as np
import pytest

from steelyard import registry
from steelyard.designs import Design, NoTask, Pick, Progress
from steelyard.protocols import BestWorst, Direct, Pairwise, Protocol, Ranking, ScoredRanking
from steelyard.records import Item
from tests.designs.helpers import take

PAIRS, FOURS, FIVES = Pairwise(), BestWorst(size=4), ScoredRanking(size=5)
CASES: list[tuple[str, dict[str, Any], Protocol]] = [
    ("random_tuples", {"judgments": 4}, PAIRS),
    ("random_tuples", {"judgments": 4, "annotators_per_task": 2}, FOURS),
    ("random_tuples", {"judgments": 3}, Ranking(size=3)),
    ("balanced_tuples", {"annotators_per_task": 1}, FOURS),
    ("balanced_tuples", {"factor": 1, "annotators_per_task": 2}, PAIRS),
    ("all_pairs", {}, PAIRS),
    ("all_pairs", {"annotators_per_task": 2}, PAIRS),
    ("match_quality", {"rounds": 4}, FIVES),
    ("match_quality", {"rounds": 3, "model": "trueskill"}, PAIRS),
    ("match_quality", {"mode": "continuous", "rounds": 4}, FIVES),
    ("match_quality", {"by": "group", "rounds": 20}, FIVES),
    ("adaptive", {"judgments": 4}, PAIRS),
    ("adaptive", {"judgments": 6, "explore": 0.3}, FOURS),
    ("adaptive", {"by": "group", "judgments": 60}, PAIRS),
    ("tournament", {}, PAIRS),
]
SOURCES, SYSTEMS = 12, 6
ACROSS = [case for case in CASES if "by" not in case[1]]


def outputs(sources: int = SOURCES, systems: int = SYSTEMS) -> list[Item]:
    """Return the outputs of every system for every source; codes run through the systems of the first source."""
    return [
        Item(f"item-{source * systems + system}", f"output {source} {system}", f"system {system}", f"source {source}")
        for source in range(sources)
        for system in range(systems)
    ]


def run(
    design: Design, protocol: Protocol, items: list[Item], *, people: int = 60, seed: int = 0
) -> tuple[Progress, list[Pick]]:
    """Let many annotators work through a design, each until there is no task for them."""
    progress = design.new_progress(protocol, items)
    picks: list[Pick] = []
    active = [f"ann-{n}" for n in range(people)]
    rng = np.random.default_rng(seed)
    while active and len(picks) < 5_000:
        annotator = active[int(rng.integers(len(active)))]
        pick = take(design, progress, protocol, annotator, (seed, len(picks)), items=items)
        if isinstance(pick, NoTask):
            active.remove(annotator)
        else:
            picks.append(pick)
    return progress, picks


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> tuple[Design, Protocol]:
    name, settings, protocol = request.param
    return registry.create("designs", name, settings), protocol


def test_no_task_mixes_contexts_and_every_item_is_shown(case):
    design, protocol = case
    items = outputs()
    progress, picks = run(design, protocol, items)
    assert all(len({items[code].context for code in pick.items}) == 1 for pick in picks)
    if getattr(design, "by", "item") == "item":
        assert progress.answers.min() > 0
    goal = design.goal(progress, protocol.task_size)
    assert goal.done == goal.total == len(picks)


def test_contexts_are_shown_about_equally_often_at_any_time(case):
    design, protocol = case
    items = outputs()
    _, picks = run(design, protocol, items)
    half = Counter(items[pick.items[0]].context for pick in picks[: len(picks) // 2])
    counts = [half[f"source {number}"] for number in range(SOURCES)]
    if design.name == "tournament":
        assert max(counts) <= 6  # an annotator finishes one source before the next
    elif design.name == "adaptive":
        assert min(counts) > 0  # the expected gain decides, after every item was shown once
    else:
        # Turns of one tuple per context; a round of match_quality has at most three, in order of uncertainty.
        assert max(counts) - min(counts) <= (3 if design.name == "match_quality" else design.capacity)


def test_the_first_goal_is_the_number_of_tasks(case):
    design, protocol = case
    items = outputs()
    progress = design.new_progress(protocol, items)
    planned = design.goal(progress, protocol.task_size).total
    _, picks = run(design, protocol, items)
    # Random tuples may need fillers: less than one tuple per context.
    assert planned <= len(picks) <= planned + SOURCES * design.capacity * (design.name == "random_tuples")


@pytest.mark.parametrize("case_", ACROSS, ids=str)
def test_contexts_mix_when_the_study_says_so(case_):
    name, settings, protocol = case_
    design = registry.create("designs", name, settings | {"across_contexts": True})
    items = outputs(4)
    _, picks = run(design, protocol, items)
    assert any(len({items[code].context for code in pick.items}) > 1 for pick in picks)


def test_items_without_a_context_are_compared_with_one_another_only(case):
    design, protocol = case
    if getattr(design, "by", "item") == "group":
        pytest.skip("groups are matched by context")
    items = outputs(3) + [Item(f"bare-{n}", f"bare {n}", f"system {n}") for n in range(SYSTEMS)]
    _, picks = run(design, protocol, items)
    kinds = {frozenset(items[code].context for code in pick.items) for pick in picks}
    assert kinds == {frozenset([f"source {n}"]) for n in range(3)} | {frozenset([None])}


def test_items_alone_in_their_context_are_never_shown_and_do_not_hold_up_the_others(case):
    design, protocol = case
    if getattr(design, "by", "item") == "group":
        pytest.skip("groups are matched by context")
    items = outputs(4) + [Item(f"alone-{n}", "alone", "system 0", f"lonely {n}") for n in range(5)]
    progress, picks = run(design, protocol, items)
    assert progress.answers[:24].min() > 0
    assert progress.answers[24:].max() == 0
    goal = design.goal(progress, protocol.task_size)
    assert goal.done == goal.total == len(picks)
    assert isinstance(nothing := take(design, progress, protocol, "new", (9, 9), items=items), NoTask)
    assert nothing.complete


def test_items_that_join_a_context_later_are_compared_within_it(case):
    design, protocol = case
    if getattr(design, "by", "item") == "group":
        pytest.skip("a group that joins later is in few sources")
    items = outputs(3)
    progress, _ = run(design, protocol, items)
    new = [Item(f"late-{n}", f"late {n}", f"system {6 + n}", "source 1") for n in range(2)]
    progress.add_items(new)
    everything = items + new
    item_counts = Counter[int]()
    for number in range(40):
        for step in range(100):
            pick = take(design, progress, protocol, f"new-{number}", (7, number, step), items=everything)
            if isinstance(pick, NoTask):
                break
            assert {everything[code].context for code in pick.items} <= {"source 0", "source 1", "source 2"}
            assert len({everything[code].context for code in pick.items}) == 1
            item_counts.update(pick.items)
    assert item_counts[18] > 0
    assert item_counts[19] > 0


@pytest.mark.slow
@pytest.mark.parametrize("case_", [case for case in ACROSS if case[0] != "tournament"], ids=str)
def test_propensities_within_contexts_are_those_of_the_draw(case_):
    name, settings, protocol = case_
    design = registry.create("designs", name, settings)
    items = [*outputs(3), Item("extra", "extra", "system 6", "source 0")]
    progress, rng = design.new_progress(protocol, items), np.random.default_rng(5)
    for step, annotator in enumerate(["ann", "bob"]):
        assert isinstance(take(design, progress, protocol, annotator, (3, step), items=items), Pick)
    draws = 2000
    picks = [design.pick(progress, protocol.task_size, "ann", rng) for _ in range(draws)]
    counts = Counter(tuple(sorted(pick.items)) for pick in picks if isinstance(pick, Pick))
    propensities = {tuple(sorted(pick.items)): pick.propensity for pick in picks if isinstance(pick, Pick)}
    assert propensities
    for shown, propensity in propensities.items():
        assert propensity is not None
        assert counts[shown] == pytest.approx(draws * propensity, abs=5 * np.sqrt(draws * propensity) + 1)


@pytest.mark.parametrize("name", ["balanced_tuples", "all_pairs"])
def test_the_first_pick_of_a_plan_is_as_likely_as_it_says(name):
    """The first task comes from the larger source: 10 pairs or 5 fours of five items, all equally likely."""
    protocol = PAIRS if name == "all_pairs" else FOURS
    items = outputs(1, 5) + [Item(f"b{n}", f"b{n}", context="source 1") for n in range(4)]
    design = registry.create("designs", name, {"factor": 1} if name == "balanced_tuples" else {})
    firsts = [
        design.pick(design.new_progress(protocol, items), protocol.task_size, "ann", np.random.default_rng([seed, 1]))
        for seed in range(300)
    ]
    sets = Counter(tuple(sorted(pick.items)) for pick in firsts if isinstance(pick, Pick))
    assert len(sets) == comb(5, protocol.task_size)
    assert {pick.propensity for pick in firsts if isinstance(pick, Pick)} == {1 / comb(5, protocol.task_size)}


def test_ratings_shown_on_one_page_are_not_comparisons_and_may_mix_contexts():
    items = outputs(4)
    design = registry.create("designs", "random_tuples", {"judgments": 4})
    _, picks = run(design, Direct(items_per_page=4), items)
    assert any(len({items[code].context for code in pick.items}) > 1 for pick in picks)


@pytest.mark.parametrize("case_", ACROSS, ids=str)
def test_contexts_too_small_for_a_task_are_refused_with_the_remedy(case_):
    name, settings, protocol = case_
    design = registry.create("designs", name, settings)
    size = protocol.task_size
    items = [Item(f"i{n}", f"t{n}", context=f"source {n // (size - 1)}") for n in range(3 * size)]
    (problem,) = design.item_problems(protocol, items)
    assert f"no source has more than {size - 1}" in problem.what
    assert "across_contexts = true" in problem.remedy
    assert registry.create("designs", name, settings | {"across_contexts": True}).item_problems(protocol, items) == []
