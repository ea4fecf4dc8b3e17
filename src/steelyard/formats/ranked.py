"""Read rankings: items from best to worst in each row, possibly with ties."""

from __future__ import annotations

from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.formats.lists import json_lists, looks_like_json
from steelyard.formats.rows import BoolArray, Reading, Rows, encode, subset
from steelyard.observations import UNKNOWN, IntArray, Rankings

_TIERS = pl.List(pl.List(pl.String))


def read_rankings(rows: Rows) -> Reading:
    """Read `ranking`: text such as 'a>b=c>d', JSON text, or lists (of lists, if there are ties).

    With columns `place1`, `place2` … each holds the item at that place; an empty cell is an item that was not ranked.
    """
    if "ranking" not in rows:
        return _read_places(rows)
    row = np.arange(len(rows))
    column = rows.frame["ranking"]
    if column.dtype.is_nested():
        row, rank, items = _tiers(row, _as_tiers(rows, column.dtype))
    else:
        text = rows.text("ranking")
        is_json = looks_like_json(text).to_numpy()
        row, rank, items = _tiers(row[~is_json], text.filter(pl.Series(~is_json)).str.split(">"))
        if is_json.any():
            decoded = json_lists(rows, "ranking", text.filter(pl.Series(is_json)), _TIERS)
            row2, rank2, items2 = _tiers(np.flatnonzero(is_json), decoded)
            row, rank = np.concatenate([row, row2]), np.concatenate([rank, rank2])
            items = pl.concat([items, items2])
            order = np.argsort(row, kind="stable")
            row, rank, items = row[order], rank[order], items.gather(order)
    return from_places(rows, row, rank, items, "ranking")


def _read_places(rows: Rows) -> Reading:
    names = [name for name in rows.frame.columns if name.startswith("place")]
    text = pl.concat([rows.text(name).str.strip_chars().replace("", None).rename("item") for name in names])
    place, row = np.divmod(np.arange(len(text)), len(rows))
    order = np.lexsort((place, row))
    order = order[text.is_not_null().to_numpy()[order]]
    return from_places(rows, row[order], place[order] + 1, text.gather(order), "place1")


def _as_tiers(rows: Rows, dtype: pl.DataType) -> pl.Series:
    if _depth(dtype) > 1:
        return rows.lists("ranking", _TIERS)
    # Without ties, each id is its own tier.
    return rows.lists("ranking", pl.List(pl.String)).list.eval(pl.concat_list(pl.element()))


def _depth(dtype: pl.DataType) -> int:
    return 1 + _depth(cast(pl.DataType, dtype.inner)) if isinstance(dtype, pl.List | pl.Array) else 0


def _exploded(lists: pl.Series) -> tuple[NDArray[np.int64], pl.Series]:
    """Return the length of each list, and all their values in one column."""
    lengths = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
    return lengths, lists.filter(pl.Series(lengths > 0)).explode()


def _tiers(row: NDArray[np.intp], tiers: pl.Series) -> tuple[NDArray[np.intp], NDArray[np.int64], pl.Series]:
    """Return row, tier (from 1) and id of each place; tiers are lists, or text with = between ties."""
    lengths, tier = _exploded(tiers)
    if not len(tier):
        return np.zeros(0, np.intp), np.zeros(0, np.int64), pl.Series([], dtype=pl.String)
    rank = np.arange(len(tier)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
    tier = tier if tier.dtype == pl.List(pl.String) else tier.str.split("=")
    sizes, items = _exploded(tier)
    return np.repeat(np.repeat(row, lengths), sizes), np.repeat(rank, sizes), items


def from_places(rows: Rows, row: NDArray[np.intp], rank: NDArray[np.int64], items: pl.Series, name: str) -> Reading:
    """Read rankings from one entry per ranked item, sorted by row; equal ranks in a row are ties."""
    index, (item,) = encode(items)
    rows.problems.at(
        _rows_of(row, item == UNKNOWN, len(rows)) & ~_blank(rows, name),
        "a rank is empty.",
        "Write ids with > between ranks and = between tied items.",
        rows.header(name),
    )
    place = row * (len(index) + 1) + item
    order = np.argsort(place, kind="stable")
    repeated = np.zeros(len(item), np.bool_)
    repeated[order[1:]] = (np.diff(place[order]) == 0) & (item[order[1:]] != UNKNOWN)
    rows.problems.at(
        _rows_of(row, repeated, len(rows)),
        lambda number: f"'{index[item[(row == number) & repeated][0]]}' appears twice in the ranking.",
        "Rank each item once.",
        rows.header(name),
    )
    enough = np.bincount(row, minlength=len(rows)) > 1
    rows.irregular(~enough, "fewer than two ranked items", "left out", name)
    tier = _dense(row, rank)

    def build(keep: BoolArray) -> Rankings:
        entries = keep[row]
        used, (codes,) = subset(index, entries, item)
        start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(rows))[keep])])
        return Rankings(items=used, item=codes, rank=tier[entries], start=start.astype(np.int64), **rows.sources(keep))

    return Reading(enough, build)


def _blank(rows: Rows, name: str) -> BoolArray:
    if name not in rows or rows.frame[name].dtype.is_nested():
        return np.zeros(len(rows), np.bool_)
    return (rows.text(name).str.strip_chars() == "").fill_null(True).to_numpy()


def _rows_of(row: NDArray[np.intp], entries: BoolArray, count: int) -> BoolArray:
    has_entry = np.zeros(count, np.bool_)
    has_entry[row[entries]] = True
    return has_entry


def _dense(row: NDArray[np.intp], rank: NDArray[np.int64]) -> IntArray:
    """Number the ranks that occur in each row 1, 2, 3 … without gaps."""
    order = np.lexsort((rank, row))
    new_row = np.diff(row[order], prepend=-1) != 0
    step = np.where(new_row, 0, np.diff(rank[order], prepend=0) != 0).cumsum()
    first = np.maximum.accumulate(np.where(new_row, np.arange(len(order)), 0))
    dense = np.empty(len(order), np.int32)
    dense[order] = step - step[first] + 1
    return dense
