"""Prediction-powered scores of a study's systems: people on a part of the items, a judge on all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from steelyard.errors import DataError
from steelyard.study import Study
from steelyard.study.judge_scores import item_means, judge_item_scores, numeric_column

if TYPE_CHECKING:
    from steelyard.models.systems.prediction_powered import PoweredMean

PROPENSITY = "propensity"
"""Column of the items with the probability that people are asked about an item."""
MOST_MISSING = 0.2
"""Largest proportion of a system's items that the judge may have refused to score."""


@dataclass(frozen=True, slots=True, eq=False)
class PoweredSystems:
    """Prediction-powered means of the systems: one row each, with what people alone would give."""

    table: pl.DataFrame
    judge: str
    notes: tuple[str, ...]


def powered_systems(
    study: Study,
    judge: str,
    *,
    criterion: str = "",
    label: str | None = None,
    folds: int = 0,
    level: float = 0.95,
) -> PoweredSystems:
    """Estimate the mean score of each system from people's judgments of some items and a judge's of all.

    Raises an error if people's items cannot be treated as a random sample: if the design chose them by earlier answers
    and their probabilities are not in the column `propensity`, or if the judge scores them differently.
    """
    people = study.observations(study.config.stages[0].protocol.kinds[0], annotator_kind="person")
    if criterion not in people:
        raise DataError("people have not judged anything yet.", "Let people judge a random sample of the items.")
    human = item_means(people[criterion], label)
    scores = judge_item_scores(study, judge, criterion, label)
    propensity = numeric_column(study.items, PROPENSITY)
    _check_design(study, propensity)
    groups: dict[str, list[str]] = {}
    for item in study.items:
        groups.setdefault(item.group or "all items", []).append(item.id)
    rows = {name: _one_system(name, ids, human, scores, propensity, folds, level) for name, ids in groups.items()}
    table = pl.DataFrame([_row(name, result) for name, result in rows.items()]).sort("score", descending=True)
    how = "AIPW with the probabilities in the column propensity" if propensity else "PPI++"
    unscored = sum(item.id not in scores for item in study.items)
    notes = (
        f"{how}; the weight of the judge is λ: 0 means that the judge does not help",
        "intervals are for a population of similar items, judged by similar annotators",
        *([f"{unscored:,} items without a score by the judge get its mean"] if unscored else []),
    )
    return PoweredSystems(table, judge, notes)


def _check_design(study: Study, propensity: Mapping[str, float]) -> None:
    if propensity:
        return
    with study.core.log.read() as state:
        is_adaptive = state.learns
    if is_adaptive:
        design = study.config.stages[0].design.name
        raise DataError(
            f"the design {design} chose the items by earlier answers, so people's items are not a random sample.",
            f"Log each item's probability in a column '{PROPENSITY}', or use a design such as per_item.",
        )


def _one_system(
    name: str,
    ids: Sequence[str],
    human: Mapping[str, float],
    scores: Mapping[str, float],
    propensity: Mapping[str, float],
    folds: int,
    level: float,
) -> PoweredMean:
    from steelyard.models.systems.prediction_powered import check_random, powered_mean, weighted_mean

    missing = [one for one in ids if one not in scores]
    if len(missing) > MOST_MISSING * len(ids):
        raise DataError(
            f"the judge has no score for {len(missing)} of the {len(ids)} items of {name}, such as '{missing[0]}'.",
            "Let the judge score every item: steelyard judges run.",
        )
    # Any guess that does not depend on people's answers keeps the interval valid.
    usual = float(np.mean([scores[one] for one in ids if one in scores]))
    f = np.array([scores.get(one, usual) for one in ids])
    is_judged = np.array([one in human for one in ids])
    y = np.array([human.get(one, np.nan) for one in ids])
    try:
        if propensity:
            probabilities = np.array([propensity.get(one, np.nan) for one in ids])
            return weighted_mean(y, f, is_judged, probabilities, level=level)
        check_random(f[is_judged], f[~is_judged], name)
        return powered_mean(y[is_judged], f[is_judged], f[~is_judged], folds=folds, level=level)
    except DataError as error:
        raise DataError(f"{name}: {error.problems[0].what}", error.problems[0].remedy) from None


def _row(name: str, result: PoweredMean) -> dict[str, object]:
    return {
        "system": name,
        "score": result.value,
        "lower": result.lower,
        "upper": result.upper,
        "people_score": result.people_mean,
        "people_lower": result.people_mean - result.people_half_width,
        "people_upper": result.people_mean + result.people_half_width,
        "weight": result.weight,
        "correlation": result.correlation,
        "human_items": result.human_items,
        "items": result.items,
        # Without negative zeros.
        "saving": round(result.saving, 12) + 0.0,
    }


def expected_savings(study: Study, judge: str, *, criterion: str = "", label: str | None = None) -> pl.DataFrame:
    """Return what the judge would save for several numbers of items judged by people, from the pilot's correlation."""
    from steelyard.models.systems.prediction_powered import expected_saving

    observations = study.observations(study.config.stages[0].protocol.kinds[0], annotator_kind="person")
    human = item_means(observations[criterion], label) if criterion in observations else {}
    scores = judge_item_scores(study, judge, criterion, label)
    both = [one for one in human if one in scores]
    if len(both) < 10:
        raise DataError(
            f"people and the judge have {len(both)} items in common.", "Let people judge ten items or more first."
        )
    y, f = np.array([human[one] for one in both]), np.array([scores[one] for one in both])
    correlation = float(np.corrcoef(y, f)[0, 1]) if y.std() and f.std() else 0.0
    total = len(study.items)
    rows = []
    for part in (0.05, 0.1, 0.2, 0.3, 0.5):
        n = max(10, round(part * total))
        saving = expected_saving(max(0.0, correlation), n, total)
        rows.append((n, total, correlation, saving, round(n / (1 - saving))))
    columns = ["human_items", "items", "correlation", "saving", "people_alone"]
    return pl.DataFrame(rows, schema=columns, orient="row").unique("human_items", maintain_order=True)
