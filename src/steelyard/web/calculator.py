"""The calculator process: computes, draws and exports what the dashboard shows, so that no annotator has to wait.

The module-level functions run in that process, where studies stay open from one call to the next. The server calls
them through `CalculatorProcess`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from multiprocessing.connection import wait
from typing import Any, ClassVar, TypeVar

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.history import History
from steelyard.analysis.match_quality import match_quality_by_round
from steelyard.analysis.tables import (
    Estimate,
    Forecast,
    costs,
    forecast,
    item_judgments,
    label_counts,
    least_certain,
    paid_people,
    progress_over_time,
    ranked_items,
    rate,
    score_histogram,
)
from steelyard.errors import ModelFailedError, StoreError
from steelyard.study import Status, Study
from steelyard.study.fitting import on_rating_scale

MODEL_REMEDY = "The judgments can still be downloaded. Choose another model; the traceback is in the server's log."
_SCORE_TABLES = {"scores", "least_certain", "histogram", "labels", "matching"}
_LATEST = 100
"""Maximum number of flags, skips and leased tasks on the page; the log has them all."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a study is stored."""

    folder: str
    database: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Overview:
    """Everything on the dashboard except reliability, which takes longer to compute; as of event `seq`."""

    seq: int
    judgments: int
    at: datetime
    duration: float
    status: Status
    rate: Estimate | None
    forecast: Forecast
    model: str
    level: float
    notes: tuple[str, ...]
    problem: str
    """Why there are no scores, in a sentence; empty if there are scores."""
    failure: str
    """The traceback of a model that failed, for the server's log."""
    systems_notes: tuple[str, ...] = ()
    systems_problem: str = ""
    """Why the systems cannot be compared; empty if they can, or if there are none."""
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Reliability and agreement of the judgments, as of event `seq`."""

    seq: int
    judgments: int
    duration: float
    statistics: pl.DataFrame
    curve: pl.DataFrame
    title: str
    target: float | None


# The process


def initialise() -> None:
    """Set up the calculator process: it ends with its parent and runs at low priority."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)
    warnings.simplefilter("ignore")
    threading.Thread(target=_end_with_parent, daemon=True).start()


def load_modules() -> bool:
    """Import the modules that take long to import."""
    from steelyard.report import charts

    return bool(charts)


