"""What the calculator process computes, draws and exports for the dashboards, so that no annotator has to wait.

These functions run in that process, where studies stay open from one call to the next; the server calls them through
`CalculatorProcess`. Results come in parts, the quickest first, so that a page shows what is ready.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

import polars as pl

from steelyard.analysis.activity import SCHEMA, activity
from steelyard.analysis.analysis import Analysis, AnalysisReader
from steelyard.analysis.annotator_profile import AnnotatorProfile, annotator_profile
from steelyard.analysis.judge_report import judge_reports, judge_table
from steelyard.analysis.marked_errors import errors_by_system
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
from steelyard.analysis.unjudged import count_unjudged
from steelyard.analysis.verdict import Verdict
from steelyard.errors import ModelFailedError, StoreError
from steelyard.reliability.statistic import EXPLANATIONS
from steelyard.study import Status, Study
from steelyard.study.fitting import on_rating_scale
from steelyard.study.marks import marking_stages
from steelyard.web.calculator_process import Source, lower_priority
from steelyard.web.saved_results import load_parts, save_part

MODEL_REMEDY = "The judgments can still be downloaded. Choose another model; the traceback is in the server's log."
_SCORE_TABLES = {"scores", "least_certain", "histogram", "labels", "matching"}
_LATEST = 100
"""Maximum number of flags, skips and leased tasks on the page; the log has them all."""

PROGRESS_LIFETIME = timedelta(seconds=30)
"""The part with rates and forecasts is computed again after this time, as they change while nobody judges."""

_SECONDS_BETWEEN_SAVES = 10.0
"""Minimum time between two writings of a part to disk."""

PartName: TypeAlias = Literal["progress", "scores", "annotators", "reliability"]
PARTS: tuple[PartName, ...] = ("progress", "scores", "annotators", "reliability")
"""The parts in the order in which a page needs them."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Part:
    """One part of the results, as of event `seq`: its tables, and the names of the charts that can be drawn."""

    seq: int
    judgments: int
    at: datetime
    duration: float = 0.0
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    charts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Progress(Part):
    """How far the study is, at what rate and cost."""

    status: Status
    rate: Estimate | None
    forecast: Forecast


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Scores(Part):
    """Scores of items, systems and tournaments."""

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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Annotators(Part):
    """Each annotator's work, speed, agreement and checks."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Reliability(Part):
    """Reliability and agreement of the judgments that count, and what follows from them."""

    target: float | None
    verdict: Verdict
    models: str
    """How much of the scores rests on models, and how well they agree with people; empty without models."""


PART_TYPES: dict[str, type[Part]] = {
    "progress": Progress,
    "scores": Scores,
    "annotators": Annotators,
    "reliability": Reliability,
}
"""The class of each part."""


# The process


def load_modules() -> None:
    """Import the modules that draw charts, and after an installation compile the kernels of the default model."""
    from steelyard.models.calibrated import compilation
    from steelyard.report import charts

    charts.load_renderer()
    if not compilation.is_compiled():
        compilation.compile_kernels()


def prepare(source: Source) -> None:
    """Compute the first parts of a study; what fails here is reported when a page asks for it."""
    try:
        for name in PARTS[:2]:
            _compute(_open(source), name, None)
    except Exception:  # noqa: S110  # nosec B110 - every exception: computed again, and reported, when a page asks
        pass


# Open studies


class _OpenStudy:
    """An open study with its latest results."""

    def __init__(self, source: Source) -> None:
        self.study = Study.open(source.folder, database=source.database)
        self.parts: dict[str, Any] = load_parts(self.study, PART_TYPES)
        self.activity: tuple[int, pl.DataFrame] = (-1, pl.DataFrame(schema=SCHEMA))
        self._analyses = AnalysisReader(self.study)
        self._analysis: Analysis | None = None
        self._digest: str | None = None
        self._saved_at: dict[str, float] = {}

    def set_part(self, name: str, part: Part) -> None:
        """Keep a new part, in memory and from time to time on disk."""
        self.parts[name] = part
        if time.monotonic() - self._saved_at.get(name, -_SECONDS_BETWEEN_SAVES) >= _SECONDS_BETWEEN_SAVES:
            self._saved_at[name] = time.monotonic()
            if self._digest is not None:
                save_part(self.study, name, part, self._digest)

    def analysis(self, seq: int | None = None) -> Analysis:
        """Return an analysis as of event `seq` or later, by default of the last one; computed only if needed."""
        latest = self.study.last_seq() if seq is None else seq
        if self._analysis is None or self._analysis.seq < latest:
            self._analysis = self._analyses.read()
            self._digest = self._analyses.digest
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


def compute(source: Source, name: PartName, seq: int | None = None) -> Any:
    """Compute a part of the results as of event `seq` or later; by default, as of the last event.

    A part that is recent enough is returned as it is. A study whose configuration has changed is opened again.
    """
    lower_priority()
    try:
        return _compute(_open(source), name, seq)
    except StoreError:
        close(source)
        return _compute(_open(source), name, seq)


def _compute(opened: _OpenStudy, name: PartName, seq: int | None) -> Part:
    latest = opened.parts.get(name)
    needed = opened.study.last_seq() if seq is None else seq
    # Rates and forecasts change with time even if nothing happens.
    is_stale = name == "progress" and latest is not None and datetime.now(UTC) - latest.at > PROGRESS_LIFETIME
    if latest is None or latest.seq < needed or is_stale:
        begin = time.perf_counter()
        analysis = opened.analysis(needed)
        latest = _COMPUTE[name](analysis, {"seq": analysis.seq, "at": datetime.now(UTC)}, begin)
        opened.set_part(name, latest)
    return latest


def _progress(analysis: Analysis, common: dict[str, Any], begin: float) -> Progress:
    study, history, now = analysis.study, analysis.history, common["at"]
    status = study.status()
    remaining = forecast(history, status, now)
    tables = {
        "progress": progress_over_time(history),
        "speed": progress_over_time(history, points=30),
        "costs": costs(history, study.config, remaining.tasks, paid_people(history, study)),
        "checks": pl.DataFrame([asdict(check) for check in study.quality.checks()]),
        "leased_tasks": history.open_tasks().head(_LATEST),
        "notes": history.notes.filter(pl.col("kind").is_in(["flag", "skip"])).reverse().head(_LATEST),
        **_unjudged_table(analysis),
    }
    return Progress(
        **common,
        judgments=status.judgments,
        duration=time.perf_counter() - begin,
        status=status,
        rate=rate(history, now),
        forecast=remaining,
        tables=tables,
        charts=("progress", "speed") if tables["progress"].height else (),
    )


def _scores(analysis: Analysis, common: dict[str, Any], begin: float) -> Scores:
    study, fit, systems = analysis.study, analysis.fit, analysis.systems
    tables: dict[str, pl.DataFrame] = {}
    if not isinstance(fit, str):
        tables |= _score_tables(analysis, ranked_items(fit.scores, study.items))
    is_compared = systems is not None and not isinstance(systems, str)
    if systems is not None and not isinstance(systems, str):
        tables |= {"systems": systems.scores, "system_differences": systems.differences}
    tables |= _tournament_tables(analysis) | _error_tables(analysis)
    return Scores(
        **common,
        judgments=study.status().judgments,
        duration=time.perf_counter() - begin,
        model=study.config.model.name,
        level=0.95 if isinstance(fit, str) else fit.level,
        notes=() if isinstance(fit, str) else fit.notes,
        problem=fit if isinstance(fit, str) else "",
        failure=analysis.failure,
        systems_notes=systems.notes if systems is not None and not isinstance(systems, str) else (),
        systems_problem=systems if isinstance(systems, str) else "",
        tables=tables,
        charts=(
            *(("scores",) if "histogram" in tables else ()),
            *(name for name in ("histogram", "labels", "matching") if name in tables),
            *(("systems", "significance") if is_compared else ()),
        ),
    )


def _annotators(analysis: Analysis, common: dict[str, Any], begin: float) -> Annotators:
    table = _with_pseudonyms(analysis.annotators, analysis.study)
    return Annotators(
        **common,
        judgments=analysis.study.status().judgments,
        duration=time.perf_counter() - begin,
        tables={
            "annotators": table,
            "judges": judge_table(judge_reports(analysis)),
            "rater_effects": analysis.names.frame(analysis.rater_effects.annotators),
            "item_fit": analysis.rater_effects.items,
        },
        charts=("annotators",) if table["agreement"].drop_nulls().len() else (),
    )


def _reliability(analysis: Analysis, common: dict[str, Any], begin: float) -> Reliability:
    curve = next((part.curve for part in analysis.reliability if part.curve.height), pl.DataFrame())
    return Reliability(
        **common,
        judgments=analysis.history.counted.height,
        tables={"statistics": _explained(analysis.reliability_table()), "reliability": curve},
        charts=("reliability",) if curve.height else (),
        target=analysis.split_half_target,
        verdict=analysis.verdict,
        models=analysis.people_and_models,
        duration=time.perf_counter() - begin,
    )


def _explained(statistics: pl.DataFrame) -> pl.DataFrame:
    """Add what each statistic is and which values are good."""
    meaning = pl.col("statistic").replace_strict(EXPLANATIONS, default="", return_dtype=pl.String)
    return statistics.with_columns(meaning.alias("explanation"))


_COMPUTE: dict[str, Callable[[Analysis, dict[str, Any], float], Part]] = {
    "progress": _progress,
    "scores": _scores,
    "annotators": _annotators,
    "reliability": _reliability,
}
"""How each part is computed."""
PART_OF_TABLE: dict[str, PartName] = {
    **dict.fromkeys(("progress", "speed", "costs", "checks", "unjudged", "leased_tasks", "notes"), "progress"),
    **dict.fromkeys(("annotators", "judges", "rater_effects", "item_fit"), "annotators"),
    **dict.fromkeys(("statistics", "reliability"), "reliability"),
}
"""The part with each table; all others are of the scores."""


def _unjudged_table(analysis: Analysis) -> dict[str, pl.DataFrame]:
    """Return the items that annotators could not judge or that were set aside; none in studies without them."""
    study, set_aside = analysis.study, analysis.study.quality.items_set_aside()
    if not study.config.answers.cannot_judge and not set_aside:
        return {}
    items = count_unjudged(analysis.history, study.config, set_aside).items
    return {"unjudged": items.filter((pl.col("cannot_judge") > 0) | (pl.col("set_aside") != ""))}


def _error_tables(analysis: Analysis) -> dict[str, pl.DataFrame]:
    """Return the errors that were marked, by system and severity, and by category; none in other studies."""
    if not marking_stages(analysis.study):
        return {}
    return {
        "errors": errors_by_system(analysis.study, analysis.judgments),
        "error_categories": analysis.error_counts,
    }


def _tournament_tables(analysis: Analysis) -> dict[str, pl.DataFrame]:
    """Return the tables of tournaments, source by source; none if the study has no tournament design."""
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
    return annotators.with_columns(study.privacy.names().column().alias("pseudonym"))


def _score_tables(analysis: Analysis, ranked: pl.DataFrame) -> dict[str, pl.DataFrame]:
    study = analysis.study
    scales = study.config.stages[0].protocol.scales()
    tables = {"scores": ranked, "least_certain": least_certain(ranked)}
    if "score" not in ranked.columns:
        return {**tables, "labels": label_counts(ranked)}
    rated = on_rating_scale(study.config.model, study.config.stages)
    first = _first_criterion(ranked)
    name = first["criterion"][0] if "criterion" in first.columns and first.height else ""
    tables["histogram"] = score_histogram(first, scale=scales.get(name) if rated else None)
    matching = match_quality_by_round(analysis.history, study, ranked)
    return {**tables, "matching": matching} if matching.height else tables


def _first_criterion(ranked: pl.DataFrame) -> pl.DataFrame:
    """Return the scores of the first criterion, which the chart shows; the table has every criterion."""
    if "criterion" not in ranked.columns or ranked.is_empty():
        return ranked
    return ranked.filter(pl.col("criterion") == ranked["criterion"][0])


def compute_item(source: Source, item: str) -> pl.DataFrame:
    """Return every judgment of an item."""
    opened = _open(source)
    return item_judgments(opened.analysis().history, opened.study.config, item)


def compute_annotator(source: Source, annotator: str) -> AnnotatorProfile:
    """Return an annotator's profile, by their real name."""
    return annotator_profile(_open(source).analysis(), annotator)


