"""Compare the calibrated scale's posterior with that of a NUTS sampler (NumPyro) on recorded judgments.

The model is written a second time, with the latent responses and random answering integrated out, so that the two
share the layout of the data and the constants of the priors, and nothing else. Chains of both are long, so that Monte
Carlo errors are well below the tolerances: posterior means of item locations within .1 posterior sd, sds within 10 %.

Run: python -m benchmarks.nuts_calibrated [set …]; needs `pip install 'steelyard[reference]'` and the recorded judgments
in the folder that STEELYARD_DATA names.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from steelyard.models.calibrated import chain_state as common
from steelyard.models.calibrated import responder_kernels as crowd
from steelyard.models.calibrated.chain import ORIGIN, SLIDER_FLOOR, STARTS, STEP_FLOOR, WITNESSES, Chain
from steelyard.models.calibrated.evidence import Evidence
from steelyard.models.calibrated.ladder import RUNGS
from steelyard.models.inference.diagnostics import bulk_ess, rhat
from steelyard.observations import Choices, Comparisons, FloatArray, Index, IntArray, Observations, Ratings

MEAN_TOLERANCE, SD_TOLERANCE = 0.1, 0.1
GIBBS_BURN_IN, GIBBS_DRAWS, GIBBS_CHAINS = 1_000, 20_000, 4
NUTS_WARM_UP, NUTS_DRAWS, NUTS_CHAINS = 500, 4_000, 2

FAR = 30.0
"""Stands for infinity, on a rating scale of length 1."""

GRID = np.linspace(-6.0, 6.0, 121)
"""Responses over which choices are integrated numerically, relative to the mean location of their items."""


def data_folder() -> Path:
    """Return the folder of recorded judgments."""
    return Path(os.environ.get("STEELYARD_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def coded(values: pl.Series) -> tuple[Index, IntArray]:
    """Number the values of a column."""
    ids = values.cast(pl.String).unique().sort().to_list()
    index = {name: code for code, name in enumerate(ids)}
    return Index(ids), np.array([index[name] for name in values.cast(pl.String)], np.int32)


def ratings(frame: pl.DataFrame, annotator: str, value: str, scale: tuple[float, float]) -> Ratings:
    """Read ratings from a table with a column `item`."""
    items, item = coded(frame["item"])
    annotators, who = coded(frame[annotator])
    values = frame[value].to_numpy().astype(np.float64)
    return Ratings(items=items, item=item, annotators=annotators, annotator=who, value=values, scale=scale)


def affect() -> Observations:
    """Read sliders from 0 to 100: the anger in 100 headlines (Snow et al. 2008)."""
    frame = pl.read_csv(data_folder() / "snow2008" / "affect.csv.gz").filter(pl.col("emotion") == "anger")
    return ratings(frame, "annotator", "value", (0.0, 100.0))


def wordsim() -> Observations:
    """Read the similarity of 30 pairs of words (Snow et al. 2008)."""
    return ratings(pl.read_csv(data_folder() / "snow2008" / "wordsim.csv.gz"), "annotator", "value", (0.0, 10.0))


def summeval() -> Observations:
    """Read ratings from 1 to 5: the coherence of summaries of eight documents, by people."""
    frame = pl.read_csv(data_folder() / "summeval_judges" / "ratings.csv.gz").filter(pl.col("judge_kind") == "human")
    chosen = frame["document"].unique().sort()[:8]
    frame = frame.filter(pl.col("document").is_in(chosen.implode()))
    return ratings(frame.with_columns(item=pl.col("document") + pl.col("system")), "judge", "coherence", (1.0, 5.0))


def proofs() -> Observations:
    """Read 454 comparisons by 29 judges (Sangwin & Kinnear 2021)."""
    frame = pl.read_csv(data_folder() / "comparative_judgement" / "decisions.csv.gz")
    frame = frame.filter(pl.col("session") == "Sangwin2021_study1-insight")
    items, both = coded(pl.concat([frame["winner"], frame["loser"]]))
    annotators, who = coded(frame["judge"])
    left, right = both[: len(frame)], both[len(frame) :]
    outcome = np.ones(len(frame), np.int8)
    return Comparisons(items=items, annotators=annotators, annotator=who, left=left, right=right, outcome=outcome)


def votes() -> Observations:
    """Read comparisons of models, with ties, by three people, for the first prompts (PandaLM)."""
    frame = pl.read_csv(data_folder() / "pandalm" / "votes.csv.gz").filter(pl.col("judge_kind") == "human").head(900)
    items, both = coded(pl.concat([frame["model_a"], frame["model_b"]]))
    annotators, who = coded(frame["judge"])
    left, right = both[: len(frame)], both[len(frame) :]
    signs = {"a": 1, "b": -1}
    outcome = np.array([signs.get(winner, 0) for winner in frame["winner"]], np.int8)
    return Comparisons(items=items, annotators=annotators, annotator=who, left=left, right=right, outcome=outcome)


def relation() -> Observations:
    """Read best–worst choices, without names of annotators, of one relation (SemEval-2012)."""
    frame = pl.read_csv(data_folder() / "bws" / "semeval2012_answers.csv.gz").filter(pl.col("relation") == "4d")
    frame = frame.drop_nulls().filter(pl.col("best") != pl.col("worst"))
    names = [f"item{number}" for number in range(1, 5)]
    items, codes = coded(pl.concat([frame[name] for name in (*names, "best", "worst")]))
    shown, best, worst = np.split(codes, [4 * len(frame), 5 * len(frame)])
    return Choices(items=items, shown=np.ascontiguousarray(shown.reshape(4, -1).T), best=best, worst=worst)


@dataclass(frozen=True)
class DataSet:
    """Recorded judgments and the rung on which both samplers fit them."""

    read: Callable[[], Observations]
    rung: str


SETS = {
    "affect": DataSet(affect, "random"),
    "wordsim": DataSet(wordsim, "noise"),
    "summeval": DataSet(summeval, "noise"),
    "proofs": DataSet(proofs, "random"),
    "votes": DataSet(votes, "slope"),
    "relation": DataSet(relation, "none"),
}


def model(evidence: Evidence, rung_name: str) -> None:
    """Declare the model of one way of asking in NumPyro."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    rung, group = RUNGS[rung_name], evidence.groups[0]
    mean = numpyro.sample("mean", dist.Normal(*common.MEAN_PRIOR)) if group.rates else 0.0
    sd = numpyro.sample("sd", dist.HalfNormal(common.RATED_SD if group.rates else common.COMPARED_SD))
    # Centred: most items have enough judgments.
    x = numpyro.sample("x", dist.Normal(mean, sd).expand([len(evidence.item)]))
    n = len(evidence.annotator)
    random_rate = numpyro.sample("random_rate", dist.Beta(*crowd.RANDOM_PRIOR)) if rung.random else 0.0
    omega, deviation = 0.0, jnp.zeros(n)
    if rung.slope and not evidence.fixed.all():
        omega = numpyro.sample("omega_a", dist.HalfNormal(crowd.SLOPE_SD))
        deviation = standard_deviations("slope", n, is_mixed=rung.random)
    lines = Lines(rung_name, omega * deviation, deviation, random_rate, omega)
    if group.rates:
        rating_model(evidence, lines, x)
    elif len(evidence.pairs.left):
        mix_lines(evidence, lines, None)
        pair_model(evidence, lines, x)
    else:
        choice_model(evidence, x)


