"""The marks of a study as a table, with the handling of suggestions, and in the formats of WMT."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from steelyard.errors import DataError
from steelyard.protocols import ErrorSpans
from steelyard.records import Item, Judgment
from steelyard.study.config import Stage
from steelyard.study.study import Study

MARKS: dict[str, Any] = {
    "annotator": pl.String,
    "task": pl.String,
    "item": pl.String,
    "group": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "omission": pl.Boolean,
    "text": pl.String,
    "severity": pl.String,
    "category": pl.String,
    "origin": pl.String,
}
"""Columns of the table of marks. `origin` is annotator; or for suggestions kept, changed or removed."""


def marking_stages(study: Study) -> list[Stage]:
    """Return the stages whose annotators mark errors."""
    return [stage for stage in study.config.stages if isinstance(stage.protocol, ErrorSpans)]


def mark_table(study: Study, *, real_ids: bool = False) -> pl.DataFrame:
    """Return every mark of the judgments that count, and every suggestion that was removed, one a row."""
    items = {item.id: item for item in study.items}
    stages = {stage.name for stage in marking_stages(study)}
    rows = [
        row
        for judgment in study.stream_judgments()
        if judgment.counts and judgment.stage in stages
        for row in _rows(judgment, items)
    ]
    return study.privacy.names(real=real_ids).frame(pl.DataFrame(rows, schema=MARKS, orient="row"))


def _rows(judgment: Judgment, items: Mapping[str, Item]) -> Iterator[tuple[Any, ...]]:
    for name, value in answers_of(judgment):
        for mark, origin in with_origin(value):
            start, end, item = mark.get("start"), mark.get("end"), items.get(name)
            text = item.text[start:end] if item is not None and start is not None else None
            about = (mark.get("severity"), mark.get("category"), origin)
            group = None if item is None else item.group
            place = (start, end, bool(mark.get("omission")), text)
            yield (judgment.annotator or None, judgment.judgment_id, name, group, *place, *about)


def answers_of(judgment: Judgment) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the items of a judgment that were marked, with score and marks."""
    answer: Any = judgment.answer
    for name in judgment.items:
        if isinstance(answer.get(name), Mapping) and "spans" in answer[name]:
            yield name, answer[name]


def with_origin(value: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the marks of one text, and suggestions that were removed, each with its origin."""
    suggestions = value.get("suggestions", ())
    used = set()
    for mark in value["spans"]:
        number = mark.get("suggestion")
        if number is None or number >= len(suggestions):
            yield mark, "annotator"
            continue
        used.add(number)
        names = ("start", "end", "omission", "severity", "category")
        same = all(mark.get(name) == suggestions[number].get(name) for name in names)
        yield mark, "kept" if same else "changed"
    for number, mark in enumerate(suggestions):
        if number not in used:
            yield mark, "removed"


def mark_columns(judgments: Iterable[Judgment]) -> pl.DataFrame:
    """Return the marks of each judged text as JSON: columns `task`, `item`, `spans` and `suggestions`."""
    rows = [
        (judgment.judgment_id, name, _json(value["spans"]), _json(value.get("suggestions")))
        for judgment in judgments
        for name, value in answers_of(judgment)
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(("task", "item", "spans", "suggestions"), pl.String), orient="row")


def _json(marks: object) -> str | None:
    return None if marks is None else json.dumps(marks, ensure_ascii=False)


def write_wmt(study: Study, path: Path, *, real_ids: bool = False) -> int:
    """Write the judgments that count in a format of WMT; return the number of lines.

    A `.jsonl` file has the ESA judgments as WMT releases them, a `.tsv` file MQM marks as Google releases them.
    """
    writers = {".jsonl": _esa_lines, ".tsv": _mqm_lines}
    if path.suffix not in writers:
        raise DataError("WMT's formats are .jsonl (ESA) and .tsv (MQM).", "Give the file one of these endings.")
    segments = _segment_numbers(study.items)
    items = {item.id: item for item in study.items}
    stages = {stage.name for stage in marking_stages(study)}
    name_of = str if real_ids else study.privacy.pseudonym
    answers = (
        (name_of(judgment.annotator), items[name], segments[name], value)
        for judgment in study.stream_judgments()
        if judgment.counts and judgment.stage in stages
        for name, value in answers_of(judgment)
    )
    lines = list(writers[path.suffix](answers))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)


_Answers: TypeAlias = Iterable[tuple[str, Item, str, Mapping[str, Any]]]
"""Annotator, item, number of the segment, score and marks."""


def _segment_numbers(items: Iterable[Item]) -> dict[str, str]:
    """Return the number of each item's segment: as in ids like `system / 12`, else that of its source."""
    sources: dict[str, int] = {}
    numbers = {}
    for item in items:
        system, _, own = item.id.rpartition(" / ")
        place = sources.setdefault(item.context if item.context is not None else item.id, len(sources) + 1)
        numbers[item.id] = own if system and system == item.group else str(place)
    return numbers


def _esa_lines(answers: _Answers) -> Iterator[str]:
    for annotator, item, segment, value in answers:
        spans = [
            {
                # The last character is part of the mark, as in Appraise.
                "start_i": mark.get("start", "missing"),
                "end_i": mark["end"] - 1 if "end" in mark else "missing",
                "severity": mark.get("severity"),
                "error_type": mark.get("category"),
            }
            for mark in value["spans"]
        ]
        about = {"system": item.group, "line_id": segment, "doc_id": item.metadata.get("document"), "src": item.context}
        line = {**about, "tgt": item.text, "annotator": annotator, "esa_score": value.get("score"), "esa_spans": spans}
        yield json.dumps(line, ensure_ascii=False)


def _mqm_lines(answers: _Answers) -> Iterator[str]:
    yield "\t".join(("system", "doc", "doc_id", "seg_id", "rater", "source", "target", "category", "severity"))
    for annotator, item, segment, value in answers:
        document = item.metadata.get("document", "")
        about = (item.group or "", document, segment, segment, annotator, _one_line(item.context or ""))
        for mark in value["spans"]:
            start, end = mark.get("start"), mark.get("end")
            text = item.text if start is None else f"{item.text[:start]}<v>{item.text[start:end]}</v>{item.text[end:]}"
            source = f"<v>{about[5]}</v>" if start is None else about[5]
            severity = str(mark.get("severity", "")).capitalize()
            yield "\t".join((*about[:5], source, _one_line(text), mark.get("category", "Other"), severity))
        if not value["spans"]:
            yield "\t".join((*about, _one_line(item.text), "No-error", "No-error"))


def _one_line(text: str) -> str:
    return " ".join(re.split(r"[\t\r\n]", text))
