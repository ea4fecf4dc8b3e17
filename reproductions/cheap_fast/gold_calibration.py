"""Figure 7: labels calibrated on gold against plain votes, by annotators for each item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl
from scipy import stats

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.charts import curves
from reproductions.cheap_fast.majority_by_annotators import NAMES
from reproductions.cheap_fast.recordings import PAPER, few_of_each, read_labels
from steelyard.models.fit import Fit, Model
from steelyard.models.labels.gold_calibrated import GoldCalibrated
from steelyard.models.labels.majority import Majority
from steelyard.models.labels.weighted_vote import WeightedVote
from steelyard.observations import FloatArray, Labels
from steelyard.report.charts import Chart

GAINS = {"rte": 4.0, "temp": 3.4}
"""Points of accuracy gained, averaged over 2 to 10 annotators: §5.1.1."""
VOTE, WEIGHTED, CALIBRATED = "plain vote", "votes weighted by accuracy", "gold-calibrated"
WHY = "the published value lies within the interval; the paper's samples and folds are not known"
OUTSIDE = "the paper's samples and folds are not known"


@dataclass(frozen=True, slots=True)
class GoldCalibration(Experiment):
    """Fit and test within samples of k labels per item, by 20-fold cross-validation across items, as the paper does."""

    name: ClassVar[str] = "cheap_fast.gold_calibration"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Figure 7: gold-calibrated labels against plain votes"
    shows: ClassVar[tuple[Shown, ...]] = (Shown("Figure 7", "reproduced"),)
    data: ClassVar[tuple[str, ...]] = tuple(f"snow2008/{name}.csv.gz" for name in GAINS)

    sizes: tuple[int, ...] = tuple(range(1, 11))
    samples: int = 20
    seed: int = 0

    def small(self) -> Self:
        """Sample less often, at fewer sizes."""
        return replace(self, sizes=(1, 3, 5, 10), samples=3)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Compare vote, weighted vote and calibrated labels on both tasks."""
        rows: list[tuple[object, ...]] = []
        claims: list[Claim] = []
        steps = len(GAINS) * len(self.sizes)
        for number, (task, published) in enumerate(GAINS.items()):
            labels, gold = read_labels(data, task)
            gains: dict[str, list[FloatArray]] = {WEIGHTED: [], CALIBRATED: []}
            for done, (size, right) in enumerate(self._measured(labels, gold), 1):
                rows += [(NAMES[task], size, how, *interval_of_mean(each)) for how, each in right.items()]
                for how, kept in gains.items():
                    kept.append(right[how] - right[VOTE])
                progress(number * len(self.sizes) + done, steps)
            for first in (1, 0):
                claims += self._claims(task, published, gains, first)
        table = pl.DataFrame(rows, schema=("task", "annotators", "labels", "accuracy", "lower", "upper"), orient="row")
        notes = (
            "intervals are Student's t over items, of the items' mean over the samples",
            "with one label per item, calibration loses: an annotator's weight is then estimated from two items on "
            "average. The paper does not say whether its averages include one label per item; if they do, its gains "
            "are matched closely",
        )
        return Outcome(tuple(claims), table, lambda: _drawn(table, claims), notes)

    def _claims(
        self, task: str, published: float, gains: Mapping[str, Sequence[FloatArray]], first: int
    ) -> Iterator[Claim]:
        """Average the gains over sizes; the first size, one label per item, may or may not be meant in the paper."""
        span = f"{NAMES[task]}: gain of {{}}, mean over {self.sizes[first]} to {self.sizes[-1]}"
        gain = interval_of_mean(100 * np.mean(gains[CALIBRATED][first:], axis=0))
        why = WHY if gain[1] <= published <= gain[2] else OUTSIDE
        yield Claim(span.format("calibration"), *gain, published, "points", why)
        gain = interval_of_mean(100 * np.mean(gains[WEIGHTED][first:], axis=0))
        why = "the paper names this simpler form and gives no number for it"
        yield Claim(span.format("votes weighted by accuracy"), *gain, None, "points", why)

    def _measured(self, labels: Labels, gold: Mapping[str, str]) -> Iterator[tuple[int, dict[str, FloatArray]]]:
        """Yield, for each size, how often each item came out right on average over samples, by model."""
        models: dict[str, Model] = {VOTE: Majority()}
        for size in self.sizes:
            total = {name: np.zeros(len(labels.items)) for name in (VOTE, WEIGHTED, CALIBRATED)}
            for number in range(self.samples):
                sample = few_of_each(labels, size, np.random.default_rng([self.seed, size, number]))
                # As in the paper, all gold is trusted.
                models[WEIGHTED] = WeightedVote(disputed=1.0, seed=number)
                models[CALIBRATED] = GoldCalibrated.as_published(seed=number)
                for name, model in models.items():
                    total[name] += right_by_item(model.fitted(sample, gold), gold, labels.items.ids)
            yield size, {name: right / self.samples for name, right in total.items()}


def right_by_item(fit: Fit, gold: Mapping[str, str], items: Sequence[str]) -> FloatArray:
    """Return how probably each item's label is right, over random tie-breaks."""
    classes = {name.removeprefix("p(").removesuffix(")"): name for name in fit.scores.columns if name.startswith("p(")}
    shares = fit.scores.select("item", *classes.values())
    top = shares.select(pl.max_horizontal(classes.values()))[:, 0].to_numpy()
    probabilities = np.stack([shares[column].to_numpy() for column in classes.values()], axis=1)
    winners = probabilities >= top[:, None] - 1e-9
    place = {name: number for number, name in enumerate(classes)}
    truth = [place[gold[item]] for item in shares["item"]]
    right = winners[np.arange(len(truth)), truth] / winners.sum(axis=1)
    by_item = dict(zip(shares["item"], right.tolist(), strict=True))
    return np.array([by_item[item] for item in items])


def interval_of_mean(values: FloatArray) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval, Student's t."""
    half = float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)
    return float(values.mean()), float(values.mean()) - half, float(values.mean()) + half


def _drawn(table: pl.DataFrame, claims: Sequence[Claim]) -> Chart:
    return curves(
        table,
        "annotators",
        "accuracy",
        "labels",
        facet="task",
        title=f"Calibration gains {claims[0].ours:.1f} points on entailment, {claims[4].ours:.1f} on temporal order",
        subtitle="Accuracy against the experts by 20-fold cross-validation; mean over samples of k labels per item",
        x_title="labels for each item",
    )
