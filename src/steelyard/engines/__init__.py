"""Fit models to Parquet files larger than memory: DuckDB and Spark run the same SQL statements."""

from steelyard.engines.duckdb_engine import DuckDBEngine
from steelyard.engines.engine import Engine
from steelyard.engines.files import files_of, is_pattern
from steelyard.engines.fitting import fit_files, fit_log
from steelyard.engines.log import Log, LogFiles, open_log
from steelyard.engines.opening import ENGINES, MEMORY, chosen_engine, open_engine
from steelyard.engines.spark_engine import SparkEngine

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
