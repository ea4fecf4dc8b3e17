"""Events: the rows of the log, how they are written as text, and how they are chained."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

EMPTY_DIGEST = "0" * 32
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. `at` is in microseconds since 1970, UTC."""

    seq: int
    at: int
    kind: str
    annotator: str | None
    judgment_id: str | None
    data: dict[str, Any]
    digest: str

    def as_json(self) -> str:
        """One line of an exported log."""
        return event_line(
            self.seq, self.at, self.kind, self.annotator, self.judgment_id, to_json(self.data), self.digest
        )


def event_of(row: Sequence[Any]) -> Event:
    """Read an event off a row of the table."""
    # By place rather than by name, and without looking for blanks around the JSON: a long log is read row by row.
    _, seq, at, kind, annotator, judgment_id, data, digest = row
    return Event(seq, at, kind, annotator, judgment_id, _decode(data)[0], digest)


def to_json(value: object) -> str:
    """Write JSON in the one form the log uses, so that equal data is equal bytes."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def event_line(
    seq: int, at: int, kind: str, annotator: str | None, judgment_id: str | None, data: str, digest: str
) -> str:
    """Return an event as a line of an exported log; `data` is as the database keeps it."""
    who, which, what = to_json(annotator), to_json(judgment_id), to_json(kind)
    return (
        f'{{"annotator":{who},"at":{at},"data":{data},"digest":"{digest}",'
        f'"judgment_id":{which},"kind":{what},"seq":{seq}}}'
    )


def chained_digest(
    previous: str, seq: int, at: int, kind: str, annotator: str | None, judgment_id: str | None, data: str
) -> str:
    """Return the digest of an event, which covers every event before it."""
    text = "\x1f".join([previous, str(seq), str(at), kind, annotator or "", judgment_id or "", data])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def rechained(
    events: Iterable[Event], change: Callable[[Event, str], Event], previous: str = EMPTY_DIGEST
) -> Iterator[Event]:
    """Yield a log with each event changed and the digests worked out anew.

    `change` gets an event and the digest of the one before it, as it is now; `previous` is that of the event
    before the first.
    """
    for event in events:
        new = change(event, previous)
        previous = chained_digest(
            previous, new.seq, new.at, new.kind, new.annotator, new.judgment_id, to_json(new.data)
        )
        yield replace(new, digest=previous)
