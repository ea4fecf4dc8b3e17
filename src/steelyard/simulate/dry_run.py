"""A study's dry run: what people would be asked, what it takes, and how reliable its scores may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]

from steelyard.designs.information_gain import InformationGain
from steelyard.models.bradley_terry import BradleyTerry
from steelyard.observations import Comparisons, Labels, Observations
from steelyard.quality.pay import standing_numbers
from steelyard.records import Item
from steelyard.reliability import krippendorff_alpha, split_half
from steelyard.simulate.annotators import SimulatedAnnotators
from steelyard.simulate.effort import seconds_for
from steelyard.simulate.population import Population, make_crowd
from steelyard.simulate.rehearsal import Rehearsal, rehearse
from steelyard.study.config import StudyConfig

STUDIES = 10
"""How many times the study is simulated, each time with other people and other values."""

_LEVEL = 0.9
_FEW_ITEMS, _LONG_HOURS = 20, 2.0


@dataclass(frozen=True, slots=True)
class Example:
    """A task somebody was asked, and what was answered."""

    annotator: str
    stage: str
    items: tuple[Item, ...]
    answer: Any


@dataclass(frozen=True, slots=True)
class StageForecast:
    """What is to be expected of one stage; the reliability is over simulated studies, None where it has none."""

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
class DryRun:
    """What a study would ask and give. `tasks_each` are the tasks of every person, fewest first."""

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


def dry_run(
    config: StudyConfig,
    items: Sequence[Item],
    *,
    people: int = 30,
    population: Population | None = None,
    price: float | None = None,
    seconds: float | None = None,
    examples: int = 3,
    seed: int = 0,
    jobs: int = 1,
    told: Callable[[], None] = lambda: None,
) -> DryRun:
    """Simulate a study in memory; its database is neither read nor written.

    `price` is paid for each task; where it is not given, the study's own pay counts. `seconds` a task are those
    usual for the protocol unless given. `jobs` studies are simulated at a time, by joblib: under
    ``joblib.parallel_config(backend=…)`` anywhere, with the same result. `told` is called after each of the `STUDIES`
    simulated.
    """
    drawn = population or Population()
    first = _simulated(config, items, people, drawn, seed, 0, None)
    told()
    # A design that does not learn asks the same tasks of everybody: only the answers are others.
    asked = None if first.learns else first
    found = [_reliabilities(first)]
    work = (delayed(_repeated)(config, items, people, drawn, seed, number, asked) for number in range(1, STUDIES))
    for one in Parallel(n_jobs=jobs, return_as="generator")(work):
        found.append(one)
        told()
    stages = tuple(
        _forecast(config, number, first, [one[number] for one in found], seconds)
        for number in range(len(config.stages))
    )
    done = Counter(first.annotators.names[who] for stage in first.stages for who in stage.who)
    each = tuple(sorted(done[name] for name in first.annotators.names))
    hours = sum(stage.hours for stage in stages)
    return DryRun(
        people=people,
        tasks=len(first),
        tasks_each=each,
        hours=hours,
        cost=_cost(config, each, hours, price),
        complete=first.complete,
        ended=first.ended,
        stages=stages,
        examples=_examples(config, first, items, examples),
        warnings=tuple(_warnings(config, first, items, each, hours, stages)),
    )


def _simulated(
    config: StudyConfig,
    items: Sequence[Item],
    people: int,
    population: Population,
    seed: int,
    number: int,
    asked: Rehearsal | None,
) -> Rehearsal:
    """Simulate one study: from the start, or other people's answers to the tasks that were `asked`."""
    annotators = _annotators(population, people, items, np.random.default_rng([seed, number, 1]))
    if asked is not None:
        return asked.answered_by(annotators)
    return rehearse(config, items, annotators, np.random.default_rng([seed, number]))


def _repeated(
    config: StudyConfig,
    items: Sequence[Item],
    people: int,
    population: Population,
    seed: int,
    number: int,
    asked: Rehearsal | None,
) -> list[float | None]:
    """Simulate one study, and return the reliability of its stages: little to send back from another process."""
    return _reliabilities(_simulated(config, items, people, population, seed, number, asked))


def _reliabilities(study: Rehearsal) -> list[float | None]:
    return [_reliability(study, stage) for stage in range(len(study.stages))]


