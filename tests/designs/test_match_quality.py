"""match_quality: rounds, the continuous mode, groups, and what is remembered."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import chain, combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.designs import MatchQuality, NoTask, Pick
from steelyard.designs.match_quality.heads import ContinuousHeads
from steelyard.designs.match_quality.online_models import OnlineEasl
from steelyard.models.comparisons.match_quality import match_quality
from steelyard.observations import Rating
from steelyard.protocols import BestWorst, Choice, Direct, Likert, Pairwise, Ranking, ScoredRanking
from steelyard.records import Item
from tests.designs.helpers import make_items, take
from tests.designs.match_quality_states import heard, started, state_of

# Rounds


def test_150_items_by_5_make_rounds_of_30_tasks_and_300_in_all():
    design, protocol = MatchQuality(rounds=10), ScoredRanking(size=5)
    progress = design.new_progress(protocol, make_items(150))
    assert design.goal(progress, 5).total == 300
    rounds: Counter[int] = Counter()
    for step in range(300):
        pick = take(design, progress, protocol, f"ann-{step % 20}", (0, step))
        assert isinstance(pick, Pick)
        rounds[pick.round] += 1
    assert rounds == dict.fromkeys(range(10), 30)
    assert isinstance(take(design, progress, protocol, "ann", (1,)), NoTask)


@pytest.mark.parametrize("model", ["easl", "trueskill"])
def test_heads_are_the_least_certain_when_the_round_opens_and_partners_are_outside_them(model):
    design, protocol = MatchQuality(rounds=6, model=model, first_round="match_quality"), ScoredRanking(size=3)
    progress = design.new_progress(protocol, make_items(16))
    variance, tasks = np.zeros(0), []
    for step in range(30):
        before = np.array(state_of(progress).model.state.variance)
        pick = take(design, progress, protocol, f"ann-{step % 7}", (3, step))
        assert isinstance(pick, Pick)
        if step % 5 == 0:
            variance, tasks = before, []
        assert pick.round == step // 5
        tasks.append(set(pick.items))
        if step % 5 == 4:
            least = np.sort(variance)[-5]
            sure, unsure = set(np.flatnonzero(variance > least)), set(np.flatnonzero(variance < least))
            heads = [task - unsure for task in tasks]
            assert all(heads)
            assert all(len(task & sure) <= 1 for task in tasks)
            assert set().union(*(task & sure for task in tasks)) == sure
    # Rounds with answers have no ties left, or the test would say little.
    assert len(set(variance.tolist())) > 10


@pytest.mark.slow
def test_every_item_is_a_head_about_equally_often_while_nothing_is_known():
    design, protocol = MatchQuality(rounds=1, first_round="match_quality"), ScoredRanking(size=4)
    firsts = Counter()
    for seed in range(1200):
        progress = design.new_progress(protocol, make_items(8))
        tasks = [take(design, progress, protocol, "ann", (seed, n), answer=False) for n in range(2)]
        plan = state_of(progress).plan
        assert plan is not None
        assert all(isinstance(task, Pick) for task in tasks)
        firsts.update(item for item in range(8) if not plan.may_join(np.array([item]), -1)[0])
    assert sum(firsts.values()) == 2400
    assert stats.chisquare([firsts[item] for item in range(8)]).pvalue > 0.001


def test_a_round_is_drawn_from_the_state_at_its_opening_not_from_answers_since():
    design, protocol = MatchQuality(rounds=2, first_round="match_quality"), ScoredRanking(size=3)
    with_answers, without_answers = (design.new_progress(protocol, make_items(12)) for _ in range(2))
    for step in range(4):
        picks = [
            take(design, progress, protocol, "ann", (5, step), answer=progress is with_answers)
            for progress in (with_answers, without_answers)
        ]
        assert picks[0] == picks[1]
    assert state_of(with_answers).model.state.variance.min() < state_of(without_answers).model.state.variance.min()


def test_when_a_round_fills_people_go_on_with_the_next_or_wait_as_told():
    protocol = ScoredRanking(size=3)
    for when, expected in (("next_round", Pick), ("wait", NoTask)):
        design = MatchQuality(rounds=3, when_waiting=when)
        progress = design.new_progress(protocol, make_items(9))
        picks = [take(design, progress, protocol, f"ann-{n}", (n,), answer=n > 0) for n in range(3)]
        fourth = design.pick(progress, 3, "bob", np.random.default_rng(7))
        assert isinstance(fourth, expected)
        if isinstance(fourth, NoTask):
            assert (fourth.reason_code, fourth.complete) == ("waiting", False)
            first = picks[0]
            assert isinstance(first, Pick)
            progress.on_answered(first.items, first.slot)
            fourth = design.pick(progress, 3, "bob", np.random.default_rng(7))
        assert isinstance(fourth, Pick)
        assert fourth.round == 1


# The first round


@pytest.mark.parametrize(("n", "size", "tasks"), [(150, 5, 30), (13, 4, 4), (7, 1, 7), (9, 5, 2)])
def test_the_first_round_shows_every_item_and_repeats_only_to_fill_the_last_task(n, size, tasks):
    protocol = ScoredRanking(size=size) if size > 1 else Direct()
    design = MatchQuality(rounds=2)
    progress = design.new_progress(protocol, make_items(n))
    picks = [take(design, progress, protocol, f"ann-{step}", (1, step)) for step in range(tasks)]
    assert all(isinstance(pick, Pick) and pick.round == 0 for pick in picks)
    counts = Counter(item for pick in picks for item in pick.items)
    assert set(counts) == set(range(n))
    assert sum(counts.values()) == tasks * size
    assert all(len(set(pick.items)) == size for pick in picks)
    following = take(design, progress, protocol, "somebody", (1, tasks))
    assert isinstance(following, Pick)
    assert following.round == 1
    assert design.budget(progress) == tasks + n // size


def test_the_first_round_as_printed_leaves_items_out():
    design, protocol = MatchQuality(rounds=1, first_round="match_quality"), ScoredRanking(size=5)
    progress = design.new_progress(protocol, make_items(150))
    picks = [take(design, progress, protocol, f"ann-{step}", (1, step)) for step in range(30)]
    n_shown = len({item for pick in picks if isinstance(pick, Pick) for item in pick.items})
    # 120 partners are drawn for 30 heads from 120 others, nearly uniformly: about 1 - 1/e of them are drawn.
    assert 30 + 120 * 0.55 < n_shown < 30 + 120 * 0.72


def in_contexts(*sizes: int) -> list[Item]:
    return [
        Item(f"{context}-{n}", "x", context=str(context)) for context, size in enumerate(sizes) for n in range(size)
    ]


def test_the_first_round_covers_each_context_by_itself():
    design, protocol = MatchQuality(rounds=1), Pairwise()
    items = [
        Item(f"{context}{n}", "x", context=str(context)) for context, size in enumerate((5, 4, 1)) for n in range(size)
    ]
    progress = design.new_progress(protocol, items)
    picks = [take(design, progress, protocol, f"ann-{step}", (2, step), items=items) for step in range(5)]
    assert all(len({items[code].context for code in pick.items}) == 1 for pick in picks)
    # The only item of the third context has nothing to be compared with.
    assert {code for pick in picks for code in pick.items} == set(range(9))
    assert isinstance(take(design, progress, protocol, "somebody", (2, 9), items=items), NoTask)


@pytest.mark.slow
def test_the_probability_of_the_first_covering_task_is_recorded():
    design, protocol = MatchQuality(rounds=1), ScoredRanking(size=2)
    items = [
        Item(f"{context}{n}", "x", context=str(context)) for context, size in enumerate((4, 3)) for n in range(size)
    ]
    progress, draws = design.new_progress(protocol, items), 4000
    picks = [design.pick(progress, 2, "ann", np.random.default_rng((8, draw))) for draw in range(draws)]
    counts = Counter(tuple(sorted(pick.items)) for pick in picks if isinstance(pick, Pick))
    propensities = {tuple(sorted(pick.items)): pick.propensity for pick in picks if isinstance(pick, Pick)}
    # Two of the four tasks belong to each context, which has 6 and 3 possible pairs.
    assert propensities == {
        shown: pytest.approx(1 / 12 if max(shown) < 4 else 1 / 6)
        for shown in chain(combinations(range(4), 2), combinations(range(4, 7), 2))
    }
    for shown, propensity in propensities.items():
        assert counts[shown] == pytest.approx(draws * propensity, abs=5 * np.sqrt(draws * propensity))


@pytest.mark.slow
def test_covering_first_finds_the_order_sooner():
    """In the setting of the paper's second experiment, ρ after one round is higher if the round covers all items."""
    gains = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        truth = rng.beta(0.5, 0.5, 150)
        rho = {}
        for first_round in ("cover", "match_quality"):
            design, protocol = MatchQuality(rounds=1, first_round=first_round), ScoredRanking(size=5, scale=(0, 1))
            progress = design.new_progress(protocol, make_items(150))
            values = np.full(150, 0.5)
            for step in range(30):
                pick = take(design, progress, protocol, f"ann-{step}", (seed, step))
                values[list(pick.items)] = np.clip(truth[list(pick.items)] + rng.normal(0, 0.2, 5), 0, 1)
            rho[first_round] = stats.spearmanr(values, truth).statistic
        gains.append(rho["cover"] - rho["match_quality"])
    assert np.mean(gains) > 4 * np.std(gains) / np.sqrt(len(gains))


