"""Mixed protocols: sliders and comparisons together at a fixed budget, against either alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.calibrated.methods import PAPER, Crowd, Drawn, scored, spearman
from reproductions.charts import curves
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.observations import Comparisons, FloatArray, IntArray, Mixed, Ratings
from steelyard.reliability.splitting import take

SLIDERS, COMPARISONS, BOTH = "sliders only", "comparisons only", "sliders, then comparisons"
Effects = Literal["auto", "none", "bias", "slope", "noise", "random"]


@dataclass(frozen=True, slots=True)
class MixedProtocols(Experiment):
    """Spend the same number of answers in three ways, and score all of them on the calibrated scale.

    Both ways with comparisons choose the pairs of their second half among items that came out close so far, in two
    rounds.
    """

    name: ClassVar[str] = "calibrated.mixed"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Mixed protocols: sliders and comparisons at a fixed budget"

    budgets: tuple[int, ...] = (4, 6, 8, 12)
    runs: int = 20
    draws: int = 400
    annotator_effects: Effects = "auto"
    seed: int = 0

    def small(self) -> Self:
        """Return few runs at one budget, with the differences that the simulated annotators have."""
        return replace(self, budgets=(8,), runs=4, draws=80, annotator_effects="noise")

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Simulate run by run, the same crowd for all three ways."""
        model = CalibratedScale(draws=self.draws, annotator_effects=self.annotator_effects)
        correlations = np.empty((self.runs, len(self.budgets), 3))
        for run in range(self.runs):
            for at, budget in enumerate(self.budgets):
                crowd = Crowd(items=100, people=25).drawn(np.random.default_rng([self.seed, run]))
                for way, score in enumerate(spent(crowd, budget, model)):
                    correlations[run, at, way] = spearman(score, crowd.truth)
            progress(run + 1, self.runs)
        table = pl.DataFrame(
            [
                {"answers": budget, "asked": way, "rho": float(correlations[:, at, number].mean())}
                for at, budget in enumerate(self.budgets)
                for number, way in enumerate((SLIDERS, COMPARISONS, BOTH))
            ]
        )
        return Outcome(
            tuple(self._claims(correlations)),
            table,
            lambda: curves(
                table,
                "answers",
                "rho",
                "asked",
                title="Sliders and comparisons, together and alone",
                x_title="answers per item",
                y_title="Spearman’s ρ with true values",
            ),
            (
                "100 items, 25 annotators: bias 0.10, scale use ± 30 %; noise of a response 0.20 of the scale on a "
                "slider and 0.10 in a comparison, ± 40 % between annotators. "
                "A slider and a comparison cost one answer each.",
            ),
        )

    def _claims(self, found: FloatArray) -> list[Claim]:
        claims = []
        for at, budget in enumerate(self.budgets):
            sliders, comparisons, both = found[:, at].T
            better = sliders if sliders.mean() >= comparisons.mean() else comparisons
            gain = both - better
            half = 1.96 * gain.std(ddof=1) / np.sqrt(self.runs)
            mean = float(gain.mean())
            claims.append(
                Claim(
                    f"{budget} answers per item: ρ of both minus that of the better one alone",
                    mean,
                    mean - half,
                    mean + half,
                )
            )
        return claims


def spent(crowd: Drawn, budget: int, model: CalibratedScale) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give `budget` answers per item: on sliders, in comparisons, and half in each; return the three scores."""
    n = len(crowd.truth)
    sliders = crowd.ratings(*crowd.who(budget))
    some = take(sliders, np.tile(np.arange(budget), n) < budget // 2)
    half = n * budget // 2
    alone = _then_close_pairs(crowd, None, _random_pairs(crowd, half), half, model)
    both = _then_close_pairs(crowd, some, None, half, model)
    return scored(model, sliders), alone, both


def _then_close_pairs(
    crowd: Drawn, sliders: Ratings | None, pairs: Comparisons | None, count: int, model: CalibratedScale
) -> FloatArray:
    """Go on from what was asked with pairs that came out close, in two rounds; return the scores from all."""
    for part in (count // 2, count - count // 2):
        close = _close_pairs(crowd, _scores(sliders, pairs, model), part)
        pairs = close if pairs is None else _together(pairs, close)
    return _scores(sliders, pairs, model)


def _scores(sliders: Ratings | None, pairs: Comparisons | None, model: CalibratedScale) -> FloatArray:
    parts = [part for part in (sliders, pairs) if part is not None]
    return scored(model, parts[0] if len(parts) == 1 else Mixed.of(parts))


def _together(one: Comparisons, other: Comparisons) -> Comparisons:
    return replace(
        one,
        left=np.concatenate([one.left, other.left]),
        right=np.concatenate([one.right, other.right]),
        outcome=np.concatenate([one.outcome, other.outcome]),
        annotator=np.concatenate([one.annotator, other.annotator]),
        task=np.concatenate([one.task, other.task]),
    )


def _random_pairs(crowd: Drawn, count: int) -> Comparisons:
    n = len(crowd.truth)
    left = crowd.rng.integers(n, size=count)
    right = (left + crowd.rng.integers(1, n, size=count)) % n
    return _asked(crowd, left, right)


def _close_pairs(crowd: Drawn, score: FloatArray, count: int) -> Comparisons:
    """Compare items up to a tenth of the ranking apart."""
    n = len(crowd.truth)
    order = np.argsort(np.nan_to_num(score, nan=float(np.nanmean(score))))
    place = crowd.rng.integers(n, size=count)
    step = crowd.rng.integers(1, max(2, n // 10), size=count)
    other = np.where(place + step < n, place + step, place - step)
    return _asked(crowd, order[place], order[other])


def _asked(crowd: Drawn, left: np.ndarray, right: np.ndarray) -> Comparisons:
    who: IntArray = crowd.rng.integers(len(crowd.bias), size=len(left)).astype(np.int32)
    return crowd.comparisons(left.astype(np.int32), right.astype(np.int32), who)
