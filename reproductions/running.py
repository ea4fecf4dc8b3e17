"""Run experiments, optionally in parallel, and collect their claims, tables, figures and times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from reproductions.base import Claim, Experiment, Progress


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The result of one experiment: claims, table, figure and run time."""

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
        paths = []
        if self.svg is not None:
            paths.append(folder / f"{name}.svg")
            paths[-1].write_text(self.svg, encoding="utf-8")
        if self.png is not None:
            paths.append(folder / f"{name}.png")
            paths[-1].write_bytes(self.png)
        if self.table is not None:
            paths.append(folder / f"{name}.csv")
            self.table.write_csv(paths[-1])
        return paths


def ignore_progress(done: int, total: int) -> None:
    """Report progress to nobody."""


def reproduce(
    experiment: Experiment, data: Path, progress: Progress = ignore_progress, *, draw: bool = True
) -> Reproduction:
    """Run one experiment and draw its figure."""
    experiment.check_data(data)
    start = time.perf_counter()
    outcome = experiment.run(data, progress)
    seconds = time.perf_counter() - start
    svg, png = None, None
    if draw and outcome.chart is not None:
        from steelyard.report import charts

        chart = outcome.chart()
        svg, png = charts.svg(chart, embed_font=False), charts.png(chart)
    return Reproduction(experiment, outcome.claims, outcome.table, outcome.notes, seconds, svg, png)


def reproduce_all(
    experiments: Sequence[Experiment],
    data: Path,
    *,
    jobs: int = 1,
    draw: bool = True,
    progress_of: Callable[[Experiment], Progress] = lambda experiment: ignore_progress,
) -> Iterator[Reproduction]:
    """Run experiments, `jobs` in parallel, and yield each result in the order of the experiments.

    `progress_of` returns the progress callback of an experiment. With several jobs it is called only when the
    experiment has ended, because other processes do not report progress.
    """
    for experiment in experiments:
        experiment.check_data(data)
    if jobs == 1 or len(experiments) == 1:
        for experiment in experiments:
            yield reproduce(experiment, data, progress_of(experiment), draw=draw)
        return
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    calls = (delayed(reproduce)(experiment, data, draw=draw) for experiment in experiments)
    for result in Parallel(n_jobs=jobs, return_as="generator")(calls):
        progress_of(result.experiment)(1, 1)
        yield result


def claims_table(reproductions: Sequence[Reproduction]) -> pl.DataFrame:
    """Return our numbers beside the published ones, one row per claim."""
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
