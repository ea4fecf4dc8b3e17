"""Fitting a model criterion by criterion, and which observations a study's model is fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from steelyard.errors import DataError
from steelyard.models.fit import Fit, Model, failures_reported
from steelyard.observations import Mixed, Observations, Ratings
from steelyard.study.config import Stage
from steelyard.study.observing import way_of

if TYPE_CHECKING:
    from steelyard.engines import Log


def kind_for(model: Model, stages: Sequence[Stage]) -> str:
    """Return the kind of observations to fit a model to: its preferred one among those the stages give.

    Where a model can take several ways of asking at once, and there are several, it is "mixed".
    """
    ways = {way for stage in stages if (way := way_of(stage.protocol)) is not None}
    if Mixed.kind in model.accepts and len(ways) > 1:
        return Mixed.kind
    yielded = {kind for stage in stages for kind in stage.protocol.kinds}
    kind = next((kind for kind in model.accepts if kind in yielded), None)
    if kind is None:
        raise DataError(
            f"{model.name} needs {' or '.join(model.accepts)}; this study gives {', '.join(sorted(yielded))}.",
            "Choose another model.",
        )
    return kind


def on_rating_scale(model: Model, stages: Sequence[Stage]) -> bool:
    """Whether the scores are on the scale of the ratings asked for."""
    return Ratings.kind in model.accepts and any(Ratings.kind in stage.protocol.kinds for stage in stages)


def fit_by_criterion(
    model: Model,
    by_criterion: Mapping[str, Observations] | Mapping[str, Log],
    gold: Mapping[str, Mapping[str, str]] | None = None,
    groups: Mapping[str, str] | None = None,
) -> Fit:
    """Fit each criterion separately; return the scores in one table, with columns for criterion and group.

    The judgments are in memory, or in an engine's log. `gold` is by criterion, as `read_gold` gives it; that of "" is
    for all criteria. `groups` are the items'.
    """
    if not by_criterion:
        raise DataError("there are no judgments yet.", "Collect some, or import them: steelyard import.")
    gold = gold or {}
    fits = {
        criterion: _fitted(model, criterion, observations, gold) for criterion, observations in by_criterion.items()
    }
    tables = [_decorated(fit.scores, criterion, groups or {}) for criterion, fit in fits.items()]
    people = [
        _decorated(fit.annotators, criterion, {}) for criterion, fit in fits.items() if fit.annotators is not None
    ]
    return Fit(
        model.name,
        model.settings(),
        pl.concat(tables, how="diagonal"),
        annotators=pl.concat(people, how="diagonal") if people else None,
        notes=tuple(
            f"{name}: {note}" if name else note for name, fit in fits.items() for note in (*fit.notes, *_unsure(fit))
        ),
        iterations=max(fit.iterations for fit in fits.values()),
        converged=all(fit.converged for fit in fits.values()),
    )


def _fitted(
    model: Model, criterion: str, observations: Observations | Log, gold: Mapping[str, Mapping[str, str]]
) -> Fit:
    """Fit one criterion with its own gold, or with that for all criteria as far as it concerns this one."""
    own = gold.get(criterion)
    if own is None and criterion:
        own = {item: answer for item, answer in gold.get("", {}).items() if item in observations.items}
    try:
        with failures_reported(model):
            if isinstance(observations, Observations):
                return model.fitted(observations, own)
            from steelyard.engines import fit_log

            return fit_log(model, observations, own)
    except DataError as error:
        if not criterion:
            raise
        raise DataError(replace(problem, what=f"{criterion}: {problem.what}") for problem in error.problems) from None


def _unsure(fit: Fit) -> tuple[str, ...]:
    """Say why some items have a score and no interval, where the model has not."""
    if "score" not in fit.scores.columns or fit.notes:
        return ()
    without = fit.scores.filter(pl.col("score").is_not_null() & pl.col("lower").is_null()).height
    return (f"{without} items have no interval: all who judged them say the same, or only one did",) if without else ()


def _decorated(table: pl.DataFrame, criterion: str, groups: Mapping[str, str]) -> pl.DataFrame:
    first = table.columns[0]
    extra = []
    if criterion:
        extra.append(pl.lit(criterion).alias("criterion"))
    if groups:
        extra.append(pl.col(first).replace_strict(groups, default=None, return_dtype=pl.String).alias("group"))
    return table.select(first, *extra, pl.exclude(first))