def _end_with_parent() -> None:
    """End this process when the server's process ends, even if that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)


@contextmanager
def _without_sigint() -> Iterator[None]:
    """Block SIGINT in processes started in the block: the parent ends them, so they print nothing at Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class CalculatorProcess:
    """The server's side of the calculator process, which all studies share. It starts at the first call."""

    _pool: ClassVar[ProcessPoolExecutor | None] = None

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in the process, and wait for the result without blocking the event loop."""
        try:
            return await self._submit(function, *arguments)
        except BrokenProcessPool:
            # The process was killed or ran out of memory; try once in a new one.
            CalculatorProcess._pool = None
            return await self._submit(function, *arguments)

    def _submit(self, function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        if CalculatorProcess._pool is None:
            context = multiprocessing.get_context("spawn")
            CalculatorProcess._pool = ProcessPoolExecutor(1, mp_context=context, initializer=initialise)
        with _without_sigint():
            return asyncio.get_running_loop().run_in_executor(CalculatorProcess._pool, function, *arguments)

    @staticmethod
    def end() -> None:
        """End the process at once; a running computation is abandoned."""
        pool, CalculatorProcess._pool = CalculatorProcess._pool, None
        if pool is not None:
            # From Python 3.14 on there is pool.terminate_workers().
            for process in list(pool._processes.values()):
                process.terminate()
            pool.shutdown(wait=True, cancel_futures=True)

    def close_study(self, source: Source) -> None:
        """Close a study in the process, if it is running."""
        if CalculatorProcess._pool is not None:
            with suppress(BrokenProcessPool, RuntimeError):
                CalculatorProcess._pool.submit(close, source)


# Open studies


class _OpenStudy:
    """An open study with its latest results."""

    def __init__(self, source: Source) -> None:
        self.study = Study.open(source.folder, database=source.database)
        self.overview: Overview | None = None
        self.charts: dict[str, Any] = {}
        self.reliability: Reliability | None = None
        self._analysis: Analysis | None = None

    def analysis(self) -> Analysis:
        """Return the current analysis; it is computed again only if there are new events."""
        if self._analysis is None or self._analysis.seq < self.study.last_seq():
            self._analysis = Analysis.of(self.study, real_ids=True, picks=True)
        return self._analysis


_open_studies: dict[Source, _OpenStudy] = {}


def _open(source: Source) -> _OpenStudy:
    if source not in _open_studies:
        _open_studies[source] = _OpenStudy(source)
    return _open_studies[source]


def close(source: Source) -> None:
    """Close a study."""
    opened = _open_studies.pop(source, None)
    if opened is not None:
        opened.study.close()


# Results


def compute_overview(source: Source) -> Overview:
    """Compute everything except reliability; a study whose configuration has changed is opened again."""
    try:
        return _overview(_open(source))
    except StoreError:
        close(source)
        return _overview(_open(source))


def _overview(opened: _OpenStudy) -> Overview:
    study = opened.study
    begin = time.perf_counter()
    now = datetime.now(UTC)
    analysis = opened.analysis()
    history = analysis.history
    status = study.status()
    remaining = forecast(history, status, now)
    tables = {
        "progress": progress_over_time(history),
        "speed": progress_over_time(history, points=30),
        "costs": costs(history, study.config, remaining.tasks, paid_people(history, study)),
        "annotators": _with_pseudonyms(analysis.annotators, study),
        "checks": pl.DataFrame([asdict(check) for check in study.quality.checks()]),
        "leased_tasks": history.open_tasks().head(_LATEST),
        "notes": history.notes.filter(pl.col("kind").is_in(["flag", "skip"])).reverse().head(_LATEST),
    }
    fit = analysis.fit
    if not isinstance(fit, str):
        tables |= _score_tables(study, history, ranked_items(fit.scores, study.items))
    systems = analysis.systems
    if systems is not None and not isinstance(systems, str):
        tables |= {"systems": systems.scores, "system_differences": systems.differences}
    tables |= _tournament_tables(analysis)
    overview = Overview(
        seq=analysis.seq,
        judgments=status.judgments,
        at=now,
        duration=time.perf_counter() - begin,
        status=status,
        rate=rate(history, now),
        forecast=remaining,
        model=study.config.model.name,
        level=0.95 if isinstance(fit, str) else fit.level,
        notes=() if isinstance(fit, str) else fit.notes,
        problem=fit if isinstance(fit, str) else "",
        failure=analysis.failure,
        systems_notes=systems.notes if systems is not None and not isinstance(systems, str) else (),
        systems_problem=systems if isinstance(systems, str) else "",
        tables=tables,
    )
    opened.charts = _charts(overview)
    opened.overview = replace(overview, titles=_titles(opened.charts), duration=time.perf_counter() - begin)
    return opened.overview


def _tournament_tables(analysis: Analysis) -> dict[str, pl.DataFrame]:
    """Return the tables of tournaments, source by source; none if the study holds no tournaments."""
    tournaments = analysis.tournaments
    if tournaments is None:
        return {}
    return {
        "average_dominance": tournaments.systems,
        "sources": analysis.names.frame(tournaments.graphs),
        "adequacy": tournaments.items,
        "effort": tournaments.effort,
    }


def _with_pseudonyms(annotators: pl.DataFrame, study: Study) -> pl.DataFrame:
    """Add each annotator's pseudonym, so that the manager can find them in exports."""
    pseudonyms = [study.privacy.pseudonym(name) for name in annotators["annotator"]]
    return annotators.with_columns(pl.Series("pseudonym", pseudonyms, pl.String))


def _score_tables(study: Study, history: History, ranked: pl.DataFrame) -> dict[str, pl.DataFrame]:
    scales = study.config.stages[0].protocol.scales()
    tables = {"scores": ranked, "least_certain": least_certain(ranked)}
    if "score" not in ranked.columns:
        return {**tables, "labels": label_counts(ranked)}
    rated = on_rating_scale(study.config.model, study.config.stages)
    first = _first_criterion(ranked)
    name = first["criterion"][0] if "criterion" in first.columns and first.height else ""
    tables["histogram"] = score_histogram(first, scale=scales.get(name) if rated else None)
    matching = match_quality_by_round(history, study, ranked)
    return {**tables, "matching": matching} if matching.height else tables


def _first_criterion(ranked: pl.DataFrame) -> pl.DataFrame:
    """Return the scores of the first criterion, which the chart shows; the table has every criterion."""
    if "criterion" not in ranked.columns or ranked.is_empty():
        return ranked
    return ranked.filter(pl.col("criterion") == ranked["criterion"][0])


def compute_reliability(source: Source) -> Reliability:
    """Compute reliability and agreement of the judgments that count."""
    opened = _open(source)
    begin = time.perf_counter()
    analysis = opened.analysis()
    statistics = analysis.reliability_table()
    curve = next((part.curve for part in analysis.reliability if part.curve.height), pl.DataFrame())
    from steelyard.report import charts

    title = charts.title_of(charts.reliability(curve)) if curve.height else ""
    duration = time.perf_counter() - begin
    counted = analysis.history.counted.height
    opened.reliability = Reliability(
        analysis.seq, counted, duration, statistics, curve, title, analysis.split_half_target
    )
    return opened.reliability


def compute_item(source: Source, item: str) -> pl.DataFrame:
    """Return every judgment of an item."""
    opened = _open(source)
    return item_judgments(opened.analysis().history, opened.study.config, item)


# Charts


def _titles(drawings: dict[str, Any]) -> dict[str, str]:
    from steelyard.report import charts

    return {name: charts.title_of(chart) for name, chart in drawings.items()}


