"""match_quality by group: systems, and the sources they share."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from steelyard.designs import MatchQuality, NoTask, Pick
from steelyard.models.ratings.easl import EASL
from steelyard.observations import Index, Ratings
from steelyard.protocols import Direct, Pairwise, ScoredRanking
from steelyard.records import Item
from tests.designs.helpers import take
from tests.designs.match_quality_states import heard, state_of, systems

# Groups


def test_a_task_shows_different_groups_for_one_context_the_least_asked_first():
    items, protocol = systems(6, 8), ScoredRanking(size=3)
    design = MatchQuality(by="group", rounds=12, tasks_per_round=4)
    progress = design.new_progress(protocol, items)
    contexts: Counter[str | None] = Counter()
    for step in range(48):
        pick = take(design, progress, protocol, f"ann-{step % 5}", (step,), items=items)
        assert isinstance(pick, Pick)
        shown_sets = [items[code] for code in pick.items]
        assert len({item.group for item in shown_sets}) == 3
        assert len({item.context for item in shown_sets}) == 1
        contexts[shown_sets[0].context] += 1
        assert max(contexts.values()) - min(contexts[f"c{c}"] for c in range(8)) <= 1
    assert set(contexts.values()) == {6}
    assert isinstance(take(design, progress, protocol, "eve", (99,), items=items), NoTask)


def test_the_parameter_is_the_groups():
    items, protocol = systems(5, 4), ScoredRanking(size=3)
    design = MatchQuality(by="group", rounds=5, tasks_per_round=3)
    progress = design.new_progress(protocol, items)
    rng = np.random.default_rng(0)
    rows: list[tuple[int, float]] = []
    for step in range(15):
        pick = take(design, progress, protocol, f"ann-{step % 4}", (step,), items=items, answer=False)
        assert isinstance(pick, Pick)
        answer = {items[code].id: float(value) for code, value in zip(pick.items, rng.integers(0, 101, 3), strict=True)}
        progress.on_answered(pick.items, pick.slot)
        notices = protocol.observations(list(answer), answer)
        progress.notify_answer(heard(pick.items, notices, str(step)))
        rows += [(code, answer[items[code].id]) for code in pick.items]
    ratings = Ratings(
        items=Index(item.id for item in items),
        item=np.array([code for code, _ in rows], np.int32),
        value=np.array([value for _, value in rows]),
        scale=(0, 100),
    )
    grouped, _ = ratings.by_group({item.id: str(item.group) for item in items})
    expected = EASL().update(EASL().start(5), grouped.item, grouped.unit_value)
    assert state_of(progress).model.state.variance == pytest.approx(expected.variance)
    assert state_of(progress).model.state.mode == pytest.approx(expected.mode)


@pytest.mark.slow
def test_recorded_propensities_of_groups_count_the_context_too():
    items, protocol = systems(5, 3), ScoredRanking(size=3)
    design = MatchQuality(by="group", rounds=30, tasks_per_round=1)
    progress = design.new_progress(protocol, items)
    for step in range(7):
        take(design, progress, protocol, f"ann-{step % 2}", (step,), items=items)
    rng = np.random.default_rng(5)
    picks = [design.pick(progress, 3, "ann-0", rng) for _ in range(6000)]
    counts = Counter(tuple(sorted(pick.items)) for pick in picks if isinstance(pick, Pick))
    propensities = {tuple(sorted(pick.items)): pick.propensity for pick in picks if isinstance(pick, Pick)}
    assert sum(propensities.values()) == pytest.approx(1, abs=1e-9)
    assert stats.chisquare(list(counts.values()), [propensities[task] * len(picks) for task in counts]).pvalue > 0.001


def test_groups_are_shown_only_for_contexts_they_share_and_propensities_are_withheld():
    """a, b and c share c0; c, d and e share c1: no other three can be shown together."""
    shared_pairs = {"c0": "abc", "c1": "cde"}
    items = [Item(f"{g}-{c}", g, group=g, context=c) for c, groups in shared_pairs.items() for g in groups]
    design, protocol = MatchQuality(by="group", rounds=8), ScoredRanking(size=3)
    progress = design.new_progress(protocol, items)
    shown_sets = set()
    for step in range(8):
        pick = take(design, progress, protocol, f"ann-{step}", (step,), items=items)
        assert isinstance(pick, Pick)
        assert pick.propensity is None
        shown_sets.add("".join(sorted(str(items[code].group) for code in pick.items)))
    assert shown_sets == {"abc", "cde"}


def test_a_groups_second_item_for_a_context_stands_with_the_others_second():
    items = [Item(f"{g}{n}", f"{g} {n}", group=g, context="c") for g in "ab" for n in range(2)]
    design = MatchQuality(by="group", rounds=2, tasks_per_round=2, model="trueskill")
    progress = design.new_progress(Pairwise(), items)
    picks = [take(design, progress, Pairwise(), f"ann-{step % 2}", (step,), items=items) for step in range(4)]
    assert {tuple(sorted(items[code].id for code in pick.items)) for pick in picks} == {("a0", "b0"), ("a1", "b1")}


def test_items_without_groups_are_not_asked_and_too_few_groups_are_named():
    items = [*systems(2, 3), Item("x", "no group"), Item("y", "no group")]
    design = MatchQuality(by="group", rounds=2, tasks_per_round=3, model="trueskill")
    progress = design.new_progress(Pairwise(), items)
    picks = [take(design, progress, Pairwise(), f"ann-{step}", (step,), items=items) for step in range(6)]
    assert all(isinstance(pick, Pick) and max(pick.items) < 6 for pick in picks)
    few = MatchQuality(by="group").new_progress(ScoredRanking(size=3), items)
    nothing = MatchQuality(by="group").pick(few, 3, "ann", np.random.default_rng(0))
    assert isinstance(nothing, NoTask)
    assert "3 groups, but there are 2" in nothing.reason
    assert not nothing.complete


def test_one_group_at_a_time_shows_each_person_new_items_of_it():
    items, protocol = systems(3, 4), Direct()
    design = MatchQuality(by="group", rounds=4)
    progress = design.new_progress(protocol, items)
    picks = [take(design, progress, protocol, "ann", (step,), items=items) for step in range(12)]
    assert sorted(code for pick in picks for code in pick.items) == list(range(12))
    groups = [items[pick.items[0]].group for pick in picks]
    assert all(len(set(groups[first : first + 3])) == 3 for first in range(0, 12, 3))
