"""A study's figures all together, as the dashboard shows them: computed, drawn and exported.

A server calls these functions in a process of their own, so that no annotator waits for them; studies stay open
in it from one call to the next.
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

from steelyard.errors import DataError, StoreError
from steelyard.reliability import agreement, position_bias, split_half_by_budget
from steelyard.reliability.statistic import statistics_table
from steelyard.report.history import History, history_of, observations_of
from steelyard.report.matching import match_quality_by_round
from steelyard.report.people import annotator_table
from steelyard.report.tables import (
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
from steelyard.study import Status, Study
from steelyard.study.ledger import item_to_data
from steelyard.study.results import on_rating_scale

SPLIT_HALF = "split_half_spearman"
_CURVE_TRIALS = 20
_LATEST = 100
"""Flags, skips and open tasks that the page lists; the log has them all."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a study is."""

    folder: str
    database: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Board:
    """All that the dashboard shows, as of event `seq`, but what takes long (see `Trust`)."""

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
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Trust:
    """How far the judgments can be trusted, as of event `seq`; it takes longest."""

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


class _Desk:
    """An open study with what was last computed of it."""

    def __init__(self, source: Source) -> None:
        self.study = Study.open(source.folder, database=source.database)
        self.history: History | None = None
        self.board: Board | None = None
        self.charts: dict[str, Any] = {}
        self.trust: Trust | None = None


_desks: dict[Source, _Desk] = {}


def _desk(source: Source) -> _Desk:
    if source not in _desks:
        _desks[source] = _Desk(source)
    return _desks[source]


def forget(source: Source) -> None:
    """Close a study that nobody looks at any more."""
    desk = _desks.pop(source, None)
    if desk is not None:
        desk.study.close()


def compute_board(source: Source) -> Board:
    """Compute everything but reliability; a study whose configuration was changed is opened anew."""
    try:
        return _board(_desk(source))
    except StoreError:
        forget(source)
        return _board(_desk(source))


def _board(desk: _Desk) -> Board:
    study = desk.study
    begin = time.perf_counter()
    now = datetime.now(UTC)
    seq = study.last_seq()
    status = study.status()
    history = desk.history = history_of(study)
    left = forecast(history, status, now)
    tables = {
        "progress": progress_over_time(history),
        "speed": progress_over_time(history, points=30),
        "costs": costs(history, study.config, left.tasks, paid_people(history, study)),
        "annotators": _with_pseudonyms(annotator_table(history, study), study),
        "checks": pl.DataFrame([asdict(check) for check in study.checks()]),
        "queue": history.open_tasks().head(_LATEST),
        "said": history.notes.filter(pl.col("kind").is_in(["flag", "skip"])).reverse().head(_LATEST),
    }
    level, problem = 0.95, ""
    notes: tuple[str, ...] = ()
    try:
        fitted = study.fit()
    except DataError as error:
        problem = error.problems[0].what
    else:
        notes, level = fitted.notes, fitted.level
        ranked = ranked_items(fitted.scores, study.items)
        tables |= _score_tables(study, history, ranked)
    board = Board(
        seq,
        status.judgments,
        now,
        time.perf_counter() - begin,
        status,
        rate(history, now),
        left,
        study.config.model.name,
        level,
        notes,
        problem,
        tables,
    )
    desk.charts = _charts(board)
    desk.board = replace(board, titles=_titles(desk.charts), took=time.perf_counter() - begin)
    return desk.board


def _with_pseudonyms(people: pl.DataFrame, study: Study) -> pl.DataFrame:
    """Say what each annotator is called in exports, so that the manager can find them there."""
    called = [study.pseudonym(name) for name in people["annotator"]]
    return people.with_columns(pl.Series("pseudonym", called, pl.String))


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


