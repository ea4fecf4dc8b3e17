"""The order section: cycles in annotators' comparisons, and position bias."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.models.labels.majority import wilson
from steelyard.report.document import (
    Block,
    Prose,
    Section,
    Table,
    count_column,
    interval_column,
    share_column,
    text_column,
)
from steelyard.report.sections.reliability import meanings, numbers_table

TITLE = "Cycles and position"


def section(analysis: Analysis) -> Section:
    """Return cycles and position bias, and how often each position was chosen."""
    rows = [
        (part, statistic) for part in analysis.reliability for statistic in part.order if statistic.value is not None
    ]
    blocks: list[Block] = []
    if rows:
        blocks.append(
            Prose(
                "A cycle is a contradiction in the answers of one annotator: a over b, b over c, and c over a. "
                "Ratings of one task cannot contradict each other; those of several can."
            )
        )
        blocks.append(numbers_table(analysis, "order", "Cycles and position bias.", rows))
        blocks.append(meanings(statistic for _, statistic in rows))
    places = chosen_places(analysis)
    if places.height:
        columns = (
            text_column("stage", "stage"),
            count_column("place", "screen position"),
            count_column("times", "times chosen as best"),
            interval_column("share", "share", lower="lower", upper="upper"),
            share_column("chance", "by chance"),
        )
        caption = "Screen position of the best item, with Wilson’s 95 % intervals."
        blocks.append(Table("places", caption, places, columns))
    if not blocks:
        return Section("order", TITLE, absent=("Cycles and position bias: there are no comparisons.",))
    return Section("order", TITLE, tuple(blocks))


def chosen_places(analysis: Analysis) -> pl.DataFrame:
    """Count the positions of the items chosen as best, for best–worst stages: `place`, `times`, `share`, `chance`."""
    schema = {"stage": pl.String, "place": pl.Int64, "times": pl.Int64}
    schema |= dict.fromkeys(("share", "lower", "upper", "chance"), pl.Float64)
    rows = []
    for stage in analysis.study.config.stages:
        if stage.protocol.kinds[0] != "choices":
            continue
        answers = analysis.history.counted.filter(pl.col("stage") == stage.name).select("items", "answer")
        times: Counter[int] = Counter()
        for items, answer in answers.iter_rows():
            best = json.loads(answer).get("best")
            if best in items:
                times[items.index(best) + 1] += 1
        total = times.total()
        if not total:
            continue
        places = np.arange(1, stage.protocol.task_size + 1)
        hits = np.array([times[int(place)] for place in places], np.int32)
        lower, upper = wilson(hits, np.full(len(hits), total, np.int32), 0.95)
        rows += [
            (stage.name, int(place), int(hit), hit / total, float(low), float(high), 1 / len(places))
            for place, hit, low, high in zip(places, hits, lower, upper, strict=True)
        ]
    return pl.DataFrame(rows, schema=schema, orient="row")
