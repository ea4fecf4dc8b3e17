"""Judgments from one or more files: read into memory, or left where they are for an engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from steelyard.engines import LogFiles
    from steelyard.formats import JudgmentFile
    from steelyard.observations import Observations


@dataclass(frozen=True, slots=True)
class SeveralFiles:
    """Judgments of several kinds, or on several scales, from a file each."""

    kind: str
    by_criterion: dict[str, Observations]
    notes: tuple[str, ...]


def called(sources: Sequence[str]) -> str:
    """Name the files in a title."""
    return ", ".join(Path(source).name for source in sources[:3]) + (", …" if len(sources) > 3 else "")


def judgments_by_criterion(
    sources: Sequence[str], options: dict[str, Any]
) -> tuple[dict[str, Observations], tuple[str, ...]]:
    """Read a study's judgments that count, or those of files, into memory, by criterion; and notes.

    `options` are those of `read_judgments`; a study has none of them.
    """
    from steelyard.errors import DataError

    folder = Path(sources[0])
    if len(sources) == 1 and (folder / "study.toml").is_file():
        from steelyard.cli.options import open_study
        from steelyard.study.fitting import kind_for

        with open_study(folder) as study:
            return study.observations(options.get("kind") or kind_for(study.config.model, study.config.stages)), ()
    with reading(sources, "memory", None, None, **options) as source:
        if isinstance(source, SeveralFiles):
            raise DataError("the files contain judgments of different kinds.", "Give one file at a time.")
        return dict(source.by_criterion), tuple(source.notes)  # type: ignore[arg-type]


@contextmanager
def reading(
    sources: Sequence[str], engine: str | None, spark_master: str | None, memory: str | None, **options: Any
) -> Iterator[JudgmentFile | LogFiles | SeveralFiles]:
    """Open the files that paths and patterns stand for; `options` are those of `read_judgments`.

    Files of the same columns are one log, whichever way they were named; others are read one by one.
    """
    from steelyard.engines.files import files_of, is_pattern
    from steelyard.formats import read_judgments
    from steelyard.formats.datasets import is_dataset_folder

    source = sources[0]
    if len(sources) == 1 and is_dataset_folder(Path(source)):
        yield read_judgments(source, **options)
        return
    several = len(sources) > 1 or is_pattern(source)
    if not several and engine is None and not Path(source).is_file():
        read_judgments(source, **options)  # says what is wrong with the path
    files = files_of(sources)
    from steelyard.engines.opening import MEMORY, chosen_engine

    name = chosen_engine(engine, files)
    if name == MEMORY:
        yield _in_memory(sources, files, options) if several else read_judgments(source, **options)
        return
    from steelyard.engines import open_engine, open_log
    from steelyard.engines.log import roles_of

    # What is wrong with the files is said before an engine is started for them.
    label = source if len(sources) == 1 else f"{len(files)} files"
    roles_of(files, label=label, **options)
    with open_engine(name, spark_master=spark_master, memory=memory) as opened:
        yield open_log(opened, files, label=label, **options)


def _in_memory(sources: Sequence[str], files: Sequence[Path], options: dict[str, Any]) -> JudgmentFile | SeveralFiles:
    import polars as pl

    from steelyard.formats import read_judgments, read_table
    from steelyard.observations import Mixed

    frames = [read_table(file) for file in files]
    if all(frame.schema == frames[0].schema for frame in frames):
        return read_judgments(pl.concat(frames), **options)
    if len(sources) == 1:
        _refuse_others(files, frames)
    read = [read_judgments(file, **options) for file in files]
    by_criterion = Mixed.by_criterion(part.by_criterion for part in read)
    return SeveralFiles(Mixed.kind, by_criterion, tuple(note for part in read for note in part.notes))


def _refuse_others(files: Sequence[Path], frames: Sequence[pl.DataFrame]) -> None:
    """Refuse the first file whose columns are not those of the rest: parts of one log are alike."""
    from steelyard.errors import DataError

    for file, frame in zip(files, frames, strict=True):
        if frame.schema != frames[0].schema:
            raise DataError(
                f"its columns differ from those of {files[0].name}: {_schema(frame)}, not {_schema(frames[0])}.",
                "Give all files the same columns, or list the files one by one.",
                file=str(file),
            )


def _schema(frame: pl.DataFrame) -> str:
    return ", ".join(f"{name} ({str(dtype).lower()})" for name, dtype in frame.schema.items())
