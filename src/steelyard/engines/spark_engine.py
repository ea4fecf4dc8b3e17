"""Spark: on this machine or a cluster, in a new or an existing session."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from steelyard.engines.engine import Engine
from steelyard.errors import ConfigError, DataError

LOCAL = "local[*]"
_WILD = re.compile(r"[\\*?\[\]{}]")


class SparkEngine(Engine):
    """A Spark session.

    Parameters
    ----------
    session
        An existing `SparkSession`; by default the active session, if any. Existing sessions are left open. Without
        one, a new session is started, and stopped on close.
    master
        Master of the new session: `local[*]` (this machine), `spark://…`, `yarn`, `k8s://…`, or `sc://…` for Spark
        Connect.
    settings
        Further settings of the new session, such as ``{"spark.executor.memory": "8g"}``.
    """

    name = "spark"

    def __init__(
        self, session: Any = None, *, master: str | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        try:
            from pyspark.errors import PySparkException
            from pyspark.sql import SparkSession
        except ModuleNotFoundError:
            raise ConfigError("PySpark is not installed.", "Install it: pip install 'steelyard[spark]'") from None
        self._errors: type[Exception] = PySparkException
        self._persisted: list[Any] = []
        self._names: set[str] = set()
        # Spark has one session per process: a "new" one would be the active one, and closing would stop it.
        session = session or SparkSession.getActiveSession()
        self._owns_session = session is None
        self._scratch = tempfile.TemporaryDirectory(prefix="steelyard-spark-") if self._owns_session else None
        try:
            self._session = session or _start_session(SparkSession, master or LOCAL, self._settings(settings or {}))
        except BaseException:
            self._clean()
            raise

    def read(self, view: str, files: Sequence[Path], columns: Mapping[str, str]) -> None:
        """Create a view of the columns; only a footer is read yet."""
        from pyspark.sql import functions

        frame = self._session.read.parquet(*(_path(file) for file in files))
        # Backticks, because a column name may contain a dot.
        chosen = [functions.col("`" + theirs.replace("`", "``") + "`").alias(ours) for ours, theirs in columns.items()]
        self._name(view, frame.select(*chosen))

    def view(self, name: str, sql: str) -> None:
        """Create a temporary view."""
        self._name(name, self._session.sql(sql))

    def keep(self, name: str, sql: str) -> None:
        """Persist a result in the memory and on the disks of the cluster."""
        frame = self._session.sql(sql).persist()
        self._persisted.append(frame)
        self._name(name, frame)

    def put(self, name: str, frame: pl.DataFrame) -> None:
        """Upload a table to the cluster."""
        self._name(name, self._session.createDataFrame(frame.to_arrow()))

    def query(self, sql: str) -> pl.DataFrame:
        """Run a statement and fetch its result through Arrow."""
        try:
            result = pl.from_arrow(self._session.sql(sql).toArrow())
        except self._errors as error:
            reason = str(error).partition("\n")[0]
            raise DataError(f"Spark could not finish: {reason}", "Inspect the job in Spark's web interface.") from error
        return result if isinstance(result, pl.DataFrame) else result.to_frame()

    def close(self) -> None:
        """Drop the views and persisted results; stop the session if it was started here."""
        for frame in self._persisted:
            frame.unpersist()
        for name in self._names:
            self._session.catalog.dropTempView(name)
        if self._owns_session:
            self._session.stop()
        self._clean()

    def _settings(self, overrides: Mapping[str, str]) -> dict[str, str]:
        """Return the settings over our defaults: no UI, no progress bars, and a temporary warehouse directory."""
        settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
        if self._scratch is not None:
            settings["spark.sql.warehouse.dir"] = (Path(self._scratch.name) / "warehouse").as_uri()
        return {**settings, **overrides}

    def _clean(self) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()

    def _name(self, name: str, frame: Any) -> None:
        frame.createOrReplaceTempView(name)
        self._names.add(name)


def _path(file: Path) -> str:
    """Return the path for Spark: not percent-encoded, with its wildcard characters escaped."""
    if "://" in str(file):
        return str(file)
    if ":" in file.name:
        raise ConfigError(f"Spark cannot read {file.name}: it has a colon in its name.", "Give the file another name.")
    return "file://" + _WILD.sub(r"\\\g<0>", str(file.resolve()))


def _start_session(builder_of: Any, master: str, settings: dict[str, str]) -> Any:
    builder = builder_of.builder.appName("steelyard")
    if master.startswith("sc://"):
        return builder.remote(master).getOrCreate()
    if not (shutil.which("java") or _java_home()):
        raise ConfigError(
            "Spark needs Java, which is not installed.",
            "Install one (Debian: apt-get install default-jre-headless), or set JAVA_HOME.",
        )
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.master(master).getOrCreate()


def _java_home() -> bool:
    home = os.environ.get("JAVA_HOME")
    return home is not None and (Path(home) / "bin" / "java").exists()