def compute_trust(source: Source) -> Trust:
    """Compute reliability and agreement of the judgments that count."""
    desk = _desk(source)
    study = desk.study
    begin = time.perf_counter()
    seq = study.last_seq()
    history = desk.history if desk.history is not None and desk.history.seq >= seq else history_of(study)
    counted = replace(history, judgments=history.counted)
    frames, curve = [], pl.DataFrame()
    for stage in study.config.stages:
        for criterion, found in observations_of(counted, study, stage=stage.name).items():
            named = (pl.lit(stage.name).alias("stage"), pl.lit(criterion).alias("criterion"), pl.all())
            frames.append(agreement(found).table.select(named))
            if curve.is_empty() and found.kind != "labels":
                curve = split_half_by_budget(found, trials=_CURVE_TRIALS).filter(pl.col("statistic") == SPLIT_HALF)
        if "comparisons" in stage.protocol.kinds[1:]:
            for criterion, found in observations_of(counted, study, "comparisons", stage.name).items():
                named = (pl.lit(stage.name).alias("stage"), pl.lit(criterion).alias("criterion"), pl.all())
                frames.append(statistics_table([position_bias(found).statistic]).select(named))
    statistics = pl.concat(frames) if frames else pl.DataFrame(schema={"stage": pl.String, "statistic": pl.String})
    # Whether the scores hold comes first, then whether people agree.
    statistics = statistics.sort(~pl.col("statistic").str.starts_with("split_half"), maintain_order=True)
    from steelyard.report import charts

    title = charts.title_of(charts.reliability(curve)) if curve.height else ""
    took = time.perf_counter() - begin
    desk.trust = Trust(seq, counted.judgments.height, took, statistics, curve, title, _target(study))
    return desk.trust


def _target(study: Study) -> float | None:
    """Return the plain split-half reliability at which the study stops, if that is when it does."""
    stop = study.config.stop
    if stop is None or stop.measure != "split_half":
        return None
    # Spearman and Brown's formula, turned round.
    return stop.target / (2 - stop.target) if stop.spearman_brown else stop.target


def compute_item(source: Source, item: str) -> pl.DataFrame:
    """List every judgment of an item."""
    desk = _desk(source)
    if desk.history is None or desk.history.seq < desk.study.last_seq():
        desk.history = history_of(desk.study)
    return item_judgments(desk.history, desk.study.config, item)


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

    desk = _desk(source)
    if name == "item" and item is not None:
        chart = _item_chart(desk, source, item, real_ids)
    elif name == "reliability":
        trust = desk.trust
        chart = charts.reliability(trust.curve, target=trust.target) if trust and trust.curve.height else None
    else:
        if desk.board is None:
            compute_board(source)
        desk = _desk(source)
        chart = desk.charts.get(name)
        if name == "annotators" and chart is not None and not real_ids and desk.board is not None:
            chart = charts.annotators(desk.study.names().frame(desk.board.tables["annotators"]))
    if chart is None:
        return None
    if form == "png":
        return charts.png(chart, theme, width=width)
    if form == "json":
        import json

        return json.dumps(charts.spec(chart, theme, width)).encode()
    return charts.svg(chart, theme, width=width).encode()


def _item_chart(desk: _Desk, source: Source, item: str, real_ids: bool) -> Any:
    from steelyard.report import charts

    found = desk.study.names(real=real_ids).frame(compute_item(source, item))
    scales = list(desk.study.config.stages[0].protocol.scales().values())
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

    desk = _desk(source)
    if what == "judgments":
        frame: pl.DataFrame | None = conventional_judgments(desk.study, stage, real_ids=True)
    elif what == "answers":
        frame = history_of(desk.study).judgments
    elif what == "item" and item is not None:
        frame = compute_item(source, item)
    elif what == "items":
        frame = pl.DataFrame([item_to_data(item) for item in desk.study.items], infer_schema_length=None)
    else:
        frame = _table(desk, source, what)
    if frame is None:
        return None
    if not real_ids:
        own = [name for name in frame.columns if name != "pseudonym"]
        frame = _desk(source).study.names().frame(frame.select(own))
    with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
        path = Path(folder) / f"table.{form}"
        write_table(frame, path)
        return path.read_bytes()


def _table(desk: _Desk, source: Source, what: str) -> pl.DataFrame | None:
    if what in {"figures", "reliability"}:
        trust = desk.trust or compute_trust(source)
        return trust.statistics if what == "figures" else trust.curve
    board = desk.board
    if board is None or board.seq < desk.study.last_seq():
        board = compute_board(source)
    return board.tables.get(what)
