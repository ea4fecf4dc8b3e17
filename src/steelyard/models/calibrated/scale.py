"""One scale for all judgments of the same items, whatever was asked, with every annotator calibrated."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field
from scipy import special

from steelyard.errors import ConvergenceWarning
from steelyard.models.calibrated.evidence import Evidence
from steelyard.models.calibrated.gibbs_kernels import typical_response
from steelyard.models.calibrated.sampler import Chain, Sums
from steelyard.models.comparisons.paired import expected_share
from steelyard.models.fit import Fit, Model
from steelyard.models.gold import Gold
from steelyard.models.inference.diagnostics import rhat as rhat_of
from steelyard.models.labels.table import nullable
from steelyard.models.table import Uncertainty, aligned_draws, count_by_item, score_table
from steelyard.observations import (
    UNKNOWN,
    Choices,
    Comparisons,
    FloatArray,
    Mixed,
    Observations,
    Rankings,
    Ratings,
)

CHAINS = 2
RHAT_LIMIT = 1.3
"""Largest median R̂ of the items at which the chains count as converged."""

MANY_ROWS = 200_000
"""Above this many rows a quarter of the draws is enough: every location is estimated precisely."""


@dataclass(frozen=True, slots=True)
class CalibratedScale(Model):
    """Place items on one latent scale, from ratings, comparisons, choices and rankings together.

    An annotator's response to an item at x is b + a·x + noise, with the annotator's bias b, slope a (scale use) and
    noise; an answer with several ratings has a common shift. A rating is the response, censored at the ends of a
    slider or rounded to the steps of a scale. In a comparison the higher response wins, within a margin it is a tie,
    and a few answers are lapses; choices and rankings order the responses. Annotators' parameters are pooled partially,
    with heavy tails. The score is the expected answer: on the ratings' scale where there are ratings, else in units of
    the responses' noise, as in Thurstone's model.

    Posterior by Gibbs sampling; the order of judgments and the names of annotators do not matter.
    """

    name: ClassVar[str] = "calibrated_scale"
    accepts: ClassVar[tuple[str, ...]] = ("ratings", "choices", "rankings", "comparisons", "mixed")

    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 400
    seed: Annotated[int, Field(ge=0, description="random seed")] = 0

    def fit(self, observations: Ratings | Comparisons | Choices | Rankings | Mixed, gold: Gold | None = None) -> Fit:
        """Score every item; `gold` gives the known scores of some, which hold the scale in place."""
        self.check_kind(observations)
        evidence = Evidence.of(self.name, observations, gold)
        chains = self.sample(evidence)
        scale = _Scaled.of(evidence, chains, self.level)
        n_items = len(observations.items)
        judgments, annotators = count_by_item(observations, *observations.incidence())
        is_judged = judgments > 0
        spread = [np.full(n_items, np.nan) for _ in range(4)]
        for whole, part in zip(spread, (scale.score, scale.sd, scale.lower, scale.upper), strict=True):
            whole[evidence.item] = part
        score, sd, lower, upper = (np.where(is_judged, values, np.nan) for values in spread)
        draws = np.full((len(scale.draws), n_items), np.nan)
        draws[:, evidence.item] = scale.draws
        table = score_table(
            observations.items,
            score,
            _unit(evidence, score, is_judged),
            Uncertainty("posterior", draws, sd, lower, upper),
            judgments,
            annotators,
            bounds=evidence.groups[0].scale if evidence.groups[0].bounded else None,
            level=self.level,
        )
        rhat = _rhat(chains)
        notes = _notes(evidence, chains)
        if rhat > RHAT_LIMIT:
            notes += (f"the two chains have not converged (R̂ {rhat:.2f}): increase draws",)
            warnings.warn(f"{self.name}: {notes[-1]}.", ConvergenceWarning, stacklevel=2)
        people = _annotators(observations, evidence, chains, self.level)
        sweeps = sum(chain.count for chain in chains)
        in_order = aligned_draws(table, observations.items, draws)
        return Fit(self.name, self.settings(), table, people, notes, sweeps, rhat <= RHAT_LIMIT, in_order)

    def sample(self, evidence: Evidence) -> list[Sums]:
        """Run the chains side by side."""
        many = evidence.n_rows > MANY_ROWS
        draws = max(10, self.draws // (4 if many else 1) // CHAINS)
        burn_in = draws // 2 if many else max(100, draws // 2)

        def run(seed: np.random.SeedSequence) -> Sums:
            return Chain(evidence, np.random.default_rng(seed)).run(burn_in, draws)

        with ThreadPoolExecutor(CHAINS) as threads:
            return list(threads.map(run, np.random.SeedSequence(self.seed).spawn(CHAINS)))


@dataclass(frozen=True, slots=True, eq=False)
class _Scaled:
    """Scores, their intervals and draws, in the user's scale."""

    score: FloatArray
    sd: FloatArray
    lower: FloatArray
    upper: FloatArray
    draws: FloatArray

    @classmethod
    def of(cls, evidence: Evidence, chains: list[Sums], level: float) -> _Scaled:
        mean, square, spread = (_mean(chains, name) for name in ("middle", "middle_square", "spread"))
        sd = np.sqrt(spread + np.maximum(square - mean**2, 0.0))
        half = special.ndtri((1 + level) / 2) * sd
        group = evidence.groups[0]
        draws = np.concatenate([chain.draws for chain in chains])
        score = _mean(chains, "score")
        if not group.rates:
            return cls(score, sd, mean - half, mean + half, draws)
        ends = [mean - half, mean + half]
        if group.bounded:
            n_groups = len(evidence.groups)
            population = _mean(chains, "population")
            noise = float(population[2 * n_groups] + population[3 * n_groups])
            for end in ends:
                typical_response(end.copy(), np.zeros(len(end)), noise, group.edge, end)
        low, high = group.scale
        width = high - low
        return cls(
            low + width * score,
            width * draws.std(axis=0, ddof=1),
            low + width * ends[0],
            low + width * ends[1],
            low + width * draws,
        )


