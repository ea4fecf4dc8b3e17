"""Calibration: how often predictive intervals hold judgments that the model never saw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.calibrated.methods import PAPER, read_slider_tasks
from reproductions.cheap_fast.recordings import read_affect, read_similarities
from reproductions.easl.sliders import SLIDERS
from steelyard.models.calibrated.chain import Chain
from steelyard.models.calibrated.checks import opposition
from steelyard.models.calibrated.evidence import Evidence
from steelyard.models.calibrated.ladder import RUNGS, choose_rung
from steelyard.models.calibrated.responder_kernels import (
    FLOOR,
    INTERCEPT,
    LAMBDA,
    LOG_NOISE,
    LOG_SLOPE,
    OMEGA_A,
    OMEGA_B,
)
from steelyard.observations import UNKNOWN, FloatArray, Ratings
from steelyard.reliability.splitting import take


@dataclass(frozen=True, slots=True)
class HeldOut(Experiment):
    """Fit four fifths of the judgments and predict the remaining responses."""

    name: ClassVar[str] = "calibrated.held_out"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Calibration: predictive intervals and judgments held out"
    data: ClassVar[tuple[str, ...]] = (SLIDERS, "snow2008/affect.csv.gz", "snow2008/wordsim.csv.gz")

    sets: tuple[str, ...] | None = None
    """Recordings to take; None for all."""
    level: float = 0.95
    draws: int = 400
    seed: int = 0

    def small(self) -> Self:
        """Return few draws of small recordings."""
        return replace(self, sets=("word similarity", "affect, anger", "affect, valence"), draws=80)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Count how many held-out ratings lie within their interval."""
        sets = {"NLI sliders": read_slider_tasks(data), "word similarity": read_similarities(data)[0]}
        sets |= {f"affect, {name}": ratings for name, (ratings, _) in read_affect(data).items()}
        sets = {name: ratings for name, ratings in sets.items() if self.sets is None or name in self.sets}
        rows = []
        for done, (where, ratings) in enumerate(sets.items(), 1):
            rng = np.random.default_rng(self.seed)
            away = rng.random(len(ratings)) < 0.2
            rows.append({"data": where, **self._held(take(ratings, ~away), take(ratings, away), rng)})
            progress(done, len(sets))
        table = pl.DataFrame(rows)
        total = float(np.average(table["randomized"].to_numpy(), weights=table["judgments"].to_numpy()))
        claims = [
            Claim(f"{where}: held-out ratings within", 100 * share, unit="%")
            for where, share in table.select("data", "randomized").iter_rows()
        ]
        return Outcome(
            (Claim("all held-out ratings within their 95 % interval", 100 * total, unit="%"), *claims),
            table,
            None,
            (
                "Intervals are limited to the scale: if an interval reaches an end, ratings at that end are inside "
                "it. With many ratings at the ends of the scale, more than 95 % are therefore expected to be inside.",
                "In the randomized proportion, a rating at an end counts by the fraction of its probability that is "
                "inside the interval. This proportion should be 95 %.",
            ),
        )

    def _held(self, training: Ratings, rest: Ratings, rng: np.random.Generator) -> dict[str, float]:
        predictions = predict(training, rest, self.draws, rng)
        low, high = rest.scale
        tails = [(1 - self.level) / 2, (1 + self.level) / 2]
        predicted = ~np.isnan(predictions[0])
        lower, upper = np.quantile(predictions[:, predicted], tails, axis=0)
        value = (rest.value[predicted] - low) / (high - low)
        within = (value >= lower.clip(0, 1) - 1e-9) & (value <= upper.clip(0, 1) + 1e-9)
        # The quantile of each answer among its predictions; random within ties, such as at the ends of the scale.
        clipped = predictions[:, predicted].clip(0, 1)
        below, equal = (clipped < value).mean(axis=0), (np.abs(clipped - value) < 1e-9).mean(axis=0)
        place = below + rng.random(len(value)) * equal
        return {
            "judgments": int(predicted.sum()),
            "held": float(within.mean()),
            "randomized": float(((place >= tails[0]) & (place <= tails[1])).mean()),
            "mean_width": float((upper.clip(0, 1) - lower.clip(0, 1)).mean()),
        }


def predict(training: Ratings, rest: Ratings, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw responses to the questions of `rest` given the training judgments, one row per draw; NaN for new items."""
    evidence = Evidence.of("calibrated_scale", training)
    place = np.full(len(training.items), UNKNOWN)
    place[evidence.item] = np.arange(len(evidence.item))
    responder = np.full(len(training.annotators), UNKNOWN)
    named = evidence.annotator != UNKNOWN
    responder[evidence.annotator[named]] = np.flatnonzero(named)
    item, who = place[rest.item], responder[rest.annotator]
    rung = choose_rung(evidence, opposition(evidence), np.random.SeedSequence(0)).rung
    chain = Chain(evidence, rng, RUNGS[rung])
    chain.collect(150, 1)
    predictions = np.full((draws, len(rest)), np.nan)
    for number in range(draws):
        x = chain.collect(0, 1).x[0]
        line, population = chain.crowd.line, chain.crowd.population[0]
        new = who == UNKNOWN
        anybody = rng.standard_normal((2, len(who)))
        intercept = np.where(new, 0.5 + population[OMEGA_B] * anybody[0] * RUNGS[rung].bias, line[who, INTERCEPT])
        slope = np.exp(np.where(new, population[OMEGA_A] * anybody[1] * RUNGS[rung].slope, line[who, LOG_SLOPE]))
        noise = np.exp(2 * np.where(new, population[LAMBDA], line[who, LOG_NOISE])) + population[FLOOR] ** 2
        response = intercept + slope * (x[item] - 0.5) + np.sqrt(noise) * rng.standard_normal(len(who))
        predictions[number] = np.where(item == UNKNOWN, np.nan, response)
    return predictions
