"""What the dashboard shows: computed, drawn and exported in a process of its own, so that no annotator waits for it.

Studies stay open in that process from one call to the next.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import warnings
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from multiprocessing.connection import wait
from typing import Any

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
from steelyard.study.events import item_to_data
from steelyard.study.fitting import on_rating_scale

MODEL_REMEDY = "The judgments can still be downloaded. Choose another model; the traceback is in the server's log."
_SCORE_TABLES = {"scores", "least_certain", "histogram", "labels", "matching"}
_LATEST = 100
"""Flags, skips and open tasks that the page lists; the log has them all."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a study is."""

    folder: str
    database: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Board:
    """All that the dashboard shows, as of event `seq`, but what takes long (see `Reliability`)."""

    seq: int
    judgments: int
    at: datetime
    took: float
    status: Status
    rate: Estimate | None
    forecast: Forecast
    model: str
    level: float
    notes: tuple[str, ...]
    problem: str
    """Why there are no scores, in a sentence; empty where there are some."""
    failure: str
    """The traceback of a model that failed, for the server's log."""
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Reliability and agreement of the judgments, as of event `seq`; this takes longest."""

    seq: int
    judgments: int
    took: float
    statistics: pl.DataFrame
    curve: pl.DataFrame
    title: str
    target: float | None


def prepare() -> None:
    """Set the process up: it stops when its parent does, and lets others go first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)
    warnings.simplefilter("ignore")
    threading.Thread(target=_end_with_parent, daemon=True).start()


def ready() -> bool:
    """Load what takes a while to load."""
    from steelyard.report import charts

    return bool(charts)


