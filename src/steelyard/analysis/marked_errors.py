"""Marked errors by system, severity and category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import polars as pl

from steelyard.protocols import ErrorSpans, Protocol
from steelyard.records import Judgment
from steelyard.study import Study
from steelyard.study.marks import answers_of, marking_stages, with_origin

PLACES = 10
"""Parts of a text, from its beginning to its end, in which errors are counted."""


def severity_order(protocol: Protocol) -> tuple[str, ...]:
    """Return the severities of a protocol from the mildest to the worst, by their penalties."""
    if not isinstance(protocol, ErrorSpans):
        return ()
    return tuple(sorted(protocol.severities, key=lambda name: protocol.severities[name]))


def _counted(study: Study, judgments: Iterable[Judgment]) -> list[Judgment]:
    stages = {stage.name for stage in marking_stages(study)}
    return [judgment for judgment in judgments if judgment.counts and judgment.stage in stages]


def error_counts(study: Study, judgments: Iterable[Judgment]) -> pl.DataFrame:
    """Count the errors of the judgments that count.

    Columns: `system` (null in studies without systems), `severity`, `category` (null if none was chosen), `errors`,
    and `per_text`, the mean number per judged text of the system.
    """
    groups = {item.id: item.group for item in study.items}
    errors: Counter[tuple[str | None, str | None, str | None]] = Counter()
    texts: Counter[str | None] = Counter()
    for judgment in _counted(study, judgments):
        for item, value in answers_of(judgment):
            system = groups.get(item)
            texts[system] += 1
            for mark in value["spans"]:
                errors[system, mark.get("severity"), mark.get("category")] += 1
    rows = [(*key, count, count / texts[key[0]]) for key, count in errors.items()]
    schema = {"system": pl.String, "severity": pl.String, "category": pl.String}
    frame = pl.DataFrame(rows, schema={**schema, "errors": pl.Int64, "per_text": pl.Float64}, orient="row")
    return frame.sort("system", pl.col("errors"), "severity", "category", descending=[False, True, False, False])


def errors_by_system(study: Study, judgments: Iterable[Judgment]) -> pl.DataFrame:
    """Return one row per system: judged texts, texts with any error, and the errors of each severity per text."""
    groups = {item.id: item.group for item in study.items}
    order = list(dict.fromkeys(name for stage in marking_stages(study) for name in severity_order(stage.protocol)))
    texts: Counter[str | None] = Counter()
    flawed: Counter[str | None] = Counter()
    severities: Counter[tuple[str | None, str]] = Counter()
    for judgment in _counted(study, judgments):
        for item, value in answers_of(judgment):
            system = groups.get(item)
            texts[system] += 1
            flawed[system] += bool(value["spans"])
            severities.update((system, mark.get("severity", "")) for mark in value["spans"])
    order += sorted({name for _, name in severities} - set(order))
    rows = [
        (system, texts[system], flawed[system] / texts[system], *(severities[system, s] / texts[system] for s in order))
        for system in sorted(texts, key=str)
    ]
    names = [f"{name or 'other'}_per_text" for name in order]
    schema = {"system": pl.String, "texts": pl.Int64, "with_errors": pl.Float64, **dict.fromkeys(names, pl.Float64)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def error_places(study: Study, judgments: Iterable[Judgment]) -> pl.DataFrame:
    """Return in which part of the texts errors lie: `part` (1 is the beginning) and `proportion` of the characters."""
    lengths = {item.id: len(item.text) for item in study.items}
    marked = np.zeros(PLACES)
    for judgment in _counted(study, judgments):
        for item, value in answers_of(judgment):
            for mark in value["spans"]:
                if "start" in mark and lengths.get(item):
                    place = np.arange(mark["start"], mark["end"]) * PLACES // lengths[item]
                    np.add.at(marked, np.minimum(place, PLACES - 1), 1)
    total = marked.sum()
    parts = range(1, PLACES + 1)
    return pl.DataFrame({"part": list(parts), "proportion": (marked / total).tolist()} if total else {})


def suggestion_counts(study: Study, judgments: Iterable[Judgment]) -> dict[str, int]:
    """Count suggestions that were kept, changed and removed, and marks that were added; empty without suggestions."""
    counts: Counter[str] = Counter()
    suggested = False
    for judgment in _counted(study, judgments):
        for _, value in answers_of(judgment):
            suggested |= "suggestions" in value
            counts.update(origin for _, origin in with_origin(value))
    names = {"kept": "kept", "changed": "changed", "removed": "removed", "annotator": "added"}
    return {name: counts[origin] for origin, name in names.items()} if suggested else {}
