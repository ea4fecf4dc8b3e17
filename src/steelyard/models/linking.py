"""Linking of scales: scores of several studies on the scale of the first, by the items that they share (anchors).

A score x of another study becomes slope · x + intercept. Slope and intercept are chosen so that the anchors have the
same mean and the same standard deviation in both studies (mean/sigma linking), after the errors of the scores and their
shrinkage are taken out. Their error is estimated by the jackknife over anchors and is part of every linked interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import NormalDist
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.models.fit import Fit
from steelyard.observations import FloatArray

Method: TypeAlias = Literal["mean_sigma", "mean"]
LEAST_ANCHORS: dict[Method, int] = {"mean_sigma": 5, "mean": 3}
"""Fewer anchors leave the jackknife too few degrees of freedom for an interval that means anything."""
FEW_ANCHORS = 10
"""With fewer anchors than this, a note says that the linking error is large."""
DRIFT_ALPHA = 0.05
"""Probability that any of the anchors of a link is flagged although all behave alike."""
_MOST_DROPPED = 1 / 3
_LEAST_RELIABILITY = 0.3
"""Of the anchors' scores: below, their standard deviation is mostly error."""
_MEDIAN_OF_CHI_SQUARE = 0.4549
_CENTRED_BY_PRIOR = "calibrated_scale"
"""The model whose prior has the variance of the items themselves."""


class _Scale(NamedTuple):
    """The scores of one study, and the same without the shrinkage of their prior."""

    name: str
    items: tuple[str, ...]
    score: FloatArray
    sd: FloatArray
    raw: FloatArray
    raw_sd: FloatArray

    def at(self, items: Sequence[str]) -> NDArray[np.int64]:
        places = {item: place for place, item in enumerate(self.items)}
        return np.array([places[item] for item in items], np.int64)


class _Line(NamedTuple):
    slope: float
    intercept: float

    def __call__(self, x: FloatArray) -> FloatArray:
        return self.slope * x + self.intercept


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """How one study is carried over to another: a line, its covariance, and the anchors that it rests on."""

    study: str
    reference: str
    line: _Line
    covariance: FloatArray
    degrees: int
    anchors: tuple[str, ...]
    drifted: tuple[str, ...]
    table: pl.DataFrame
    scatter: float
    """How much more the anchors scatter about the line than their errors explain, as a ratio of sds; at least 1."""

    def variance(self, x: FloatArray) -> FloatArray:
        """Return the variance of linked scores that the line's own error causes."""
        design = np.stack([x, np.ones_like(x)])
        return np.asarray(np.einsum("in,ij,jn->n", design, self.covariance, design))

    @property
    def t(self) -> float:
        """The 97.5 % quantile of t with the link's degrees of freedom."""
        from scipy.special import stdtrit

        return float(stdtrit(self.degrees, 0.975))


@dataclass(frozen=True, slots=True, eq=False)
class LinkedScales:
    """Scores of several studies on the scale of the first.

    `scores` has item, studies, score, sd, lower, upper (95 %) and rank; anchors that behave alike have one row.
    `links` has a row for each linked study: study, reference, anchors, slope and intercept with intervals, and scatter.
    `anchors` has study, item, reference_score, linked_score, difference, z, drifted.
    """

    scores: pl.DataFrame
    links: pl.DataFrame
    anchors: pl.DataFrame
    notes: tuple[str, ...]


def link_scales(
    fits: Mapping[str, Fit],
    *,
    anchors: Sequence[str] | None = None,
    method: Method = "mean_sigma",
    keep_drifting: bool = False,
) -> LinkedScales:
    """Place the scores of two or more studies on the scale of the first.

    `fits` are the studies' fits by name; `anchors` are the items that may link them, by default all that they share.
    `mean` only shifts scores, for studies with the same unit. Anchors whose difference stands out are left out of the
    link unless `keep_drifting`. A study that shares too few anchors with the first is linked through another one.
    """
    if len(fits) < 2:
        raise DataError("there is only one study.", "Give two or more studies that share items.")
    scales = {name: _scale(name, fit) for name, fit in fits.items()}
    allowed = None if anchors is None else set(anchors)
    if allowed is not None and (unknown := allowed - {item for scale in scales.values() for item in scale.items}):
        name = min(unknown)
        raise DataError(f"the anchor '{name}' has no score in any study.", "Give ids of scored items.")
    paths = _paths(scales, allowed, method, keep_drifting)
    return _result(scales, paths, method)


