"""Measure how often 95 % intervals of the reliability figures cover their expectation, over simulated studies.

Run: python benchmarks/coverage_reliability.py [studies]
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from steelyard.observations import Choices, Comparisons, FloatArray, Index, Ratings
from steelyard.reliability import (
    Statistic,
    compare_scorings,
    cycle_consistency,
    position_bias,
    scale_separation,
    self_consistency,
    split_half,
)

TRUTH = 600
TRIALS = 20

Study = Callable[[np.random.Generator], list[Statistic]]


def index(count: int, letter: str) -> Index:
    """Name so many things."""
    return Index(f"{letter}{number}" for number in range(count))


def ratings(rng: np.random.Generator, items: int, each: int, noise: float) -> list[Statistic]:
    """Simulate ratings with normal noise, items anew in each study."""
    item = np.repeat(np.arange(items), each).astype(np.int32)
    value = np.clip(50 + 5 * (rng.normal(size=items)[item] + noise * rng.normal(size=len(item))), 0, 100)
    observed = Ratings(items=index(items, "i"), item=item, value=value, scale=(0.0, 100.0))
    statistics = split_half(observed, trials=TRIALS)
    return [
        statistics["split_half_spearman"],
        statistics["split_half_pearson"],
        statistics["split_half_pearson_corrected"],
    ]


def fixed_items(
    rng: np.random.Generator, quality: FloatArray, annotators: int, each: int, noise: float
) -> list[Statistic]:
    """Simulate ratings of the same items by new annotators, with biases and noise of their own."""
    item = np.repeat(np.arange(len(quality)), each)
    person = np.concatenate([rng.choice(annotators, each, replace=False) for _ in quality])
    bias, sd = 0.5 * rng.normal(size=annotators), noise * np.exp(0.3 * rng.normal(size=annotators))
    value = np.clip(50 + 8 * (quality[item] + bias[person] + sd[person] * rng.normal(size=len(item))), 0, 100)
    observed = Ratings(
        items=index(len(quality), "i"),
        item=item.astype(np.int32),
        annotators=index(annotators, "w"),
        annotator=person.astype(np.int32),
        value=value,
        scale=(0.0, 100.0),
    )
    return [split_half(observed, fixed_items=True, trials=TRIALS)["split_half_spearman_fixed_items"]]


def choices(rng: np.random.Generator, items: int, each: int) -> list[Statistic]:
    """Simulate best–worst choices over 2N tuples of four."""
    quality = rng.normal(size=items)
    tuples = np.concatenate([rng.permutation(items).reshape(-1, 4) for _ in range(8)]).astype(np.int32)
    tuples_shown = np.repeat(tuples, each, axis=0)
    felt = quality[tuples_shown] + rng.gumbel(size=tuples_shown.shape)
    rows = np.arange(len(tuples_shown))
    best, worst = tuples_shown[rows, felt.argmax(axis=1)], tuples_shown[rows, felt.argmin(axis=1)]
    result = split_half(Choices(items=index(items, "i"), shown=tuples_shown, best=best, worst=worst), trials=TRIALS)
    return [result["split_half_spearman"], result["split_half_pearson"], result["split_half_pearson_corrected"]]


def repeats(rng: np.random.Generator, people: int, each: int) -> list[Statistic]:
    """Simulate annotators with their own noise who rate items twice, on a scale of nine."""
    noise = rng.gamma(4, 0.25, people)
    person = np.repeat(np.arange(people), 2 * each).astype(np.int32)
    item = np.tile(np.repeat(np.arange(each), 2), people).astype(np.int32)
    felt = (
        4
        + 2 * rng.normal(size=people * each)[np.arange(len(person)) // 2]
        + noise[person] * rng.normal(size=len(person))
    )
    observed = Ratings(
        items=index(each, "i"),
        annotators=index(people, "w"),
        annotator=person,
        item=item,
        value=np.clip(np.rint(felt), 0, 8),
        scale=(0.0, 8.0),
    )
    result = self_consistency(observed)
    return [result["inconsistency_rate"], result["difference_of_repeats"], result["correlation_of_repeats"]]


def graphs(rng: np.random.Generator, people: int, each: int) -> list[Statistic]:
    """Simulate annotators who each compare all pairs of five items, in several tasks, with a liking for the left."""
    left, right = np.triu_indices(5, 1)
    tasks = people * each
    swap = rng.random((tasks, 10)) < 0.5
    quality = rng.normal(size=(tasks, 5))
    sharp, habit = rng.gamma(4, 0.6, people), 0.3 * rng.normal(size=people)
    person = np.repeat(np.arange(people), each)
    a, b = np.where(swap, right, left), np.where(swap, left, right)
    rows = np.arange(tasks)[:, None]
    felt = sharp[person][:, None] * (quality[rows, a] - quality[rows, b]) + habit[person][:, None]
    observed = Comparisons(
        items=index(5, "i"),
        annotators=index(people, "w"),
        annotator=np.repeat(person, 10).astype(np.int32),
        tasks=index(tasks, "t"),
        task=np.repeat(np.arange(tasks), 10).astype(np.int32),
        left=a.ravel().astype(np.int32),
        right=b.ravel().astype(np.int32),
        outcome=np.where(rng.logistic(size=felt.shape) < felt, 1, -1).ravel().astype(np.int8),
    )
    result = cycle_consistency(observed)
    return [*result.statistics, position_bias(observed).statistic]


def judged(theta: FloatArray, judges: int, each: int, rng: np.random.Generator) -> list[Statistic]:
    """Simulate comparative judgement of the same items by new judges, each with some taste of their own."""
    n = len(theta)
    left = rng.integers(0, n, judges * each)
    right = (left + rng.integers(1, n, judges * each)) % n
    judge = np.repeat(np.arange(judges), each)
    taste = theta + 0.5 * rng.normal(size=(judges, n))
    wins = rng.random(judges * each) < 1 / (1 + np.exp(taste[judge, right] - taste[judge, left]))
    observed = Comparisons(
        items=index(n, "i"),
        annotators=index(judges, "w"),
        annotator=judge.astype(np.int32),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=np.where(wins, 1, -1).astype(np.int8),
    )
    return [scale_separation(observed)["scale_separation_reliability"]]


def scorings(rng: np.random.Generator, items: int) -> list[Statistic]:
    """Simulate two scorings of the same items on a fixed scale."""
    quality = rng.normal(size=items)
    first, second = (
        {f"i{number}": float(x) for number, x in enumerate(quality + 0.5 * rng.normal(size=items))} for _ in range(2)
    )
    result = compare_scorings(first, second)
    return [result["spearman"], result["pearson"], result["mean_rank_difference"]]


def coverage(study: Study, studies: int, rng: np.random.Generator) -> list[tuple[str, float, float, int]]:
    """Return each figure's name, expectation, coverage and number of studies with an interval."""
    values: dict[str, list[float]] = {}
    for _ in range(TRUTH):
        for figure in study(rng):
            if figure.value is not None:
                values.setdefault(figure.key, []).append(figure.value)
    hits: dict[str, list[bool]] = {name: [] for name in values}
    for _ in range(studies):
        for figure in study(rng):
            if figure.lower is not None and figure.upper is not None:
                truth = float(np.mean(values[figure.key]))
                hits[figure.key].append(figure.lower <= truth <= figure.upper)
    return [
        (name, float(np.mean(values[name])), float(np.mean(hit)) if hit else float("nan"), len(hit))
        for name, hit in hits.items()
    ]


