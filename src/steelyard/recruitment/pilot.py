"""Results of a pilot: times, pay, agreement, and a plan for the full run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from steelyard.errors import ConfigError, DataError, SteelyardError
from steelyard.observations import Labels
from steelyard.recruitment.estimates import reward, timed_answers
from steelyard.reliability import agreement
from steelyard.simulate import PlanOption, choose_options, plan, read_pilot
from steelyard.study import Study
from steelyard.study.config import Stage
from steelyard.study.fitting import kind_for

_PASSED_ON = ("size", "scale", "ties", "tie_margin", "items_per_page")
"""Settings of the protocol that change how informative an answer is."""
_DEFAULT_ANNOTATORS = 50


@dataclass(frozen=True, slots=True)
class TimeQuartiles:
    """The quartiles of a time, in seconds."""

    lower: float
    median: float
    upper: float

    @staticmethod
    def of(seconds: pl.Series) -> TimeQuartiles:
        """Compute the quartiles of times."""
        low, middle, high = (float(value) for value in np.quantile(seconds.to_numpy(), [0.25, 0.5, 0.75]))
        return TimeQuartiles(low, middle, high)


@dataclass(frozen=True, slots=True)
class PilotSummary:
    """Results of a pilot. Money is in the study's currency, times are in seconds; unknown values are None.

    `agreement` has a table of statistics for each criterion. `plan` has one row, for the study's own protocol and
    design; if it is None, `plan_note` has the reason.
    """

    people: int
    answers: int
    task: TimeQuartiles
    person: TimeQuartiles
    per_person: float | None
    per_hour: float | None
    agreement: dict[str, pl.DataFrame]
    remaining_judgments: int
    tasks_each: int | None
    plan: pl.DataFrame | None
    plan_note: str


def pilot_sentences(summary: PilotSummary, target: float, currency: str) -> list[str]:
    """Return the results of a pilot in sentences: time, pay, and what the full run takes."""
    task, person = summary.task.median, summary.person.median / 60
    sentences = [
        f"{summary.people:,} annotators gave {summary.answers:,} answers: {task:.1f} seconds per task and "
        f"{person:.1f} minutes per annotator (medians)."
    ]
    if summary.per_person is not None and summary.per_hour is not None:
        sentences.append(
            f"An annotator gets {summary.per_person:,.2f} {currency}, which is {summary.per_hour:,.2f} {currency} per "
            "hour of active time."
        )
    sentences.append(f"The design, as configured, needs {summary.remaining_judgments:,} more judgments.")
    row = None if summary.plan is None else summary.plan.row(0, named=True)
    if row is not None and row["judgments"] is None:
        sentences.append(
            f"A split-half reliability of {target:g} is not reached with this question and design: at best "
            f"{row['best']:.2f}."
        )
    elif row is not None:
        cost = f" and {row['cost']:,.2f} {currency}" if row["cost"] is not None else ""
        sentences.append(
            f"A split-half reliability of {target:g} takes about {row['judgments']:,} judgments in total "
            f"({row['lower']:,} to {row['upper']:,}), {row['hours']:,.1f} hours of work{cost}."
        )
    return [*sentences, summary.plan_note] if summary.plan_note else sentences


def summarise_pilot(study: Study, *, target: float = 0.9, seed: int = 0, people: int | None = None) -> PilotSummary:
    """Summarise the answers so far, and plan the full run with annotators like these."""
    timed = timed_answers(study)
    if timed.is_empty():
        raise DataError("there are no answers yet.", "Serve the study and invite a few annotators first.")
    each = timed.group_by("annotator").agg(pl.col("seconds").sum(), pl.len().alias("answers"))
    limit = study.config.annotators.max_tasks
    # Annotators who did not finish would bias the time of a whole visit.
    finished = each if limit is None else each.filter(pl.col("answers") >= limit)
    person = TimeQuartiles.of((finished if finished.height else each)["seconds"])
    paid = _paid(study)
    kind = kind_for(study.config.model, study.config.stages)
    observed = study.observations(kind)
    statistics = {name: agreement(part, seed=seed).table for name, part in observed.items() if len(part)}
    table, note = _planned(study, observed, TimeQuartiles.of(timed["seconds"]).median, target, seed, people)
    return PilotSummary(
        people=each.height,
        answers=timed.height,
        task=TimeQuartiles.of(timed["seconds"]),
        person=person,
        per_person=paid,
        per_hour=None if paid is None or person.median == 0 else paid / person.median * 3600,
        agreement=statistics,
        remaining_judgments=sum(stage.total - stage.done for stage in study.status().stages),
        tasks_each=limit,
        plan=table,
        plan_note=note,
    )


def _paid(study: Study) -> float | None:
    """Pay of one annotator for a whole visit, before bonuses."""
    config = study.config
    if config.prolific is not None:
        try:
            return reward(study) / 100
        except ConfigError:
            return None
    if not config.pay.rates.any:
        return None
    table = study.annotators.pay()
    median = table["pay"].median()
    return float(median) if isinstance(median, int | float) else None


def _planned(
    study: Study, observed: dict[str, Any], seconds: float, target: float, seed: int, people: int | None
) -> tuple[pl.DataFrame | None, str]:
    first = next(iter(observed.values()), None)
    if first is None or first.kind == Labels.kind:
        return None, "labels have no split-half reliability to plan for"
    stage = study.config.stages[0]
    prolific = study.config.prolific
    crowd = people or (prolific.places if prolific is not None else _DEFAULT_ANNOTATORS)
    rng = np.random.default_rng(seed)
    try:
        fitted = read_pilot(observed, rng)
        option = _option(study, stage)
        full_run = plan(len(study.items), target, [option], populations=fitted.samples, people=max(2, crowd), seed=seed)
    except SteelyardError as error:
        return None, str(error)
    fee = 1 + study.config.pay.fee
    price, wage = study.config.pay.per_task * fee or None, study.config.pay.per_hour * fee or None
    table = full_run.table(price=price, wage=None if price else wage, seconds={option.protocol: seconds})
    return table, "; ".join([*fitted.notes, *full_run.notes])


def _option(study: Study, stage: Stage) -> PlanOption:
    """The study's own protocol and design, or the nearest option that can be planned."""
    source = study.config.source or {}
    written = source.get("protocol") or (source.get("stage") or [{}])[0].get("protocol") or {}
    settings = tuple((key, written[key]) for key in _PASSED_ON if key in written)
    n_items = len(study.items)
    try:
        fitting = choose_options(n_items, [stage.protocol.name], [stage.design.name])
    except ConfigError:
        fitting = choose_options(n_items, [stage.protocol.name])
    return PlanOption(fitting[0].protocol, fitting[0].design, settings, study.config.model.name)