def test_more_tasks_than_heads_go_through_the_heads_again():
    design, protocol = MatchQuality(rounds=1, tasks_per_round=9, first_round="match_quality"), ScoredRanking(size=4)
    progress = design.new_progress(protocol, make_items(8))
    picks = [take(design, progress, protocol, f"ann-{n}", (n,), answer=False) for n in range(9)]
    assert isinstance(take(design, progress, protocol, "eve", (99,)), NoTask)
    plan = state_of(progress).plan
    assert plan is not None
    heads = Counter(item for pick in picks for item in pick.items if not plan.may_join(np.array([item]), -1)[0])
    assert sorted(heads.values()) == [4, 5]


def test_items_that_join_in_a_round_are_the_first_heads_of_the_next():
    design, protocol = MatchQuality(rounds=4), ScoredRanking(size=3)
    progress = design.new_progress(protocol, make_items(9))
    ids = [f"item-{code}" for code in range(9)]
    progress.notify_answer(heard(tuple(range(9)), protocol.observations(ids, dict.fromkeys(ids, 40))))
    take(design, progress, protocol, "ann", (0,))
    before = design.goal(progress, 3).total
    progress.add_items(make_items(3, first=9))
    assert (before, design.goal(progress, 3).total) == (12, 16)
    rest = [take(design, progress, protocol, "ann", (step,)) for step in range(1, 3)]
    assert all(max(pick.items) < 9 for pick in rest)
    following = [take(design, progress, protocol, "ann", (step,)) for step in range(3, 7)]
    assert {pick.round for pick in following} == {1}
    assert {9, 10, 11} <= {item for pick in following for item in pick.items}
    assert all(len(set(pick.items) & {9, 10, 11}) <= 1 for pick in following)


