"""Fit models to a log: the engine computes sums, and the model's own solver uses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.engines.duckdb_engine import DuckDBEngine
from steelyard.engines.engine import Engine, number
from steelyard.engines.files import files_of
from steelyard.engines.labels import LogGroups, LogLabels
from steelyard.engines.log import Log, open_log
from steelyard.engines.opening import open_engine
from steelyard.engines.pairs import LogPairs, appearances_view
from steelyard.engines.values import LogValues
from steelyard.errors import ConfigError, DataError
from steelyard.models.choices.counting import Counting
from steelyard.models.comparisons.bradley_terry import BradleyTerry
from steelyard.models.comparisons.paired_model import PairedModel
from steelyard.models.comparisons.thurstone import Thurstone
from steelyard.models.comparisons.win_rate import WinRate
from steelyard.models.fit import Fit, Model
from steelyard.models.gold import Gold
from steelyard.models.labels.dawid_skene import DawidSkene
from steelyard.models.labels.gold_calibrated import GoldCalibrated
from steelyard.models.labels.majority import Majority
from steelyard.models.labels.table import need_annotators
from steelyard.models.ratings.easl import EASL
from steelyard.models.ratings.mean import Mean


def fit_log(model: Model, log: Log, gold: Gold | None = None) -> Fit:
    """Fit a model to the judgments of one criterion; the scores are the same as in memory."""
    if type(model) not in _FITTERS:
        names = ", ".join(supported.name for supported in _FITTERS)
        raise ConfigError(
            f"the model {model.name} needs all judgments in memory.", f"Use --engine memory, or one of {names}."
        )
    if log.kind not in model.accepts:
        raise DataError(
            f"{model.name} needs {' or '.join(model.accepts)}; these are {log.kind}.", "Choose another model."
        )
    fitted: Fit = _FITTERS[type(model)](model, log, gold)
    return model.with_gold_noted(fitted, gold, log_items(fitted))


def fit_files(
    model: Model,
    source: str | Path | Sequence[str | Path],
    *,
    engine: str | Engine = DuckDBEngine.name,
    gold: Gold | None = None,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    scale: tuple[float, float] | None = None,
    strict: bool = False,
    skip_bad_rows: bool = False,
) -> Fit:
    """Fit a model to Parquet files that may be larger than memory.

    Parameters
    ----------
    model
        A model that engines support; others are refused with a list of those that are.
    source
        A file, a folder, a pattern such as "folder/*.parquet", or several of these.
    engine
        "duckdb" or "spark", or an open engine such as ``SparkEngine(session)``, which is left open.
    gold
        The known classes of some items.
    kind, columns, scale, strict, skip_bad_rows
        As of `read_judgments`. A file with several criteria is for `open_log`.
    """
    files = files_of(source)
    with open_engine(engine) if isinstance(engine, str) else nullcontext(engine) as opened:
        logs = open_log(
            opened, files, kind=kind, columns=columns, scale=scale, strict=strict, skip_bad_rows=skip_bad_rows
        )
        if len(logs.by_criterion) > 1:
            raise DataError(
                f"there are {len(logs.by_criterion)} criteria: {', '.join(logs.by_criterion)}.",
                "Fit each by fit_log(model, open_log(…).by_criterion[name]).",
            )
        fitted = fit_log(model, next(iter(logs.by_criterion.values())), gold)
    return replace(fitted, notes=(*logs.notes, *fitted.notes))


def log_items(fitted: Fit) -> set[str]:
    """Return the items of a fit."""
    return set(fitted.scores["item"].to_list())


def _ratings(log: Log, value: str) -> LogValues:
    name = f"{log.prefix}ratings"
    log.engine.view(name, log.sql("rating_appearances", unit=log.unit_column, value=value))
    return LogValues(log, name)


def _bounds(log: Log) -> tuple[float, float] | None:
    return log.scale if log.scale_known else None


def _mean(model: Mean, log: Log, _gold: Gold | None) -> Fit:
    return model.solve(_ratings(log, "value"), log.scale, _bounds(log))


def _easl(model: EASL, log: Log, _gold: Gold | None) -> Fit:
    low, high = log.scale
    unit_value = f"(value - {number(low)}) / {number(high - low)}"
    return model.solve(_ratings(log, unit_value), log.scale, _bounds(log))


def _counting(model: Counting, log: Log, _gold: Gold | None) -> Fit:
    return model.solve(LogValues(log, appearances_view(log, by_unit=log.unit != "judgments")))


def _win_rate(model: WinRate, log: Log, _gold: Gold | None) -> Fit:
    if log.kind == "choices" and log.unit == "judgments":
        raise ConfigError(
            "resampling single choices needs every row in memory.",
            "Add a column annotator, or use --engine memory.",
        )
    pairs = LogPairs.of(log)
    values = LogValues(log, appearances_view(log, by_unit=log.unit != "judgments", win_rate=True), pairs.items)
    appearances = pairs.table.appearances.astype("int32") if log.kind == "comparisons" else None
    beats = pairs.table.beats() if log.kind == "comparisons" else None
    return model.solve(values, pairs.counts(appearances), beats)


def _paired(model: PairedModel, log: Log, _gold: Gold | None) -> Fit:
    pairs = LogPairs.of(log)
    return model.solve(model.prepared(pairs.table, log.kind, pairs.likelihood(model)), pairs)


def _majority(model: Majority, log: Log, _gold: Gold | None) -> Fit:
    return model.solve(LogLabels(log))


def _gold_calibrated(model: GoldCalibrated, log: Log, gold: Gold | None) -> Fit:
    return model.solve(LogLabels(log), gold)


def _dawid_skene(model: DawidSkene, log: Log, gold: Gold | None) -> Fit:
    labels = LogLabels(log)
    need_annotators(model.name, labels)
    return model.solve(labels, LogGroups.of(model.name, labels, gold))


_FITTERS: dict[type[Model], Callable[[Any, Log, Gold | None], Fit]] = {
    Mean: _mean,
    EASL: _easl,
    Counting: _counting,
    WinRate: _win_rate,
    BradleyTerry: _paired,
    Thurstone: _paired,
    Majority: _majority,
    GoldCalibrated: _gold_calibrated,
    DawidSkene: _dawid_skene,
}
"""The models whose sufficient statistics can be computed in SQL."""
