"""Events: the rows of the log, how they are written as text, and how they are chained."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

EMPTY_DIGEST = "0" * 32


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