# Tasks that come back


def test_a_task_given_back_goes_to_the_next_who_has_not_seen_it():
    design, protocol = MatchQuality(rounds=2), ScoredRanking(size=3)
    progress = design.new_progress(protocol, make_items(9))
    first_task = take(design, progress, protocol, "ann", (0,), answer=False)
    assert isinstance(first_task, Pick)
    progress.on_released("ann", first_task.items, first_task.slot)
    other = take(design, progress, protocol, "ann", (1,))
    again = take(design, progress, protocol, "bob", (2,))
    third = take(design, progress, protocol, "cleo", (3,))
    assert isinstance(other, Pick)
    assert isinstance(again, Pick)
    assert isinstance(third, Pick)
    assert set(other.items) != set(first_task.items)
    assert (set(again.items), again.slot) == (set(first_task.items), first_task.slot)
    assert third.slot not in {first_task.slot, other.slot}


def test_a_late_answer_counts_once_however_often_its_task_went_out():
    design, protocol = MatchQuality(rounds=1), ScoredRanking(size=3)
    progress = design.new_progress(protocol, make_items(9))
    first_task = take(design, progress, protocol, "ann", (0,), answer=False)
    assert isinstance(first_task, Pick)
    progress.on_released("ann", first_task.items, first_task.slot)
    progress.allow_again("ann", first_task.items)
    again = take(design, progress, protocol, "bob", (1,))
    assert isinstance(again, Pick)
    progress.on_late_answer("ann", first_task.items, first_task.slot)
    progress.on_answered(first_task.items, first_task.slot)
    goal = design.goal(progress, 3)
    assert (goal.done, goal.total) == (1, 3)
    rest = [take(design, progress, protocol, "cleo", (step,)) for step in (2, 3)]
    assert all(isinstance(pick, Pick) for pick in rest)
    end = take(design, progress, protocol, "cleo", (4,))
    assert isinstance(end, NoTask)
    assert end.complete


# What is recorded, and replay


