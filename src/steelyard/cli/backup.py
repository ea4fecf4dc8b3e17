"""steelyard backup and steelyard restore: a whole study in one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.options import DATABASE_VARIABLE, DatabaseOption, StudyFolder, existing_folder


def backup(
    folder: StudyFolder,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Output file; default: DIR-DATE.steelyard.", show_default=False),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Write a complete study to one file, even while it is being served.

    The file contains the log, settings, items, media and access rights.

    It contains everything in the study's folder: protect it accordingly.

    Example: steelyard backup words -o words.steelyard
    """
    from datetime import datetime

    from steelyard.cli.output import print_done
    from steelyard.study.backup import SUFFIX
    from steelyard.study.backup import backup as write_backup

    existing_folder(folder)
    path = output or Path(f"{folder.resolve().name}-{datetime.now():%Y-%m-%d-%H%M%S}{SUFFIX}")
    manifest = write_backup(folder, path, database=database)
    size = path.stat().st_size / 1e6
    print_done(f"{manifest.events:,} events and {manifest.files:,} files written to {path} ({size:.1f} MB).")


def restore(
    file: Annotated[
        Path, typer.Argument(help="A file written by steelyard backup.", metavar="FILE", show_default=False)
    ],
    folder: Annotated[Path, typer.Argument(help="The folder to create.", metavar="DIR", show_default=False)],
    database: DatabaseOption = None,
) -> None:
    """Restore a backup into a new folder.

    Every event is checked, and nothing is overwritten.

    Example: steelyard restore words.steelyard words-again
    """
    from steelyard.cli.output import print_done, print_notes
    from steelyard.study.backup import restore as read_backup

    manifest = read_backup(file, folder, database=database)
    print_done(
        f"Restored {manifest.events:,} events and {manifest.files:,} files to {folder} (backup made {manifest.made})."
    )
    if database is not None:
        print_notes(
            [
                f"The judgments are in the database you named. Set database in {folder / 'study.toml'}, or set the "
                f"environment variable {DATABASE_VARIABLE} for every command."
            ]
        )
