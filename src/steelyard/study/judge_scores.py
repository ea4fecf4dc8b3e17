"""A score of each item by a judge: a model's answers, or a numeric column of the items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import ConfigError, DataError, did_you_mean
from steelyard.observations import Index, Labels, Observations, Ratings
from steelyard.records import Item, Judgment
from steelyard.study.observing import collect

if TYPE_CHECKING:
    from steelyard.models.fit import Model
    from steelyard.study.study import Study


def numeric_column(items: Sequence[Item], name: str) -> dict[str, float]:
    """Return the numbers in a column of the items; items without one are left out."""
    values: dict[str, float] = {}
    for item in items:
        text = item.metadata.get(name)
        try:
            value = float(text) if text else np.nan
        except ValueError:
            raise DataError(f"'{text}' in column '{name}' is not a number (item {item.id}).", "Use numbers.") from None
        if np.isfinite(value):
            values[item.id] = value
    return values


def latest_judgments(study: Study, name: str) -> list[Judgment]:
    """Return a model's judgments in the latest version of its prompt, repeated calls included."""
    version = study.judges.registrations()[name][-1].version
    own = [judgment for judgment in study.judges.judgments() if judgment.annotator == name]
    return [judgment for judgment in own if judgment.version == version] or own


def item_means(observations: Observations, label: str | None = None) -> dict[str, float]:
    """Return the mean rating of each item, or the proportion of its labels that are `label`."""
    if isinstance(observations, Ratings):
        values = observations.value
    elif isinstance(observations, Labels):
        if label not in observations.classes.ids:
            raise ConfigError(f"there is no label '{label}'.", did_you_mean(str(label), list(observations.classes.ids)))
        values = (observations.label == observations.classes.code(str(label))).astype(np.float64)
    else:
        raise DataError(
            f"prediction-powered means need ratings or labels, not {observations.kind}.",
            "For comparisons use the judge as a prior: [judges] covariates.",
        )
    count = np.bincount(observations.item, minlength=len(observations.items))
    total = np.bincount(observations.item, weights=values, minlength=len(observations.items))
    return {observations.items[int(code)]: float(total[code] / count[code]) for code in np.flatnonzero(count)}


def judge_item_scores(
    study: Study, judge: str, criterion: str, label: str | None = None, *, compared: bool = False
) -> dict[str, float]:
    """Return a judge's score of each item: a model's mean answer, or the number in a column of the items.

    With `compared`, answers that compare items give scores of their own.
    """
    columns = sorted({name for item in study.items for name in item.metadata})
    if judge in study.judges.names():
        return _model_scores(study, latest_judgments(study, judge), criterion, label, compared)
    if judge in columns:
        return numeric_column(study.items, judge)
    names = [*study.judges.names(), *columns]
    raise ConfigError(
        f"there is no model and no column of the items called '{judge}'.",
        did_you_mean(judge, names) if names else "Run one first: steelyard judges run.",
    )


def _model_scores(
    study: Study, judgments: Sequence[Judgment], criterion: str, label: str | None, compared: bool
) -> dict[str, float]:
    protocols = {stage.name: stage.protocol for stage in study.config.stages}
    index = Index([item.id for item in study.items])
    kind = study.config.stages[0].protocol.kinds[0]
    by_criterion = collect(kind, judgments, protocols, index)
    if criterion not in by_criterion:
        return {}
    part = by_criterion[criterion]
    if compared and not isinstance(part, Ratings | Labels):
        return _compared_scores(part)
    return item_means(part, label)


def _compared_scores(observations: Observations) -> dict[str, float]:
    """Return a judge's own scores of compared items: log odds of winning, drawn in a little (Bradley–Terry)."""
    from steelyard.models.choices.counting import Counting
    from steelyard.models.comparisons.bradley_terry import BradleyTerry
    from steelyard.observations import Choices

    model: Any = Counting() if isinstance(observations, Choices) else BradleyTerry()
    part = observations if isinstance(observations, Choices) else observations.to_comparisons()
    scores = model.fit(part).scores.drop_nulls("score")
    return dict(scores.select("item", "score").iter_rows())


def covariates_by_criterion(study: Study, model: Model, observations: Mapping[str, Observations]) -> dict[str, Any]:
    """Return the covariates that [judges] names, by criterion, in the order of the observations' items."""
    names = study.config.judges.covariates
    if not names or not model.takes_covariates():
        return {}
    from steelyard.models.calibrated.covariates import Covariates

    return {
        criterion: Covariates.of(
            part.items.ids,
            {name: judge_item_scores(study, name, criterion, compared=True) for name in names},
            {item.id: item.group for item in study.items if item.group is not None},
        )
        for criterion, part in observations.items()
    }
