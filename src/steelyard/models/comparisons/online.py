"""What the online comparison models share: the order of comparisons, resampled passes, gaps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from steelyard.errors import NoEvidenceError, SteelyardWarning
from steelyard.models.comparisons.paired import Gaps
from steelyard.models.inference.resampling import Units, Weights, replicate_weights
from steelyard.models.table import ALONE, Uncertainty
from steelyard.observations import Comparisons, FloatArray, Index, IntArray, Rankings

NOT_COMPARABLE = "a share of wins does not say against whom; bradley_terry does"
ORDER_MATTERS = "the order of the comparisons matters: the same ones in another order give other scores"


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Comparisons in the order of the pass, cut into mini-batches; `row` says which comparison each one is."""

    left: IntArray
    right: IntArray
    outcome: NDArray[np.int8]
    start: NDArray[np.int64]
    row: NDArray[np.int64]

    @classmethod
    def of(cls, comparisons: Comparisons) -> Matches:
        """Put an annotator's answer to a task into one mini-batch, where tasks are known; else go one by one."""
        n = len(comparisons)
        rows = np.arange(n)
        if not comparisons.knows_tasks:
            return cls(comparisons.left, comparisons.right, comparisons.outcome, np.arange(n + 1), rows)
        answer = comparisons.task.astype(np.int64) * (len(comparisons.annotators) + 1) + comparisons.annotator + 1
        _, first, code = np.unique(answer, return_index=True, return_inverse=True)
        # An answer takes its place when its first comparison comes.
        rows = np.argsort(first[code], kind="stable")
        ends = np.cumsum(np.bincount(code)[np.argsort(first)])
        return cls(
            comparisons.left[rows], comparisons.right[rows], comparisons.outcome[rows], np.r_[np.int64(0), ends], rows
        )

    def equally(self) -> tuple[IntArray, Weights]:
        """Return the units and weights of a pass in which every comparison counts once."""
        return np.zeros(len(self.row), np.int32), np.ones(1, np.uint8)


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
    run: Callable[[IntArray, Weights, NDArray[np.bool_]], FloatArray],
    comparisons: Comparisons,
    matches: Matches,
    judgments: IntArray,
    *,
    replicates: int,
    seed: int,
    level: float,
) -> tuple[Uncertainty, tuple[str, ...]]:
    """Resample whole passes over the comparisons; return the uncertainty and what to note about it.

    The order stays as it was. A unit drawn k times has each of its updates multiplied by k, as if its copies
    stood in one mini-batch; one drawn 0 times is passed over. `run(unit, weight, seen)` makes one pass from
    the start, marks the items it saw, and returns the scores.
    """
    units = Units.of(comparisons)
    draws = np.empty((replicates, len(judgments)))
    unit = units.of_row[matches.row]
    for replicate, weight in enumerate(replicate_weights(units, replicates, seed)):
        is_seen = np.zeros(len(judgments), np.bool_)
        score = run(unit, weight, is_seen)
        draws[replicate] = np.where(is_seen, score, np.nan)
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


def gap_notes(
    name: str, comparisons: Comparisons, so: str = "only the common start holds it in place"
) -> tuple[str, ...]:
    """Say what `gaps_said` does of some comparisons."""
    return gaps_said(
        name, comparisons.items, *won_and_lost(comparisons.left, comparisons.right, comparisons.outcome), so
    )


def gaps_said(name: str, items: Index, winner: IntArray, loser: IntArray, so: str) -> tuple[str, ...]:
    """Warn of islands and of items never beaten or never winning, name them, and return the notes for the fit."""
    compared = np.zeros(len(items), np.bool_)
    compared[winner] = compared[loser] = True
    code = np.cumsum(compared, dtype=np.int32) - 1
    names = [name for name, is_compared in zip(items.ids, compared, strict=True) if is_compared]
    sentences = Gaps.find(code[winner], code[loser], names).sentences()
    notes = tuple(f"{sentence}: {so}" for sentence in sentences)
    for note in notes:
        warnings.warn(f"{name}: {note}.", SteelyardWarning, stacklevel=4)
    return notes
