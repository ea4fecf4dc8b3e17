"""One chain of the calibrated scale's sampler: its starting point, and its draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.models.calibrated.chain_kernels import run
from steelyard.models.calibrated.chain_state import Draw, EndRows, ItemRows, Problem, Rows, Trace
from steelyard.models.calibrated.evidence import BEYOND, GOLD_NOISE, Evidence, PairRows
from steelyard.models.calibrated.gibbs_kernels import HELD_OUT
from steelyard.models.calibrated.online import CalibratedState
from steelyard.models.calibrated.responder_kernels import (
    ALPHA,
    ALPHA_MEAN,
    BETA,
    FLOOR,
    INTERCEPT,
    INTERCEPT_SD,
    KAPPA,
    KAPPA_PRIOR,
    LAMBDA,
    LOG_NOISE,
    LOG_SLOPE,
    NOISE_SD,
    OMEGA_A,
    OMEGA_B,
    OMEGA_L,
    RANDOM_PRIOR,
    RANDOM_RATE,
    RATES,
    SLOPE_SD,
    TAIL_WEIGHT,
    Crowd,
    Ladder,
)
from steelyard.observations import UNKNOWN, FloatArray

ORIGIN = 0.5
"""Where slopes turn around, on a rating scale of length 1."""

SLIDER_FLOOR, STEP_FLOOR = 0.01, 0.2
"""Smallest noise sd of a rating: on a slider of length 1, and relative to a step of a scale in steps."""

USUAL_SPREAD = 0.2
"""Typical sd of items on a rating scale of length 1, from which the slopes of comparisons beside ratings start."""

END_PROPORTION = 0.4
"""Proportion of an item's ratings at an end of the scale from which it is drawn with responses integrated out."""

SEVERAL = 8
"""Number of wins, and of losses, from which the density of a compared item's location is nearly Gaussian."""

WITNESSES = 3
"""Number of other annotators with whom somebody must share items to be classified as random."""

STARTS = ("estimate", "random", "shrunken", "reversed")
"""Dispersed starting points, one for each chain in turn."""


@dataclass(frozen=True, slots=True)
class HoldOut:
    """Which ratings, comparisons and tuples a chain leaves out."""

    ratings: NDArray[np.bool_]
    pairs: NDArray[np.bool_]
    tuples: NDArray[np.bool_]


class Chain:
    """One chain on a rung of the model; `rng` is its only source of randomness.

    `estimate` is the result of `simple_estimate`, which chains on the same evidence can share.
    """

    def __init__(
        self,
        evidence: Evidence,
        rng: np.random.Generator,
        rung: Ladder,
        start: str = STARTS[0],
        *,
        held_out: HoldOut | None = None,
        estimate: FloatArray | None = None,
    ) -> None:
        self.rng = rng
        self.is_validated = held_out is not None
        whole = Rows(evidence.ratings, evidence.pairs, evidence.tuples)
        rows = _without(whole, held_out) if held_out else whole
        is_rated = evidence.groups[0].rates
        edges = np.zeros((len(evidence.groups), max(len(g.edge) for g in evidence.groups)))
        for number, group in enumerate(evidence.groups):
            edges[number, : len(group.edge)] = group.edge
        self.problem = Problem(
            rows,
            whole,
            _end_rows(evidence),
            _item_rows(rows.pairs, len(evidence.item)),
            rung,
            ORIGIN if is_rated else 0.0,
            np.array([group.bounded for group in evidence.groups]),
            np.array([len(group.edge) for group in evidence.groups], np.int64),
            edges,
        )
        self.crowd = _crowd(evidence, rung)
        x = simple_estimate(evidence) if estimate is None else estimate.copy()
        scale = USUAL_SPREAD if is_rated else 1.0
        if start == "random":
            x = self.problem.origin + scale * rng.standard_normal(len(x))
        elif start == "shrunken":
            x = x.mean() + 0.3 * (x - x.mean())
        elif start == "reversed":
            x = x.mean() - 0.5 * (x - x.mean())
        self.draw = _draw(evidence, self.crowd, x, rung)

    def collect(self, burn_in: int, draws: int) -> Trace:
        """Discard `burn_in` sweeps, then return the trace of `draws` more."""
        rows, n_responders = self.problem.rows, len(self.crowd.line)
        n_ratings, n_pairs = len(rows.ratings.item), len(rows.pairs.left)
        sizes = (n_ratings, n_pairs, len(rows.tuples.responder), n_ratings, n_pairs)
        trace = Trace(
            x=np.empty((draws, len(self.draw.x))),
            population=np.empty((draws, *self.crowd.population.shape)),
            common=np.empty((draws, 4)),
            weights=np.empty((draws, len(self.draw.weights))),
            line=np.zeros((2, 5, n_responders)),
            score=tuple(np.zeros(size if self.is_validated else 0) for size in sizes),  # type: ignore[arg-type]
        )
        run(self.rng, self.problem, self.draw, self.crowd, trace, burn_in)
        return trace


