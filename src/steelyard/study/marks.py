"""The marks of a study's texts, one a row, with what became of suggestions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

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
