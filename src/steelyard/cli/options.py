"""Options shared by several commands."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from steelyard.errors import ConfigError

if TYPE_CHECKING:
    from steelyard.study import Study

DATABASE_VARIABLE = "STEELYARD_DATABASE"


class Format(StrEnum):
    """Output formats."""

    table = "table"
    json = "json"
    csv = "csv"


StudyFolder: TypeAlias = Annotated[Path, typer.Argument(help="The study's folder.", metavar="DIR", show_default=False)]
JudgmentsFile: TypeAlias = Annotated[
    Path,
    typer.Argument(
        help="File of judgments; formats: steelyard docs files.",
        metavar="FILE",
        show_default=False,
    ),
]
JudgmentsFiles: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        help="Judgments: files, folders, or a pattern in quotes, such as 'logs/*.parquet'.",
        metavar="FILE…",
        show_default=False,
    ),
]
EngineOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="memory, duckdb or spark; default: duckdb for Parquet over half the memory.",
        show_default=False,
    ),
]
SparkMasterOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--spark-master",
        metavar="URL",
        help="Cluster for --engine spark; default: this machine.",
        show_default=False,
    ),
]
MemoryOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Memory limit of DuckDB, e.g. 2GB; default: half of the machine's.",
        show_default=False,
    ),
]
DatabaseOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar=DATABASE_VARIABLE,
        help="Database URL, e.g. postgresql://user@host/name; default: the study's own.",
        show_default=False,
    ),
]
FormatOption: TypeAlias = Annotated[Format, typer.Option("--format", "-f", help="Output format.")]
ColumnsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        "-c",
        metavar="OURS=THEIRS",
        help="Map a column: value=score_raw, or several: item=doc+system. Repeatable.",
    ),
]
KindOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--kind",
        help="ratings, comparisons, choices, rankings or labels, if ambiguous.",
        show_default=False,
    ),
]
ScaleOption: TypeAlias = Annotated[
    tuple[float, float] | None,
    typer.Option("--scale", metavar="LOW HIGH", help="Scale of the ratings; default: inferred."),
]
StrictOption: TypeAlias = Annotated[bool, typer.Option("--strict", help="Refuse incomplete rows and unknown columns.")]
SkipBadRowsOption: TypeAlias = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Skip and count invalid rows instead of rejecting the file.")
]
RealIdsOption: TypeAlias = Annotated[
    bool,
    typer.Option("--real-ids", help="Use annotators' real names instead of pseudonyms."),
]


def pairs(option: list[str] | None, name: str) -> dict[str, str]:
    """Read `--columns ours=theirs` options."""
    columns = {}
    for text in option or []:
        ours, equals, theirs = text.partition("=")
        if not (ours.strip() and equals and theirs.strip()):
            raise typer.BadParameter(f"'{text}' does not have the form OURS=THEIRS, e.g. value=score.", param_hint=name)
        columns[ours.strip()] = theirs.strip()
    return columns


def settings(option: list[str] | None, name: str) -> dict[str, object]:
    """Read `--set key=value` options; values are TOML (numbers, true, lists), else text."""
    from steelyard.formats.toml_reading import parse_toml

    values: dict[str, object] = {}
    for key, text in pairs(option, name).items():
        try:
            values[key] = parse_toml(f"value = {text}")["value"]
        except ConfigError:
            values[key] = text
    return values


def existing_folder(path: Path) -> Path:
    """Return a folder, or refuse one that does not exist."""
    if not path.is_dir():
        raise ConfigError(f"there is no folder {path}.", f"Create a study with: steelyard new {path}")
    return path


def open_study(folder: Path, database: str | None = None) -> Study:
    """Open the study in a folder; as for the server, the environment may name the database."""
    from steelyard.study import Study

    return Study.open(existing_folder(folder), database=database or os.environ.get(DATABASE_VARIABLE) or None)