def _mean(chains: list[Sums], name: str) -> FloatArray:
    """Return the mean of a total over all draws."""
    total = np.sum([getattr(chain, name) for chain in chains], axis=0)
    return np.asarray(total / sum(chain.count for chain in chains))


def _unit(evidence: Evidence, score: FloatArray, judged: NDArray[np.bool_]) -> FloatArray:
    group = evidence.groups[0]
    if group.rates:
        low, high = group.scale
        return (score - low) / (high - low)
    share = np.full(len(score), np.nan)
    share[judged] = expected_share(score[judged], special.ndtr) if judged.sum() > 1 else 0.5
    return share


def _rhat(chains: list[Sums]) -> float:
    """Return the median R̂ of the items' locations."""
    within = np.mean([chain.spread / chain.count for chain in chains], axis=0)
    within = within + np.mean([chain.middle_square / chain.count - chain.mean**2 for chain in chains], axis=0)
    return float(np.median(rhat_of(np.array([chain.mean for chain in chains]), within)))


def _annotators(observations: Observations, evidence: Evidence, chains: list[Sums], level: float) -> pl.DataFrame:
    """Return a table of annotators: in the user's scale for ratings, else in units of the responses' noise."""
    mean = _mean(chains, "line")
    sd = np.sqrt(np.maximum(_mean(chains, "line_square") - mean**2, 0.0))
    half = special.ndtri((1 + level) / 2) * sd
    judgments = np.bincount(
        observations.annotator[observations.annotator != UNKNOWN], minlength=len(observations.annotators)
    )
    frame = pl.DataFrame(
        {
            "annotator": pl.Series(observations.annotators.ids, dtype=pl.String),
            "judgments": pl.Series(judgments, dtype=pl.Int64),
        }
    )
    population = _mean(chains, "population")
    n_groups = len(evidence.groups)
    several = len({g.rates for g in evidence.groups}) < n_groups
    for number, group in enumerate(evidence.groups):
        who = np.arange(group.first, group.last)
        who = who[evidence.annotator[who] != UNKNOWN]
        if len(who) == 0:
            continue
        low, high = group.scale
        tag = f"{group.kind} {number + 1} " if several else ""
        if group.rates:
            columns = {
                "bias": (0, high - low),
                "scale": (1, 1 / population[n_groups + number]),
                "noise": (2, high - low),
            }
        else:
            columns = {"precision": (1, 1 / population[n_groups + number])}
            if group.kind == Comparisons.kind:
                columns["lapse_rate"] = (3, 1.0)
        random = np.full(len(observations.annotators), np.nan)
        random[evidence.annotator[who]] = mean[4, who]
        frame = frame.with_columns(nullable(random).alias(f"{tag}random"))
        for name, (row, unit) in columns.items():
            for suffix, values in (("", mean), ("_lower", mean - half), ("_upper", mean + half)):
                whole = np.full(len(observations.annotators), np.nan)
                whole[evidence.annotator[who]] = values[row, who] * unit
                if name in ("noise", "lapse_rate"):
                    whole = np.maximum(whole, 0.0)
                frame = frame.with_columns(nullable(whole).alias(tag + name + suffix))
    return frame


def _notes(evidence: Evidence, chains: list[Sums]) -> tuple[str, ...]:
    """Note which judgments set the scale, and the posterior predictive checks."""
    notes: tuple[str, ...] = ()
    if len(evidence.groups) > 1:
        first = evidence.groups[0]
        what = "the first ratings" if first.rates else f"the {first.kind}"
        notes += (f"the scale is that of {what}; other answers are converted to it",)
    return notes + tuple(dict.fromkeys(check for chain in chains[:1] for check in chain.checks))
