"""Table 1: agreement of single non-experts with experts and with all others, about emotions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.charts import bars
from reproductions.cheap_fast.affect_by_annotators import EXPERT, five_for_six
from reproductions.cheap_fast.recordings import AFFECT, EMOTIONS, PAPER, read_affect
from steelyard.observations import FloatArray, Ratings

# Table 1, columns "NE vs. E" and "NE vs. All"; the last two rows are averages.
NE_E = dict(zip(AFFECT, (0.444, 0.537, 0.418, 0.340, 0.563, 0.201, 0.530), strict=True))
NE_ALL = dict(zip(AFFECT, (0.573, 0.647, 0.498, 0.421, 0.651, 0.225, 0.554), strict=True))
AVERAGES = {"NE vs. E": (0.417, 0.433), "NE vs. All": (0.503, 0.510)}
EXPERTS = 6
"""The gold is their mean."""

SINGLE = "the paper does not say what a single non-expert is: here the k-th rating of every headline, over ten k"
WORKERS = "alternative interpretation: each worker is a non-expert, evaluated on the headlines that they rated"
FIVE = "adjusted from the mean of six experts, the gold, to the paper's means of five"


@dataclass(frozen=True, slots=True)
class AffectAgreement(Experiment):
    """Correlate single non-experts with the experts' mean, and with the mean of all others."""

    name: ClassVar[str] = "cheap_fast.affect_agreement"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Table 1: agreement of single non-experts with experts and with all others"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown(
            "Table 1",
            "approximated",
            "single experts are not in the data, only their mean: the columns “NE vs. E” and “NE vs. All” are "
            "computed, “E vs. E” and “E vs. All” cannot be",
        ),
    )
    data: ClassVar[tuple[str, ...]] = ("snow2008/affect.csv.gz",)

    shuffles: int = 50
    """Assignments of the ratings of a headline to ten non-experts."""
    seed: int = 0

    def small(self) -> Self:
        """Return few shuffles."""
        return replace(self, shuffles=3)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Compute both columns for each emotion, by ratings and by workers."""
        columns: dict[str, dict[str, float]] = {"NE vs. E": {}, "NE vs. All": {}, "workers": {}, "workers vs. All": {}}
        for done, (name, (ratings, gold)) in enumerate(read_affect(data).items(), 1):
            truth = np.array([gold[item] for item in ratings.items.ids])
            columns["NE vs. E"][name], columns["NE vs. All"][name] = self._single(ratings, truth)
            columns["workers"][name], columns["workers vs. All"][name] = by_worker(ratings, truth)
            progress(done, len(AFFECT))
        claims = tuple(self._claims(columns))
        table = pl.DataFrame(
            {
                "emotion": AFFECT,
                "r": [columns["NE vs. All"][name] for name in AFFECT],
                "r_experts": [columns["NE vs. E"][name] * five_for_six(EXPERT[name]) for name in AFFECT],
                "published": [NE_ALL[name] for name in AFFECT],
                "published_experts": [NE_E[name] for name in AFFECT],
            }
        )
        return Outcome(
            claims,
            table,
            lambda: bars(
                table,
                "emotion",
                "r",
                title="A single non-expert agrees with all others about as published",
                subtitle="Column “NE vs. All”: Pearson’s r of one rating with the mean of the others and the experts",
                value_title="Pearson’s r; diamonds: Table 1",
            ),
            ("experts count in “All” by their sum, six times their mean, which is the gold",),
        )

    def _single(self, ratings: Ratings, truth: FloatArray) -> tuple[float, float]:
        """Average r over ten non-experts, each of whom gave one rating of every headline, and over assignments."""
        rng = np.random.default_rng(self.seed)
        n_items = len(ratings.items)
        results = []
        for _ in range(self.shuffles):
            order = np.lexsort((rng.random(len(ratings)), ratings.item))
            values = ratings.value[order].reshape(n_items, -1)
            total = values.sum(axis=1)
            for column in values.T:
                others = (total - column + EXPERTS * truth) / (values.shape[1] - 1 + EXPERTS)
                results.append((_pearson(column, truth), _pearson(column, others)))
        mean = np.nanmean(results, axis=0)
        return float(mean[0]), float(mean[1])

    def _claims(self, columns: Mapping[str, Mapping[str, float]]) -> Iterator[Claim]:
        experts = {name: columns["NE vs. E"][name] * five_for_six(EXPERT[name]) for name in AFFECT}
        for what, values, published, why in (
            ("NE vs. E", experts, NE_E, FIVE),
            ("NE vs. All", columns["NE vs. All"], NE_ALL, SINGLE),
        ):
            for name in AFFECT:
                yield Claim(f"{name}, {what}", values[name], published=published[name], why=why)
            for names, title, average in zip(
                (EMOTIONS, AFFECT), ("mean of six emotions", "mean of all seven"), AVERAGES[what], strict=True
            ):
                yield Claim(f"{title}, {what}", _mean(values, names), published=average, why=why)
        for what, key in (("NE vs. E", "workers"), ("NE vs. All", "workers vs. All")):
            average = AVERAGES[what][1]
            ours = _mean(columns[key], AFFECT)
            yield Claim(f"mean of all seven, {what}, by worker", ours, published=average, why=WORKERS)


def by_worker(ratings: Ratings, truth: FloatArray) -> tuple[float, float]:
    """Average r over workers on the headlines they rated: with the experts' mean, and with the mean of all others."""
    n_items = len(ratings.items)
    total = np.bincount(ratings.item, ratings.value, minlength=n_items)
    count = np.bincount(ratings.item, minlength=n_items)
    results = []
    for worker in np.unique(ratings.annotator):
        rows = np.flatnonzero(ratings.annotator == worker)
        item, own = ratings.item[rows], ratings.value[rows]
        others = (total[item] - own + EXPERTS * truth[item]) / (count[item] - 1 + EXPERTS)
        results.append((_pearson(own, truth[item]), _pearson(own, others)))
    mean = np.nanmean(results, axis=0)
    return float(mean[0]), float(mean[1])


def _pearson(one: FloatArray, other: FloatArray) -> float:
    """Return Pearson's r; NaN where one of them does not vary, or for fewer than three values."""
    if len(one) < 3 or one.std() == 0 or other.std() == 0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


def _mean(values: Mapping[str, float], names: Sequence[str]) -> float:
    return float(np.mean([values[name] for name in names]))
