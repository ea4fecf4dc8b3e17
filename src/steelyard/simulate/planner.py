"""How many judgments are needed for a reliability, found by simulating studies of growing size.

Reliability is plain split-half reliability (Spearman's ρ between the scores of two random halves of the judgments),
as `steelyard agreement` reports it. A study's first judgments are a smaller study, so that one long simulated study
gives its whole curve of reliability by budget.
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
from steelyard.reliability import split_half
from steelyard.reliability.correlation import spearman
from steelyard.reliability.splitting import Sums
from steelyard.simulate.annotators import SimulatedAnnotators
from steelyard.simulate.options import Option, numbered_items
from steelyard.simulate.population import Population, make_crowd
from steelyard.simulate.rehearsal import Rehearsal, rehearse

REPLICATES = 20
"""Simulated studies for each option; each has other items and other people."""
LEARNING_REPLICATES = 8
"""The same where a design listens to answers, so that each study must be asked anew."""
MOST_EACH = 200
"""Nobody plans to show an item more often than this."""

_TRIALS = 4
_POINTS = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5)
"""Budgets at which reliability is measured, as shares of the one that is expected to do."""
_FIRST_EACH, _FEWEST_EACH = 6, 4
"""Showings of an item in the first look, and at least: halves need two."""
_LEVEL = 0.9


@dataclass(frozen=True, slots=True)
class Curve:
    """Reliability by budget for one option: replicates × budgets, and what it means for the target.

    `needed` is None where the target was not reached; `best` is the highest reliability that was.
    """

    option: Option
    budgets: tuple[int, ...]
    reliability: tuple[tuple[float, ...], ...]
    needed: float | None
    lower: float | None
    upper: float | None
    best: float
    note: str
    truth: tuple[tuple[float, ...], ...] = ()
    """ρ of the scores from all judgments with the values people went by, replicates × budgets."""

    @property
    def truth_at_target(self) -> float | None:
        """The mean correlation with the truth at the budget needed."""
        if self.needed is None:
            return None
        return float(np.interp(self.needed, self.budgets, np.mean(self.truth, axis=0)))


@dataclass(frozen=True, slots=True)
class Plan:
    """Judgments needed by option, with the curves they were read off."""

    n_items: int
    people: int
    target: float
    curves: tuple[Curve, ...]
    notes: tuple[str, ...]

    @property
    def curve(self) -> pl.DataFrame:
        """Reliability by budget: option, judgments, the mean over simulated studies, and the middle nine tenths."""
        rows = []
        for curve in self.curves:
            measured = np.array(curve.reliability)
            truth = np.mean(curve.truth, axis=0)
            low, high = np.quantile(measured, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
            for place, budget in enumerate(curve.budgets):
                mean = float(measured[:, place].mean())
                rows.append(
                    {
                        "protocol": curve.option.protocol,
                        "design": curve.option.design,
                        "judgments": budget,
                        "reliability": mean,
                        "lower": float(low[place]),
                        "upper": float(high[place]),
                        "stepped_up": stepped_up(mean),
                        "truth": float(truth[place]),
                    }
                )
        return pl.DataFrame(rows)

    def table(
        self, *, price: float | None = None, wage: float | None = None, seconds: dict[str, float] | None = None
    ) -> pl.DataFrame:
        """Return a row for each option, the cheapest in judgments' time first.

        `price` is paid for each judgment, `wage` for each hour; `seconds` a judgment, by protocol, where they are
        not the usual ones.
        """
        rows = [self._row(curve, price, wage, seconds or {}) for curve in self.curves]
        return pl.DataFrame(rows, schema=_COLUMNS).sort("hours", nulls_last=True, maintain_order=True)

    def _row(self, curve: Curve, price: float | None, wage: float | None, seconds: dict[str, float]) -> dict[str, Any]:
        option = curve.option
        each = seconds.get(option.protocol, option.seconds)
        needed = None if curve.needed is None else ceil(curve.needed)
        hours = None if needed is None else needed * each / 3600
        cost = None
        if needed is not None and hours is not None:
            cost = needed * price if price is not None else hours * wage if wage is not None else None
        return {
            "protocol": option.protocol,
            "design": option.design,
            "items_per_judgment": option.items_per_judgment,
            "judgments": needed,
            "lower": None if curve.lower is None else ceil(curve.lower),
            "upper": None if curve.upper is None else ceil(curve.upper),
            "showings_per_item": None if needed is None else needed * option.items_per_judgment / self.n_items,
            "judgments_per_person": None if needed is None else needed / self.people,
            "seconds": each,
            "hours": hours,
            "cost": cost,
            "reliability": self.target if needed is not None else None,
            "stepped_up": stepped_up(self.target) if needed is not None else None,
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


def stepped_up(reliability: float) -> float:
    """Return the Spearman–Brown value of all judgments, from the reliability of half of them."""
    return 2 * reliability / (1 + reliability)


def plan(
    n_items: int,
    target: float,
    options: Sequence[Option],
    *,
    populations: Sequence[Population] = (Population(),),
    people: int = 50,
    seed: int = 0,
    jobs: int = 1,
    told: Callable[[int], None] = lambda steps: None,
) -> Plan:
    """Find how many judgments each option needs for a target reliability.

    `populations` are taken in turn by the simulated studies: several of them, as from a pilot, make the interval
    wider by how little is known. `told` is called with the steps done, of `REPLICATES` for each option.
    """
    if not 0 < target < 1:
        raise ConfigError(f"a reliability of {target:g} cannot be reached.", "Give a target between 0 and 1.")
    if n_items < 5:
        raise ConfigError(f"{n_items} items are too few to correlate.", "Plan for at least 5.")
    if people < 2:
        raise ConfigError("one person cannot be split in halves.", "Plan with at least two people.")
    tasks = [(option, n_items, target, tuple(populations), people, seed) for option in options]
    if jobs > 1 and len(tasks) > 1:
        curves = _in_processes(tasks, jobs, told)
    else:
        curves = [_curve(*task, told) for task in tasks]
    if all(curve.needed is None for curve in curves):
        best = max(curves, key=lambda curve: curve.best)
        raise ConfigError(
            f"a reliability of {target:g} is out of reach: the best is {best.best:.3f}, by {best.option.name} "
            f"({best.note}).",
            "Lower the target, or plan with more people.",
        )
    return Plan(n_items, people, target, tuple(curves), _notes(curves))


def _notes(curves: Sequence[Curve]) -> tuple[str, ...]:
    """Say what a reader of the table should know."""
    designs = {curve.option.design for curve in curves}
    if not {"balanced_tuples", "all_pairs"} & designs or len(designs) == 1:
        return ()
    return (
        "where several people judge the same tuples, both halves share them, which raises split-half reliability: "
        "hold the correlation with the truth beside it",
    )


def _in_processes(
    tasks: Sequence[tuple[Option, int, float, tuple[Population, ...], int, int]],
    jobs: int,
    told: Callable[[int], None],
) -> list[Curve]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    # Workers start afresh: forking a process that runs threads (numba, polars) may hang.
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(_curve, *task) for task in tasks]
        for _ in as_completed(futures):
            told(REPLICATES)
        return [future.result() for future in futures]


def _curve(
    option: Option,
    n_items: int,
    target: float,
    populations: tuple[Population, ...],
    people: int,
    seed: int,
    told: Callable[[int], None] = lambda steps: None,
) -> Curve:
    """Measure one option, with a budget that grows until the target is passed or cannot be."""
    simulation = _Simulation(option, n_items, populations, people, seed)
    each, reached = _FIRST_EACH, 0.0
    while True:
        found = simulation.run(each, replicates=3, points=(1.0,))
        reached = float(found.reliability.mean())
        expected = found.budgets[-1] * _odds(target) / max(_odds(reached), 1e-3)
        times = each * expected / found.budgets[-1]
        if times <= each or each >= MOST_EACH or found.ended_early:
            break
        # The first guess, from few showings, is rough: look again from halfway.
        each = min(ceil(times), each * 4, MOST_EACH)
    wanted = min(max(times * _POINTS[-1], _FEWEST_EACH), MOST_EACH)
    found = simulation.run(ceil(wanted), replicates=None, points=[p / _POINTS[-1] for p in _POINTS], told=told)
    mean = found.reliability.mean(axis=0)
    best = float(mean.max())
    if best < target:
        why = found.ended or f"with {ceil(wanted)} showings of each item"
        return _made(option, found, None, None, None, best, why)
    crossings = np.array([_crossing(found.budgets, row, target) for row in found.reliability])
    lower, upper = np.quantile(crossings, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return _made(option, found, _crossing(found.budgets, mean, target), float(lower), float(upper), best, "")


def _made(
    option: Option,
    found: _Measured,
    needed: float | None,
    lower: float | None,
    upper: float | None,
    best: float,
    note: str,
) -> Curve:
    rows = tuple(tuple(row) for row in found.reliability.tolist())
    truth = tuple(tuple(row) for row in found.truth.tolist())
    return Curve(option, found.budgets, rows, needed, lower, upper, best, note, truth)


def _odds(reliability: float) -> float:
    return reliability / max(1 - reliability, 1e-6)


def _crossing(budgets: Sequence[int], reliability: FloatArray, target: float) -> float:
    """Return the budget at which a curve reaches the target.

    ρ/(1 - ρ) grows in proportion to the budget (Spearman–Brown), so that it is interpolated, from (0, 0), and
    extended beyond the last budget, in straight lines.
    """
    odds = np.maximum.accumulate(np.concatenate([[0.0], [_odds(float(r)) for r in reliability]]))
    at = np.concatenate([[0.0], np.asarray(budgets, np.float64)])
    wanted = _odds(target)
    if wanted > odds[-1]:
        return float(at[-1] * wanted / max(odds[-1], 1e-3))
    place = int(np.argmax(odds >= wanted))
    share = (wanted - odds[place - 1]) / (odds[place] - odds[place - 1])
    return float(at[place - 1] + share * (at[place] - at[place - 1]))


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    budgets: tuple[int, ...]
    reliability: FloatArray
    truth: FloatArray
    ended_early: bool
    ended: str


class _Simulation:
    """Simulated studies of one option."""

    def __init__(
        self, option: Option, n_items: int, populations: tuple[Population, ...], people: int, seed: int
    ) -> None:
        self.option = option
        self.items = numbered_items(n_items)
        self.populations = populations
        self.people = people
        self.seed = seed

    def run(
        self,
        each: int,
        *,
        replicates: int | None,
        points: Sequence[float],
        told: Callable[[int], None] = lambda steps: None,
    ) -> _Measured:
        """Measure reliability at shares of the budget that shows every item `each` times."""
        config = self.option.config(each, len(self.items), self.seed)
        first = rehearse(config, self.items, self._annotators(0), np.random.default_rng([self.seed, 0]))
        full = each * len(self.items) // self.option.items_per_judgment
        early = not first.complete and len(first) < 0.95 * full
        # Halves that share few items correlate by chance: every item must have been shown twice, about.
        least = ceil(2 * len(self.items) / self.option.items_per_judgment)
        budgets = tuple(sorted({min(max(least, round(len(first) * share)), len(first)) for share in points}))
        count = replicates or (LEARNING_REPLICATES if first.learns else REPLICATES)
        rows = []
        for number in range(count):
            if number == 0:
                study = first
            elif first.learns:
                study = rehearse(
                    config, self.items, self._annotators(number), np.random.default_rng([self.seed, number])
                )
            else:
                study = first.answered_by(self._annotators(number))
            rows.append([self._reliability(study, budget, number) for budget in budgets])
            if replicates is None:
                told(REPLICATES * (number + 1) // count - REPLICATES * number // count)
        ended = f"with {self.people} people, who then have nothing left to judge" if early else ""
        measured = np.array(rows)
        return _Measured(budgets, measured[..., 0], measured[..., 1], early, ended)

    def _truth(self, number: int) -> FloatArray:
        population = self.populations[number % len(self.populations)]
        return population.values(len(self.items), np.random.default_rng([self.seed, number, 2]))

    def _annotators(self, number: int) -> SimulatedAnnotators:
        rng = np.random.default_rng([self.seed, number, 1])
        crowd = make_crowd(self.people, rng, self.populations[number % len(self.populations)])
        ids = [item.id for item in self.items]
        return SimulatedAnnotators(crowd, dict(zip(ids, self._truth(number).tolist(), strict=True)), rng)

    def _reliability(self, study: Rehearsal, budget: int, number: int) -> tuple[float, float]:
        """Return the split-half reliability of the first judgments, and ρ of their scores with the truth."""
        observations = next(iter(study.observations(most=budget).values()))
        found = split_half(observations, trials=_TRIALS, seed=number)["split_half_spearman"].value
        scores, _ = Sums.of(observations).scores(np.zeros(len(observations), np.int8))
        known = ~np.isnan(scores)
        agreed = spearman(scores[known], self._truth(number)[known])
        return 0.0 if found is None else max(found, 0.0), 0.0 if agreed is None else agreed.r