def _annotators(
    population: Population, people: int, items: Sequence[Item], rng: np.random.Generator
) -> SimulatedAnnotators:
    crowd = make_crowd(people, rng, population)
    return SimulatedAnnotators(crowd, population.truth([item.id for item in items], rng), rng)


def _forecast(
    config: StudyConfig, number: int, first: Rehearsal, reliability: Sequence[float | None], seconds: float | None
) -> StageForecast:
    stage = config.stages[number]
    tasks = len(first.stages[number].items)
    hours = tasks * (seconds or seconds_for(stage.protocol)) / 3600
    measure = "Krippendorff's α" if stage.protocol.kinds[0] == "labels" else "split-half ρ"
    found = [value for value in reliability if value is not None]
    if not found:
        return StageForecast(
            stage.name, stage.protocol.name, stage.design.name, tasks, hours, measure, None, None, None
        )
    lower, upper = np.quantile(found, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return StageForecast(
        stage.name,
        stage.protocol.name,
        stage.design.name,
        tasks,
        hours,
        measure,
        float(np.mean(found)),
        float(lower),
        float(upper),
    )


def _reliability(study: Rehearsal, stage: int) -> float | None:
    """Return the reliability of a stage's judgments, of the first criterion where there are several."""
    if not study.stages[stage].items:
        return None
    observations: Observations = next(iter(study.observations(stage).values()))
    if isinstance(observations, Labels):
        return krippendorff_alpha(observations.item, observations.label, "nominal", replicates=20).value
    # Counting, which is quick, says little where pairs were chosen to be close: then who was met must count.
    close = isinstance(study.config.stages[stage].design, InformationGain) and isinstance(observations, Comparisons)
    return split_half(observations, model=BradleyTerry() if close else None, trials=10)["split_half_spearman"].value


def _cost(config: StudyConfig, each: Sequence[int], hours: float, price: float | None) -> float | None:
    """Return what a study costs in which people answer `each` so many tasks; bonuses as if every check was passed."""
    tasks = sum(each)
    if price is not None:
        return tasks * price
    pay, checks = config.pay, config.quality.checks
    if pay.nothing:
        return None
    bonuses = 0.0
    if pay.formula is not None and tasks:
        rate, threshold = (0.0, 0.0) if checks is None else (checks.rate, checks.pass_)
        working = [count for count in each if count]
        numbers = [
            standing_numbers(count, hours * count / tasks, round(count * rate), round(count * rate), threshold)
            for count in working
        ]
        bonuses = sum(pay.formula.amount(one) for one in numbers)
    return pay.rates.cost(tasks, hours, sum(count > 0 for count in each), bonuses)


def _examples(config: StudyConfig, study: Rehearsal, items: Sequence[Item], count: int) -> tuple[Example, ...]:
    """Return the first tasks of each stage in turn."""
    found: list[Example] = []
    for number, tasks in enumerate(study.stages):
        for place in range(min(count, len(tasks.items))):
            shown = tuple(items[code] for code in tasks.items[place])
            name = study.annotators.names[tasks.who[place]]
            found.append(Example(name, config.stages[number].name, shown, study.answer(number, place)))
    return tuple(found)


def _warnings(
    config: StudyConfig,
    study: Rehearsal,
    items: Sequence[Item],
    each: Sequence[int],
    hours: float,
    stages: Sequence[StageForecast],
) -> list[str]:
    found = []
    people = len(each)
    if not study.complete:
        found.append(
            f"{people} people are too few: the design is not done when nobody has anything left to judge "
            f"(“{study.ended}”). Find more people, or ask less."
        )
    if len(items) < _FEW_ITEMS:
        found.append(f"{len(items)} items are few: reliability, a correlation over items, will be uncertain.")
    idle = sum(count == 0 for count in each)
    if idle:
        found.append(f"{idle} of {people} people get nothing to do: fewer would be enough.")
    if people and hours / people > _LONG_HOURS:
        found.append(f"each person works {hours / people:.1f} hours: more people, or several visits, would be kinder.")
    for stage in stages:
        if stage.tasks == 0:
            found.append(f"nobody was asked anything in stage {stage.name}.")
        elif stage.reliability is None:
            found.append(f"the reliability of stage {stage.name} cannot be measured with so few judgments.")
    if config.quality.checks is not None or config.quality.repeats:
        found.append("checks and repeats come on top of these tasks; they are not simulated.")
    if config.pay.bonus is not None:
        found.append("bonuses are counted as if everybody passed every check: they will hardly cost more.")
    return found
