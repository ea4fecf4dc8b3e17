"""One scale for all judgments of the same items, of any question type, with annotator effects."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field
from scipy import special

from steelyard.errors import ConvergenceWarning, SteelyardWarning
from steelyard.models.calibrated.assignment import Assignment, check_assignment
from steelyard.models.calibrated.checks import Opposition, judgment_warnings, opposition
from steelyard.models.calibrated.covariates import Covariates
from steelyard.models.calibrated.evidence import Evidence
from steelyard.models.calibrated.gibbs_kernels import typical_response
from steelyard.models.calibrated.ladder import RUNGS, Choice, choose_rung
from steelyard.models.calibrated.posterior import Posterior, sample
from steelyard.models.calibrated.reference import disagreement
from steelyard.models.calibrated.responder_kernels import ALPHA
from steelyard.models.comparisons.paired import expected_share
from steelyard.models.fit import Fit, Model
from steelyard.models.gold import Gold
from steelyard.models.labels.table import nullable
from steelyard.models.table import Uncertainty, aligned_draws, count_by_item, score_table
from steelyard.observations import (
    UNKNOWN,
    Choices,
    Comparisons,
    FloatArray,
    IntArray,
    Mixed,
    Observations,
    Rankings,
    Ratings,
)

PREDICTED = "predicted"
"""In the column `interval`: nobody judged the item, and its score is predicted from covariates."""

_EFFECTS = {
    "none": "no differences between annotators",
    "bias": "bias",
    "slope": "bias and scale use",
    "noise": "bias, scale use and noise",
    "random": "bias, scale use, noise and random answering",
}
_COMPARED_EFFECTS = {
    "none": "no differences between annotators",
    "bias": "no differences between annotators",
    "slope": "precision",
    "noise": "precision",
    "random": "precision, lapses and random answering",
}


@dataclass(frozen=True, slots=True)
class CalibratedScale(Model):
    """Place items on one latent scale, from ratings, comparisons, choices and rankings together.

    An annotator's response to an item at x is b + a·x + noise, with the annotator's bias b, positive slope a (scale
    use) and noise; an answer with several ratings has a common shift. A rating is the response, censored at the ends
    of a slider or rounded to the steps of a scale. In a comparison the higher response wins, within a margin it is a
    tie, and a few answers are lapses; choices and rankings order the responses. Annotators' parameters are pooled
    partially. Which of them are estimated is decided by cross-validation: each must predict held-out judgments better.
    The score is the expected answer: on the ratings' scale where there are ratings, else in units of the responses'
    noise, as in Thurstone's model.

    Posterior by Gibbs sampling; the order of judgments and the names of annotators do not matter.
    """

    name: ClassVar[str] = "calibrated_scale"
    accepts: ClassVar[tuple[str, ...]] = ("ratings", "choices", "rankings", "comparisons", "mixed")

    level: Annotated[float, Field(gt=0, lt=1, description="coverage of the intervals")] = 0.95
    draws: Annotated[int, Field(ge=20, description="number of posterior draws or bootstrap replicates")] = 1000
    seed: Annotated[int, Field(ge=0, description="random seed")] = 0
    annotator_effects: Annotated[
        Literal["auto", "none", "bias", "slope", "noise", "random"],
        Field(
            description="annotator effects, cumulative: none, bias, slope (scale use), noise, random answering; "
            "auto: chosen by cross-validation"
        ),
    ] = "auto"

    def fit(
        self,
        observations: Ratings | Comparisons | Choices | Rankings | Mixed,
        gold: Gold | None = None,
        covariates: Covariates | None = None,
    ) -> Fit:
        """Score every item; `gold` gives the known scores of some, which hold the scale in place.

        `covariates` are numbers of the items, such as a judge's scores, that may tell where an item lies; how far they
        do is estimated with everything else.
        """
        self.check_kind(observations)
        evidence = Evidence.of(self.name, observations, gold, covariates)
        choice_seed, chain_seed, prediction_seed = np.random.SeedSequence(self.seed).spawn(3)
        camps, assignment = opposition(evidence), check_assignment(evidence)
        choice = self._choice(evidence, camps, assignment, choice_seed)
        posterior = sample(evidence, RUNGS[choice.rung], self.draws, chain_seed)
        scale = _Scaled.of(posterior, self.level)
        judgments, annotators = count_by_item(observations, *observations.incidence())
        others, predicted = _predicted(posterior, covariates, judgments, self.level, prediction_seed)
        is_scored = judgments > 0
        is_scored[others] = True
        whole = [np.full(len(observations.items), np.nan) for _ in range(4)]
        draws = np.full((len(scale.draws), len(observations.items)), np.nan)
        for place, part in ((evidence.item, scale), (others, predicted)):
            for values, own in zip(whole, (part.score, part.sd, part.lower, part.upper), strict=True):
                values[place] = own
            draws[:, place] = part.draws
        score, sd, lower, upper = (np.where(is_scored, values, np.nan) for values in whole)
        table = score_table(
            observations.items,
            score,
            _unit(evidence, score, is_scored),
            Uncertainty("posterior", draws, sd, lower, upper),
            judgments,
            annotators,
            bounds=evidence.groups[0].scale if evidence.groups[0].bounded else None,
            level=self.level,
        ).with_columns(
            pl.when((pl.col("judgments") == 0) & pl.col("score").is_not_null())
            .then(pl.lit(PREDICTED))
            .otherwise("interval")
            .alias("interval")
        )
        checks = (
            *judgment_warnings(evidence, camps, observations.annotators),
            *assignment.warnings(evidence, posterior.line()[0][0], is_corrected=RUNGS[choice.rung].bias),
        )
        alarms = self._alarms(posterior, checks, score, sd)
        return Fit(
            self.name,
            self.settings(),
            table,
            _annotators(observations, posterior, self.level),
            (*alarms, *_notes(posterior, choice), *_covariate_notes(posterior, covariates, len(others))),
            posterior.sweeps,
            posterior.diagnostics.converged,
            aligned_draws(table, observations.items, draws),
        )

    def _choice(
        self, evidence: Evidence, camps: Opposition, assignment: Assignment, seed: np.random.SeedSequence
    ) -> Choice:
        """Choose which differences between annotators are modelled, unless they are set."""
        if self.annotator_effects != "auto":
            return Choice(self.annotator_effects)
        return Choice("none") if assignment.is_confounded else choose_rung(evidence, camps, seed)

    def _alarms(
        self, posterior: Posterior, others: tuple[str, ...], score: FloatArray, sd: FloatArray
    ) -> tuple[str, ...]:
        """Warn about chains that disagree, reversed annotators, and scores that differ from a simple estimate."""
        diagnostics, evidence = posterior.diagnostics, posterior.evidence
        alarms: list[str] = []
        if not diagnostics.converged:
            alarms.append(
                f"the chains have not converged (R̂ {diagnostics.rhat:.2f} of the {diagnostics.where}, smallest "
                f"effective sample size {min(diagnostics.bulk_ess, diagnostics.tail_ess):.0f}): increase draws, or set "
                "annotator_effects to a simpler choice"
            )
            warnings.warn(f"{self.name}: {alarms[0]}.", ConvergenceWarning, stacklevel=3)
        others += disagreement(evidence, score[evidence.item], sd[evidence.item])
        for alarm in others:
            warnings.warn(f"{self.name}: {alarm}.", SteelyardWarning, stacklevel=3)
        return (*alarms, *others)


@dataclass(frozen=True, slots=True, eq=False)
class _Scaled:
    """Scores, their intervals and draws, in the user's scale."""

    score: FloatArray
    sd: FloatArray
    lower: FloatArray
    upper: FloatArray
    draws: FloatArray

    @classmethod
    def of(cls, posterior: Posterior, level: float, x: FloatArray | None = None) -> _Scaled:
        """Scale the posterior of the judged items, or of the locations `x`."""
        x = posterior.x if x is None else x
        draws = posterior.scores(x)
        half = special.ndtri((1 + level) / 2) * x.std(axis=0, ddof=1)
        ends = [x.mean(axis=0) - half, x.mean(axis=0) + half]
        score, sd = draws.mean(axis=0), draws.std(axis=0, ddof=1)
        group = posterior.evidence.groups[0]
        if not group.rates:
            return cls(score, sd, ends[0], ends[1], draws)
        if group.bounded:
            variance = float(posterior.answer_variance(posterior.population[:, 0]).mean())
            for end in ends:
                typical_response(end.copy(), np.zeros(len(end)), variance, group.edge, end)
        low, high = group.scale
        width = high - low
        return cls(low + width * score, width * sd, low + width * ends[0], low + width * ends[1], low + width * draws)


