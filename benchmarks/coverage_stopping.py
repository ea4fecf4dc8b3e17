"""How often a study stops too soon, with and without adaptive sampling, over simulated studies.

python -m benchmarks.coverage_stopping [STUDIES]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.models.comparisons.match_quality import match_quality
from steelyard.models.ratings.easl import BetaState
from steelyard.models.ratings.mean import Mean
from steelyard.observations import UNKNOWN, FloatArray, Index, Ratings
from steelyard.quality.stopping import InterimAnalysis, StopRule, run_interim_analysis
from steelyard.reliability import split_half

N_ITEMS, PER_LOOK, INTERIM_ANALYSES, NOISE, PEOPLE = 40, 120, 10, 0.2, 30
Ints = NDArray[np.int64]


@dataclass
class Crowd:
    """Items with true values, and people who rate them with noise."""

    truth: FloatArray
    rng: np.random.Generator

    def rate(self, item: Ints) -> Ratings:
        """Return one rating for every item named."""
        value = np.clip(self.truth[item] + self.rng.normal(0, NOISE, len(item)), 0, 1)
        annotator = self.rng.integers(0, PEOPLE, len(item)).astype(np.int32)
        return Ratings(
            items=Index(f"i{n}" for n in range(len(self.truth))),
            annotators=Index(f"a{n}" for n in range(PEOPLE)),
            tasks=Index(),
            annotator=annotator,
            task=np.full(len(item), UNKNOWN, np.int32),
            item=item.astype(np.int32),
            value=value,
            scale=(0, 1),
        )

    def expected(self) -> FloatArray:
        """Return what the ratings of each item average to, in the long run."""
        noise = np.random.default_rng(1).normal(0, NOISE, 20_000)
        return np.array([np.clip(value + noise, 0, 1).mean() for value in self.truth])


def more(ratings: Ratings | None, adaptive: bool, rng: np.random.Generator) -> Ints:
    """Choose what is rated next: every item alike, or by variance and match quality as Algorithm 1 does."""
    if ratings is None or not adaptive:
        return np.tile(np.arange(N_ITEMS), PER_LOOK // N_ITEMS)
    value = np.bincount(ratings.item, ratings.value, minlength=N_ITEMS)
    count = np.bincount(ratings.item, minlength=N_ITEMS).astype(float)
    state = BetaState(1.0 + value.astype(float), 1.0 + count - value)
    heads = np.argsort(-state.variance + 1e-9 * rng.random(N_ITEMS))[: N_ITEMS // 5]
    chosen: list[int] = []
    while len(chosen) < PER_LOOK:
        head = int(rng.choice(heads))
        others = np.setdiff1d(np.arange(N_ITEMS), heads)
        quality = match_quality(state, head, others, 0.1)
        chosen += [head, *rng.choice(others, 4, replace=False, p=quality / quality.sum()).tolist()]
    return np.array(chosen[:PER_LOOK])


def joined(first: Ratings | None, second: Ratings) -> Ratings:
    """Put two sets of ratings together."""
    if first is None:
        return second
    return Ratings(
        items=second.items,
        annotators=second.annotators,
        tasks=second.tasks,
        annotator=np.concatenate([first.annotator, second.annotator]),
        task=np.concatenate([first.task, second.task]),
        item=np.concatenate([first.item, second.item]),
        value=np.concatenate([first.value, second.value]),
        scale=(0, 1),
    )


def until_stopped(rule: StopRule, crowd: Crowd, adaptive: bool) -> tuple[InterimAnalysis, Ratings] | None:
    """Collect judgments until an interim analysis stops the study."""
    ratings: Ratings | None = None
    for number in range(1, rule.interim_analyses + 1):
        ratings = joined(ratings, crowd.rate(more(ratings, adaptive, crowd.rng)))
        analysis = run_interim_analysis(rule, number, ratings, Mean())
        if analysis.reached:
            return analysis, ratings
    return None


def wrong(rule: StopRule, ratings: Ratings, crowd: Crowd) -> bool:
    """Say whether stopping here was a mistake."""
    if rule.measure == "split_half":
        again = [crowd.rate(ratings.item.astype(np.int64)) for _ in range(8)]
        values = [
            split_half(sample, trials=10, seed=n)["split_half_spearman"].value or 0.0 for n, sample in enumerate(again)
        ]
        return float(np.mean(values)) < rule.target
    truth = crowd.expected()
    if rule.measure == "top_k":
        k = round(rule.target)
        item_means = np.bincount(ratings.item, ratings.value, minlength=N_ITEMS) / np.bincount(ratings.item)
        return set(np.argsort(-item_means)[:k]) != set(np.argsort(-truth)[:k])
    scores = Mean(level=1 - rule.alpha_per_analysis).fit(ratings).scores
    value = dict(zip(ratings.items.ids, truth, strict=True))
    inside = [lower <= value[item] <= upper for item, lower, upper in scores.select("item", "lower", "upper").rows()]
    return float(np.mean(inside)) < 0.95


def values(kind: str, rng: np.random.Generator) -> FloatArray:
    """Draw the items' true values; `gap` sets the top five apart by that much."""
    if kind == "even":
        return rng.beta(2, 2, N_ITEMS)
    gap = float(kind)
    return np.concatenate([rng.uniform(0.5 + gap, 0.95, 5), rng.uniform(0.05, 0.5, N_ITEMS - 5)])


SCENES = [
    ("split_half", 0.6, "even"),
    ("split_half", 0.75, "even"),
    ("split_half", 0.85, "even"),
    ("interval_width", 0.25, "even"),
    ("interval_width", 0.4, "even"),
    ("top_k", 5, "even"),
    ("top_k", 5, "0.0"),
    ("top_k", 5, "0.05"),
    ("top_k", 5, "0.2"),
]


def main(studies: int = 200) -> None:
    """Print the share of studies that stopped, when, and how many should not have."""
    print(f"{studies} simulated studies a row; false stops should be 5 % at most")
    print(f"{'measure':16}{'target':>8}{'items':>8}{'sampling':>10}{'stopped':>10}{'analysis':>9}{'false':>8}")
    for measure, target, kind in SCENES:
        for adaptive in (False, True):
            numbers, false = [], 0
            rule = StopRule(measure, target, interim_analyses=INTERIM_ANALYSES)  # type: ignore[arg-type]
            for seed in range(studies):
                rng = np.random.default_rng([seed, adaptive])
                crowd = Crowd(values(kind, rng), rng)
                stopped = until_stopped(rule, crowd, adaptive)
                if stopped is not None:
                    numbers.append(stopped[0].number)
                    false += wrong(rule, stopped[1], crowd)
            at = f"{np.mean(numbers):.1f}" if numbers else "–"
            how = "adaptive" if adaptive else "even"
            share = len(numbers) / studies
            print(f"{measure:16}{target:>8g}{kind:>8}{how:>10}{share:>10.0%}{at:>9}{false / studies:>8.1%}", flush=True)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