def standard_deviations(name: str, n: int, *, is_mixed: bool) -> Any:
    """Declare deviations in units of the population's sd; if mixed, `mix_lines` adds their prior."""
    import numpyro
    import numpyro.distributions as dist

    prior = dist.ImproperUniform(dist.constraints.real, (n,), ()) if is_mixed else dist.Normal().expand([n])
    return numpyro.sample(name, prior)


@dataclass(frozen=True)
class Lines:
    """Slopes of the responders, and the parameters of their mixture."""

    rung: str
    log_slope: Any
    deviation: Any
    random_rate: Any
    omega: Any


def mix_lines(evidence: Evidence, lines: Lines, noise: tuple[Any, Any, Any] | None) -> None:
    """Add the prior of the deviations as a mixture of regular and random responders.

    `noise` has the log noise of each, its deviation and ω_l. Densities of random responders are those of the log slope
    and log noise, times the Jacobian of the deviation.
    """
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    if not RUNGS[lines.rung].random:
        return
    regular = dist.Normal().log_prob(lines.deviation)
    other = (
        dist.HalfNormal(crowd.RANDOM_SLOPE).log_prob(jnp.exp(lines.log_slope)) + lines.log_slope + jnp.log(lines.omega)
    )
    if noise is not None:
        log_noise, deviation, omega = noise
        regular += dist.Normal().log_prob(deviation)
        other += dist.Normal(*crowd.RANDOM_NOISE).log_prob(log_noise) + jnp.log(omega)
    rate = jnp.where(jnp.asarray(evidence.witnesses >= WITNESSES), lines.random_rate, 0.0)
    both = jnp.logaddexp(jnp.log1p(-rate) + regular, jnp.log(jnp.maximum(rate, 1e-300)) + other)
    numpyro.factor("mixture", jnp.where(rate > 0, both, regular).sum())


