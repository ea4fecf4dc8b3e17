"""The sessions of Kinnear, Jones & Davies (2025): decisions, and what was published of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import polars as pl

from steelyard.formats import read_judgments, read_table
from steelyard.observations import Comparisons

PAPER = "Kinnear et al., 2025"

DECISIONS = "comparative_judgement/decisions.csv.gz"
SESSIONS = "comparative_judgement/sessions.csv"

_NUMBERS = {
    "n_items": pl.Int64,
    "n_decisions": pl.Int64,
    "n_pairs_judged": pl.Int64,
    "ssr": pl.Float64,
    "separation_g": pl.Float64,
    "median_split_half_r": pl.Float64,
    "prop_correct_judgements": pl.Float64,
}


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """One session: its comparisons, and the published statistics by column."""

    name: str
    comparisons: Comparisons
    published: dict[str, Any]


def read_sessions(data: Path, most: int | None = None) -> list[Session]:
    """Read the sessions up to a maximum number of decisions, the shortest first."""
    decisions = read_table(data / DECISIONS)
    published = read_table(data / SESSIONS).with_columns(pl.col(name).cast(dtype) for name, dtype in _NUMBERS.items())
    if most is not None:
        published = published.filter(pl.col("n_decisions") <= most)
    sessions = []
    for row in published.sort("n_decisions").iter_rows(named=True):
        rows = decisions.filter(pl.col("session") == row["session"]).select("winner", "loser", annotator="judge")
        comparisons = cast("Comparisons", read_judgments(rows).observations)
        sessions.append(Session(row["session"], comparisons, row))
    return sessions