def compute_activity(source: Source) -> pl.DataFrame:
    """Return what happened in the study, latest first."""
    opened = _open(source)
    seq = opened.study.last_seq()
    if opened.activity[0] < seq:
        analysis = opened.analysis(seq)
        opened.activity = (analysis.seq, activity(opened.study, analysis.history))
    return opened.activity[1]


def compute_pilot(source: Source, target: float) -> list[str]:
    """Summarise the answers so far as a pilot, in sentences, and plan the full run with annotators like these."""
    from steelyard.recruitment.pilot import pilot_sentences, summarise_pilot

    lower_priority()
    study = _open(source).study
    return pilot_sentences(summarise_pilot(study, target=target), target, study.config.pay.currency)


# Charts


def _chart(opened: _OpenStudy, source: Source, name: str) -> Any:
    """Return a chart of the latest results; None if there is no such chart at present."""
    from steelyard.report import charts, systems

    part = opened.parts.get(_part_of_chart(name)) or compute(source, _part_of_chart(name))
    if name not in part.charts:
        return None
    tables = part.tables
    if name in {"systems", "significance"}:
        # Of the first criterion and label; the tables have them all.
        keys = tables["systems"].columns[: tables["systems"].columns.index("system")]
        first = [pl.col(key) == tables["systems"][key][0] for key in keys] if tables["systems"].height else []
        scores, pairs = tables["systems"].filter(*first), tables["system_differences"].filter(*first)
        if name == "systems":
            return systems.leaderboard(scores, level=part.level)
        return systems.significance_matrix(pairs, scores["system"].to_list())
    if name == "progress":
        done, total = (sum(getattr(stage, key) for stage in part.status.stages) for key in ("done", "total"))
        return charts.progress(tables["progress"], done, total, part.forecast)
    return {
        "speed": lambda: charts.speed(tables["speed"], part.rate),
        "scores": lambda: charts.caterpillar(_first_criterion(tables["scores"]), level=part.level),
        "histogram": lambda: charts.histogram(tables["histogram"]),
        "labels": lambda: charts.labels(tables["labels"]),
        "matching": lambda: charts.match_quality_map(tables["matching"]),
        "annotators": lambda: charts.annotators(tables["annotators"]),
        "reliability": lambda: charts.reliability(tables["reliability"], target=part.target),
    }[name]()


