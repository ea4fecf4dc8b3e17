"""The section on disagreement: how many annotators gave each answer, item by item."""

from __future__ import annotations

from typing import Any

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.report.document import (
    Block,
    Cell,
    Column,
    Prose,
    Row,
    Section,
    Table,
    count_column,
    number_column,
    text_column,
)

TITLE = "Disagreement"
_MOST = 20


def section(analysis: Analysis) -> Section:
    """Return the distribution of answers by item, the items with most disagreement first."""
    if analysis.distributions.is_empty():
        return Section("disagreement", TITLE, absent=("Disagreement: there are no judgments yet.",))
    blocks: list[Block] = [
        Prose(
            "Disagreement is kept: the tables have how many annotators gave each answer. Entropy is 0 bits if all gave "
            "the same answer."
        )
    ]
    for (stage, criterion), part in analysis.soft_labels.group_by("stage", "criterion", maintain_order=True):
        blocks.append(_answers(analysis, str(stage), str(criterion), part))
    return Section("disagreement", TITLE, tuple(blocks))


def _answers(analysis: Analysis, stage: str, criterion: str, part: pl.DataFrame) -> Table:
    text = {item.id: item.text or item.id for item in analysis.study.items}
    answers = [name for name in part.columns if name.startswith("p(") and part[name].null_count() < part.height]
    frame = part.with_columns(
        pl.col("item").replace_strict(text, default=pl.col("item"), return_dtype=pl.String).alias("text")
    ).sort("entropy", "judgments", descending=True, maintain_order=True)
    several = len(analysis.study.config.stages) > 1
    named = [name for name in (stage if several else "", criterion) if name]
    columns: tuple[Column, ...] = (
        text_column("text", "item", 80),
        Column("answers", "answers", lambda row: Cell(_counts(row, answers)), numeric=False),
        count_column("judgments", "judgments"),
        number_column("entropy", "entropy, bits", 2),
    )
    of = f", {' '.join(named)}" if named else ""
    caption = f"Answers by item{of}, the items with most disagreement first."
    name = "-".join(["soft-labels", *("".join(c if c.isascii() and c.isalnum() else "-" for c in n) for n in named)])
    return Table(name.lower(), caption, frame, columns, most=_MOST)


def _counts(row: Row, answers: list[str]) -> str:
    """Write the answers that were given with their numbers, such as “yes 6 · no 1”."""
    judgments: Any = row["judgments"]
    counts = {name[2:-1]: round((row[name] or 0) * judgments) for name in answers}
    return " · ".join(f"{answer} {count}" for answer, count in counts.items() if count)
