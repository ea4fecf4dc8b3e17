"""Figures 7 and 10 and Table 1: how the scores of each method lie on the scale, beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.easl.methods import PAPER, Method, Panel, RecordedPanel, SimulatedPanel, rounds
from reproductions.easl.populations import AGREEMENT, POLITICAL, PROPOSITIONS, TASKS, agreement, read_propositions
from reproductions.easl.sliders import SLIDERS, parted, read_sliders
from steelyard.observations import FloatArray, Index, IntArray
from steelyard.report.charts import Chart, titled, values_of
from steelyard.simulate import RecordedAnnotators, SimulatedAnnotators, make_crowd

# Table 1: ten propositions by gold, direct assessment, ranking aggregation and EASL.
_TABLE_1 = np.array(
    [
        (100.0, 91.7, 75.8, 91.9),
        (92.9, 90.1, 74.6, 90.0),
        (78.6, 86.3, 72.9, 86.4),
        (75.0, 78.2, 68.3, 77.3),
        (53.6, 55.5, 55.8, 55.9),
        (50.0, 53.0, 53.8, 53.5),
        (32.2, 31.0, 44.0, 31.4),
        (28.6, 22.4, 37.3, 23.0),
        (10.7, 9.6, 31.5, 9.6),
        (0.0, 7.1, 29.9, 7.4),
    ]
)
_COLUMN = {Method.DA: 1, Method.RA: 2, Method.EASL: 3}

_TRUTH = "truth"
_MEAN = "RA by the Beta's mean"
_SHOWN = (_TRUTH, str(Method.DA), str(Method.RA), _MEAN, str(Method.EASL))
_BINS = np.linspace(0, 1, 6)
_SIMULATED, _REPLAYED = "political propositions, simulated annotators", "NLI sliders replayed"
_ROWS = "the ten rows of Table 1"


@dataclass(frozen=True, slots=True)
class Histograms(Experiment):
    """Put the scores after the last round into five bins, and see how far they are drawn to the middle."""

    name: ClassVar[str] = "easl.histograms"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Figures 7 and 10, Table 1: distribution of scores on the scale"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown("Figure 7", "approximated", "the paper's judgments are not available: simulated annotators"),
        Shown(
            "Figure 10",
            "approximated",
            "the paper's judgments are not available: simulated annotators rate the paper's own 150 propositions",
        ),
        Shown(
            "Table 1",
            "approximated",
            "the paper's judgments are not available: simulated annotators rate the paper's own 150 propositions",
        ),
    )
    data: ClassVar[tuple[str, ...]] = (SLIDERS, PROPOSITIONS)

    items: int = 150
    """Items of the replay; the propositions are the paper's 150."""
    rounds: int = 10
    runs: int = 20
    seed: int = 0

    def small(self) -> Self:
        """Return fewer items and runs."""
        return replace(self, items=60, runs=4)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Collect by simulation and by replay."""
        ratings = read_sliders(data)
        scores: dict[str, list[dict[str, FloatArray]]] = {_SIMULATED: [], _REPLAYED: []}
        truth, agreed = read_propositions(data), []
        rows = _nearest(np.array(list(truth.values())), _TABLE_1[:, 0] / 100)
        for run in range(self.runs):
            rng = np.random.default_rng([self.seed, run])
            crowd = make_crowd(50, rng, TASKS[POLITICAL])
            agreed.append(agreement(SimulatedPanel(SimulatedAnnotators(crowd, truth, rng), rng), 10))
            simulated = [SimulatedPanel(SimulatedAnnotators(crowd, truth, rng), rng) for _ in _COLUMN]
            scores[_SIMULATED].append(self._scores(np.array(list(truth.values())), simulated, rng))
            items, value, answers = parted(ratings, self.items, rng)
            recorded = [RecordedPanel(RecordedAnnotators(answers, 1, rng), Index(items)) for _ in _COLUMN]
            scores[_REPLAYED].append(self._scores(value, recorded, rng))
            progress(run + 1, self.runs)
        table = _bin(scores)
        of_rows = [{name: value[rows] for name, value in run.items()} for run in scores[_SIMULATED]]
        claims = [
            Claim(
                "agreement of ten annotators (ρ) on the political propositions",
                float(np.mean(agreed)),
                published=AGREEMENT[POLITICAL],
                why="the annotators' noise was chosen to match it",
            ),
            *(
                _slope_claim(of_rows, str(method), _published_slope(column), _ROWS)
                for method, column in _COLUMN.items()
            ),
            _slope_claim(of_rows, _MEAN, _published_slope(_COLUMN[Method.RA]), _ROWS),
            *(_slope_claim(scores[_SIMULATED], name, None, _SIMULATED) for name in _SHOWN[1:]),
            *(_slope_claim(scores[_REPLAYED], name, None, _REPLAYED) for name in _SHOWN[1:]),
        ]
        return Outcome(tuple(claims), table, lambda: _chart(table), _NOTES)

    def _scores(self, truth: FloatArray, panels: Sequence[Panel], rng: np.random.Generator) -> dict[str, FloatArray]:
        scores = {_TRUTH: truth}
        for method, panel in zip(_COLUMN, panels, strict=True):
            *_, state = rounds(method, panel, self.rounds, rng)
            scores[str(method)] = state.mode
            if method == Method.RA:
                scores[_MEAN] = state.mean
        return scores


_NOTES = (
    "A slope of 1 means that differences in scores are as large as differences in true values; it is below 1 if "
    "scores are shrunk to the middle.",
    "The propositions are the paper's; many lie at the ends of the spectrum. Their annotations are not available: "
    "simulated annotators have the agreement that the paper reports. The rows of Table 1 are the propositions whose "
    "gold is nearest to those printed.",
    "Ranking aggregation is drawn to the middle when it is scored by the mode of the Beta, as the paper states; the "
    "Beta's mean, α/(α + β), is drawn there further than in Table 1.",
    "Figure 7 is a histogram of other items (lexical frequency); only the form can be compared.",
)


def _nearest(values: FloatArray, wanted: FloatArray) -> IntArray:
    """Return the positions of the values nearest to those wanted, each once."""
    free = np.ones(len(values), bool)
    positions = []
    for value in wanted:
        at = int(np.where(free, np.abs(values - value), np.inf).argmin())
        free[at] = False
        positions.append(at)
    return np.array(positions, np.int32)


def _published_slope(column: int) -> float:
    """Return the slope of a method's values on gold in Table 1."""
    return _slope(_TABLE_1[:, column], _TABLE_1[:, 0])


