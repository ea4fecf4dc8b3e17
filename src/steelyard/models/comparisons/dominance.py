"""Dominance: rank a few items from a few comparisons by reachability (Pighin et al. 2012)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray
from pydantic import Field
from scipy import sparse
from scipy.sparse import csgraph

from steelyard.errors import ConfigError, DataError, did_you_mean
from steelyard.models.comparisons.dominance_kernels import reachable_counts
from steelyard.models.comparisons.online import as_comparisons, both_sides, islands
from steelyard.models.fit import Fit, Model
from steelyard.models.inference.resampling import Units, resampled_means
from steelyard.models.table import ALONE, Uncertainty, aligned_draws, count_by_item, score_table
from steelyard.models.unscored import null_without_evidence
from steelyard.observations import Comparisons, FloatArray, IntArray, Rankings

ONE_SOURCE = "items compared within a single graph have no interval: its comparisons are one ranking, not a sample"
CYCLES = "{cyclic} of {graphs} graphs have a cycle; the items on a cycle count as tied"

Weighting = Literal["sources", "items", "normalized"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
"""How dominance is averaged over sources of different sizes; see `average_dominance`."""

UNEQUAL_GRAPHS = (
    "graphs have {least} to {most} items; dominance is averaged with the number of other items in a graph as weight"
)
WITHIN_SOURCE = (
    "ranks are within the column 'source', which numbers the sets of connected items; they have no intervals"
)


class Consistency(NamedTuple):
    """How often the answers contradict each other: cycles in graphs that should have none."""

    graphs: int
    cyclic: int
    items: int
    in_no_cycle: int

    @property
    def cyclic_share(self) -> float:
        """The share of graphs with a cycle."""
        return self.cyclic / self.graphs

    @property
    def consistency(self) -> float:
        """The share of items in no cycle, each counted once for every graph it is in."""
        return self.in_no_cycle / self.items


@dataclass(frozen=True, slots=True, eq=False)
class DominanceGraphs:
    """The items of all graphs, one row for each item of a source as one annotator compared them.

    `dominates` and `dominated` count items, or vertices (tied items, and the items of a cycle, as one); `rank` is 1
    for the highest difference of the two, without gaps; `graph` is ascending, `source` and `annotator` are
    given for each graph.
    """

    item: IntArray
    graph: IntArray
    dominates: NDArray[np.int64]
    dominated: NDArray[np.int64]
    rank: NDArray[np.int64]
    in_cycle: NDArray[np.bool_]
    source: IntArray
    annotator: IntArray

    @property
    def dominance(self) -> NDArray[np.int64]:
        """Return f: how many an item dominates less how many it is dominated by (Eq. 1)."""
        return self.dominates - self.dominated

    @property
    def unit_rank(self) -> FloatArray:
        """The rank on [0, 1], 1 for the best; 0.5 where all items of a graph are equal."""
        ranks = np.zeros(len(self.source), np.int64)
        np.maximum.at(ranks, self.graph, self.rank)
        last = ranks[self.graph]
        return np.where(last > 1, (last - self.rank) / np.maximum(last - 1, 1), 0.5)

    @property
    def normalized(self) -> FloatArray:
        """The dominance on [−1, 1]: f over the number of other items in the graph, which is its largest value."""
        return np.asarray(self.dominance / np.maximum(self.weight, 1.0))

    @property
    def weight(self) -> FloatArray:
        """The weight of a row in averages over graphs: how many other items its graph has."""
        return (np.bincount(self.graph)[self.graph] - 1).astype(np.float64)

    @property
    def consistency(self) -> Consistency:
        """Count the cycles."""
        cyclic = np.unique(self.graph[self.in_cycle])
        return Consistency(len(self.source), len(cyclic), len(self.item), int((~self.in_cycle).sum()))


@dataclass(frozen=True, slots=True)
class Dominance(Model):
    """Score items by f = items reachable from an item − items that reach it (Eq. 1 of Pighin et al. 2012).

    Ties collapse into one vertex, and so do the items of a cycle, which contradict each other. Each annotator's
    answers about one source are a graph of their own. What a source is: a task, where an answer to one holds
    several comparisons (`source = "task"`); else the items that comparisons connect (`source = "items"`).
    An item in several graphs gets its mean dominance, weighted by the number of other items in each graph, so that a
    small graph counts less. Within one source there is no interval.
    """

    name: ClassVar[str] = "dominance"
    accepts: ClassVar[tuple[str, ...]] = ("comparisons", "rankings")

    source: Annotated[
        Literal["auto", "task", "items"],
        Field(description="unit within which items are ranked: tasks, or sets of connected items"),
    ] = "auto"
    count: Annotated[
        Literal["items", "vertices"],
        Field(description="what is counted as dominated: items, or vertices (tied items and cycles count once)"),
    ] = "items"
    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 400
    seed: Annotated[int, Field(ge=0, description="random seed")] = 0

    def graphs(self, observations: Comparisons | Rankings) -> DominanceGraphs:
        """Return the dominance, rank and cycles of every item in every graph."""
        self.check_kind(observations)
        comparisons = as_comparisons(observations)
        source = comparisons.task if self._by_task(comparisons) else islands(comparisons)[comparisons.left]
        return dominance_graphs(comparisons, source, count=self.count)

    @null_without_evidence
    def fit(self, observations: Comparisons | Rankings) -> Fit:
        """Score every item by its mean dominance; where there are several sources, rank within each."""
        graphs = self.graphs(observations)
        comparisons = as_comparisons(observations)
        n_items = len(comparisons.items)
        judgments, annotators = count_by_item(comparisons, *both_sides(comparisons))
        weight = graphs.weight
        total = np.bincount(graphs.item, weight, minlength=n_items)
        with np.errstate(invalid="ignore"):
            score = np.bincount(graphs.item, weight * graphs.dominance, minlength=n_items) / total
            unit_score = np.bincount(graphs.item, weight * graphs.unit_rank, minlength=n_items) / total
        uncertainty, notes = self._resampled(comparisons, graphs, n_items)
        if weight.min() < weight.max() and (np.bincount(graphs.item) > 1).any():
            sizes = int(weight.min()) + 1, int(weight.max()) + 1
            notes = (*notes, UNEQUAL_GRAPHS.format(least=sizes[0], most=sizes[1]))
        table = score_table(comparisons.items, score, unit_score, uncertainty, judgments, annotators, level=self.level)
        consistency = graphs.consistency
        if consistency.cyclic:
            notes = (*notes, CYCLES.format(cyclic=consistency.cyclic, graphs=consistency.graphs))
        source_of = _source_of_item(graphs, n_items)
        if source_of is not None:
            table = _rank_within(table, comparisons, source_of)
            notes = (*notes, WITHIN_SOURCE)
        draws = aligned_draws(table, comparisons.items, uncertainty.draws) if source_of is None else None
        return Fit(self.name, self.settings(), table, notes=notes, draws=draws)

    def _by_task(self, comparisons: Comparisons) -> bool:
        if self.source == "task" and not comparisons.knows_tasks:
            raise DataError("some comparisons have no task, so tasks cannot serve as sources.", 'Use source = "items".')
        if self.source != "auto" or not comparisons.knows_tasks:
            return self.source == "task"
        answer = comparisons.task.astype(np.int64) * (len(comparisons.annotators) + 1) + comparisons.annotator
        return len(np.unique(answer)) < len(comparisons)

    def _resampled(
        self, comparisons: Comparisons, graphs: DominanceGraphs, n_items: int
    ) -> tuple[Uncertainty, tuple[str, ...]]:
        """Resample annotators where known, else tasks: whole graphs at a time."""
        if comparisons.knows_annotators:
            units = Units("annotators", comparisons.annotators.ids, graphs.annotator)
        elif self._by_task(comparisons):
            units = Units("tasks", comparisons.tasks.ids, graphs.source)
        else:
            units = Units("graphs", ("all",), np.zeros(len(graphs.source), np.int32))
        in_graphs = np.bincount(graphs.item, minlength=n_items)
        alone = units.per_item(graphs.item, graphs.graph, n_items) < 2
        draws = np.full((1, n_items), np.nan)
        if not alone.all():
            dominance, weight = graphs.dominance.astype(np.float64), graphs.weight
            # Equal weights give exactly the mean; the same replicates of numerator and denominator give the ratio.
            sums, weights = (
                resampled_means(units, graphs.item, graphs.graph, each, n_items, replicates=self.draws, seed=self.seed)
                for each in (weight * dominance, weight)
            )
            with np.errstate(invalid="ignore"):
                draws = sums / weights
        notes = (ONE_SOURCE,) if (in_graphs == 1).any() else ()
        if (alone & (in_graphs > 1)).any():
            notes = (*notes, ALONE.format(units=units.kind))
        return Uncertainty.from_draws(f"bootstrap({units.kind})", draws, self.level).without(alone), notes


def dominance_graphs(
    comparisons: Comparisons, source: IntArray, *, count: Literal["items", "vertices"] = "items"
) -> DominanceGraphs:
    """Build one graph for every source and annotator, and count what leads where.

    All graphs are handled as one, of vertices (graph, item): ties are merged as connected components, cycles
    as strongly connected ones, and what is left is acyclic.
    """
    answer = source.astype(np.int64) * (len(comparisons.annotators) + 1) + comparisons.annotator + 1
    _, first, graph = np.unique(answer, return_index=True, return_inverse=True)
    n_items = len(comparisons.items)
    keys, vertex = np.unique(
        np.concatenate([graph * n_items + comparisons.left, graph * n_items + comparisons.right]), return_inverse=True
    )
    left, right = np.split(vertex, 2)
    graph_of, item = (keys // n_items).astype(np.int32), (keys % n_items).astype(np.int32)

    tied = comparisons.outcome == 0
    merged = _components(left[tied], right[tied], len(keys), strong=False)
    winner = merged[np.where(comparisons.outcome > 0, left, right)[~tied]]
    loser = merged[np.where(comparisons.outcome > 0, right, left)[~tied]]
    n_merged = merged.max() + 1
    component = _components(winner, loser, n_merged, strong=True)
    # A component of several merged vertices is a cycle; so is a win within one, between items tied elsewhere.
    cyclic = np.bincount(component) > 1
    cyclic[component[winner[winner == loser]]] = True

    of_vertex = component[merged]
    graph_of_component = np.empty(component.max() + 1, np.int64)
    graph_of_component[of_vertex] = graph_of
    order = np.argsort(graph_of_component, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    edges = np.unique(place[component[winner]] * len(order) + place[component[loser]])
    source_end, target_end = np.divmod(edges, len(order))
    between = source_end != target_end
    graph_start = np.searchsorted(graph_of_component[order], np.arange(len(first) + 1))
    own = place[of_vertex]
    weight = np.bincount(own, minlength=len(order)) if count == "items" else np.ones(len(order), np.int64)
    dominates = _reach(graph_start, source_end[between], target_end[between], weight)
    dominated = _reach(graph_start, target_end[between], source_end[between], weight)
    return DominanceGraphs(
        item=item,
        graph=graph_of,
        dominates=dominates[own],
        dominated=dominated[own],
        rank=_dense_ranks(graph_of, (dominates - dominated)[own]),
        in_cycle=cyclic[of_vertex],
        source=source[first],
        annotator=comparisons.annotator[first],
    )


def average_dominance(
    scores: pl.DataFrame, group: Mapping[str, str], *, weighting: Weighting = "sources", level: float = 0.95
) -> pl.DataFrame:
    """Average the dominance of items by group, such as the system that made them (Table 1 of the paper).

    Parameters
    ----------
    scores
        The table of a fit; items without a group or a score are left out.
    group
        The group of each item.
    weighting
        "sources" averages f, and each source counts once, as in the paper, whose sources all have six items. "items"
        weights sources by their number of other items, n − 1. "normalized" averages f/(n − 1), which is between −1
        and 1 whatever the size of a source. With sources of the same size, the three give the same order.
    level
        Confidence level of the interval, which is Student's t over sources.
    """
    if weighting not in WEIGHTINGS:
        raise ConfigError(f"unknown weighting '{weighting}'.", did_you_mean(weighting, WEIGHTINGS))
    source = pl.col("source") if "source" in scores.columns else pl.lit(0).alias("source")
    others = (pl.len().over("source") - 1).clip(1).alias("others")
    scored = (
        scores.filter(pl.col("score").is_not_null())
        .with_columns(source)
        .with_columns(others)
        .filter(pl.col("item").is_in(list(group)))
    )
    if scored.height == 0:
        raise DataError("no scored item has a group.", "Map item ids to groups.")
    value = pl.col("score") / pl.col("others") if weighting == "normalized" else pl.col("score")
    weight = pl.col("others").cast(pl.Float64) if weighting == "items" else pl.lit(1.0)
    by_source = (
        scored.with_columns(pl.col("item").replace_strict(group, return_dtype=pl.String).alias("group"))
        .group_by("group", "source")
        .agg(value.mean().alias("value"), weight.mean().alias("weight"), pl.len().alias("n"))
    )
    return _weighted_means(by_source, level).with_columns(pl.lit(weighting).alias("weighting"))


def _weighted_means(by_source: pl.DataFrame, level: float) -> pl.DataFrame:
    """Return the mean of each group over sources, with Student's t interval; the highest first."""
    mean = (pl.col("value") * pl.col("weight")).sum() / pl.col("weight").sum()
    deviation = pl.col("weight") * (pl.col("value") - mean)
    count = pl.len().cast(pl.Float64)
    error = ((deviation**2).sum() * count / (count - 1)).sqrt() / pl.col("weight").sum()
    means = by_source.group_by("group").agg(
        mean.alias("score"),
        pl.when(count > 1).then(error).alias("sd"),
        pl.col("n").sum().cast(pl.Int64).alias("items"),
        pl.len().cast(pl.Int64).alias("sources"),
    )
    quantile = pl.Series(scipy.special.stdtrit(np.maximum(means["sources"].to_numpy() - 1, 1), (1 + level) / 2))
    return means.select(
        "group",
        "score",
        "sd",
        (pl.col("score") - quantile * pl.col("sd")).alias("lower"),
        (pl.col("score") + quantile * pl.col("sd")).alias("upper"),
        "items",
        "sources",
    ).sort("score", "group", descending=[True, False])


