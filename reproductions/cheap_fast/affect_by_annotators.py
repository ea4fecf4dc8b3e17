"""Table 2 and Figure 1: how well n averaged annotators agree with experts about emotions, and how many match one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.charts import curves
from reproductions.cheap_fast.recordings import AFFECT, EMOTIONS, PAPER, read_affect
from steelyard.reliability import MetaAnnotator, meta_annotator

# Table 2: one expert against the other five, ten non-experts, and the k that matches one expert.
EXPERT = dict(zip(AFFECT, (0.459, 0.583, 0.711, 0.596, 0.645, 0.464, 0.759), strict=True))
TEN = dict(zip(AFFECT, (0.675, 0.746, 0.689, 0.632, 0.776, 0.496, 0.844), strict=True))
LEAST = dict(zip(AFFECT, (2, 2, None, 7, 2, 9, 5), strict=True))
TEN_EMOTIONS, TEN_ALL = 0.669, 0.694
# The column "k-NE": r of that many non-experts.
K_NE = dict(zip(AFFECT, (0.536, 0.627, None, 0.600, 0.656, 0.481, 0.803), strict=True))
K_NE_EMOTIONS, K_NE_ALL = 0.589, 0.613
# The rows "Avg. Emo." and "Avg. All" of the same table.
LEAST_EMOTIONS, LEAST_ALL = 4, 4
EXPERT_EMOTIONS, EXPERT_ALL = 0.576, 0.603

_NUMBERS = dict(enumerate(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 1))
WHY = "the available gold is the mean of all six experts; the paper averages over means of five, which are noisier"
FIVE = "computed from the row above, assuming that the six experts are equally good"


@dataclass(frozen=True, slots=True)
class AffectByAnnotators(Experiment):
    """Average n ratings of each headline, drawn at random, and correlate with the experts' mean."""

    name: ClassVar[str] = "cheap_fast.affect_by_annotators"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Table 2 and Figure 1: affect, correlation with experts by annotators"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown(
            "Table 2",
            "approximated",
            "single experts are not in the data: gold is the mean of six, and one expert is the published value",
        ),
        Shown("Figure 1", "approximated", "gold is the mean of six experts instead of five"),
    )
    data: ClassVar[tuple[str, ...]] = ("snow2008/affect.csv.gz",)

    sizes: tuple[int, ...] = tuple(range(1, 11))
    subsets: int = 300
    seed: int = 0

    def small(self) -> Self:
        """Draw fewer subsets."""
        return replace(self, subsets=20)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Compute the curve of each emotion and of their averages."""
        by_emotion: dict[str, MetaAnnotator] = {}
        for done, (name, (ratings, gold)) in enumerate(read_affect(data).items(), 1):
            by_emotion[name] = meta_annotator(
                ratings, gold, sizes=self.sizes, expert=EXPERT[name], subsets=self.subsets, seed=self.seed
            )
            progress(done, len(AFFECT))
        table = pl.concat([self._curve(name, curve) for name, curve in by_emotion.items()])
        claims = []
        for name, curve in by_emotion.items():
            ten = curve[self.sizes[-1]]
            claims.append(Claim(f"{name}: r of ten", ten.value or 0.0, ten.lower, ten.upper, TEN[name], why=WHY))
        for what, names, published in (
            ("mean of six emotions", EMOTIONS, TEN_EMOTIONS),
            ("mean of all seven", AFFECT, TEN_ALL),
        ):
            ours = self._averages(by_emotion, names)[-1]
            with_five = float(np.mean([self._with_five(name, by_emotion[name]) for name in names]))
            claims.append(Claim(f"{what}: r of ten", ours, published=published, why=WHY))
            claims.append(Claim(f"{what}: the same, against five experts", with_five, published=published, why=FIVE))
        claims += self._least(by_emotion)
        return Outcome(
            tuple(claims),
            table,
            lambda: curves(
                table,
                "annotators",
                "r",
                "emotion",
                title=f"Ten people correlate at {claims[9].ours:.2f} with the experts’ mean, over all emotions",
                subtitle="Mean over subsets of each headline’s ratings; diamonds: Table 2",
                x_title="annotators for each headline",
                y_title="Pearson’s r with the experts’ mean",
            ),
            (
                "the individual experts are not in the data: 'one expert' is the published value, and gold is the "
                "experts' mean",
                "against five experts: r · √((1 + ρ/6) / (1 + ρ/5)), where ρ, one expert's error variance as a "
                "fraction of the true variance, follows from the published agreement of one expert with the other five",
            ),
        )

    def _curve(self, name: str, curve: MetaAnnotator) -> pl.DataFrame:
        return curve.table.select(
            pl.lit(name).alias("emotion"),
            "annotators",
            pl.col("value").alias("r"),
            pl.col("lower").alias("r_lower"),
            pl.col("upper").alias("r_upper"),
            pl.when(pl.col("annotators") == 10).then(TEN[name]).alias("published"),
            pl.lit(EXPERT[name]).alias("one_expert"),
            (pl.col("value") * five_for_six(EXPERT[name])).alias("r_five_experts"),
        )

    def _with_five(self, name: str, curve: MetaAnnotator) -> float:
        """Return what r would be against the mean of five experts rather than six, by classical test theory."""
        return (curve[self.sizes[-1]].value or 0.0) * five_for_six(EXPERT[name])

    def _averages(self, found: dict[str, MetaAnnotator], names: tuple[str, ...]) -> list[float]:
        values = [[statistic.value or 0.0 for statistic in found[name].statistics] for name in names]
        return [float(value) for value in np.mean(values, axis=0)]

    def _least(self, found: dict[str, MetaAnnotator]) -> list[Claim]:
        """Describe how many annotators match one expert."""
        why = "follows from the higher correlations above"
        claims = []
        for name, curve in found.items():
            if curve.least is not None:
                published = LEAST[name]
                differs = why if curve.least != published else ""
                differs = f"{why}: the paper's ten do not reach one expert" if published is None else differs
                claims.append(
                    Claim(f"{name}: annotators that match one expert", curve.least, published=published, why=differs)
                )
                ours, number = curve[curve.least].value or 0.0, _NUMBERS[curve.least]
                other = f"{WHY}; the paper's k is {published}" if published != curve.least else WHY
                claims.append(
                    Claim(f"{name}: r of {number}, the k-NE of the paper", ours, published=K_NE[name], why=other)
                )
        for what, names, expert, published, k_ne in (
            ("mean of six emotions", EMOTIONS, EXPERT_EMOTIONS, LEAST_EMOTIONS, K_NE_EMOTIONS),
            ("mean of all seven", AFFECT, EXPERT_ALL, LEAST_ALL, K_NE_ALL),
        ):
            averages = dict(zip(self.sizes, self._averages(found, names), strict=True))
            enough = [n for n, r in averages.items() if r >= expert]
            if enough:
                differs = why if enough[0] != published else ""
                claims.append(
                    Claim(f"{what}: annotators that match one expert", enough[0], published=published, why=differs)
                )
                number = _NUMBERS[enough[0]]
                claims.append(
                    Claim(f"{what}: r of {number}, the k-NE of the paper", averages[enough[0]], published=k_ne, why=WHY)
                )
        return claims


def error_share(agreement: float) -> float:
    """Return one expert's error variance over the true variance, from their r with the mean of five others.

    r² = 1 / ((1 + ρ)(1 + ρ/5)), solved for ρ.
    """
    return (-1.2 + sqrt(1.44 + 0.8 * (1 / agreement**2 - 1))) / 0.4


def five_for_six(agreement: float) -> float:
    """Return how much lower r is with the mean of five experts than with that of six."""
    noise = error_share(agreement)
    return sqrt((1 + noise / 6) / (1 + noise / 5))
