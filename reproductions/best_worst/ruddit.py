"""Recorded best–worst choices among comments: Ruddit (Hada et al., 2021)."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import polars as pl

from steelyard.formats import read_judgments, read_table
from steelyard.observations import Choices

RUDDIT_ANSWERS, RUDDIT_TUPLES = "ruddit_bws/answers.csv.gz", "ruddit_bws/tuples.csv.gz"
CHECK = "check"
"""Hidden test comment of Ruddit; tuples with it are left out."""


def read_ruddit(data: Path) -> Choices:
    """Read the answers about tuples without the hidden test comment."""
    tuples = read_table(data / RUDDIT_TUPLES)
    items = [f"item{place}" for place in range(1, 5)]
    tuples = tuples.filter(~pl.any_horizontal(pl.col(items) == CHECK))
    answers = read_table(data / RUDDIT_ANSWERS).join(tuples, on="tuple")

    def chosen(column: str) -> pl.Expr:
        place = pl.col(column).cast(pl.Int64)
        return pl.coalesce(pl.when(place == at).then(pl.col(item)) for at, item in enumerate(items, 1)).alias(column)

    frame = answers.select(*items, chosen("best"), chosen("worst"))
    return cast("Choices", read_judgments(frame, kind="choices").observations)
