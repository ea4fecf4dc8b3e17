"""The judgments of a study: the one place that decides which answers count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import polars as pl

from steelyard.records import Judgment
from steelyard.storage.events import to_json
from steelyard.study.config import Stage
from steelyard.study.events import (
    ConfigChanged,
    Event,
    Excluded,
    Judged,
    JudgeRegistered,
    Readmitted,
    Revised,
    counts_models,
)
from steelyard.study.leases import active_seconds
from steelyard.study.log import as_datetime

_DECIDING_KINDS = tuple(payload.kind for payload in (Excluded, Readmitted, Revised, JudgeRegistered, ConfigChanged))
"""Events that decide which answer of whom counts."""


class EventSource(Protocol):
    """A log to read from: that of a study, or of a simulated study in memory."""

    def last_seq(self) -> int:
        """Return the number of the last event."""

    def events(self, kinds: Iterable[str] | None = None, *, until: int | None = None) -> Iterator[Event]:
        """Yield the events of these kinds, or all of them, in order, up to event `until`."""


def judgment_of(event: Event, stages: Sequence[Stage]) -> Judgment:
    """Return the judgment that an event (a first answer or a revision) records."""
    data: Judged = event.data
    stage = stages[data.stage]
    return Judgment(
        judgment_id=str(event.judgment_id),
        annotator=event.annotator or "",
        stage=stage.name,
        protocol=stage.protocol.name,
        items=data.items,
        answer=data.answer,
        at=as_datetime(event.at),
        seconds=active_seconds(data),
        late=data.late,
        imported=data.imported,
        revised=isinstance(data, Revised),
        purpose=data.purpose,
        right=data.right,
        about=data.about,
        seq=event.seq,
        version=data.version,
        cost=data.cost,
        comment=data.comment,
        effort=data.effort,
    )


def effective_judgments(log: EventSource, stages: Sequence[Stage]) -> Iterator[Judgment]:
    """Yield every judgment in the order of submission, with its latest answer.

    Those of excluded annotators are marked, and so are those of models, which count only where the study says so.

    Everything that counts, lists or exports judgments uses this function. Memory grows with the number of revisions,
    not with that of judgments. All judgments are as of one moment, while others go on submitting.
    """
    until = log.last_seq()
    excluded: set[str] = set()
    models: set[str] = set()
    is_counting_models = False
    revisions: dict[str, Event] = {}
    for event in log.events(_DECIDING_KINDS, until=until):
        if isinstance(event.data, Revised):
            revisions[str(event.judgment_id)] = event
        elif isinstance(event.data, Excluded):
            excluded.add(str(event.annotator))
        elif isinstance(event.data, Readmitted):
            excluded.discard(str(event.annotator))
        elif isinstance(event.data, JudgeRegistered):
            models.add(str(event.annotator))
        else:
            is_counting_models = counts_models(event.data.config)
    for first in log.events((Judged.kind,), until=until):
        judgment = judgment_of(revisions.get(str(first.judgment_id), first), stages)
        if judgment.revised:
            judgment = replace(judgment, at=as_datetime(first.at), seq=first.seq)
        if judgment.annotator in models:
            judgment = replace(judgment, annotator_kind="model", in_scores=is_counting_models)
        yield replace(judgment, set_aside=True) if judgment.annotator in excluded else judgment


class JudgmentReader:
    """The effective judgments of a log that grows: each event is read once.

    Pass every event in order to `apply`; events of other kinds change nothing. The result is that of
    `effective_judgments`, which needs less memory for a single reading.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = stages
        self._judgments: list[Judgment] = []
        self._place: dict[str, int] = {}
        self.excluded: dict[str, str] = {}
        """Excluded annotators, with the reasons."""
        self.models: set[str] = set()
        self._is_counting_models = False
        self.changes = 0
        """How often a judgment that was read before has changed: it was revised, or set aside, or counts again."""

    def apply(self, event: Event) -> int | None:
        """Take the next event; return the place of the judgment that it added or changed."""
        data = event.data
        place = None
        if isinstance(data, Revised):
            place = self._place[str(event.judgment_id)]
            first = self._judgments[place]
            self._judgments[place] = replace(judgment_of(event, self._stages), at=first.at, seq=first.seq)
            self.changes += 1
        elif isinstance(data, Judged):
            place = self._place[str(event.judgment_id)] = len(self._judgments)
            self._judgments.append(judgment_of(event, self._stages))
        elif isinstance(data, Excluded):
            self.excluded[str(event.annotator)] = data.reason
            self.changes += 1
        elif isinstance(data, Readmitted):
            self.excluded.pop(str(event.annotator), None)
            self.changes += 1
        elif isinstance(data, JudgeRegistered) and event.annotator not in self.models:
            self.models.add(str(event.annotator))
            self.changes += 1
        elif isinstance(data, ConfigChanged) and counts_models(data.config) != self._is_counting_models:
            self._is_counting_models = not self._is_counting_models
            self.changes += 1
        return place

    def __getitem__(self, place: int) -> Judgment:
        """Return a judgment by its place in the order of submission, not marked if it is set aside."""
        return self._judgments[place]

    def judgments(self) -> tuple[Judgment, ...]:
        """Return every judgment in the order of submission, marked if its annotator is excluded, or a model."""
        if not self.excluded and not self.models:
            return tuple(self._judgments)
        return tuple(map(self._marked, self._judgments))

    def _marked(self, judgment: Judgment) -> Judgment:
        if judgment.annotator in self.models:
            judgment = replace(judgment, annotator_kind="model", in_scores=self._is_counting_models)
        return replace(judgment, set_aside=True) if judgment.annotator in self.excluded else judgment


