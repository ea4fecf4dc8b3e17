"""Common parts of the online comparison models: mini-batches, bootstrap passes, warnings about unconnected items."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from steelyard.errors import NoEvidenceError, SteelyardWarning
from steelyard.models.comparisons.online_kernels import MatchCounts, MiniBatches
from steelyard.models.comparisons.paired import Gaps
from steelyard.models.inference.resampling import Units, replicate_weights
from steelyard.models.table import ALONE, Uncertainty
from steelyard.observations import Comparisons, FloatArray, Index, IntArray, Rankings

NOT_COMPARABLE = "a win rate ignores the strength of the opponents; bradley_terry accounts for it"
ORDER_MATTERS = "the order of the comparisons matters: the same comparisons in a different order give different scores"


class Matches(NamedTuple):
    """Comparisons in the order of the pass, in mini-batches; `row` is the index of each in the observations."""

    batches: MiniBatches
    row: NDArray[np.int64]

    @classmethod
    def of(cls, comparisons: Comparisons) -> Matches:
        """Make each annotator's answer to a task one mini-batch; without tasks, each comparison is one."""
        n = len(comparisons)
        rows = np.arange(n)
        if not comparisons.knows_tasks:
            return cls(MiniBatches(comparisons.left, comparisons.right, comparisons.outcome, np.arange(n + 1)), rows)
        answer = comparisons.task.astype(np.int64) * (len(comparisons.annotators) + 1) + comparisons.annotator + 1
        _, first, code = np.unique(answer, return_index=True, return_inverse=True)
        # Answers are in the order of their first comparisons.
        rows = np.argsort(first[code], kind="stable")
        start = np.r_[np.int64(0), np.cumsum(np.bincount(code)[np.argsort(first)])]
        return cls(MiniBatches(comparisons.left[rows], comparisons.right[rows], comparisons.outcome[rows], start), rows)

    def count_once(self) -> MatchCounts:
        """Return the counts of a pass in which every comparison counts once."""
        return MatchCounts(np.zeros(len(self.row), np.int32), np.ones(1, np.uint8))


def as_comparisons(observations: Comparisons | Rankings) -> Comparisons:
    """Take a ranking as its pairs; each ranking is a task, if the source names none."""
    pairs = observations.to_comparisons()
    if len(pairs) == 0:
        raise NoEvidenceError("no two items are compared in these rankings.", "Collect rankings of two items or more.")
    if pairs is observations or observations.knows_tasks:
        return pairs
    ranking = np.repeat(np.arange(len(observations), dtype=np.int32), cast("Rankings", observations).pairs_per_ranking)
    return replace(pairs, tasks=Index(f"ranking {r + 1}" for r in range(len(observations))), task=ranking)


def both_sides(comparisons: Comparisons) -> tuple[IntArray, IntArray]:
    """List the items of all comparisons, left ones first, and the comparison of each."""
    rows = np.arange(len(comparisons), dtype=np.int32)
    return np.concatenate([comparisons.left, comparisons.right]), np.concatenate([rows, rows])


def resampled_uncertainty(
    run: Callable[[MatchCounts, NDArray[np.bool_]], FloatArray],
    comparisons: Comparisons,
    matches: Matches,
    judgments: IntArray,
    *,
    replicates: int,
    seed: int,
    level: float,
) -> tuple[Uncertainty, tuple[str, ...]]:
    """Resample whole passes over the comparisons; return the uncertainty and what to note about it.

    The order of the comparisons is kept. The updates of a unit that is drawn k times are multiplied by k, as if its
    copies were in one mini-batch. `run(counts, is_compared)` makes one pass from the start, marks the items in the
    comparisons that count, and returns the scores.
    """
    units = Units.of(comparisons)
    draws = np.empty((replicates, len(judgments)))
    unit = units.of_row[matches.row]
    for replicate, weight in enumerate(replicate_weights(units, replicates, seed)):
        is_compared = np.zeros(len(judgments), np.bool_)
        score = run(MatchCounts(unit, weight), is_compared)
        draws[replicate] = np.where(is_compared, score, np.nan)
    return uncertainty_of_draws(draws, units, comparisons, judgments, level)


def uncertainty_of_draws(
    draws: FloatArray, units: Units, comparisons: Comparisons, judgments: IntArray, level: float
) -> tuple[Uncertainty, tuple[str, ...]]:
    """Return the intervals of resampled scores and what to note; items with one unit have none."""
    # Single judgments are counted already, which saves sorting them.
    single_judgments = units.kind == "judgments"
    alone = judgments < 2 if single_judgments else units.per_item(*both_sides(comparisons), len(judgments)) < 2
    notes = (ALONE.format(units=units.kind),) if alone[judgments > 0].any() else ()
    return Uncertainty.from_draws(f"bootstrap({units.kind})", draws, level).without(alone), notes


def islands(comparisons: Comparisons) -> IntArray:
    """Return the island of every item: those with the same number are connected by a chain of comparisons."""
    n = len(comparisons.items)
    links = sparse.coo_array((np.ones(len(comparisons)), (comparisons.left, comparisons.right)), shape=(n, n))
    return np.asarray(csgraph.connected_components(links, directed=False)[1], np.int32)


def won_and_lost(left: IntArray, right: IntArray, outcome: NDArray[np.int8]) -> tuple[IntArray, IntArray]:
    """List who beat whom; a tie counts both ways."""
    up, down = outcome >= 0, outcome <= 0
    return np.concatenate([left[up], right[down]]), np.concatenate([right[up], left[down]])


def gap_notes(name: str, comparisons: Comparisons, so: str = "only the initial value determines it") -> tuple[str, ...]:
    """Warn of gaps in some comparisons, and return the notes."""
    return warn_of_gaps(
        name, comparisons.items, *won_and_lost(comparisons.left, comparisons.right, comparisons.outcome), so
    )


def warn_of_gaps(name: str, items: Index, winner: IntArray, loser: IntArray, so: str) -> tuple[str, ...]:
    """Warn of islands and of items never beaten or never winning, name them, and return the notes for the fit."""
    compared = np.zeros(len(items), np.bool_)
    compared[winner] = compared[loser] = True
    code = np.cumsum(compared, dtype=np.int32) - 1
    names = [name for name, is_compared in zip(items.ids, compared, strict=True) if is_compared]
    sentences = Gaps.find(code[winner], code[loser], names).sentences()
    notes = tuple(f"{sentence}; {so}" for sentence in sentences)
    for note in notes:
        warnings.warn(f"{name}: {note}.", SteelyardWarning, stacklevel=4)
    return notes
