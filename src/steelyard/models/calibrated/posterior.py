"""Posterior draws of the calibrated scale: several chains from dispersed starts, run until they agree."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count as count_up

import numpy as np
from scipy import special

from steelyard.models.calibrated.chain import STARTS, Chain, simple_estimate
from steelyard.models.calibrated.chain_state import MEAN, SD, Trace
from steelyard.models.calibrated.evidence import Evidence
from steelyard.models.calibrated.gibbs_kernels import typical_response
from steelyard.models.calibrated.responder_kernels import (
    FLOOR,
    INTERCEPT,
    KAPPA,
    LAMBDA,
    LOG_NOISE,
    LOG_SLOPE,
    OMEGA_A,
    OMEGA_B,
    OMEGA_L,
    Ladder,
)
from steelyard.models.inference.diagnostics import bulk_ess, rhat, tail_ess
from steelyard.observations import FloatArray

CHAINS = 4

RHAT_LIMIT, ESS_LIMIT = 1.05, 100.0
"""Largest R̂ and smallest effective sample size, over items and population parameters, of chains that have converged."""

PRECISE_ESS, PRECISE_WORK = 400.0, 1_000_000
"""Effective sample size that is aimed at where it costs little: up to this many rows times draws. At 100, the Monte
Carlo error of a score is a tenth of its sd, which lowers correlations with true scores by an estimated .002."""

NEGLIGIBLE = 0.02
"""Population sd of log slopes and log noise below which annotators count as equal in diagnostics; of bias, a tenth."""

BURN_IN, LARGE_BURN_IN, COMPARED_BURN_IN = 150, 80, 25
"""Sweeps that every chain discards at first; fewer where there are many ratings, or many comparisons."""

MANY_ROWS, MANY_DRAWS, MANY_COMPARED_DRAWS = 200_000, 700, 508
"""Above this many rows, the maximum number of draws: of ratings, and of comparisons. Every second sweep is kept.
Locations are estimated precisely there."""

MOST_WORK = 100_000_000
"""Most rows times sweeps for which a chain is run again, twice as long, if it has not converged."""

MOST_ROUNDS = 4
"""Number of times that chains are run, each time twice as long, before they are used as they are."""

SMALL_TRACE, MOST_DRAWS = 500_000, 32_000
"""Locations in the trace of a chain, and draws, up to which chains are run still longer: a small study, whose
population parameters are hardly determined, can afford that."""

MOST_ITEMS = 2_000
"""Number of items, evenly chosen, for which convergence is diagnosed."""


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Convergence of the chains: the largest R̂, and the smallest effective sample sizes."""

    rhat: float
    bulk_ess: float
    tail_ess: float
    where: str
    """What has the largest R̂: "items" or the population parameters."""

    @property
    def converged(self) -> bool:
        """Whether the draws can be trusted."""
        return self.rhat <= RHAT_LIMIT and min(self.bulk_ess, self.tail_ess) >= ESS_LIMIT

    @property
    def is_precise(self) -> bool:
        """Whether the Monte Carlo error hardly matters for scores."""
        return self.bulk_ess >= PRECISE_ESS


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Draws of all chains on one rung of the model."""

    evidence: Evidence
    rung: Ladder
    chains: tuple[Chain, ...]
    traces: tuple[Trace, ...]
    diagnostics: Diagnostics
    sweeps: int
    collected: int
    """Draws over which the sums by responder go; the traces may hold every second or third of them."""

    @property
    def x(self) -> FloatArray:
        """Locations of the items: draws × items. Those of compared items have mean 0 in each draw."""
        x = np.concatenate([trace.x for trace in self.traces])
        return x if self.evidence.groups[0].rates else x - x.mean(axis=1, keepdims=True)

    @property
    def population(self) -> FloatArray:
        """Population parameters: draws × groups × parameters."""
        return np.concatenate([trace.population for trace in self.traces])

    def explained(self) -> float | None:
        """Return the proportion of the items' variance that their covariates explain; None without covariates."""
        weights = np.concatenate([trace.weights for trace in self.traces])
        if not weights.shape[1]:
            return None
        variance = (weights**2).sum(axis=1)
        rest = np.concatenate([trace.common[:, 1] for trace in self.traces]) ** 2
        return float((variance / (variance + rest)).mean())

    def line(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and sd, by responder, of bias, slope, noise sd, lapse rate and whether random."""
        mean, square = (sum(trace.line[at] for trace in self.traces) / self.collected for at in (0, 1))
        return np.asarray(mean), np.sqrt(np.maximum(square - mean**2, 0.0))

    def answer_variance(self, population: FloatArray) -> FloatArray:
        """Return the variance of the responses of a typical annotator of the first group around an item's location."""
        bias = population[:, OMEGA_B] ** 2 if self.rung.bias else 0.0
        return np.asarray(np.exp(2 * population[:, LAMBDA]) + population[:, FLOOR] ** 2 + bias)

    def predicted(self, columns: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the locations of items without judgments from the prior given by their covariates: draws × items."""
        weights = np.concatenate([trace.weights for trace in self.traces])
        common = np.concatenate([trace.common for trace in self.traces])
        x = common[:, [MEAN]] + weights @ columns.T + common[:, [SD]] * rng.standard_normal((len(common), len(columns)))
        if not self.evidence.groups[0].rates:
            x -= np.concatenate([trace.x for trace in self.traces]).mean(axis=1, keepdims=True)
        return np.asarray(x, np.float64)

    def scores(self, x: FloatArray | None = None) -> FloatArray:
        """Return draws of the scores: the expected answer on [0, 1] for bounded ratings, else the location.

        `x` are draws of locations; those of the judged items by default.
        """
        group = self.evidence.groups[0]
        x = self.x if x is None else x
        if not (group.rates and group.bounded):
            return x
        scores, point = np.empty_like(x), np.zeros(x.shape[1])
        for at, variance in enumerate(self.answer_variance(self.population[:, 0])):
            typical_response(x[at], point, float(variance), group.edge, scores[at])
        return scores

    def predictive_coverage(self) -> float | None:
        """Return the fraction of the ratings, by probability, inside their 95 % posterior predictive intervals.

        A rating on a scale in steps, or at the end of a slider, counts by how much of its probability is inside.
        """
        ratings = self.evidence.ratings
        if len(ratings.item) == 0:
            return None
        who = np.repeat(np.arange(len(self.evidence.annotator)), np.diff(ratings.first))
        inside = []
        for chain in self.chains:
            line, population = chain.crowd.line[who], chain.crowd.population[chain.crowd.group[who]]
            sd = np.sqrt(np.exp(2 * line[:, LOG_NOISE]) + population[:, FLOOR] ** 2)
            middle = line[:, INTERCEPT] + chain.draw.shift[ratings.shift]
            middle += np.exp(line[:, LOG_SLOPE]) * (chain.draw.x[ratings.item] - chain.problem.origin)
            low, high = (ratings.lower - middle) / sd, (ratings.upper - middle) / sd
            total = special.ndtr(high) - special.ndtr(low)
            part = special.ndtr(np.clip(high, -1.96, 1.96)) - special.ndtr(np.clip(low, -1.96, 1.96))
            point = (np.abs(low) <= 1.96).astype(float)
            inside.append(np.where((low < high) & (total > 1e-12), part / np.maximum(total, 1e-300), point).mean())
        return float(np.mean(inside))

    def expected_wins(self) -> tuple[float, float] | None:
        """Return how often the item that the model expects to win a decided comparison should win, and does."""
        pairs = self.evidence.pairs
        decided = pairs.outcome != 0
        if not decided.any():
            return None
        slope, lapse = np.exp(self.chains[0].crowd.line[:, LOG_SLOPE]), self.chains[0].draw.lapse_rate
        left, right, who = pairs.left[decided], pairs.right[decided], pairs.responder[decided]
        margin = float(self.chains[0].draw.common[3])
        difference = slope[who] * (self.chains[0].draw.x[left] - self.chains[0].draw.x[right])
        for_it, against = (special.ndtr(sign * np.abs(difference) - margin) for sign in (1, -1))
        # All answers are equally likely in a lapse; those of all strengths are wins.
        answers = 2 * self.evidence.n_strengths + (margin > 0)
        guess = self.evidence.n_strengths / answers
        for_it, against = ((1 - lapse[who]) * chance + guess * lapse[who] for chance in (for_it, against))
        return float((for_it / (for_it + against)).mean()), float(
            (np.sign(difference) == np.sign(pairs.outcome[decided])).mean()
        )


def sample(evidence: Evidence, rung: Ladder, draws: int, seed: np.random.SeedSequence) -> Posterior:
    """Run the chains side by side; run them again, twice as long, while they have not converged.

    If fewer draws are requested than converged chains have (`ESS_LIMIT`), the chains are run only once.
    """
    is_large = evidence.n_rows > MANY_ROWS
    is_compared = len(evidence.pairs.left) > MANY_ROWS
    most = MANY_COMPARED_DRAWS if is_compared else MANY_DRAWS
    count = max(10, (min(draws, most) if is_large else draws) // CHAINS)
    estimate = simple_estimate(evidence)
    chains = tuple(
        Chain(evidence, np.random.default_rng(each), rung, STARTS[at % len(STARTS)], estimate=estimate)
        for at, each in enumerate(seed.spawn(CHAINS))
    )
    burn_in = COMPARED_BURN_IN if is_compared else LARGE_BURN_IN if is_large else BURN_IN
    sweeps = 0
    with ThreadPoolExecutor(2) as threads:
        for round_number in count_up():
            traces = tuple(threads.map(lambda chain, b=burn_in, n=count: chain.collect(b, n), chains))
            sweeps += CHAINS * (burn_in + count)
            diagnostics = diagnose(traces, evidence, rung)
            is_enough = diagnostics.is_precise or 2 * CHAINS * count * evidence.n_rows > PRECISE_WORK
            if diagnostics.converged and is_enough:
                break
            if draws < ESS_LIMIT or not _is_affordable(evidence, round_number + 1, 2 * count):
                break
            burn_in, count = 0, 2 * count
    thin = 2 if is_large else max(1, count * CHAINS // max(draws, CHAINS))
    traces = tuple(
        trace._replace(
            x=trace.x[::thin],
            population=trace.population[::thin],
            common=trace.common[::thin],
            weights=trace.weights[::thin],
        )
        for trace in traces
    )
    return Posterior(evidence, rung, chains, traces, diagnostics, sweeps, count * CHAINS)


def _is_affordable(evidence: Evidence, round_number: int, count: int) -> bool:
    """Whether chains may be run again, with this number of draws each."""
    if count * evidence.n_rows > MOST_WORK:
        return False
    return round_number < MOST_ROUNDS or (count * len(evidence.item) <= SMALL_TRACE and count <= MOST_DRAWS)


def diagnose(traces: tuple[Trace, ...], evidence: Evidence, rung: Ladder) -> Diagnostics:
    """Return R̂ and effective sample sizes over items and population parameters."""
    x = np.array([trace.x for trace in traces])
    if not evidence.groups[0].rates:
        x = x - x.mean(axis=2, keepdims=True)
    chosen = (
        np.unique(np.linspace(0, x.shape[2] - 1, MOST_ITEMS).astype(int)) if x.shape[2] > MOST_ITEMS else slice(None)
    )
    # On a scale of two steps the prior alone determines the noise: only slope / noise is identified.
    rates = np.array([group.rates and len(group.edge) != 1 for group in evidence.groups])
    # Whether annotators differ by one or by two per cent makes no difference, and a chain takes long to tell.
    population = np.array([trace.population for trace in traces])
    population[..., [OMEGA_A, OMEGA_L]] = np.maximum(population[..., [OMEGA_A, OMEGA_L]], NEGLIGIBLE)
    population[..., OMEGA_B] = np.maximum(population[..., OMEGA_B], NEGLIGIBLE / 10)
    active = [population[:, :, rates, at] for at, on in _parameters(rung) if on]
    if rung.slope and not evidence.fixed.all():
        identified = np.array([not group.rates or len(group.edge) != 1 for group in evidence.groups])
        active.append(population[:, :, identified, OMEGA_A])
    common = np.array([trace.common[:, 1:2] for trace in traces])
    weights = np.array([trace.weights for trace in traces])
    shared = np.concatenate([common, weights, *active], axis=2)
    gaps = [rhat(x[:, :, chosen]), rhat(shared)]
    largest = [float(gap.max(initial=1.0)) for gap in gaps]
    everything = np.concatenate([x[:, :, chosen], shared], axis=2)
    return Diagnostics(
        max(largest),
        float(bulk_ess(everything).min()),
        float(tail_ess(everything).min()),
        "items" if largest[0] >= largest[1] else "population parameters",
    )


def _parameters(rung: Ladder) -> tuple[tuple[int, bool], ...]:
    """Return the population parameters of ratings, and whether this rung estimates them."""
    return ((LAMBDA, True), (OMEGA_B, rung.bias), (KAPPA, rung.slope), (OMEGA_L, rung.noise))
