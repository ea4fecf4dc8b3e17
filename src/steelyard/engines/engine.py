"""What an engine is: a place that runs our SQL over files, and gives back small tables."""

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
"""Begins the name of every view, so that those of a session that is not ours alone are left in peace."""


class Engine(ABC):
    """Runs SQL over Parquet files. Every statement is one text that all engines understand."""

    name: str

    @abstractmethod
    def read(self, view: str, files: Sequence[Path], columns: Mapping[str, str]) -> None:
        """Make a view of the files' columns, under our names (our name to theirs)."""

    @abstractmethod
    def view(self, name: str, sql: str) -> None:
        """Name a statement; it runs when it is used."""

    @abstractmethod
    def keep(self, name: str, sql: str) -> None:
        """Run a statement now and keep its result, on disk where it is large."""

    @abstractmethod
    def put(self, name: str, frame: pl.DataFrame) -> None:
        """Bring a small table along."""

    @abstractmethod
    def query(self, sql: str) -> pl.DataFrame:
        """Run a statement and fetch its result."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

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
    """Return one of our statements (sql/<name>.sql), with names and numbers put in its {places}."""
    return _text(name).format_map({"p": PREFIX, **parts}).strip()


def number(value: float) -> str:
    """Write a number so that engines take it as double precision, to the last digit."""
    return f"CAST('{float(value)!r}' AS DOUBLE)"
