"""What each column of an uploaded table holds: a guess, and the items that follow from it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal, TypeAlias, get_args

import polars as pl

from steelyard.errors import DataError
from steelyard.formats.columns import plain
from steelyard.formats.conversations import is_conversation
from steelyard.formats.items import ALIASES, read_items
from steelyard.formats.outputs import NAMES, neutral_ids
from steelyard.formats.tables import Table
from steelyard.formats.uploads import UploadedTable
from steelyard.records import Item

Role: TypeAlias = Literal[
    "text", "id", "system", "source", "reference", "media", "gold", "tags", "output", "extra", "ignore"
]
"""`output`: the outputs of the system that the column is named after; `extra`: kept with the item, not shown."""

ROLES: tuple[Role, ...] = get_args(Role)
_SINGLE: tuple[Role, ...] = ("text", "id", "system", "source", "reference", "media", "gold", "tags")
"""Roles that one column can have at most."""
_NAMES_BY_ROLE: dict[Role, tuple[str, ...]] = {
    "id": (*NAMES["id"], "key", "uid", "identifier"),
    "system": NAMES["system"],
    "reference": NAMES["reference"],
    "gold": ("gold", "goldlabel", "expected", "truth", "groundtruth"),
    "tags": ("tags", "tag"),
    "text": ("text", *ALIASES["text"], *NAMES["output"], "title", "tweet", "post"),
    "source": NAMES["source"],
    "media": (*ALIASES["media"], "img", "picture", "photo", "sound", "clip", "pdf", "file", "filename"),
}
_MEDIA_ENDINGS = (
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif"),
    *(".mp3", ".wav", ".ogg", ".oga", ".opus", ".flac", ".m4a", ".aac"),
    *(".mp4", ".m4v", ".webm", ".ogv"),
    ".pdf",
)
_LONGEST_TEXT_ID = 80
"""Texts up to this length serve as ids where there is no id column."""
_SAMPLE = 500


def guess_roles(upload: UploadedTable) -> dict[str, Role]:
    """Guess what each column holds, from its name and its values."""
    frame = upload.table.frame
    roles: dict[str, Role] = {}
    by_name = {plain(name): name for name in reversed(frame.columns)}
    for role, spellings in _NAMES_BY_ROLE.items():
        names = (by_name[spelling] for spelling in spellings if spelling in by_name)
        name = next((name for name in names if name not in roles and _fits(frame[name], role)), None)
        if name is not None:
            roles[name] = role
    unknown = [name for name in frame.columns if name not in roles]
    if "media" not in roles.values():
        name = next((name for name in unknown if _is_media(frame[name])), None)
        if name is not None:
            roles[name] = "media"
    _guess_texts(frame, roles)
    return {name: roles.get(name, "extra") for name in frame.columns}


def _guess_texts(frame: pl.DataFrame, roles: dict[str, Role]) -> None:
    """Find the outputs of several systems beside their sources, or the column that most looks like text."""
    texts = [name for name in frame.columns if name not in roles and _is_text(frame[name])]
    has_source = "source" in roles.values()
    if has_source and "system" not in roles.values() and "text" not in roles.values() and len(texts) > 1:
        roles |= dict.fromkeys(texts, "output")
    elif "text" not in roles.values() and texts and not ("id" in roles.values() and "media" in roles.values()):
        roles[max(texts, key=lambda name: _mean_length(frame[name]))] = "text"
    elif "text" not in roles.values() and "media" not in roles.values():
        _text_from(frame, roles)


def _text_from(frame: pl.DataFrame, roles: dict[str, Role]) -> None:
    """Take the source for the text if nothing else can be it, or else the first free column."""
    source = next((name for name, role in roles.items() if role == "source"), None)
    free = next((name for name in frame.columns if name not in roles), None)
    if source is not None:
        roles[source] = "text"
    elif free is not None:
        roles[free] = "text"


def _fits(column: pl.Series, role: Role) -> bool:
    values = column.head(_SAMPLE).drop_nulls()
    if role == "id":
        # Ids that repeat are those of sources or documents, for instance.
        return values.n_unique() == len(values) or column.n_unique() == len(column)
    return role != "media" or _is_media(column)


def _is_media(column: pl.Series) -> bool:
    values = column.head(_SAMPLE).drop_nulls().to_list()
    return bool(values) and all(
        PurePath(value.partition("#page=")[0]).suffix.lower() in _MEDIA_ENDINGS for value in values
    )


def _is_text(column: pl.Series) -> bool:
    values = column.head(_SAMPLE).drop_nulls()
    if not len(values) or values.str.contains(r"^[-+]?[\d.,%]+$").mean() == 1:
        return False
    return values.n_unique() > 0.5 * len(values)


def _mean_length(column: pl.Series) -> float:
    return float(column.head(_SAMPLE).drop_nulls().str.len_chars().mean() or 0)  # type: ignore[arg-type]


def hold_conversations(texts: Iterable[str | None]) -> bool:
    """Whether all of the first texts are conversations with roles and turns."""
    sample = [text for text in itertools.islice(texts, _SAMPLE) if text]
    return bool(sample) and all(map(is_conversation, sample))


@dataclass(frozen=True, slots=True)
class ItemsReading:
    """The items of an upload: a table with our column names, the items, and notes on what was done."""

    frame: pl.DataFrame
    items: list[Item]
    notes: tuple[str, ...]


def items_of_upload(upload: UploadedTable, roles: Mapping[str, Role], *, drop_repeats: bool = False) -> ItemsReading:
    """Read items with the given roles of columns; problems name the user's file, line and column."""
    table = upload.table
    chosen = {name: role for name, role in roles.items() if name in table.frame.columns}
    for role in _SINGLE:
        holders = [name for name, one in chosen.items() if one == role]
        if len(holders) > 1:
            raise DataError(
                f"the columns {', '.join(holders)} are all marked as {role}.", "Mark one of them.", file=table.file
            )
    outputs = [name for name, role in chosen.items() if role == "output"]
    if outputs and "text" in chosen.values():
        raise DataError(
            "some columns are marked as outputs of systems, and another as the text to judge.",
            "Mark the text as source, or as one more output.",
            file=table.file,
        )
    if not {"text", "media", "id", "output"} & set(chosen.values()):
        raise DataError("no column is marked as the text to judge.", "Mark a column as text.", file=table.file)
    frame, origin = _canonical(table, chosen, outputs)
    notes: list[str] = []
    frame, origin = _without_empty(frame, origin, notes)
    if drop_repeats:
        frame, origin = _without_repeats(frame, origin, notes)
    frame = _with_ids(frame, notes)
    lines = table.lines(origin)
    headers: dict[str, str] = {role: name for name, role in chosen.items() if role in _SINGLE}
    try:
        items = read_items(Table(frame, table.file, lambda: lines))
    except DataError as error:
        raise DataError(
            replace(
                problem,
                field=headers.get(problem.field or "", problem.field),
                remedy="Mark a column with unique identifiers, or leave out repeated rows."
                if "Add an id column" in problem.remedy
                else problem.remedy,
            )
            for problem in error.problems
        ) from None
    return ItemsReading(frame, items, tuple(notes))


