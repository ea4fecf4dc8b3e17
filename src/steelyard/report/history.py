"""What happened in a study, read off its log once and laid out as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from steelyard.observations import Index, Observations
from steelyard.records import ABOUT_PEOPLE, Judgment
from steelyard.store.events import Event, to_json
from steelyard.study import Study
from steelyard.study.collect import collect
from steelyard.study.tasks import active_seconds

TIME = pl.Datetime("us", "UTC")

_JUDGMENTS = {
    "seq": pl.Int64,
    "judgment_id": pl.String,
    "annotator": pl.String,
    "stage": pl.String,
    "items": pl.List(pl.String),
    "answer": pl.String,
    "at": TIME,
    "seconds": pl.Float64,
    "late": pl.Boolean,
    "revised": pl.Boolean,
    "imported": pl.Boolean,
    "purpose": pl.String,
    "right": pl.Boolean,
    "about": pl.String,
}
_PICKS = {
    "seq": pl.Int64,
    "judgment_id": pl.String,
    "annotator": pl.String,
    "stage": pl.String,
    "items": pl.List(pl.String),
    "at": TIME,
    "round": pl.Int64,
    "weight": pl.Float64,
    "propensity": pl.Float64,
    "purpose": pl.String,
}
_NOTES = {
    "kind": pl.String,
    "at": TIME,
    "annotator": pl.String,
    "judgment_id": pl.String,
    "reason": pl.String,
}
_KINDS = ("picked", "judgment", "revision", "skip", "flag", "expired", "exclusion", "readmission", "withdrawn")


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """A study's past, up to event `seq` at least.

    `judgments` has every judgment with its latest answer (JSON) in the order they first came, those of excluded
    annotators marked in `excluded`, checks and repeats by their `purpose` (and `about`: the check's key, or the
    judgment repeated); `picks` every task that went out and how it was drawn; `notes` the skips, flags, expiries,
    exclusions and readmissions with their reasons; `excluded` says who is, and why.
    """

    seq: int
    judgments: pl.DataFrame
    picks: pl.DataFrame
    notes: pl.DataFrame
    excluded: dict[str, str]

    @property
    def counted(self) -> pl.DataFrame:
        """The judgments that count in the scores: no checks or repeats, and none of excluded annotators."""
        return self.judgments.filter(~pl.col("excluded") & ~pl.col("purpose").is_in(list(ABOUT_PEOPLE)))

    def open_tasks(self) -> pl.DataFrame:
        """List the tasks that are with annotators, the longest out first."""
        closed = self.notes.filter(pl.col("kind").is_in(["skip", "expired"]))["judgment_id"]
        gone = pl.concat([closed, self.judgments["judgment_id"]])
        return self.picks.filter(~pl.col("judgment_id").is_in(gone.implode())).sort("seq")


def history_of(study: Study, *, picks: bool = True) -> History:
    """Read a study's log; one pass, however long it is. Without `picks`, that table stays empty."""
    stages = [stage.name for stage in study.config.stages]
    judgments: dict[str, tuple[Any, ...]] = {}
    picked: list[tuple[Any, ...]] = []
    notes: list[tuple[Any, ...]] = []
    excluded: dict[str, str] = {}
    withdrawn: set[str | None] = set()
    seq = study.last_seq()
    for event in study.events(_KINDS if picks else [kind for kind in _KINDS if kind != "picked"]):
        if event.kind in {"judgment", "revision"}:
            name = str(event.judgment_id)
            judgments[name] = _judgment(event, stages, judgments.get(name))
        elif event.kind == "picked":
            picked.append(_pick(event, stages))
        elif event.kind == "withdrawn":
            withdrawn.add(event.judgment_id)
        else:
            reason = str(event.data.get("reason", ""))
            notes.append((event.kind, event.at, event.annotator, event.judgment_id, reason))
            if event.kind == "exclusion":
                excluded[str(event.annotator)] = reason
            elif event.kind == "readmission":
                excluded.pop(str(event.annotator), None)
    frame = _frame(list(judgments.values()), _JUDGMENTS)
    return History(
        seq,
        frame.with_columns(pl.col("annotator").is_in(list(excluded)).alias("excluded")),
        _frame([pick for pick in picked if pick[1] not in withdrawn], _PICKS),
        _frame(notes, _NOTES),
        excluded,
    )