def _predicted(
    posterior: Posterior,
    covariates: Covariates | None,
    judgments: IntArray,
    level: float,
    seed: np.random.SeedSequence,
) -> tuple[NDArray[np.intp], _Scaled]:
    """Predict the scores of items without judgments from their covariates."""
    evidence = posterior.evidence
    others = np.setdiff1d(np.flatnonzero(judgments == 0), evidence.item)
    columns = np.zeros((0, 0 if evidence.columns is None else evidence.columns.shape[1]))
    if covariates is None or not columns.shape[1] or not len(others):
        others = others[:0]
    else:
        columns, can_predict = covariates.projected(evidence.item, others)
        others, columns = others[can_predict], columns[can_predict]
    return others, _Scaled.of(posterior, level, posterior.predicted(columns, np.random.default_rng(seed)))


def _unit(evidence: Evidence, score: FloatArray, judged: NDArray[np.bool_]) -> FloatArray:
    group = evidence.groups[0]
    if group.rates:
        low, high = group.scale
        return (score - low) / (high - low)
    share = np.full(len(score), np.nan)
    share[judged] = expected_share(score[judged], special.ndtr) if judged.sum() > 1 else 0.5
    return share


def _annotators(observations: Observations, posterior: Posterior, level: float) -> pl.DataFrame:
    """Return a table of annotators: in the user's scale for ratings, else in units of the responses' noise."""
    evidence = posterior.evidence
    mean, sd = posterior.line()
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
    usual_slope = np.exp(posterior.population[:, :, ALPHA].mean(axis=0))
    several = len({g.rates for g in evidence.groups}) < len(evidence.groups)
    for number, group in enumerate(evidence.groups):
        who = np.arange(group.first, group.last)
        who = who[evidence.annotator[who] != UNKNOWN]
        if len(who) == 0:
            continue
        low, high = group.scale
        tag = f"{group.kind} {number + 1} " if several else ""
        if group.rates:
            columns = {"bias": (0, high - low), "scale": (1, 1 / usual_slope[number]), "noise": (2, high - low)}
        else:
            columns = {"precision": (1, 1 / usual_slope[number])}
            if group.kind == Comparisons.kind:
                columns["lapse_rate"] = (3, 1.0)
        random = np.full(len(observations.annotators), np.nan)
        random[evidence.annotator[who]] = mean[4, who]
        frame = frame.with_columns(nullable(random).alias(f"{tag}random"))
        for name, (row, unit) in columns.items():
            for suffix, values in (("", mean), ("_lower", mean - half), ("_upper", mean + half)):
                whole = np.full(len(observations.annotators), np.nan)
                whole[evidence.annotator[who]] = values[row, who] * unit
                frame = frame.with_columns(
                    nullable(whole if name == "bias" else np.maximum(whole, 0.0)).alias(tag + name + suffix)
                )
    return frame


