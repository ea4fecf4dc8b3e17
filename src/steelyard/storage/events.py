"""Stored events: the rows of the log as text, and the digests that chain them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

EMPTY_DIGEST = "0" * 32


class StoredEvent(NamedTuple):
    """A row of the log. `at` is in microseconds since 1970 (UTC), `data` is JSON."""

    seq: int
    at: int
    kind: str
    annotator: str | None
    judgment_id: str | None
    data: str
    digest: str

    def line(self) -> str:
        """Return the event as one line of an exported log."""
        kind, annotator, judgment_id = to_json(self.kind), to_json(self.annotator), to_json(self.judgment_id)
        return (
            f'{{"annotator":{annotator},"at":{self.at},"data":{self.data},"digest":"{self.digest}",'
            f'"judgment_id":{judgment_id},"kind":{kind},"seq":{self.seq}}}'
        )

    def chained_to(self, previous: str) -> StoredEvent:
        """Return the event with its digest computed from that of the event before it."""
        return self._replace(digest=self.digest_after(previous))

    def digest_after(self, previous: str) -> str:
        """Return the digest of this event, which covers every event before it."""
        fields = [
            previous,
            str(self.seq),
            str(self.at),
            self.kind,
            self.annotator or "",
            self.judgment_id or "",
            self.data,
        ]
        return hashlib.blake2b("\x1f".join(fields).encode(), digest_size=16).hexdigest()


def to_json(value: object) -> str:
    """Write JSON in the one form the log uses, so that equal data is equal bytes."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def rechained(
    events: Iterable[StoredEvent], change: Callable[[StoredEvent, str], StoredEvent], previous: str = EMPTY_DIGEST
) -> Iterator[StoredEvent]:
    """Yield a log with each event changed and the digests computed anew.

    `change` gets an event and the digest of the event before it, as it is now; `previous` is that of the event
    before the first.
    """
    for event in events:
        new = change(event, previous).chained_to(previous)
        previous = new.digest
        yield new