def _scale(name: str, fit: Fit) -> _Scale:
    table = fit.scores
    if "score" not in table.columns or "criterion" in table.columns:
        raise DataError(
            f"{name}: only studies with one score per item can be linked.",
            "For several criteria, fit and link each criterion separately.",
        )
    table = table.filter(pl.col("score").is_not_null() & (pl.col("sd") > 0) & pl.col("sd").is_finite())
    if table.is_empty():
        raise DataError(f"{name}: no item has a score with an interval.", "Collect more judgments.")
    score, sd = table["score"].to_numpy().astype(float), table["sd"].to_numpy().astype(float)
    raw, raw_sd = _without_shrinkage(score, sd, _prior_variance(fit, score, sd))
    return _Scale(name, tuple(table["item"]), score, sd, raw, raw_sd)


def _prior_variance(fit: Fit, score: FloatArray, sd: FloatArray) -> float:
    """Return the variance of the prior that pulled the scores together; infinite where there was none."""
    if fit.model == _CENTRED_BY_PRIOR:
        return float(score.var(ddof=1) + (sd**2).mean())
    prior = fit.settings.get("prior_sd")
    return float(prior) ** 2 if isinstance(prior, int | float) else inf


def _without_shrinkage(score: FloatArray, sd: FloatArray, prior_variance: float) -> tuple[FloatArray, FloatArray]:
    """Return estimates and sds as they would be without the prior N(mean, prior_variance)."""
    weight = np.clip(1 - sd**2 / prior_variance, 0.05, 1.0)
    centre = float(score.mean())
    return centre + (score - centre) / weight, sd / np.sqrt(weight)


def _shared(one: _Scale, other: _Scale, allowed: set[str] | None) -> list[str]:
    items = set(other.items) if allowed is None else set(other.items) & allowed
    return [item for item in one.items if item in items]


def _paths(
    scales: Mapping[str, _Scale], allowed: set[str] | None, method: Method, keep_drifting: bool
) -> dict[str, list[Link]]:
    """Return the links that lead from each study to the first, the study's own link first."""
    first, *others = scales
    paths: dict[str, list[Link]] = {first: []}
    while others:
        counts = {(name, base): len(_shared(scales[base], scales[name], allowed)) for name in others for base in paths}
        # The first study wins over others, as every link adds its error.
        best = max(counts, key=lambda pair: (counts[pair] >= LEAST_ANCHORS[method], pair[1] == first, counts[pair]))
        name, base = best
        if counts[best] < LEAST_ANCHORS[method]:
            _refuse(name, counts[best], method)
        link = _link(scales[base], scales[name], _shared(scales[base], scales[name], allowed), method, keep_drifting)
        paths[name] = [link, *paths[base]]
        others.remove(name)
    return {name: paths[name] for name in scales}


def _refuse(name: str, count: int, method: Method) -> None:
    raise DataError(
        f"{name} shares {count} scored item{'s' if count != 1 else ''} with the other studies; linking by "
        f"{method.replace('_', '/')} needs at least {LEAST_ANCHORS[method]}.",
        f"Judge at least {FEW_ANCHORS} items in both studies.",
    )


def _link(base: _Scale, scale: _Scale, items: Sequence[str], method: Method, keep_drifting: bool) -> Link:
    """Link two studies; anchors that stand out are left out one by one, the worst first."""
    remaining = list(items)
    drifted: list[str] = []
    while True:
        z, scatter = _deviations(base, scale, remaining, method)
        worst = int(np.abs(z).argmax())
        limit = NormalDist().inv_cdf(1 - DRIFT_ALPHA / (2 * len(remaining)))
        if keep_drifting or abs(z[worst]) <= limit:
            break
        if len(drifted) + 1 > _MOST_DROPPED * len(items) or len(remaining) - 1 < LEAST_ANCHORS[method]:
            break
        drifted.append(remaining.pop(worst))
    line, covariance = _jackknifed(base, scale, remaining, method)
    table = _anchor_table(base, scale, [*remaining, *drifted], line, covariance, scatter)
    standing_out = set(drifted) | {item for item, value in zip(remaining, z, strict=True) if abs(value) > limit}
    table = table.with_columns(drifted=pl.col("item").is_in(list(standing_out)))
    degrees = len(remaining) - (2 if method == "mean_sigma" else 1)
    return Link(
        scale.name, base.name, line, covariance, degrees, tuple(remaining), tuple(sorted(standing_out)), table, scatter
    )


