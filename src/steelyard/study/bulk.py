"""Adding many judgments from other sources to a study: all or none, in short transactions.

The judgments are first stored beside the log. When all are there, they are moved to it in short transactions. If the
process ends before all are stored, none is added; if it ends later, the next process that opens the study moves those
that are left.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
from msgspec import structs

from steelyard.storage import StoredTask
from steelyard.storage.staging import StagedJudgment
from steelyard.study import events as ev
from steelyard.study.core import Core
from steelyard.study.log import Transaction

_AT_ONCE = 300
"""This many judgments are added in one transaction, which takes some 30 ms."""
_STAGED_AT_ONCE = 2_000
_SHORTEST_PAUSE_SECONDS = 0.01
_decode = msgspec.json.Decoder(ev.Judged).decode


@dataclass(frozen=True, slots=True)
class NewJudgment:
    """A judgment made elsewhere, with the payload of its event."""

    judgment_id: str
    annotator: str | None
    payload: ev.Judged


def add_judgments(core: Core, judgments: Sequence[NewJudgment]) -> int:
    """Add judgments that are not there yet, all or none; return how many."""
    existing = core.log.store.existing_tasks([new.judgment_id for new in judgments])
    by_id = {new.judgment_id: new for new in judgments if new.judgment_id not in existing}
    if len(by_id) <= _AT_ONCE:
        with core.log.write(alone=True) as transaction:
            return _append(core, transaction, list(by_id.values()))
    batch = secrets.token_hex(8)
    rows = (StagedJudgment(new.judgment_id, new.annotator, new.payload.text()) for new in by_id.values())
    place = 0
    while chunk := list(islice(rows, _STAGED_AT_ONCE)):
        with _Pause(), core.log.rewrite() as writer:
            writer.staging().add(batch, place, chunk)
        place += len(chunk)
    with core.log.rewrite() as writer:
        writer.staging().complete(batch)
    _move(core, batch)
    return place


def complete_imports(core: Core) -> None:
    """Move judgments to the log that another process has left when it ended."""
    if not core.log.store.has_batches():
        return
    with core.log.rewrite() as writer:
        batches = writer.staging().abandoned()
    for batch in batches:
        _move(core, batch)


def _move(core: Core, batch: str) -> None:
    while True:
        with _Pause(), core.log.write(alone=True) as transaction:
            rows = transaction.store.staging().next(batch, _AT_ONCE)
            _append(core, transaction, [NewJudgment(row.judgment_id, row.annotator, _decode(row.data)) for row in rows])
        if not rows:
            return


def _append(core: Core, transaction: Transaction, judgments: Sequence[NewJudgment]) -> int:
    """Append judgments that are not there yet; return how many."""
    now = core.clock()
    existing = transaction.store.tasks([new.judgment_id for new in judgments])
    tasks = []
    for new in judgments:
        if new.judgment_id in existing:
            continue
        payload = structs.replace(new.payload, slot=_slot(core, transaction, new))
        event = transaction.append(payload, at=now, annotator=new.annotator, judgment_id=new.judgment_id)
        annotator, stage, items = event.annotator or "", payload.stage, payload.items
        tasks.append(
            StoredTask(new.judgment_id, annotator, stage, items, "answered", now, event.seq, answer_seq=event.seq)
        )
    transaction.store.add_tasks(tasks)
    core.apply_item_rule(transaction, [item for task in tasks for item in task.items], now)
    return len(tasks)


def _slot(core: Core, transaction: Transaction, new: NewJudgment) -> int | None:
    """Return the planned task that a judgment fills, if the design plans tasks and the judgment counts."""
    state, payload = transaction.state, new.payload
    counts = new.annotator not in state.judges or state.counts_models
    if not counts or payload.purpose != "judgment" or not core.config.stages[payload.stage].design.uses_slots:
        return None
    return state.progress[payload.stage].slot_for(tuple(state.code[item] for item in payload.items))


class _Pause:
    """Leaves others as much time after a transaction as it took."""

    def __enter__(self) -> None:
        self._started = time.monotonic()

    def __exit__(self, *error: Any) -> None:
        time.sleep(max(_SHORTEST_PAUSE_SECONDS, time.monotonic() - self._started))