def rating_model(evidence: Evidence, lines: Lines, x: Any) -> None:
    """Declare ratings: censored sliders, or steps."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    rung, n, rows = RUNGS[lines.rung], len(evidence.annotator), evidence.ratings
    level = numpyro.sample("lambda", dist.Normal(*crowd.LOG_NOISE_PRIOR))
    kappa = numpyro.sample("kappa", dist.Normal(*crowd.KAPPA_PRIOR))
    log_noise = level + kappa * lines.log_slope
    if rung.noise:
        omega = numpyro.sample("omega_l", dist.HalfNormal(crowd.NOISE_SD))
        deviation = standard_deviations("noise", n, is_mixed=rung.random)
        log_noise = log_noise + omega * deviation
        mix_lines(evidence, lines, (log_noise, deviation, omega))
    intercept = jnp.full(n, ORIGIN)
    if rung.bias:
        width = numpyro.sample("omega_b", dist.HalfNormal(crowd.INTERCEPT_SD))
        intercept = ORIGIN + width * numpyro.sample("bias", dist.StudentT(crowd.TAIL).expand([n]))
    steps = len(evidence.groups[0].edge)
    floor = STEP_FLOOR / steps if steps else SLIDER_FLOOR
    who = np.repeat(np.arange(n), np.diff(rows.first))
    noise = jnp.sqrt(jnp.exp(2 * log_noise) + floor**2)[who]
    middle = intercept[who] + jnp.exp(lines.log_slope)[who] * (x[rows.item] - ORIGIN)
    if rows.shift.any():
        shift_sd = numpyro.sample("shift_sd", dist.HalfNormal(common.SHIFT_SD))
        shift = numpyro.sample("shift", dist.Normal().expand([int(rows.shift.max())]))
        middle = middle + shift_sd * jnp.concatenate([jnp.zeros(1), shift])[rows.shift]
    exact = rows.lower == rows.upper
    # Ends that are finite, if far away, have finite gradients.
    low, high = ((np.clip(end, -FAR, FAR) - middle) / noise for end in (rows.lower, rows.upper))
    numpyro.factor("exact", jnp.where(exact, -0.5 * low**2 - jnp.log(noise), 0.0).sum())
    numpyro.factor(
        "between", jnp.where(exact, 0.0, log_between(jnp.where(exact, 0.0, low), jnp.where(exact, 1.0, high))).sum()
    )


def log_between(low: Any, high: Any) -> Any:
    """Return the log probability of a standard Gaussian between two ends."""
    import jax.numpy as jnp
    from jax.scipy.special import log_ndtr

    # In the lower tail, where both ends are distinguishable.
    is_upper = low > 0
    low, high = jnp.where(is_upper, -high, low), jnp.where(is_upper, -low, high)
    above = log_ndtr(high)
    return above + jnp.log1p(-jnp.exp(jnp.minimum(log_ndtr(low) - above, -1e-12)))


def pair_model(evidence: Evidence, lines: Lines, x: Any) -> None:
    """Declare comparisons, with ties where there are some, and lapses."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from jax.scipy.special import ndtr

    pairs = evidence.pairs
    margin, guess = 0.0, 0.5
    if (pairs.outcome == 0).any():
        margin, guess = numpyro.sample("margin", dist.LogNormal(*common.MARGIN_PRIOR)), 1 / 3
    lapse = jnp.zeros(len(evidence.annotator))
    if RUNGS[lines.rung].random:
        lapse = numpyro.sample("lapse", dist.Beta(*crowd.LAPSE_PRIOR).expand([len(evidence.annotator)]))
    middle = jnp.exp(lines.log_slope)[pairs.responder] * (x[pairs.left] - x[pairs.right])
    tie = ndtr(margin - middle) - ndtr(-margin - middle)
    chance = jnp.where(
        pairs.outcome > 0, ndtr(middle - margin), jnp.where(pairs.outcome < 0, ndtr(-middle - margin), tie)
    )
    rate = lapse[pairs.responder]
    numpyro.factor("outcome", jnp.log(jnp.maximum((1 - rate) * chance + rate * guess, 1e-30)).sum())


