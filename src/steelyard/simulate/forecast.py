"""Forecast of a study by simulation: its tasks, time, cost and reliability."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]

from steelyard.models.point_scores import PointScores
from steelyard.observations import Labels, Observations
from steelyard.quality.pay import standing_numbers
from steelyard.quality.questions import Question
from steelyard.records import Item
from steelyard.reliability import krippendorff_alpha, split_half
from steelyard.reliability.correlation import spearman
from steelyard.simulate.annotators import SimulatedAnnotators
from steelyard.simulate.plan_targets import reliability_from_truth
from steelyard.simulate.population import Population, make_crowd
from steelyard.simulate.simulated_study import SimulatedStudy, simulate_study
from steelyard.simulate.task_time import task_seconds
from steelyard.study.config import StudyConfig

STUDIES = 10
"""Number of simulated studies, each with other annotators and other true values."""

_LEVEL = 0.9
_FEW_ITEMS, _LONG_HOURS = 20, 2.0


@dataclass(frozen=True, slots=True)
class Example:
    """A simulated task with its answer."""

    annotator: str
    stage: str
    items: tuple[Item, ...]
    answer: Any


@dataclass(frozen=True, slots=True)
class StageForecast:
    """Forecast of one stage; the reliability is over simulated studies, None if it cannot be computed."""

    name: str
    protocol: str
    design: str
    tasks: int
    hours: float
    measure: str
    reliability: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True)
class StudyForecast:
    """Forecast of a study. `tasks_each` are the tasks per annotator in ascending order."""

    people: int
    tasks: int
    tasks_each: tuple[int, ...]
    hours: float
    cost: float | None
    complete: bool
    ended: str
    stages: tuple[StageForecast, ...]
    examples: tuple[Example, ...]
    warnings: tuple[str, ...]


def forecast_study(
    config: StudyConfig,
    items: Sequence[Item],
    *,
    checks: Sequence[Question] = (),
    people: int = 30,
    population: Population | None = None,
    price: float | None = None,
    seconds: float | None = None,
    examples: int = 3,
    seed: int = 0,
    jobs: int = 1,
    on_progress: Callable[[], None] = lambda: None,
) -> StudyForecast:
    """Simulate a study in memory; its database is neither read nor written.

    `checks` are the questions of the study's file of checks: annotators answer them correctly unless they lapse.
    `price` is the pay per task, by default that of the study. `seconds` is the time per task, by default an estimate
    for the protocol. joblib simulates `jobs` studies at a time; ``joblib.parallel_config(backend=…)`` selects where,
    with the same result. `on_progress` is called after each of the `STUDIES` simulated studies.
    """
    settings = population or Population()
    first = _simulated(config, items, checks, people, settings, seed, 0, None)
    on_progress()
    # A design that does not learn from answers picks the same tasks again: only the answers differ.
    tasks_of = None if first.learns else first
    results = [_reliabilities(first)]
    work = (
        delayed(_repeated)(config, items, checks, people, settings, seed, number, tasks_of)
        for number in range(1, STUDIES)
    )
    for one in Parallel(n_jobs=jobs, return_as="generator")(work):
        results.append(one)
        on_progress()
    stages = tuple(
        _forecast(config, number, first, [one[number] for one in results], seconds)
        for number in range(len(config.stages))
    )
    counts = Counter(name for stage in first.stages for name in stage.annotators)
    each = tuple(sorted(counts[name] for name in first.annotators.names))
    hours = sum(stage.hours for stage in stages)
    return StudyForecast(
        people=people,
        tasks=len(first),
        tasks_each=each,
        hours=hours,
        cost=_cost(config, each, hours, price),
        complete=first.complete,
        ended=first.ended,
        stages=stages,
        examples=_examples(config, first, examples),
        warnings=tuple(_warnings(config, first, items, each, hours, stages)),
    )


def _simulated(
    config: StudyConfig,
    items: Sequence[Item],
    checks: Sequence[Question],
    people: int,
    population: Population,
    seed: int,
    number: int,
    tasks_of: SimulatedStudy | None,
) -> SimulatedStudy:
    """Simulate one study: from the start, or with other annotators' answers to the tasks of an earlier one."""
    annotators = _annotators(population, people, items, np.random.default_rng([seed, number, 1]))
    if tasks_of is not None:
        return tasks_of.answered_by(annotators)
    rng = np.random.default_rng([seed, number])
    return simulate_study(config, items, annotators, rng, checks=checks, answer_check=annotators.answer_check)


