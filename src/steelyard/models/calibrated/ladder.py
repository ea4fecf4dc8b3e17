"""Model selection of the calibrated scale: which differences between annotators are modelled.

Each rung adds one kind of difference: bias, slope (scale use), noise, random answering. All rungs predict the same
held-out judgments (cross-validation), and two questions are asked.

1. Do differences beyond bias help to locate the items? The *answers* must be predicted better than with bias alone,
   each annotator's errors relative to that annotator's usual error: predicting that somebody's answers hardly vary is
   not the same as knowing where the items lie. The winners of comparisons, choices and rankings must be predicted
   better by more than two standard errors: one is exceeded by chance in up to one study of six. Ties do not count here:
   predicting that somebody often answers with a tie is not the same as knowing where the items lie, either.
2. Which of them? The fullest rung whose predictive density is within one standard error (over annotators) of the best
   one. Pooling makes an unneeded difference cheap, while a crowd whose careless annotators are not modelled gets
   intervals that are too narrow.

Bias is always modelled where annotators are named: pooling takes it to 0 where annotators do not differ. Slope and
noise weight annotators against each other, which takes a population of annotators: with few of them, those who resemble
each other (two models of one family, two students of one teacher) pass for the precise ones. So with fewer than ten
annotators only bias is modelled. So it is where annotators disagree about the direction of the scale: weights would
follow the larger camp, where the average of both is the better summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from steelyard.models.calibrated.chain import Chain, HoldOut, simple_estimate
from steelyard.models.calibrated.checks import Opposition
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

In 200 recorded panels, weighting annotators lost more than .05 of the correlation with other annotators in 4 % of the
panels, all of them with two to eight annotators who rated the same items; subtracting bias did in one panel."""

FOLDS = ((5_000, 5), (20_000, 3))
"""Numbers of folds up to so many rows; above, one fifth is held out once."""

MOST_ROWS = 50_000
"""Responses from which the rung is chosen: those of annotators drawn at random where there are more."""

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


def choose_rung(evidence: Evidence, camps: Opposition, seed: np.random.SeedSequence) -> Choice:
    """Choose the rung with the best predictive density of held-out judgments, if it also predicts answers better."""
    is_rated = any(g.rates for g in evidence.groups)
    names = RATED_RUNGS if is_rated else COMPARED_RUNGS
    own = ~evidence.fixed & ~evidence.gold
    count = len(np.unique(evidence.annotator[own]))
    if count < FEW_ANNOTATORS or camps.is_divided:
        return Choice(names[0] if count > 1 else "none")
    sample_seed, fold_seed = seed.spawn(2)
    if evidence.n_rows > MOST_ROWS:
        evidence = evidence.sample(MOST_ROWS, FEW_ANNOTATORS, np.random.default_rng(sample_seed))
    errors, log_losses, directions = _cross_validate(evidence, names, fold_seed)
    error = {name: each / errors[0] for name, each in zip(names, errors, strict=True)}
    chosen = fullest(log_losses)
    is_better = errors[chosen] < errors[0] if is_rated else gains(directions, chosen)
    return Choice(names[chosen] if is_better else names[0], error)


def gains(losses: FloatArray, rung: int) -> bool:
    """Return whether a rung's loss (rungs × annotators) is more than two standard errors below the simplest one's."""
    difference = losses[0] - losses[rung]
    return bool(difference.sum() > 2 * np.sqrt(len(difference)) * difference.std(ddof=1))


def fullest(log_losses: FloatArray) -> int:
    """Return the last rung whose log loss (rungs × annotators) is within one standard error of the lowest."""
    totals = log_losses.sum(axis=1)
    best = int(totals.argmin())
    differences = log_losses - log_losses[best]
    errors = np.sqrt(log_losses.shape[1]) * differences.std(axis=1, ddof=1)
    return int(np.flatnonzero(differences.sum(axis=1) <= errors)[-1])


def _cross_validate(
    evidence: Evidence, names: Sequence[str], seed: np.random.SeedSequence
) -> tuple[list[float], FloatArray, FloatArray]:
    """Return the error of every rung's predictions of answers and winners, over held-out rows.

    Also its log loss by annotator: of whole judgments, and of the winners of comparisons, choices and rankings.
    """
    fold_seed, *starts = seed.spawn(6)
    folds = _folds(evidence, np.random.default_rng(fold_seed))
    estimate = simple_estimate(evidence)
    jobs = [(name, fold, start) for fold, start in zip(folds, starts, strict=False) for name in names]

    def predicted(job: tuple[str, HoldOut, np.random.SeedSequence]) -> tuple[FloatArray, ...]:
        name, fold, start = job
        chain = Chain(evidence, np.random.default_rng(start), RUNGS[name], held_out=fold, estimate=estimate)
        trace = chain.collect(BURN_IN, DRAWS)
        masks = (fold.ratings, fold.pairs, fold.tuples, fold.ratings, fold.pairs)
        rating, pair, order, answer, winner = (
            score[mask] / DRAWS for score, mask in zip(trace.score, masks, strict=True)
        )
        chances = (rating, np.concatenate([pair, order]), np.concatenate([winner, order]))
        losses = [-np.log(np.maximum(chance, 1e-12)) for chance in chances]
        return (answer - evidence.ratings.value[fold.ratings]) ** 2, *losses

    with ThreadPoolExecutor(2) as threads:
        parts = list(threads.map(predicted, jobs))
    squares, rated, compared, winners = (
        [np.concatenate([part[which] for part in parts[at :: len(names)]]) for at in range(len(names))]
        for which in range(4)
    )
    of_rating = np.repeat(np.arange(len(evidence.annotator)), np.diff(evidence.ratings.first))
    raters = np.concatenate([of_rating[fold.ratings] for fold in folds])
    judges = np.concatenate(
        [
            who
            for fold in folds
            for who in (evidence.pairs.responder[fold.pairs], evidence.tuples.responder[fold.tuples])
        ]
    )
    usual = _usual_error(squares[0], raters)
    errors = [float((square / usual).sum() / 2 + log.sum()) for square, log in zip(squares, winners, strict=True)]
    who = np.unique(evidence.annotator[np.concatenate([raters, judges])], return_inverse=True)[1]
    losses = [np.bincount(who, np.concatenate(both)) for both in zip(rated, compared, strict=True)]
    directions = [np.bincount(who[len(raters) :], each, minlength=len(losses[0])) for each in winners]
    return errors, np.array(losses), np.array(directions)


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
