"""Time the designs: how fast tasks are planned and picked, and in how much memory.

Run: python benchmarks/bench_designs.py
With `gain` instead (two minutes): what asking by match quality is worth, in simulated studies.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from steelyard.designs import AllPairs, BalancedTuples, Design, MatchQuality, NoTask, RandomTuples
from steelyard.designs.balancing import plan_tuples, repeated_pairs
from steelyard.designs.base import generator_for
from steelyard.designs.match_quality.selection import sample_round
from steelyard.designs.state import AnswerNotice
from steelyard.models.comparisons.match_quality import Located
from steelyard.models.comparisons.trueskill import SkillState, TrueSkill
from steelyard.models.ratings.easl import EASL, BetaState
from steelyard.observations import Comparisons, FloatArray, Index
from steelyard.protocols import BestWorst, Pairwise, Protocol, ScoredRanking
from steelyard.records import Item
from steelyard.simulate import answer_for


def rated(n: int, rng: np.random.Generator) -> BetaState:
    """Return the state of items of which each has some six ratings, one third of the way through a study."""
    times = rng.poisson(6, n)
    total = times * rng.beta(2, 2, n)
    return BetaState(1 + total, 1 + times - total)


def one_round() -> None:
    """Time a whole round of Algorithm 1, n = 5, on states from flat to far apart."""
    rng = np.random.default_rng(0)
    sample_round(rated(100, rng), 5, 0.1, rng)
    print("match_quality: one whole round, n = 5")
    for n in (10_000, 100_000, 1_000_000):
        states: dict[str, Located] = {
            "easl, nothing known": BetaState(np.ones(n), np.ones(n)),
            "easl, six ratings": rated(n, rng),
            "trueskill, sd 0.14 of 1": SkillState(rng.normal(size=n), np.full(n, 0.02)),
        }
        for name, state in states.items():
            began = time.perf_counter()
            tasks = sample_round(state, 5, 0.1, rng)
            seconds = time.perf_counter() - began
            tracemalloc.start()
            sample_round(state, 5, 0.1, rng)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            print(
                f"  {n:>9,} items  {name:24} {len(tasks):>7,} tasks in {seconds:6.3f} s, "
                f"{peak / 1e6:6.1f} MB ({peak / n:.0f} bytes an item)"
            )


def match_quality_picks(tasks: int = 2000) -> None:
    """Time tasks picked one by one and answered, as a study does it, without its database."""
    protocol = ScoredRanking(size=5)
    print("match_quality: tasks picked, taken in and learnt one by one")
    for n in (500, 10_000, 1_000_000):
        items = [Item(f"i{number}", "") for number in range(n)]
        for mode in ("rounds", "continuous"):
            design = MatchQuality(mode=mode, rounds=30)
            progress = design.new_progress(protocol, items)
            answers = np.random.default_rng(0).integers(0, 101, (tasks + 1, 5)).astype(float)
            picking = opening = 0.0
            for step in range(tasks + 1):
                annotator = f"ann-{step % 50}"
                began = time.perf_counter()
                pick = design.pick(progress, 5, annotator, generator_for(0, 0, step))
                spent = time.perf_counter() - began
                if isinstance(pick, NoTask):
                    break
                progress.on_leased(annotator, pick.items, pick.slot, pick.round, generator_for(0, 0, step))
                ids = [items[code].id for code in pick.items]
                observations = protocol.observations(ids, dict(zip(ids, answers[step].tolist(), strict=True)))
                progress.on_answered(pick.items, pick.slot)
                progress.notify_answer(AnswerNotice(str(step), annotator, pick.items, observations))
                if step == 0:
                    opening, after_first = spent, time.perf_counter()
                else:
                    picking += spent
            whole = time.perf_counter() - after_first
            print(
                f"  {n:>9,} items  {mode:10} {tasks / picking:7,.0f} picks/s, {tasks / whole:7,.0f} tasks/s with "
                f"answers; the first pick {opening:.3f} s"
            )


def balanced_tuples_plan() -> None:
    """Time the plan of 2N 4-tuples, and say how often pairs recur in it."""
    rng = np.random.default_rng(0)
    plan_tuples(30, 60, 4, (), rng)
    print("balanced_tuples: a plan of 2N 4-tuples; share of pairs that were together before, and the least possible")
    for n in (13, 25, 30, 100, 1_000, 10_000, 100_000):
        began = time.perf_counter()
        rows = plan_tuples(n, 2 * n, 4, (), rng)
        seconds = time.perf_counter() - began
        showings = np.bincount(rows.ravel(), minlength=n)
        share, least = repeated_pairs(rows, n)
        print(
            f"  {n:>9,} items  {seconds:6.3f} s, each in {showings.min()} to {showings.max()} tuples, pairs again "
            f"{share:.4f} (least {least:.4f})"
        )


def planned_picks(n: int = 100_000, tasks: int = 2000) -> None:
    """Time the first pick, which makes the plan, and those after it."""
    print(f"balanced_tuples and all_pairs: {n:,} items, tasks picked and taken in one by one")
    items = [Item(f"i{number}", "") for number in range(n)]
    protocols: list[tuple[Design, Protocol]] = [(BalancedTuples(), BestWorst()), (AllPairs(), Pairwise())]
    for design, protocol in protocols:
        progress = design.new_progress(protocol, items)
        times = []
        for step in range(tasks + 1):
            annotator = f"ann-{step % 50}"
            began = time.perf_counter()
            pick = design.pick(progress, protocol.task_size, annotator, generator_for(0, 0, step))
            if isinstance(pick, NoTask):
                break
            progress.on_leased(annotator, pick.items, pick.slot, pick.round, generator_for(0, 0, step))
            times.append(time.perf_counter() - began)
        total = design.goal(progress, protocol.task_size).total
        print(
            f"  {design.name:16} {total:>13,} judgments in all; the first pick {times[0]:.3f} s, then "
            f"{1 / float(np.mean(times[1:])):7,.0f} picks/s"
        )


def match_quality_gain(studies: int = 12) -> None:
    """Print Spearman's ρ with the truth at three stages of a study of 150 items, by design."""
    for noise in (0.15, 0.3):
        for protocol, asked, stages in (
            (ScoredRanking(size=5), MatchQuality(rounds=10), (60, 150, 300)),
            (Pairwise(ties=False), MatchQuality(rounds=20, model="trueskill", epsilon=0.0), (300, 750, 1500)),
        ):
            designs = {
                "random_tuples": RandomTuples(judgments=asked.rounds),
                "by rounds": asked,
                "continuously": replace(asked, mode="continuous"),
            }
            print(f"{protocol.name}, noise {noise}, after {stages} tasks")
            for name, design in designs.items():
                results = np.array([correlations(design, protocol, stages, seed, noise) for seed in range(studies)])
                error = results.std(axis=0, ddof=1) / studies**0.5
                print(f"  {name:14} {results.mean(axis=0).round(3)} (standard errors {error.round(3)})")