def _without(rows: Rows, held_out: HoldOut) -> Rows:
    """Mark the rows that are held out."""
    ratings, pairs, tuples = rows
    lower, upper = ratings.lower.copy(), ratings.upper.copy()
    lower[held_out.ratings], upper[held_out.ratings] = -np.inf, np.inf
    outcome = np.where(held_out.pairs, HELD_OUT, pairs.outcome).astype(np.int8)
    responder = np.where(held_out.tuples, UNKNOWN, tuples.responder).astype(np.int32)
    return Rows(
        ratings._replace(lower=lower, upper=upper),
        pairs._replace(outcome=outcome),
        tuples._replace(responder=responder),
    )


def _end_rows(evidence: Evidence) -> EndRows:
    """List the items that lie near an end of the scale by their ratings, if there are only ratings."""
    ratings, n_items = evidence.ratings, len(evidence.item)
    is_open = (ratings.lower < ratings.upper) & ((ratings.lower <= -BEYOND) | (ratings.upper >= 1 + BEYOND))
    count, at_end = (np.bincount(ratings.item, weight, minlength=n_items) for weight in (None, is_open))
    is_chosen = at_end > END_PROPORTION * count
    if len(evidence.pairs.left) or len(evidence.tuples.item):
        is_chosen[:] = False
    items = np.flatnonzero(is_chosen)
    rows = np.flatnonzero(is_chosen[ratings.item])
    rows = rows[np.argsort(ratings.item[rows], kind="stable")]
    start = np.append(0, np.cumsum(count[items])).astype(np.int64)
    responder = np.repeat(np.arange(len(evidence.annotator)), np.diff(ratings.first))
    return EndRows(items, start, rows, responder[rows])


def _item_rows(pairs: PairRows, n_items: int) -> ItemRows:
    """List the comparisons of every item that are not held out."""
    is_used = pairs.outcome != HELD_OUT
    left, right, responder = pairs.left[is_used], pairs.right[is_used], pairs.responder[is_used]
    outcome = pairs.outcome[is_used]
    item, won = np.concatenate([left, right]), np.concatenate([outcome, -outcome])
    order = np.argsort(item, kind="stable")
    start = np.searchsorted(item[order], np.arange(n_items + 1)).astype(np.int64)
    lead = np.bincount(item, np.sign(won), minlength=n_items)
    return ItemRows(
        start,
        np.concatenate([right, left])[order],
        np.concatenate([responder, responder])[order],
        won[order],
        # A tie is half a win and half a loss.
        np.diff(start) - np.abs(lead) >= 2 * SEVERAL,
    )


def _crowd(evidence: Evidence, rung: Ladder) -> Crowd:
    n_groups, n_responders = len(evidence.groups), len(evidence.annotator)
    group = np.repeat(np.arange(n_groups, dtype=np.int32), [g.last - g.first for g in evidence.groups])
    rates = np.array([g.rates for g in evidence.groups])
    population = np.zeros((n_groups, 11))
    population[:, [BETA, LAMBDA, KAPPA]] = ORIGIN, np.log(0.2), KAPPA_PRIOR[0]
    population[:, [OMEGA_B, OMEGA_A, OMEGA_L]] = INTERCEPT_SD / 2, SLOPE_SD / 2, NOISE_SD / 2
    population[:, RANDOM_RATE] = RANDOM_PRIOR[0] / sum(RANDOM_PRIOR)
    population[:, RATES] = rates
    for number, g in enumerate(evidence.groups):
        population[number, FLOOR] = (STEP_FLOOR / len(g.edge) if len(g.edge) else SLIDER_FLOOR) if g.rates else 0.0
        if number > 0 and g.rates != rates[0]:
            # Beside ratings, a comparison of items one sd apart has about one noise sd of difference; and conversely.
            population[number, ALPHA_MEAN] = np.log(USUAL_SPREAD if g.rates else 1 / USUAL_SPREAD)
    population[:, ALPHA] = population[:, ALPHA_MEAN]
    # Gold without ratings has a scale of its own, whose intercept and slope are estimated.
    own = ~evidence.fixed & (~evidence.gold | (group > 0))
    line = np.zeros((n_responders, 5))
    line[:, INTERCEPT] = population[group, BETA]
    line[:, LOG_SLOPE] = population[group, ALPHA]
    line[:, LOG_NOISE] = np.where(evidence.gold & ~own, np.log(GOLD_NOISE), population[group, LAMBDA])
    line[:, TAIL_WEIGHT] = 1.0
    first = np.array([g.first for g in evidence.groups] + [n_responders], np.int64)
    return Crowd(
        sums=np.zeros((n_responders, 6)),
        line=line,
        population=population,
        first=first,
        rates=rates,
        own=own,
        is_gold=evidence.gold,
        may_be_random=evidence.witnesses >= WITNESSES if rung.random else np.zeros(n_responders, np.bool_),
        group=group,
        compared=np.bincount(evidence.pairs.responder, minlength=n_responders).astype(np.float64),
    )


