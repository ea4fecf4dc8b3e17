"""Access tokens. Only their digests are stored, so a copy of the database gives no access."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Engine, Row, bindparam, delete, insert, or_, select, text

from steelyard.storage.failures import READ, WRITTEN, said_plainly
from steelyard.storage.tables import access

_TOKEN_BYTES = 24

# Built once, as every request asks for it.
_FIND = select(access).where(
    access.c.study == bindparam("in_study"),
    access.c.digest == bindparam("digest"),
    or_(access.c.expires.is_(None), access.c.expires > bindparam("now")),
)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token is good for. Times are in microseconds since 1970, UTC."""

    kind: str
    annotator: str | None
    note: str
    created: int
    expires: int | None


class Access:
    """The tokens of one study."""

    def __init__(
        self,
        engine: Engine,
        study: int,
        clock: Callable[[], int],
        turn: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._engine = engine
        self._study = study
        self._clock = clock
        self._turn = turn
        """Waits until nobody in this process writes: SQLite has one writer, and those who only try again may starve."""

    @property
    def database(self) -> str:
        """The database's URL without its password, to tell databases apart."""
        return self._engine.url.render_as_string(hide_password=True)

    def schema_version(self) -> str:
        """Read the version of the tables; raise StoreError if the database cannot be reached."""
        with said_plainly(*READ), self._engine.connect().execution_options(writes=False) as connection:
            return str(connection.execute(text("SELECT version_num FROM steelyard_version")).scalar())

    def grant(
        self,
        kind: str,
        *,
        annotator: str | None = None,
        note: str = "",
        lifetime: timedelta | None = None,
        token: str | None = None,
    ) -> str:
        """Make a token (or take one that was chosen), for a while or for good; return it, for the only time."""
        token = token or secrets.token_urlsafe(_TOKEN_BYTES)
        now = self._clock()
        row = {
            "study": self._study,
            "digest": _digest(kind, token),
            "kind": kind,
            "annotator": annotator,
            "note": note,
            "created": now,
            "expires": None if lifetime is None else now + round(lifetime.total_seconds() * 1e6),
        }
        with said_plainly(*WRITTEN), self._turn(), self._engine.begin() as connection:
            connection.execute(delete(access).where(self._mine(), access.c.digest == row["digest"]))
            connection.execute(insert(access).values(row))
        return token

    def find(self, kind: str, token: str) -> Grant | None:
        """Return what a token is good for; None if it is unknown, of another kind, revoked or expired."""
        values = {"in_study": self._study, "digest": _digest(kind, token), "now": self._clock()}
        with said_plainly(*READ), self._engine.connect().execution_options(writes=False) as connection:
            row = connection.execute(_FIND, values).one_or_none()
        return None if row is None else _grant(row)

    def grants(self, kind: str) -> list[Grant]:
        """List the tokens of a kind that are good for something, the oldest first."""
        query = select(access).where(self._mine(), access.c.kind == kind, self._alive()).order_by(access.c.created)
        with said_plainly(*READ), self._engine.connect().execution_options(writes=False) as connection:
            return [_grant(row) for row in connection.execute(query)]

    def of(self, annotator: str) -> list[Grant]:
        """List an annotator's tokens, good or not."""
        query = select(access).where(self._mine(), access.c.annotator == annotator).order_by(access.c.created)
        with self._engine.connect().execution_options(writes=False) as connection:
            return [_grant(row) for row in connection.execute(query)]

    def revoke(
        self, kind: str, *, annotator: str | None = None, token: str | None = None, note: str | None = None
    ) -> int:
        """Make tokens of a kind good for nothing: one, an annotator's, those with a note, or all; return how many."""
        condition = self._mine() & (access.c.kind == kind)
        if annotator is not None:
            condition &= access.c.annotator == annotator
        if token is not None:
            condition &= access.c.digest == _digest(kind, token)
        if note is not None:
            condition &= access.c.note == note
        with said_plainly(*WRITTEN), self._turn(), self._engine.begin() as connection:
            return int(connection.execute(delete(access).where(condition)).rowcount)

    def _mine(self) -> ColumnElement[bool]:
        return access.c.study == self._study

    def _alive(self) -> ColumnElement[bool]:
        return or_(access.c.expires.is_(None), access.c.expires > self._clock())


def _digest(kind: str, token: str) -> str:
    # Tokens are random and long, so a plain digest cannot be guessed back; looking one up by its digest
    # takes the same time whatever part of it is right.
    return hashlib.sha256(f"{kind}:{token}".encode("utf-8", "surrogatepass")).hexdigest()


def _grant(row: Row[Any]) -> Grant:
    return Grant(row.kind, row.annotator, row.note, row.created, row.expires)
