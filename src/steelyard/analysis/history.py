"""The history of a study as tables, read from its log once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from steelyard.observations import Index, Observations
from steelyard.records import ABOUT_ANNOTATORS, Judgment
from steelyard.storage.events import to_json
from steelyard.study import Study
from steelyard.study import events as ev
from steelyard.study.events import Event
from steelyard.study.judges import people_only
from steelyard.study.judgments import JudgmentReader
from steelyard.study.log import as_microseconds
from steelyard.study.observing import collect

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
    "excluded": pl.Boolean,
    "comment": pl.String,
    "first_action": pl.Float64,
    "changes": pl.Int64,
    "untrusted": pl.Int64,
    "pastes": pl.Int64,
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
    "lease_end": TIME,
}
_NOTES = {
    "kind": pl.String,
    "at": TIME,
    "annotator": pl.String,
    "judgment_id": pl.String,
    "reason": pl.String,
}
_NOTE_KINDS = tuple(payload.kind for payload in (ev.Skipped, ev.Flagged, ev.Expired, ev.Excluded, ev.Readmitted))
_JUDGMENT_KINDS = (ev.Judged.kind, ev.Revised.kind, ev.JudgeRegistered.kind, ev.ConfigChanged.kind)
_CHUNK = 100_000
"""Number of events that are held in memory at once."""
_PICK_KINDS = (ev.Picked.kind, ev.Renewed.kind, ev.Withdrawn.kind)


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """A study's past, up to event `seq` at least.

    `records` are all judgments by people in the order of submission, `model_records` those by models. `judgments` is
    `records` as a table, answers as JSON, with excluded annotators marked in `excluded`, checks and repeats by their
    `purpose` (and `about`: the check's key, or the judgment repeated). `picks` are all tasks that were leased and how
    they were chosen; `notes` the skips, flags, expiries, exclusions and readmissions with their reasons; `excluded`
    the excluded annotators with the reasons.
    """

    seq: int
    records: tuple[Judgment, ...]
    judgments: pl.DataFrame
    picks: pl.DataFrame
    notes: pl.DataFrame
    excluded: dict[str, str]
    model_records: tuple[Judgment, ...] = ()

    def about_items(self, *, repeats: bool = False) -> Iterator[Judgment]:
        """Yield the judgments about items, those of excluded annotators too, without checks; `repeats` if wanted."""
        purposes = {"judgment", "overlap", "repeat"} if repeats else {"judgment", "overlap"}
        return (judgment for judgment in self.records if judgment.purpose in purposes)

    @property
    def counted(self) -> pl.DataFrame:
        """People's judgments that count in the scores: no checks or repeats, and none of excluded annotators."""
        return self.judgments.filter(~pl.col("excluded") & ~pl.col("purpose").is_in(list(ABOUT_ANNOTATORS)))

    def open_tasks(self) -> pl.DataFrame:
        """List the leased tasks, the oldest lease first."""
        closed = self.notes.filter(pl.col("kind").is_in(["skip", "expired"]))["judgment_id"]
        by_models = pl.Series([judgment.judgment_id for judgment in self.model_records], dtype=pl.String)
        gone = pl.concat([closed, self.judgments["judgment_id"], by_models])
        return self.picks.filter(~pl.col("judgment_id").is_in(gone.implode())).sort("seq")


def history_of(study: Study, *, picks: bool = True) -> History:
    """Read a study's log into tables. Without `picks`, that table stays empty."""
    return HistoryReader(study, picks=picks).read()


class HistoryReader:
    """Reads a study's log into tables, and later only the events that were added since."""

    def __init__(self, study: Study, *, picks: bool = True) -> None:
        self._study = study
        self._kinds = [*_JUDGMENT_KINDS, *_NOTE_KINDS, *(_PICK_KINDS if picks else ())]
        self._reset()

    def _reset(self) -> None:
        self._generation = self._study.privacy.generation
        self._seq = 0
        self._reader = JudgmentReader(self._study.config.stages)
        self._judgments = _frame([], _JUDGMENTS)
        self._notes = _frame([], _NOTES)
        self._picks = _frame([], _PICKS)

    @property
    def changes(self) -> tuple[int, int]:
        """Changes with every change of judgments that were read before; while it is the same, they only grow."""
        return self._generation, self._reader.changes

    def is_current(self) -> bool:
        """Whether the log has not been rewritten since it was read."""
        _ = self._study.state
        return self._study.privacy.generation == self._generation

    def read(self) -> History:
        """Return the history up to the last event."""
        seq = self._study.last_seq()
        if not self.is_current():
            self._reset()
        events = self._study.events(self._kinds, after=self._seq, until=seq)
        while chunk := list(islice(events, _CHUNK)):
            self._add(chunk)
        self._seq = seq
        excluded, models = self._reader.excluded, self._reader.models
        people = self._reader.judgments()
        by_models: tuple[Judgment, ...] = ()
        table = self._judgments
        if models:
            by_models = tuple(judgment for judgment in people if judgment.annotator_kind == "model")
            people = tuple(people_only(people))
            table = table.filter(~pl.col("annotator").is_in(list(models)))
        marked = table.with_columns(pl.col("annotator").is_in(list(excluded)).alias("excluded"))
        return History(seq, people, marked, self._picks, self._notes, dict(excluded), by_models)

    def _add(self, events: list[Event]) -> None:
        notes: list[tuple[Any, ...]] = []
        places: dict[int, None] = {}
        for event in events:
            place = self._reader.apply(event)
            if place is not None:
                places[place] = None
            elif event.kind in _NOTE_KINDS:
                reason = str(getattr(event.data, "reason", ""))
                notes.append((event.kind, event.at, event.annotator, event.judgment_id, reason))
        first_new = self._judgments.height
        rows = [_judgment_row(self._reader[place]) for place in sorted(places)]
        if any(place < first_new for place in places):
            before = self._judgments.filter(~pl.col("seq").is_in([row[0] for row in rows]))
            self._judgments = pl.concat([before, _frame(rows, _JUDGMENTS)]).sort("seq")
        elif rows:
            self._judgments = pl.concat([self._judgments, _frame(rows, _JUDGMENTS)])
        if notes:
            self._notes = pl.concat([self._notes, _frame(notes, _NOTES)])
        self._picks = _with_picks(self._picks, events, self._study)


def _judgment_row(judgment: Judgment) -> tuple[Any, ...]:
    return (
        judgment.seq,
        judgment.judgment_id,
        judgment.annotator,
        judgment.stage,
        judgment.items,
        to_json(judgment.answer),
        as_microseconds(judgment.at),
        judgment.seconds,
        judgment.late,
        judgment.revised,
        judgment.imported,
        judgment.purpose,
        judgment.right,
        judgment.about,
        judgment.set_aside,
        judgment.comment,
        judgment.effort.first_action if judgment.effort else None,
        judgment.effort.changes if judgment.effort else None,
        judgment.effort.untrusted if judgment.effort else None,
        judgment.effort.pastes if judgment.effort else None,
    )


def _with_picks(picks: pl.DataFrame, events: Sequence[Event], study: Study) -> pl.DataFrame:
    """Add the tasks that were leased, move the ends of leases that were renewed, remove withdrawn tasks."""
    stages = [stage.name for stage in study.config.stages]
    rows = [
        (
            event.seq,
            event.judgment_id,
            event.annotator or "",
            stages[event.data.stage],
            event.data.items,
            event.at,
            event.data.round,
            event.data.weight,
            event.data.propensity,
            event.data.purpose,
            event.data.lease_end,
        )
        for event in events
        if isinstance(event.data, ev.Picked)
    ]
    if rows:
        picks = pl.concat([picks, _frame(rows, _PICKS)])
    renewed = {event.judgment_id: event.data.lease_end for event in events if isinstance(event.data, ev.Renewed)}
    if renewed:
        ends = pl.DataFrame({"judgment_id": list(renewed), "new_end": list(renewed.values())}).with_columns(
            pl.col("new_end").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        )
        joined = picks.join(ends, on="judgment_id", how="left", maintain_order="left")
        picks = joined.with_columns(pl.coalesce("new_end", "lease_end").alias("lease_end")).drop("new_end")
    withdrawn = [event.judgment_id for event in events if isinstance(event.data, ev.Withdrawn)]
    return picks.filter(~pl.col("judgment_id").is_in(withdrawn)) if withdrawn else picks


def _frame(rows: list[tuple[Any, ...]], schema: dict[str, Any]) -> pl.DataFrame:
    plain = {name: pl.Int64 if kind == TIME else kind for name, kind in schema.items()}
    columns: list[Any] = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in schema]
    series = {
        name: _lists(column) if schema[name] == pl.List(pl.String) else column
        for name, column in zip(schema, columns, strict=True)
    }
    frame = pl.DataFrame(series, schema=plain)
    times = [
        pl.col(name).cast(pl.Datetime("us")).dt.replace_time_zone("UTC") for name in schema if schema[name] == TIME
    ]
    return frame.with_columns(times)


