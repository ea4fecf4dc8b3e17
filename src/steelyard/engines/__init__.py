"""Fit models to Parquet files larger than memory: DuckDB and Spark run the same SQL statements."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.engines.duckdb_engine import DuckDBEngine
    from steelyard.engines.engine import Engine
    from steelyard.engines.files import files_of, is_pattern
    from steelyard.engines.fitting import fit_files, fit_log
    from steelyard.engines.log import Log, LogFiles, open_log
    from steelyard.engines.opening import ENGINES, MEMORY, chosen_engine, open_engine
    from steelyard.engines.spark_engine import SparkEngine

# Imported on first use: choosing an engine by the size of the files does not need the models that engines can fit.
_MODULES = {
    "duckdb_engine": ("DuckDBEngine",),
    "engine": ("Engine",),
    "files": ("files_of", "is_pattern"),
    "fitting": ("fit_files", "fit_log"),
    "log": ("Log", "LogFiles", "open_log"),
    "opening": ("ENGINES", "MEMORY", "chosen_engine", "open_engine"),
    "spark_engine": ("SparkEngine",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ENGINES",
    "MEMORY",
    "DuckDBEngine",
    "Engine",
    "Log",
    "LogFiles",
    "SparkEngine",
    "chosen_engine",
    "files_of",
    "fit_files",
    "fit_log",
    "is_pattern",
    "open_engine",
    "open_log",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'steelyard.engines' has no attribute '{name}'")
    return getattr(import_module(f"steelyard.engines.{_MODULE_OF[name]}"), name)
