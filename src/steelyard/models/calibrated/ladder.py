"""Which differences between annotators the calibrated scale models: a ladder whose rungs must earn their place.

Each rung adds one kind of difference: bias, slope (scale use), noise, random answering. All rungs predict the same
held-out judgments (cross-validation), and the one with the lowest error is used. What counts is how well the
*answer* is predicted, each annotator's errors relative to that annotator's usual error: predicting that somebody's
answers hardly vary does not count as knowing where the items lie.

Bias is always modelled where annotators are named: pooling takes it to 0 where annotators do not differ. Slope and
noise weight annotators against each other, which takes a population of annotators: with few of them, those who resemble
each other (two models of one family, two students of one teacher) pass for the precise ones. So with fewer than ten
annotators only bias is modelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from steelyard.models.calibrated.chain import Chain, HoldOut
from steelyard.models.calibrated.evidence import Evidence
from steelyard.models.calibrated.responder_kernels import Ladder
from steelyard.observations import FloatArray

RUNGS = {
    "none": Ladder(bias=False, slope=False, noise=False, random=False),
    "bias": Ladder(bias=True, slope=False, noise=False, random=False),
    "slope": Ladder(bias=True, slope=True, noise=False, random=False),
    "noise": Ladder(bias=True, slope=True, noise=True, random=False),
    "random": Ladder(bias=True, slope=True, noise=True, random=True),
}
"""The rungs by the difference that each adds."""

RATED_RUNGS = ("bias", "slope", "noise", "random")
COMPARED_RUNGS = ("none", "slope", "random")
"""Comparisons say nothing of bias, and their noise is the inverse of the slope."""

FEW_ANNOTATORS = 10
"""Number of annotators below which only bias is modelled.

In 240 recorded panels of two to eight annotators, weighting annotators lost more than .05 of the correlation with
other annotators in 4 % of the panels and gained nothing on average; subtracting bias did in one panel."""

FOLDS = ((5_000, 5), (20_000, 3))
"""Numbers of folds up to so many rows; above, one fifth is held out once."""

BURN_IN, DRAWS = 60, 60
"""Sweeps that are discarded and kept for each rung and fold."""

PRIOR_ERRORS = 2.0
"""Number of average errors with which an annotator's usual error is pooled."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The rung in use, and the cross-validated error of each rung that was tried, relative to the simplest."""

    rung: str
    error: dict[str, float] = field(default_factory=dict)

    @property
    def tried(self) -> tuple[str, ...]:
        """The rungs that were compared, the simplest first."""
        return tuple(self.error)

    @property
    def gain(self) -> float:
        """How much lower the error of the rung in use is than that of the simplest, as a fraction."""
        return 1.0 - self.error.get(self.rung, 1.0)


def choose_rung(evidence: Evidence, seed: np.random.SeedSequence) -> Choice:
    """Choose the rung that predicts held-out judgments best; the simpler one of two that are equal."""
    is_rated = any(g.rates for g in evidence.groups)
    names = RATED_RUNGS if is_rated else COMPARED_RUNGS
    own = ~evidence.fixed & ~evidence.gold
    count = len(np.unique(evidence.annotator[own]))
    if count < FEW_ANNOTATORS:
        return Choice(names[0] if count > 1 else "none")
    losses = _cross_validate(evidence, names, seed)
    error = {name: loss / losses[0] for name, loss in zip(names, losses, strict=True)}
    return Choice(min(names, key=lambda name: error[name]), error)


def _cross_validate(evidence: Evidence, names: Sequence[str], seed: np.random.SeedSequence) -> list[float]:
    """Return the mean loss of every rung over the held-out rows: squared errors of ratings, log losses of others."""
    fold_seed, *starts = seed.spawn(6)
    folds = _folds(evidence, np.random.default_rng(fold_seed))
    jobs = [(name, fold, start) for fold, start in zip(folds, starts, strict=False) for name in names]

    def predicted(job: tuple[str, HoldOut, np.random.SeedSequence]) -> tuple[FloatArray, FloatArray]:
        name, fold, start = job
        trace = Chain(evidence, np.random.default_rng(start), RUNGS[name], held_out=fold).collect(BURN_IN, DRAWS)
        masks = (fold.ratings, fold.pairs, fold.tuples)
        answer, *chances = (score[mask] / DRAWS for score, mask in zip(trace.score, masks, strict=True))
        return (answer - evidence.ratings.value[fold.ratings]) ** 2, -np.log(np.maximum(np.concatenate(chances), 1e-12))

    with ThreadPoolExecutor(2) as threads:
        parts = list(threads.map(predicted, jobs))
    squares, logs = (
        [np.concatenate([part[which] for part in parts[at :: len(names)]]) for at in range(len(names))]
        for which in (0, 1)
    )
    who = np.repeat(np.arange(len(evidence.annotator)), np.diff(evidence.ratings.first))
    who = np.concatenate([who[fold.ratings] for fold in folds])
    usual = _usual_error(squares[0], who)
    count = max(len(squares[0]) + len(logs[0]), 1)
    return [float((square / usual).sum() / 2 + log.sum()) / count for square, log in zip(squares, logs, strict=True)]


def _usual_error(squares: FloatArray, who: NDArray[np.integer]) -> FloatArray:
    """Return for every row the mean squared error of its annotator, pooled with that of all."""
    if len(squares) == 0:
        return squares
    mean = max(float(squares.mean()), 1e-12)
    total, count = np.bincount(who, squares), np.bincount(who)
    return np.asarray(((total + PRIOR_ERRORS * mean) / (count + PRIOR_ERRORS))[who])


def _folds(evidence: Evidence, rng: np.random.Generator) -> list[HoldOut]:
    """Divide the rows of annotators with parameters of their own into folds at random."""
    n_ratings, n_pairs, n_tuples = len(evidence.ratings.item), len(evidence.pairs.left), len(evidence.tuples.responder)
    count = next((folds for rows, folds in FOLDS if evidence.n_rows <= rows), 1)
    fold = rng.permutation(n_ratings + n_pairs + n_tuples) % (count if count > 1 else 5)
    of_rating = np.repeat(np.arange(len(evidence.annotator)), np.diff(evidence.ratings.first))
    responder = np.concatenate([of_rating, evidence.pairs.responder, evidence.tuples.responder])
    fold[(evidence.fixed | evidence.gold)[responder]] = -1
    parts = np.split(fold, [n_ratings, n_ratings + n_pairs])
    return [HoldOut(*(part == number for part in parts)) for number in range(count)]
