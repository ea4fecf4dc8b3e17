"""Cycle consistency of comparisons: contradictions such as a over b, b over c, and c over a."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from steelyard.errors import DataError
from steelyard.models.comparisons.online import islands
from steelyard.observations import Comparisons, FloatArray, Index, Observations
from steelyard.reliability.bootstrap import Bootstrap, Names, Seed, weighted_proportion
from steelyard.reliability.proportions import proportion
from steelyard.reliability.statistic import Statistic, Statistics
from steelyard.reliability.units import Codes, group_codes, row_sums

WEDGE_LIMIT = 50_000_000
"""Number of paths of two comparisons beyond which triads are not counted."""

GRAPHS = ("cyclic_graphs", "items_in_no_cycle", "circular_triads", "coefficient_of_consistence")

_Sparse: TypeAlias = Any  # scipy.sparse.csr_array, whose operators the stubs do not follow


@dataclass(frozen=True, slots=True)
class Cycles(Statistics):
    """Cycle statistics of comparisons.

    `graphs` has a row for each graph: annotator and task (null if not known), items, comparisons, and
    items_in_cycles.
    """

    statistics: tuple[Statistic, ...]
    graphs: pl.DataFrame
    notes: tuple[str, ...] = ()


def cycle_consistency(
    observations: Observations, *, seed: Seed = 0, replicates: int = 200, level: float = 0.95
) -> Cycles:
    """Look for contradictions in the comparisons of each annotator within each source.

    A graph holds the answers of one annotator in one task (or source). Where no annotator has several comparisons in a
    task, it holds their answers about items that comparisons connect, such as the outputs for one source: comparisons
    of different sources cannot contradict each other. Without annotators, a graph holds all answers in a task.

    Ties are collapsed into one vertex; a strongly connected
    component with more than one vertex, or an item beaten by one it ties with, is a contradiction
    (Pighin et al. 2012, §3.1 and §4.1).

    Statistics: the proportions of graphs with a cycle, of items in no cycle, and of circular triads among those with
    all three pairs decided (1/4 by chance); and the mean of Kendall's coefficient of consistence ζ over the graphs in
    which every pair was decided exactly once.

    Intervals are resampled over annotators if there are several, otherwise over graphs.
    """
    bootstrap = Bootstrap.of(seed, replicates, level)
    if not observations.has_comparisons:
        raise DataError(f"cycles need comparisons or rankings; these are {observations.kind}.")
    observations = observations.to_comparisons()
    if not len(observations) or not (observations.knows_annotators or observations.knows_tasks):
        why = "undefined: without annotators or tasks, contradictions between annotators would count as cycles"
        why = why if len(observations) else "undefined: there are no comparisons"
        return Cycles(tuple(Statistic(name, None, note=why) for name in GRAPHS), _no_graphs())
    graphs = _Graphs.of(observations)
    contradicted = graphs.contradicted()
    cluster, unit = graphs.clusters()
    names = None if cluster is None else graphs.annotator_names(observations.annotators)
    count = len(graphs.start)
    items = np.bincount(graphs.of_vertex, minlength=count).astype(np.float64)
    inside = row_sums(graphs.of_vertex, contradicted, count)
    basis = f"{count:,} graphs of {int(items.sum()):,} items and {len(observations):,} comparisons"
    statistics = [
        proportion(
            GRAPHS[0],
            (inside > 0).astype(np.float64),
            np.ones(count),
            bootstrap,
            unit=unit,
            note=basis,
            undefined="",
            cluster=cluster,
            counted="graphs",
            names=names,
        ),
        proportion(
            GRAPHS[1],
            items - inside,
            items,
            bootstrap,
            unit=unit,
            note=basis,
            undefined="",
            cluster=cluster,
            counted="graphs",
            names=names,
        ),
        *graphs.triads(bootstrap, cluster, unit),
    ]
    notes = [f"a graph is {graphs.what}"]
    return Cycles(tuple(statistics), graphs.table(observations, items, inside), tuple(notes))


def _no_graphs() -> pl.DataFrame:
    return pl.DataFrame(
        schema={
            "annotator": pl.String,
            "task": pl.String,
            "items": pl.Int64,
            "comparisons": pl.Int64,
            "items_in_cycles": pl.Int64,
        }
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Graphs:
    """The disjoint union of all graphs: a vertex is an item within a graph.

    `graph`, `winner` and `loser` are per comparison (for a tie, either item is the winner); `start` is the
    first row of each graph.
    """

    what: str
    graph: Codes
    start: Codes
    winner: Codes
    loser: Codes
    tied: NDArray[np.bool_]
    of_vertex: Codes
    annotator: NDArray[np.int32] | None

    @classmethod
    def of(cls, comparisons: Comparisons) -> _Graphs:
        by = [comparisons.annotator] if comparisons.knows_annotators else []
        by_task = _by_task(comparisons)
        by.append(comparisons.task if by_task else islands(comparisons)[comparisons.left])
        graph = group_codes(*by)
        start = np.zeros(int(graph.max()) + 1, np.int64)
        start[graph[::-1]] = np.arange(len(graph))[::-1]
        turned = comparisons.outcome < 0
        winner = np.where(turned, comparisons.right, comparisons.left)
        loser = np.where(turned, comparisons.left, comparisons.right)
        vertex = group_codes(np.concatenate([graph, graph]), np.concatenate([winner, loser]))
        of_vertex = np.zeros(int(vertex.max()) + 1, np.int64)
        of_vertex[vertex] = np.concatenate([graph, graph])
        whose = "the answers of one annotator" if comparisons.knows_annotators else "all answers"
        what = whose + (" in one task" if by_task else " about items that comparisons connect")
        annotator = comparisons.annotator[start] if comparisons.knows_annotators else None
        count = len(graph)
        return cls(what, graph, start, vertex[:count], vertex[count:], comparisons.outcome == 0, of_vertex, annotator)

    def clusters(self) -> tuple[Codes | None, str]:
        """Return each graph's annotator (coded from 0) if there are several, and the name of the resampling unit."""
        if self.annotator is None:
            return None, "graphs"
        cluster = np.unique(self.annotator, return_inverse=True)[1].astype(np.int64)
        return (cluster, "annotators") if cluster.max() > 0 else (None, "graphs")

    def annotator_names(self, annotators: Index) -> Names:
        """Return a function that names the annotators coded by `clusters`."""
        codes = np.empty(0, np.int32) if self.annotator is None else np.unique(self.annotator)
        return lambda: tuple(annotators[int(code)] for code in codes)

    def _edges(self, a: Codes, b: Codes, count: int) -> _Sparse:
        edges = sparse.csr_array((np.ones(len(a)), (a, b)), shape=(count, count))
        edges.sum_duplicates()
        return edges

    def contradicted(self) -> FloatArray:
        """Return 1 for each vertex that lies on a cycle once ties are collapsed, else 0."""
        count = len(self.of_vertex)
        ties = self._edges(self.winner[self.tied], self.loser[self.tied], count)
        level = csgraph.connected_components(ties, directed=False)[1].astype(np.int64)
        over, under = level[self.winner[~self.tied]], level[self.loser[~self.tied]]
        component = csgraph.connected_components(
            self._edges(over, under, int(level.max()) + 1), directed=True, connection="strong"
        )[1]
        bad = np.bincount(component) > 1
        bad[component[over[over == under]]] = True  # beaten by an item it ties with
        inside: FloatArray = bad[component[level]].astype(np.float64)
        return inside

    def triads(self, bootstrap: Bootstrap, cluster: Codes | None, unit: str) -> list[Statistic]:
        """Compute the proportion of circular triads, and ζ over the complete graphs."""
        count, decided = len(self.of_vertex), ~self.tied
        net = self._edges(self.winner[decided], self.loser[decided], count)
        net = net - net.T
        beats = sparse.csr_array((net > 0).astype(np.float64))
        either = beats + beats.T
        degree = either.sum(axis=1)
        if float((degree**2).sum()) > WEDGE_LIMIT:
            why = "not computed: too many comparisons share an item; analyse fewer items or graphs at a time"
            return [Statistic(name, None, note=why) for name in GRAPHS[2:]]
        # A circular triad a > b > c > a is counted at each of its vertices, a triangle at both ends of its edges.
        circular = row_sums(self.of_vertex, (beats @ beats).multiply(beats.T).sum(axis=1) / 3, len(self.start))
        triads = row_sums(self.of_vertex, (either @ either).multiply(either).sum(axis=1) / 6, len(self.start))
        some = np.flatnonzero(triads > 0.5)
        if not len(some):
            why = "undefined: no three items were all compared with each other without ties"
            return [Statistic(name, None, note=why) for name in GRAPHS[2:]]
        share = proportion(
            GRAPHS[2],
            circular[some],
            triads[some],
            bootstrap,
            unit=unit,
            note=f"{round(circular.sum()):,} of {round(triads.sum()):,} triads; a quarter by chance",
            undefined="",
            cluster=_renumbered(cluster, some),
            counted="graphs",
        )
        return [share, self._zeta(circular, either, bootstrap, cluster, unit)]

    def _zeta(
        self, circular: FloatArray, either: _Sparse, bootstrap: Bootstrap, cluster: Codes | None, unit: str
    ) -> Statistic:
        n = np.bincount(self.of_vertex).astype(np.float64)
        pairs = row_sums(self.of_vertex, either.sum(axis=1), len(self.start)) / 2
        comparisons = np.bincount(self.graph)
        complete = np.flatnonzero((pairs == n * (n - 1) / 2) & (comparisons == pairs) & (n > 2))
        if not len(complete):
            why = "undefined: in no graph was every pair of items decided exactly once"
            return Statistic(GRAPHS[3], None, note=why)
        size = n[complete]
        most = (size**3 - np.where(size % 2 == 1, size, 4 * size)) / 24
        return bootstrap.statistic(
            GRAPHS[3],
            weighted_proportion(1 - circular[complete] / most, np.ones(len(complete))),
            len(complete) if cluster is None else len(np.unique(cluster[complete])),
            unit=unit,
            note=f"mean of Kendall's ζ over {len(complete):,} complete graphs",
            undefined="",
            low=0.0,
            cluster=_renumbered(cluster, complete),
        )

    def table(self, comparisons: Comparisons, items: FloatArray, inside: FloatArray) -> pl.DataFrame:
        """Return one row for each graph."""
        annotator = comparisons.annotator[self.start] if comparisons.knows_annotators else None
        task = comparisons.task[self.start] if comparisons.knows_tasks else None
        size = len(self.start)

        def names(codes: NDArray[np.int32] | None, ids: tuple[str, ...]) -> pl.Series:
            if codes is None:
                return pl.Series([None] * size, dtype=pl.String)
            return pl.Series(ids, dtype=pl.String).gather(codes)

        return pl.DataFrame(
            {
                "annotator": names(annotator, comparisons.annotators.ids),
                "task": names(task, comparisons.tasks.ids),
                "items": items.astype(np.int64),
                "comparisons": np.bincount(self.graph).astype(np.int64),
                "items_in_cycles": inside.astype(np.int64),
            }
        )


def _by_task(comparisons: Comparisons) -> bool:
    """Whether graphs are tasks: annotators are not known, or an answer to a task holds several comparisons."""
    if not comparisons.knows_tasks or not comparisons.knows_annotators:
        return comparisons.knows_tasks
    return int(group_codes(comparisons.annotator, comparisons.task).max()) + 1 < len(comparisons)


def _renumbered(cluster: Codes | None, graphs: Codes) -> Codes | None:
    if cluster is None:
        return None
    return np.unique(cluster[graphs], return_inverse=True)[1].astype(np.int64)
