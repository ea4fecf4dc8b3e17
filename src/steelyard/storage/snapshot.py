"""A study as it is at one moment, for backups made while it is served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, select

from steelyard.errors import StoreError
from steelyard.storage.events import Chain, StoredEvent
from steelyard.storage.tables import access, erasures, events, studies

_CHUNK = 10_000
_STUDY: BindParameter[int] = bindparam("in_study")
_HEADING = select(studies.c.last_seq, studies.c.digest, studies.c.secret).where(studies.c.id == _STUDY)
_LOG = select(*(column for column in events.c if column.name != "study")).where(events.c.study == _STUDY)
_TOKENS = (
    select(*(column for column in access.c if column.name != "study"))
    .where(access.c.study == _STUDY)
    .order_by(access.c.created, access.c.digest)
)


class Snapshot:
    """A study at one moment: `last_seq` and `digest` are those of its last event, `secret` is of its pseudonyms."""

    def __init__(self, connection: Connection, study: int) -> None:
        self._connection = connection
        self._study = study
        if connection.execute(select(erasures.c.study).where(erasures.c.study == study)).first() is not None:
            raise StoreError(
                "an annotator is being forgotten at the moment.",
                "Try again in a minute. If steelyard forget was interrupted, run it again.",
            )
        row = connection.execute(_HEADING, {"in_study": study}).one()
        self.last_seq: int = row.last_seq
        self.digest: str = row.digest
        self.secret: str = row.secret

    def log_lines(self) -> Iterator[str]:
        """Yield every event as a line of JSON; refuse a log whose digests do not fit."""
        chain = Chain()
        rows = self._connection.execute(
            _LOG.order_by(events.c.seq), {"in_study": self._study}, execution_options={"yield_per": _CHUNK}
        )
        for row in rows:
            event = StoredEvent(*row)
            chain.check(event)
            yield event.line()
        chain.check_replacements()
        if (chain.seq, chain.digest) != (self.last_seq, self.digest):
            raise StoreError(f"the log ends at event {chain.seq} of {self.last_seq}.", "Restore an earlier backup.")

    def tokens(self) -> list[dict[str, Any]]:
        """Return the tokens that let people in, as their digests."""
        rows = self._connection.execute(_TOKENS, {"in_study": self._study})
        return [dict(row._mapping) for row in rows]
