"""Repeated answers to the same task by the same annotator: how often they differ, and by the time between them."""

from __future__ import annotations

import json
from functools import singledispatch
from typing import Any

import numpy as np
import polars as pl

from steelyard.analysis.history import History
from steelyard.observations import Choice, Comparison, Label, Observation, RankedItems, Rating
from steelyard.protocols.unjudged import observe
from steelyard.reliability.bootstrap import Bootstrap, weighted_proportion
from steelyard.reliability.proportions import proportion
from steelyard.reliability.statistic import Statistic
from steelyard.study import Study

_SCHEMA = {
    "annotator": pl.String,
    "stage": pl.String,
    "criterion": pl.String,
    "question": pl.String,
    "hours": pl.Float64,
    "first": pl.String,
    "again": pl.String,
    "differs": pl.Boolean,
    "difference": pl.Float64,
}
_CLASSES, _LEAST_IN_CLASS = 5, 20
_NONE = "undefined: no task was repeated"


def repeat_pairs(history: History, study: Study) -> pl.DataFrame:
    """Pair each repeated answer with the first one, for annotators who are not excluded.

    Columns: `annotator`, `stage`, `criterion`, `question` (an item, a pair, or what was to be chosen), `hours` between
    the two, `first` and `again` (the answers), `differs`, and for ratings the absolute `difference`.
    """
    judgments = history.judgments.filter(~pl.col("excluded"))
    again = judgments.filter(pl.col("purpose") == "repeat")
    first = judgments.select("judgment_id", pl.col("at").alias("at_first"), pl.col("answer").alias("answer_first"))
    pairs = again.join(first, left_on="about", right_on="judgment_id", how="inner", maintain_order="left")
    protocols = {stage.name: stage.protocol for stage in study.config.stages}
    rows: list[tuple[Any, ...]] = []
    columns = ["annotator", "stage", "items", "answer", "answer_first", "at", "at_first"]
    for annotator, stage, items, after, before, at, at_first in pairs.select(columns).iter_rows():
        kind = protocols[stage].kinds[0]
        earlier = _answers_of(observe(protocols[stage], items, json.loads(before)), kind)
        later = _answers_of(observe(protocols[stage], items, json.loads(after)), kind)
        hours = (at - at_first).total_seconds() / 3600
        for (criterion, question), value in earlier.items():
            if (criterion, question) in later:
                other = later[criterion, question]
                gap = abs(value - other) if isinstance(value, float) and isinstance(other, float) else None
                row = (annotator, stage, criterion, question, hours)
                rows.append((*row, str(value), str(other), value != other, gap))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


_OF_KIND = {
    "ratings": Rating,
    "comparisons": Comparison,
    "choices": Choice,
    "rankings": RankedItems,
    "labels": Label,
}


def _answers_of(observations: list[Observation], kind: str) -> dict[tuple[str, str], float | str]:
    answers: dict[tuple[str, str], float | str] = {}
    for one in observations:
        if isinstance(one, _OF_KIND[kind]):
            answers |= _answers(one)
    return answers


@singledispatch
def _answers(observation: Any) -> dict[tuple[str, str], float | str]:
    """Return the answers in an observation, by criterion and question."""
    raise TypeError(type(observation).__name__)


@_answers.register
def _(observation: Rating) -> dict[tuple[str, str], float | str]:
    return {(observation.criterion, observation.item): float(observation.value)}


@_answers.register
def _(observation: Label) -> dict[tuple[str, str], float | str]:
    return {(observation.criterion, observation.item): observation.label}


@_answers.register
def _(observation: Comparison) -> dict[tuple[str, str], float | str]:
    winner = {1: observation.left, -1: observation.right}.get(int(observation.outcome), "tie")
    return {(observation.criterion, " | ".join(sorted((observation.left, observation.right)))): winner}


@_answers.register
def _(observation: Choice) -> dict[tuple[str, str], float | str]:
    items = " | ".join(sorted(observation.items))
    return {(observation.criterion, f"{end} of {items}"): str(getattr(observation, end)) for end in ("best", "worst")}


@_answers.register
def _(observation: RankedItems) -> dict[tuple[str, str], float | str]:
    order = " > ".join(" = ".join(sorted(tier)) for tier in observation.tiers)
    return {(observation.criterion, " | ".join(sorted(item for tier in observation.tiers for item in tier))): order}


def repeat_statistics(pairs: pl.DataFrame) -> list[Statistic]:
    """Return the inconsistency rate and, for ratings, the mean difference, as Kiritchenko & Mohammad (2017, §4)."""
    rated = pairs["difference"].null_count() < pairs.height
    statistics = [_rate("inconsistency_rate", pairs)]
    if rated:
        statistics.append(_mean("difference_if_inconsistent", pairs.filter(pl.col("differs"))))
        statistics.append(_mean("difference_of_repeats", pairs))
    return statistics


def repeats_by_time(pairs: pl.DataFrame) -> pl.DataFrame:
    """Tabulate repeats by the hours between them, in up to five classes of similar size.

    Columns: `from`, `to` (hours), `pairs`, `rate` with `lower` and `upper`, `difference` (mean absolute, for
    ratings) with `difference_lower` and `difference_upper`.
    """
    classes = int(np.clip(pairs.height // _LEAST_IN_CLASS, 1, _CLASSES))
    hours = pairs["hours"].to_numpy()
    edges = np.unique(np.quantile(hours, np.linspace(0, 1, classes + 1)))
    if len(edges) < 2:
        edges = np.array([edges[0], edges[0]])
    rows = []
    for place in range(len(edges) - 1):
        last = place == len(edges) - 2
        inside = (hours >= edges[place]) & ((hours <= edges[place + 1]) if last else (hours < edges[place + 1]))
        here = pairs.filter(pl.Series(inside))
        rate, mean = _rate("rate", here), _mean("difference", here)
        rows.append(
            (
                float(edges[place]),
                float(edges[place + 1]),
                here.height,
                *(rate.value, rate.lower, rate.upper),
                *(mean.value, mean.lower, mean.upper),
            )
        )
    names = ["from", "to", "pairs", "rate", "lower", "upper", "difference", "difference_lower", "difference_upper"]
    kinds = {name: pl.Int64 if name == "pairs" else pl.Float64 for name in names}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _annotators(pairs: pl.DataFrame) -> tuple[np.ndarray[Any, np.dtype[np.int64]], tuple[str, ...]]:
    names, code = np.unique(pairs["annotator"].to_numpy(), return_inverse=True)
    return code.astype(np.int64), tuple(map(str, names))


def _basis(pairs: pl.DataFrame, annotators: int) -> str:
    return f"{pairs.height:,} repeated answers of {annotators:,} annotators"


def _rate(key: str, pairs: pl.DataFrame) -> Statistic:
    cluster, names = _annotators(pairs)
    return proportion(
        key,
        pairs["differs"].cast(pl.Float64).to_numpy(),
        np.ones(pairs.height),
        Bootstrap(),
        unit="annotators",
        note=_basis(pairs, len(names)),
        undefined=_NONE,
        cluster=cluster,
        counted="repeats",
        names=lambda: names,
    )


def _mean(key: str, pairs: pl.DataFrame) -> Statistic:
    rated = pairs.drop_nulls("difference")
    cluster, names = _annotators(rated)
    return Bootstrap().statistic(
        key,
        weighted_proportion(rated["difference"].to_numpy(), np.ones(rated.height)),
        len(names),
        unit="annotators",
        note=_basis(rated, len(names)),
        undefined=_NONE,
        low=0.0,
        high=float("inf"),
        cluster=cluster,
        names=lambda: names,
    )