@pytest.mark.slow
@pytest.mark.parametrize(("model", "protocol"), [("easl", ScoredRanking(size=3)), ("trueskill", Ranking(size=3))])
@pytest.mark.parametrize("mode", ["rounds", "continuous"])
def test_recorded_propensities_are_the_exact_probabilities(model, protocol, mode):
    design = MatchQuality(model=model, mode=mode, first_round="match_quality")
    progress = started(design, protocol, n=8, tasks=9, people=2)
    plan = state_of(progress).plan
    assert plan is not None
    head = next(plan.heads())
    partners = np.flatnonzero(plan.may_join(np.arange(8), head)).tolist()
    assert len(partners) == (6 if mode == "rounds" else 7)
    quality = dict(zip(partners, match_quality(plan.state, head, np.array(partners), 0.1).tolist(), strict=True))
    total, expected = sum(quality.values()), Counter()
    for a, b in permutations(partners, 2):
        expected[tuple(sorted((head, a, b)))] += quality[a] / total * quality[b] / (total - quality[a])
    seen_sets = {tuple(row) for row in progress.history("ann-0").sets.rows.tolist()}
    possible = {task: chance for task, chance in expected.items() if task not in seen_sets}
    rng = np.random.default_rng(1)
    picks = [design.pick(progress, 3, "ann-0", rng) for _ in range(6000)]
    counts = Counter(tuple(sorted(pick.items)) for pick in picks if isinstance(pick, Pick))
    left = sum(possible.values())
    for pick in picks[:200]:
        assert isinstance(pick, Pick)
        task = tuple(sorted(pick.items))
        assert pick.propensity == pytest.approx(possible[task] / left, rel=1e-9)
        others = [item for item in task if item != head]
        assert pick.weight == pytest.approx(quality[others[0]] * quality[others[1]], rel=1e-9)
    assert set(counts) <= set(possible)
    chances = np.array(list(possible.values())) / left
    assert stats.chisquare([counts[task] for task in possible], chances * len(picks)).pvalue > 0.001


def test_propensities_leave_out_what_the_annotator_has_seen():
    """Of four items, one is head and has three pairs of partners; who has seen two of the tasks gets the third."""
    design, protocol = MatchQuality(rounds=40, tasks_per_round=1, first_round="match_quality"), ScoredRanking(size=3)
    progress = design.new_progress(protocol, make_items(4))
    seen_sets = []
    for step in range(4):
        pick = take(design, progress, protocol, "ann", (step,), answer=False)
        assert isinstance(pick, Pick)
        seen_sets.append(tuple(sorted(pick.items)))
    assert len(set(seen_sets)) == 4
    assert isinstance(design.pick(progress, 3, "ann", np.random.default_rng(0)), NoTask)
    for n_seen, chances in ((1, {1 / 3, 1 / 2}), (2, {1 / 2, 1.0})):
        progress = design.new_progress(protocol, make_items(4))
        for step in range(n_seen):
            take(design, progress, protocol, "ann", (step,), answer=False)
        result = {design.pick(progress, 3, "ann", np.random.default_rng(step)).propensity for step in range(40)}
        assert {round(chance, 9) for chance in result} == {round(chance, 9) for chance in chances}


def test_above_ten_thousand_items_a_pick_looks_at_few_and_records_its_weight():
    design, protocol = MatchQuality(first_round="match_quality"), ScoredRanking(size=4)
    progress = started(design, protocol, n=10_003, tasks=3)
    plan = state_of(progress).plan
    assert plan is not None
    pick = design.pick(progress, 4, "bob", np.random.default_rng(0))
    assert isinstance(pick, Pick)
    assert pick.propensity is None
    head = next(plan.heads())
    partners = [item for item in pick.items if item != head]
    assert len(partners) == 3
    assert plan.may_join(np.array(partners), head).all()
    assert pick.weight == pytest.approx(match_quality(plan.state, head, np.array(partners), 0.1).prod())


