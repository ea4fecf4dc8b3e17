"""A study's judgments as conventional files, which `import`, `fit` and `agreement` read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import polars as pl

from steelyard.errors import ConfigError, DataError, did_you_mean
from steelyard.formats import judgment_table
from steelyard.observations import Index, Observations, Spans
from steelyard.records import Judgment
from steelyard.study.config import Stage
from steelyard.study.judgments import judgment_frame
from steelyard.study.marks import mark_columns
from steelyard.study.observing import collect
from steelyard.study.study import Study

CHUNK = 10_000
"""Judgments written at a time."""

OnProgress = Callable[[int], None]
"""Called with how many judgments more are done."""


def conventional_judgments(study: Study, stage: str | None = None, *, real_ids: bool = False) -> pl.DataFrame:
    """Return the judgments of a stage in the columns of docs/reference/files.md.

    A study of one stage needs no name; of several, one file cannot hold all. Annotators go by pseudonyms unless
    `real_ids`.
    """
    chosen = chosen_stage(study, stage)
    by_criterion = study.observations(chosen.protocol.kinds[0], stage=chosen.name)
    if not by_criterion:
        return pl.DataFrame()
    table = _table(by_criterion)
    if Spans.kind in chosen.protocol.kinds:
        table = _with_marks(table, [j for j in study.stream_judgments() if j.counts and j.stage == chosen.name])
    return study.privacy.names(real=real_ids).frame(table)


def _with_marks(table: pl.DataFrame, judgments: Iterable[Judgment]) -> pl.DataFrame:
    """Add what was marked in each text; a column that is empty throughout is left out."""
    columns = mark_columns(judgments)
    if not columns["suggestions"].drop_nulls().len():
        columns = columns.drop("suggestions")
    return table.join(columns, on=["task", "item"], how="left", maintain_order="left")


def _table(by_criterion: Mapping[str, Observations]) -> pl.DataFrame:
    return judgment_table(by_criterion[""] if list(by_criterion) == [""] else by_criterion)


def chosen_stage(study: Study, stage: str | None) -> Stage:
    """Return the stage of that name, or the only one."""
    stages = {known.name: known for known in study.config.stages}
    if stage is None and len(stages) > 1:
        raise ConfigError(
            f"the study has several stages ({', '.join(stages)}), and each is exported to a separate file.",
            "Choose one with --stage.",
        )
    if stage is not None and stage not in stages:
        raise ConfigError(f"there is no stage called '{stage}'.", did_you_mean(stage, list(stages)))
    return stages[stage] if stage else study.config.stages[0]


def people_table(study: Study) -> pl.DataFrame:
    """Return which pseudonym is whom, and how many of each person's judgments count."""
    names = study.annotators.names()
    return pl.DataFrame(
        {
            "annotator": names,
            "pseudonym": [study.privacy.pseudonym(name) for name in names],
            "kind": [study.annotators.kind(name) for name in names],
            "judgments": [study.annotators.counted(name) for name in names],
        },
        schema={"annotator": pl.String, "pseudonym": pl.String, "kind": pl.String, "judgments": pl.Int64},
    )


def questionnaire_table(study: Study, *, real_ids: bool = False) -> pl.DataFrame:
    """Return the answers to the questionnaire by pseudonym; they are never exported with names."""
    if not study.config.annotators.questionnaire:
        raise DataError("the study has no questionnaire.", "Add [[annotators.questionnaire]] to study.toml.")
    if real_ids:
        raise DataError("answers to the questionnaire are not exported with names.", "Leave --real-ids out.")
    names = study.privacy.names()
    table = names.frame(study.annotators.attributes())
    texts = [question.name for question in study.config.annotators.questionnaire if question.type == "text"]
    # In the order of the pseudonyms, which says nothing about the names.
    return table.with_columns(pl.col(name).map_elements(names.within, pl.String) for name in texts).sort("annotator")