def _lists(column: list[list[str]]) -> pl.Series:
    """Return a column of lists; building it in polars from Python lists takes several times as long."""
    sizes = [len(one) for one in column]
    if not all(sizes):
        return pl.Series(column, dtype=pl.List(pl.String))
    row = np.repeat(np.arange(len(column)), sizes)
    flat = pl.DataFrame({"row": row, "item": pl.Series([item for one in column for item in one], dtype=pl.String)})
    return flat.group_by("row", maintain_order=True).agg("item")["item"]


def observations_of(
    study: Study, judgments: Iterable[Judgment], kind: str | None = None, stage: str | None = None
) -> dict[str, Observations]:
    """Return judgments as observations, by criterion.

    `kind` is by default the first one of the (first) stage's protocol. The caller chooses which judgments to include.
    """
    protocols = {one.name: one.protocol for one in study.config.stages}
    chosen = kind or protocols[stage or study.config.stages[0].name].kinds[0]
    of_stage = (judgment for judgment in judgments if stage is None or judgment.stage == stage)
    return collect(chosen, of_stage, protocols, Index([item.id for item in study.items]))


def first_and_last(judgments: pl.DataFrame) -> tuple[datetime, datetime] | None:
    """Return the times of the first and the last judgment; None if there are none."""
    if judgments.is_empty():
        return None
    times = judgments["at"]
    first, last = times.min(), times.max()
    return (first, last) if isinstance(first, datetime) and isinstance(last, datetime) else None
