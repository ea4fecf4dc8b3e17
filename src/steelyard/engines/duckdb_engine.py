"""DuckDB: runs in this process on all cores and spills to disk what does not fit into memory."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from steelyard.engines.engine import Engine
from steelyard.errors import ConfigError, DataError

_WILD = re.compile(r"[*?\[]")


class DuckDBEngine(Engine):
    """An embedded in-memory database.

    Parameters
    ----------
    memory
        Memory limit of DuckDB, such as "2GB"; half of the machine's memory by default.
    threads
        Number of cores to use; all by default.
    """

    name = "duckdb"

    def __init__(self, memory: str | None = None, threads: int | None = None) -> None:
        try:
            import duckdb
        except ModuleNotFoundError:
            raise ConfigError("DuckDB is not installed.", "Install it: pip install 'steelyard[duckdb]'") from None
        from steelyard.engines.files import machine_memory

        self._errors: type[Exception] = duckdb.Error
        self._spill = tempfile.TemporaryDirectory(prefix="steelyard-duckdb-")
        # No statement depends on the order of rows, and preserving it would cost memory.
        config: dict[str, Any] = {"preserve_insertion_order": "false", "temp_directory": self._spill.name}
        config["memory_limit"] = memory or f"{machine_memory() // 2}B"
        if threads is not None:
            config["threads"] = threads
        try:
            self._connection = duckdb.connect(config=config)
        except duckdb.Error as error:
            self._spill.cleanup()
            raise ConfigError(f"DuckDB does not start: {_first(error)}", "Give memory like 2GB.") from error

    def read(self, view: str, files: Sequence[Path], columns: Mapping[str, str]) -> None:
        """Create a view of the columns; nothing is read yet."""
        chosen = ", ".join(f"{_quoted(theirs)} AS {ours}" for ours, theirs in columns.items())
        listed = ", ".join(_path(file) for file in files)
        self.view(view, f"FROM read_parquet([{listed}]) SELECT {chosen}")

    def view(self, name: str, sql: str) -> None:
        """Create a temporary view."""
        self._run(f"CREATE OR REPLACE TEMP VIEW {name} AS {sql}")

    def keep(self, name: str, sql: str) -> None:
        """Store a result as a temporary table."""
        self._run(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")

    def put(self, name: str, frame: pl.DataFrame) -> None:
        """Register a table in DuckDB without copying it."""
        self._connection.register(name, frame.to_arrow())

    def query(self, sql: str) -> pl.DataFrame:
        """Run a statement and fetch its result through Arrow."""
        try:
            result: pl.DataFrame = self._connection.sql(sql).pl()
        except self._errors as error:
            raise _refused(error) from error
        return result

    def close(self) -> None:
        """Close the database and delete its temporary files."""
        self._connection.close()
        self._spill.cleanup()

    def _run(self, statement: str) -> None:
        try:
            self._connection.execute(statement)
        except self._errors as error:
            raise _refused(error) from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _path(file: Path) -> str:
    """Quote a path; each * ? or [ is put in brackets, so that it is matched literally."""
    return "'" + _WILD.sub(r"[\g<0>]", str(file)).replace("'", "''") + "'"


def _first(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _refused(error: Exception) -> DataError:
    return DataError(f"DuckDB could not finish: {_first(error)}", "Free memory or disk space, or check the files.")
