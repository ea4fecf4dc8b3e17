"""Whole tournaments: the graphs in which an annotator has compared all items of a source (Pighin et al. 2012).

Everything in that paper is computed per source and then averaged. Comparisons of a source that its annotator abandoned
form no graph of their own: they would be averaged with whole tournaments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from steelyard.models.comparisons.dominance import Dominance, DominanceGraphs, dominance_graphs
from steelyard.models.fit import Fit, Model
from steelyard.models.table import Uncertainty, count_by_item, score_table
from steelyard.observations import Comparisons, FloatArray, Index, IntArray
from steelyard.records import Item
from steelyard.study.fitting import comparisons_of_duplicates


class TournamentSources(NamedTuple):
    """The sources of a tournament: the source of each item, by code, and the number of distinct items of each.

    `same_as` has the items that equal another one, and are never compared.
    """

    names: tuple[str, ...]
    of_item: IntArray
    n_vertices: IntArray
    same_as: Mapping[str, str]

    @classmethod
    def of(cls, items: Sequence[Item], same_as: Mapping[str, str], *, across: bool) -> TournamentSources:
        """Group the items of a study by source; `across` makes all items one source."""
        names = ["" if across else item.context or "" for item in items]
        index = Index(dict.fromkeys(names))
        of_item = index.codes(names)
        is_vertex = np.array([item.id not in same_as for item in items], np.bool_)
        n_vertices = np.bincount(of_item[is_vertex], minlength=len(index)).astype(np.int32)
        return cls(index.ids, of_item, n_vertices, same_as)


class WholeTournaments(NamedTuple):
    """The comparisons that belong to whole tournaments, the source of each, and what was left out.

    `unfinished` counts the tournaments, of one annotator and source, that leave some item unconnected.
    """

    comparisons: Comparisons
    source: IntArray
    unfinished: int


def whole_tournaments(comparisons: Comparisons, sources: TournamentSources) -> WholeTournaments:
    """Keep the comparisons of annotators who connected all items of a source."""
    source = sources.of_item[comparisons.left]
    comparisons = comparisons.subset(source == sources.of_item[comparisons.right])
    source = sources.of_item[comparisons.left]
    n_sources, n_items = len(sources.names), len(comparisons.items)
    key = comparisons.annotator.astype(np.int64) * n_sources + source
    keys, graph = np.unique(key, return_inverse=True)
    vertices, vertex = np.unique(
        np.concatenate([graph * n_items + comparisons.left, graph * n_items + comparisons.right]), return_inverse=True
    )
    left, right = np.split(vertex, 2)
    links = sparse.coo_array((np.ones(len(left), np.int8), (left, right)), shape=(len(vertices), len(vertices)))
    _, component = csgraph.connected_components(links, directed=False)
    graph_of_vertex = vertices // max(n_items, 1)
    n_vertices = np.bincount(graph_of_vertex, minlength=len(keys))
    pairs = np.unique(np.stack([graph_of_vertex, component]), axis=1)
    n_components = np.bincount(pairs[0], minlength=len(keys))
    is_whole: NDArray[np.bool_] = (n_components == 1) & (n_vertices == sources.n_vertices[keys % n_sources])
    rows = is_whole[graph]
    return WholeTournaments(comparisons.subset(rows), source[rows], int((~is_whole).sum()))


def tournament_graphs(model: Dominance, whole: WholeTournaments, sources: TournamentSources) -> DominanceGraphs:
    """Return the graph of every whole tournament; items that equal another one are in it beside that one."""
    expanded = _with_twins(whole, sources)
    return dominance_graphs(expanded.comparisons, expanded.source, count=model.count)


def _with_twins(whole: WholeTournaments, sources: TournamentSources) -> WholeTournaments:
    comparisons = cast("Comparisons", comparisons_of_duplicates(whole.comparisons, sources.same_as))
    return whole._replace(comparisons=comparisons, source=sources.of_item[comparisons.left])


def fit_tournaments(
    model: Model, comparisons: Comparisons, sources: TournamentSources, group_of: Mapping[str, str] | None
) -> Fit:
    """Score items by their mean dominance over whole tournaments, or groups by the mean over sources (Table 1).

    `model` is a `Dominance`; `group_of` has the groups to score, None to score items.
    """
    model = cast("Dominance", model)
    whole = whole_tournaments(comparisons, sources)
    expanded = _with_twins(whole, sources)
    # Items of a whole tournament are connected, so connected items are sources; tasks are single comparisons.
    fit = replace(replace(model, source="items").fit(expanded.comparisons), settings=model.settings())
    counts = count_by_item(whole.comparisons, *whole.comparisons.incidence())[0]
    judgments = dict(zip(whole.comparisons.items.ids, counts.tolist(), strict=True))
    judgments |= {twin: judgments[first] for twin, first in sources.same_as.items()}
    scores = fit.scores.with_columns(
        pl.col("item").replace_strict(judgments, return_dtype=fit.scores.schema["judgments"]).alias("judgments")
    )
    notes = fit.notes
    if whole.unfinished:
        notes = (*notes, f"{whole.unfinished:,} unfinished tournaments are left out")
    if group_of is None or not len(whole.comparisons):
        return replace(fit, scores=scores, notes=notes)
    graphs = tournament_graphs(model, whole, sources)
    table = average_by_group(model, expanded.comparisons, graphs, group_of)
    return Fit(model.name, model.settings(), table, notes=(*notes, weighting_note(graphs)))


def weighting_note(graphs: DominanceGraphs) -> str:
    """Say how sources are weighted in the averages by group, and whether their sizes differ."""
    others = graphs.weight
    if others.min(initial=0) == others.max(initial=0):
        return "scores are means over the sources; each source counts once"
    return (
        f"scores are means over the sources; each source counts once. Sources have {int(others.min()) + 1} to "
        f"{int(others.max()) + 1} items, and dominance grows with their number: compare groups by the column normalized"
    )


def average_by_group(
    model: Dominance, comparisons: Comparisons, graphs: DominanceGraphs, group_of: Mapping[str, str]
) -> pl.DataFrame:
    """Return the scores of groups: the mean over sources of the mean dominance of their items; sources are resampled.

    Each source counts once. `normalized` is the same mean of f/(n − 1), with n the number of items of a graph, so that
    sources of different sizes count alike. `comparisons` are those of the graphs, for the number of judgments.
    """
    groups = comparisons.by_group(group_of)[0].items
    codes = groups.codes([group_of.get(item) for item in comparisons.items.ids])
    source = graphs.source[graphs.graph]
    n_sources = int(source.max(initial=-1)) + 1
    group = codes[graphs.item]
    has_group = group >= 0
    cell = source[has_group].astype(np.int64) * len(groups) + group[has_group]
    size = n_sources * len(groups)
    count = np.bincount(cell, minlength=size)
    with np.errstate(invalid="ignore"):
        means = [
            (np.bincount(cell, values[has_group], minlength=size) / count).reshape(n_sources, len(groups))
            for values in (graphs.dominance.astype(np.float64), graphs.unit_rank, graphs.normalized)
        ]
        is_known = ~np.isnan(means[0])
        score, unit_score, normalized = (
            np.where(is_known, part, 0).sum(axis=0) / is_known.sum(axis=0) for part in means
        )
    uncertainty, of_normalized = (
        Uncertainty.from_draws("bootstrap(sources)", _resampled(part, model), model.level)
        for part in (means[0], means[2])
    )
    grouped, _ = comparisons.by_group(group_of)
    judgments, annotators = count_by_item(grouped, *grouped.incidence())
    table = score_table(groups, score, unit_score, uncertainty, judgments, annotators, level=model.level)
    columns = {
        "normalized": normalized,
        "normalized_lower": of_normalized.lower,
        "normalized_upper": of_normalized.upper,
    }
    further = pl.DataFrame({"item": list(groups.ids), **columns}).fill_nan(None)
    return table.join(further, on="item", how="left", maintain_order="left")


def _resampled(means: FloatArray, model: Dominance) -> FloatArray:
    """Return the means of groups over resampled sources, one replicate per row."""
    rng = np.random.default_rng(model.seed)
    n_sources = len(means)
    is_known = ~np.isnan(means)
    weight = rng.multinomial(n_sources, np.full(n_sources, 1 / n_sources), size=model.draws) if n_sources else None
    if weight is None:
        return np.full((1, means.shape[1]), np.nan)
    with np.errstate(invalid="ignore"):
        draws: FloatArray = (weight @ np.where(is_known, means, 0)) / (weight @ is_known)
    return draws
