"""The interface of engines: run SQL over files and return small tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files as package_files
from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl

PREFIX = "steelyard_"
"""Prefix of every view, so that views of a shared session are never overwritten."""


class Engine(ABC):
    """Runs SQL over Parquet files. All engines run the same statements."""

    name: str

    @abstractmethod
    def read(self, view: str, files: Sequence[Path], columns: Mapping[str, str]) -> None:
        """Create a view of the files' columns; `columns` maps our names to theirs."""

    @abstractmethod
    def view(self, name: str, sql: str) -> None:
        """Create a view; its statement runs when the view is queried."""

    @abstractmethod
    def keep(self, name: str, sql: str) -> None:
        """Run a statement now and store its result, on disk if it is large."""

    @abstractmethod
    def put(self, name: str, frame: pl.DataFrame) -> None:
        """Upload a small table."""

    @abstractmethod
    def query(self, sql: str) -> pl.DataFrame:
        """Run a statement and fetch its result."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@cache
def _text(name: str) -> str:
    text = package_files("steelyard.engines").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


def sql(name: str, **parts: object) -> str:
    """Return a statement (sql/<name>.sql) with its {placeholders} filled in."""
    return _text(name).format_map({"p": PREFIX, **parts}).strip()


def number(value: float) -> str:
    """Write a number as a double-precision literal without loss of digits."""
    return f"CAST('{float(value)!r}' AS DOUBLE)"