def _part_of_chart(name: str) -> PartName:
    return PART_OF_TABLE.get(name, "scores")


def draw(
    source: Source,
    name: str,
    form: str,
    theme: Any,
    width: int,
    item: str | None = None,
    real_ids: bool = True,
    embed_font: bool = True,
) -> bytes | None:
    """Draw a chart as svg, png or json (its specification); None if there is no such chart at present.

    Without `real_ids`, annotators have pseudonyms, as in every export. A drawing for a page that has the typeface
    needs no `embed_font`.
    """
    from steelyard.report import charts

    opened = _open(source)
    if name == "annotator":
        chart = None if item is None else _annotator_chart(source, item)
    elif name == "item":
        chart = _item_chart(opened, source, item, real_ids) if item is not None else None
    else:
        chart = _chart(opened, source, name)
        if name == "annotators" and chart is not None and not real_ids:
            table = opened.parts["annotators"].tables["annotators"]
            chart = charts.annotators(opened.study.privacy.names().frame(table))
    if chart is None:
        return None
    if form == "png":
        return charts.png(chart, theme, width=width)
    if form == "json":
        import json

        return json.dumps(charts.spec(chart, theme, width)).encode()
    return charts.svg(chart, theme, width=width, embed_font=embed_font).encode()


def _annotator_chart(source: Source, annotator: str) -> Any:
    from steelyard.report import quality_charts

    blocks = compute_annotator(source, annotator).blocks
    return quality_charts.work_over_time(blocks) if blocks.height else None


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
    from steelyard.study.marks import mark_table

    opened = _open(source)
    if what == "judgments":
        frame: pl.DataFrame | None = conventional_judgments(opened.study, stage, real_ids=True)
    elif what == "answers":
        frame = opened.analysis().history.judgments
    elif what == "item" and item is not None:
        frame = compute_item(source, item)
    elif what == "annotator" and item is not None:
        frame = compute_annotator(source, item).blocks
    elif what == "items":
        frame = item_table(opened.study.items)
    elif what in {"distributions", "soft_labels"}:
        analysis = opened.analysis()
        frame = analysis.distributions if what == "distributions" else analysis.soft_labels
    elif what == "marks":
        frame = mark_table(opened.study, real_ids=True) if marking_stages(opened.study) else None
    else:
        frame = _table(source, what)
    if frame is None:
        return None
    if not real_ids:
        own = [name for name in frame.columns if name != "pseudonym"]
        frame = _open(source).study.privacy.names().frame(frame.select(own))
    with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
        path = Path(folder) / f"table.{form}"
        write_table(frame, path)
        return path.read_bytes()


def _table(source: Source, what: str) -> pl.DataFrame | None:
    # The chart of the differences is named after what it shows.
    what = {"differences": "system_differences", "significance": "system_differences"}.get(what, what)
    part = compute(source, PART_OF_TABLE.get(what, "scores"))
    if isinstance(part, Scores) and part.failure and what in _SCORE_TABLES:
        raise ModelFailedError(part.problem, MODEL_REMEDY)
    table: pl.DataFrame | None = part.tables.get(what)
    return table
