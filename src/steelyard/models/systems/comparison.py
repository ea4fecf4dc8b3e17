"""The comparison of systems: one table of scores, one of pairwise differences, computed from judgments of systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from steelyard.errors import DataError, did_you_mean
from steelyard.formats.tables import pandas_frame
from steelyard.models.comparisons.latent import LatentScale
from steelyard.models.comparisons.paired import PairTable, pairs_of
from steelyard.models.display import html_table
from steelyard.models.systems import wmt
from steelyard.models.systems.adjusted_means import Cells, adjusted_means, can_adjust, plain_means
from steelyard.models.systems.bootstrap import resampled_means, resampled_strengths
from steelyard.models.systems.clustered import Covariance, clustered_covariance
from steelyard.models.systems.contextual import fit_contextual
from steelyard.models.systems.influence import Influence
from steelyard.models.systems.judgments import SystemJudgments
from steelyard.models.systems.pairwise import (
    Pairwise,
    clusters_of_differences,
    clusters_of_ranges,
    compare_pairs,
    normal_draws,
    pairs_from_draws,
    ranges_of_draws,
    rank_ranges,
)
from steelyard.models.systems.strengths import Strengths, default_model, fit_strengths
from steelyard.models.table import competition_ranks, count_by_item
from steelyard.observations import Comparisons, FloatArray, IntArray, Labels, Ratings

Method = Literal["two_way", "bootstrap", "wmt"]
Unit = Literal["natural", "elo"]
METHODS: tuple[Method, ...] = ("two_way", "bootstrap", "wmt")
UNITS: tuple[Unit, ...] = ("natural", "elo")
ELO_PER_LOGIT = 400 / np.log(10)
ELO_MEAN = 1000.0
KINDS = ("ratings", "comparisons", "choices", "rankings", "labels")
"""Kinds of judgments from which systems can be compared, the preferred one first."""
NEGATIVE_LABELS = frozenset(
    (
        *("no", "not", "none", "bad", "worse", "wrong", "false", "fail", "failed", "incorrect", "inadequate"),
        *("unacceptable", "negative", "0"),
    )
)
"""Of two labels, the other one is the score."""


@dataclass(frozen=True, slots=True)
class SystemOptions:
    """How systems are compared.

    `method`: two_way (clustered by source and annotator), bootstrap (sources and annotators are resampled), or wmt (the
    procedure of WMT for this kind of judgments). `adjust`: whether means of ratings are adjusted for sources and
    annotators. `resample`: which of sources and annotators are samples of a larger population. `model`: a latent-scale
    model for comparisons, choices or rankings. `unit`: natural, or elo (1000 + 400 · log₁₀ odds). `label`: the label
    whose proportion is the score, for labels; by default each of several labels, or the positive one of two.
    """

    method: Method = "two_way"
    adjust: bool = True
    model: LatentScale | None = None
    resample: tuple[str, ...] = ("sources", "annotators")
    level: float = 0.95
    draws: int = 1000
    seed: int = 0
    unit: Unit = "natural"
    label: str | None = None

    def __post_init__(self) -> None:
        for name, options in (("method", METHODS), ("unit", UNITS)):
            if getattr(self, name) not in options:
                raise DataError(
                    f"'{getattr(self, name)}' is not a valid {name} of a comparison of systems.",
                    did_you_mean(str(getattr(self, name)), list(options)),
                )
        if not 0 < self.level < 1:
            raise DataError(f"the level is {self.level:g}.", "Give a number between 0 and 1, such as 0.95.")
        unknown = sorted(set(self.resample) - {"sources", "annotators"})
        if unknown or not self.resample:
            raise DataError("resample contains neither sources nor annotators.", 'Use ("sources", "annotators").')


@dataclass(frozen=True, slots=True, eq=False)
class SystemComparison:
    """Systems compared: a table of scores and a table of pairwise differences.

    `scores` has, for every system: score with interval, rank with range, cluster, the number of systems it is
    significantly better than, its wins, ties and losses, and what it rests on. `differences` has a row for every two
    systems, the one with the higher score first. `draws` are joint draws of the scores (draws × rows of `scores`).
    `coefficients` are those of covariates. Several criteria or subsets follow each other, with columns that name them.
    """

    scores: pl.DataFrame
    differences: pl.DataFrame
    draws: FloatArray = field(repr=False)
    method: str
    level: float
    notes: tuple[str, ...] = ()
    coefficients: pl.DataFrame | None = None

    def to_pandas(self) -> Any:
        """Return the scores of the systems as a pandas frame."""
        return pandas_frame(self.scores)

    def _repr_html_(self) -> str:
        columns = ("cluster", "rank", "system", "score", "lower", "upper", "rank_lower", "rank_upper", "judgments")
        keys = self.scores.columns[: self.scores.columns.index("system")]
        title = f"{self.scores['system'].n_unique()} systems, {100 * self.level:g} % intervals"
        return html_table(self.scores.select(*keys, *columns), title, self.notes)


class _Result(NamedTuple):
    """What every method gives, by system."""

    score: FloatArray
    unit_score: FloatArray
    sd: FloatArray
    lower: FloatArray
    upper: FloatArray
    interval: str
    pairwise: Pairwise
    ranges: tuple[FloatArray, FloatArray]
    cluster: NDArray[np.int64]
    draws: FloatArray
    notes: tuple[str, ...] = ()
    coefficients: pl.DataFrame | None = None


def compare(
    judgments: SystemJudgments, options: SystemOptions | None = None, covariates: Mapping[str, FloatArray] | None = None
) -> SystemComparison:
    """Compare the systems of some judgments of one criterion.

    `covariates` have a value for each comparison: that of the left system minus that of the right one.
    """
    options = options or SystemOptions()
    observations = judgments.observations
    if observations.kind not in KINDS:
        raise DataError(
            f"systems are compared by {', '.join(KINDS)}; these are {observations.kind}.",
            "Choose another kind of judgments.",
        )
    if len(observations) == 0:
        raise DataError("there are no judgments of systems.", "Collect or import some first.")
    if covariates and not isinstance(observations, Comparisons):
        raise DataError("covariates need comparisons.", "Leave them out.")
    if isinstance(observations, Labels):
        return _compare_labels(judgments, observations, options)
    if options.label is not None:
        raise DataError(f"{observations.kind} have no labels.", "Leave out the label.")
    result = _METHODS[options.method](judgments, options, covariates or {})
    return _tabulated(judgments, result, options)


def _compare_labels(judgments: SystemJudgments, labels: Labels, options: SystemOptions) -> SystemComparison:
    """Compare systems by the proportion of each label, or of the one that the options name."""
    names = list(labels.classes.ids)
    if options.method == "wmt":
        raise DataError("WMT has no procedure for labels.", "Use the method two_way or bootstrap.")
    if options.label is not None and options.label not in names:
        raise DataError(f"there is no label '{options.label}'.", did_you_mean(options.label, names))
    chosen = [options.label] if options.label is not None else names
    if len(chosen) == 2:
        # One says it all: the first, unless that is a negative one, as in an alphabetical order.
        chosen = [next((name for name in names if name.casefold() not in NEGATIVE_LABELS), names[0])]
    parts = []
    for name in chosen:
        has_label = (labels.label == labels.classes.code(name)).astype(np.float64)
        indicators = Ratings(
            items=labels.items,
            annotators=labels.annotators,
            tasks=labels.tasks,
            annotator=labels.annotator,
            task=labels.task,
            item=labels.item,
            value=has_label,
            scale=(0.0, 1.0),
        )
        # Not adjusted for sources and annotators, so that the score is the proportion that readers can count.
        comparison = compare(replace(judgments, observations=indicators), replace(options, adjust=False, label=None))
        parts.append(({"label": name}, _with_exact_ends(comparison)))
    whole = joined(parts)
    return replace(whole, notes=(*whole.notes, _labels_note(names, chosen)))


def _labels_note(names: Sequence[str], chosen: Sequence[str]) -> str:
    if len(chosen) > 1:
        return "scores are the proportion of each label"
    others = ", ".join(f"“{name}”" for name in names if name not in chosen)
    return f"scores are the proportion of “{chosen[0]}” (other labels: {others})"


def _with_exact_ends(comparison: SystemComparison) -> SystemComparison:
    """Give proportions of 0 and 1, which have no variance, the interval of Clopper and Pearson over the sources."""
    tail = (1 - comparison.level) / 2
    count = pl.coalesce("sources", "judgments")
    # The mean of means of ones may differ from 1 in the last digit.
    is_none, is_all = pl.col("score") < 1e-9, pl.col("score") > 1 - 1e-9
    scores = comparison.scores.with_columns(
        pl.when(is_all).then(tail ** (1 / count)).otherwise("lower").alias("lower"),
        pl.when(is_none).then(1 - tail ** (1 / count)).otherwise("upper").alias("upper"),
    )
    return replace(comparison, scores=scores)


# Methods


def _two_way(judgments: SystemJudgments, options: SystemOptions, covariates: Mapping[str, FloatArray]) -> _Result:
    source, annotator, units, notes = _units(judgments, options)
    observations = judgments.observations
    n = len(judgments.systems)
    coefficients = None
    more: tuple[str, ...]
    if covariates and isinstance(observations, Comparisons):
        contextual = fit_contextual(observations, np.column_stack(list(covariates.values())))
        whole = clustered_covariance(contextual.influence, source, annotator, units)
        coefficients = _coefficients(contextual.coefficients, whole, list(covariates), options.level)
        influence = replace(
            contextual.influence, score=contextual.influence.score[:n], bread=contextual.influence.bread[:n]
        )
        unit_score, more = _shares(influence.score), ("ties count as half a win for each side",)
    elif isinstance(observations, Ratings):
        influence, more = _means(_cells(judgments), options)
        unit_score = _unit(influence.score, observations)
    else:
        strengths = _strengths(judgments, options)
        influence, unit_score, more = strengths.influence, strengths.unit_score, strengths.notes
    covariance = clustered_covariance(influence, source, annotator, units)
    result = _from_covariance(influence.score, unit_score, covariance, options)
    return result._replace(notes=(*more, *notes), coefficients=coefficients)


def _bootstrap(judgments: SystemJudgments, options: SystemOptions, covariates: Mapping[str, FloatArray]) -> _Result:
    _refuse_covariates(covariates, options)
    source, annotator, _, notes = _units(judgments, options)
    rng = np.random.default_rng(options.seed)
    observations = judgments.observations
    units = [code for code in (source, annotator) if code is not None]
    more: tuple[str, ...] = ()
    if isinstance(observations, Ratings):
        cells = _cells(judgments)
        own = cells._replace(annotator=annotator)
        own = own if source is not None else own._replace(source=np.zeros(len(cells.value), np.int32))
        score = plain_means(cells).score
        draws = resampled_means(own, options.draws, rng)
        unit_score = _unit(score, observations)
    else:
        strengths = _strengths(judgments, options)
        score, unit_score, more = strengths.influence.score, strengths.unit_score, strengths.notes
        draws = resampled_strengths(strengths, units, options.draws, rng)
    names = " and ".join(_unit_names(source, annotator, judgments))
    return _from_draws(score, unit_score, draws, f"bootstrap({names})", options)._replace(notes=(*more, *notes))


def _wmt(judgments: SystemJudgments, options: SystemOptions, covariates: Mapping[str, FloatArray]) -> _Result:
    _refuse_covariates(covariates, options)
    observations = judgments.observations
    if not isinstance(observations, Ratings):
        # The replicates resample single judgments (Koehn 2012; Sakaguchi et al. 2014).
        strengths = _strengths(judgments, options)
        units = [np.arange(len(observations), dtype=np.int32)]
        draws = resampled_strengths(strengths, units, options.draws, np.random.default_rng(options.seed))
        result = _from_draws(strengths.influence.score, strengths.unit_score, draws, "bootstrap(judgments)", options)
        return result._replace(notes=strengths.notes)
    if not observations.knows_annotators:
        raise DataError("standardised scores need annotators.", "Name the column of annotators.")
    cells = _cells(judgments)
    z_score = wmt.standardized(cells.value, observations.annotator)
    assessment = wmt.direct_assessment(cells._replace(value=z_score))
    influence = plain_means(cells._replace(value=z_score))
    alone = np.arange(len(z_score), dtype=np.int32)
    covariance = clustered_covariance(influence, alone, None, "clustered(judgments)")
    result = _from_covariance(assessment.z_score, _unit(plain_means(cells).score, observations), covariance, options)
    is_better = assessment.p_value < wmt.SIGNIFICANCE
    two_sided = np.minimum(1.0, 2 * np.fmin(assessment.p_value, assessment.p_value.T))
    pairwise = replace(result.pairwise, p_value=two_sided, is_better=is_better)
    return result._replace(
        pairwise=pairwise,
        ranges=rank_ranges(is_better, ~np.isnan(result.score)),
        cluster=assessment.cluster,
        notes=(
            "scores are means of z scores (by annotator), and clusters come from rank-sum tests at p < .05 without a "
            "correction, as in WMT's evaluations",
        ),
    )


_METHODS = {"two_way": _two_way, "bootstrap": _bootstrap, "wmt": _wmt}


def _means(cells: Cells, options: SystemOptions) -> tuple[Influence, tuple[str, ...]]:
    if not options.adjust:
        return plain_means(cells), ()
    if not can_adjust(cells):
        return plain_means(cells), ("too many judgments to adjust for sources and annotators: scores are plain means",)
    return adjusted_means(cells), ()


def _strengths(judgments: SystemJudgments, options: SystemOptions) -> Strengths:
    model = options.model or default_model(judgments.observations.kind)
    if judgments.observations.kind not in model.accepts:
        model = default_model(judgments.observations.kind)
    return fit_strengths(judgments.observations, model)


def _from_covariance(
    score: FloatArray, unit_score: FloatArray, covariance: Covariance, options: SystemOptions
) -> _Result:
    pairwise = compare_pairs(score, covariance, options.level)
    variance, freedom = covariance.of_scores()
    sd = np.sqrt(variance)
    half = scipy.special.stdtrit(freedom, (1 + options.level) / 2) * sd
    ranges = rank_ranges(pairwise.is_better, ~np.isnan(score))
    return _Result(
        score,
        unit_score,
        sd,
        score - half,
        score + half,
        covariance.units,
        pairwise,
        ranges,
        clusters_of_differences(score, pairwise.is_better),
        score + _student_draws(covariance, options.draws, np.random.default_rng(options.seed)),
    )


def _student_draws(covariance: Covariance, count: int, rng: np.random.Generator) -> FloatArray:
    """Draw deviations whose differences have, on average, the variance and the tails of those of the scores."""
    variance, freedom = covariance.of_differences()
    matrix = covariance.matrix
    present = np.triu(np.ones_like(variance, dtype=bool), 1)
    own = np.diag(matrix)[:, None] + np.diag(matrix) - 2 * matrix
    factor = np.sqrt(variance[present].sum() / max(own[present].sum(), 1e-300)) if present.any() else 1.0
    common = float(np.median(freedom[present])) if present.any() else 1e6
    scale = np.sqrt(common / rng.chisquare(common, count))
    return np.asarray(factor * scale[:, None] * normal_draws(matrix, count, rng))


def _from_draws(
    score: FloatArray, unit_score: FloatArray, draws: FloatArray, interval: str, options: SystemOptions
) -> _Result:
    # A resample can leave a system without judgments.
    draws = draws[~np.isnan(draws[:, ~np.isnan(score)]).any(axis=1)]
    if len(draws) < 2:
        raise DataError("no resample has a finite fit.", "Collect more judgments.")
    tails = [(1 - options.level) / 2, (1 + options.level) / 2]
    with np.errstate(invalid="ignore"):
        lower, upper = np.nanquantile(draws, tails, axis=0)
    pairwise = pairs_from_draws(score, draws, options.level)
    ranges = ranges_of_draws(score, draws, options.level)
    return _Result(
        score,
        unit_score,
        np.nanstd(draws, axis=0, ddof=1),
        np.fmin(lower, score),
        np.fmax(upper, score),
        interval,
        pairwise,
        ranges,
        clusters_of_ranges(score, *ranges),
        draws,
    )


def _units(
    judgments: SystemJudgments, options: SystemOptions
) -> tuple[IntArray | None, IntArray | None, str, tuple[str, ...]]:
    """Return the codes of the sampling units: sources, annotators, both, or single judgments; and their name."""
    notes = []
    source = annotator = None
    if "sources" in options.resample and judgments.knows_sources:
        source = judgments.source_codes()
        if source.max() == 0:
            notes.append("there is only one source: the results hold for this source only")
            source = None
    if "annotators" in options.resample:
        annotator = judgments.annotator_codes()
        if annotator is None:
            notes.append("annotators are unknown: the intervals do not include differences between annotators")
        elif annotator.max() == 0:
            notes.append("there is only one annotator: the results hold for this annotator only")
            annotator = None
    if source is None and annotator is None:
        source = np.arange(len(judgments.observations), dtype=np.int32)
        return source, None, "clustered(judgments)", tuple(notes)
    names = _unit_names(source, annotator, judgments)
    return source, annotator, f"clustered({' and '.join(names)})", tuple(notes)


def _unit_names(source: IntArray | None, annotator: IntArray | None, judgments: SystemJudgments) -> list[str]:
    names = ["sources" if judgments.knows_sources else "judgments"] if source is not None else []
    return [*names, *(["annotators"] if annotator is not None else [])]


def _refuse_covariates(covariates: Mapping[str, FloatArray], options: SystemOptions) -> None:
    if covariates:
        raise DataError(f"the method {options.method} does not support covariates.", "Use the method two_way.")


def _cells(judgments: SystemJudgments) -> Cells:
    ratings = judgments.observations
    if not isinstance(ratings, Ratings):
        raise DataError(f"{ratings.kind} are not ratings.")
    return Cells(
        ratings.item, judgments.source_codes(), judgments.annotator_codes(), ratings.value, len(judgments.systems)
    )


def _unit(score: FloatArray, ratings: Ratings) -> FloatArray:
    low, high = ratings.scale
    return np.clip((score - low) / (high - low), 0.0, 1.0)


def _shares(theta: FloatArray) -> FloatArray:
    from scipy.special import expit

    return np.asarray((expit(theta[:, None] - theta).sum(axis=1) - 0.5) / max(len(theta) - 1, 1))


def _coefficients(values: FloatArray, covariance: Covariance, names: list[str], level: float) -> pl.DataFrame:
    variance, freedom = covariance.of_scores()
    own = slice(len(variance) - len(names), None)
    sd, freedom = np.sqrt(variance[own]), freedom[own]
    half = scipy.special.stdtrit(freedom, (1 + level) / 2) * sd
    return pl.DataFrame(
        {
            "covariate": names,
            "coefficient": values,
            "sd": sd,
            "lower": values - half,
            "upper": values + half,
            "p_value": 2 * scipy.stats.t.sf(np.abs(values) / sd, freedom),
        }
    )


# Tables


def _tabulated(judgments: SystemJudgments, result: _Result, options: SystemOptions) -> SystemComparison:
    if options.unit == "elo":
        if judgments.observations.kind == Ratings.kind:
            raise DataError("ratings have their own scale.", "Use the unit natural.")
        result = _as_elo(result)
    observations = judgments.observations
    wins, ties = _wins_and_ties(judgments)
    order = np.lexsort((np.arange(len(result.score)), -np.nan_to_num(result.score, nan=-np.inf)))
    lower, upper = result.lower, result.upper
    if isinstance(observations, Ratings) and observations.bounds is not None and options.method != "wmt":
        lower, upper = (np.clip(end, *observations.bounds) for end in (lower, upper))
    counts, annotators = count_by_item(observations, *observations.incidence())
    names = judgments.systems.ids
    scores = pl.DataFrame(
        {
            "system": pl.Series(names, dtype=pl.String),
            "score": _column(result.score),
            "unit_score": _column(result.unit_score),
            "sd": _column(np.where(np.isnan(result.score), np.nan, result.sd)),
            "lower": _column(lower),
            "upper": _column(upper),
            "interval": [result.interval] * len(names),
            "rank": _whole(competition_ranks(result.score)),
            "rank_lower": _whole(result.ranges[0]),
            "rank_upper": _whole(result.ranges[1]),
            "cluster": _whole(result.cluster),
            "better_than": result.pairwise.is_better.sum(axis=1).astype(np.int64),
            "wins": wins.sum(axis=1).astype(np.int64),
            "ties": ties.sum(axis=1).astype(np.int64),
            "losses": wins.sum(axis=0).astype(np.int64),
            "sources": _sources(judgments),
            "judgments": counts.astype(np.int64),
            "annotators": pl.Series([None] * len(names) if annotators is None else annotators, dtype=pl.Int64),
        }
    )[order]
    differences = _differences(names, order, result.pairwise, (wins, ties))
    return SystemComparison(
        scores,
        differences,
        result.draws[:, order],
        options.method,
        options.level,
        (*judgments.notes, *result.notes),
        result.coefficients,
    )


def _as_elo(result: _Result) -> _Result:
    scale = ELO_PER_LOGIT
    pairwise = result.pairwise
    wide = {name: scale * getattr(pairwise, name) for name in ("difference", "sd", "lower", "upper")}
    moved = {name: ELO_MEAN + scale * getattr(result, name) for name in ("score", "lower", "upper", "draws")}
    return result._replace(sd=scale * result.sd, pairwise=replace(pairwise, **wide), **moved)


def _differences(
    names: Sequence[str],
    order: NDArray[np.int64],
    pairwise: Pairwise,
    counts: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> pl.DataFrame:
    first, second = np.triu_indices(len(order), 1)
    first, second = order[first], order[second]
    ids = np.array(names, object)
    wins, ties = counts

    def column(matrix: FloatArray) -> pl.Series:
        return _column(matrix[first, second])

    return pl.DataFrame(
        {
            "system": pl.Series(ids[first], dtype=pl.String),
            "other": pl.Series(ids[second], dtype=pl.String),
            "difference": column(pairwise.difference),
            "sd": column(pairwise.sd),
            "lower": column(pairwise.lower),
            "upper": column(pairwise.upper),
            "p_value": column(pairwise.p_value),
            "p_holm": column(pairwise.p_holm),
            "probability": column(pairwise.probability),
            "significant": pairwise.is_better[first, second],
            "wins": wins[first, second].astype(np.int64),
            "ties": ties[first, second].astype(np.int64),
            "losses": wins[second, first].astype(np.int64),
        }
    )


def _wins_and_ties(judgments: SystemJudgments) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count, for every two systems, the wins of the row and the ties.

    Ratings are compared source by source: the system with the higher mean rating wins the source.
    """
    n, observations = len(judgments.systems), judgments.observations
    wins, ties = np.zeros((n, n), np.int64), np.zeros((n, n), np.int64)
    if isinstance(observations, Ratings):
        means = _means_by_source(_cells(judgments))
        for system in range(n):
            with np.errstate(invalid="ignore"):
                gap = means[system] - means
                wins[system], ties[system] = (gap > 0).sum(axis=1), (gap == 0).sum(axis=1)
        np.fill_diagonal(ties, 0)
        return wins, ties
    table = PairTable.count(pairs_of(observations), n)  # type: ignore[arg-type]  # ratings were treated above
    wins[table.first, table.second] = np.rint(table.wins)
    wins[table.second, table.first] = np.rint(table.losses)
    ties[table.first, table.second] = ties[table.second, table.first] = np.rint(table.ties)
    return wins, ties