def _slope(score: FloatArray, truth: FloatArray) -> float:
    return float(np.polyfit(truth, score, 1)[0])


def _slope_claim(runs: list[dict[str, FloatArray]], name: str, published: float | None, where: str) -> Claim:
    slopes = np.array([_slope(run[name], run[_TRUTH]) for run in runs])
    reach = 1.96 * float(slopes.std(ddof=1)) / len(slopes) ** 0.5
    why = "not in the paper" if published is None else "simulated annotators"
    if name == _MEAN and published is not None:
        why = "the paper scores by the mode"
    mean = float(slopes.mean())
    return Claim(
        f"slope of scores on true values, {name}, {where}", mean, mean - reach, mean + reach, published, why=why
    )


def _bin(scores: dict[str, list[dict[str, FloatArray]]]) -> pl.DataFrame:
    """Return the share of items in each fifth of the scale, mean of the runs."""
    rows = []
    for where, runs in scores.items():
        for name in _SHOWN:
            counts = np.mean([np.histogram(run[name], _BINS)[0] / len(run[name]) for run in runs], axis=0)
            rows += [(where, name, low, high, float(n)) for low, high, n in zip(_BINS, _BINS[1:], counts, strict=False)]
    schema = {"where": pl.String, "method": pl.String} | dict.fromkeys(("from", "to", "share"), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _chart(table: pl.DataFrame) -> Chart:
    import altair as alt

    base: Any = (
        alt.Chart(values_of(table))
        .mark_bar(binSpacing=1)
        .encode(
            x=alt.X("from:Q", bin="binned", title="score", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=6)),
            x2="to:Q",
            y=alt.Y("share:Q", title="share of the items", axis=alt.Axis(format=".0%", tickCount=4)),
        )
        .properties(width=110, height=110)
    )
    faceted = base.facet(
        column=alt.Column("method:N", sort=list(_SHOWN), title=None, header=alt.Header(labelLimit=130)),
        row=alt.Row("where:N", sort=[_SIMULATED, _REPLAYED], title=None),
    )
    title = "Direct assessment and EASL follow the true values; ranking aggregation is drawn to the middle"
    return titled(faceted, title)  # type: ignore[no-any-return]
