"""Tournaments of a study, source by source: cycles, dominance, adequacy, effort and harmonized ranks.

After Pighin et al. (2012): a graph is one annotator's whole tournament of one source; statistics are computed per graph
and then averaged (§4.1, Table 1). Adequacy labels come from a propagation stage (§3.2, Table 2), and harmonized ranks
combine both (§4.3, Table 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from steelyard.designs.propagation import Propagation
from steelyard.models.comparisons.dominance import Dominance, DominanceGraphs
from steelyard.models.ratings.harmonization import harmonization_agreement, harmonize
from steelyard.observations import Comparisons
from steelyard.reliability import cycle_consistency
from steelyard.reliability.statistic import Statistic
from steelyard.study import Study
from steelyard.study.adequacy import adequacy_labels, asking_effort
from steelyard.study.fitting import tournament_design
from steelyard.study.tournaments import (
    TournamentSources,
    WholeTournaments,
    average_by_group,
    tournament_graphs,
    whole_tournaments,
)

CYCLE_STATISTICS = ("cyclic_graphs", "items_in_no_cycle")
EFFORT_SCHEMA = {"stage": pl.String, "part": pl.String, "count": pl.Int64, "percent": pl.Float64}


@dataclass(frozen=True, slots=True, eq=False)
class TournamentAnalysis:
    """Everything about the tournaments of a study.

    `graphs` has a row for each whole tournament: source, annotator, items, comparisons, items_in_cycles. `items` has a
    row for each item: item, source, system, dominance and rank within its source, and, after a propagation stage,
    adequate, how, through, inferred and harmonized_rank. `systems` are the average dominances (Table 1), `effort` what
    propagation saved (Table 2), and `harmonization` how far it changed the ranks (Table 3).
    """

    graphs: pl.DataFrame
    statistics: tuple[Statistic, ...]
    items: pl.DataFrame
    systems: pl.DataFrame
    effort: pl.DataFrame
    harmonization: pl.DataFrame
    unfinished: int


def has_tournaments(study: Study) -> bool:
    """Whether a stage of the study holds tournaments."""
    return tournament_design(study.config.stages) is not None


def tournament_analysis(study: Study, comparisons: Comparisons | None = None) -> TournamentAnalysis | None:
    """Analyse the tournaments of a study; None if it has none, or no comparison yet.

    `comparisons` are those that count, by default all of the study.
    """
    design = tournament_design(study.config.stages)
    if design is None:
        return None
    if comparisons is None:
        comparisons = next((part.to_comparisons() for part in study.observations("comparisons").values()), None)
    if comparisons is None or not len(comparisons):
        return None
    model = study.config.model if isinstance(study.config.model, Dominance) else Dominance()
    items = study.items
    sources = TournamentSources.of(items, study.duplicates(), across=design.across_contexts)
    whole = whole_tournaments(comparisons, sources)
    graphs = tournament_graphs(model, whole, sources)
    group_of = {item.id: item.group for item in items if item.group is not None}
    frame = _items(study, graphs, sources)
    has_systems = bool(group_of) and len(whole.comparisons) > 0
    return TournamentAnalysis(
        graphs=_graph_table(whole, graphs, sources),
        statistics=_cycle_statistics(whole),
        items=frame,
        systems=average_by_group(model, whole.comparisons, graphs, group_of).rename({"item": "system"})
        if has_systems
        else pl.DataFrame(),
        effort=effort_table(study),
        harmonization=_harmonization(frame),
        unfinished=whole.unfinished,
    )


def _cycle_statistics(whole: WholeTournaments) -> tuple[Statistic, ...]:
    cycles = cycle_consistency(whole.comparisons)
    return tuple(cycles[key] for key in CYCLE_STATISTICS)


def _graph_table(whole: WholeTournaments, graphs: DominanceGraphs, sources: TournamentSources) -> pl.DataFrame:
    """Return one row for each whole tournament."""
    n_graphs = len(graphs.source)
    names = whole.comparisons.annotators.ids
    compared = np.stack([whole.source, whole.comparisons.annotator]) if len(whole.source) else np.empty((2, 0))
    keys, counts = np.unique(compared, axis=1, return_counts=True)
    comparisons = {(int(s), int(a)): int(n) for s, a, n in zip(*keys, counts, strict=True)}
    pairs = list(zip(graphs.source.tolist(), graphs.annotator.tolist(), strict=True))
    in_cycles = np.bincount(graphs.graph, graphs.in_cycle, minlength=n_graphs).astype(np.int64)
    return pl.DataFrame(
        {
            "source": [sources.names[source] for source, _ in pairs],
            "annotator": [names[annotator] if annotator >= 0 else None for _, annotator in pairs],
            "items": np.bincount(graphs.graph, minlength=n_graphs).astype(np.int64),
            "comparisons": [comparisons[pair] for pair in pairs],
            "items_in_cycles": in_cycles,
        },
        schema={
            "source": pl.String,
            "annotator": pl.String,
            "items": pl.Int64,
            "comparisons": pl.Int64,
            "items_in_cycles": pl.Int64,
        },
    ).sort("source", "annotator")


def _items(study: Study, graphs: DominanceGraphs, sources: TournamentSources) -> pl.DataFrame:
    """Return the items with their mean dominance, their rank within the source, and their adequacy."""
    items = study.items
    n_items = len(items)
    with np.errstate(invalid="ignore"):
        dominance = np.bincount(graphs.item, graphs.dominance, minlength=n_items) / np.bincount(
            graphs.item, minlength=n_items
        )
    frame = pl.DataFrame(
        {
            "item": [item.id for item in items],
            "source": [sources.names[code] for code in sources.of_item.tolist()],
            "system": [item.group for item in items],
            "dominance": dominance,
        },
        schema={"item": pl.String, "source": pl.String, "system": pl.String, "dominance": pl.Float64},
    ).with_columns(pl.col("dominance").fill_nan(None))
    rank = pl.col("dominance").rank("dense", descending=True).over("source").cast(pl.Int64)
    frame = frame.with_columns(rank.alias("rank"))
    if not any(isinstance(stage.design, Propagation) for stage in study.config.stages):
        return frame
    frame = frame.join(adequacy_labels(study), on="item", how="left")
    return frame.with_columns(_harmonized_ranks(frame))


def _harmonized_ranks(frame: pl.DataFrame) -> pl.Series:
    """Return the harmonized rank of each item; null in sources where an item has no rank or no label yet."""
    ranks: list[int | None] = [None] * frame.height
    numbered = frame.with_row_index("row")
    for part in numbered.partition_by("source", maintain_order=True):
        if part["rank"].null_count() or part["adequate"].null_count():
            continue
        harmonized = harmonize(part["rank"].to_numpy(), part["adequate"].to_numpy())
        for row, value in zip(part["row"].to_list(), harmonized.tolist(), strict=True):
            ranks[row] = value
    return pl.Series("harmonized_rank", ranks, dtype=pl.Int64)


def _harmonization(frame: pl.DataFrame) -> pl.DataFrame:
    if "harmonized_rank" not in frame.columns:
        return pl.DataFrame()
    done = frame.drop_nulls("harmonized_rank")
    if not done.height:
        return pl.DataFrame()
    return harmonization_agreement(done["rank"].to_numpy(), done["adequate"].to_numpy(), done["source"].to_list())


def effort_table(study: Study) -> pl.DataFrame:
    """Return what each propagation stage saved, in the rows of Table 2 of the paper.

    `percent` is of the items for collapsed items and questions, and of the vertices for automatic labels.
    """
    rows: list[tuple[Any, ...]] = []
    for stage, effort in asking_effort(study).items():
        items, vertices = max(effort.items, 1), max(effort.vertices, 1)
        rows += [
            (stage, "items", effort.items, None),
            (stage, "collapsed: identical or tied", effort.collapsed, 100 * effort.collapsed / items),
            (stage, "distinct items", effort.vertices, None),
            (stage, "labelled automatically", effort.automatic, 100 * effort.automatic / vertices),
            (stage, "of these, by the reference", effort.reference, 100 * effort.reference / vertices),
            (stage, "of these, by propagation", effort.propagated, 100 * effort.propagated / vertices),
            (stage, "asked", effort.asked, 100 * effort.asked / items),
            (stage, "not labelled yet", effort.open, 100 * effort.open / vertices),
        ]
    return pl.DataFrame(rows, schema=EFFORT_SCHEMA, orient="row")