def _fit_line(base: _Scale, scale: _Scale, items: Sequence[str], method: Method) -> _Line:
    a, b = base.at(items), scale.at(items)
    slope = 1.0
    if method == "mean_sigma":
        slope = sqrt(_true_variance(base, a) / _true_variance(scale, b))
    return _Line(slope, float(base.raw[a].mean() - slope * scale.raw[b].mean()))


def _true_variance(scale: _Scale, places: NDArray[np.int64]) -> float:
    """Return the variance of the anchors' true scores: that of the estimates less that of their errors."""
    observed = float(scale.raw[places].var(ddof=1))
    true = observed - float((scale.raw_sd[places] ** 2).mean())
    if true < _LEAST_RELIABILITY * observed:
        raise DataError(
            f"{scale.name}: the anchors differ too little, compared with the errors of their scores, to estimate the "
            "unit of the scale.",
            "Use anchors from the whole range of the scale, collect more judgments of them, or link by the mean only.",
        )
    return true


def _jackknifed(base: _Scale, scale: _Scale, items: Sequence[str], method: Method) -> tuple[_Line, FloatArray]:
    line = _fit_line(base, scale, items, method)
    without = np.array(_lines_without_each(base, scale, items, method))
    deviations = without - without.mean(axis=0)
    return line, (len(items) - 1) / len(items) * deviations.T @ deviations


def _lines_without_each(base: _Scale, scale: _Scale, items: Sequence[str], method: Method) -> list[_Line]:
    return [_fit_line(base, scale, [*items[:i], *items[i + 1 :]], method) for i in range(len(items))]


def _deviations(base: _Scale, scale: _Scale, items: Sequence[str], method: Method) -> tuple[FloatArray, float]:
    """Return each anchor's deviation from the link of the others, in standard errors, and the common scatter.

    Where anchors deviate more than their errors explain on the whole (robustly, by the median), all deviations are
    divided by that scatter: an anchor is flagged if it stands out from the others.
    """
    a, b = base.at(items), scale.at(items)
    _, covariance = _jackknifed(base, scale, items, method)
    lines = _lines_without_each(base, scale, items, method)
    slope, intercept = (np.array(column) for column in zip(*lines, strict=True))
    x = scale.raw[b]
    difference = base.raw[a] - (slope * x + intercept)
    design = np.stack([x, np.ones_like(x)])
    of_line = np.einsum("in,ij,jn->n", design, covariance, design)
    errors = base.raw_sd[a] ** 2 + (slope * scale.raw_sd[b]) ** 2
    z = difference / np.sqrt(errors + of_line)
    scatter = sqrt(max(1.0, float(np.median(z**2)) / _MEDIAN_OF_CHI_SQUARE))
    return np.asarray(z / scatter), scatter


def _anchor_table(
    base: _Scale, scale: _Scale, items: Sequence[str], line: _Line, covariance: FloatArray, scatter: float
) -> pl.DataFrame:
    a, b = base.at(items), scale.at(items)
    linked = line(scale.raw[b])
    design = np.stack([scale.raw[b], np.ones(len(b))])
    of_line = np.einsum("in,ij,jn->n", design, covariance, design)
    sd = np.sqrt(base.raw_sd[a] ** 2 + (line.slope * scale.raw_sd[b]) ** 2 + of_line)
    return pl.DataFrame(
        {
            "study": [scale.name] * len(items),
            "item": list(items),
            "reference_score": base.raw[a],
            "linked_score": linked,
            "difference": linked - base.raw[a],
            "z": (linked - base.raw[a]) / (scatter * sd),
        }
    )


# The common scale


