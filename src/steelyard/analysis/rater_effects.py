"""Rater effects of a study: fit statistics, severity and drift, and how time and error change within a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from steelyard.analysis.history import History
from steelyard.observations import UNKNOWN, FloatArray, Observations, Ratings
from steelyard.reliability.residuals import Residuals, residuals
from steelyard.reliability.severity import fit_facets, places_in_work

SESSION_BREAK = timedelta(minutes=30)
"""A longer pause between two answers of one annotator begins a new session."""

MIN_IN_SESSION = 5
"""Sessions with fewer answers say nothing about what changes within a session."""

MIN_FOR_CHANGE = 20
"""Minimum number of answers of an annotator for a change within sessions."""

_FIT = {
    "stage": pl.String,
    "criterion": pl.String,
    "annotator": pl.String,
    "answers": pl.Int64,
    "infit": pl.Float64,
    "outfit": pl.Float64,
    "misfit": pl.Boolean,
    **{f"{name}{end}": pl.Float64 for name in ("severity", "drift") for end in ("", "_lower", "_upper")},
    "drift_p": pl.Float64,
}
_ITEMS = {
    "stage": pl.String,
    "criterion": pl.String,
    "item": pl.String,
    "answers": pl.Int64,
    "infit": pl.Float64,
    "outfit": pl.Float64,
    "misfit": pl.Boolean,
}
_ANSWERS = {
    "stage": pl.String,
    "criterion": pl.String,
    "judgment_id": pl.String,
    "annotator": pl.String,
    "item": pl.String,
    "other": pl.String,
    "observed": pl.Float64,
    "expected": pl.Float64,
    "residual": pl.Float64,
    "loo": pl.Float64,
}
_CHANGES = {
    "annotator": pl.String,
    **{f"{name}{end}": pl.Float64 for name in ("time_change", "error_change") for end in ("", "_lower", "_upper")},
}


@dataclass(frozen=True, slots=True, eq=False)
class RaterEffects:
    """What a model of all answers says about annotators and items, under the annotators' real ids.

    `annotators` has a row for each stage, criterion and annotator: infit, outfit, misfit (infit above mean + 2 sd),
    severity and drift with intervals (ratings only). `items` has infit and outfit of the items. `answers` has every
    rating, or every pair that an answer orders, with what the model expected; `residual` is standardised, `loo` is
    the same without the answer's own influence. `changes` has how time and error change from the beginning to the
    end of a session, by annotator, and `mean_change` the same for everybody.
    """

    annotators: pl.DataFrame
    items: pl.DataFrame
    answers: pl.DataFrame
    changes: pl.DataFrame
    mean_change: pl.DataFrame

    def by_annotator(self) -> pl.DataFrame:
        """Return a row for each annotator, over all stages and criteria.

        Infit and outfit are averaged with the numbers of answers as weights; severity, drift and the ends of their
        intervals are averaged, which is wide enough whatever the criteria have in common.
        """
        weight = pl.col("answers").cast(pl.Float64)
        means = [name for name in _FIT if name.startswith(("severity", "drift")) and name != "drift_p"]
        table = self.annotators.group_by("annotator", maintain_order=True).agg(
            *(
                (pl.col(name) * weight).sum() / weight.filter(pl.col(name).is_not_null()).sum()
                for name in ("infit", "outfit")
            ),
            pl.col("misfit").any(),
            *(pl.col(name).mean() for name in means),
        )
        table = table.with_columns(pl.col("infit", "outfit").fill_nan(None))
        return table.join(self.changes, on="annotator", how="full", coalesce=True)


def rater_effects(history: History, parts: Iterable[tuple[str, Mapping[str, Observations]]]) -> RaterEffects:
    """Compute the effects from the observations of each stage, by criterion; tasks are ids of judgments."""
    fits, items, answers = [], [], []
    for stage, by_criterion in parts:
        for criterion, part in by_criterion.items():
            result = residuals(part)
            if result is None:
                continue
            key = (pl.lit(stage).alias("stage"), pl.lit(criterion).alias("criterion"))
            table = result.by_annotator()
            if isinstance(part, Ratings):
                table = table.join(_severity(part, history), on="annotator", how="left", maintain_order="left")
            fits.append(table.with_columns(key))
            items.append(result.by_item().with_columns(key))
            answers.append(_answers(result).with_columns(key))
    answer_table = _stacked(answers, _ANSWERS)
    changes, mean_change = changes_in_sessions(history, answer_table)
    return RaterEffects(_stacked(fits, _FIT), _stacked(items, _ITEMS), answer_table, changes, mean_change)


def _stacked(frames: list[pl.DataFrame], schema: Mapping[str, Any]) -> pl.DataFrame:
    empty = pl.DataFrame(schema=schema)
    return pl.concat([empty, *frames], how="diagonal_relaxed").select(
        pl.col(name).cast(kind) for name, kind in schema.items()
    )


def _severity(part: Ratings, history: History) -> pl.DataFrame:
    """Return severity and drift; drift only where the order of the answers is known."""
    seq = dict(history.judgments.filter(~pl.col("imported")).select("judgment_id", "seq").iter_rows())
    order = np.array([seq.get(task, -1) for task in part.tasks.ids], np.float64)
    places = order[part.task] if len(order) else np.full(len(part), -1.0)
    time = None if (part.task == UNKNOWN).any() or (places < 0).any() else places_in_work(part.annotator, places)
    return fit_facets(part, time).annotators.drop("ratings")


def _answers(result: Residuals) -> pl.DataFrame:
    part = result.observations
    names, items, tasks = (
        pl.Series([*index.ids, None], dtype=pl.String) for index in (part.annotators, part.items, part.tasks)
    )
    return pl.DataFrame(
        {
            "judgment_id": tasks.gather(_codes(result.task, len(part.tasks))),
            "annotator": names.gather(_codes(result.annotator, len(part.annotators))),
            "item": items.gather(_codes(result.item, len(part.items))),
            "other": items.gather(_codes(result.other, len(part.items))),
            "observed": result.observed,
            "expected": result.expected,
            "residual": result.standardised,
            "loo": result.loo,
        }
    )


def _codes(codes: np.ndarray[tuple[int], np.dtype[np.int32]], last: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.where(codes == UNKNOWN, last, codes)


# Learning and fatigue


def sessions(judgments: pl.DataFrame) -> pl.DataFrame:
    """Return the judgments with `session` (a number by annotator) and `place` in it, from 0 (first) to 1 (last)."""
    ordered = judgments.filter((pl.col("annotator") != "") & ~pl.col("imported")).sort("annotator", "seq")
    pause = pl.col("at").diff().over("annotator").fill_null(timedelta(0)) > SESSION_BREAK
    ordered = ordered.with_columns(pause.cum_sum().over("annotator").alias("session"))
    own = ["annotator", "session"]
    size = pl.len().over(own)
    number = pl.int_range(pl.len()).over(own)
    return ordered.with_columns(size.alias("size"), (number / (size - 1).clip(1)).cast(pl.Float64).alias("place"))


def changes_in_sessions(history: History, answers: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return how time and error change from the beginning of a session to its end, by annotator and for everybody.

    `time_change` is relative: −0.2 means that the last answer of a session takes 20 % less than the first.
    `error_change` is the change of the mean absolute standardised residual. Both are slopes over the place in the
    session, with an intercept for each session, and heteroscedasticity-consistent intervals; everybody's are
    clustered by annotator.
    """
    error = answers.group_by("judgment_id").agg(pl.col("residual").abs().mean().alias("error"))
    work = sessions(history.judgments).join(error, on="judgment_id", how="left", maintain_order="left")
    work = work.filter(pl.col("size") >= MIN_IN_SESSION)
    timed = work.filter(pl.col("seconds") > 0).with_columns(pl.col("seconds").log().alias("value"))
    judged = work.filter(pl.col("error").is_not_null()).with_columns(pl.col("error").alias("value"))
    relative = [pl.col(key).exp() - 1 for key in ("slope", "lower", "upper")]
    times, mean_time = (_named(table.with_columns(relative), "time_change") for table in _slopes(timed))
    errors, mean_error = (_named(table, "error_change") for table in _slopes(judged))
    changes = times.join(errors, on="annotator", how="full", coalesce=True)
    mean_change = pl.concat([mean_time, mean_error], how="horizontal")
    return changes.select(pl.col(name).cast(kind) for name, kind in _CHANGES.items()).sort("annotator"), mean_change


