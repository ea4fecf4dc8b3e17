"""Compiled sweeps of the calibrated scale's Gibbs sampler: one chain of joint draws of items and annotators.

`gibbs_kernels` draws latent responses and items, `responder_kernels` annotators and their populations;
`marginal_kernels` and `joint_kernels` have moves that make the chain faster. Here these are put together.
"""

from __future__ import annotations

from math import exp, inf, sqrt

import numpy as np

from steelyard.models.calibrated.chain_state import (
    COMPARED_SD,
    MARGIN,
    RATED_SD,
    SD,
    SHIFT,
    SHIFT_SD,
    SWEEP,
    Draw,
    Problem,
    Rows,
    Trace,
)
from steelyard.models.calibrated.covariate_kernels import move_item_sd, move_weights
from steelyard.models.calibrated.gibbs_kernels import (
    Items,
    PairAnswers,
    Responders,
    ShiftSums,
    draw_items,
    draw_items_jointly,
    draw_pairs,
    draw_ratings,
    draw_shifts,
    draw_tuples,
)
from steelyard.models.calibrated.joint_kernels import (
    draw_item_population,
    draw_level,
    squares_of,
    stretch,
    stretch_shifts,
)
from steelyard.models.calibrated.marginal_kernels import (
    move_end_items,
    move_items,
    move_lapses,
    move_pairs,
    move_slope_sd,
    move_slopes,
)
from steelyard.models.calibrated.prediction_kernels import predict_ratings, score_pairs, score_tuples
from steelyard.models.calibrated.responder_kernels import (
    BETA,
    COUNT,
    FLOOR,
    INTERCEPT,
    LOG_NOISE,
    LOG_SLOPE,
    RANDOM,
    UU,
    ZU,
    ZZ,
    Crowd,
    U,
    Z,
    draw_population,
    draw_random,
    draw_responders,
    slice_sd,
    variance_of,
)
from steelyard.models.compiled import compiled, compiled_part, inlined
from steelyard.observations import FloatArray

MANY_PAIRS, RESPONSES_EVERY, SLOPES_EVERY = 100_000, 10, 3
"""Above this many comparisons, items are updated with the responses integrated out in every sweep. Draws given the
responses, and moves of the items' scale, slopes and lapse rates, which pass over all comparisons several times, are
made only every so many sweeps."""

ITEM_MOVES = 3
"""Every how many sweeps items are drawn with responses integrated out, which costs as much as one or two sweeps."""

RANDOM_AFTER = 20
"""Sweeps before anybody is classified as random: at first, items are not where annotators see them."""

STRETCHES = 4
"""Steps of the random walk of the items' scale against the slopes in a sweep."""


@compiled_part
def items_of(draw: Draw, origin: float) -> Items:
    """Return the items as the draws of `gibbs_kernels` take them."""
    return Items(draw.x, origin, draw.prior_mean, draw.common[SD] ** 2, draw.work[0], draw.work[1])


@compiled_part
def set_lines(crowd: Crowd, draw: Draw, intercept: FloatArray) -> None:
    """Copy intercepts, slopes and noise variances to where the draws of responses read them."""
    for r in range(len(crowd.line)):
        line = crowd.line[r]
        intercept[r] = line[INTERCEPT]
        draw.slope[r] = exp(line[LOG_SLOPE])
        draw.noise[r] = variance_of(line[LOG_NOISE], crowd.population[crowd.group[r], FLOOR])


