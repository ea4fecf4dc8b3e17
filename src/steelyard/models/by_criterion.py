"""Fitting a model to each criterion separately, with all results in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import polars as pl
from scipy import special

from steelyard.errors import DataError
from steelyard.models.fit import Fit, Model, failures_reported
from steelyard.models.table import Uncertainty, aligned_draws, score_table
from steelyard.observations import FloatArray, Index, Observations

if TYPE_CHECKING:
    from steelyard.models.gold import Gold


class Judged(Protocol):
    """Judgments of items: observations in memory, or the log of an engine."""

    @property
    def items(self) -> Index: ...


J = TypeVar("J", bound=Judged)

_INDEPENDENT_DRAWS = 400
"""Draws for ranks of combined scores where the model has none."""


def fit_by_criterion(
    model: Model,
    by_criterion: Mapping[str, Observations],
    gold: Mapping[str, Mapping[str, str]] | None = None,
    groups: Mapping[str, str] | None = None,
    covariates: Mapping[str, Any] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Fit:
    """Fit each criterion separately; the score table has columns for criterion and group.

    `gold` is by criterion, as `read_gold` returns it; the gold of "" applies to every criterion. `groups` maps items
    to their groups. `covariates` are by criterion, for models that take them. With `weights` of the criteria, the
    table has their weighted mean too, as criterion "combined".
    """
    of_part = {id(part): (covariates or {}).get(criterion) for criterion, part in by_criterion.items()}

    def fit_one(model: Model, part: Observations, own_gold: Gold | None) -> Fit:
        return model.fitted(part, own_gold, of_part[id(part)])

    return fit_each_criterion(model, by_criterion, fit_one, gold, groups, weights)


def fit_each_criterion(
    model: Model,
    by_criterion: Mapping[str, J],
    fit_one: Callable[[Model, J, Gold | None], Fit],
    gold: Mapping[str, Mapping[str, str]] | None = None,
    groups: Mapping[str, str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Fit:
    """Fit each criterion with `fit_one`, as `fit_by_criterion` does with observations in memory."""
    if not by_criterion:
        raise DataError("there are no judgments yet.", "Collect some, or import them: steelyard import.")
    gold = gold or {}
    fits = {
        criterion: _fit_criterion(model, criterion, judged, fit_one, gold) for criterion, judged in by_criterion.items()
    }
    if weights and len(fits) > 1 and all("score" in fit.scores.columns for fit in fits.values()):
        fits[COMBINED] = combined_fit(model, fits, weights)
    scores = [_with_columns(fit.scores, criterion, groups or {}) for criterion, fit in fits.items()]
    annotators = [
        _with_columns(fit.annotators, criterion, {}) for criterion, fit in fits.items() if fit.annotators is not None
    ]
    return Fit(
        model.name,
        model.settings(),
        pl.concat(scores, how="diagonal"),
        annotators=pl.concat(annotators, how="diagonal") if annotators else None,
        notes=tuple(
            f"{criterion}: {note}" if criterion else note
            for criterion, fit in fits.items()
            for note in (*fit.notes, *_missing_intervals(fit))
        ),
        iterations=max(fit.iterations for fit in fits.values()),
        converged=all(fit.converged for fit in fits.values()),
        draws=_joint_draws(list(fits.values())),
    )


COMBINED = "combined"
"""The criterion of weighted means of all criteria."""


def combined_fit(model: Model, fits: Mapping[str, Fit], weights: Mapping[str, float]) -> Fit:
    """Return the weighted mean of the criteria's scores, with intervals from the draws of all of them.

    Without draws, the criteria's errors are taken as independent. Items that lack a criterion have no combined score.
    """
    names = list(fits)
    share = np.array([weights.get(name, 1.0) for name in names])
    share = share / share.sum()
    items = Index(sorted({item for fit in fits.values() for item in fit.scores["item"]}))
    columns = {
        column: np.stack([_by_item(fits[name].scores, column, items) for name in names])
        for column in ("score", "unit_score", "sd")
    }
    score, unit_score = share @ columns["score"], share @ columns["unit_score"]
    sd = np.sqrt((share**2) @ columns["sd"] ** 2)
    draws = _combined_draws([fits[name] for name in names], share, items)
    if draws is None:
        reach = special.ndtri((1 + fits[names[0]].level) / 2)
        rng = np.random.default_rng(0)
        noise = score + np.nan_to_num(sd) * rng.standard_normal((_INDEPENDENT_DRAWS, len(items)))
        uncertainty = Uncertainty("independent", noise, sd, score - reach * sd, score + reach * sd)
    else:
        uncertainty = Uncertainty.from_draws("draws", draws, fits[names[0]].level)
    counts = np.stack([_by_item(fits[name].scores, "judgments", items) for name in names])
    table = score_table(
        items,
        score,
        unit_score,
        uncertainty,
        np.nan_to_num(counts).max(axis=0).astype(np.int32),
        None,
        level=fits[names[0]].level,
    )
    words = ", ".join(f"{name} {100 * part:.3g} %" for name, part in zip(names, share, strict=True))
    return Fit(
        model.name,
        model.settings(),
        table,
        notes=(f"weighted mean of the criteria ({words})",),
        draws=aligned_draws(table, items, uncertainty.draws),
    )


def _by_item(scores: pl.DataFrame, column: str, items: Index) -> FloatArray:
    values = np.full(len(items), np.nan)
    if column in scores.columns:
        values[items.codes(scores["item"].to_list())] = scores[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return values


def _combined_draws(fits: list[Fit], share: FloatArray, items: Index) -> FloatArray | None:
    parts = [fit.draws for fit in fits if fit.draws is not None]
    if len(parts) < len(fits):
        return None
    total = np.zeros((min(len(part) for part in parts), len(items)))
    # Fits with one seed share their random numbers; in another order the draws of criteria are independent.
    rng = np.random.default_rng(0)
    for fit, part, weight in zip(fits, parts, share, strict=True):
        own = np.full((len(total), len(items)), np.nan)
        own[:, items.codes(fit.scores["item"].to_list())] = part[rng.permutation(len(part))[: len(total)]]
        total += weight * own
    return total


def _joint_draws(fits: list[Fit]) -> FloatArray | None:
    """Return the draws of all criteria side by side, as many as each of them has."""
    parts = [fit.draws for fit in fits if fit.draws is not None]
    if len(parts) < len(fits):
        return None
    count = min(len(part) for part in parts)
    return np.concatenate([part[:count] for part in parts], axis=1)


def _fit_criterion(
    model: Model,
    criterion: str,
    judged: J,
    fit_one: Callable[[Model, J, Gold | None], Fit],
    gold: Mapping[str, Mapping[str, str]],
) -> Fit:
    """Fit one criterion with its own gold, or with the items of the common gold that it contains."""
    own = gold.get(criterion)
    if own is None and criterion:
        own = {item: answer for item, answer in gold.get("", {}).items() if item in judged.items}
    try:
        with failures_reported(model):
            return fit_one(model, judged, own)
    except DataError as error:
        if not criterion:
            raise
        raise DataError(replace(problem, what=f"{criterion}: {problem.what}") for problem in error.problems) from None


def _missing_intervals(fit: Fit) -> tuple[str, ...]:
    """Explain why some items have a score and no interval, where the model does not."""
    if "score" not in fit.scores.columns or fit.notes:
        return ()
    without = fit.scores.filter(pl.col("score").is_not_null() & pl.col("lower").is_null()).height
    return (
        (f"{without} items have no interval: all annotators gave the same answer, or only one judged them",)
        if without
        else ()
    )


def _with_columns(table: pl.DataFrame, criterion: str, groups: Mapping[str, str]) -> pl.DataFrame:
    """Add the columns criterion and group after the first, where there are any."""
    first = table.columns[0]
    extra = []
    if criterion:
        extra.append(pl.lit(criterion).alias("criterion"))
    if groups:
        extra.append(pl.col(first).replace_strict(groups, default=None, return_dtype=pl.String).alias("group"))
    return table.select(first, *extra, pl.exclude(first))