def main(studies: int = 200) -> None:
    """Print one line for each figure of each design."""
    quality = np.random.default_rng(1).normal(size=200)
    theta = 1.5 * np.random.default_rng(1).normal(size=40)
    designs: dict[str, Study] = {
        "split-half, 20 items × 4 ratings": lambda rng: ratings(rng, 20, 4, 1.4),
        "split-half, 60 items × 4 ratings": lambda rng: ratings(rng, 60, 4, 1.4),
        "split-half, 200 items × 10 ratings": lambda rng: ratings(rng, 200, 10, 1.0),
        "split-half, 40 items, 80 tuples × 4": lambda rng: choices(rng, 40, 4),
        "split-half, 200 items, 400 tuples × 8": lambda rng: choices(rng, 200, 8),
        "fixed items, 20 × 4 ratings of 30 annotators": lambda rng: fixed_items(rng, quality[:20], 30, 4, 1.4),
        "fixed items, 60 × 4 ratings of 40 annotators": lambda rng: fixed_items(rng, quality[:60], 40, 4, 1.4),
        "fixed items, 60 × 3 ratings of 3 annotators": lambda rng: fixed_items(rng, quality[:60], 3, 3, 1.0),
        "fixed items, 60 × 5 ratings of 5 annotators": lambda rng: fixed_items(rng, quality[:60], 5, 5, 1.0),
        "fixed items, 60 × 10 ratings of 10 annotators": lambda rng: fixed_items(rng, quality[:60], 10, 10, 1.0),
        "fixed items, 200 × 10 ratings of 100 annotators": lambda rng: fixed_items(rng, quality, 100, 10, 1.0),
        "repeats, 10 annotators × 20": lambda rng: repeats(rng, 10, 20),
        "repeats, 40 annotators × 10": lambda rng: repeats(rng, 40, 10),
        "cycles, 12 annotators × 10 graphs": lambda rng: graphs(rng, 12, 10),
        "cycles, 40 annotators × 10 graphs": lambda rng: graphs(rng, 40, 10),
        "SSR, 20 items, 10 judges × 40": lambda rng: judged(theta[:20], 10, 40, rng),
        "SSR, 40 items, 30 judges × 40": lambda rng: judged(theta, 30, 40, rng),
        "scorings, 30 items": lambda rng: scorings(rng, 30),
        "scorings, 200 items": lambda rng: scorings(rng, 200),
    }
    for name, study in designs.items():
        print(name, flush=True)
        for figure, truth, share, count in coverage(study, studies, np.random.default_rng(0)):
            print(f"  {figure:38} expected {truth:7.3f}   covered {share:.3f} of {count}", flush=True)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
