"""Read outputs of several systems for the same sources, one output per row or one column per system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

import numpy as np
import polars as pl

from steelyard.errors import DataError, did_you_mean
from steelyard.formats.columns import plain
from steelyard.formats.tables import Source, Table, open_table, strings

NAMES: dict[str, tuple[str, ...]] = {
    "source": ("source", "src", "prompt", "input", "question", "document", "instruction", "query", "context"),
    "system": ("system", "model", "engine", "systemid", "systemname", "modelname", "group"),
    "output": (
        "output",
        "translation",
        "hypothesis",
        "hyp",
        "response",
        "answer",
        "summary",
        "completion",
        "target",
        "text",
    ),
    "id": ("id", "item", "itemid"),
    "reference": ("reference", "ref"),
}
"""Names of columns by what they hold, the surest first."""

_NOUNS = {
    "translation": ("translation", "hypothesis", "hyp", "target"),
    "answer": ("answer", "response", "completion"),
    "summary": ("summary",),
}
"""What outputs are called in questions, by the name of their column."""

_FIELDS = {"text": "output", "group": "system", "context": "source"}
"""Fields of an items file by the names used here; both may be mapped with `columns`."""


@dataclass(frozen=True, slots=True)
class SystemOutputs:
    """Outputs of systems: a table with the columns id, source, system, output and perhaps reference.

    `noun` is what an output is called (translation, answer, summary, output); `notes` say how the file was read.
    """

    frame: pl.DataFrame
    noun: str
    notes: tuple[str, ...]

    @property
    def systems(self) -> list[str]:
        """The names of the systems, in the order of the file."""
        return self.frame["system"].unique(maintain_order=True).to_list()

    @property
    def source_sizes(self) -> list[int]:
        """The number of outputs of each source."""
        sizes: list[int] = self.frame.group_by("source", maintain_order=True).len()["len"].to_list()
        return sizes


def read_outputs(
    source: Source, *, columns: Mapping[str, str] | None = None, ignore: Sequence[str] = (), seed: int = 0
) -> SystemOutputs:
    """Read the outputs of several systems.

    Parameters
    ----------
    source : path, frame or list of dicts
        One output per row, with columns for the source, the system and the output; or one row per source, with a
        column for each system. Columns are recognised by common names (src, prompt, model, translation, …).
    columns : mapping, optional
        Our field (source, system, output, id, reference) to their column, where the names are not recognised.
    ignore : sequence of str
        Columns to leave out.
    seed : int
        Seed of the ids, which do not tell the system.
    """
    table = open_table(source)
    names = [name for name in table.frame.columns if name not in ignore]
    for name in ignore:
        if name not in table.frame.columns:
            raise DataError(f"there is no column '{name}' to ignore.", did_you_mean(name, names), file=table.file)
    fields = _fields(table, names, columns or {})
    if "source" not in fields:
        raise DataError(
            f"no column holds the sources; the columns are: {', '.join(names)}.",
            "Name it, e.g. --columns source=YOUR_COLUMN.",
            file=table.file,
        )
    if "system" in fields and "output" in fields:
        frame, noun, notes = _long(table, names, fields)
    else:
        frame, noun, notes = _wide(table, names, fields)
    return _checked(table, frame, noun, notes, seed)


def _fields(table: Table, names: Sequence[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """Return the column of each field: those mapped by the user first, then by the surest name."""
    fields: dict[str, str] = {}
    for name, column in mapping.items():
        field = _FIELDS.get(name, name)
        if field not in NAMES:
            raise DataError(f"'{name}' is not a field.", did_you_mean(name, list(NAMES)), file=table.file)
        if column not in names:
            raise DataError(f"there is no column '{column}'.", did_you_mean(column, names), file=table.file)
        fields[field] = column
    for field, spellings in NAMES.items():
        if field not in fields:
            free = {plain(name): name for name in reversed(names) if name not in fields.values()}
            spelling = next((spelling for spelling in spellings if spelling in free), None)
            if spelling is not None:
                fields[field] = free[spelling]
    text = next((name for name in names if plain(name) == "text" and name not in fields.values()), None)
    if "source" not in fields and text is not None:
        # Beside outputs of another name, the text is what the systems were given.
        fields["source"] = text
    return fields


def _long(table: Table, names: Sequence[str], fields: dict[str, str]) -> tuple[pl.DataFrame, str, list[str]]:
    frame = pl.DataFrame({field: _strings(table, column) for field, column in fields.items()})
    unused = [name for name in names if name not in fields.values()]
    notes = [
        f"sources are in the column {fields['source']}, systems in {fields['system']}, outputs in {fields['output']}"
    ]
    if unused:
        notes.append(f"left out: {', '.join(unused)}")
    spelling = plain(fields["output"])
    return frame, next((noun for noun, names in _NOUNS.items() if spelling in names), "output"), notes


def _wide(table: Table, names: Sequence[str], fields: dict[str, str]) -> tuple[pl.DataFrame, str, list[str]]:
    """Turn one column per system into one row per output."""
    source_columns = {field: column for field, column in fields.items() if field in ("source", "reference")}
    left_out = [fields["id"]] if "id" in fields else []
    systems = [name for name in names if name not in (*source_columns.values(), *left_out)]
    if len(systems) < 2:
        raise DataError(
            f"there are neither columns for system and output, nor a column for each of several systems; the columns "
            f"are: {', '.join(names)}.",
            "Name them, e.g. --columns system=YOUR_COLUMN --columns output=ANOTHER.",
            file=table.file,
        )
    rows = pl.DataFrame({field: _strings(table, column) for field, column in source_columns.items()})
    frame = pl.concat(
        rows.with_columns(pl.lit(name).alias("system"), _strings(table, name).alias("output")) for name in systems
    )
    place = pl.int_range(pl.len()) % table.frame.height
    frame = frame.with_columns(place.alias("row")).sort("row", maintain_order=True).drop("row")
    note = f"sources are in the column {fields['source']}; one column per system: {', '.join(systems)}"
    return frame, "output", [note]


def _strings(table: Table, column: str) -> pl.Series:
    return strings(table.frame[column], table.file, column).fill_null("").str.strip_chars()


def _checked(table: Table, frame: pl.DataFrame, noun: str, notes: list[str], seed: int) -> SystemOutputs:
    for field in ("source", "system"):
        empty = frame.filter((pl.col(field) == "") & (pl.col("output") != "")).height
        if empty:
            raise DataError(f"{empty:,} outputs have no {field}.", "Fill in the column.", file=table.file)
    is_empty = frame["output"] == ""
    if is_empty.any():
        notes.append(f"{is_empty.sum():,} empty outputs are left out")
        frame = frame.filter(~is_empty)
    if frame["system"].n_unique() < 2:
        raise DataError("there are fewer than two systems to compare.", "Add the outputs of another.", file=table.file)
    ids = frame["id"].to_list() if "id" in frame.columns else None
    systems = [name.casefold() for name in frame["system"].unique().to_list()]
    if ids is None or len(set(ids)) < len(ids) or "" in ids:
        notes += ["ids are not unique, so outputs get new ones"] if ids is not None else []
        ids = neutral_ids(frame["source"].to_list(), seed)
    elif any(system in name.casefold() for name in ids for system in systems):
        notes.append("ids tell the system, so outputs get new ones, which annotators' browsers may see")
        ids = neutral_ids(frame["source"].to_list(), seed)
    order = [
        name for name in ("id", "source", "system", "output", "reference") if name in frame.columns or name == "id"
    ]
    return SystemOutputs(frame.with_columns(pl.Series("id", ids)).select(order), noun, tuple(notes))


def neutral_ids(sources: list[str], seed: int) -> list[str]:
    """Return ids such as 017-c: the number of the source, and a letter drawn at random."""
    number: dict[str, int] = {}
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(sources):
        number.setdefault(name, len(number) + 1)
        rows.setdefault(name, []).append(row)
    width = len(str(len(number)))
    ids = [""] * len(sources)
    rng = np.random.default_rng(seed)
    for name, members in rows.items():
        for place, row in enumerate(rng.permutation(members).tolist()):
            letter = ascii_lowercase[place] if place < len(ascii_lowercase) else f"z{place}"
            ids[row] = f"{number[name]:0{width}d}-{letter}"
    return ids
