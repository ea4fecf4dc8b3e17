"""Check that the calibrated scale's sampler draws from the posterior of the model as stated.

Two checks, both over parameters drawn from the priors and observations simulated from them
(benchmarks/calibrated_prior.py):

- Simulation-based calibration (Talts et al. 2018): the rank of the true value among nearly independent posterior draws
  is uniform. Chains start as they do in a fit and run until their effective sample size is large enough.
- Invariance (Gandy & Scott 2020, after Geweke 2004): a chain that starts at the true parameters stays in their joint
  distribution, so that the values after some sweeps are distributed as the priors are. It says nothing of convergence,
  needs few sweeps a replicate, and so detects small errors of a single draw.

Run: python -m benchmarks.sbc_calibrated [--check ranks|invariance] [--scenes …] [--rungs …] [--replicates N].
The p-values are Holm-adjusted over all quantities of a run.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import stats

from benchmarks.calibrated_prior import SCENES, Case, Quantities, draw_case, first_responders, quantities
from steelyard.models.calibrated.chain import Chain
from steelyard.models.calibrated.ladder import RUNGS
from steelyard.models.inference.diagnostics import bulk_ess
from steelyard.observations import FloatArray

RANKED = 99
"""Draws among which a true value is ranked: ranks from 0 to 99."""

BINS = 10
BURN_IN = 500
EVERY = 5
"""Sweeps between recorded draws."""

FIRST_DRAWS, MOST_DRAWS = 600, 9_600
"""Recorded draws at first, doubled until the effective sample size is as large as RANKED."""

SWEEPS = 30
"""Sweeps of a chain that starts at the true parameters."""

ALPHA_LEVEL = 0.01


@dataclass(frozen=True)
class Finding:
    """The test of one quantity; `mean` is the mean rank, or difference of means in standard deviations."""

    scene: str
    rung: str
    quantity: str
    p_value: float
    mean: float
    replicates: int


def state_of(chain: Chain) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return a chain's latest draw as `quantities` takes it."""
    common = np.concatenate([chain.draw.common[:4], np.diff(chain.draw.cuts[0])])
    return chain.draw.x, common, chain.crowd.population, chain.crowd.line, chain.draw.lapse_rate


def true_quantities(case: Case, rung: str) -> Quantities:
    """Return the true values of the quantities under test."""
    truth = case.truth
    parts = (truth.x, truth.common, truth.population, truth.line, truth.lapse_rate)
    return quantities(parts, case.evidence, RUNGS[rung], first_responders(case.evidence))


def rank_replicate(scene: str, rung: str, seed: int) -> Mapping[str, tuple[int, float]]:
    """Return the rank of every true value, and the effective sample size of its draws."""
    rng = np.random.default_rng([seed, *scene.encode(), *rung.encode()])
    case = draw_case(rng, SCENES[scene], rung)
    truth = true_quantities(case, rung)
    responder = first_responders(case.evidence)
    chain = Chain(case.evidence, rng, RUNGS[rung])
    chain.collect(BURN_IN, 1)
    draws: list[list[float]] = []
    count = FIRST_DRAWS
    while True:
        while len(draws) < count:
            chain.collect(EVERY - 1, 1)
            draws.append(list(quantities(state_of(chain), case.evidence, RUNGS[rung], responder).values()))
        values = np.array(draws)
        ess = bulk_ess(values[None])
        if ess.min() >= RANKED or count >= MOST_DRAWS:
            break
        count *= 2
    sample = values[np.linspace(0, len(values) - 1, RANKED).astype(int)]
    ranks = {}
    for at, (name, value) in enumerate(truth.items()):
        below, equal = int((sample[:, at] < value).sum()), int((sample[:, at] == value).sum())
        ranks[name] = (below + int(rng.integers(equal + 1)), float(ess[at]))
    return ranks


def invariance_replicate(scene: str, rung: str, seed: int) -> tuple[Quantities, Quantities]:
    """Return the true values, and those of a chain that started there."""
    rng = np.random.default_rng([seed, *scene.encode(), *rung.encode()])
    case = draw_case(rng, SCENES[scene], rung)
    chain = Chain(case.evidence, rng, RUNGS[rung])
    start_at(chain, case)
    chain.collect(SWEEPS - 1, 1)
    after = quantities(state_of(chain), case.evidence, RUNGS[rung], first_responders(case.evidence))
    return true_quantities(case, rung), after


def start_at(chain: Chain, case: Case) -> None:
    """Set a chain to the true parameters."""
    truth = case.truth
    chain.draw.x[:] = truth.x
    chain.draw.common[:4] = truth.common[:4]
    chain.draw.cuts[0] = truth.common[3] + np.concatenate([[0.0], np.cumsum(truth.common[4:])])
    chain.draw.shift[:] = case.answer_shift
    chain.draw.tuple_response[:] = case.tuple_response
    chain.draw.lapse_rate[:] = truth.lapse_rate
    chain.crowd.population[:, :8] = truth.population
    chain.crowd.line[:] = truth.line