def _components(one: NDArray[np.int64], other: NDArray[np.int64], n: int, *, strong: bool) -> NDArray[np.int64]:
    edges = sparse.coo_array((np.ones(len(one), np.int8), (one, other)), shape=(n, n)).tocsr()
    _, labels = csgraph.connected_components(edges, directed=strong, connection="strong" if strong else "weak")
    return np.asarray(labels, np.int64)


def _reach(
    graph_start: NDArray[np.int64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    weight: NDArray[np.int64],
) -> NDArray[np.int64]:
    order = np.argsort(source, kind="stable")
    edge_start = np.searchsorted(source[order], np.arange(graph_start[-1] + 1))
    return reachable_counts(graph_start, edge_start, target[order], weight.astype(np.int64))


def _dense_ranks(graph: IntArray, value: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rank within each graph from 1, the highest value first; equal values share a rank, and none is skipped."""
    order = np.lexsort((-value, graph))
    new_graph = np.r_[True, np.diff(graph[order]) != 0]
    step = np.cumsum(new_graph | np.r_[True, np.diff(value[order]) != 0])
    ranks = np.empty(len(value), np.int64)
    ranks[order] = step - np.maximum.accumulate(np.where(new_graph, step, 0)) + 1
    return ranks


def _source_of_item(graphs: DominanceGraphs, n_items: int) -> IntArray | None:
    """Return each item's source where it has only one and there are several, else None."""
    source = graphs.source[graphs.graph]
    pairs = np.unique(graphs.item.astype(np.int64) * (int(graphs.source.max()) + 1) + source)
    if len(np.unique(graphs.source)) < 2 or len(pairs) > len(np.unique(graphs.item)):
        return None
    source_of_item = np.full(n_items, -1, np.int32)
    source_of_item[graphs.item] = source
    return source_of_item


def _rank_within(table: pl.DataFrame, comparisons: Comparisons, source: IntArray) -> pl.DataFrame:
    _, number = np.unique(source[source >= 0], return_inverse=True)
    numbered = np.zeros(len(source), np.int64)
    numbered[source >= 0] = number + 1
    numbers = pl.DataFrame(
        {
            "item": pl.Series(comparisons.items.ids, dtype=pl.String),
            "source": pl.Series(numbered).replace(0, None),
        }
    )
    rank = pl.col("score").rank("dense", descending=True).over("source").cast(pl.Int64)
    missing = pl.lit(None, pl.Int64)
    return (
        table.join(numbers, on="item", how="left")
        .with_columns(rank.alias("rank"), missing.alias("rank_lower"), missing.alias("rank_upper"))
        .select("item", "source", *(name for name in table.columns if name != "item"))
        .sort("source", "rank", "item", nulls_last=True)
    )