def write_judgments(
    study: Study,
    path: Path,
    stage: str | None = None,
    *,
    real_ids: bool = False,
    on_progress: OnProgress = lambda count: None,
) -> int:
    """Write the judgments of a stage to a Parquet file in chunks, so that memory does not grow with them.

    The rows are those of `conventional_judgments`, in the order of the judgments. Return how many rows there are.
    """
    chosen = chosen_stage(study, stage)
    protocols = {known.name: known.protocol for known in study.config.stages}

    def frames() -> Iterator[pl.DataFrame]:
        for chunk in _chunks(study.stream_judgments()):
            counted = [j for j in chunk if j.counts and j.stage == chosen.name]
            items = Index(sorted({item for judgment in counted for item in judgment.items}))
            by_criterion = collect(chosen.protocol.kinds[0], counted, protocols, items)
            table = _table(by_criterion) if by_criterion else pl.DataFrame()
            if by_criterion and Spans.kind in chosen.protocol.kinds:
                table = _with_marks(table, counted)
            yield _called(study, table, real_ids)
            on_progress(len(chunk))

    return _write_parquet(frames(), path)


def write_answers(
    study: Study, path: Path, *, real_ids: bool = False, on_progress: OnProgress = lambda count: None
) -> int:
    """Write every answer with its times to a Parquet file, some at a time; return how many there are."""

    def frames() -> Iterator[pl.DataFrame]:
        for chunk in _chunks(study.stream_judgments()):
            yield _called(study, judgment_frame(chunk), real_ids)
            on_progress(len(chunk))

    return _write_parquet(frames(), path)


def _called(study: Study, table: pl.DataFrame, real_ids: bool) -> pl.DataFrame:
    """Put pseudonyms for those who are in a table, unless `real_ids`; the rest of the log need not be read for it."""
    if "annotator" not in table.columns:
        return table
    if real_ids:
        # Comments are never exported with names.
        return table.drop("comment", strict=False)
    return study.privacy.called(table["annotator"].drop_nulls().unique()).frame(table)


def _chunks(judgments: Iterator[Judgment]) -> Iterator[list[Judgment]]:
    while chunk := list(islice(judgments, CHUNK)):
        yield chunk


def _write_parquet(frames: Iterable[pl.DataFrame], path: Path) -> int:
    """Write frames to one file, whole or not at all; return how many rows it has.

    Each frame goes to a file of its own first, beside the one to be, and polars streams those into it: so memory
    holds some frames at a time, and a column that comes up late (a longer tuple, a first annotator) is there from
    the start.
    """
    path = path.resolve()
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent) as folder:
            whole = Path(folder) / "whole.parquet"
            rows = _assembled(frames, Path(folder), whole)
            with whole.open("rb") as file:
                os.fsync(file.fileno())
            whole.replace(path)
            return rows
    except (OSError, pl.exceptions.ComputeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise DataError(
            f"it cannot be written ({reason or error}).",
            "Give a path in an existing, writable folder.",
            file=str(path),
        ) from error


def _assembled(frames: Iterable[pl.DataFrame], folder: Path, whole: Path) -> int:
    schema, rows = pl.Schema(), 0
    parts: dict[Path, list[str]] = {}
    for number, frame in enumerate(frames):
        if not set(frame.columns) <= set(schema):
            schema = _joined(schema, frame.schema)
        if frame.height:
            part = folder / f"{number}.parquet"
            shaped = _shaped(frame, schema)
            shaped.write_parquet(part)
            parts[part] = shaped.columns
            rows += frame.height
    if not parts:
        pl.DataFrame(schema=schema).write_parquet(whole)
        return 0
    for part, columns in parts.items():
        if columns != schema.names():
            _shaped(pl.read_parquet(part, glob=False), schema).write_parquet(part)
    pl.scan_parquet(list(parts), glob=False).sink_parquet(whole)
    return rows


def _joined(one: pl.Schema, other: pl.Schema) -> pl.Schema:
    """Return the columns of both, numbered ones of a tuple side by side."""
    if not one:
        return other
    columns = {**one, **other}
    first = [name for name in ("criterion", "annotator", "task") if name in columns]
    last = [name for name in ("best", "worst") if name in columns]
    middle = [name for name in columns if name not in {*first, *last}]
    return pl.Schema({name: columns[name] for name in (*first, *middle, *last)})


def _shaped(frame: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    return frame.select(
        pl.col(name) if name in frame.columns else pl.lit(None, dtype).alias(name) for name, dtype in schema.items()
    )
