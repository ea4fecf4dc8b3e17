"""Options that several commands share, so that they are spelt the same everywhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from steelyard.errors import ConfigError


class Format(StrEnum):
    """How a result is printed."""

    table = "table"
    json = "json"
    csv = "csv"


StudyFolder: TypeAlias = Annotated[Path, typer.Argument(help="The study's folder.", metavar="DIR", show_default=False)]
JudgmentsFile: TypeAlias = Annotated[
    Path,
    typer.Argument(
        help="Judgments as CSV, TSV, JSONL or Parquet (.gz too); columns as in docs/reference/files.md.",
        metavar="FILE",
        show_default=False,
    ),
]
JudgmentsFiles: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        help="Judgments as CSV, TSV, JSONL or Parquet (.gz too), columns as in docs/reference/files.md; a folder of "
        "Parquet files, or a pattern in quotes: 'folder/*.parquet'. Files of other columns are put on one scale, by a "
        "model that takes several kinds.",
        metavar="FILE…",
        show_default=False,
    ),
]
EngineOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Where sums are made: memory, duckdb or spark. Left out: duckdb for Parquet files larger than half of the "
        "memory, else memory.",
        show_default=False,
    ),
]
SparkMasterOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--spark-master",
        metavar="URL",
        help="The cluster of --engine spark; this machine if left out.",
        show_default=False,
    ),
]
MemoryOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="The most that DuckDB takes, such as 2GB; half of the machine's if left out.",
        show_default=False,
    ),
]
FormatOption: TypeAlias = Annotated[Format, typer.Option("--format", "-f", help="How to print it.")]
ColumnsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--columns", "-c", metavar="OURS=THEIRS", help="Name a column, e.g. value=score_raw. Repeatable."),
]
KindOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--kind",
        help="ratings, comparisons, choices, rankings or labels, where the columns leave it open.",
        show_default=False,
    ),
]
ScaleOption: TypeAlias = Annotated[
    tuple[float, float] | None,
    typer.Option("--scale", metavar="LOW HIGH", help="The ratings' scale; else the lowest and highest value found."),
]
StrictOption: TypeAlias = Annotated[
    bool, typer.Option("--strict", help="Refuse incomplete rows and unknown columns instead of counting them.")
]
RealIdsOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--real-ids", help="Call annotators by their own names; otherwise by pseudonyms, the same in every export."
    ),
]


def pairs(option: list[str] | None, name: str) -> dict[str, str]:
    """Read `--columns ours=theirs` options."""
    found = {}
    for text in option or []:
        ours, equals, theirs = text.partition("=")
        if not (ours.strip() and equals and theirs.strip()):
            raise typer.BadParameter(f"'{text}' is not of the form ours=theirs.", param_hint=name)
        found[ours.strip()] = theirs.strip()
    return found


def settings(option: list[str] | None, name: str) -> dict[str, object]:
    """Read `--set key=value` options; values are TOML (numbers, true, lists), else text."""
    from steelyard.formats.toml_reading import parse_toml

    found: dict[str, object] = {}
    for key, text in pairs(option, name).items():
        try:
            found[key] = parse_toml(f"value = {text}")["value"]
        except ConfigError:
            found[key] = text
    return found


def existing_folder(path: Path) -> Path:
    """Return a folder that is there."""
    if not path.is_dir():
        raise ConfigError(f"there is no folder {path}.", f"Make a study with: steelyard new {path}")
    return path
