"""The tournaments section: cycles by source, average dominance of systems, adequacy labels and their cost."""

from __future__ import annotations

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.tournaments import TournamentAnalysis
from steelyard.report.document import (
    Block,
    Column,
    Prose,
    Section,
    Table,
    count_column,
    interval_column,
    number_column,
    text_column,
)

TITLE = "Tournaments"


def section(analysis: Analysis) -> Section:
    """Return cycles, the average dominance of systems, the effort of adequacy labels, and harmonized ranks."""
    tournaments = analysis.tournaments
    if tournaments is None:
        return Section(
            "tournaments",
            TITLE,
            absent=("Tournaments: no stage has a tournament design, or there are no comparisons yet.",),
        )
    blocks: list[Block] = [Prose(_summary(tournaments))]
    columns: tuple[Column, ...]
    if tournaments.systems.height:
        columns = (
            text_column("system", "system"),
            interval_column("score", "average dominance", lower="lower", upper="upper"),
            interval_column("normalized", "normalized", lower="normalized_lower", upper="normalized_upper"),
            count_column("rank", "rank"),
            count_column("judgments", "comparisons"),
        )
        caption = (
            "Average dominance: mean over sources of the number of items dominated minus the number of "
            "dominating items; each source counts once. Normalized: divided by the number of other items of the source."
        )
        blocks.append(Table("average-dominance", caption, tournaments.systems, columns, _sizes(tournaments)))
    if tournaments.effort.height:
        columns = (
            text_column("part", "adequacy labels"),
            count_column("count", "number"),
            number_column("percent", "per cent", 2),
        )
        caption = "How adequacy was determined, in percent of the items (of distinct items for automatic labels)."
        blocks.append(Table("adequacy-effort", caption, tournaments.effort, columns))
        labels = label_sources(tournaments)
        columns = (text_column("how", "label"), count_column("adequate", "adequate"), count_column("not", "inadequate"))
        caption = "Labels by how they were obtained; all but “asked” are inferred."
        blocks.append(Table("adequacy-labels", caption, labels, columns))
    if tournaments.harmonization.height:
        columns = (
            text_column("statistic", "ranks before and after harmonization"),
            interval_column("value", "mean over sources", lower="lower", upper="upper"),
            count_column("sources", "sources"),
        )
        caption = "How much ranks change when adequate items are ranked above inadequate items of the same source."
        blocks.append(Table("harmonization", caption, tournaments.harmonization, columns))
    return Section("tournaments", TITLE, tuple(blocks))


def _sizes(tournaments: TournamentAnalysis) -> str:
    """Say whether sources have different numbers of items, which dominance grows with."""
    sizes = tournaments.graphs["items"].to_list()
    least, most = min(sizes, default=0), max(sizes, default=0)
    if least == most:
        return ""
    return f"Sources have {least} to {most} items: compare systems by the normalized average."


def label_sources(tournaments: TournamentAnalysis) -> pl.DataFrame:
    """Count the labels by how they were obtained: `how`, `adequate`, `not`."""
    labelled = tournaments.items.drop_nulls("adequate")
    return (
        labelled.group_by("how")
        .agg(
            pl.col("adequate").sum().cast(pl.Int64).alias("adequate"),
            (~pl.col("adequate")).sum().cast(pl.Int64).alias("not"),
        )
        .sort("how")
    )


def _summary(tournaments: TournamentAnalysis) -> str:
    count = tournaments.graphs.height
    sources = tournaments.graphs["source"].n_unique()
    cyclic, consistent = tournaments.statistics
    parts = [f"{count:,} complete tournaments of {sources:,} sources."]
    if cyclic.value is not None and consistent.value is not None:
        parts.append(f"{cyclic.value:.1%} of them have a cycle; {consistent.value:.1%} of the items are in no cycle.")
    if tournaments.unfinished:
        parts.append(f"{tournaments.unfinished:,} unfinished tournaments are left out.")
    return " ".join(parts)