def judgment_frame(judgments: Iterable[Judgment]) -> pl.DataFrame:
    """Lay judgments out as a table, one a row; `answer` and `item_seconds` are JSON."""
    rows = list(judgments)
    return pl.DataFrame(
        {
            "judgment_id": [j.judgment_id for j in rows],
            "annotator": [j.annotator for j in rows],
            "stage": [j.stage for j in rows],
            "protocol": [j.protocol for j in rows],
            "items": [list(j.items) for j in rows],
            "answer": [to_json(j.answer) for j in rows],
            "at": [j.at for j in rows],
            "seconds": [j.seconds for j in rows],
            "late": [j.late for j in rows],
            "revised": [j.revised for j in rows],
            "imported": [j.imported for j in rows],
            "set_aside": [j.set_aside for j in rows],
            "purpose": [j.purpose for j in rows],
            "right": [j.right for j in rows],
            "annotator_kind": [j.annotator_kind for j in rows],
            "in_scores": [j.counts for j in rows],
            "version": [j.version for j in rows],
            "cost": [j.cost for j in rows],
            "comment": [j.comment for j in rows],
            "first_action": [j.effort.first_action if j.effort else None for j in rows],
            "changes": [j.effort.changes if j.effort else None for j in rows],
            "untrusted": [j.effort.untrusted if j.effort else None for j in rows],
            "pastes": [j.effort.pastes if j.effort else None for j in rows],
            "item_seconds": [to_json(dict(j.effort.items)) if j.effort and j.effort.items else None for j in rows],
        },
        schema={
            "judgment_id": pl.String,
            "annotator": pl.String,
            "stage": pl.String,
            "protocol": pl.String,
            "items": pl.List(pl.String),
            "answer": pl.String,
            "at": pl.Datetime("us", "UTC"),
            "seconds": pl.Float64,
            "late": pl.Boolean,
            "revised": pl.Boolean,
            "imported": pl.Boolean,
            "set_aside": pl.Boolean,
            "purpose": pl.String,
            "right": pl.Boolean,
            "annotator_kind": pl.String,
            "in_scores": pl.Boolean,
            "version": pl.String,
            "cost": pl.Float64,
            "comment": pl.String,
            "first_action": pl.Float64,
            "changes": pl.Int64,
            "untrusted": pl.Int64,
            "pastes": pl.Int64,
            "item_seconds": pl.String,
        },
    )
