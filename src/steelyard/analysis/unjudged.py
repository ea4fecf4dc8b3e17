"""Answers without a judgment: what annotators could not judge, and pairs of which both items are bad."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from steelyard.analysis.history import History
from steelyard.protocols.pairwise import is_both_bad
from steelyard.protocols.unjudged import unjudged_items
from steelyard.study import StudyConfig
from steelyard.study.unjudged_state import describe_reasons

_ITEMS = {
    "item": pl.String,
    "answers": pl.Int64,
    "cannot_judge": pl.Int64,
    "both_bad": pl.Int64,
    "reasons": pl.String,
    "set_aside": pl.String,
}


@dataclass(frozen=True, slots=True)
class Unjudged:
    """How often annotators could not judge, and called both items of a pair bad.

    `items` has a row for each item concerned, those that most could not judge first: `answers` that showed it,
    `cannot_judge` and `both_bad` of these, the `reasons` with their numbers, and why it was `set_aside`, if it was.
    """

    items: pl.DataFrame
    cannot_judge: int
    both_bad: int
    comments: int


def with_unjudged(scores: pl.DataFrame, unjudged: Unjudged) -> pl.DataFrame:
    """Add two columns to a table of items: how many answers said `cannot_judge`, and why the item was `set_aside`."""
    counts = unjudged.items.select("item", "cannot_judge", "set_aside")
    return scores.join(counts, on="item", how="left", maintain_order="left").with_columns(
        pl.col("cannot_judge").fill_null(0), pl.col("set_aside").fill_null("")
    )


def count_unjudged(history: History, config: StudyConfig, set_aside: Mapping[str, str]) -> Unjudged:
    """Count over the judgments that count in the scores; `set_aside` are the items set aside, with the reasons."""
    protocols = {stage.name: stage.protocol for stage in config.stages}
    appearances: Counter[str] = Counter()
    unjudged: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
    n_unjudged = n_bad = 0
    counted = history.counted
    for stage, items, text in counted.select("stage", "items", "answer").iter_rows():
        names = items.to_list() if isinstance(items, pl.Series) else items
        appearances.update(names)
        # Most answers contain neither word, and need not be read.
        if "cannot_judge" in text and (marks := unjudged_items(protocols[stage], names, json.loads(text))):
            n_unjudged += 1
            unjudged.update(marks.keys())
            for item, reason in marks.items():
                reasons[item][reason] += 1
        elif "both_bad" in text and is_both_bad(json.loads(text)):
            n_bad += 1
            bad.update(names)
    words = {item: describe_reasons(counts) for item, counts in reasons.items()}
    rows = [
        (item, appearances[item], unjudged[item], bad[item], words.get(item, ""), set_aside.get(item, ""))
        for item in {**unjudged, **bad, **set_aside}
    ]
    frame = pl.DataFrame(rows, schema=_ITEMS, orient="row").sort(
        "cannot_judge", "both_bad", "item", descending=[True, True, False]
    )
    return Unjudged(frame, n_unjudged, n_bad, counted.filter(pl.col("comment") != "").height)
