"""Number of judgments needed for a target, found by simulating studies of growing size.

Each option is simulated with its own protocol, design and model. The first judgments of a study are a smaller study, so
one long simulated study gives the whole curve of a target by budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import polars as pl

from steelyard.errors import ConfigError
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.models.point_scores import PointScores
from steelyard.observations import FloatArray
from steelyard.simulate.annotators import SimulatedAnnotators
from steelyard.simulate.plan_layout import ItemLayout, Layout, SystemLayout
from steelyard.simulate.plan_options import PlanOption
from steelyard.simulate.plan_targets import (
    Reliability,
    StudySample,
    SystemDifference,
    Target,
    TopItems,
    correlation_with_truth,
    reliability_from_truth,
)
from steelyard.simulate.population import Population, make_crowd
from steelyard.simulate.simulated_study import SimulatedStudy, simulate_study
from steelyard.study.config import StudyConfig
from steelyard.study.fitting import kind_for

REPLICATES = 20
"""Simulated studies per option, each with other items and other annotators."""
LEARNING_REPLICATES = 6
"""Simulated studies per option if the design learns from answers, so that each study must be simulated again."""
MOST_ITEMS = 100
"""Larger plans are simulated with this many items, and with proportionally fewer annotators: the judgments needed per
item hardly depend on the number of items, and simulating a design that learns takes about 2 ms per judgment."""
_FEWEST_ANNOTATORS = 40
"""Annotators of such a smaller study, if the plan has as many."""

_POINTS = (0.35, 0.5, 0.65, 0.8, 1.0, 1.25, 1.5)
"""Budgets at which studies are measured, as fractions of the budget expected to reach the target."""
_ATTEMPTS = 3
"""Simulations of growing size before a target is declared out of reach."""
_LEVEL = 0.9


@dataclass(frozen=True, slots=True)
class Curve:
    """Values by budget for one option (replicates × budgets), and the judgments needed for the target.

    `judgments` is None if the target was not reached; `best` is the best mean value. Values are in units of the target.
    """

    option: PlanOption
    budgets: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    judgments: float | None
    lower: float | None
    upper: float | None
    best: float
    note: str
    truth: tuple[tuple[float, ...], ...] = ()
    """ρ of the scores from all judgments with the true values, replicates × budgets."""

    @property
    def truth_at_target(self) -> float | None:
        """Mean correlation with the true values at the needed budget."""
        if self.judgments is None:
            return None
        return float(np.interp(self.judgments, self.budgets, np.mean(self.truth, axis=0)))


@dataclass(frozen=True, slots=True)
class Plan:
    """Judgments needed by option, with the curves that lead there."""

    layout: Layout
    people: int
    target: Target
    curves: tuple[Curve, ...]
    notes: tuple[str, ...]

    @property
    def curve(self) -> pl.DataFrame:
        """The measured value by budget: option, judgments, the mean over simulated studies, and the 90 % range."""
        rows = []
        for curve in self.curves:
            values = np.array(curve.values)
            truth = np.mean(curve.truth, axis=0)
            low, high = np.quantile(values, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
            for place, budget in enumerate(curve.budgets):
                rows.append(
                    {
                        "protocol": curve.option.protocol,
                        "design": curve.option.design,
                        "judgments": budget,
                        "value": float(values[:, place].mean()),
                        "lower": float(low[place]),
                        "upper": float(high[place]),
                        "truth": float(truth[place]),
                    }
                )
        return pl.DataFrame(rows)

    def table(
        self, *, price: float | None = None, wage: float | None = None, seconds: dict[str, float] | None = None
    ) -> pl.DataFrame:
        """Return one row per option, the one with the least annotation time first.

        `price` is the pay per judgment, `wage` per hour; `seconds` is the time per judgment by protocol, if it differs
        from the default. The columns lower and upper, and those of hours and cost, are the 90 % range.
        """
        rows = [self._row(curve, price, wage, seconds or {}) for curve in self.curves]
        return pl.DataFrame(rows, schema=_COLUMNS).sort("hours", nulls_last=True, maintain_order=True)

    def _row(self, curve: Curve, price: float | None, wage: float | None, seconds: dict[str, float]) -> dict[str, Any]:
        option = curve.option
        each = seconds.get(option.protocol, option.seconds)

        def hours(count: float | None) -> float | None:
            return None if count is None else ceil(count) * each / 3600

        def cost(count: float | None) -> float | None:
            if count is None or (price is None and wage is None):
                return None
            return ceil(count) * price if price is not None else ceil(count) * each / 3600 * (wage or 0.0)

        needed, size = curve.judgments, option.items_per_judgment
        judgments = None if needed is None else ceil(needed)
        return {
            "protocol": option.protocol,
            "design": option.design,
            "model": option.model_name,
            "items_per_judgment": size,
            "judgments": judgments,
            "lower": None if curve.lower is None else ceil(curve.lower),
            "upper": None if curve.upper is None else ceil(curve.upper),
            "showings_per_item": None if judgments is None else judgments * size / len(self.layout.items),
            "annotators": self.people,
            "judgments_per_person": None if judgments is None else judgments / self.people,
            "seconds": each,
            "hours": hours(needed),
            "hours_lower": hours(curve.lower),
            "hours_upper": hours(curve.upper),
            "cost": cost(needed),
            "cost_lower": cost(curve.lower),
            "cost_upper": cost(curve.upper),
            "target": self.target.goal,
            "truth": curve.truth_at_target,
            "best": curve.best,
            "note": curve.note,
        }

    def at(self, protocol: str, design: str, judgments: float) -> tuple[float, float, float]:
        """Return the measured value that an option has with this many judgments, and its 90 % range.

        Outside the simulated numbers of judgments, the values are those at the nearest of them.
        """
        curve = self._curve(protocol, design)
        values = np.array(curve.values)
        columns = [values.mean(axis=0), *np.quantile(values, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)]
        mean, low, high = (float(np.interp(judgments, curve.budgets, column)) for column in columns)
        return mean, low, high

    def simulated(self, protocol: str, design: str) -> tuple[float, float]:
        """Return the smallest and largest number of judgments with which an option was simulated."""
        budgets = self._curve(protocol, design).budgets
        return float(budgets[0]), float(budgets[-1])

    def _curve(self, protocol: str, design: str) -> Curve:
        return next(one for one in self.curves if (one.option.protocol, one.option.design) == (protocol, design))

    def preregistration(self, row: dict[str, Any], currency: str = "") -> str:
        """Return a sentence for a preregistration, from a row of the table."""
        if row["judgments"] is None:
            return ""
        cost = "" if row["cost"] is None else f", and cost about {currency}{row['cost']:,.0f}"
        return (
            f"We will collect {row['judgments']:,} {row['protocol']} judgments of {self.layout.description} from "
            f"{self.people} annotators (about {row['judgments_per_person']:.0f} each), assigned by the design "
            f"{row['design']} and scored by the model {row['model']}. In simulations of this study, {row['lower']:,} "
            f"to {row['upper']:,} judgments (90 % of the simulated studies) were needed for {self.target.sentence}. "
            f"They take about {row['hours']:,.1f} hours of work{cost}."
        )


_COLUMNS = {
    "protocol": pl.String,
    "design": pl.String,
    "model": pl.String,
    "items_per_judgment": pl.Int64,
    "judgments": pl.Int64,
    "lower": pl.Int64,
    "upper": pl.Int64,
    "showings_per_item": pl.Float64,
    "annotators": pl.Int64,
    "judgments_per_person": pl.Float64,
    "seconds": pl.Float64,
    "hours": pl.Float64,
    "hours_lower": pl.Float64,
    "hours_upper": pl.Float64,
    "cost": pl.Float64,
    "cost_lower": pl.Float64,
    "cost_upper": pl.Float64,
    "target": pl.Float64,
    "truth": pl.Float64,
    "best": pl.Float64,
    "note": pl.String,
}


def plan(
    items: int | Layout,
    target: float | Target,
    options: Sequence[PlanOption],
    *,
    populations: Sequence[Population] = (Population(),),
    people: int = 50,
    seed: int = 0,
    jobs: int = 1,
    on_progress: Callable[[int], None] = lambda steps: None,
) -> Plan:
    """Find how many judgments each option needs for a target: a reliability, or any `Target`.

    The simulated studies cycle through `populations`: several of them, as from a pilot, widen the interval by the
    uncertainty of the pilot. `on_progress` is called with the number of steps done, of `REPLICATES` per option.
    """
    goal = Reliability(float(target)) if isinstance(target, int | float) else target
    layout = ItemLayout(items) if isinstance(items, int) else items
    goal.check(layout)
    if isinstance(layout, ItemLayout) and layout.count < 5:
        raise ConfigError(f"{layout.count} items are too few to correlate.", "Plan for at least 5.")
    if isinstance(layout, SystemLayout) and isinstance(goal, SystemDifference):
        layout = replace(layout, spacing=goal.difference)
    if people < 2:
        raise ConfigError("one annotator cannot be split into halves.", "Plan with at least two annotators.")
    tasks = [_CurveTask(option, layout, goal, tuple(populations), people, seed) for option in options]
    if jobs > 1 and len(tasks) > 1:
        curves = _in_processes(tasks, jobs, on_progress)
    else:
        curves = [task.run(on_progress) for task in tasks]
    if all(curve.judgments is None for curve in curves):
        best = max(curves, key=lambda curve: float(goal.evidence(np.array(curve.best))))
        raise ConfigError(
            f"{goal.sentence} cannot be reached: the best is {best.best:.3f}, by {best.option.name} ({best.note}).",
            _remedy(layout, goal),
        )
    return Plan(layout, people, goal, tuple(curves), _notes(curves, layout, goal))


def _remedy(layout: Layout, target: Target) -> str:
    if not isinstance(layout, SystemLayout):
        return "Lower the target, or plan with more annotators."
    few = "they help most"
    if isinstance(target, Reliability) and (least := layout.min_sources(target.goal)) > len(layout.sources):
        few = f"at least {least:,} are needed; with more sources, fewer judgments are needed"
    return f"Lower the target, or plan with more sources ({few}) or annotators."


def _notes(curves: Sequence[Curve], layout: Layout, target: Target) -> tuple[str, ...]:
    """Return the caveats of the table."""
    if not isinstance(layout, ItemLayout):
        return ("systems are scored by the means of their ratings, or by counting wins",)
    notes = []
    designs = {curve.option.design for curve in curves}
    if isinstance(target, Reliability) and {"balanced_tuples", "all_pairs"} & designs and len(designs) > 1:
        notes.append(
            "if several annotators judge the same tuples, both halves share them, which inflates split-half "
            "reliability: compare it with the column truth"
        )
    if isinstance(target, Reliability) and {"adaptive", "match_quality"} & designs:
        notes.append(
            "designs that learn from answers: reliability is that between independent studies of half the size, from "
            "the correlation with the true values, because halves of one such study are not independent"
        )
    if layout.count > MOST_ITEMS:
        notes.append(f"simulated with {MOST_ITEMS} items, and scaled up")
    if any(curve.option.model_name == CalibratedScale.name for curve in curves):
        notes.append("calibrated_scale is replaced by its approximation for running studies, which is faster")
    return tuple(notes)


def _in_processes(tasks: Sequence[_CurveTask], jobs: int, on_progress: Callable[[int], None]) -> list[Curve]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    # Spawn workers: forking a process with running threads (numba, polars) may hang.
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=multiprocessing.get_context("spawn")) as pool:
        # The slowest options first, so that no process waits for them at the end.
        order = sorted(range(len(tasks)), key=lambda place: tasks[place].option.design not in _LEARNING_DESIGNS)
        futures = {place: pool.submit(tasks[place].run) for place in order}
        for _ in as_completed(futures.values()):
            on_progress(REPLICATES)
        return [futures[place].result() for place in range(len(tasks))]


_LEARNING_DESIGNS = {"adaptive", "match_quality"}


@dataclass(frozen=True, slots=True)
class _CurveTask:
    """One option to be measured with a growing budget, until the target is reached or out of reach."""

    option: PlanOption
    layout: Layout
    target: Target
    populations: tuple[Population, ...]
    people: int
    seed: int

    def run(self, on_progress: Callable[[int], None] = lambda steps: None) -> Curve:
        """Measure the option."""
        target, layout = self.target, self._simulated_layout()
        needed = target.needed_value(self.layout, self.populations)
        aim = float(target.evidence(np.array(needed)))
        fraction = len(layout.items) / len(self.layout.items)
        simulation = _Simulation(self.option, layout, self.populations, self.people, self.seed, target, fraction)
        showings_each = layout.first_showings
        while True:
            measurement = simulation.run(showings_each, replicates=3, points=(1.0,))
            reached = float(target.evidence(measurement.values.mean(axis=0))[-1])
            times = showings_each * aim / max(reached, 1e-3 * aim)
            if times <= showings_each or showings_each >= layout.max_showings or measurement.ended_early:
                break
            # The first estimate, from few showings, is rough: measure again at a larger budget.
            showings_each = min(ceil(times), showings_each * 4, layout.max_showings)
        for attempt in range(_ATTEMPTS):
            showings = min(max(times * _POINTS[-1], layout.min_showings), layout.max_showings)
            # Where even the smallest study is larger than needed, measure at the beginning of it.
            largest = min(times * _POINTS[-1] / showings, 1.0)
            points = [largest * point / _POINTS[-1] for point in _POINTS]
            progress = on_progress if attempt == 0 else lambda steps: None
            measurement = simulation.run(ceil(showings), replicates=None, points=points, on_progress=progress)
            reached = float(target.evidence(measurement.values.mean(axis=0)).max())
            if reached >= aim or measurement.ended_early or showings >= layout.max_showings:
                break
            # The three studies of the first estimate were better than most.
            times *= max(1.3, aim / max(reached, 1e-3 * aim))
        return self._curve(measurement, aim, f"with {ceil(showings)} showings of each item")

    def _simulated_layout(self) -> Layout:
        if isinstance(self.target, TopItems):
            return self.layout
        return self.layout.shrunk(MOST_ITEMS)

    def _curve(self, measurement: _Measurement, aim: float, why: str) -> Curve:
        """Find the judgments needed, and scale them up to all items."""
        target = self.target
        scale = len(self.layout.items) / measurement.n_items
        evidence = target.evidence(measurement.values)
        mean = target.evidence(measurement.values.mean(axis=0))
        values = target.shown(measurement.values, self.layout, self.populations)
        budgets = tuple(round(scale * budget) for budget in measurement.budgets)
        rows, truth = (tuple(map(tuple, table.tolist())) for table in (values, measurement.truth))
        best = float(target.shown(measurement.values.mean(axis=0)[[mean.argmax()]], self.layout, self.populations)[0])
        if mean.max() < aim:
            return Curve(self.option, budgets, rows, None, None, None, best, measurement.ended or why, truth)
        judgments = _crossing(measurement.budgets, mean, aim)
        crossings = np.array([_crossing(measurement.budgets, row, aim) for row in evidence])
        low, high = np.quantile(np.log(crossings / judgments), [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
        if len(self.populations) == 1:
            # The range over studies of more items is narrower. What a pilot leaves open is not.
            low, high = low / scale**0.5, high / scale**0.5
        ends = [scale * judgments * float(np.exp(end)) for end in (low, high)]
        return Curve(self.option, budgets, rows, scale * judgments, ends[0], ends[1], best, "", truth)


def _crossing(budgets: Sequence[int], evidence: FloatArray, aim: float) -> float:
    """Return the budget at which a curve of evidence, which is proportional to the budget, reaches `aim`.

    It is interpolated linearly from (0, 0), and extrapolated beyond the last budget.
    """
    rising = np.maximum.accumulate(np.concatenate([[0.0], evidence]))
    at = np.concatenate([[0.0], np.asarray(budgets, np.float64)])
    if aim > rising[-1]:
        return float(at[-1] * aim / max(rising[-1], 1e-3 * aim))
    place = int(np.argmax(rising >= aim))
    fraction = (aim - rising[place - 1]) / (rising[place] - rising[place - 1])
    return float(max(at[place - 1] + fraction * (at[place] - at[place - 1]), 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class _Measurement:
    budgets: tuple[int, ...]
    values: FloatArray
    truth: FloatArray
    n_items: int
    ended_early: bool
    ended: str


class _Simulation:
    """Simulated studies of one option."""

    def __init__(
        self,
        option: PlanOption,
        layout: Layout,
        populations: tuple[Population, ...],
        people: int,
        seed: int,
        target: Target,
        fraction: float,
    ) -> None:
        self.option = option
        self.layout = layout
        self.items = layout.items
        self.populations = populations
        self.people = people
        self.seed = seed
        self.target = target
        self._fraction = fraction
        self._crowd_size = people

    def run(
        self,
        showings_each: int,
        *,
        replicates: int | None,
        points: Sequence[float],
        on_progress: Callable[[int], None] = lambda steps: None,
    ) -> _Measurement:
        """Measure studies at fractions of the budget that shows every item `showings_each` times."""
        # With fewer items, fewer annotators, so that each answers about as many tasks; enough for distinct annotators.
        self._crowd_size = min(
            self.people, max(round(self._fraction * self.people), _FEWEST_ANNOTATORS, showings_each + 2)
        )
        config = self.option.config(showings_each, self.layout.n_comparable, self.seed)
        full = showings_each * len(self.items) // self.option.items_per_judgment
        # Reliability is that of half of the judgments, so half of them suffice where it does not need two halves.
        by_truth = self.learns and isinstance(self.target, Reliability) and isinstance(self.layout, ItemLayout)
        most = ceil(full / 2) if by_truth else None
        first = self._study(config, 0, most)
        size = 2 * len(first) if by_truth else len(first)
        early = not first.complete and size < 0.95 * full
        least = self.layout.min_budget(self.option.items_per_judgment)
        budgets = tuple(sorted({min(max(least, round(size * share)), size) for share in points}))
        count = replicates or (LEARNING_REPLICATES if first.learns else REPLICATES)
        scorer = PointScores(config.model)
        rows = []
        for number in range(count):
            study = first
            if number and first.learns:
                study = self._study(config, number, most)
            elif number:
                study = first.answered_by(self._annotators(number))
            equal = None
            if isinstance(self.target, SystemDifference) and not first.learns:
                equal = first.answered_by(self._annotators(number, has_effect=False))
            rows.append([self._values(study, equal, budget, number, scorer, by_truth) for budget in budgets])
            if replicates is None:
                on_progress(REPLICATES * (number + 1) // count - REPLICATES * number // count)
        ended = f"with {self.people} annotators, who then have no tasks left" if early else ""
        table = np.array(rows)
        return _Measurement(budgets, table[..., 0], table[..., 1], len(self.items), early, ended)

    @property
    def learns(self) -> bool:
        """Whether the design chooses tasks by earlier answers."""
        return self.option.design in _LEARNING_DESIGNS

    def _study(self, config: StudyConfig, number: int, most: int | None) -> SimulatedStudy:
        rng = np.random.default_rng([self.seed, number])
        return simulate_study(config, self.items, self._annotators(number), rng, most=most)

    def _truth(self, number: int, has_effect: bool = True) -> FloatArray:
        population = self.populations[number % len(self.populations)]
        layout = self.layout
        if isinstance(layout, SystemLayout) and not has_effect:
            layout = replace(layout, spacing=0.0)
        return layout.values(population, np.random.default_rng([self.seed, number, 2]))

    def _annotators(self, number: int, has_effect: bool = True) -> SimulatedAnnotators:
        rng = np.random.default_rng([self.seed, number, 1])
        crowd = make_crowd(self._crowd_size, rng, self.populations[number % len(self.populations)])
        ids = [item.id for item in self.items]
        return SimulatedAnnotators(crowd, dict(zip(ids, self._truth(number, has_effect).tolist(), strict=True)), rng)

    def _values(
        self,
        study: SimulatedStudy,
        equal: SimulatedStudy | None,
        budget: int,
        number: int,
        scorer: PointScores,
        by_truth: bool,
    ) -> tuple[float, float]:
        """Measure the first judgments of a study, and their correlation with the true values."""
        kind = kind_for(scorer.model, study.config.stages)
        most = ceil(budget / 2) if by_truth else budget
        observations, without_effect = (
            None if one is None else next(iter(one.observations(most=most, kind=kind).values()))
            for one in (study, equal)
        )
        if observations is None:
            raise ConfigError("there are no judgments.")
        sample = StudySample(self.layout, observations, without_effect, self._truth(number), scorer, number)
        truth = correlation_with_truth(sample)
        if by_truth:
            return reliability_from_truth(truth)
        return self.target.value(sample), truth
