"""Without judgments, the posterior is the prior: chains whose rows are all held out must draw from it.

Simulation-based calibration needs many replicates to see an error in the prior of a single parameter, such as a missing
Jacobian. One long chain sees it at once, and each prior is known in closed form.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.calibrated_prior import SCENES, draw_case
from steelyard.models.calibrated.chain import Chain, HoldOut
from steelyard.models.calibrated.chain_state import COMPARED_SD, MARGIN_PRIOR, MEAN_PRIOR, RATED_SD, SHIFT_SD
from steelyard.models.calibrated.covariates import uncorrelated
from steelyard.models.calibrated.ladder import RUNGS
from steelyard.models.calibrated.responder_kernels import (
    ALPHA,
    ALPHA_MEAN,
    BETA,
    INTERCEPT,
    INTERCEPT_PRIOR,
    INTERCEPT_SD,
    KAPPA,
    KAPPA_PRIOR,
    LAMBDA,
    LAPSE_PRIOR,
    LOG_NOISE,
    LOG_NOISE_PRIOR,
    LOG_SLOPE,
    NOISE_SD,
    OMEGA_A,
    OMEGA_B,
    OMEGA_L,
    RANDOM,
    RANDOM_NOISE,
    RANDOM_PRIOR,
    RANDOM_RATE,
    RANDOM_SLOPE,
    SLOPE_PRIOR_SD,
    SLOPE_SD,
    TAIL,
)
from steelyard.models.inference.diagnostics import bulk_ess
from tests.sizes import FULL

pytestmark = pytest.mark.slow

DRAWS, EVERY = (20_000 if FULL else 3_000), 5

SIGNIFICANCE = 1e-4
"""For each quantity; some fifty are tested."""


def held_out_chain(scene: str, rung: str) -> Chain:
    """Return a chain that uses none of the scene's judgments; scenes "with covariates" have two of them."""
    name, _, covariates = scene.partition(" with ")
    case = draw_case(np.random.default_rng(1), SCENES[name], rung)
    rows = case.evidence
    if covariates:
        columns = np.random.default_rng(3).normal(size=(len(rows.item), 2))
        rows = replace(rows, columns=uncorrelated(columns))
    everything = HoldOut(
        *(np.ones(len(part), np.bool_) for part in (rows.ratings.item, rows.pairs.left, rows.tuples.responder))
    )
    return Chain(rows, np.random.default_rng(2), RUNGS[rung], held_out=everything)


def responder_quantities(chain: Chain, g: int, r: int) -> dict[str, float]:
    """Return a responder's parameters, standardised by the population's."""
    prior, line = chain.crowd.population[g], chain.crowd.line[r]
    slope = line[LOG_SLOPE] - prior[ALPHA]
    is_random = line[RANDOM] > 0.0
    values = {"random slope": np.exp(slope)} if is_random else {"slope": slope / prior[OMEGA_A]}
    if chain.crowd.rates[g]:
        values["intercept"] = (line[INTERCEPT] - prior[BETA]) / prior[OMEGA_B]
        expected = prior[LAMBDA] + prior[KAPPA] * slope
        values |= (
            {"random noise": line[LOG_NOISE]} if is_random else {"noise": (line[LOG_NOISE] - expected) / prior[OMEGA_L]}
        )
    return {f"{name}#{r}": float(value) for name, value in values.items()}


def group_quantities(chain: Chain, g: int) -> dict[str, float]:
    """Return the population parameters of one way of asking, and its responders'."""
    prior = chain.crowd.population[g]
    values = {"ω_a": prior[OMEGA_A], "random rate": prior[RANDOM_RATE]}
    if chain.crowd.rates[g]:
        values |= {"λ": prior[LAMBDA], "κ": prior[KAPPA], "ω_b": prior[OMEGA_B], "ω_l": prior[OMEGA_L]}
    if g > 0:
        values["α"] = prior[ALPHA] - prior[ALPHA_MEAN]
        if chain.crowd.rates[g]:
            values["β"] = prior[BETA]
    result = {f"{name}#{g}": float(value) for name, value in values.items()}
    for r in range(chain.crowd.first[g], chain.crowd.first[g + 1]):
        result |= responder_quantities(chain, g, r)
    return result


