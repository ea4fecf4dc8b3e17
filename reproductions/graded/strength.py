"""Comparisons needed with and without the strength of preferences, recorded and simulated."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import numpy as np
import polars as pl
from scipy import special
from scipy.stats import rankdata

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.charts import curves
from steelyard.errors import SteelyardWarning
from steelyard.formats import read_judgments, read_table
from steelyard.models.comparisons.cumulative_link import CumulativeLink
from steelyard.models.inference.newton import maximise
from steelyard.observations import Comparisons, FloatArray, Index
from steelyard.report.charts import Chart

VOTES = "tulu_graded/votes.csv.gz"
HELD_OUT = 550
"""Recorded votes that the reference scores come from."""
RECORDED_BUDGETS = (40, 60, 80, 120, 160, 240, 320, 480)
BUDGETS = (3, 4, 6, 8, 12, 16, 24)
"""Comparisons per simulated item."""
CUTS = {5: (0.5, 1.8), 7: (0.5, 1.3, 2.3)}
"""Thresholds of simulated annotators, in units of logistic noise: about those of the recorded votes."""
ITEM_SD, NOISE_SD = 1.5, 1.7
"""Sd of the simulated scores, and of Gaussian noise that resembles logistic noise of scale 1."""
WAYS = ("without strength", "with strength", "shuffled strength")


class Crowd(NamedTuple):
    """A kind of simulated annotators: number of steps, noise, sd of their log thresholds, and random strengths."""

    name: str
    steps: int
    is_gaussian: bool = False
    threshold_sd: float = 0.0
    random_strengths: float = 0.0


CROWDS = (
    Crowd("5 steps, logistic noise", 5),
    Crowd("7 steps, logistic noise", 7),
    Crowd("5 steps, Gaussian noise", 5, is_gaussian=True),
    Crowd("7 steps, Gaussian noise", 7, is_gaussian=True),
    Crowd("7 steps, annotators' thresholds differ (sd 0.4 of their logs)", 7, threshold_sd=0.4),
    Crowd("7 steps, half of the strengths random", 7, random_strengths=0.5),
)


@dataclass(frozen=True, slots=True)
class Strength(Experiment):
    """Score growing parts of the same votes with and without strengths, and with strengths shuffled."""

    name: ClassVar[str] = "graded.strength"
    paper: ClassVar[str] = "Steelyard's own"
    title: ClassVar[str] = "Strength of preferences: comparisons needed at equal correlation"
    data: ClassVar[tuple[str, ...]] = (VOTES,)

    splits: int = 400
    trials: int = 60
    items: int = 40
    seed: int = 0

    def small(self) -> Self:
        """Return a few splits and trials."""
        return replace(self, splits=4, trials=2, items=15)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Go over the recorded votes, then over the simulated crowds."""
        rng = np.random.default_rng(self.seed)
        votes = read_judgments(data / VOTES, columns={"left": "model_a", "right": "model_b"}).observations
        if not isinstance(votes, Comparisons):
            raise TypeError("the recorded votes are not comparisons.")
        total = self.splits + self.trials * len(CROWDS)
        rows, claims = [], []
        recorded = [
            _step(progress, number + 1, total, lambda: _recorded_split(votes, rng)) for number in range(self.splits)
        ]
        sets: list[tuple[str, tuple[int, ...], list[FloatArray]]] = [("recorded votes", RECORDED_BUDGETS, recorded)]
        for place, crowd in enumerate(CROWDS):
            done = self.splits + place * self.trials
            trials = [
                _step(progress, done + number + 1, total, lambda crowd=crowd: _trial(crowd, self.items, rng))  # type: ignore[misc]
                for number in range(self.trials)
            ]
            sets.append((f"simulated, {crowd.name}", BUDGETS, trials))
        for name, budgets, results in sets:
            curves = np.stack(results)
            claims += _claims(name, budgets, curves, rng)
            for way, mean, error in zip(WAYS, curves.mean(axis=0), _standard_error(curves), strict=True):
                rows += [
                    {"data": name, "scores": way, "comparisons": budget, "correlation": r, "standard_error": se}
                    for budget, r, se in zip(budgets, mean, error, strict=True)
                ]
        claims.insert(1, _two_votes(data, rng))
        claims += [
            Claim(
                f"{crowd.name}: needed by Fisher information",
                100 * information_ratio(crowd),
                unit="%",
            )
            for crowd in CROWDS
            if not crowd.threshold_sd and not crowd.random_strengths
        ]
        table = pl.DataFrame(rows)
        return Outcome(tuple(claims), table, lambda: _chart(table), NOTES)


