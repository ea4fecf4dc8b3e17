"""Stored events: the rows of the log as text, and the digests that chain them.

The digest of an event does not cover its content directly but a salted hash of it, the commitment. When an annotator
is forgotten, the content and the salt are replaced and the commitment is kept: the chain of digests stays as it was,
and nothing about the former content can be learned or confirmed from the commitment without the salt.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from steelyard.errors import StoreError

EMPTY_DIGEST = "0" * 32
TOMBSTONE = "forgotten"
"""Kind of the event that ends the forgetting of an annotator."""
_SUM_MODULUS = 2**256


def new_salt() -> str:
    """Return a random salt for an event's commitment."""
    return secrets.token_hex(16)


class StoredEvent(NamedTuple):
    """A row of the log. `at` is in microseconds since 1970 (UTC), `data` is JSON.

    `seal` is the salt of the event's commitment; `salt:commitment` where the content was replaced, with the commitment
    of the original; None in logs begun before there were commitments, whose digests cover the content directly.
    """

    seq: int
    at: int
    kind: str
    annotator: str | None
    judgment_id: str | None
    data: str
    digest: str
    seal: str | None = None

    def line(self) -> str:
        """Return the event as one line of an exported log."""
        kind, annotator, judgment_id = to_json(self.kind), to_json(self.annotator), to_json(self.judgment_id)
        seal = "" if self.seal is None else f'"seal":{to_json(self.seal)},'
        return (
            f'{{"annotator":{annotator},"at":{self.at},"data":{self.data},"digest":"{self.digest}",'
            f'"judgment_id":{judgment_id},"kind":{kind},{seal}"seq":{self.seq}}}'
        )

    def chained_to(self, previous: str) -> StoredEvent:
        """Return the event with its digest computed from that of the event before it."""
        return self._replace(digest=self.digest_after(previous))

    def digest_after(self, previous: str) -> str:
        """Return the digest of this event, which covers every event before it."""
        covered = self._content(previous) if self.seal is None else f"{previous}\x1f{self.commitment()}".encode()
        return hashlib.blake2b(covered, digest_size=16).hexdigest()

    def commitment(self) -> str:
        """Return the salted hash of the event's content, or of the content that was replaced."""
        salt, _, original = (self.seal or "").partition(":")
        return original or hashlib.blake2b(self._content(salt), digest_size=16).hexdigest()

    @property
    def is_replaced(self) -> bool:
        """Whether the content was replaced because an annotator was forgotten."""
        return self.seal is not None and ":" in self.seal

    def replacing(self, original: StoredEvent) -> StoredEvent:
        """Return this event in the place of another: its content is new, the digest stays."""
        return self._replace(digest=original.digest, seal=f"{new_salt()}:{original.commitment()}")

    def replacement_hash(self) -> int:
        """Return a hash of content that no digest covers, since it replaces another; 0 for content that one covers.

        The sum of these hashes over the log is kept in tombstones, so that altered replacements are noticed.
        """
        if not self.is_replaced:
            return 0
        content = self._content(str(self.seal).partition(":")[0])
        return int.from_bytes(hashlib.blake2b(content, digest_size=32).digest(), "big")

    def _content(self, start: str) -> bytes:
        fields = [
            start,
            str(self.seq),
            str(self.at),
            self.kind,
            self.annotator or "",
            self.judgment_id or "",
            self.data,
        ]
        return "\x1f".join(fields).encode()


class Chain:
    """Checks the digests of a log, event by event."""

    def __init__(self) -> None:
        self.seq = 0
        self.digest = EMPTY_DIGEST
        self._replaced = ""

    def check(self, event: StoredEvent) -> None:
        """Refuse an event that does not follow from the one before."""
        self.seq += 1
        self.digest = event._replace(seq=self.seq).digest_after(self.digest)
        if (self.seq, self.digest) != (event.seq, event.digest):
            raise StoreError(f"the log was altered at or before event {event.seq}.", "Use an unaltered copy.")
        if event.is_replaced:
            self._replaced = sum_of_hashes(self._replaced, event.replacement_hash())
        if event.kind == TOMBSTONE:
            self._replaced = sum_of_hashes(self._replaced, -int(json.loads(event.data).get("replaced") or "0", 16))

    def check_replacements(self) -> None:
        """Refuse a log in which an event that replaced a forgotten one was altered."""
        if int(self._replaced or "0", 16):
            raise StoreError(
                "events that replace those of a forgotten annotator were altered.", "Use an unaltered copy."
            )


def sum_of_hashes(text: str, *changes: int) -> str:
    """Add hashes of replaced events to a sum, written in hexadecimal digits ('' is zero)."""
    return f"{(int(text or '0', 16) + sum(changes)) % _SUM_MODULUS:x}"


def new_seal(seal: str | None) -> str | None:
    """Return the seal of an exported event whose content differs from the study's own, made from its seal there.

    It is the same in every export, and the study's own seal cannot be computed from it.
    """
    return None if seal is None else hashlib.blake2b(f"export {seal}".encode(), digest_size=16).hexdigest()


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
        changed = change(event, previous)
        new = changed._replace(seal=new_seal(changed.seal)).chained_to(previous)
        previous = new.digest
        yield new