def choice_model(evidence: Evidence, x: Any) -> None:
    """Declare best–worst choices among four, by numerical integration over the responses to the best and worst.

    The probability is that of z_best > z_c, z_d > z_worst: ∫∫ over best t and worst s < t of
    φ_best(t) φ_worst(s) [Φ_c(t) − Φ_c(s)] [Φ_d(t) − Φ_d(s)].
    """
    import jax.numpy as jnp
    import numpyro
    from jax.scipy.special import ndtr

    items, count = np.unique(evidence.tuples.item.reshape(-1, 4), axis=0, return_counts=True)
    location = x[items]
    off = (GRID - (location - location.mean(axis=1, keepdims=True))[:, :, None]) / np.sqrt(0.5)
    width = GRID[1] - GRID[0]
    density = jnp.exp(-0.5 * off**2) / np.sqrt(np.pi)
    below = ndtr(off)

    def up_to(values: Any) -> Any:
        return (jnp.cumsum(values, axis=1) - 0.5 * values) * width

    worst, best = density[:, 3], density[:, 0]
    one, other = below[:, 1], below[:, 2]
    inner = one * other * up_to(worst) - one * up_to(worst * other)
    inner += up_to(worst * one * other) - other * up_to(worst * one)
    chance = (best * inner).sum(axis=1) * width
    numpyro.factor("choices", (count * jnp.log(jnp.maximum(chance, 1e-30))).sum())


def nuts_draws(evidence: Evidence, rung: str, seed: int = 0) -> FloatArray:
    """Return item locations from NUTS: chains × draws × items."""
    import jax
    import numpyro
    from numpyro.infer import MCMC, NUTS, init_to_median

    numpyro.enable_x64()
    kernel = NUTS(model, target_accept_prob=0.9, init_strategy=init_to_median)
    sampler = MCMC(
        kernel,
        num_warmup=NUTS_WARM_UP,
        num_samples=NUTS_DRAWS,
        num_chains=NUTS_CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    sampler.run(jax.random.PRNGKey(seed), evidence, rung)
    return np.asarray(sampler.get_samples(group_by_chain=True)["x"])


def gibbs_draws(evidence: Evidence, rung: str, seed: int = 0) -> FloatArray:
    """Return item locations from the calibrated scale's own sampler: chains × draws × items."""
    seeds = np.random.SeedSequence(seed).spawn(GIBBS_CHAINS)
    return np.array(
        [
            Chain(evidence, np.random.default_rng(each), RUNGS[rung], start).collect(GIBBS_BURN_IN, GIBBS_DRAWS).x
            for each, start in zip(seeds, STARTS, strict=True)
        ]
    )


@dataclass(frozen=True)
class Agreement:
    """Differences of two posteriors of item locations, in posterior sds; and Monte Carlo errors of the means."""

    mean_gap: FloatArray
    sd_gap: FloatArray
    errors: tuple[float, float]
    rhat: float


def compare(evidence: Evidence, rung: str) -> Agreement:
    """Sample from both, and compare means and sds of item locations (centred where nothing sets their level)."""
    draws = [nuts_draws(evidence, rung), gibbs_draws(evidence, rung)]
    if not evidence.groups[0].rates:
        draws = [each - each.mean(axis=2, keepdims=True) for each in draws]
    means, sds = ([getattr(np, name)(each, axis=(0, 1)) for each in draws] for name in ("mean", "std"))
    nuts_error, gibbs_error = (float(1 / np.sqrt(bulk_ess(each).min())) for each in draws)
    gap = (means[1] - means[0]) / sds[0]
    return Agreement(
        gap, sds[1] / sds[0] - 1, (nuts_error, gibbs_error), float(max(rhat(each).max() for each in draws))
    )


def main() -> None:
    """Print a line for each data set."""
    names = sys.argv[1:] or list(SETS)
    gap_heading, sd_heading = "mean gap / sd: max", "sd ratio − 1: max"
    print(
        f"{'set':10s} {'rung':7s} {'rows':>5s} {'items':>5s} {gap_heading:>18s} {'mean':>6s} {'MC errors':>13s}",
        end="",
    )
    print(f" {sd_heading:>18s} {'mean':>6s} {'max R̂':>6s} {'seconds':>8s}")
    for name in names:
        start = time.perf_counter()
        evidence = Evidence.of("calibrated_scale", SETS[name].read())
        result = compare(evidence, SETS[name].rung)
        gap, ratio = np.abs(result.mean_gap), np.abs(result.sd_gap)
        print(
            f"{name:10s} {SETS[name].rung:7s} {evidence.n_rows:5d} {len(evidence.item):5d} {gap.max():18.3f} "
            f"{gap.mean():6.3f} {result.errors[0]:6.3f} {result.errors[1]:6.3f} {ratio.max():18.3f} "
            f"{ratio.mean():6.3f} {result.rhat:6.3f} {time.perf_counter() - start:8.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
