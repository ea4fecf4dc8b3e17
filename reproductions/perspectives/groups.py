"""Scores by group of annotators: held-out ratings of offensiveness, and coverage in simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from steelyard.formats import read_judgments, read_table
from steelyard.models.perspectives import group_scores, held_out_log_scores
from steelyard.observations import Index, Ratings

RATINGS = "offensiveness_demographics/ratings.csv.gz"
PEOPLE = "offensiveness_demographics/annotators.csv.gz"
COLUMNS = ("age", "race", "gender", "education")
ITEMS, ANNOTATORS, EACH = 60, 40, 15
"""Size of the simulated studies: items, annotators in two groups, ratings by each annotator."""
ITEM_SD, ANNOTATOR_SD, NOISE_SD, SHIFT = 0.18, 0.10, 0.15, 0.08
"""Simulated ratings on the unit scale: about those of the recorded ones."""


@dataclass(frozen=True, slots=True)
class Groups(Experiment):
    """Predict held-out ratings with and without groups, and count how often intervals cover true differences."""

    name: ClassVar[str] = "perspectives.groups"
    paper: ClassVar[str] = "Steelyard's own"
    title: ClassVar[str] = "Scores by group of annotators: held-out ratings and coverage"
    data: ClassVar[tuple[str, ...]] = (RATINGS, PEOPLE)

    draws: int = 200
    trials: int = 120
    folds: int = 5
    seed: int = 0

    def small(self) -> Self:
        """Return few draws and trials."""
        return replace(self, draws=20, trials=2, folds=2)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Go over the columns of the recorded annotators, then over the simulated studies."""
        ratings = read_judgments(data / RATINGS, scale=(1, 5)).observations
        if not isinstance(ratings, Ratings):
            raise TypeError("the recorded judgments are not ratings.")
        people = read_table(data / PEOPLE)
        claims: list[Claim] = []
        total = len(COLUMNS) + self.trials
        for number, column in enumerate(COLUMNS):
            groups = {str(name): str(group) for name, group in people.select("annotator", column).iter_rows()}
            claims += self._recorded(ratings, groups, column)
            progress(number + 1, total)
        rng = np.random.default_rng(self.seed)
        covered, rejected = [], []
        for number in range(self.trials):
            inside, p_value = _trial(rng, self.draws, number, spread=0.06 if number % 2 else 0.0)
            covered.append(inside)
            rejected += [] if number % 2 else [p_value <= 0.05]
            progress(len(COLUMNS) + number + 1, total)
        claims.append(_proportion("simulated: 95 % intervals that cover the groups' difference", covered))
        claims.append(_proportion("simulated, groups alike: permutation tests with p ≤ .05", rejected))
        return Outcome(tuple(claims), None, None, NOTES)

    def _recorded(self, ratings: Ratings, groups: dict[str, str], column: str) -> list[Claim]:
        result = group_scores(ratings, groups, draws=self.draws, permutations=199, seed=self.seed)
        claims = [Claim(f"{column}: p of group × item differences", float(result.p_value or 0))]
        for new in (False, True):
            table = held_out_log_scores(
                ratings, groups, new_annotators=new, folds=self.folds, draws=self.draws, seed=self.seed
            )
            gain = (pl.col("grouped") - pl.col("pooled")).sum().alias("gain")
            by_annotator = table.group_by("annotator").agg(gain)["gain"].to_numpy()
            mean = float(by_annotator.sum()) / table.height
            error = float(by_annotator.std(ddof=1)) * np.sqrt(len(by_annotator)) / table.height
            who = "of new annotators" if new else "of known annotators"
            what = f"{column}: held-out log score of ratings {who}, grouped minus pooled"
            claims.append(
                Claim(what, 1000 * mean, 1000 * (mean - 1.96 * error), 1000 * (mean + 1.96 * error), unit="/1000")
            )
        return claims


NOTES = (
    "held-out log score: natural logarithm of the predictive density of a rating on the unit scale; positive values "
    "favour the model with groups. Intervals are clustered by annotator. Known annotators have other ratings in the "
    "training folds; of new annotators, all ratings are held out.",
    f"simulated: {ITEMS} items, {ANNOTATORS} annotators in two groups, {EACH} ratings each; a difference of {SHIFT} of "
    "the scale between the groups, and in every other study group × item differences with an sd of 0.06.",
)


def _trial(rng: np.random.Generator, draws: int, seed: int, spread: float) -> tuple[bool, float]:
    group = np.arange(ANNOTATORS) % 2
    own = rng.normal(0, spread, (ITEMS, 2)) + np.array([0.0, SHIFT])
    person = np.repeat(np.arange(ANNOTATORS), EACH)
    item = np.concatenate([rng.permutation(ITEMS)[:EACH] for _ in range(ANNOTATORS)])
    value = rng.normal(0.5, ITEM_SD, ITEMS)[item] + rng.normal(0, ANNOTATOR_SD, ANNOTATORS)[person]
    value = np.clip(value + own[item, group[person]] + rng.normal(0, NOISE_SD, len(item)), -1, 2)
    ratings = Ratings(
        items=Index(f"i{number}" for number in range(ITEMS)),
        annotators=Index(f"w{number}" for number in range(ANNOTATORS)),
        item=item.astype(np.int32),
        annotator=person.astype(np.int32),
        value=value,
        scale=(-1.0, 2.0),
    )
    names = {f"w{number}": "ab"[group[number]] for number in range(ANNOTATORS)}
    result = group_scores(ratings, names, draws=draws, permutations=99, seed=seed)
    row = result.differences.row(0, named=True)
    true = float((own[:, 0] - own[:, 1]).mean())
    return row["lower"] <= true <= row["upper"], float(result.p_value or 0)


def _proportion(what: str, hits: list[bool]) -> Claim:
    share = float(np.mean(hits))
    error = 1.96 * np.sqrt(max(share * (1 - share), 1e-4) / len(hits))
    return Claim(what, 100 * share, 100 * max(share - error, 0), 100 * min(share + error, 1), unit="%")
