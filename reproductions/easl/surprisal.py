"""Figures 2 and 3: how surprising an outcome is, for TrueSkill and for its bounded variant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl
from scipy import special

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.charts import curves
from reproductions.easl.methods import PAPER
from steelyard.models.comparisons.bounded_ranking import outcome_probabilities
from steelyard.models.comparisons.truncated_gaussian import tie_moments, win_moments
from steelyard.observations import FloatArray
from steelyard.report.charts import Chart

_PANELS = ("Figure 2: v, change of μ", "Figure 2: w, decrease of σ²", "Figure 3: 1 − p, bounded")


@dataclass(frozen=True, slots=True)
class Surprisal(Experiment):
    """Evaluate the update functions of Eq. 5–6, 9–10 and 20–22 with ε = 0.5."""

    name: ClassVar[str] = "easl.surprisal"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Figures 2 and 3: surprisal of a win and of a tie"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown("Figure 2", "reproduced"),
        Shown("Figure 3", "reproduced"),
    )

    epsilon: float = 0.5
    points: int = 121

    def small(self) -> Self:
        """Return fewer points."""
        return replace(self, points=13)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Evaluate our functions, and compare them with the formulas as printed."""
        t = np.linspace(-6, 6, self.points)
        win = np.array([win_moments(float(each) - self.epsilon) for each in t])
        tie = np.array([tie_moments(float(each), self.epsilon) for each in t])
        apart = np.linspace(-1, 1, self.points)
        bounded = outcome_probabilities(apart, np.zeros(self.points), self.epsilon)
        series = (
            (_PANELS[0], t, win[:, 0], tie[:, 0]),
            (_PANELS[1], t, win[:, 1], tie[:, 1]),
            (_PANELS[2], apart, 1 - bounded[0], 1 - bounded[1]),
        )
        table = pl.concat(
            pl.DataFrame({"panel": panel, "difference": x, "outcome": outcome, "surprisal": values})
            for panel, x, *pair in series
            for outcome, values in zip(("i wins", "tie"), pair, strict=True)
        )
        progress(1, 1)
        printed = printed_formulas(t, self.epsilon)
        ours = np.stack([win[:, 0], tie[:, 0], win[:, 1], tie[:, 1]])
        why = "the paper shows curves without numbers"
        centre = float(np.interp(0.0, t, win[:, 0]))
        claims = (
            Claim(
                "largest difference of v and w from Eq. 5–6 and 9–10 as printed", float(np.abs(ours - printed).max())
            ),
            Claim("v of a win at t = 0", centre, why=why),
            Claim("v of a tie at t = 0", float(np.interp(0.0, t, tie[:, 0])), published=0.0),
            Claim("largest w of a win or a tie (the paper: below 1)", float(max(win[:, 1].max(), tie[:, 1].max()))),
            Claim("smallest w of a win or a tie (the paper: above 0)", float(min(win[:, 1].min(), tie[:, 1].min()))),
            Claim("1 − p of a win between equal items", float(np.interp(0.0, apart, 1 - bounded[0])), why=why),
        )
        return Outcome(claims, table, lambda: _chart(table), _NOTES)


_NOTES = (
    "ε = 0.5, as in the paper. The horizontal axis is t, the difference of the means, and in Figure 3 that of the "
    "modes, which lies between −1 and 1.",
    "1 − p of a win depends on the difference only little, because π = exp(mode) lies between 1 and e.",
)


def printed_formulas(t: FloatArray, epsilon: float) -> FloatArray:
    """Return v of a win and a tie, and w of a win and a tie (Eq. 5–6, 9–10), as printed."""

    def density(x: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))

    win = density(t - epsilon) / special.ndtr(t - epsilon)
    mass = special.ndtr(epsilon - t) - special.ndtr(-epsilon - t)
    tie = (density(-epsilon - t) - density(epsilon - t)) / mass
    spread = ((epsilon - t) * density(epsilon - t) + (epsilon + t) * density(epsilon + t)) / mass
    return np.stack([win, tie, win * (win + t - epsilon), tie**2 + spread])


def _chart(table: pl.DataFrame) -> Chart:
    return curves(
        table,
        "difference",
        "surprisal",
        "outcome",
        facet="panel",
        title="An unexpected win moves both items far, an expected one hardly",
        subtitle="Update functions with ε = 0.5, by the difference of the two items",
        x_title="difference of i and j",
        y_title="surprisal",
        whole_numbers=False,
        points=False,
    )
