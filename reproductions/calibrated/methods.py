"""Shared by the experiments with the calibrated scale: scores by item code, simulated annotators, comparisons."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from reproductions.easl.sliders import SLIDERS
from steelyard.errors import SteelyardWarning
from steelyard.formats import read_judgments, read_table
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.models.fit import Model
from steelyard.models.ratings.mean import Mean
from steelyard.observations import Comparisons, FloatArray, Index, IntArray, Observations, Ratings

PAPER = "Steelyard's own"
"""There are no published numbers; the baselines are the papers' methods, in the same run."""

PLAIN, CALIBRATED, ADAPTIVE = "mean (DA, EASL)", "calibrated scale", "calibrated scale, adaptive design"
KNOWN = "every annotator known"


def scored(model: Model, observations: Observations) -> FloatArray:
    """Return the score of every item by its code, NaN where it has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SteelyardWarning)
        table = model.fit(observations).scores
    score = dict(table.select("item", "score").iter_rows())
    return np.array([np.nan if score[name] is None else score[name] for name in observations.items.ids])


def both_ways(ratings: Ratings, draws: int = 400) -> dict[str, FloatArray]:
    """Score ratings by their mean and on the calibrated scale."""
    return {PLAIN: scored(Mean(draws=20), ratings), CALIBRATED: scored(CalibratedScale(draws=draws), ratings)}


def pearson(one: FloatArray, other: FloatArray) -> float:
    """Correlate two score vectors over the items that both have."""
    present = ~(np.isnan(one) | np.isnan(other))
    return float(np.corrcoef(one[present], other[present])[0, 1])


def spearman(one: FloatArray, other: FloatArray) -> float:
    """Correlate the ranks of items with both scores; NaN if one does not vary, as in a resample of few items."""
    present = ~(np.isnan(one) | np.isnan(other))
    if not present.any() or np.ptp(one[present]) == 0 or np.ptp(other[present]) == 0:
        return math.nan
    return float(stats.spearmanr(one[present], other[present]).statistic)


def read_slider_tasks(data: Path) -> Ratings:
    """Read all sliders of the NLI pairs, also those of answers rejected later, with the page each was on."""
    frame = read_table(data / SLIDERS)
    chosen = frame.filter(frame["na"] == "0").select("annotator", "item", "value", task="assignment")
    return cast("Ratings", read_judgments(chosen, kind="ratings", scale=(0, 100)).observations)


def first_pages(ratings: Ratings, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose `count` ratings per item, from whole pages in random order."""
    order = np.lexsort((rng.permutation(len(ratings.tasks))[ratings.task], ratings.item))
    item = ratings.item[order]
    place = np.empty(len(item), np.int64)
    place[order] = np.arange(len(item)) - np.searchsorted(item, item)
    return place < count


def means_of(ratings: Ratings, rows: NDArray[np.bool_], least: int = 10) -> FloatArray:
    """Return the mean of some ratings of every item, NaN where there are fewer than `least`."""
    n = len(ratings.items)
    count = np.bincount(ratings.item[rows], minlength=n)
    total = np.bincount(ratings.item[rows], ratings.value[rows], minlength=n)
    return np.where(count >= least, total / np.maximum(count, 1), np.nan)


def needed(judgments: FloatArray, reliability: FloatArray, target: float) -> float:
    """Interpolate the number of judgments that reach a reliability, on a log scale."""
    above = np.flatnonzero(reliability >= target)
    if len(above) == 0:
        return float("nan")
    at = int(above[0])
    if at == 0:
        return float(judgments[0])
    share = (target - reliability[at - 1]) / (reliability[at] - reliability[at - 1])
    return float(np.exp(np.log(judgments[at - 1]) * (1 - share) + np.log(judgments[at]) * share))