@compiled_part
def add_up(rows: Rows, draw: Draw, crowd: Crowd, origin: float) -> None:
    """Fill the sums by responder from the latent responses."""
    sums = crowd.sums
    for r in range(len(sums)):
        for column in range(sums.shape[1]):
            sums[r, column] = 0.0
    first, item, shift_of, lower, upper, _ = rows.ratings
    for r in range(len(first) - 1):
        for o in range(first[r], first[r + 1]):
            if lower[o] == -inf and upper[o] == inf:
                continue
            u, z = draw.x[item[o]] - origin, draw.rating_response[o] - draw.shift[shift_of[o]]
            sums[r, COUNT] += 1.0
            sums[r, U] += u
            sums[r, UU] += u * u
            sums[r, Z] += z
            sums[r, ZU] += z * u
            sums[r, ZZ] += z * z
    pairs = rows.pairs
    for m in range(len(pairs.left)):
        if not draw.lapsed[m]:
            u = draw.x[pairs.left[m]] - draw.x[pairs.right[m]]
            sums[pairs.responder[m], UU] += u * u
            sums[pairs.responder[m], ZU] += u * draw.pair_response[m]
            sums[pairs.responder[m], ZZ] += draw.pair_response[m] ** 2
    tuples = rows.tuples
    for t in range(len(tuples.first) - 1):
        r = tuples.responder[t]
        if r < 0:
            continue
        for o in range(tuples.first[t], tuples.first[t + 1]):
            u = draw.x[tuples.item[o]] - origin
            sums[r, UU] += 2.0 * u * u
            sums[r, ZU] += 2.0 * u * draw.tuple_response[o]
            sums[r, ZZ] += 2.0 * draw.tuple_response[o] ** 2


@compiled_part
def move_with_covariates(rng: np.random.Generator, rows: Rows, draw: Draw, origin: float, is_rated: bool) -> None:
    """Move the weights of covariates and the items' sd, and the items with them."""
    scale = RATED_SD if is_rated else COMPARED_SD
    intercept = draw.responder_work[2]
    move_weights(rng, rows, draw, intercept, origin, scale)
    draw.common[SD] = move_item_sd(rng, rows, draw, intercept, origin, scale, draw.common[SD])


@inlined
def move_without_responses(rng: np.random.Generator, problem: Problem, draw: Draw, crowd: Crowd) -> None:
    """Make the moves for which the responses of comparisons are integrated out."""
    pairs, rung = problem.rows.pairs, problem.rung
    is_free = len(problem.rows.ratings.item) == 0 and len(problem.rows.tuples.item) == 0
    is_many, number = len(pairs.left) > MANY_PAIRS, int(draw.common[SWEEP])
    if not is_many or number % SLOPES_EVERY == 0 or draw.common[MARGIN] > 0.0:
        move_pairs(rng, pairs, draw, is_free)
    if is_free and (is_many or number % ITEM_MOVES == 0):
        move_items(rng, problem.of_item, draw)
    if is_many and number % SLOPES_EVERY != 0:
        return
    if rung.slope:
        move_slopes(rng, pairs, draw, crowd)
        for g in range(len(crowd.rates)):
            # The likelihood of choices and rankings is not integrated out: their groups keep their slopes.
            if crowd.compared[crowd.first[g]] > 0.0:
                move_slope_sd(rng, pairs, draw, crowd, g)
    if rung.random:
        move_lapses(rng, pairs, draw, crowd.compared, draw.responder_work[:2])


