"""steelyard import: add judgments from a file to a study, or create a study from them."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.options import (
    DATABASE_VARIABLE,
    ColumnsOption,
    JudgmentsFile,
    KindOption,
    SkipBadRowsOption,
    StrictOption,
    StudyFolder,
    open_study,
    pairs,
)

if TYPE_CHECKING:
    from steelyard.study.importing import ImportResult


def import_judgments(
    folder: StudyFolder,
    file: JudgmentsFile,
    new: Annotated[
        bool, typer.Option("--new", help="Create DIR: a closed study of these judgments, for scores and report.")
    ] = False,
    stage: Annotated[
        str | None, typer.Option("--stage", help="Stage of the judgments, if several are possible.", show_default=False)
    ] = None,
    columns: ColumnsOption = None,
    kind: KindOption = None,
    scale: Annotated[
        tuple[float, float] | None,
        typer.Option("--scale", metavar="LOW HIGH", help="With --new: scale of the ratings; default: inferred."),
    ] = None,
    strict: StrictOption = False,
    skip_bad_rows: SkipBadRowsOption = False,
) -> None:
    """Import judgments from a file into a study, or create a study from them.

    A file is imported completely or not at all, unless bad rows are skipped.

    Example: steelyard import words ratings.csv
    """
    from steelyard.cli.output import print_done, print_notes
    from steelyard.errors import ConfigError
    from steelyard.study.importing import import_file

    reading: dict[str, Any] = {
        "kind": kind,
        "columns": pairs(columns, "--columns"),
        "strict": strict,
        "skip_bad_rows": skip_bad_rows,
    }
    if new:
        result = _create_study(folder, file, reading, scale)
    elif scale is not None:
        raise ConfigError("--scale needs --new.", "The scale of an existing study is in its study.toml.")
    else:
        with open_study(folder) as study:
            result = import_file(study, file, stage=stage, **reading)
    print_notes(result.notes)
    text = f"{result.added:,} {'judgment' if result.added == 1 else 'judgments'} imported from {file.name}"
    if result.already:
        text += f"; {result.already:,} {'was' if result.already == 1 else 'were'} already imported"
    print_done(f"{text}.")
    if new:
        typer.echo(f"  steelyard scores {folder}\n  steelyard report {folder} -o report.html")


def _create_study(folder: Path, file: Path, reading: dict[str, Any], scale: tuple[float, float] | None) -> ImportResult:
    """Create a closed study of the judgments in a file; nothing is left behind if they cannot be used."""
    from steelyard.errors import ConfigError
    from steelyard.formats import read_judgments
    from steelyard.formats.uploaded_judgments import texts_of_file
    from steelyard.study.config import CONFIG_FILE
    from steelyard.study.config.schema import SCHEMA_FILE, SCHEMA_LINE, schema_text
    from steelyard.study.importing import import_file
    from steelyard.study.recipes import ITEMS_FILE, recipe_toml, recorded_judgments

    if folder.exists():
        raise ConfigError(f"{folder} already exists.", "Choose another folder, or leave out --new.")
    judgments = read_judgments(file, scale=scale, **reading)
    recipe = recorded_judgments(judgments, texts_of_file(file), title=folder.name, source=file.name)
    if DATABASE_VARIABLE in os.environ:
        # Studies that share a database need distinct names.
        recipe = replace(recipe, values={"name": folder.name, **recipe.values})
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".steelyard-new-") as scratch:
        draft = Path(scratch) / folder.name
        draft.mkdir()
        recipe.items.write_csv(draft / ITEMS_FILE)
        (draft / CONFIG_FILE).write_text(f"{SCHEMA_LINE}\n{recipe_toml(recipe, ())}", encoding="utf-8")
        (draft / SCHEMA_FILE).write_text(schema_text(), encoding="utf-8")
        with open_study(draft) as study:
            result = import_file(study, file, **reading)
            study.set_state("closed", f"judgments imported from {file.name}")
        shutil.move(draft, folder)
    return result