NOTES = (
    "the recorded data are 1,150 votes in five grades on four systems (Wang et al., 2023). Increasing numbers of votes "
    f"are scored, and the four scores are correlated with those of {HELD_OUT} other votes, without strengths.",
    "simulated items are N(0, 1.5²), compared in random pairs by 20 annotators; ties are used with and without "
    "strengths. The scores are correlated with the true scores.",
    "the comparisons needed with strengths are divided by those needed without strengths, at equal mean correlation, "
    "averaged over the correlations that both reach. Intervals come from a bootstrap over splits or trials.",
    "strengths are used with the default settings: they are ignored if they are unrelated to the scores. Shuffled "
    "strengths are permuted among the votes for the same side.",
)


def _chart(table: pl.DataFrame) -> Chart:
    ends = 1.96 * pl.col("standard_error")
    banded = table.with_columns(
        (pl.col("correlation") - ends).alias("lower"), (pl.col("correlation") + ends).alias("upper")
    )
    panels = {
        "recorded votes": "recorded votes",
        f"simulated, {CROWDS[0].name}": "simulated, 5 steps",
        f"simulated, {CROWDS[1].name}": "simulated, 7 steps",
    }
    return curves(
        banded.filter(pl.col("data").is_in(list(panels))).with_columns(pl.col("data").replace(panels)),
        "comparisons",
        "correlation",
        "scores",
        title="Correlation by number of comparisons",
        subtitle="comparisons in total (recorded votes) or per item (simulated)",
        x_title="comparisons",
        y_title="correlation",
        facet="data",
    )


def _step(progress: Progress, done: int, total: int, work: Callable[[], FloatArray]) -> FloatArray:
    result = work()
    progress(done, total)
    return result


def _scores(comparisons: Comparisons, strength: str) -> FloatArray:
    """Return the scores; 0 for items that were not compared."""
    model = CumulativeLink(strength=strength)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SteelyardWarning)
        ready = model._prepare(comparisons)
    theta = np.zeros(len(comparisons.items))
    theta[ready.items] = maximise(ready.likelihood, prior_sd=model.prior_sd, tolerance=1e-4).theta
    return theta


def _shuffled(comparisons: Comparisons, rng: np.random.Generator) -> Comparisons:
    strength = comparisons.strength.copy()
    for side in (1, -1):
        is_side = comparisons.outcome == side
        strength[is_side] = rng.permutation(strength[is_side])
    return replace(comparisons, strength=strength)


def _three_ways(comparisons: Comparisons, rng: np.random.Generator) -> Iterator[FloatArray]:
    yield _scores(comparisons, "ignore")
    yield _scores(comparisons, "auto")
    yield _scores(_shuffled(comparisons, rng), "auto")


def _recorded_split(votes: Comparisons, rng: np.random.Generator) -> FloatArray:
    """Return correlations with held-out votes: ways × budgets."""
    order = rng.permutation(len(votes))
    reference = _scores(votes.subset(order[-HELD_OUT:]), "ignore")
    curves = [
        [np.corrcoef(theta, reference)[0, 1] for theta in _three_ways(votes.subset(order[:budget]), rng)]
        for budget in RECORDED_BUDGETS
    ]
    return np.array(curves).T