def _end_with_parent() -> None:
    """Stop when the server is gone, however it went: a killed one tells nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)


class _OpenStudy:
    """An open study with what was last computed of it."""

    def __init__(self, source: Source) -> None:
        self.study = Study.open(source.folder, database=source.database)
        self.board: Board | None = None
        self.charts: dict[str, Any] = {}
        self.reliability: Reliability | None = None
        self._analysis: Analysis | None = None

    def analysis(self) -> Analysis:
        """Return the analysis of the study as it is now; computed again only if anything happened since."""
        if self._analysis is None or self._analysis.seq < self.study.last_seq():
            self._analysis = Analysis.of(self.study, real_ids=True, picks=True)
        return self._analysis


_open_studies: dict[Source, _OpenStudy] = {}


def _opened(source: Source) -> _OpenStudy:
    if source not in _open_studies:
        _open_studies[source] = _OpenStudy(source)
    return _open_studies[source]


def close(source: Source) -> None:
    """Close a study whose dashboard nobody has open any more."""
    opened = _open_studies.pop(source, None)
    if opened is not None:
        opened.study.close()


def compute_board(source: Source) -> Board:
    """Compute everything but reliability; a study whose configuration was changed is opened again."""
    try:
        return _board(_opened(source))
    except StoreError:
        close(source)
        return _board(_opened(source))


def _board(opened: _OpenStudy) -> Board:
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
        "queue": history.open_tasks().head(_LATEST),
        "said": history.notes.filter(pl.col("kind").is_in(["flag", "skip"])).reverse().head(_LATEST),
    }
    fit = analysis.fit
    if not isinstance(fit, str):
        tables |= _score_tables(study, history, ranked_items(fit.scores, study.items))
    board = Board(
        seq=analysis.seq,
        judgments=status.judgments,
        at=now,
        took=time.perf_counter() - begin,
        status=status,
        rate=rate(history, now),
        forecast=remaining,
        model=study.config.model.name,
        level=0.95 if isinstance(fit, str) else fit.level,
        notes=() if isinstance(fit, str) else fit.notes,
        problem=fit if isinstance(fit, str) else "",
        failure=analysis.failure,
        tables=tables,
    )
    opened.charts = _charts(board)
    opened.board = replace(board, titles=_titles(opened.charts), took=time.perf_counter() - begin)
    return opened.board


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
    """Return the scores of the first criterion, which is drawn; all of them are in the table."""
    if "criterion" not in ranked.columns or ranked.is_empty():
        return ranked
    return ranked.filter(pl.col("criterion") == ranked["criterion"][0])


def compute_reliability(source: Source) -> Reliability:
    """Compute reliability and agreement of the judgments that count."""
    opened = _opened(source)
    begin = time.perf_counter()
    analysis = opened.analysis()
    statistics = analysis.reliability_table()
    curve = next((part.curve for part in analysis.reliability if part.curve.height), pl.DataFrame())
    from steelyard.report import charts

    title = charts.title_of(charts.reliability(curve)) if curve.height else ""
    took = time.perf_counter() - begin
    counted = analysis.history.counted.height
    opened.reliability = Reliability(analysis.seq, counted, took, statistics, curve, title, analysis.split_half_target)
    return opened.reliability


def compute_item(source: Source, item: str) -> pl.DataFrame:
    """List every judgment of an item."""
    opened = _opened(source)
    return item_judgments(opened.analysis().history, opened.study.config, item)


# Charts


def _titles(made: dict[str, Any]) -> dict[str, str]:
    from steelyard.report import charts

    return {name: charts.title_of(chart) for name, chart in made.items()}


def _charts(board: Board) -> dict[str, Any]:
    from steelyard.report import charts

    tables = board.tables
    done, total = (sum(getattr(stage, name) for stage in board.status.stages) for name in ("done", "total"))
    made: dict[str, Any] = {}
    if tables["progress"].height:
        made["progress"] = charts.progress(tables["progress"], done, total, board.forecast)
        made["speed"] = charts.speed(tables["speed"], board.rate)
        made["annotators"] = charts.annotators(tables["annotators"])
    if "histogram" in tables:
        made["scores"] = charts.caterpillar(_first_criterion(tables["scores"]), level=board.level)
        made["histogram"] = charts.histogram(tables["histogram"])
    if "labels" in tables:
        made["labels"] = charts.labels(tables["labels"])
    if "matching" in tables:
        made["matching"] = charts.match_quality_map(tables["matching"])
    return made


def draw(
    source: Source, name: str, form: str, theme: Any, width: int, item: str | None = None, real_ids: bool = True
) -> bytes | None:
    """Draw one of the charts as svg, png or (its specification) json; None where there is no such chart now.

    Without `real_ids`, annotators go by pseudonyms, as in everything that leaves the study.
    """
    from steelyard.report import charts

    opened = _opened(source)
    if name == "item" and item is not None:
        chart = _item_chart(opened, source, item, real_ids)
    elif name == "reliability":
        latest = opened.reliability
        chart = charts.reliability(latest.curve, target=latest.target) if latest and latest.curve.height else None
    else:
        if opened.board is None:
            compute_board(source)
        opened = _opened(source)
        chart = opened.charts.get(name)
        if name == "annotators" and chart is not None and not real_ids and opened.board is not None:
            chart = charts.annotators(opened.study.privacy.names().frame(opened.board.tables["annotators"]))
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

    found = opened.study.privacy.names(real=real_ids).frame(compute_item(source, item))
    scales = list(opened.study.config.stages[0].protocol.scales().values())
    if not scales or found["value"].null_count() == found.height:
        return None
    return charts.item_ratings(found, item, scales[0])


# Files


def export(
    source: Source, what: str, form: str, stage: str | None = None, item: str | None = None, real_ids: bool = False
) -> bytes | None:
    """Return a table as the bytes of a file (csv, jsonl or parquet); None where there is no such table now.

    Annotators go by pseudonyms unless `real_ids`.
    """
    import tempfile
    from pathlib import Path

    from steelyard.formats import write_table
    from steelyard.study.exporting import conventional_judgments

    opened = _opened(source)
    if what == "judgments":
        frame: pl.DataFrame | None = conventional_judgments(opened.study, stage, real_ids=True)
    elif what == "answers":
        frame = opened.analysis().history.judgments
    elif what == "item" and item is not None:
        frame = compute_item(source, item)
    elif what == "items":
        frame = pl.DataFrame([item_to_data(item) for item in opened.study.items], infer_schema_length=None)
    else:
        frame = _table(opened, source, what)
    if frame is None:
        return None
    if not real_ids:
        own = [name for name in frame.columns if name != "pseudonym"]
        frame = _opened(source).study.privacy.names().frame(frame.select(own))
    with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
        path = Path(folder) / f"table.{form}"
        write_table(frame, path)
        return path.read_bytes()


def _table(opened: _OpenStudy, source: Source, what: str) -> pl.DataFrame | None:
    if what in {"figures", "reliability"}:
        latest = opened.reliability or compute_reliability(source)
        return latest.statistics if what == "figures" else latest.curve
    board = opened.board
    if board is None or board.seq < opened.study.last_seq():
        board = compute_board(source)
    if board.failure and what in _SCORE_TABLES:
        raise ModelFailedError(board.problem, MODEL_REMEDY)
    return board.tables.get(what)