def _carried(scale: _Scale, path: Sequence[Link]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Carry a study's scores along its links; return scores, sds, and half widths of 95 % intervals.

    The half width joins z times the score's own sd with t times the sd of each link.
    """
    z = NormalDist().inv_cdf(0.975)
    score, own, linking, half = scale.score, scale.sd**2, np.zeros(len(scale.score)), np.zeros(len(scale.score))
    for link in path:
        variance = link.variance(score)
        slope = link.line.slope
        own, linking, half = slope**2 * own, slope**2 * linking + variance, slope**2 * half + link.t**2 * variance
        score = link.line(score)
    return score, np.sqrt(own + linking), np.sqrt(z**2 * own + half)


def _result(scales: Mapping[str, _Scale], paths: Mapping[str, list[Link]], method: Method) -> LinkedScales:
    rows: dict[tuple[str, str], list[tuple[str, float, float, float]]] = {}
    drifted = {(link.study, item) for path in paths.values() for link in path for item in link.drifted}
    for name, scale in scales.items():
        score, sd, half = _carried(scale, paths[name])
        for item, *values in zip(scale.items, score.tolist(), sd.tolist(), half.tolist(), strict=True):
            apart = name if (name, item) in drifted else ""
            rows.setdefault((item, apart), []).append((name, *values))
    table = [(item, *_pooled(parts)) for (item, _), parts in rows.items()]
    scores = pl.DataFrame(table, ["item", "studies", "score", "sd", "lower", "upper"], orient="row")
    scores = scores.sort("score", "item", descending=[True, False]).with_columns(
        rank=pl.col("score").rank("min", descending=True).cast(pl.Int64)
    )
    links = [path[0] for path in paths.values() if path]
    return LinkedScales(
        scores, _link_table(links, method), pl.concat([link.table for link in links]), _notes(links, scales)
    )


def _pooled(parts: Sequence[tuple[str, float, float, float]]) -> tuple[str, float, float, float, float]:
    """Average an item's scores by their precision."""
    weight = np.array([1 / sd**2 for _, _, sd, _ in parts])
    weight /= weight.sum()
    score = float(sum(w * value for w, (_, value, _, _) in zip(weight, parts, strict=True)))
    sd, half = (sqrt(sum((w * part[place]) ** 2 for w, part in zip(weight, parts, strict=True))) for place in (2, 3))
    return ", ".join(name for name, *_ in parts), score, sd, score - half, score + half


def _link_table(links: Sequence[Link], method: Method) -> pl.DataFrame:
    rows = []
    for link in links:
        half = link.t * np.sqrt(np.diag(link.covariance))
        rows.append(
            {
                "study": link.study,
                "reference": link.reference,
                "method": method,
                "anchors": len(link.anchors),
                "drifted": len(link.drifted),
                "slope": link.line.slope,
                "slope_lower": link.line.slope - half[0],
                "slope_upper": link.line.slope + half[0],
                "intercept": link.line.intercept,
                "intercept_lower": link.line.intercept - half[1],
                "intercept_upper": link.line.intercept + half[1],
                "scatter": link.scatter,
            }
        )
    return pl.DataFrame(rows)


def _notes(links: Sequence[Link], scales: Mapping[str, _Scale]) -> tuple[str, ...]:
    notes = []
    first = next(iter(scales))
    for link in links:
        if link.reference != first:
            notes.append(f"{link.study} is linked to {first} through {link.reference}, which adds error")
        if len(link.anchors) < FEW_ANCHORS:
            notes.append(f"{link.study}: only {len(link.anchors)} anchors; use {FEW_ANCHORS} or more")
        if out := [item for item in link.drifted if item not in link.anchors]:
            notes.append(f"{link.study}: left out of the link because they drifted: {', '.join(out)}")
        if staying := [item for item in link.drifted if item in link.anchors]:
            names = ", ".join(staying)
            notes.append(f"{link.study}: anchors that drifted but stay in the link: {names}; the link is doubtful")
        if link.scatter > 1.5:
            notes.append(
                f"{link.study}: the anchors scatter {link.scatter:.1f} times as much as their errors explain; "
                "items are seen differently in the two studies"
            )
    return tuple(notes)
