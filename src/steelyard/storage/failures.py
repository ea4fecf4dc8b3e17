"""Conversion of database failures to errors with readable messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from steelyard.errors import StoreError

READ = ("the database could not be read", "Check that it still exists.")
WRITTEN = (
    "the database could not be written",
    "Send the answer again when this is fixed: saved answers are never counted twice.",
)


@contextmanager
def said_plainly(what: str, remedy: str, *, secrets: Sequence[str] = ()) -> Iterator[None]:
    """Turn a failure of the database inside the block into a StoreError: what did not work, why, and what to do.

    `secrets` are removed from the reason, in case the driver quotes the address it was given.
    """
    try:
        yield
    except DBAPIError as error:
        # The first line says it; PostgreSQL's client adds guesses about what that probably means.
        why = (str(error.orig).strip().splitlines() or ["no reason given"])[0].rstrip(".")
        for secret in secrets:
            why = why.replace(secret, "***")
        raise StoreError(f"{what}: {why}.", remedy) from (None if secrets else error)
    except PoolTimeoutError as error:
        raise StoreError(f"{what}: all connections have been busy for too long.", remedy) from error