def _draw(evidence: Evidence, crowd: Crowd, x: FloatArray, rung: Ladder) -> Draw:
    n_items, n_responders, n_pairs = len(x), len(crowd.line), len(evidence.pairs.left)
    is_rated = bool(crowd.rates[0])
    shift = np.zeros(int(evidence.ratings.shift.max(initial=0)) + 1)
    has_ties = bool((evidence.pairs.outcome == 0).any())
    sd = float(np.clip(x.std(), 0.02, 1.0)) if is_rated else float(np.clip(x.std(), 0.2, 3.0))
    common = np.array([x.mean() if is_rated else 0.0, sd, 0.03, 0.3 if has_ties else 0.0, 0.1, 0.05, 0.0])
    columns = np.zeros((n_items, 0)) if evidence.columns is None else evidence.columns
    return Draw(
        x=x,
        prior_mean=np.full(n_items, common[0]),
        columns=columns,
        weights=np.zeros(columns.shape[1]),
        rating_response=np.clip(evidence.ratings.value, -1.0, 2.0),
        pair_response=np.zeros(n_pairs),
        lapsed=np.zeros(n_pairs, np.bool_),
        tuple_response=-evidence.tuples.tier.astype(np.float64),
        shift=shift,
        slope=np.ones(n_responders),
        noise=np.ones(n_responders),
        lapse_rate=np.full(n_responders, 0.02 if rung.random else 0.0),
        common=common,
        cuts=_start_cuts(evidence, common[3]),
        work=np.zeros((6, n_items)),
        shift_work=np.zeros((2, len(shift))),
        responder_work=np.zeros((3, n_responders)),
    )


def _start_cuts(evidence: Evidence, margin: float) -> FloatArray:
    cuts = np.zeros((3, evidence.n_strengths))
    cuts[0] = margin + 0.5 * np.arange(evidence.n_strengths)
    cuts[2] = 0.1
    return cuts


def simple_estimate(evidence: Evidence) -> FloatArray:
    """Return initial locations: mean ratings, or estimates from comparisons and tiers."""
    n_items = len(evidence.item)
    if evidence.groups[0].rates:
        last = int(evidence.ratings.first[evidence.groups[0].last])
        item = evidence.ratings.item[:last]
        count = np.bincount(item, minlength=n_items)
        total = np.bincount(item, evidence.ratings.value[:last], minlength=n_items)
        return np.where(count > 0, total / np.maximum(count, 1), total.sum() / max(last, 1))
    x = np.zeros(n_items)
    if len(evidence.pairs.left):
        state = CalibratedState(n_items, len(evidence.annotator), ties=bool((evidence.pairs.outcome == 0).any()))
        outcome = np.sign(evidence.pairs.outcome)
        state.learn(evidence.pairs.responder, evidence.pairs.left, evidence.pairs.right, outcome)
        state.refit(5)
        x = state.mean / (np.sqrt(2) * min(state.noise(UNKNOWN), 2.0))
    if len(evidence.tuples.item):
        tuples = evidence.tuples
        size = np.repeat(np.diff(tuples.first), np.diff(tuples.first))
        number = np.repeat(np.arange(len(tuples.responder)), np.diff(tuples.first))
        middle = np.bincount(number, tuples.tier) / np.maximum(np.bincount(number), 1)
        location = (middle[number] - tuples.tier) / np.maximum(size, 1)
        count = np.bincount(tuples.item, minlength=n_items)
        x = x + 2 * np.bincount(tuples.item, location, minlength=n_items) / np.maximum(count, 1)
    return np.asarray(x - x.mean())