def check_ranks(scene: str, rung: str, seeds: range) -> list[Finding]:
    """Test the ranks of every quantity for uniformity by χ², over the replicates with enough independent draws."""
    replicates = [rank_replicate(scene, rung, seed) for seed in seeds]
    findings = []
    for name in replicates[0]:
        ranks = np.array([replicate[name][0] for replicate in replicates])
        counts = np.bincount(ranks * BINS // (RANKED + 1), minlength=BINS)
        p_value = float(stats.chisquare(counts).pvalue)
        findings.append(Finding(scene, rung, name, p_value, float(ranks.mean() / RANKED), len(ranks)))
    short = np.mean([any(ess < RANKED for _, ess in replicate.values()) for replicate in replicates])
    if short > 0:
        print(
            f"{scene}, {rung}: effective sample size below {RANKED} in {100 * short:.1f} % of the replicates",
            flush=True,
        )
    return findings


def check_invariance(scene: str, rung: str, seeds: range) -> list[Finding]:
    """Compare values after some sweeps with those before, over replicates.

    Both have one distribution, so that normal scores, and their squares, have equal means: two paired tests.
    """
    replicates = [invariance_replicate(scene, rung, seed) for seed in seeds]
    findings = []
    for name in replicates[0][0]:
        values = np.array([[before[name], after[name]] for before, after in replicates])
        scores = stats.norm.ppf((stats.rankdata(values) - 0.5) / values.size).reshape(values.shape)
        gaps = [scores[:, 1] - scores[:, 0], scores[:, 1] ** 2 - scores[:, 0] ** 2]
        errors = [max(float(gap.std(ddof=1)), 1e-12) / np.sqrt(len(gap)) for gap in gaps]
        p_value = min(2 * stats.norm.sf(abs(gap.mean()) / error) for gap, error in zip(gaps, errors, strict=True))
        findings.append(Finding(scene, rung, name, min(2 * float(p_value), 1.0), float(gaps[0].mean()), len(values)))
    return findings


def adjusted(findings: list[Finding]) -> FloatArray:
    """Return Holm-adjusted p-values."""
    p_values = np.array([finding.p_value for finding in findings])
    order = np.argsort(p_values)
    steps = np.maximum.accumulate(p_values[order] * np.arange(len(order), 0, -1))
    result = np.empty_like(p_values)
    result[order] = np.minimum(steps, 1.0)
    return result


def run_job(job: tuple[str, str, str, range]) -> list[Finding]:
    """Check one scene on one rung, and print what comes out."""
    check, scene, rung, seeds = job
    start = time.process_time()
    findings = CHECKS[check](scene, rung, seeds)
    worst = min(findings, key=lambda finding: finding.p_value)
    print(
        f"{scene:12s} {rung:7s} {len(findings):3d} quantities, {len(seeds):5d} replicates, "
        f"{time.process_time() - start:6.0f} s of processor time; smallest p {worst.p_value:.1e} ({worst.quantity}, "
        f"{worst.mean:+.3f})",
        flush=True,
    )
    return findings


CHECKS = {"ranks": check_ranks, "invariance": check_invariance}


def main() -> None:
    """Run the checks and print the quantities that fail."""
    parser = argparse.ArgumentParser(description="Check the calibrated scale's sampler against its model.")
    parser.add_argument("--check", choices=CHECKS, nargs="+", default=list(CHECKS))
    parser.add_argument("--scenes", choices=SCENES, nargs="+", default=list(SCENES))
    parser.add_argument("--rungs", choices=RUNGS, nargs="+", default=["random", "noise", "bias"])
    parser.add_argument("--replicates", type=int, help="default: 300 for ranks, 3000 for invariance")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    failures = 0
    for check in arguments.check:
        count = arguments.replicates or (300 if check == "ranks" else 3000)
        seeds = range(arguments.seed, arguments.seed + count)
        jobs = [(check, scene, rung, seeds) for scene in arguments.scenes for rung in arguments.rungs]
        print(f"== {check}")
        with ProcessPoolExecutor(2) as processes:
            findings = [finding for part in processes.map(run_job, jobs) for finding in part]
        for finding, p_value in zip(findings, adjusted(findings), strict=True):
            if p_value < ALPHA_LEVEL:
                failures += 1
                print(f"FAILS: {finding.scene}, {finding.rung}, {finding.quantity}: adjusted p {p_value:.1e}")
        print(f"{len(findings)} tests, smallest adjusted p {adjusted(findings).min():.2g}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
