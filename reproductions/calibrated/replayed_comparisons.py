"""Adaptive pairs against random pairs on recorded answers: how many comparisons the choice of pairs saves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.calibrated.methods import PAPER, needed, scored, spearman
from reproductions.charts import curves
from reproductions.easl.sliders import SLIDERS, parted, read_sliders
from steelyard.errors import ConfigError
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.fit import Model
from steelyard.observations import Comparisons, FloatArray, Ratings
from steelyard.protocols import Protocol
from steelyard.records import Item
from steelyard.report.charts import Chart
from steelyard.simulate import simulate_study
from steelyard.simulate.answers import answer_for
from steelyard.study.config import StudyConfig, parse_config

RANDOM, ADAPTIVE = "random pairs", "adaptive pairs"
DESIGNS = {RANDOM: "random_tuples", ADAPTIVE: "adaptive"}
SEATS = 10
"""Annotators at work at a time. Each answer may be another recorded person's, so that nobody can be calibrated."""


class Sliders:
    """Answers a comparison by a recorded slider of each item, each used once while there are unused ones."""

    def __init__(self, answers: Ratings, rng: np.random.Generator) -> None:
        self.names = tuple(f"seat-{number}" for number in range(SEATS))
        self._values = {
            item: rng.permutation(answers.unit_value[answers.item == code])
            for code, item in enumerate(answers.items.ids)
        }
        self._used = dict.fromkeys(answers.items.ids, 0)

    def answer(self, annotator: str, protocol: Protocol, items: Sequence[str]) -> Any:
        """Return an answer to a task."""
        perceived = {}
        for item in items:
            values = self._values[item]
            perceived[item] = float(values[self._used[item] % len(values)])
            self._used[item] += 1
        return answer_for(protocol, perceived, 0.0)

    def seconds(self, protocol: Protocol) -> float | None:
        """Return None: the recorded times are of other tasks."""
        return None


@dataclass(frozen=True, slots=True)
class ReplayedComparisons(Experiment):
    """Let recorded sliders answer comparisons, chosen adaptively or at random, and score both by Bradley–Terry."""

    name: ClassVar[str] = "calibrated.replayed_comparisons"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Adaptive pairs on recorded answers: comparisons needed against random pairs"
    data: ClassVar[tuple[str, ...]] = (SLIDERS,)

    items: int = 100
    budgets: tuple[int, ...] = (4, 6, 8, 10, 12, 16, 20)
    """Comparisons per item; a comparison counts for both its items."""
    runs: int = 20
    seed: int = 0

    def small(self) -> Self:
        """Return two short runs."""
        return replace(self, items=40, budgets=(4, 8), runs=2)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Replay every run with both designs."""
        ratings = read_sliders(data)
        rho = {name: np.empty((self.runs, len(self.budgets))) for name in DESIGNS}
        for number in range(self.runs):
            rng = np.random.default_rng([self.seed, number])
            items, truth, answers = parted(ratings, self.items, rng)
            for how, design in DESIGNS.items():
                annotators = Sliders(answers, np.random.default_rng([self.seed, number, 1]))
                config = self._config(design, number)
                study = simulate_study(config, [Item(name, name) for name in items], annotators, rng)
                for at, budget in enumerate(self.budgets):
                    part = study.observations(most=budget * self.items // 2, kind=Comparisons.kind)[""]
                    rho[how][number, at] = spearman(scored(quick(config.model), part), truth)
            progress(number + 1, self.runs)
        table = pl.DataFrame(
            [
                {"design": name, "comparisons": budget, **_mean(rho[name][:, at])}
                for name in DESIGNS
                for at, budget in enumerate(self.budgets)
            ]
        )
        return Outcome(
            tuple(self._claims(rho)),
            table,
            lambda: _chart(table),
            (
                "The data are the sliders of Pavlick & Kwiatkowski (2019). A comparison is answered from one recorded "
                "slider of each item, usually by two different people. True scores are the means of other sliders of "
                "the same items.",
                "Items are scored by the study's own model, which is Bradley–Terry with ties for pairwise questions, "
                "without the identity of annotators, so that only the choice of pairs matters. Intervals are over "
                "runs, each with different items and answers.",
            ),
        )

    def _config(self, design: str, number: int) -> StudyConfig:
        return parse_config(
            {
                "title": "replay",
                "question": "Which?",
                "items": "items.csv",
                "seed": number,
                "protocol": {"name": "pairwise", "ties": True},
                "design": {"name": design, "judgments": max(self.budgets)},
            }
        )

    def _claims(self, rho: dict[str, FloatArray]) -> Iterator[Claim]:
        budgets = np.array(self.budgets, float)
        for at in range(1, len(self.budgets)):
            gain = rho[ADAPTIVE][:, at] - rho[RANDOM][:, at]
            mean, error = float(gain.mean()), 1.96 * float(gain.std(ddof=1)) / np.sqrt(len(gain))
            yield Claim(f"gain in ρ with {self.budgets[at]} comparisons per item", mean, mean - error, mean + error)
        rng = np.random.default_rng(self.seed)
        for target in self.budgets[-3:-1]:
            at = self.budgets.index(target)
            draws = [self._share(rho, budgets, at, rng.integers(self.runs, size=self.runs)) for _ in range(500)]
            share = self._share(rho, budgets, at, np.arange(self.runs))
            low, high = np.nanquantile(draws, [0.025, 0.975])
            what = f"comparisons that adaptive pairs need for the ρ of {target} random comparisons per item"
            yield Claim(what, 100 * share, 100 * float(low), 100 * float(high), unit="%")

    def _share(self, rho: dict[str, FloatArray], budgets: FloatArray, at: int, runs: np.ndarray) -> float:
        """Return the fraction of random comparisons that adaptive pairs need, over some runs."""
        level = float(rho[RANDOM][runs, at].mean())
        return float(needed(budgets, rho[ADAPTIVE][runs].mean(axis=0), level)) / float(budgets[at])


def quick(model: Model | None) -> Model:
    """Return the study's model with few draws, as only its scores are used."""
    if not isinstance(model, BradleyTerry):
        raise ConfigError("pairwise studies are expected to use bradley_terry.", "Adapt this experiment.")
    return replace(model, draws=20)


def _mean(values: FloatArray) -> dict[str, float]:
    mean, error = float(values.mean()), 1.96 * float(values.std(ddof=1)) / float(np.sqrt(len(values)))
    return {"value": mean, "lower": mean - error, "upper": mean + error}


def _chart(table: pl.DataFrame) -> Chart:
    return curves(
        table,
        "comparisons",
        "value",
        "design",
        title="On recorded answers, adaptive pairs save about a fifth of the comparisons",
        subtitle="NLI sliders replayed as comparisons, scored by Bradley–Terry; bands: 95 % intervals over runs",
        x_title="comparisons per item",
        y_title="Spearman’s ρ with other people’s mean",
    )
