"""Judgments in an uploaded file: an export of another tool, or a table with a column of annotators."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

import polars as pl

from steelyard.errors import DataError
from steelyard.formats.amt import is_amt
from steelyard.formats.columns import plain
from steelyard.formats.foreign import columns_of, read_export, texts_of_export
from steelyard.formats.judgments import JudgmentFile, read_judgments
from steelyard.formats.roles import ALIASES
from steelyard.formats.uploads import UploadedTable, decode
from steelyard.formats.wmt import is_wmt

_JSON = {".json", ".jsonl", ".ndjson"}


@dataclass(frozen=True, slots=True)
class UploadedJudgments:
    """Judgments as rows with conventional columns, as observations, and the texts of their items by id.

    `tool` is the tool that exported them; "" for a table.
    """

    tool: str
    rows: pl.DataFrame
    judgments: JudgmentFile
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of judgments."""
        return sum(len(part) for part in self.judgments.by_criterion.values())

    @property
    def annotators(self) -> list[str]:
        """The names of the annotators."""
        parts = self.judgments.by_criterion.values()
        return list(dict.fromkeys(name for part in parts for name in part.annotators.ids))

    @property
    def items(self) -> list[str]:
        """The ids of the judged items."""
        return list(dict.fromkeys(name for part in self.judgments.by_criterion.values() for name in part.items.ids))


def judgments_of_upload(data: bytes, name: str, upload: UploadedTable) -> UploadedJudgments | None:
    """Return the judgments of an upload; None if it has none.

    Raises DataError for an export of a known tool whose judgments cannot be used.
    """
    content = _json_content(data, name, upload.encoding) if PurePath(name).suffix.lower() in _JSON else None
    exported = None if content is None else read_export(content, name)
    if exported is not None:
        rows = pl.DataFrame({key: pl.Series(key, values, strict=False) for key, values in columns_of(exported.rows)})
        return UploadedJudgments(exported.tool, rows, read_judgments(rows), texts_of_export(content))
    rows = upload.table.frame
    if not (_has_annotators(rows) or is_wmt(rows) or is_amt(rows)):
        return None
    try:
        return UploadedJudgments("", rows, read_judgments(rows))
    except DataError:
        return None


def texts_of_file(path: Path) -> dict[str, str]:
    """Return the texts of the items in an export of another tool, by id; empty for other files."""
    if path.suffix.lower() not in _JSON:
        return {}
    return texts_of_export(_json_content(path.read_bytes(), path.name, None))


def _json_content(data: bytes, name: str, encoding: str | None) -> object:
    text, _, _ = decode(data, name, encoding)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError):
        return None


def _has_annotators(rows: pl.DataFrame) -> bool:
    return any(plain(column) in {"annotator", *ALIASES["annotator"]} for column in rows.columns)
