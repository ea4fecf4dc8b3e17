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
from steelyard.models.labels.table import nullable
from steelyard.models.table import Uncertainty, count_by_item, score_table
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
APART = 1.3
"""From this ratio of the spread over both chains to that within one, they have not met."""

MANY_ROWS = 200_000
"""From so many rows on, fewer draws say as much: every place is known well."""


@dataclass(frozen=True, slots=True)
class CalibratedScale(Model):
    """Place items on one latent scale, from ratings, comparisons, choices and rankings together.

    An annotator's response to an item at x is b + a·x + noise: his bias, his use of the scale, his noise, and for an
    answer with several ratings a shift of the whole answer. A rating shows where the response falls; at the end of a
    slider, that it falls at or beyond it; on a scale of few steps, within which step. Comparing, the higher response
    wins, within a margin it is a tie, and some answers are slips; choices and rankings order the responses of one
    moment. All that annotators differ in is drawn towards what is usual, by as much as the answers say (partial
    pooling with heavy tails). The score is what annotators usually answer: on the ratings' scale where there are
    ratings, else in units of the responses' noise, as Thurstone's.

    Posterior by Gibbs sampling; the order of judgments and the names of annotators do not matter.
    """

    name: ClassVar[str] = "calibrated_scale"
    eats: ClassVar[tuple[str, ...]] = ("ratings", "choices", "rankings", "comparisons", "mixed")

    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 400
    seed: Annotated[int, Field(ge=0, description="seed of those draws")] = 0

    def fit(self, observations: Ratings | Comparisons | Choices | Rankings | Mixed, gold: Gold | None = None) -> Fit:
        """Score every item; `gold` gives the known scores of some, which hold the scale in place."""
        self.accept(observations)
        evidence = Evidence.of(self.name, observations, gold)
        chains = self.sample(evidence)
        scale = _Scaled.of(evidence, chains, self.level)
        n_items = len(observations.items)
        judgments, annotators = count_by_item(observations, *observations.incidence())
        judged = judgments > 0
        spread = [np.full(n_items, np.nan) for _ in range(4)]
        for whole, part in zip(spread, (scale.score, scale.sd, scale.lower, scale.upper), strict=True):
            whole[evidence.item] = part
        score, sd, lower, upper = (np.where(judged, values, np.nan) for values in spread)
        draws = np.full((len(scale.draws), n_items), np.nan)
        draws[:, evidence.item] = scale.draws
        table = score_table(
            observations.items,
            score,
            _unit(evidence, score, judged),
            Uncertainty("posterior", draws, sd, lower, upper),
            judgments,
            annotators,
            bounds=evidence.groups[0].scale if evidence.groups[0].bounded else None,
            level=self.level,
        )
        gap = _gap(chains)
        notes = _notes(evidence, chains)
        if gap > APART:
            notes += (f"the two chains of draws have not met (ratio {gap:.2f}): ask for more draws",)
            warnings.warn(f"{self.name}: {notes[-1]}.", ConvergenceWarning, stacklevel=2)
        people = _annotators(observations, evidence, chains, self.level)
        sweeps = sum(chain.count for chain in chains)
        return Fit(self.name, self.settings(), table, people, notes, sweeps, gap <= APART)

    def sample(self, evidence: Evidence) -> list[Sums]:
        """Run the chains side by side."""
        many = evidence.n_rows > MANY_ROWS
        draws = max(10, self.draws // (4 if many else 1) // CHAINS)
        settling = draws // 2 if many else max(100, draws // 2)

        def run(seed: np.random.SeedSequence) -> Sums:
            return Chain(evidence, np.random.default_rng(seed)).run(settling, draws)

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
            usual = _mean(chains, "usual")
            noise = float(usual[2 * n_groups] + usual[3 * n_groups])
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


def _gap(chains: list[Sums]) -> float:
    """Return how far apart the chains are: the ratio of the spread over all draws to that within a chain (R-hat)."""
    means = np.array([chain.mean for chain in chains])
    within = np.mean([chain.spread / chain.count for chain in chains], axis=0)
    within = within + np.mean([chain.middle_square / chain.count - chain.mean**2 for chain in chains], axis=0)
    between = means.var(axis=0, ddof=1)
    return float(np.median(np.sqrt(1 + between / np.maximum(within, 1e-12))))


def _annotators(observations: Observations, evidence: Evidence, chains: list[Sums], level: float) -> pl.DataFrame:
    """List what was found of each annotator: in the user's scale for ratings, else in the noise of a response."""
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
    usual = _mean(chains, "usual")
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
            columns = {"bias": (0, high - low), "scale": (1, 1 / usual[n_groups + number]), "noise": (2, high - low)}
        else:
            columns = {"precision": (1, 1 / usual[n_groups + number])}
            if group.kind == Comparisons.kind:
                columns["slips"] = (3, 1.0)
        random = np.full(len(observations.annotators), np.nan)
        random[evidence.annotator[who]] = mean[4, who]
        frame = frame.with_columns(nullable(random).alias(f"{tag}random"))
        for name, (row, unit) in columns.items():
            for suffix, values in (("", mean), ("_lower", mean - half), ("_upper", mean + half)):
                whole = np.full(len(observations.annotators), np.nan)
                whole[evidence.annotator[who]] = values[row, who] * unit
                if name in ("noise", "slips"):
                    whole = np.maximum(whole, 0.0)
                frame = frame.with_columns(nullable(whole).alias(tag + name + suffix))
    return frame


def _notes(evidence: Evidence, chains: list[Sums]) -> tuple[str, ...]:
    """Say what sets the scale, and how well the model foretells the answers it was given."""
    notes: tuple[str, ...] = ()
    if len(evidence.groups) > 1:
        first = evidence.groups[0]
        what = "the first ratings" if first.rates else f"the {first.kind}"
        notes += (f"the scale is that of {what}; other answers are brought to it",)
    return notes + tuple(dict.fromkeys(check for chain in chains[:1] for check in chain.checks))
