"""List the Parquet files of a log and check their schemas before any work is done."""

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
    """Return whether a path names several files: it is a folder, or contains * ? or [ and is not a file."""
    if Path(source).is_file():
        return False
    return any(sign in str(source) for sign in _WILD) or Path(source).is_dir()


def files_of(source: str | Path | Iterable[str | Path]) -> list[Path]:
    """List the files of a path, pattern or folder in the order of their names; refuse an empty list."""
    if not isinstance(source, str | Path):
        return [file for one in source for file in files_of(one)]
    scheme, separator, _ = str(source).partition("://")
    if separator:
        raise DataError(
            f"{scheme}:// addresses are not read.",
            "Copy the files to this machine, or mount the store as a folder, and give that path.",
            file=str(source),
        )
    if Path(source).is_dir():
        files = sorted(Path(source).glob("*.parquet"))
        expected = "a folder with files that end in .parquet"
    elif is_pattern(source):
        files = sorted(Path(name) for name in glob.glob(str(source), recursive=True) if Path(name).is_file())
        expected = "a pattern that matches files, in quotes, such as 'folder/*.parquet'"
    else:
        files = [Path(source)] if Path(source).is_file() else []
        expected = "the path of a file"
    if not files:
        raise DataError("no such file.", f"Give {expected}; the current folder is {Path.cwd()}.", file=str(source))
    return files


def size_of(files: Iterable[Path]) -> int:
    """Return the size of the files in bytes."""
    return sum(file.stat().st_size for file in files)


def machine_memory() -> int:
    """Return the memory in bytes that this process may use: the machine's, or its control group's limit if lower."""
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
    """Return the columns of the first file; refuse files that are not complete Parquet files."""
    problems: list[Problem] = []
    first: pl.Schema | None = None
    for file in files:
        schema = _footer(file, problems)
        first = first or schema
    if problems or first is None:
        raise DataError(capped(problems))
    return first


def check_partitions(files: Sequence[Path], schema: pl.Schema, columns: Iterable[str]) -> None:
    """Refuse files that lack one of the columns, or whose column has another type than in the first file."""
    problems: list[Problem] = []
    names = list(columns)
    for file in files[1:]:
        of_file = _footer(file, problems)
        if of_file is None:
            continue
        for name in names:
            if name not in of_file:
                guess = did_you_mean(name, of_file.names())
                remedy = f"{guess if guess.startswith('Did') else ''} {files[0].name} has this column.".strip()
                problems.append(Problem("there is no such column.", remedy, str(file), field=name))
            elif _plain(of_file[name]) != _plain(schema[name]):
                what = f"the column holds {_called(of_file[name])}, but {_called(schema[name])} in {files[0].name}."
                problems.append(Problem(what, "Write all files with the same types.", str(file), field=name))
    if problems:
        raise DataError(capped(problems))


def _footer(file: Path, problems: list[Problem]) -> pl.Schema | None:
    """Read the columns from the footer of a file, which is written last."""
    try:
        with file.open("rb") as opened:  # given a path, polars would read [ and * as a pattern
            return pl.Schema(pl.read_parquet_schema(opened))
    except (pl.exceptions.PolarsError, OSError) as error:
        what = f"it is not a complete Parquet file ({str(error).partition(chr(10))[0]})."
        problems.append(Problem(what, "Write or copy it again; engines read Parquet only.", str(file)))
        return None


def _plain(dtype: pl.DataType) -> pl.DataType:
    """Return the stored type: a dictionary of strings counts as strings."""
    return pl.String() if isinstance(dtype, pl.Categorical | pl.Enum) else dtype


def _called(dtype: pl.DataType) -> str:
    return "texts" if _plain(dtype) == pl.String() else f"{str(dtype).lower()} values"
