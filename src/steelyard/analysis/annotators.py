"""Who is answering: each annotator's work, speed, agreement with the others and with themselves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from steelyard.analysis.history import TIME, History, observations_of
from steelyard.models.labels.majority import wilson
from steelyard.reliability.annotators import with_themselves
from steelyard.study import Study
from steelyard.study.quality import annotator_signals

_WORK = {
    "annotator": pl.String,
    "judgments": pl.Int64,
    "median_seconds": pl.Float64,
    "first": TIME,
    "last": TIME,
    "late": pl.Int64,
    "flags": pl.Int64,
    "skips": pl.Int64,
    "excluded": pl.String,
}


def annotator_table(history: History, study: Study) -> pl.DataFrame:
    """Return a row for each annotator, the busiest first.

    Columns: `judgments`, `median_seconds` per judgment, `first`, `last`, `late`, `flags`, `skips`, `excluded` (the
    reason, or null); `agreement` with `agreement_lower`, `agreement_upper`, `shared` (what it rests on) and `measure`;
    `bias` and `noise` (mean and sd of the difference from the others' mean, ratings only); `self_consistency` and
    `repeats`; `accuracy` in `checks` questions with known answers, with its interval; and the signals of
    `steelyard.quality.signals`. Agreement is with annotators who are not excluded, so that an excluded annotator can
    be compared with the others.
    """
    work = _work(history)
    for extra in (
        annotator_signals(study.config.stages, study.items, history.records, set(history.excluded)).drop("judgments"),
        with_themselves(observations_of(study, history.about_items(repeats=True))),
        checked(study.quality.check_results()),
    ):
        work = work.join(extra, on="annotator", how="left", maintain_order="left")
    return work


def checked(results: Mapping[str, tuple[int, int]]) -> pl.DataFrame:
    """Return each annotator's accuracy in the checks with Wilson's interval, from (right, asked) pairs."""
    right, asked = (np.array([pair[place] for pair in results.values()], np.float64) for place in (0, 1))
    lower, upper = wilson(right, asked, 0.95)
    return pl.DataFrame(
        {
            "annotator": list(results),
            "accuracy": right / np.maximum(asked, 1),
            "accuracy_lower": lower,
            "accuracy_upper": upper,
            "checks": asked.astype(np.int64),
        },
        schema_overrides={"annotator": pl.String},
    )


def _work(history: History) -> pl.DataFrame:
    own = history.judgments.filter(pl.col("annotator") != "")
    work = own.group_by("annotator").agg(
        pl.len().cast(pl.Int64).alias("judgments"),
        pl.col("seconds").median().alias("median_seconds"),
        pl.col("at").min().alias("first"),
        pl.col("at").max().alias("last"),
        pl.col("late").sum().cast(pl.Int64).alias("late"),
    )
    notes = history.notes.group_by("annotator").agg(
        (pl.col("kind") == "flag").sum().cast(pl.Int64).alias("flags"),
        (pl.col("kind") == "skip").sum().cast(pl.Int64).alias("skips"),
    )
    idle = [name for name in history.excluded if name not in set(work["annotator"])]
    more = pl.DataFrame({"annotator": idle}, schema={"annotator": pl.String})
    work = pl.concat([work, more], how="diagonal").join(notes, on="annotator", how="left")
    return (
        work.with_columns(
            pl.col("judgments", "late", "flags", "skips").fill_null(0),
            pl.col("annotator")
            .replace_strict(history.excluded, default=None, return_dtype=pl.String)
            .alias("excluded"),
        )
        .select(list(_WORK))
        .sort(["judgments", "annotator"], descending=[True, False])
    )
