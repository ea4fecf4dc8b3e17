"""Judgments that are being imported: stored beside the log until all are there, then moved to it a part at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select, update

from steelyard.storage.processes import is_abandoned, now, this_process
from steelyard.storage.tables import imported, imports


class StagedJudgment(NamedTuple):
    """A judgment on its way to the log; `data` is the payload of its event as JSON."""

    judgment_id: str
    annotator: str | None
    data: str


class Staging:
    """The batches of one study, within a transaction."""

    def __init__(self, connection: Connection, study: int) -> None:
        self._connection = connection
        self._study = study

    def add(self, batch: str, first: int, judgments: Sequence[StagedJudgment]) -> None:
        """Add judgments to a batch that is not complete; `first` is the place of the first of them."""
        if first == 0:
            row = {"batch": batch, "process": this_process(), "touched": now(), "is_complete": False}
            self._connection.execute(insert(imports).values(study=self._study, **row))
        rows = [
            {"study": self._study, "batch": batch, "place": place, **judgment._asdict()}
            for place, judgment in enumerate(judgments, first)
        ]
        self._connection.execute(insert(imported), rows)

    def complete(self, batch: str) -> None:
        """Note that all judgments of a batch are there: from now on it will be imported, whatever happens."""
        self._touch(batch, is_complete=True)

    def next(self, batch: str, most: int) -> list[StagedJudgment]:
        """Return the next judgments of a batch, and take them out of it; an empty list ends the batch."""
        query = select(imported).where(imported.c.study == self._study, imported.c.batch == batch)
        rows = self._connection.execute(query.order_by(imported.c.place).limit(most)).all()
        if rows:
            done = (
                (imported.c.study == self._study) & (imported.c.batch == batch) & (imported.c.place <= rows[-1].place)
            )
            self._connection.execute(delete(imported).where(done))
            self._touch(batch)
        else:
            self._connection.execute(delete(imports).where(imports.c.study == self._study, imports.c.batch == batch))
        return [StagedJudgment(row.judgment_id, row.annotator, row.data) for row in rows]

    def abandoned(self) -> list[str]:
        """Return the complete batches whose process has ended; delete the incomplete ones."""
        batches = []
        for row in self._connection.execute(select(imports).where(imports.c.study == self._study)).all():
            if is_abandoned(row.process, row.touched) and row.is_complete:
                batches.append(row.batch)
                self._touch(row.batch)
            elif is_abandoned(row.process, row.touched):
                for table in (imported, imports):
                    condition = (table.c.study == self._study) & (table.c.batch == row.batch)
                    self._connection.execute(delete(table).where(condition))
        return batches

    def delete_annotator(self, annotator: str) -> None:
        """Delete an annotator's judgments from all batches."""
        condition = (imported.c.study == self._study) & (imported.c.annotator == annotator)
        self._connection.execute(delete(imported).where(condition))

    def _touch(self, batch: str, **values: bool) -> None:
        condition = (imports.c.study == self._study) & (imports.c.batch == batch)
        statement = update(imports).where(condition).values(process=this_process(), touched=now(), **values)
        self._connection.execute(statement)


def has_batches(connection: Connection, study: int) -> bool:
    """Whether judgments are being imported, or were when a process ended."""
    return connection.execute(select(imports.c.batch).where(imports.c.study == study).limit(1)).first() is not None
