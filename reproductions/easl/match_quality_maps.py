"""Figure 8: match quality between all pairs of items, in the order of the truth, round by round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.easl.curves import band
from reproductions.easl.methods import GAMMA, PAPER, Method, SimulatedPanel, rounds
from reproductions.easl.populations import TASKS
from steelyard.models.comparisons.match_quality import match_quality
from steelyard.models.ratings.easl import EASL, BetaState
from steelyard.observations import FloatArray
from steelyard.report.charts import Chart, titled, values_of
from steelyard.simulate import SimulatedAnnotators, make_crowd


@dataclass(frozen=True, slots=True)
class MatchQualityMaps(Experiment):
    """Let EASL ask ten rounds and map the match quality before, during and after."""

    name: ClassVar[str] = "easl.match_quality_maps"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Figure 8: match quality of all pairs, ordered by true value"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown("Figure 8", "approximated", "the paper's judgments are not available: simulated annotators"),
    )

    items: int = 150
    displayed_rounds: tuple[int, ...] = (0, 2, 5, 10)
    runs: int = 20
    cells: int = 15
    """Rows and columns of the map, each several items."""
    seed: int = 0

    def small(self) -> Self:
        """Return fewer items and runs."""
        return replace(self, items=60, runs=4)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Average the maps over simulated runs of the lexical-frequency task."""
        population = TASKS["lexical frequency"]
        maps = {done: np.zeros((self.cells, self.cells)) for done in self.displayed_rounds}
        near: dict[int, list[float]] = {done: [] for done in self.displayed_rounds}
        names = [f"item-{number}" for number in range(self.items)]
        for run in range(self.runs):
            rng = np.random.default_rng([self.seed, run])
            truth = population.truth(names, rng)
            order = np.argsort(list(truth.values()))
            crowd = make_crowd(50, rng, population)
            panel = SimulatedPanel(SimulatedAnnotators(crowd, truth, rng), rng)
            states = [EASL().start(self.items), *rounds(Method.EASL, panel, max(self.displayed_rounds), rng)]
            for done in self.displayed_rounds:
                quality = _quality(states[done], order)
                maps[done] += _blocks(quality, self.cells) / self.runs
                near[done].append(_near(quality))
            progress(run + 1, self.runs)
        table = _laid_out(maps)
        claims = tuple(
            Claim(
                f"match quality of neighbours over that of all pairs, round {done}",
                *band(np.array(ratios)),
                published=1.0 if done == 0 else None,
                why="" if done == 0 else "Figure 8 shows that the diagonal stands out, without numbers",
            )
            for done, ratios in near.items()
        )
        notes = (
            "Neighbours are items whose true ranks differ by at most a tenth of the number of items. Intervals "
            "contain 95 % of the runs.",
            "At the start all pairs have the same match quality, because nothing is known about the items.",
        )
        return Outcome(claims, table, lambda: _chart(table), notes)


def _quality(state: BetaState, order: np.ndarray[tuple[int], np.dtype[np.intp]]) -> FloatArray:
    return match_quality(state, order[:, None], order[None, :], GAMMA)


def _near(quality: FloatArray) -> float:
    """Return the mean quality of pairs close in rank over that of all pairs, leaving out items with themselves."""
    place = np.arange(len(quality))
    apart = np.abs(place[:, None] - place[None, :])
    return float(quality[(apart > 0) & (apart <= len(quality) / 10)].mean() / quality[apart > 0].mean())


def _blocks(quality: FloatArray, cells: int) -> FloatArray:
    """Average the quality of all pairs into a map of few cells; an item with itself does not count."""
    cell = np.arange(len(quality)) * cells // len(quality)
    flat = (cell[:, None] * cells + cell[None, :])[~np.eye(len(quality), dtype=bool)]
    values = quality[~np.eye(len(quality), dtype=bool)]
    total = np.bincount(flat, values, cells * cells) / np.maximum(np.bincount(flat, minlength=cells * cells), 1)
    return total.reshape(cells, cells)


def _laid_out(maps: dict[int, FloatArray]) -> pl.DataFrame:
    rows = [
        (done, row, column, float(value))
        for done, values in maps.items()
        for (row, column), value in np.ndenumerate(values)
    ]
    schema = {"round": pl.Int64, "row": pl.Int64, "column": pl.Int64, "quality": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _chart(table: pl.DataFrame) -> Chart:
    import altair as alt

    axis = alt.Axis(labels=False, ticks=False, grid=False)
    base: Any = (
        alt.Chart(values_of(table))
        .mark_rect()
        .encode(
            x=alt.X("column:O", title="items, by the truth", axis=axis),
            y=alt.Y("row:O", title="items, by the truth", axis=axis, sort="descending"),
            color=alt.Color("quality:Q", title="match quality", scale=alt.Scale(range=["#eef3f8", "#2c5e8a"])),
        )
        .properties(width=130, height=130)
        .facet(alt.Facet("round:N", title=None, header=alt.Header(labelExpr="'round ' + datum.value")), columns=4)
    )
    return titled(base, "The more is known, the more are like items matched with like")  # type: ignore[no-any-return]