def _canonical(table: Table, roles: Mapping[str, Role], outputs: Sequence[str]) -> tuple[pl.DataFrame, list[int]]:
    """Rename columns to ours, and turn one column per system into one row per output; return each row's origin."""
    frame = table.frame
    reserved = {spelling for spellings in ALIASES.values() for spelling in spellings} | set(ALIASES)
    columns: list[pl.Series] = []
    for name, role in roles.items():
        if role in {"ignore", "output"}:
            continue
        # An extra column whose name would be recognised as another one gets a longer name.
        own = (f"{name} (extra)" if plain(name) in reserved else name) if role == "extra" else role
        columns.append(frame[name].fill_null("").str.strip_chars().rename(own))
    renamed = pl.DataFrame(columns) if columns else pl.DataFrame({"text": []}, schema={"text": pl.String}).clear()
    rows = list(range(frame.height))
    if not outputs:
        return renamed, rows
    if "system" in roles.values():
        raise DataError("systems are named both in a column and in the header.", "Ignore one of them.", file=table.file)
    if not columns:
        renamed = pl.DataFrame({"source": [str(row + 1) for row in rows]})
    parts = [
        renamed.with_columns(
            pl.lit(name).alias("system"),
            frame[name].fill_null("").str.strip_chars().alias("text"),
            pl.Series("row", rows),
        )
        for name in outputs
    ]
    joined = pl.concat(parts).sort("row", maintain_order=True)
    return joined.drop("row"), joined["row"].to_list()


def _without_empty(frame: pl.DataFrame, origin: list[int], notes: list[str]) -> tuple[pl.DataFrame, list[int]]:
    visible = {"text", "media"} & set(frame.columns) or {"id"}
    is_empty = frame.select(pl.all_horizontal(pl.col(sorted(visible)) == "")).to_series()
    if not is_empty.any():
        return frame, origin
    count = int(is_empty.sum())
    notes.append(f"{count:,} empty {'row is' if count == 1 else 'rows are'} left out.")
    return frame.filter(~is_empty), [row for row, empty in zip(origin, is_empty, strict=True) if not empty]


def _without_repeats(frame: pl.DataFrame, origin: list[int], notes: list[str]) -> tuple[pl.DataFrame, list[int]]:
    keys = [name for name in ("id",) if name in frame.columns] or [
        name for name in ("text", "media", "source", "system") if name in frame.columns
    ]
    is_first = frame.select(pl.struct(keys).is_first_distinct()).to_series()
    count = int((~is_first).sum())
    if count:
        notes.append(f"{count:,} repeated {'row is' if count == 1 else 'rows are'} left out.")
    return frame.filter(is_first), [row for row, first in zip(origin, is_first, strict=True) if first]


def _with_ids(frame: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Add ids where texts cannot serve as ids, or where ids would reveal the system to annotators."""
    if "system" in frame.columns and frame["system"].n_unique() > 1:
        ids = frame["id"].to_list() if "id" in frame.columns else []
        systems = [name.casefold() for name in frame["system"].unique().to_list() if name]
        is_telling = any(system in name.casefold() for name in ids for system in systems)
        if ids and len(set(ids)) == len(ids) and "" not in ids and not is_telling:
            return frame
        if ids:
            reason = "reveal the system to annotators" if is_telling else "are not unique"
            notes.append(f"The identifiers {reason}, so items get new ones.")
        sources = frame["source"].to_list() if "source" in frame.columns else [""] * frame.height
        return frame.drop("id", strict=False).insert_column(0, pl.Series("id", neutral_ids(sources, seed=0), pl.String))
    if "id" in frame.columns or "text" not in frame.columns:
        return frame
    longest = frame["text"].str.len_chars().max()
    if frame["text"].is_unique().all() and isinstance(longest, int) and longest <= _LONGEST_TEXT_ID:
        return frame
    if "source" not in frame.columns and not frame["text"].is_unique().all():
        return frame  # Refused with the lines of the repeated texts.
    width = len(str(frame.height))
    numbers = [f"{number:0{width}d}" for number in range(1, frame.height + 1)]
    return frame.insert_column(0, pl.Series("id", numbers, pl.String))