def _repeated(
    config: StudyConfig,
    items: Sequence[Item],
    checks: Sequence[Question],
    people: int,
    population: Population,
    seed: int,
    number: int,
    tasks_of: SimulatedStudy | None,
) -> list[float | None]:
    """Simulate one study and return the reliability of its stages, which is cheap to send between processes."""
    return _reliabilities(_simulated(config, items, checks, people, population, seed, number, tasks_of))


def _reliabilities(study: SimulatedStudy) -> list[float | None]:
    return [_reliability(study, stage) for stage in range(len(study.stages))]


def _annotators(
    population: Population, people: int, items: Sequence[Item], rng: np.random.Generator
) -> SimulatedAnnotators:
    crowd = make_crowd(people, rng, population)
    return SimulatedAnnotators(crowd, population.truth([item.id for item in items], rng), rng)


def _forecast(
    config: StudyConfig, number: int, first: SimulatedStudy, reliability: Sequence[float | None], seconds: float | None
) -> StageForecast:
    stage = config.stages[number]
    tasks = len(first.stages[number])
    hours = tasks * (seconds or task_seconds(stage.protocol)) / 3600
    measure = "Krippendorff's α" if stage.protocol.kinds[0] == "labels" else "split-half ρ"
    results = [value for value in reliability if value is not None]
    if not results:
        return StageForecast(
            stage.name, stage.protocol.name, stage.design.name, tasks, hours, measure, None, None, None
        )
    lower, upper = np.quantile(results, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return StageForecast(
        stage.name,
        stage.protocol.name,
        stage.design.name,
        tasks,
        hours,
        measure,
        float(np.mean(results)),
        float(lower),
        float(upper),
    )


def _reliability(study: SimulatedStudy, stage: int) -> float | None:
    """Return the reliability of a stage's judgments, scored by the study's model; of the first criterion of several."""
    if not study.stages[stage]:
        return None
    model, protocol = study.config.model, study.config.stages[stage].protocol
    kind = next((kind for kind in model.accepts if kind in protocol.kinds), None)
    count = len(study.stages[stage])
    if study.learns and kind is not None and isinstance(study.annotators, SimulatedAnnotators):
        half: Observations = next(iter(study.observations(stage, most=ceil(count / 2), kind=kind).values()))
        if not isinstance(half, Labels):
            return _reliability_by_truth(study, half)
    observations: Observations = next(iter(study.observations(stage, kind=kind).values()))
    if isinstance(observations, Labels):
        return krippendorff_alpha(observations.item, observations.label, "nominal", replicates=20).value
    scorer = None if kind is None else PointScores(model)
    return split_half(observations, model=scorer, trials=4)["split_half_spearman"].value


def _reliability_by_truth(study: SimulatedStudy, half: Observations) -> float | None:
    """Return the correlation that two independent studies of half the size would have.

    Halves of one study are not independent if the design learned from all answers.
    """
    if not isinstance(study.annotators, SimulatedAnnotators):
        return None
    scores = PointScores(study.config.model).scores(half)
    values = study.annotators.true_values(half.items.ids)
    is_scored = ~np.isnan(scores)
    correlation = spearman(scores[is_scored], values[is_scored])
    return None if correlation is None else reliability_from_truth(correlation.r)[0]


def _cost(config: StudyConfig, each: Sequence[int], hours: float, price: float | None) -> float | None:
    """Return the cost of a study with `each` tasks per annotator, with bonuses as if every check was passed."""
    tasks = sum(each)
    if price is not None:
        return tasks * price
    pay, checks = config.pay, config.quality.checks
    if pay.nothing:
        return None
    bonuses = 0.0
    if pay.formula is not None and tasks:
        threshold = 0.0 if checks is None else checks.min_accuracy
        active = {count: 0 if checks is None else round(checks.expected(count)) for count in each if count}
        numbers = [
            standing_numbers(count, hours * count / tasks, active[count], active[count], threshold)
            for count in each
            if count
        ]
        bonuses = sum(pay.formula.amount(one) for one in numbers)
    return pay.rates.cost(tasks, hours, sum(count > 0 for count in each), bonuses)


def _examples(config: StudyConfig, study: SimulatedStudy, count: int) -> tuple[Example, ...]:
    """Return the first tasks of each stage in turn."""
    results: list[Example] = []
    for number, tasks in enumerate(study.stages):
        for place, event in enumerate(tasks.events[:count]):
            task_items = tuple(study.log.state.item(name) for name in event.data.items)
            answer = study.answer(number, place)
            results.append(Example(str(event.annotator), config.stages[number].name, task_items, answer))
    return tuple(results)


def _warnings(
    config: StudyConfig,
    study: SimulatedStudy,
    items: Sequence[Item],
    each: Sequence[int],
    hours: float,
    stages: Sequence[StageForecast],
) -> list[str]:
    results = []
    people = len(each)
    if not study.complete:
        results.append(
            f"{people} annotators are too few: the design is not complete when no annotator has a task left "
            f"(“{study.ended}”). Recruit more annotators, or plan fewer judgments."
        )
    if len(items) < _FEW_ITEMS:
        results.append(f"{len(items)} items are few: reliability, a correlation over items, will be uncertain.")
    idle = sum(count == 0 for count in each)
    if idle:
        results.append(f"{idle} of {people} annotators get no tasks: fewer annotators suffice.")
    if people and hours / people > _LONG_HOURS:
        results.append(
            f"each annotator works {hours / people:.1f} hours: recruit more annotators, or split the work into "
            "several visits."
        )
    for stage in stages:
        if stage.tasks == 0:
            results.append(f"no tasks were assigned in stage {stage.name}.")
        elif stage.reliability is None:
            results.append(f"the reliability of stage {stage.name} cannot be measured with so few judgments.")
    counts = study.log.state.counts
    if counts["check"] or counts["repeat"]:
        results.append(f"{counts['check']} of the tasks are checks and {counts['repeat']} are repeats.")
    results += _exclusions(config, study)
    if config.quality.checks is not None and not study.log.state.quality.questions:
        results.append(
            "checks are not simulated, because their questions are missing. They come in addition to these tasks."
        )
    if config.pay.bonus is not None:
        results.append("bonuses assume that every annotator passes every check, so this is an upper estimate.")
    return results


def _exclusions(config: StudyConfig, study: SimulatedStudy) -> list[str]:
    """Return a sentence on how many careless and other annotators the checks exclude."""
    if config.quality.checks is None or not study.log.state.quality.questions:
        return []
    careless = set(study.annotators.careless_names) if isinstance(study.annotators, SimulatedAnnotators) else set()
    excluded = set(study.log.state.excluded)
    n_others = len(study.annotators.names) - len(careless)
    wrongly = len(excluded - careless)
    if not careless:
        return [f"{wrongly} of {n_others} annotators are excluded for failed checks."] if excluded else []
    caught = len(excluded & careless)
    result = f"checks exclude {caught} of {len(careless)} careless annotators, and {wrongly} of {n_others} others."
    if 2 * caught < len(careless):
        result += " To exclude more, add checks, set a smaller min_checks_within, or give each annotator more tasks."
    return [result]
