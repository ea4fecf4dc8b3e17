"""A small study as databases of every schema hold it, in the dumps beside this file (scripts/old_schemas.py)."""

from __future__ import annotations

from pathlib import Path

DUMPS = Path(__file__).parent / "dumps"
NAME = "old"
STUDY = f"""\
name = "{NAME}"
title = "Old"
question = "How good?"
items = "items.csv"
[protocol]
name = "direct"
[design]
judgments = 3
[model]
name = "mean"
"""
ITEMS = "id,text\na,apple\nb,bread\nc,cake\n"
ANSWERS = {"ann": {"a": 10, "b": 20, "c": 90}, "bob": {"a": 30, "b": 40, "c": 80}}
"""Who said what. One more task is out with cleo."""


def write_folder(folder: Path) -> Path:
    """Write the study's files."""
    folder.mkdir(exist_ok=True)
    (folder / "study.toml").write_text(STUDY)
    (folder / "items.csv").write_text(ITEMS)
    return folder


def dump_of(revision: str, engine: str) -> Path:
    """Where the dump of a schema is."""
    return DUMPS / f"{revision}.{engine}.sql"