def _named(table: pl.DataFrame, name: str) -> pl.DataFrame:
    return table.rename({"slope": name, "lower": f"{name}_lower", "upper": f"{name}_upper"})


def _slopes(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Regress `value` on `place` with an intercept for each session: by annotator, and over all of them."""
    own = ["annotator", "session"]
    centred = frame.select(
        "annotator",
        "session",
        (pl.col("place") - pl.col("place").mean().over(own)).alias("x"),
        (pl.col("value") - pl.col("value").mean().over(own)).alias("y"),
    )
    x, y = pl.col("x"), pl.col("y")
    sums = centred.group_by("annotator", maintain_order=True).agg(
        (x * y).sum().alias("xy"),
        (x * x).sum().alias("xx"),
        pl.len().alias("n"),
        pl.col("session").n_unique().alias("k"),
    )
    slope = (pl.col("xy") / pl.col("xx")).alias("slope")
    fitted = centred.join(sums.select("annotator", slope), on="annotator")
    meat = fitted.group_by("annotator").agg(((x * (y - pl.col("slope") * x)) ** 2).sum().alias("meat"))
    table = sums.with_columns(slope).join(meat, on="annotator", how="left", maintain_order="left")
    freedom = (table["n"] - table["k"] - 1).to_numpy().astype(np.float64)
    scale = table["n"].to_numpy() / np.maximum(freedom, 1)
    error = np.sqrt(scale * table["meat"].to_numpy()) / np.maximum(table["xx"].to_numpy(), 1e-300)
    by_annotator = _interval(table["annotator"], table["slope"].to_numpy(), error, freedom, table["n"].to_numpy())
    total = float(table["xx"].sum())
    mean = float(table["xy"].sum()) / total if total else np.nan
    # Clustered by annotator: answers of one annotator have their own slope in common.
    gaps = table["xy"].to_numpy() - mean * table["xx"].to_numpy()
    people = len(gaps)
    between = np.sqrt((gaps**2).sum() * people / max(people - 1, 1)) / total if total else np.nan
    count = float(people) if people > 2 else 0.0
    pooled = _interval(
        pl.Series(["everybody"]),
        np.array([mean]),
        np.array([between]),
        np.array([count - 1]),
        np.array([MIN_FOR_CHANGE if count else 0]),
    )
    return by_annotator, pooled.drop("annotator")


def _interval(
    names: pl.Series, slope: FloatArray, error: FloatArray, freedom: FloatArray, count: FloatArray
) -> pl.DataFrame:
    enough = (count >= MIN_FOR_CHANGE) & (freedom > 0)
    margin = special.stdtrit(np.maximum(freedom, 1), 0.975) * error
    values = {"slope": slope, "lower": slope - margin, "upper": slope + margin}
    return pl.DataFrame(
        {"annotator": names}
        | {name: pl.Series(np.where(enough, value, np.nan)).fill_nan(None) for name, value in values.items()}
    )