def _judgment(event: Event, stages: list[str], before: tuple[Any, ...] | None) -> tuple[Any, ...]:
    data = event.data
    return (
        event.seq if before is None else before[0],
        event.judgment_id,
        event.annotator or "",
        stages[data["stage"]],
        data["items"],
        to_json(data["answer"]),
        event.at if before is None else before[6],
        active_seconds(data),
        bool(data.get("late")),
        event.kind == "revision",
        bool(data.get("imported")),
        data.get("purpose", "judgment"),
        data.get("right"),
        data.get("about"),
    )


def _pick(event: Event, stages: list[str]) -> tuple[Any, ...]:
    data = event.data
    return (
        event.seq,
        event.judgment_id,
        event.annotator or "",
        stages[data["stage"]],
        data["items"],
        event.at,
        data.get("round"),
        data.get("weight"),
        data.get("propensity"),
        data.get("purpose", "judgment"),
    )


def _frame(rows: list[tuple[Any, ...]], schema: dict[str, Any]) -> pl.DataFrame:
    plain = {name: pl.Int64 if kind == TIME else kind for name, kind in schema.items()}
    columns: list[Any] = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in schema]
    made = {
        name: _lists(column) if schema[name] == pl.List(pl.String) else column
        for name, column in zip(schema, columns, strict=True)
    }
    frame = pl.DataFrame(made, schema=plain)
    times = [
        pl.col(name).cast(pl.Datetime("us")).dt.replace_time_zone("UTC") for name in schema if schema[name] == TIME
    ]
    return frame.with_columns(times)


def _lists(column: list[list[str]]) -> pl.Series:
    """Make a column of lists; polars would make a series of each first, which takes several times as long."""
    sizes = [len(one) for one in column]
    if not all(sizes):
        return pl.Series(column, dtype=pl.List(pl.String))
    row = np.repeat(np.arange(len(column)), sizes)
    flat = pl.DataFrame({"row": row, "item": pl.Series([item for one in column for item in one], dtype=pl.String)})
    return flat.group_by("row", maintain_order=True).agg("item")["item"]


def judgments_of(history: History, study: Study) -> Iterator[Judgment]:
    """Yield every judgment of a history, as the study's own records."""
    protocols = {stage.name: stage.protocol.name for stage in study.config.stages}
    columns = ["judgment_id", "annotator", "stage", "items", "answer", "at", "seconds"]
    flags = ["late", "imported", "revised", "excluded", "purpose", "right"]
    for name, annotator, stage, items, answer, at, seconds, *rest in history.judgments.select(
        columns + flags
    ).iter_rows():
        shown, said = tuple(items), json.loads(answer)
        yield Judgment(name, annotator, stage, protocols[stage], shown, said, at, seconds, *rest)


def observations_of(
    history: History,
    study: Study,
    kind: str | None = None,
    stage: str | None = None,
    *,
    repeats: bool = False,
    judgments: Iterable[Judgment] | None = None,
) -> dict[str, Observations]:
    """Return what all judgments say, those of excluded annotators too, by criterion.

    `kind` is by default the most telling one of the (first) stage. Checks are left out, and so are repeats
    unless they are asked for. `judgments` are those of the history, where they have been read already.
    """
    protocols = {known.name: known.protocol for known in study.config.stages}
    chosen = kind or protocols[stage or study.config.stages[0].name].kinds[0]
    wanted = {"judgment", "overlap", "repeat"} if repeats else {"judgment", "overlap"}
    told = (
        judgment
        for judgment in judgments or judgments_of(history, study)
        if judgment.purpose in wanted and (stage is None or judgment.stage == stage)
    )
    return collect(chosen, told, protocols, Index([item.id for item in study.items]))


def first_and_last(judgments: pl.DataFrame) -> tuple[datetime, datetime] | None:
    """Return when the first and the last judgment came; None while there are none."""
    if judgments.is_empty():
        return None
    times = judgments["at"]
    first, last = times.min(), times.max()
    return (first, last) if isinstance(first, datetime) and isinstance(last, datetime) else None
