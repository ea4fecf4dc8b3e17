"""Judgments from one or more files: read into memory, or left where they are for an engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from steelyard.engines import LogFiles
    from steelyard.formats import JudgmentFile


@contextmanager
def reading(
    source: str, engine: str | None, spark_master: str | None, memory: str | None, **options: Any
) -> Iterator[JudgmentFile | LogFiles]:
    """Open the files a path or pattern stands for; `options` are those of `read_judgments`."""
    from steelyard.engines.files import files_of, is_pattern
    from steelyard.formats import read_judgments

    several = is_pattern(source)
    if not several and engine is None and not Path(source).is_file():
        read_judgments(source, **options)  # says what is wrong with the path
    files = files_of(source)
    from steelyard.engines.opening import MEMORY, chosen_engine

    name = chosen_engine(engine, files)
    if name == MEMORY:
        yield read_judgments(_together(files, source) if several else source, **options)
        return
    from steelyard.engines import open_engine, open_log
    from steelyard.engines.log import roles_of

    # What is wrong with the files is said before an engine is started for them.
    roles_of(files, label=source, **options)
    with open_engine(name, spark_master=spark_master, memory=memory) as opened:
        yield open_log(opened, files, label=source, **options)


def _together(files: list[Path], source: str) -> pl.DataFrame:
    """Read several files as one table."""
    import polars as pl

    from steelyard.errors import DataError
    from steelyard.formats import read_table

    frames = [read_table(file) for file in files]
    for file, frame in zip(files, frames, strict=True):
        if frame.schema != frames[0].schema:
            raise DataError(
                f"its columns are not those of {files[0].name}: {_schema(frame)}, not {_schema(frames[0])}.",
                "Write all files alike, or read them one by one.",
                file=str(file),
            )
    return pl.concat(frames)


def _schema(frame: pl.DataFrame) -> str:
    return ", ".join(f"{name} ({str(dtype).lower()})" for name, dtype in frame.schema.items())
