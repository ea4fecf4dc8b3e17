"""Number of judgments needed for a target reliability, found by simulating studies of growing size.

Reliability is plain split-half reliability: of items, Spearman's ρ between the scores of two random halves of the
judgments, as `steelyard agreement` reports it; of systems, Pearson's r between two halves of the sources. The first
judgments of a study are a smaller study, so one long simulated study gives the whole curve of reliability by budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import polars as pl

from steelyard.errors import ConfigError
from steelyard.observations import FloatArray
from steelyard.simulate.annotators import SimulatedAnnotators
from steelyard.simulate.plan_layout import ItemLayout, Layout, SystemLayout
from steelyard.simulate.plan_options import PlanOption
from steelyard.simulate.population import Population, make_crowd
from steelyard.simulate.simulated_study import SimulatedStudy, simulate_study

REPLICATES = 20
"""Simulated studies per option, each with other items and other annotators."""
LEARNING_REPLICATES = 8
"""Simulated studies per option if the design learns from answers, so that each study must be simulated again."""

_POINTS = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5)
"""Budgets at which reliability is measured, as fractions of the budget expected to reach the target."""
_LEVEL = 0.9


@dataclass(frozen=True, slots=True)
class Curve:
    """Reliability by budget for one option (replicates × budgets), and the judgments needed for the target.

    `judgments` is None if the target was not reached; `best` is the highest mean reliability.
    """

    option: PlanOption
    budgets: tuple[int, ...]
    reliability: tuple[tuple[float, ...], ...]
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
    """Judgments needed by option, with the reliability curves."""

    layout: Layout
    people: int
    target: float
    curves: tuple[Curve, ...]
    notes: tuple[str, ...]

    @property
    def curve(self) -> pl.DataFrame:
        """Reliability by budget: option, judgments, the mean over simulated studies, and the 90 % range."""
        rows = []
        for curve in self.curves:
            values = np.array(curve.reliability)
            truth = np.mean(curve.truth, axis=0)
            low, high = np.quantile(values, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
            for place, budget in enumerate(curve.budgets):
                mean = float(values[:, place].mean())
                rows.append(
                    {
                        "protocol": curve.option.protocol,
                        "design": curve.option.design,
                        "judgments": budget,
                        "reliability": mean,
                        "lower": float(low[place]),
                        "upper": float(high[place]),
                        "stepped_up": spearman_brown(mean),
                        "truth": float(truth[place]),
                    }
                )
        return pl.DataFrame(rows)

    def table(
        self, *, price: float | None = None, wage: float | None = None, seconds: dict[str, float] | None = None
    ) -> pl.DataFrame:
        """Return one row per option, the one with the least annotation time first.

        `price` is the pay per judgment, `wage` per hour; `seconds` is the time per judgment by protocol, if it differs
        from the default.
        """
        rows = [self._row(curve, price, wage, seconds or {}) for curve in self.curves]
        return pl.DataFrame(rows, schema=_COLUMNS).sort("hours", nulls_last=True, maintain_order=True)

    def _row(self, curve: Curve, price: float | None, wage: float | None, seconds: dict[str, float]) -> dict[str, Any]:
        option = curve.option
        showings_each = seconds.get(option.protocol, option.seconds)
        judgments = None if curve.judgments is None else ceil(curve.judgments)
        hours = None if judgments is None else judgments * showings_each / 3600
        cost = None
        if judgments is not None and hours is not None:
            cost = judgments * price if price is not None else hours * wage if wage is not None else None
        return {
            "protocol": option.protocol,
            "design": option.design,
            "items_per_judgment": option.items_per_judgment,
            "judgments": judgments,
            "lower": None if curve.lower is None else ceil(curve.lower),
            "upper": None if curve.upper is None else ceil(curve.upper),
            "showings_per_item": None
            if judgments is None
            else judgments * option.items_per_judgment / len(self.layout.items),
            "judgments_per_person": None if judgments is None else judgments / self.people,
            "seconds": showings_each,
            "hours": hours,
            "cost": cost,
            "reliability": self.target if judgments is not None else None,
            "stepped_up": spearman_brown(self.target) if judgments is not None else None,
            "truth": curve.truth_at_target,
            "best": curve.best,
            "note": curve.note,
        }


_COLUMNS = {
    "protocol": pl.String,
    "design": pl.String,
    "items_per_judgment": pl.Int64,
    "judgments": pl.Int64,
    "lower": pl.Int64,
    "upper": pl.Int64,
    "showings_per_item": pl.Float64,
    "judgments_per_person": pl.Float64,
    "seconds": pl.Float64,
    "hours": pl.Float64,
    "cost": pl.Float64,
    "reliability": pl.Float64,
    "stepped_up": pl.Float64,
    "truth": pl.Float64,
    "best": pl.Float64,
    "note": pl.String,
}


def spearman_brown(reliability: float) -> float:
    """Return the Spearman–Brown value of all judgments, from the reliability of half of them."""
    return 2 * reliability / (1 + reliability)


def plan(
    items: int | Layout,
    target: float,
    options: Sequence[PlanOption],
    *,
    populations: Sequence[Population] = (Population(),),
    people: int = 50,
    seed: int = 0,
    jobs: int = 1,
    on_progress: Callable[[int], None] = lambda steps: None,
) -> Plan:
    """Find how many judgments each option needs for a target reliability of `items`, or of the systems of a layout.

    The simulated studies cycle through `populations`: several of them, as from a pilot, widen the interval by the
    uncertainty of the pilot. `on_progress` is called with the number of steps done, of `REPLICATES` per option.
    """
    if not 0 < target < 1:
        raise ConfigError(f"a reliability of {target:g} cannot be reached.", "Give a target between 0 and 1.")
    layout = ItemLayout(items) if isinstance(items, int) else items
    if isinstance(items, int) and items < 5:
        raise ConfigError(f"{items} items are too few to correlate.", "Plan for at least 5.")
    if people < 2:
        raise ConfigError("one annotator cannot be split into halves.", "Plan with at least two annotators.")
    tasks = [(option, layout, target, tuple(populations), people, seed) for option in options]
    if jobs > 1 and len(tasks) > 1:
        curves = _in_processes(tasks, jobs, on_progress)
    else:
        curves = [_curve(*task, on_progress) for task in tasks]
    if all(curve.judgments is None for curve in curves):
        best = max(curves, key=lambda curve: curve.best)
        raise ConfigError(
            f"a reliability of {target:g} cannot be reached: the highest is {best.best:.3f}, by {best.option.name} "
            f"({best.note}).",
            _remedy(layout, target),
        )
    return Plan(layout, people, target, tuple(curves), _notes(curves) if isinstance(layout, ItemLayout) else ())


def _remedy(layout: Layout, target: float) -> str:
    if not isinstance(layout, SystemLayout):
        return "Lower the target, or plan with more annotators."
    least = layout.min_sources(target)
    few = (
        f"it takes at least {least:,}, and fewer judgments with more"
        if least > len(layout.sources)
        else "they help most"
    )
    return f"Lower the target, or plan with more sources ({few}) or annotators."


def _notes(curves: Sequence[Curve]) -> tuple[str, ...]:
    """Return the caveats of the table."""
    designs = {curve.option.design for curve in curves}
    if not {"balanced_tuples", "all_pairs"} & designs or len(designs) == 1:
        return ()
    return (
        "if several annotators judge the same tuples, both halves share them, which inflates split-half "
        "reliability: compare it with the column truth",
    )


def _in_processes(
    tasks: Sequence[tuple[PlanOption, Layout, float, tuple[Population, ...], int, int]],
    jobs: int,
    on_progress: Callable[[int], None],
) -> list[Curve]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    # Spawn workers: forking a process with running threads (numba, polars) may hang.
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(_curve, *task) for task in tasks]
        for _ in as_completed(futures):
            on_progress(REPLICATES)
        return [future.result() for future in futures]


def _curve(
    option: PlanOption,
    layout: Layout,
    target: float,
    populations: tuple[Population, ...],
    people: int,
    seed: int,
    on_progress: Callable[[int], None] = lambda steps: None,
) -> Curve:
    """Measure one option with a growing budget, until the target is reached or out of reach."""
    simulation = _Simulation(option, layout, populations, people, seed)
    showings_each, reached = layout.first_showings, 0.0
    while True:
        measurement = simulation.run(showings_each, replicates=3, points=(1.0,))
        reached = float(measurement.reliability.mean())
        expected = measurement.budgets[-1] * _odds(target) / max(_odds(reached), 1e-3)
        times = showings_each * expected / measurement.budgets[-1]
        if times <= showings_each or showings_each >= layout.max_showings or measurement.ended_early:
            break
        # The first estimate, from few showings, is rough: measure again at a larger budget.
        showings_each = min(ceil(times), showings_each * 4, layout.max_showings)
    showings = min(max(times * _POINTS[-1], layout.min_showings), layout.max_showings)
    # Where even the smallest study is larger than needed, measure at the beginning of it.
    largest = min(times * _POINTS[-1] / showings, 1.0)
    points = [largest * point / _POINTS[-1] for point in _POINTS]
    measurement = simulation.run(ceil(showings), replicates=None, points=points, on_progress=on_progress)
    mean = measurement.reliability.mean(axis=0)
    best = float(mean.max())
    if best < target:
        why = measurement.ended or f"with {ceil(showings)} showings of each item"
        return _to_curve(option, measurement, None, None, None, best, why)
    crossings = np.array([_crossing(measurement.budgets, row, target) for row in measurement.reliability])
    lower, upper = np.quantile(crossings, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return _to_curve(
        option, measurement, _crossing(measurement.budgets, mean, target), float(lower), float(upper), best, ""
    )


def _to_curve(
    option: PlanOption,
    measurement: _Measurement,
    judgments: float | None,
    lower: float | None,
    upper: float | None,
    best: float,
    note: str,
) -> Curve:
    rows = tuple(tuple(row) for row in measurement.reliability.tolist())
    truth = tuple(tuple(row) for row in measurement.truth.tolist())
    return Curve(option, measurement.budgets, rows, judgments, lower, upper, best, note, truth)


def _odds(reliability: float) -> float:
    return reliability / max(1 - reliability, 1e-6)


def _crossing(budgets: Sequence[int], reliability: FloatArray, target: float) -> float:
    """Return the budget at which a curve reaches the target.

    ρ/(1 - ρ) is proportional to the budget (Spearman–Brown), so it is interpolated linearly from (0, 0), and
    extrapolated beyond the last budget.
    """
    odds = np.maximum.accumulate(np.concatenate([[0.0], [_odds(float(r)) for r in reliability]]))
    at = np.concatenate([[0.0], np.asarray(budgets, np.float64)])
    showings = _odds(target)
    if showings > odds[-1]:
        return float(at[-1] * showings / max(odds[-1], 1e-3))
    place = int(np.argmax(odds >= showings))
    share = (showings - odds[place - 1]) / (odds[place] - odds[place - 1])
    return float(at[place - 1] + share * (at[place] - at[place - 1]))


@dataclass(frozen=True, slots=True, eq=False)
class _Measurement:
    budgets: tuple[int, ...]
    reliability: FloatArray
    truth: FloatArray
    ended_early: bool
    ended: str


class _Simulation:
    """Simulated studies of one option."""

    def __init__(
        self, option: PlanOption, layout: Layout, populations: tuple[Population, ...], people: int, seed: int
    ) -> None:
        self.option = option
        self.layout = layout
        self.items = layout.items
        self.populations = populations
        self.people = people
        self.seed = seed

    def run(
        self,
        showings_each: int,
        *,
        replicates: int | None,
        points: Sequence[float],
        on_progress: Callable[[int], None] = lambda steps: None,
    ) -> _Measurement:
        """Measure reliability at fractions of the budget that shows every item `showings_each` times."""
        config = self.option.config(showings_each, self.layout.n_comparable, self.seed)
        first = simulate_study(config, self.items, self._annotators(0), np.random.default_rng([self.seed, 0]))
        full = showings_each * len(self.items) // self.option.items_per_judgment
        early = not first.complete and len(first) < 0.95 * full
        least = self.layout.min_budget(self.option.items_per_judgment)
        budgets = tuple(sorted({min(max(least, round(len(first) * share)), len(first)) for share in points}))
        count = replicates or (LEARNING_REPLICATES if first.learns else REPLICATES)
        rows = []
        for number in range(count):
            if number == 0:
                study = first
            elif first.learns:
                study = simulate_study(
                    config, self.items, self._annotators(number), np.random.default_rng([self.seed, number])
                )
            else:
                study = first.answered_by(self._annotators(number))
            rows.append([self._reliability(study, budget, number) for budget in budgets])
            if replicates is None:
                on_progress(REPLICATES * (number + 1) // count - REPLICATES * number // count)
        ended = f"with {self.people} annotators, who then have no tasks left" if early else ""
        values = np.array(rows)
        return _Measurement(budgets, values[..., 0], values[..., 1], early, ended)

    def _truth(self, number: int) -> FloatArray:
        population = self.populations[number % len(self.populations)]
        return self.layout.values(population, np.random.default_rng([self.seed, number, 2]))

    def _annotators(self, number: int) -> SimulatedAnnotators:
        rng = np.random.default_rng([self.seed, number, 1])
        crowd = make_crowd(self.people, rng, self.populations[number % len(self.populations)])
        ids = [item.id for item in self.items]
        return SimulatedAnnotators(crowd, dict(zip(ids, self._truth(number).tolist(), strict=True)), rng)

    def _reliability(self, study: SimulatedStudy, budget: int, number: int) -> tuple[float, float]:
        """Return the split-half reliability of the first judgments, and the correlation with the true values."""
        observations = next(iter(study.observations(most=budget).values()))
        return self.layout.reliability(observations, self._truth(number), number)
