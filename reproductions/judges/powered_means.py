"""Prediction-powered means of systems on recorded judgments: coverage, and what the judges save."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.judges.recordings import ESA_ANSWERS, ESA_PROXIES, SUMMEVAL, read_esa, read_summeval
from steelyard.models.labels.majority import wilson
from steelyard.models.systems.prediction_powered import (
    PoweredMean,
    powered_mean,
    sampling_probabilities,
    stratified_mean,
    weighted_mean,
)
from steelyard.observations import FloatArray

HUMAN, ITEMS = 60, 600
SAMPLES = ("random", "stratified", "adaptive")


@dataclass(frozen=True, slots=True)
class PoweredMeans(Experiment):
    """Draw items from recordings, let people judge some of them, and estimate the mean that the recording has."""

    name: ClassVar[str] = "judges.powered_means"
    paper: ClassVar[str] = "Steelyard's own"
    title: ClassVar[str] = "Prediction-powered means: coverage and width by judge and by sample"
    data: ClassVar[tuple[str, ...]] = (SUMMEVAL, ESA_ANSWERS, ESA_PROXIES)

    runs: int = 2000
    seed: int = 0

    def small(self) -> Self:
        """Return few runs."""
        return replace(self, runs=50)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Resample items with replacement, so that the recording is the population and its mean is known."""
        summeval, esa = read_summeval(data, "relevance"), read_esa(data)
        claims: list[Claim] = []
        cases = [(summeval, "gpt-4o"), (esa, "cometkiwi")]
        for number, (recording, best) in enumerate(cases):
            y = np.nanmean(np.where(np.isfinite(recording.ratings), recording.ratings, np.nan), axis=1)
            f = recording.judges[best]
            rows = np.isfinite(y) & np.isfinite(f)
            y, f = y[rows], f[rows]
            judges = {best: f, "noise": None, "reversed": -f, "constant": np.zeros(len(f))}
            for judge, scores in judges.items():
                claims += self._claims(
                    f"{recording.name}, {judge}", y, scores, np.random.default_rng([self.seed, number])
                )
            progress(number + 1, len(cases))
        return Outcome(tuple(claims), notes=NOTES)

    def _claims(self, name: str, y: FloatArray, f: FloatArray | None, rng: np.random.Generator) -> list[Claim]:
        truth = float(y.mean())
        hits = dict.fromkeys((*SAMPLES, "people alone"), 0)
        widths: dict[str, list[float]] = {sample: [] for sample in hits}
        for _ in range(self.runs):
            rows = rng.integers(len(y), size=ITEMS)
            scores = rng.standard_normal(ITEMS) if f is None else f[rows]
            results = _estimates(y[rows], scores, rng)
            for sample, result in results.items():
                hits[sample] += result.lower <= truth <= result.upper
                widths[sample].append(result.half_width)
            alone = results["random"]
            hits["people alone"] += abs(alone.people_mean - truth) <= alone.people_half_width
            widths["people alone"].append(alone.people_half_width)
        claims = []
        for sample in hits:
            ends = wilson(np.array([float(hits[sample])]), np.array([float(self.runs)]), 0.95)
            lower, upper = (100 * float(end[0]) for end in ends)
            claims.append(Claim(f"{name}: coverage, {sample}", 100 * hits[sample] / self.runs, lower, upper, unit="%"))
        reference = float(np.mean(widths["people alone"]))
        for sample in SAMPLES:
            ratio = 100 * float(np.mean(widths[sample])) / reference
            claims.append(Claim(f"{name}: mean width, {sample}, relative to people alone", ratio, unit="%"))
        return claims


def _estimates(y: FloatArray, f: FloatArray, rng: np.random.Generator) -> dict[str, PoweredMean]:
    chosen = rng.permutation(ITEMS)
    people, rest = chosen[:HUMAN], chosen[HUMAN:]
    results = {"random": powered_mean(y[people], f[people], f[rest])}
    # Five strata of equal size by the judge's score, ties broken at random.
    strata = np.empty(ITEMS, np.int64)
    strata[np.lexsort((rng.random(ITEMS), f))] = np.arange(ITEMS) * 5 // ITEMS
    picked = np.concatenate([rng.choice(np.flatnonzero(strata == s), HUMAN // 5, replace=False) for s in range(5)])
    others = np.setdiff1d(np.arange(ITEMS), picked)
    results["stratified"] = stratified_mean(y[picked], f[picked], strata[picked], f[others], strata[others])
    # A pilot of 20 shows where the judge errs; the probability of asking people grows with its error there.
    pilot = picked[:: HUMAN // 20]
    propensity = sampling_probabilities(y[pilot] - f[pilot], strata[pilot], strata, HUMAN)
    # Systematic sampling in random order: these probabilities, and exactly as many items.
    order = rng.permutation(ITEMS)
    ends = np.cumsum(propensity[order]) + rng.random()
    is_drawn = np.zeros(ITEMS, bool)
    is_drawn[order] = np.floor(ends) > np.floor(ends - propensity[order])
    results["adaptive"] = weighted_mean(y, f, is_drawn, propensity)
    return results


NOTES = (
    f"{ITEMS} items are drawn with replacement from the recording, so that its mean is the population's; people judge "
    f"{HUMAN} of them, the judge all. People's score of an item is the mean of its recorded ratings.",
    "Samples: at random (PPI++, plug-in λ); stratified by fifths of the judge's score; adaptive, with logged "
    "probabilities that grow with the judge's error in a pilot of 20 items (AIPW), shrunk as far as differences can be "
    "chance, and at least half of the uniform one.",
)
