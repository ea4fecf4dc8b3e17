"""Choose an engine by name, or by the size of the files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steelyard.engines.duckdb_engine import DuckDBEngine
from steelyard.engines.engine import Engine
from steelyard.engines.files import machine_memory, size_of
from steelyard.engines.spark_engine import SparkEngine
from steelyard.errors import ConfigError, did_you_mean

MEMORY = "memory"
ENGINES = (MEMORY, DuckDBEngine.name, SparkEngine.name)


def chosen_engine(name: str | None, files: Sequence[Path]) -> str:
    """Return the engine to use: the named one, else DuckDB for Parquet files larger than half of the memory."""
    if name is None:
        parquet = all(file.suffix == ".parquet" for file in files)
        return DuckDBEngine.name if parquet and size_of(files) > machine_memory() / 2 else MEMORY
    _require_engine(name)
    return name


def open_engine(name: str, *, spark_master: str | None = None, memory: str | None = None) -> Engine:
    """Start DuckDB or Spark; the error names what is not installed."""
    _require_engine(name)
    if name == MEMORY:
        raise ConfigError("memory is not an engine that can be opened.", "Use read_judgments and the model's own fit.")
    return DuckDBEngine(memory) if name == DuckDBEngine.name else SparkEngine(master=spark_master)


def _require_engine(name: str) -> None:
    if name not in ENGINES:
        raise ConfigError(f"there is no engine '{name}'.", did_you_mean(name, ENGINES))
