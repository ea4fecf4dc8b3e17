"""Who is answering: each annotator's work, speed, agreement with the others and with themselves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from steelyard.analysis.history import TIME, History, observations_of
from steelyard.models.labels.majority import wilson
from steelyard.observations import Index, Observations
from steelyard.records import ABOUT_ANNOTATORS
from steelyard.reliability.annotators import with_themselves
from steelyard.study import Study
from steelyard.study.observing import ObservationCollector
from steelyard.study.quality import SignalReader, annotator_signals

_WORK = {
    "annotator": pl.String,
    "kind": pl.String,
    "judgments": pl.Int64,
    "median_seconds": pl.Float64,
    "seconds_per_item": pl.Float64,
    "first_action": pl.Float64,
    "changed": pl.Float64,
    "first": TIME,
    "last": TIME,
    "late": pl.Int64,
    "flags": pl.Int64,
    "skips": pl.Int64,
    "excluded": pl.String,
}


def annotator_table(history: History, study: Study, reader: AnnotatorReader | None = None) -> pl.DataFrame:
    """Return a row for each annotator, people before models, the busiest first.

    Models have the columns of their work and of their agreement with people; rules about speed are not for them.

    Columns: `kind` (person or model), `judgments`, `median_seconds` per judgment, `seconds_per_item` (of pages with
    several items: the median of a judgment's time divided by its items), `first_action` (median seconds before the
    answer was first touched),
    `changed` (proportion of answers that were changed before they were sent), `first`, `last`, `late`, `flags`,
    `skips`, `excluded` (the reason, or null); `agreement` with `agreement_lower`, `agreement_upper`, `shared` (what it
    rests on) and `measure`; `bias` and `noise` (mean and sd of the difference from the others' mean, ratings only);
    `self_consistency` and `repeats`; `accuracy` in `checks` questions with known answers, with its interval; and the
    signals of `steelyard.quality.signals`. Agreement is with people who are not excluded, so that an excluded
    annotator can be compared with the others. A `reader` that has read an earlier history of the same judgments reads
    only the new ones.
    """
    reader = reader or AnnotatorReader(study)
    reader.read(history)
    models = set(study.judges.names())
    work = _work(history, models)
    people_signals = reader.signals.table(study.items, set(history.excluded))
    model_signals = _with_people(study, history, models)
    for extra in (
        pl.concat([people_signals, model_signals], how="diagonal").drop("judgments"),
        with_themselves(reader.repeated(history)),
        checked(study.quality.check_results()),
    ):
        work = work.join(extra, on="annotator", how="left", maintain_order="left")
    return work


class AnnotatorReader:
    """What `annotator_table` gathers judgment by judgment, kept from one table to the next."""

    def __init__(self, study: Study) -> None:
        stages = study.config.stages
        self._study = study
        self._repeated = ObservationCollector(
            stages[0].protocol.kinds[0], {stage.name: stage.protocol for stage in stages}
        )
        self._size = 0
        self.signals = SignalReader(stages, study.config.page)

    def read(self, history: History) -> None:
        """Read the judgments by people that were added since the last call."""
        new = history.records[self._size :]
        self._size = len(history.records)
        self.signals.add(new, self._study.items)
        self._repeated.add(judgment for judgment in new if judgment.purpose in _FIRST_AND_REPEATED)

    def repeated(self, history: History) -> dict[str, Observations]:
        """Return the answers of people and models about items, with repeats."""
        by_models = [judgment for judgment in history.model_records if judgment.purpose in _FIRST_AND_REPEATED]
        if by_models:
            return observations_of(self._study, [*history.about_items(repeats=True), *by_models])
        return self._repeated.observations(Index([item.id for item in self._study.items]))


_FIRST_AND_REPEATED = {"judgment", "overlap", "repeat"}
"""Purposes of answers about items."""


def _with_people(study: Study, history: History, models: set[str]) -> pl.DataFrame:
    """Return each model's agreement with people: the others that a model is compared with are people only."""
    if not history.model_records:
        return pl.DataFrame(schema={"annotator": pl.String})
    judgments = [*history.records, *(j for j in history.model_records if j.purpose not in ABOUT_ANNOTATORS)]
    # Like an excluded annotator, a model is compared with the others and not the others with it.
    excluded = set(history.excluded) | models
    table = annotator_signals(study.config.stages, study.items, judgments, excluded, study.config.page)
    agreement = ("annotator", "agreement", "agreement_lower", "agreement_upper", "shared", "measure", "bias", "noise")
    return table.filter(pl.col("annotator").is_in(list(models))).select(
        name for name in agreement if name in table.columns
    )


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


def _work(history: History, models: set[str]) -> pl.DataFrame:
    columns = ("annotator", "seconds", "at", "late", "items")
    by_models = pl.DataFrame(
        {name: [getattr(judgment, name) for judgment in history.model_records] for name in columns},
        schema={name: history.judgments.schema[name] for name in columns},
    )
    people = history.judgments.filter(pl.col("annotator") != "").select(*columns, "first_action", "changes")
    own = pl.concat([people, by_models], how="diagonal")
    work = own.group_by("annotator").agg(
        pl.len().cast(pl.Int64).alias("judgments"),
        pl.col("seconds").median().alias("median_seconds"),
        pl.when(pl.col("items").list.len() > 1)
        .then(pl.col("seconds") / pl.col("items").list.len())
        .median()
        .alias("seconds_per_item"),
        pl.col("first_action").median(),
        (pl.col("changes") > 0).mean().alias("changed"),
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
            pl.when(pl.col("annotator").is_in(list(models)))
            .then(pl.lit("model"))
            .otherwise(pl.lit("person"))
            .alias("kind"),
        )
        .select(list(_WORK))
        .sort(["kind", "judgments", "annotator"], descending=[True, True, False])
    )
