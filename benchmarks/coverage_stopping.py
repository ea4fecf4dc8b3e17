"""How often and when a study stops, with and without adaptive sampling, over simulated studies.

The rule of `steelyard.quality.stopping` and the earlier one, which corrected each analysis by Bonferroni, see the same
judgments.

python -m benchmarks.coverage_stopping [STUDIES]
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from steelyard.models.comparisons.match_quality import match_quality
from steelyard.models.ratings.easl import BetaState
from steelyard.models.ratings.mean import Mean
from steelyard.observations import UNKNOWN, FloatArray, Index, Ratings
from steelyard.quality.stopping import StopRule, run_interim_analysis
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


Analysis = Callable[[StopRule, Ratings], bool]


def stops(rule: StopRule, ratings: Ratings) -> bool:
    """Run an interim analysis."""
    return run_interim_analysis(rule, 1, ratings, Mean()).reached


def stops_by_bonferroni(rule: StopRule, ratings: Ratings) -> bool:
    """Decide as the earlier rule did: each analysis at the level α/K, reliability as of a sample of items."""
    level = rule.alpha / rule.interim_analyses
    if rule.measure == "split_half":
        bound = split_half(ratings, level=1 - 2 * level)["split_half_spearman"].lower
        return bound is not None and bound >= rule.target
    if rule.measure == "interval_width":
        scores = Mean(level=1 - level).fit(ratings).scores
        widths = (scores["upper"] - scores["lower"]).to_numpy()
        return bool(np.isfinite(widths).all() and widths.mean() <= rule.target)
    scores = Mean().fit(ratings).scores.sort("score", descending=True)
    k = round(rule.target)
    score, sd = (scores[name].to_numpy().astype(float) for name in ("score", "sd"))
    if not np.isfinite(sd).all():
        return False
    z = (score[:k, None] - score[None, k:]) / np.sqrt(sd[:k, None] ** 2 + sd[None, k:] ** 2)
    degrees = np.maximum(scores["judgments"].to_numpy() - 1, 1)
    return float(stats.t.sf(z, np.minimum(degrees[:k, None], degrees[None, k:])).sum()) <= level


RULES: dict[str, Analysis] = {"Bonferroni": stops_by_bonferroni, "Pocock": stops}


def until_stopped(rule: StopRule, crowd: Crowd, adaptive: bool, rules: dict[str, Analysis]) -> dict[str, Ratings]:
    """Collect judgments until every rule has stopped the study; return the judgments of each at that point."""
    ratings: Ratings | None = None
    stopped: dict[str, Ratings] = {}
    for _ in range(rule.interim_analyses):
        ratings = joined(ratings, crowd.rate(more(ratings, adaptive, crowd.rng)))
        for name, analysis in rules.items():
            if name not in stopped and analysis(rule, ratings):
                stopped[name] = ratings
        if len(stopped) == len(rules):
            break
    return stopped


def wrong(rule: StopRule, ratings: Ratings, crowd: Crowd) -> bool:
    """Return whether stopping here was a mistake: other judgments of this size would miss the target on average."""
    if rule.measure == "top_k":
        k = round(rule.target)
        item_means = np.bincount(ratings.item, ratings.value, minlength=N_ITEMS) / np.bincount(ratings.item)
        return set(np.argsort(-item_means)[:k]) != set(np.argsort(-crowd.expected())[:k])
    samples = [crowd.rate(ratings.item.astype(np.int64)) for _ in range(8)]
    if rule.measure == "split_half":
        reliabilities = [
            split_half(sample, trials=10, seed=n)["split_half_spearman"].value or 0.0
            for n, sample in enumerate(samples)
        ]
        return float(np.mean(reliabilities)) < rule.target
    tables = [Mean().fit(sample).scores for sample in samples]
    return float(np.mean([(table["upper"] - table["lower"]).mean() for table in tables])) > rule.target


def covered(ratings: Ratings, crowd: Crowd) -> float:
    """Return the fraction of the 95 % intervals that contain the item's expected rating."""
    value = dict(zip(ratings.items.ids, crowd.expected(), strict=True))
    rows = Mean().fit(ratings).scores.select("item", "lower", "upper").rows()
    return float(np.mean([lower <= value[item] <= upper for item, lower, upper in rows]))


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


def main(studies: int = 200, measure: str = "") -> None:
    """Print the share of studies that stopped, after how many judgments, and how many should not have.

    A study that does not stop counts with all its judgments.
    """
    print(f"{studies} simulated studies a row; false stops should be 5 % at most")
    print(
        f"{'measure':16}{'target':>8}{'items':>8}{'sampling':>10}{'rule':>12}{'stopped':>9}{'judgments':>11}{'false':>8}"
        f"{'coverage':>10}"
    )
    for name, target, kind in SCENES:
        for adaptive in (False, True) if measure in ("", name) else ():
            rule = StopRule(name, target, interim_analyses=INTERIM_ANALYSES)  # type: ignore[arg-type]
            judgments: dict[str, list[int]] = {key: [] for key in RULES}
            false, n_stopped = Counter[str](), Counter[str]()
            coverage: dict[str, list[float]] = {key: [] for key in RULES}
            for seed in range(studies):
                rng = np.random.default_rng([seed, adaptive])
                crowd = Crowd(values(kind, rng), rng)
                stopped = until_stopped(rule, crowd, adaptive, RULES)
                for key in RULES:
                    judgments[key].append(len(stopped[key]) if key in stopped else PER_LOOK * INTERIM_ANALYSES)
                    if key in stopped:
                        n_stopped[key] += 1
                        false[key] += wrong(rule, stopped[key], crowd)
                        coverage[key].append(covered(stopped[key], crowd))
            how = "adaptive" if adaptive else "even"
            for key in RULES:
                inside = f"{np.mean(coverage[key]):.3f}" if coverage[key] else "–"
                print(
                    f"{name:16}{target:>8g}{kind:>8}{how:>10}{key:>12}{n_stopped[key] / studies:>9.0%}"
                    f"{np.mean(judgments[key]):>11.0f}{false[key] / studies:>8.1%}{inside:>10}",
                    flush=True,
                )


if __name__ == "__main__":
    main(*(int(argument) if argument.isdecimal() else argument for argument in sys.argv[1:]))  # type: ignore[arg-type]