@dataclass(frozen=True, slots=True)
class Crowd:
    """Annotators who differ in bias, scale use and noise; some of them answer at random.

    Units are shares of the scale. `noise` is of one response to a slider, `comparing` of one in a comparison.
    """

    items: int = 200
    people: int = 40
    bias: float = 0.10
    use: float = 0.3
    noise: float = 0.20
    noise_spread: float = 0.4
    comparing: float = 0.10
    random: float = 0.0
    spread: float = 0.25

    def drawn(self, rng: np.random.Generator) -> Drawn:
        """Draw items and annotators."""
        return Drawn(
            self,
            np.clip(rng.normal(0.5, self.spread, self.items), 0.02, 0.98),
            rng.normal(0, self.bias, self.people),
            np.exp(rng.normal(0, self.use, self.people)),
            np.exp(rng.normal(0, self.noise_spread, self.people)),
            np.arange(self.people) < round(self.random * self.people),
            rng,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Simulated annotators and items; answers are drawn from `rng`."""

    crowd: Crowd
    truth: FloatArray
    bias: FloatArray
    use: FloatArray
    noisiness: FloatArray
    random: NDArray[np.bool_]
    rng: np.random.Generator

    @property
    def items(self) -> Index:
        """The items' ids."""
        return Index([f"item {n:05d}" for n in range(len(self.truth))])

    @property
    def people(self) -> Index:
        """The annotators' ids."""
        return Index([f"person {n:04d}" for n in range(len(self.bias))])

    def ratings(self, item: IntArray, who: IntArray) -> Ratings:
        """Simulate slider ratings from 0 to 100."""
        noise = self.crowd.noise * self.noisiness[who] * self.rng.standard_normal(len(item))
        answer = 0.5 + self.bias[who] + self.use[who] * (self.truth[item] - 0.5) + noise
        answer = np.where(self.random[who], self.rng.random(len(item)), answer)
        value = np.round(100 * np.clip(answer, 0, 1))
        return Ratings(
            items=self.items, annotators=self.people, annotator=who, item=item, value=value, scale=(0.0, 100.0)
        )

    def best_guess(self, ratings: Ratings) -> FloatArray:
        """Score the items with known bias, scale use and noise of all annotators, an upper bound for estimates.

        The posterior mean on a grid; what was cut at an end of the slider may lie anywhere beyond it. Left out is that
        some of the items lie just at the ends of the grid.
        """
        place = np.linspace(0.02, 0.98, 97)
        log_prior = np.broadcast_to(-0.5 * ((place - 0.5) / self.crowd.spread) ** 2, (len(self.truth), len(place)))
        who, value = ratings.annotator, ratings.unit_value[:, None]
        expected = 0.5 + self.bias[who, None] + self.use[who, None] * (place - 0.5)
        off = (value - expected) / (self.crowd.noise * self.noisiness[who, None])
        log_likelihood = np.where(
            value <= 0, special.log_ndtr(off), np.where(value >= 1, special.log_ndtr(-off), -(off**2) / 2)
        )
        total = log_prior.copy()
        np.add.at(total, ratings.item, log_likelihood)
        return np.asarray(special.softmax(total, axis=1) @ place)

    def comparisons(self, left: IntArray, right: IntArray, who: IntArray) -> Comparisons:
        """Simulate comparisons of two items."""
        noise = np.sqrt(2) * self.crowd.comparing * self.noisiness[who] * self.rng.standard_normal(len(left))
        lead = self.truth[left] - self.truth[right] + noise
        lead = np.where(self.random[who], self.rng.standard_normal(len(left)), lead)
        outcome = np.where(lead > 0, 1, -1).astype(np.int8)
        return Comparisons(
            items=self.items, annotators=self.people, annotator=who, left=left, right=right, outcome=outcome
        )

    def who(self, each: int) -> tuple[IntArray, IntArray]:
        """Assign several different annotators to each item; return items and annotators."""
        n, people = len(self.truth), len(self.bias)
        chosen = np.argsort(self.rng.random((n, people)), axis=1)[:, :each]
        return np.repeat(np.arange(n, dtype=np.int32), each), chosen.ravel().astype(np.int32)