@inlined
def draw_with_responses(rng: np.random.Generator, problem: Problem, draw: Draw, crowd: Crowd) -> None:
    """Draw the responses, then items, shifts, annotators and their populations given the responses."""
    rows, rung, origin = problem.rows, problem.rung, problem.origin
    common, has_pairs = draw.common, len(rows.pairs.left) > 0
    responders = Responders(draw.responder_work[2], draw.slope, draw.noise, draw.lapse_rate, draw.shift)
    if len(rows.ratings.item):
        if int(common[SWEEP]) % ITEM_MOVES == 0:
            move_end_items(rng, problem, draw, responders)
        draw_ratings(rng, rows.ratings, draw.rating_response, items_of(draw, origin), responders)
    answers = PairAnswers(draw.pair_response, draw.lapsed, draw.cuts[0])
    if has_pairs:
        draw_pairs(rng, rows.pairs, answers, items_of(draw, origin), responders)
    if len(rows.tuples.item):
        draw_tuples(rng, rows.tuples, draw.tuple_response, items_of(draw, origin), responders)
    if has_pairs:
        draw_items_jointly(rng, items_of(draw, origin), rows.pairs, answers, responders, draw.work[2:])
    else:
        draw_items(rng, items_of(draw, origin), rows.pairs, answers, responders)
    if len(draw.shift) > 1:
        sums = ShiftSums(common[SHIFT] ** 2, draw.shift_work[0], draw.shift_work[1])
        draw_shifts(rng, rows.ratings, draw.rating_response, items_of(draw, origin), responders, sums)
        squares = squares_of(draw.shift, 0.0)
        common[SHIFT] = slice_sd(rng, common[SHIFT], float(len(draw.shift) - 1), squares, SHIFT_SD)
        stretch_shifts(rng, rows.ratings, draw, responders, origin)
    if len(draw.weights):
        move_with_covariates(rng, rows, draw, origin, crowd.rates[0])
    add_up(rows, draw, crowd, origin)
    draw_responders(rng, crowd, rung)
    for g in range(len(crowd.rates)):
        if rung.random and common[SWEEP] >= RANDOM_AFTER:
            draw_random(rng, crowd, g)
        draw_population(rng, crowd, rung, g)


@inlined
def sweep(rng: np.random.Generator, problem: Problem, draw: Draw, crowd: Crowd) -> None:
    """Draw every unknown once, given all others.

    With many comparisons and nothing else, most sweeps leave the responses out: drawing items given the responses is
    slower, and moves them less.
    """
    rows, common = problem.rows, draw.common
    set_lines(crowd, draw, draw.responder_work[2])
    if len(rows.pairs.left):
        move_without_responses(rng, problem, draw, crowd)
    is_only_pairs = len(rows.ratings.item) == 0 and len(rows.tuples.item) == 0
    if not (is_only_pairs and len(rows.pairs.left) > MANY_PAIRS) or int(common[SWEEP]) % RESPONSES_EVERY == 0:
        draw_with_responses(rng, problem, draw, crowd)
    draw_item_population(rng, draw, crowd.rates[0])
    draw_level(rng, rows, draw, crowd, problem.rung)
    if problem.rung.slope:
        for _ in range(STRETCHES):
            stretch(rng, draw, crowd, problem.origin)
    common[SWEEP] += 1.0


@compiled_part
def record(crowd: Crowd, draw: Draw, trace: Trace, at: int) -> None:
    """Keep the latest draw."""
    for i in range(len(draw.x)):
        trace.x[at, i] = draw.x[i]
    for g in range(len(crowd.population)):
        for parameter in range(crowd.population.shape[1]):
            trace.population[at, g, parameter] = crowd.population[g, parameter]
    for entry in range(4):
        trace.common[at, entry] = draw.common[entry]
    for k in range(len(draw.weights)):
        trace.weights[at, k] = draw.weights[k]
    for r in range(len(crowd.line)):
        line, prior = crowd.line[r], crowd.population[crowd.group[r]]
        noise = sqrt(variance_of(line[LOG_NOISE], prior[FLOOR]))
        values = (line[INTERCEPT] - prior[BETA], exp(line[LOG_SLOPE]), noise, draw.lapse_rate[r], line[RANDOM])
        for row in range(5):
            trace.line[0, row, r] += values[row]
            trace.line[1, row, r] += values[row] * values[row]


@compiled
def run(rng: np.random.Generator, problem: Problem, draw: Draw, crowd: Crowd, trace: Trace, burn_in: int) -> None:
    """Discard `burn_in` sweeps, then keep one draw for every row of the trace."""
    for at in range(-burn_in, len(trace.x)):
        sweep(rng, problem, draw, crowd)
        if at < 0:
            continue
        record(crowd, draw, trace, at)
        if len(trace.score[0]):
            predict_ratings(problem, draw, crowd, trace.score[3], trace.score[0])
        if len(trace.score[1]):
            score_pairs(problem, draw, crowd, trace.score[1], trace.score[4])
        if len(trace.score[2]):
            score_tuples(problem, draw, crowd, trace.score[2])
