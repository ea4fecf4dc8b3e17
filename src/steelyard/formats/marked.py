"""Error marks in files: a column `spans` in any table, WMT's ESA as JSON lines, and MQM as Google's TSV."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from steelyard.errors import DataError
from steelyard.protocols.error_spans import ErrorSpans, spans_of

SPAN_COLUMNS = ("spans", "esa_spans", "error_spans", "span_errors")
_ESA = ("esa_score", "esa_spans", "system", "line_id")
_MQM = ("system", "doc", "doc_id", "seg_id", "rater", "source", "target", "category", "severity")
_TAG = re.compile(r"</?v>")
_NO_ERROR = {"no-error", "no error"}
_ATTENTION_TEST = "hotw-test"


def marks_from(values: Iterable[Any]) -> list[dict[str, object]]:
    """Return marks in our form.

    Accepts `start`, `end` (half-open), also called `start_char` and `end_char`; and Appraise's `start_i`, `end_i`, of
    which the last is part of the mark, with "missing" for omissions. `error_type` is the category, a list its path.
    """
    marks = []
    for value in values:
        if not isinstance(value, Mapping):
            raise ValueError(f"{value!r:.80} is not a mark")
        start = _first(value, "start", "start_char", "start_i")
        end = _first(value, "end", "end_char", "end_i")
        mark: dict[str, object] = {}
        if value.get("omission") or value.get("missing") or start in (None, "missing"):
            mark["omission"] = True
        else:
            inclusive = "end_i" in value and "end" not in value
            mark |= {"start": int(start), "end": int(end) + inclusive}
        severity, category = value.get("severity"), _first(value, "category", "error_type")
        if isinstance(category, list | tuple):
            category = "/".join(str(part) for part in category if part)
        mark |= {"severity": str(severity).lower()} if severity else {}
        mark |= {"category": str(category)} if category else {}
        mark |= {"suggestion": value["suggestion"]} if value.get("suggestion") is not None else {}
        marks.append(mark)
    return marks


def _first(value: Mapping[str, Any], *names: str) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def parse_marks(text: str | None) -> list[dict[str, object]] | None:
    """Return the marks of a cell, a JSON list; None for an empty cell, where nothing is known about errors."""
    if text is None or not text.strip():
        return None
    content = json.loads(text)
    if not isinstance(content, list):
        raise ValueError("it is not a list")
    return marks_from(content)


def is_esa(names: Sequence[str]) -> bool:
    """Return whether a table has the columns of WMT's released ESA judgments."""
    return set(_ESA) <= set(names)


def is_mqm(data: bytes) -> bool:
    """Return whether a text begins with the header of Google's MQM files."""
    header = data[:2000].partition(b"\n")[0].decode("utf-8", "replace").lstrip("\ufeff").strip().split("\t")
    return set(_MQM) <= {name.strip().lower() for name in header}


def read_esa(data: bytes, file: str) -> tuple[pl.DataFrame, pl.DataFrame, list[int], list[str]]:
    """Read WMT's ESA judgments, a JSON object a line: judgments, items, the line of each judgment, and notes."""
    records, lines = [], []
    for number, text in enumerate(data.decode("utf-8-sig", "replace").split("\n"), 1):
        if text.strip():
            try:
                records.append(json.loads(text))
            except (ValueError, RecursionError):
                raise DataError("not JSON.", "Write one object per line.", file=file, line=number) from None
            lines.append(number)
    pairs = {str(record.get("langs", "")) for record in records}
    rows, kept = [], []
    items: dict[str, dict[str, object]] = {}
    for record, line in zip(records, lines, strict=True):
        if not is_esa(list(record)):
            raise DataError(f"it lacks one of {', '.join(_ESA)}.", "Complete or remove the line.", file=file, line=line)
        item = _item_id(record["system"], record["line_id"], record.get("langs", "") if len(pairs) > 1 else "")
        items.setdefault(item, _item(item, record, record.get("src"), record.get("tgt"), record.get("doc_id")))
        try:
            spans = json.dumps(marks_from(record["esa_spans"] or ()), ensure_ascii=False)
        except (ValueError, TypeError) as error:
            raise DataError(f"the marks cannot be read: {error}.", "Correct them.", file=file, line=line) from None
        rows.append({"annotator": record.get("annotator"), "item": item, "value": record["esa_score"], "spans": spans})
        kept.append(line)
    notes = [f"read as WMT's ESA judgments of {len(items):,} texts."]
    return pl.DataFrame(rows, infer_schema_length=None), _items_frame(items), kept, notes


