"""Fitting a model to each criterion separately, with all results in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import polars as pl

from steelyard.errors import DataError
from steelyard.models.fit import Fit, Model, failures_reported
from steelyard.observations import FloatArray, Index, Observations

if TYPE_CHECKING:
    from steelyard.models.gold import Gold


class Judged(Protocol):
    """Judgments of items: observations in memory, or the log of an engine."""

    @property
    def items(self) -> Index: ...


J = TypeVar("J", bound=Judged)


def fit_by_criterion(
    model: Model,
    by_criterion: Mapping[str, Observations],
    gold: Mapping[str, Mapping[str, str]] | None = None,
    groups: Mapping[str, str] | None = None,
    covariates: Mapping[str, Any] | None = None,
) -> Fit:
    """Fit each criterion separately; the score table has columns for criterion and group.

    `gold` is by criterion, as `read_gold` returns it; the gold of "" applies to every criterion. `groups` maps items
    to their groups. `covariates` are by criterion, for models that take them.
    """
    of_part = {id(part): (covariates or {}).get(criterion) for criterion, part in by_criterion.items()}

    def fit_one(model: Model, part: Observations, own_gold: Gold | None) -> Fit:
        return model.fitted(part, own_gold, of_part[id(part)])

    return fit_each_criterion(model, by_criterion, fit_one, gold, groups)


def fit_each_criterion(
    model: Model,
    by_criterion: Mapping[str, J],
    fit_one: Callable[[Model, J, Gold | None], Fit],
    gold: Mapping[str, Mapping[str, str]] | None = None,
    groups: Mapping[str, str] | None = None,
) -> Fit:
    """Fit each criterion with `fit_one`, as `fit_by_criterion` does with observations in memory."""
    if not by_criterion:
        raise DataError("there are no judgments yet.", "Collect some, or import them: steelyard import.")
    gold = gold or {}
    fits = {
        criterion: _fit_criterion(model, criterion, judged, fit_one, gold) for criterion, judged in by_criterion.items()
    }
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