def _means_by_source(cells: Cells) -> FloatArray:
    """Return the mean rating of every system (rows) on every source (columns); NaN where there is none."""
    n_sources = int(cells.source.max()) + 1
    place = cells.system.astype(np.int64) * n_sources + cells.source
    size = cells.n_systems * n_sources
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.bincount(place, cells.value, size) / np.bincount(place, minlength=size)
    return np.asarray(means.reshape(cells.n_systems, n_sources))


def _sources(judgments: SystemJudgments) -> pl.Series:
    """Count the sources of every system."""
    n = len(judgments.systems)
    if not judgments.knows_sources:
        return pl.Series([None] * n, dtype=pl.Int64)
    item, row = judgments.observations.incidence()
    source = judgments.source[row]
    has_source = source >= 0
    cells = np.unique(item[has_source].astype(np.int64) * len(judgments.sources) + source[has_source])
    return pl.Series(np.bincount(cells // len(judgments.sources), minlength=n).astype(np.int64))


def _column(values: FloatArray) -> pl.Series:
    return pl.Series(np.asarray(values, np.float64)).fill_nan(None)


def _whole(values: NDArray[Any]) -> pl.Series:
    """Return whole numbers; 0 and NaN stand for none."""
    numbers = np.nan_to_num(np.asarray(values, np.float64))
    return pl.Series([int(value) if value > 0 else None for value in numbers], dtype=pl.Int64)


def joined(parts: Sequence[tuple[Mapping[str, str], SystemComparison]]) -> SystemComparison:
    """Put comparisons of several criteria or subsets into one; the keys become columns before the others."""
    if len(parts) == 1 and not any(parts[0][0].values()):
        return parts[0][1]

    def tables(name: str) -> list[pl.DataFrame]:
        return [
            frame.select(*(pl.lit(value, pl.String).alias(key) for key, value in keys.items()), pl.all())
            for keys, part in parts
            if (frame := getattr(part, name)) is not None
        ]

    first = parts[0][1]
    count = min(len(part.draws) for _, part in parts)
    coefficients = tables("coefficients")
    return SystemComparison(
        pl.concat(tables("scores")),
        pl.concat(tables("differences")),
        np.concatenate([part.draws[:count] for _, part in parts], axis=1),
        first.method,
        first.level,
        _joined_notes(parts),
        pl.concat(coefficients) if coefficients else None,
    )


def _joined_notes(parts: Sequence[tuple[Mapping[str, str], SystemComparison]]) -> tuple[str, ...]:
    """Return the notes that all parts have, then those of single parts with the names of the parts."""
    common = [note for note in parts[0][1].notes if all(note in part.notes for _, part in parts)]
    named = [
        f"{', '.join(filter(None, keys.values()))}: {note}"
        for keys, part in parts
        for note in part.notes
        if note not in common
    ]
    return tuple(dict.fromkeys([*common, *named]))