def quantities(chain: Chain) -> dict[str, float]:
    """Return all quantities whose prior is known; those with the same name before a # have the same prior."""
    mean, sd, shift, margin = chain.draw.common[:4]
    is_rated = bool(chain.crowd.rates[0])
    values = {"item sd": sd, "item": (chain.draw.x[0] - chain.draw.prior_mean[0]) / sd}
    scale = (RATED_SD if is_rated else COMPARED_SD) / np.sqrt(2)
    values |= {f"weight#{k}": float(weight) / scale for k, weight in enumerate(chain.draw.weights)}
    if is_rated:
        values["item mean"] = mean
    if len(chain.draw.shift) > 1:
        values["shift sd"], values["shift"] = shift, chain.draw.shift[1] / shift
    if margin > 0:
        values["log margin"] = np.log(margin)
    if chain.crowd.compared[0] > 0:
        values["lapse rate"] = chain.draw.lapse_rate[0]
    for g in range(len(chain.crowd.rates)):
        values |= group_quantities(chain, g)
    return values


def prior_of(name: str, is_rated: bool) -> Any:
    """Return the distribution of a quantity."""
    return {
        "item sd": stats.halfnorm(scale=RATED_SD if is_rated else COMPARED_SD),
        "item mean": stats.norm(*MEAN_PRIOR),
        "shift sd": stats.halfnorm(scale=SHIFT_SD),
        "log margin": stats.norm(*MARGIN_PRIOR),
        "lapse rate": stats.beta(*LAPSE_PRIOR),
        "ω_a": stats.halfnorm(scale=SLOPE_SD),
        "ω_b": stats.halfnorm(scale=INTERCEPT_SD),
        "ω_l": stats.halfnorm(scale=NOISE_SD),
        "random rate": stats.beta(*RANDOM_PRIOR),
        "λ": stats.norm(*LOG_NOISE_PRIOR),
        "κ": stats.norm(*KAPPA_PRIOR),
        "α": stats.norm(0, SLOPE_PRIOR_SD),
        "β": stats.norm(*INTERCEPT_PRIOR),
        "intercept": stats.t(TAIL),
        "random slope": stats.halfnorm(scale=RANDOM_SLOPE),
        "random noise": stats.norm(*RANDOM_NOISE),
    }.get(name, stats.norm())


@pytest.mark.parametrize(
    "scene",
    ["pages", "ties", "best_worst", "mixed", "two_scales", "pages with covariates", "ties with covariates"],
)
def test_without_judgments_chains_draw_from_the_prior(scene: str):
    chain = held_out_chain(scene, "random")
    chain.collect(1000, 1)
    draws: dict[str, list[float]] = {}
    for _ in range(DRAWS):
        chain.collect(EVERY - 1, 1)
        for name, value in quantities(chain).items():
            draws.setdefault(name, []).append(value)
    failures = {}
    for name in {full.split("#")[0] for full in draws}:
        parts = [np.array(part) for full, part in draws.items() if full.split("#")[0] == name and len(part) > 50]
        values = np.concatenate(parts) if parts else np.zeros(0)
        ess = sum(min(float(bulk_ess(part[None, :, None])[0]), len(part)) for part in parts)
        if ess < 50:
            continue
        # Kolmogorov's statistic of dependent draws, against its distribution for as many independent ones.
        distance = float(stats.kstest(values, prior_of(name, bool(chain.crowd.rates[0])).cdf).statistic)
        p_value = float(stats.kstwobign.sf(distance * np.sqrt(ess)))
        if p_value < SIGNIFICANCE:
            failures[name] = (round(distance, 3), round(ess), p_value)
    assert failures == {}