@pytest.mark.parametrize("mode", ["rounds", "continuous"])
@pytest.mark.parametrize(("model", "protocol"), [("easl", ScoredRanking(size=3)), ("trueskill", Pairwise())])
def test_folding_the_same_events_gives_the_same_next_picks(mode, model, protocol):
    """The replay never picks; the original also picks for nothing, as a study does before it asks a check instead."""
    design = MatchQuality(mode=mode, model=model, rounds=8, first_round="match_quality")
    first, again = (design.new_progress(protocol, make_items(10)) for _ in range(2))
    for step in range(25):
        annotator = f"ann-{step % 3}"
        design.pick(first, protocol.task_size, annotator, np.random.default_rng([8, step]))
        pick = take(design, first, protocol, annotator, (7, step), answer=False)
        assert isinstance(pick, Pick)
        again.on_leased(annotator, pick.items, pick.slot, pick.round, np.random.default_rng([7, step]))
        for progress in (first, again):
            if step % 5 == 4:
                progress.on_released(annotator, pick.items, pick.slot)
            else:
                ids = [f"item-{code}" for code in pick.items]
                answer = {name: 10 * code for name, code in zip(ids, pick.items, strict=True)}
                answer_data = answer if model == "easl" else {"winner": max(ids, key=answer.__getitem__)}
                progress.on_answered(pick.items, pick.slot)
                progress.notify_answer(heard(pick.items, protocol.observations(ids, answer_data), str(step), annotator))
        picks = [
            design.pick(progress, protocol.task_size, "dan", np.random.default_rng([6, step]))
            for progress in (first, again)
        ]
        assert picks[0] == picks[1]


def test_picking_changes_nothing():
    for mode in ("rounds", "continuous"):
        design, protocol = MatchQuality(mode=mode), ScoredRanking(size=3)
        progress = started(design, protocol)
        picks = [design.pick(progress, 3, "bob", np.random.default_rng(3)) for _ in range(3)]
        assert picks[0] == picks[1] == picks[2]
        assert progress.version == started(design, protocol).version


def test_a_changed_configuration_opens_a_new_round_with_what_is_known():
    design, protocol = MatchQuality(rounds=4), ScoredRanking(size=3)
    progress = started(design, protocol, n=12, tasks=2)
    variance_before = np.array(state_of(progress).model.state.variance)
    progress.on_config_change()
    pick = take(design, progress, protocol, "bob", (5,), answer=False)
    assert isinstance(pick, Pick)
    assert pick.round == 1
    assert variance_before.tolist() == state_of(progress).model.state.variance.tolist()


def test_picks_of_another_design_may_be_folded_before_the_configuration_changes():
    design, protocol = MatchQuality(rounds=9), ScoredRanking(size=3)
    progress = design.new_progress(protocol, make_items(9))
    for step, items in enumerate([(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 4, 8), (2, 5, 6)]):
        progress.on_leased("ann", items, step, 0, np.random.default_rng(step))
        progress.on_answered(items, step)
    progress.add_items(make_items(1, first=9))
    progress.on_leased("ann", (1, 5, 9), 5, 0, np.random.default_rng(8))
    progress.on_config_change()
    assert isinstance(take(design, progress, protocol, "ann", (3,)), Pick)


# Continuously


def test_the_next_head_is_the_least_certain_that_nobody_looks_at():
    design, protocol = MatchQuality(mode="continuous", rounds=30), ScoredRanking(size=3)
    progress = started(design, protocol, n=15, tasks=20, people=5)
    state = state_of(progress)
    out: set[int] = set()
    for step in range(3):
        variance = np.array(state.model.state.variance)
        variance[list(out)] = -1
        assert state.plan is not None
        assert next(state.plan.heads()) == int(variance.argmax())
        pick = take(design, progress, protocol, f"new-{step}", (1, step), answer=False)
        assert isinstance(pick, Pick)
        assert int(variance.argmax()) in pick.items
        out |= set(pick.items)


def test_an_answer_counts_for_the_very_next_task():
    design, protocol = MatchQuality(mode="continuous"), Direct()
    progress = design.new_progress(protocol, make_items(6))
    asked_sets = [take(design, progress, protocol, f"ann-{step}", (2, step)).items[0] for step in range(6)]
    assert sorted(asked_sets) == list(range(6))
    # A rating in the middle leaves a Beta wider than one at an end: 49/97 for item 5, 0 for item 0.
    assert take(design, progress, protocol, "bob", (3,)).items == (5,)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 9),
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from([0, 1, -1]), st.sampled_from([0, 50, 100])), max_size=120),
)
def test_heads_come_in_the_order_of_a_sort(n, steps):
    online_model, out = OnlineEasl(Direct(), 0.1, 0.1), [0] * n
    online_model.grow(n)
    plan = ContinuousHeads(online_model, out, np.random.default_rng(n))
    # While all are alike, the order is the one drawn for equals.
    priority = {target: place for place, target in enumerate(plan.heads())}
    for code, by, value in steps:
        target = code % n
        if out[target] + by >= 0:
            out[target] += by
            if by == 0:
                online_model.learn("j", {"item": target}, [Rating("item", value)])
            plan.on_change([target])
        key = [(out[target], -online_model.state.variance[target], priority[target]) for target in range(n)]
        assert list(plan.heads()) == sorted(range(n), key=key.__getitem__)
    assert len(plan._heap) <= 2 * n + 64


