"""Compiled predictions of judgments that are held out, by which the ladder of the calibrated scale chooses."""

from __future__ import annotations

from math import exp, inf, log, sqrt

import numpy as np

from steelyard.models.calibrated.chain_state import Draw, Problem
from steelyard.models.calibrated.gibbs_kernels import HELD_OUT, guessing_chance, pair_chance, typical_response
from steelyard.models.calibrated.online_kernels import below, density
from steelyard.models.calibrated.responder_kernels import FLOOR, INTERCEPT, LOG_NOISE, LOG_SLOPE, Crowd, variance_of
from steelyard.models.compiled import compiled_part
from steelyard.observations import FloatArray


@compiled_part
def predict_ratings(problem: Problem, draw: Draw, crowd: Crowd, answer: FloatArray, chance: FloatArray) -> None:
    """Add up the expected answers, on [0, 1], and the predictive densities of the ratings that are held out."""
    first, item, shift_of, lower, upper, _ = problem.rows.ratings
    whole = problem.whole.ratings
    at, out, spread = np.empty(1), np.empty(1), np.zeros(1)
    for r in range(len(first) - 1):
        line, g = crowd.line[r], crowd.group[r]
        noise = variance_of(line[LOG_NOISE], crowd.population[g, FLOOR])
        slope, sd = exp(line[LOG_SLOPE]), sqrt(noise)
        for o in range(first[r], first[r + 1]):
            if not (lower[o] == -inf and upper[o] == inf):
                continue
            at[0] = line[INTERCEPT] + slope * (draw.x[item[o]] - problem.origin) + draw.shift[shift_of[o]]
            low, high = (whole.lower[o] - at[0]) / sd, (whole.upper[o] - at[0]) / sd
            chance[o] += density(low) / sd if low == high else below(high) - below(low)
            if problem.bounded[g]:
                typical_response(at, spread, noise, problem.edges[g, : problem.steps[g]], out)
                answer[o] += out[0]
            else:
                answer[o] += at[0]


@compiled_part
def score_pairs(problem: Problem, draw: Draw, crowd: Crowd, score: FloatArray, direction: FloatArray) -> None:
    """Add up the predictive probabilities of the comparisons that are held out, and of the winners of decided ones.

    The probability of a winner is given that one is named; for ties, 1 is added.
    """
    left, right, responder, outcome, _, _ = problem.rows.pairs
    cuts = draw.cuts[0]
    guess = guessing_chance(cuts)
    for m in range(len(left)):
        if outcome[m] == HELD_OUT:
            r = responder[m]
            middle = exp(crowd.line[r, LOG_SLOPE]) * (draw.x[left[m]] - draw.x[right[m]])
            chance = pair_chance(middle, problem.whole.pairs.outcome[m], cuts)
            score[m] += (1.0 - draw.lapse_rate[r]) * chance + draw.lapse_rate[r] * guess
            sign = np.sign(problem.whole.pairs.outcome[m])
            win, loss = below(sign * middle - cuts[0]), below(-sign * middle - cuts[0])
            lapses = draw.lapse_rate[r] * guess * len(cuts)
            win, loss = (1.0 - draw.lapse_rate[r]) * win + lapses, (1.0 - draw.lapse_rate[r]) * loss + lapses
            direction[m] += win / (win + loss) if sign != 0 and win + loss > 0.0 else 1.0


@compiled_part
def score_tuples(problem: Problem, draw: Draw, crowd: Crowd, score: FloatArray) -> None:
    """Add up scores of held-out tuples: the geometric mean of the probabilities of the pairs that each orders."""
    first, item, tier, responder = problem.rows.tuples
    for t in range(len(first) - 1):
        if responder[t] >= 0:
            continue
        slope = exp(crowd.line[problem.whole.tuples.responder[t], LOG_SLOPE])
        total, count = 0.0, 0
        for i in range(first[t], first[t + 1]):
            for j in range(i + 1, first[t + 1]):
                if tier[j] > tier[i]:
                    total += log(max(below(slope * (draw.x[item[i]] - draw.x[item[j]])), 1e-300))
                    count += 1
        score[t] += exp(total / count) if count else 1.0
