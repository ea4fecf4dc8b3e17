"""Which Parquet files a log consists of, looked over before any work is done."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from steelyard.errors import DataError, Problem, did_you_mean
from steelyard.formats.problems import capped

_WILD = "*?["


def is_pattern(source: str | Path) -> bool:
    """Say whether a path stands for several files: it is a folder, or has * ? or [ in it and is no file itself."""
    if Path(source).is_file():
        return False
    return any(sign in str(source) for sign in _WILD) or Path(source).is_dir()


def files_of(source: str | Path | Iterable[str | Path]) -> list[Path]:
    """List the files that a path, pattern or folder stands for, in the order of their names; refuse none at all."""
    if not isinstance(source, str | Path):
        return [file for one in source for file in files_of(one)]
    if Path(source).is_dir():
        found = sorted(Path(source).glob("*.parquet"))
        wanted = "a folder with files that end in .parquet"
    elif is_pattern(source):
        found = sorted(Path(name) for name in glob.glob(str(source), recursive=True) if Path(name).is_file())
        wanted = "a pattern that fits some files, in quotes, such as 'folder/*.parquet'"
    else:
        found = [Path(source)] if Path(source).is_file() else []
        wanted = "the path of a file"
    if not found:
        raise DataError("no file is there.", f"Give {wanted}; it was looked up in {Path.cwd()}.", file=str(source))
    return found


def size_of(files: Iterable[Path]) -> int:
    """Return the size of the files in bytes."""
    return sum(file.stat().st_size for file in files)


def machine_memory() -> int:
    """Return how many bytes of memory this process may use: the machine's, or its control group's if less."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(limit).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            memory = min(memory, int(text))
    return memory


def schema_of(files: Sequence[Path]) -> pl.Schema:
    """Return the columns of the first file; refuse what is no whole Parquet file."""
    problems: list[Problem] = []
    first: pl.Schema | None = None
    for file in files:
        found = _footer(file, problems)
        first = first or found
    if problems or first is None:
        raise DataError(capped(problems))
    return first


def check_partitions(files: Sequence[Path], schema: pl.Schema, columns: Iterable[str]) -> None:
    """Refuse files that lack one of the columns, or hold other values in it than the first file does."""
    problems: list[Problem] = []
    wanted = list(columns)
    for file in files[1:]:
        found = _footer(file, problems)
        if found is None:
            continue
        for name in wanted:
            if name not in found:
                guess = did_you_mean(name, found.names())
                remedy = f"{guess if guess.startswith('Did') else ''} The first file, {files[0].name}, has it.".strip()
                problems.append(Problem("there is no such column.", remedy, str(file), field=name))
            elif _plain(found[name]) != _plain(schema[name]):
                what = f"the column holds {_called(found[name])}, but {_called(schema[name])} in {files[0].name}."
                problems.append(Problem(what, "Write all files with the same types.", str(file), field=name))
    if problems:
        raise DataError(capped(problems))


def _footer(file: Path, problems: list[Problem]) -> pl.Schema | None:
    """Read the columns off the end of a file, which is written last."""
    try:
        with file.open("rb") as opened:  # by its name, polars would take [ and * for a pattern
            return pl.Schema(pl.read_parquet_schema(opened))
    except (pl.exceptions.PolarsError, OSError) as error:
        what = f"it is not a whole Parquet file ({str(error).partition(chr(10))[0]})."
        problems.append(Problem(what, "Write or copy it again; engines read Parquet only.", str(file)))
        return None


def _plain(dtype: pl.DataType) -> pl.DataType:
    """Return what is stored: a dictionary of texts is texts."""
    return pl.String() if isinstance(dtype, pl.Categorical | pl.Enum) else dtype


def _called(dtype: pl.DataType) -> str:
    return "texts" if _plain(dtype) == pl.String() else f"{str(dtype).lower()} values"