def read_mqm(data: bytes, file: str) -> tuple[pl.DataFrame, pl.DataFrame, list[int], list[str]]:
    """Read Google's MQM marks, one a row, as one judgment for each text and rater."""
    try:
        frame = pl.read_csv(io.BytesIO(data), separator="\t", quote_char=None, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        raise DataError(f"it cannot be read: {str(error).splitlines()[0]}", "Check the tabs.", file=file) from error
    frame.columns = [name.strip().lower().lstrip("\ufeff") for name in frame.columns]
    judged: dict[tuple[str, str], dict[str, Any]] = {}
    items: dict[str, dict[str, object]] = {}
    left_out: Counter[str] = Counter()
    for line, row in enumerate(frame.iter_rows(named=True), 2):
        target = _TAG.sub("", row["target"] or "")
        item = _item_id(row["system"], row["seg_id"])
        items.setdefault(item, _item(item, row, _TAG.sub("", row["source"] or ""), target, row["doc"]))
        answer = judged.setdefault((item, row["rater"]), {"line": line, "marks": []})
        mark = _mqm_mark(row, target)
        if isinstance(mark, str):
            left_out[mark] += mark != ""
        else:
            answer["marks"].append(mark)
    protocol = ErrorSpans(score="mqm")
    rows = [
        {
            "annotator": rater,
            "item": item,
            "value": protocol.mqm_score(spans_of(answer["marks"])),
            "spans": json.dumps(answer["marks"], ensure_ascii=False),
        }
        for (item, rater), answer in judged.items()
    ]
    notes = [f"read as MQM marks: {len(rows):,} judgments of {len(items):,} texts; scores by the usual penalties."]
    notes += [f"{count:,} × {what}: left out." for what, count in left_out.items() if what]
    return pl.DataFrame(rows), _items_frame(items), [answer["line"] for answer in judged.values()], notes


def _mqm_mark(row: Mapping[str, Any], target: str) -> dict[str, object] | str:
    """Return the mark of a row, or why there is none: an empty text where the rater found no error."""
    severity, category = (str(row[name] or "").strip() for name in ("severity", "category"))
    if severity.lower() in _NO_ERROR or category.lower() in _NO_ERROR:
        return ""
    if severity.lower() == _ATTENTION_TEST:
        return "answer to a planted error"
    about: dict[str, object] = {"severity": severity.lower(), "category": category}
    before, tag, rest = (row["target"] or "").partition("<v>")
    if tag:
        start, length = len(before), len(rest.partition("</v>")[0])
        return {"start": start, "end": start + length, **about} if length else {"omission": True, **about}
    if "<v>" in (row["source"] or "") or not target:
        return {"omission": True, **about}
    return {"start": 0, "end": len(target), **about}


def _item_id(*parts: object) -> str:
    return " / ".join(str(part) for part in parts if str(part))


def _item(item: str, row: Mapping[str, Any], source: object, target: object, document: object) -> dict[str, object]:
    return {"id": item, "text": target or "", "group": row["system"], "context": source, "document": document}


def _items_frame(items: Mapping[str, Mapping[str, object]]) -> pl.DataFrame:
    columns = ("id", "text", "group", "context", "document")
    return pl.DataFrame(
        {name: [None if row[name] is None else str(row[name]) for row in items.values()] for name in columns},
        schema=dict.fromkeys(columns, pl.String),
    )