def correlations(
    design: Design, protocol: Protocol, stages: tuple[int, ...], seed: int, noise: float, n: int = 150
) -> list[float]:
    """Run one study; people perceive an item's value with normal noise, whatever stands beside it."""
    rng = np.random.default_rng(seed)
    items = [Item(f"i{number}", "") for number in range(n)]
    truth = rng.beta(1.5, 1.5, n)
    progress = design.new_progress(protocol, items)
    tuples: list[tuple[int, ...]] = []
    perceived: list[list[float]] = []
    results = []
    while len(tuples) < stages[-1]:
        step, annotator = len(tuples), f"ann-{len(tuples) % 40}"
        pick = design.pick(progress, protocol.task_size, annotator, generator_for(seed, 0, step))
        if isinstance(pick, NoTask):
            break
        progress.on_leased(annotator, pick.items, pick.slot, pick.round, generator_for(seed, 0, step))
        tuples.append(pick.items)
        values = truth[list(pick.items)] + rng.normal(0, noise, protocol.task_size)
        perceived.append(values.tolist())
        ids = [items[code].id for code in pick.items]
        observations = protocol.observations(ids, answer_for(protocol, dict(zip(ids, perceived[-1], strict=True)), 0.0))
        progress.on_answered(pick.items, pick.slot)
        progress.notify_answer(AnswerNotice(str(step), annotator, pick.items, observations))
        if len(tuples) in stages:
            results.append(float(stats.spearmanr(scored(np.array(tuples), np.array(perceived), n), truth).statistic))
    return results


def scored(shown: NDArray[np.int64], perceived: FloatArray, n: int) -> FloatArray:
    """Score ratings by EASL's mode, pairs by TrueSkill's mean."""
    if shown.shape[1] > 2:
        return EASL().update(EASL().start(n), shown.astype(np.int32).ravel(), perceived.clip(0, 1).ravel()).mode
    model = TrueSkill(gamma=0.3, epsilon=0.0)
    pairs = Comparisons(
        items=Index(map(str, range(n))),
        left=shown[:, 0].astype(np.int32),
        right=shown[:, 1].astype(np.int32),
        outcome=np.sign(perceived[:, 0] - perceived[:, 1]).astype(np.int8),
    )
    return model.update(model.start(n), pairs).mu


def main() -> None:
    """Run all of them, or the one about what is gained."""
    if sys.argv[1:] == ["gain"]:
        match_quality_gain()
        return
    one_round()
    match_quality_picks()
    balanced_tuples_plan()
    planned_picks()


if __name__ == "__main__":
    main()