def test_items_that_join_come_first_in_the_continuous_mode():
    design, protocol = MatchQuality(mode="continuous", rounds=20), ScoredRanking(size=3)
    progress = started(design, protocol, n=9, tasks=12)
    progress.add_items(make_items(2, first=9))
    for step in range(2):
        pick = take(design, progress, protocol, "bob", (4, step), answer=False)
        assert isinstance(pick, Pick)
        assert {9, 10} & set(pick.items)


def test_both_modes_ask_as_many_tasks_in_all():
    for mode in ("rounds", "continuous"):
        design = MatchQuality(mode=mode, rounds=3, tasks_per_round=4)
        progress = design.new_progress(ScoredRanking(size=3), make_items(10))
        assert design.goal(progress, 3).total == 12
        done = 0
        while isinstance(take(design, progress, ScoredRanking(size=3), f"ann-{done % 5}", (done,)), Pick):
            done += 1
        assert done == 12


# Single items, and items met once


@pytest.mark.parametrize("mode", ["rounds", "continuous"])
def test_nobody_judges_a_single_item_twice_and_is_told_when_there_is_nothing_left(mode):
    design, protocol = MatchQuality(mode=mode, rounds=4), Direct()
    progress = design.new_progress(protocol, make_items(6))
    asked_sets = []
    for step in range(50):
        pick = take(design, progress, protocol, "ann", (step,))
        if isinstance(pick, NoTask):
            break
        asked_sets += pick.items
    assert sorted(asked_sets) == list(range(6))
    assert isinstance(pick, NoTask)
    assert (pick.reason, pick.complete) == ("You have judged every item.", False)


def test_items_are_met_once_where_the_study_says_so():
    design, protocol = MatchQuality(rounds=9, same_item_again=False), ScoredRanking(size=3)
    progress = design.new_progress(protocol, make_items(12))
    items_met = Counter()
    for step in range(40):
        annotator = f"ann-{step % 3}"
        pick = take(design, progress, protocol, annotator, (step,))
        if isinstance(pick, Pick):
            items_met.update((annotator, item) for item in pick.items)
    assert set(items_met.values()) == {1}
    assert len(items_met) > 3 * 12 * 0.7


# What goes together


@pytest.mark.parametrize(
    ("protocol", "models"),
    [
        (Direct(), {"easl"}),
        (Likert(), {"easl"}),
        (ScoredRanking(), {"easl", "bounded_ranking", "trueskill"}),
        (Pairwise(), {"bounded_ranking", "trueskill"}),
        (Ranking(), {"bounded_ranking", "trueskill"}),
        (BestWorst(), {"bounded_ranking", "trueskill"}),
        (Choice(labels=("yes", "no")), set()),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_protocols_whose_answers_the_model_cannot_use_are_refused_with_what_to_set(protocol, models):
    for model in ("easl", "bounded_ranking", "trueskill"):
        problems = MatchQuality(model=model).problems(protocol, 100)
        assert bool(problems) == (model not in models)
        for problem in problems:
            assert all(f'"{name}"' in problem.remedy for name in models)
            assert models or "per_item" in problem.remedy


def test_too_few_items_are_refused_and_just_enough_are_not():
    [problem] = MatchQuality().problems(ScoredRanking(size=5), 4)
    assert "5 items, but there are only 4" in problem.what
    assert MatchQuality().problems(ScoredRanking(size=5), 5) == []


def test_groups_cannot_be_met_just_once():
    [problem] = MatchQuality(by="group", same_item_again=False).problems(ScoredRanking(), 50)
    assert problem.field == "design.same_item_again"


@pytest.mark.slow
def test_the_compiler_is_loaded_only_when_a_whole_round_or_a_comparison_model_needs_it():
    code = (
        "import sys; from steelyard.designs import MatchQuality; from steelyard.protocols import ScoredRanking; "
        "assert not {'numba', 'scipy'} & set(sys.modules); MatchQuality().initial_state(ScoredRanking()); "
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