def _notes(posterior: Posterior, choice: Choice) -> tuple[str, ...]:
    """Note which judgments set the scale, which differences between annotators are modelled, and the checks."""
    evidence, diagnostics = posterior.evidence, posterior.diagnostics
    notes: list[str] = list(evidence.notes)
    if evidence.n_strengths > 1:
        cuts = ", ".join(f"{cut:.2g}" for cut in np.mean([chain.draw.cuts[0] for chain in posterior.chains], axis=0))
        notes.append(f"{evidence.n_strengths} strengths of preferences are used; cuts in units of noise about {cuts}")
    if len(evidence.groups) > 1:
        first = evidence.groups[0]
        what = "the first ratings" if first.rates else f"the {first.kind}"
        notes.append(f"scores are on the scale of {what}; other answers are converted to it")
    notes.append(_effects(evidence, choice))
    notes.append(
        f"chains: R̂ at most {diagnostics.rhat:.2f}, effective sample size at least "
        f"{min(diagnostics.bulk_ess, diagnostics.tail_ess):,.0f}"
    )
    coverage, wins = posterior.predictive_coverage(), posterior.expected_wins()
    if coverage is not None:
        notes.append(f"check: {100 * coverage:.1f} % of the ratings lie in the model's 95 % predictive intervals")
    if wins is not None:
        notes.append(
            f"check: the favoured item is expected to win {100 * wins[0]:.1f} % of the decided comparisons, and won "
            f"{100 * wins[1]:.1f} %"
        )
    return tuple(notes)


def _covariate_notes(posterior: Posterior, covariates: Covariates | None, n_predicted: int) -> tuple[str, ...]:
    """Note how much of the scores' variance the covariates explain, and how many values are missing."""
    explained = posterior.explained()
    if covariates is None or explained is None:
        return ()
    names = ", ".join(covariates.names)
    note = f"prior: {names} explain{'s' if len(covariates.names) == 1 else ''} {100 * explained:.0f} % of the variance"
    unknown = f"; {covariates.missing:,} unknown values are set to the mean" if covariates.missing else ""
    predicted = f"{n_predicted:,} items without judgments have predicted scores (interval: {PREDICTED})"
    return (f"{note} between items{unknown}", *([predicted] if n_predicted else []))


def _effects(evidence: Evidence, choice: Choice) -> str:
    """Note which differences between annotators are modelled, and why."""
    words = _EFFECTS if any(g.rates for g in evidence.groups) else _COMPARED_EFFECTS
    what = f"annotators: {words[choice.rung]}"
    if not choice.tried:
        return what
    if choice.rung == choice.tried[0]:
        return f"{what}; further effects do not improve the prediction of held-out judgments"
    gain = f"cross-validated error {100 * choice.gain:.1f} % lower"
    return f"{what}, which improve the prediction of held-out judgments ({gain})"