def _charts(overview: Overview) -> dict[str, Any]:
    from steelyard.report import charts

    tables = overview.tables
    done, total = (sum(getattr(stage, name) for stage in overview.status.stages) for name in ("done", "total"))
    drawings: dict[str, Any] = {}
    if tables["progress"].height:
        drawings["progress"] = charts.progress(tables["progress"], done, total, overview.forecast)
        drawings["speed"] = charts.speed(tables["speed"], overview.rate)
        drawings["annotators"] = charts.annotators(tables["annotators"])
    if "histogram" in tables:
        drawings["scores"] = charts.caterpillar(_first_criterion(tables["scores"]), level=overview.level)
        drawings["histogram"] = charts.histogram(tables["histogram"])
    if "systems" in tables:
        drawings |= _system_charts(tables["systems"], tables["system_differences"], overview.level)
    if "labels" in tables:
        drawings["labels"] = charts.labels(tables["labels"])
    if "matching" in tables:
        drawings["matching"] = charts.match_quality_map(tables["matching"])
    return drawings


def _system_charts(systems: pl.DataFrame, differences: pl.DataFrame, level: float) -> dict[str, Any]:
    """Draw the leaderboard and the significance matrix of the first criterion and label; the tables have them all."""
    from steelyard.report.systems import leaderboard, significance_matrix

    keys = systems.columns[: systems.columns.index("system")]
    first = [pl.col(key) == systems[key][0] for key in keys] if systems.height else []
    scores, pairs = systems.filter(*first), differences.filter(*first)
    return {
        "systems": leaderboard(scores, level=level),
        "significance": significance_matrix(pairs, scores["system"].to_list()),
    }


def draw(
    source: Source, name: str, form: str, theme: Any, width: int, item: str | None = None, real_ids: bool = True
) -> bytes | None:
    """Draw a chart as svg, png or json (its specification); None if there is no such chart at present.

    Without `real_ids`, annotators have pseudonyms, as in every export.
    """
    from steelyard.report import charts

    opened = _open(source)
    if name == "item" and item is not None:
        chart = _item_chart(opened, source, item, real_ids)
    elif name == "reliability":
        latest = opened.reliability
        chart = charts.reliability(latest.curve, target=latest.target) if latest and latest.curve.height else None
    else:
        if opened.overview is None:
            compute_overview(source)
        opened = _open(source)
        chart = opened.charts.get(name)
        if name == "annotators" and chart is not None and not real_ids and opened.overview is not None:
            chart = charts.annotators(opened.study.privacy.names().frame(opened.overview.tables["annotators"]))
    if chart is None:
        return None
    if form == "png":
        return charts.png(chart, theme, width=width)
    if form == "json":
        import json

        return json.dumps(charts.spec(chart, theme, width)).encode()
    return charts.svg(chart, theme, width=width).encode()


def _item_chart(opened: _OpenStudy, source: Source, item: str, real_ids: bool) -> Any:
    from steelyard.report import charts

    judgments = opened.study.privacy.names(real=real_ids).frame(compute_item(source, item))
    scales = list(opened.study.config.stages[0].protocol.scales().values())
    if not scales or judgments["value"].null_count() == judgments.height:
        return None
    return charts.item_ratings(judgments, item, scales[0])


# Files


def export(
    source: Source, what: str, form: str, stage: str | None = None, item: str | None = None, real_ids: bool = False
) -> bytes | None:
    """Return a table as the bytes of a file (csv, jsonl or parquet); None if there is no such table at present.

    Annotators have pseudonyms unless `real_ids`.
    """
    import tempfile
    from pathlib import Path

    from steelyard.formats import item_table, write_table
    from steelyard.study.exporting import conventional_judgments

    opened = _open(source)
    if what == "judgments":
        frame: pl.DataFrame | None = conventional_judgments(opened.study, stage, real_ids=True)
    elif what == "answers":
        frame = opened.analysis().history.judgments
    elif what == "item" and item is not None:
        frame = compute_item(source, item)
    elif what == "items":
        frame = item_table(opened.study.items)
    else:
        frame = _table(opened, source, what)
    if frame is None:
        return None
    if not real_ids:
        own = [name for name in frame.columns if name != "pseudonym"]
        frame = _open(source).study.privacy.names().frame(frame.select(own))
    with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
        path = Path(folder) / f"table.{form}"
        write_table(frame, path)
        return path.read_bytes()


def _table(opened: _OpenStudy, source: Source, what: str) -> pl.DataFrame | None:
    if what in {"statistics", "reliability"}:
        latest = opened.reliability or compute_reliability(source)
        return latest.statistics if what == "statistics" else latest.curve
    # The chart of the differences is named after what it shows.
    what = {"differences": "system_differences", "significance": "system_differences"}.get(what, what)
    overview = opened.overview
    if overview is None or overview.seq < opened.study.last_seq():
        overview = compute_overview(source)
    if overview.failure and what in _SCORE_TABLES:
        raise ModelFailedError(overview.problem, MODEL_REMEDY)
    return overview.tables.get(what)
