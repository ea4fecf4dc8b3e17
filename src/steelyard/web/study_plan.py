"""The plan of a draft: tasks, hours and cost, and the reason for the choice of its design."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import ceil
from typing import Annotated

from pydantic import BaseModel, Field

from steelyard.designs.description import describe_plan
from steelyard.records import Item
from steelyard.simulate import forecast_study
from steelyard.simulate.task_time import task_seconds
from steelyard.study import StudyConfig
from steelyard.study.recipes import choose_design
from steelyard.web.draft_folders import StagePlan

MAX_SIMULATED_TASKS = 5_000
"""Largest plan that is simulated while somebody waits; larger ones take `steelyard simulate`."""
simulating = threading.Lock()
"""Simulations run one at a time: they keep a core busy for some seconds."""
_TASKS_PER_ANNOTATOR = 50
"""Tasks of one annotator that a plan assumes where the study sets no limit."""


class StagePlanOut(BaseModel):
    """The plan of one stage."""

    stage: str
    reason: Annotated[str, Field(description="why the design was chosen; empty if the researcher chose it")]
    sentences: list[str]
    warnings: list[str]
    judgments: int
    per_item: float
    automatic: bool


class PlanOut(BaseModel):
    """The size, duration and cost of a study. Hours and cost are estimates."""

    stages: list[StagePlanOut]
    judgments: Annotated[int, Field(description="answers that the designs ask for")]
    tasks: Annotated[int, Field(description="answers with attention checks and repeated tasks")]
    seconds: Annotated[float, Field(description="seconds per task: typed by the researcher, or estimated")]
    is_estimate: bool
    hours: float
    annotators: int
    least_annotators: Annotated[int, Field(description="distinct annotators that the designs need")]
    tasks_each: float
    minutes_each: float
    cost: Annotated[float | None, Field(description="pay and fees, without bonuses; null if nothing is paid")]
    per_hour: Annotated[float | None, Field(description="what an annotator earns per hour")]
    currency: str


class ReliabilityOut(BaseModel):
    """The reliability that simulated annotators reach, with the range of 90 % of the simulated studies."""

    stage: str
    measure: str
    value: float | None
    lower: float | None
    upper: float | None


def expected_reliability(config: StudyConfig, items: Sequence[Item], annotators: int) -> list[ReliabilityOut]:
    """Simulate ten studies with typical annotators, and return the reliability of each stage."""
    with simulating:
        forecast = forecast_study(config, items, people=annotators, examples=0)
    return [
        ReliabilityOut(
            stage=stage.name,
            measure=stage.measure,
            value=stage.reliability,
            lower=stage.lower,
            upper=stage.upper,
        )
        for stage in forecast.stages
    ]


def planned_tasks(config: StudyConfig, judgments: int) -> int:
    """Return the number of tasks for this many judgments: with checks and repeats."""
    quality = config.quality
    each = config.annotators.max_tasks or _TASKS_PER_ANNOTATOR
    extra = quality.repeat_rate + (0.0 if quality.checks is None else quality.checks.expected(each) / each)
    return ceil(judgments / max(1 - extra, 0.05))


def plan_of(
    config: StudyConfig,
    items: Sequence[Item],
    plans: Sequence[StagePlan],
    annotators: int | None = None,
    seconds: float | None = None,
) -> PlanOut:
    """Plan a study: how many tasks, how long, at what cost."""
    stages, least, estimate = [], 1, 0.0
    for stage, plan in zip(config.stages, plans, strict=False):
        description = describe_plan(stage.design, stage.protocol, items)
        size = description.size
        stages.append(
            StagePlanOut(
                stage=stage.name,
                reason=choose_design(stage.protocol, items, plan.judgments, plan.document).reason
                if plan.automatic
                else "",
                sentences=list(description.sentences),
                warnings=list(description.warnings),
                judgments=size.judgments,
                per_item=round(size.per_item, 2),
                automatic=plan.automatic,
            )
        )
        distinct = getattr(stage.design, "judgments", 1) if stage.design.name == "per_item" else size.annotators
        least = max(least, int(distinct))
        estimate += size.judgments * task_seconds(stage.protocol)
    judgments = sum(stage.judgments for stage in stages)
    each = config.annotators.max_tasks or _TASKS_PER_ANNOTATOR
    tasks = planned_tasks(config, judgments)
    typical = round(estimate / max(judgments, 1), 1)
    people = annotators or max(least, ceil(tasks / each))
    hours = tasks * (seconds or typical) / 3600
    rates = config.pay.rates
    earned = rates.earned(tasks, hours, people)
    return PlanOut(
        stages=stages,
        judgments=judgments,
        tasks=tasks,
        seconds=seconds or typical,
        is_estimate=seconds is None,
        hours=hours,
        annotators=people,
        least_annotators=least,
        tasks_each=tasks / people,
        minutes_each=60 * hours / people,
        cost=rates.cost(tasks, hours, people) if rates.any else None,
        per_hour=earned / hours if rates.any and hours else None,
        currency=config.pay.currency,
    )
