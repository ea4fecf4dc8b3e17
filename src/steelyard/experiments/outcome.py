"""Running experiments, several at a time if wanted, and what is kept of each: claims, table, figure, time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from steelyard.experiments.base import Claim, Experiment, Progress


@dataclass(frozen=True, slots=True)
class Reproduction:
    """An experiment that has been run: what came of it, its figure drawn, and how long it took."""

    experiment: Experiment
    claims: tuple[Claim, ...]
    table: pl.DataFrame | None
    notes: tuple[str, ...]
    seconds: float
    svg: str | None = field(default=None, repr=False)
    png: bytes | None = field(default=None, repr=False)

    def write(self, folder: Path) -> list[Path]:
        """Write the figure (SVG and PNG) and the table (CSV) into a folder; return the files."""
        folder.mkdir(parents=True, exist_ok=True)
        name = self.experiment.name
        written = []
        if self.svg is not None:
            written.append(folder / f"{name}.svg")
            written[-1].write_text(self.svg, encoding="utf-8")
        if self.png is not None:
            written.append(folder / f"{name}.png")
            written[-1].write_bytes(self.png)
        if self.table is not None:
            written.append(folder / f"{name}.csv")
            self.table.write_csv(written[-1])
        return written


def nobody(done: int, total: int) -> None:
    """Tell nobody how far it is."""


def reproduce(experiment: Experiment, data: Path, progress: Progress = nobody, *, draw: bool = True) -> Reproduction:
    """Run one experiment and draw its figure."""
    experiment.check_data(data)
    begin = time.perf_counter()
    outcome = experiment.run(data, progress)
    seconds = time.perf_counter() - begin
    svg, png = None, None
    if draw and outcome.chart is not None:
        from steelyard.report import charts

        chart = outcome.chart()
        svg, png = charts.svg(chart), charts.png(chart)
    return Reproduction(experiment, outcome.claims, outcome.table, outcome.notes, seconds, svg, png)


def reproduce_all(
    chosen: Sequence[Experiment],
    data: Path,
    *,
    jobs: int = 1,
    draw: bool = True,
    told_of: Callable[[Experiment], Progress] = lambda experiment: nobody,
) -> Iterator[Reproduction]:
    """Run experiments, `jobs` at a time, and yield each as soon as it and those before it are done.

    `told_of` gives what is told how far an experiment is. Other processes do not tell: with several jobs it hears
    of the end only.
    """
    for experiment in chosen:
        experiment.check_data(data)
    if jobs == 1 or len(chosen) == 1:
        for experiment in chosen:
            yield reproduce(experiment, data, told_of(experiment), draw=draw)
        return
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    work = (delayed(reproduce)(experiment, data, draw=draw) for experiment in chosen)
    for done in Parallel(n_jobs=jobs, return_as="generator")(work):
        told_of(done.experiment)(1, 1)
        yield done


def claims_table(reproductions: Sequence[Reproduction]) -> pl.DataFrame:
    """Return ours beside the published numbers, a row for each claim."""
    return pl.DataFrame(
        [
            (r.experiment.name, c.what, c.ours, c.lower, c.upper, c.published, c.difference, c.unit, c.why)
            for r in reproductions
            for c in r.claims
        ],
        schema={
            "experiment": pl.String,
            "what": pl.String,
            "ours": pl.Float64,
            "lower": pl.Float64,
            "upper": pl.Float64,
            "published": pl.Float64,
            "difference": pl.Float64,
            "unit": pl.String,
            "why": pl.String,
        },
        orient="row",
    )
