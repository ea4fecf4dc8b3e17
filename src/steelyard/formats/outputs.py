"""Read outputs of several systems for the same sources, one output per row or one column per system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

import numpy as np
import polars as pl

from steelyard.errors import DataError, did_you_mean
from steelyard.formats.columns import plain
from steelyard.formats.items import ALIASES, metadata_values
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

EXTRA_NAMES = frozenset(
    (
        *("domain", "topic", "genre", "category", "subject", "type", "kind", "class", "difficulty", "split", "subset"),
        *("language", "lang", "langpair", "srclang", "tgtlang", "trglang", "sourcelanguage", "targetlanguage"),
        *("doc", "docid", "documentid", "segment", "segmentid", "segid", "line", "row", "index", "number", "position"),
        *("date", "year", "time", "timestamp", "author", "dataset", "corpus", "length", "tokens", "notes", "comment"),
        *("media", "image", "audio", "video", "url", "tag", "tags", "gold"),
    )
)
"""Names of columns that are no system, where every other column is the output of one."""

_NOUNS = {
    "translation": ("translation", "hypothesis", "hyp", "target"),
    "answer": ("answer", "response", "completion"),
    "summary": ("summary",),
}
"""What outputs are called in questions, by the name of their column."""

_ORDER = ("id", "source", "system", "output", "reference")
_ITEM_FIELDS = ("id", "text", "group", "context", "reference")
_FIELDS = {"text": "output", "group": "system", "context": "source"}
"""Fields of an items file by the names used here; both may be mapped with `columns`."""


@dataclass(frozen=True, slots=True)
class SystemOutputs:
    """Outputs of systems: a table with the columns id, source, system, output, perhaps reference, and any others.

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
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
    extra: Sequence[str] = (),
    seed: int = 0,
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
    extra : sequence of str
        Columns that are no system, in a file with one column per system. Common ones (domain, topic, date, …) are
        recognised. With one output per row, every column is kept anyway.
    seed : int
        Seed of the ids, which do not tell the system.
    """
    table = open_table(source)
    names = [name for name in table.frame.columns if name not in ignore]
    for name in (*ignore, *extra):
        if name not in table.frame.columns:
            raise DataError(f"there is no column '{name}'.", did_you_mean(name, names), file=table.file)
    fields = _fields(table, [name for name in names if name not in extra], columns or {})
    if "source" not in fields:
        raise DataError(
            f"there is no column of sources; the columns are {', '.join(names)}.",
            "Map it, e.g. --columns source=YOUR_COLUMN.",
            file=table.file,
        )
    if "system" in fields and "output" in fields:
        frame, noun, notes = _long(table, names, fields)
    else:
        frame, noun, notes = _wide(table, names, fields, extra)
    return _checked(table, frame, noun, notes, seed)


def has_systems(source: Source) -> bool:
    """Whether a file has one output per row, with columns for the source, the system and the output."""
    table = open_table(source)
    return {"source", "system", "output"} <= set(_fields(table, table.frame.columns, {}))


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
    extras = [name for name in names if name and name not in fields.values()]
    frame = _columns(table, fields, extras)
    notes = [
        f"sources are in the column {fields['source']}, systems in {fields['system']}, outputs in {fields['output']}"
    ]
    spelling = plain(fields["output"])
    noun = next((noun for noun, names in _NOUNS.items() if spelling in names), "output")
    return frame, noun, notes + _note_of_extras(frame)


def _wide(
    table: Table, names: Sequence[str], fields: dict[str, str], extra: Sequence[str]
) -> tuple[pl.DataFrame, str, list[str]]:
    """Turn one column per system into one row per output."""
    source_columns = {field: column for field, column in fields.items() if field in ("source", "reference")}
    others = [name for name in names if name and name not in source_columns.values()]
    extras = [name for name in others if name in extra or name == fields.get("id") or plain(name) in EXTRA_NAMES]
    systems = [name for name in others if name not in extras]
    if len(systems) < 2:
        raise DataError(
            f"there are neither the columns system and output nor one column per system; the columns are "
            f"{', '.join(names)}.",
            "Map them, e.g. --columns system=YOUR_COLUMN --columns output=ANOTHER.",
            file=table.file,
        )
    rows = _columns(table, source_columns, extras)
    frame = pl.concat(
        rows.with_columns(pl.lit(name).alias("system"), _strings(table, name).alias("output")) for name in systems
    )
    by_source = np.arange(frame.height).reshape(len(systems), table.frame.height).T.ravel()
    note = f"sources are in the column {fields['source']}; one column per system: {', '.join(systems)}"
    return frame[by_source], "output", [note, *_note_of_extras(frame)]


def _columns(table: Table, fields: Mapping[str, str], extras: Sequence[str]) -> pl.DataFrame:
    """Return the columns of some fields under our names, then the others.

    Others that could be mistaken for a field of the items begin with original_.
    """
    own = {field: _strings(table, column) for field, column in fields.items()}
    names_of_fields = {*NAMES, *(name for field in _ITEM_FIELDS for name in (field, *ALIASES[field]))}
    others = {
        f"original_{name}" if plain(name) in names_of_fields else name: metadata_values(table, name) for name in extras
    }
    return pl.DataFrame(own | others, schema_overrides=dict.fromkeys(others, pl.String))


def _note_of_extras(frame: pl.DataFrame) -> list[str]:
    extras = [name for name in frame.columns if name not in NAMES]
    return [f"other columns are kept with the items: {', '.join(extras)}"] if extras else []


def _strings(table: Table, column: str) -> pl.Series:
    return strings(table.frame[column], table.file, column).fill_null("").str.strip_chars()


def _checked(table: Table, frame: pl.DataFrame, noun: str, notes: list[str], seed: int) -> SystemOutputs:
    for field in ("source", "system"):
        empty = frame.filter((pl.col(field) == "") & (pl.col("output") != "")).height
        if empty:
            raise DataError(
                f"{empty:,} outputs have no {field}.", "Fill in the empty cells of the column.", file=table.file
            )
    is_empty = frame["output"] == ""
    if is_empty.any():
        notes.append(f"{is_empty.sum():,} empty outputs are left out")
        frame = frame.filter(~is_empty)
    if frame["system"].n_unique() < 2:
        raise DataError(
            "there are fewer than two systems to compare.", "Add outputs of another system.", file=table.file
        )
    ids = frame["id"].to_list() if "id" in frame.columns else None
    systems = [name.casefold() for name in frame["system"].unique().to_list()]
    if ids is None or len(set(ids)) < len(ids) or "" in ids:
        notes += ["ids are not unique, so outputs get new ones"] if ids is not None else []
        ids = neutral_ids(frame["source"].to_list(), seed)
    elif any(system in name.casefold() for name in ids for system in systems):
        notes.append("ids reveal the system, so outputs get new ids, which are safe to show to annotators")
        ids = neutral_ids(frame["source"].to_list(), seed)
    if "id" in frame.columns and ids != frame["id"].to_list():
        frame = frame.drop("id") if "original_id" in frame.columns else frame.rename({"id": "original_id"})
    order = [name for name in _ORDER if name in frame.columns or name == "id"]
    order += [name for name in frame.columns if name not in order]
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
