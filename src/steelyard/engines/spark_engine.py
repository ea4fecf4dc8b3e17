"""Spark: on this machine or a cluster, in a session of our own or one that is there already."""

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
        An existing `SparkSession`, which is left open; else the one that is active here, which is left open too; else
        one is made, and stopped at the end.
    master
        Where the new session runs: `local[*]` (this machine), `spark://…`, `yarn`, `k8s://…`, or `sc://…` for Spark
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
        self._kept: list[Any] = []
        self._names: set[str] = set()
        # Spark has one session to a process: asked for a new one it would hand out this one, and we would stop it.
        session = session or SparkSession.getActiveSession()
        self._ours = session is None
        self._scratch = tempfile.TemporaryDirectory(prefix="steelyard-spark-") if self._ours else None
        try:
            self._session = session or _started(SparkSession, master or LOCAL, self._settings(settings or {}))
        except BaseException:
            self._clean()
            raise

    def read(self, view: str, files: Sequence[Path], columns: Mapping[str, str]) -> None:
        """Name the columns; nothing but a footer is read yet."""
        from pyspark.sql import functions

        frame = self._session.read.parquet(*(_path(file) for file in files))
        # Backticks, as a column's name may have a dot in it.
        chosen = [functions.col("`" + theirs.replace("`", "``") + "`").alias(ours) for ours, theirs in columns.items()]
        self._name(view, frame.select(*chosen))

    def view(self, name: str, sql: str) -> None:
        """Name a statement."""
        self._name(name, self._session.sql(sql))

    def keep(self, name: str, sql: str) -> None:
        """Keep a result in the memories and on the disks of the cluster."""
        frame = self._session.sql(sql).persist()
        self._kept.append(frame)
        self._name(name, frame)

    def put(self, name: str, frame: pl.DataFrame) -> None:
        """Send a table to the cluster."""
        self._name(name, self._session.createDataFrame(frame.to_arrow()))

    def query(self, sql: str) -> pl.DataFrame:
        """Fetch a result by way of Arrow."""
        try:
            found = pl.from_arrow(self._session.sql(sql).toArrow())
        except self._errors as error:
            reason = str(error).partition("\n")[0]
            raise DataError(f"Spark could not finish: {reason}", "Look at the job in Spark's own pages.") from error
        return found if isinstance(found, pl.DataFrame) else found.to_frame()

    def close(self) -> None:
        """Drop what is ours; stop the session if it is ours too."""
        for frame in self._kept:
            frame.unpersist()
        for name in self._names:
            self._session.catalog.dropTempView(name)
        if self._ours:
            self._session.stop()
        self._clean()

    def _settings(self, given: Mapping[str, str]) -> dict[str, str]:
        """Add to the settings: no pages, no chatter, and a warehouse that is not left in the working directory."""
        ours = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
        if self._scratch is not None:
            ours["spark.sql.warehouse.dir"] = (Path(self._scratch.name) / "warehouse").as_uri()
        return {**ours, **given}

    def _clean(self) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()

    def _name(self, name: str, frame: Any) -> None:
        frame.createOrReplaceTempView(name)
        self._names.add(name)


def _path(file: Path) -> str:
    """Return the path as Spark wants it: not percent-encoded, and without the meaning that some signs have in it."""
    if "://" in str(file):
        return str(file)
    if ":" in file.name:
        raise ConfigError(f"Spark cannot read {file.name}: it has a colon in its name.", "Give the file another name.")
    return "file://" + _WILD.sub(r"\\\g<0>", str(file.resolve()))


def _started(builder_of: Any, master: str, settings: dict[str, str]) -> Any:
    builder = builder_of.builder.appName("steelyard")
    if master.startswith("sc://"):
        return builder.remote(master).getOrCreate()
    if not (shutil.which("java") or _java_home()):
        raise ConfigError(
            "Spark needs Java, and there is none.",
            "Install one (Debian: apt-get install default-jre-headless), or set JAVA_HOME.",
        )
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.master(master).getOrCreate()


def _java_home() -> bool:
    home = os.environ.get("JAVA_HOME")
    return home is not None and (Path(home) / "bin" / "java").exists()