def _trial(crowd: Crowd, n_items: int, rng: np.random.Generator) -> FloatArray:
    """Return rank correlations with the true scores: ways × budgets."""
    truth = rng.normal(0, ITEM_SD, n_items)
    rows = n_items * BUDGETS[-1] // 2
    left = rng.integers(0, n_items, rows)
    right = (left + rng.integers(1, n_items, rows)) % n_items
    noise = rng.normal(0, NOISE_SD, rows) if crowd.is_gaussian else rng.logistic(size=rows)
    response = truth[left] - truth[right] + noise
    annotator = rng.integers(0, 20, rows)
    factor = np.exp(crowd.threshold_sd * rng.standard_normal(20))[annotator]
    cuts = np.array(CUTS[crowd.steps])[:, None] * factor
    outcome = np.where(np.abs(response) < cuts[0], 0, np.sign(response)).astype(np.int8)
    strength = 1 + (np.abs(response) > cuts[1:]).sum(axis=0)
    is_random = rng.random(rows) < crowd.random_strengths
    strength = np.where(is_random, rng.integers(1, len(cuts) + 1, rows), strength)
    whole = Comparisons(
        items=Index(map(str, range(n_items))),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=outcome,
        strength=np.where(outcome == 0, 0, strength).astype(np.int8),
    )
    ranks = rankdata(truth)
    curves = []
    for budget in BUDGETS:
        part = whole.subset(np.arange(n_items * budget // 2))
        curves.append([np.corrcoef(rankdata(theta), ranks)[0, 1] for theta in _three_ways(part, rng)])
    return np.array(curves).T


def information_ratio(crowd: Crowd) -> float:
    """Return the information of answers without strengths over that of graded ones, averaged over random pairs."""
    d = np.linspace(-8, 8, 801)
    weight = np.exp(-0.25 * (d / ITEM_SD) ** 2)

    def information(cuts: FloatArray) -> float:
        ends = np.concatenate([[-np.inf], -cuts[::-1], cuts, [np.inf]])
        distance = ends[:, None] - d
        below = special.ndtr(distance / NOISE_SD) if crowd.is_gaussian else special.expit(distance)
        probability = np.diff(below, axis=0)
        slope = np.gradient(probability, d, axis=1)
        return float(((slope**2 / np.maximum(probability, 1e-300)).sum(axis=0) * weight).sum())

    cuts = np.array(CUTS[crowd.steps])
    return information(cuts[:1]) / information(cuts)


def _standard_error(curves: FloatArray) -> FloatArray:
    return np.asarray(curves.std(axis=0, ddof=1) / np.sqrt(len(curves)))


def comparisons_needed(budgets: tuple[int, ...], without: FloatArray, with_strength: FloatArray) -> float:
    """Return the mean ratio of comparisons at equal correlation, over the range that both curves reach."""
    low, high = max(without[0], with_strength[0]), min(without[-1], with_strength[-1])
    targets = np.linspace(low, high, 20)
    log_budget = np.log(budgets)
    needed = [np.interp(targets, np.maximum.accumulate(curve), log_budget) for curve in (with_strength, without)]
    return float(np.exp((needed[0] - needed[1]).mean()))


def _claims(name: str, budgets: tuple[int, ...], curves: FloatArray, rng: np.random.Generator) -> list[Claim]:
    def ratio(rows: FloatArray) -> float:
        mean = rows.mean(axis=0)
        return 100 * comparisons_needed(budgets, mean[0], mean[1])

    resamples = [ratio(curves[rng.integers(0, len(curves), len(curves))]) for _ in range(400)]
    lower, upper = np.quantile(resamples, [0.025, 0.975])
    loss = (curves[:, 2] - curves[:, 0]).mean(axis=1)
    error = 1.96 * loss.std(ddof=1) / np.sqrt(len(loss))
    return [
        Claim(f"{name}: comparisons needed with strengths", ratio(curves), float(lower), float(upper), unit="%"),
        Claim(
            f"{name}: change of the correlation when strengths are shuffled",
            float(loss.mean()),
            float(loss.mean() - error),
            float(loss.mean() + error),
        ),
    ]


def _two_votes(data: Path, rng: np.random.Generator) -> Claim:
    """Compare two votes on the same outputs: by Spearman–Brown, how many graded votes agree as well as plain ones."""
    votes = read_table(data / VOTES).with_columns(pl.col("grade").cast(pl.Int64))
    several = votes.group_by("comparison", maintain_order=True).agg("grade", "model_a")
    several = several.filter(pl.col("grade").list.len() > 1)
    pairs = np.array(
        [
            [grade if model == models[0] else -grade for grade, model in zip(grades[:2], models[:2], strict=True)]
            for grades, models in several.select("grade", "model_a").iter_rows()
        ],
        np.float64,
    )

    def ratio(rows: FloatArray) -> float:
        both = np.concatenate([rows, rows[:, ::-1]])
        graded, plain = (np.corrcoef(value[:, 0], value[:, 1])[0, 1] for value in (both, np.sign(both)))
        return float(100 * ((1 - graded) / graded) / ((1 - plain) / plain))

    resamples = [ratio(pairs[rng.integers(0, len(pairs), len(pairs))]) for _ in range(1000)]
    lower, upper = np.quantile(resamples, [0.025, 0.975])
    return Claim(
        f"recorded votes: two votes on the same two answers ({len(pairs)}), comparisons needed by Spearman–Brown",
        ratio(pairs),
        float(lower),
        float(upper),
        unit="%",
    )
