"""Agreement among annotators: the statistics for each kind of judgments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.errors import DataError
from steelyard.observations import (
    UNKNOWN,
    Choices,
    Comparisons,
    FloatArray,
    Labels,
    Observations,
    Rankings,
    Ratings,
)
from steelyard.reliability.alpha import (
    alpha_statistic,
    mirrored_alpha,
    mirrored_ordinal_alpha,
    options_alpha,
    statistic_of_units,
)
from steelyard.reliability.bootstrap import Bootstrap, Names, Seed, weighted_proportion
from steelyard.reliability.cycles import cycle_consistency
from steelyard.reliability.ita import ita
from steelyard.reliability.kappa import (
    cohen_kappa,
    fixed_chance_kappa,
    fleiss_kappa,
    fleiss_obstacle,
    observed_agreement,
)
from steelyard.reliability.majority import majority, majority_histogram
from steelyard.reliability.position_bias import position_bias
from steelyard.reliability.self_consistency import self_consistency
from steelyard.reliability.split_half import split_half_or_reason
from steelyard.reliability.statistic import Statistic, Statistics
from steelyard.reliability.units import Codes, Units, group_codes

_ANONYMOUS = (
    "annotators are unknown, so repeated answers of one annotator, if any, count as agreement between annotators"
)
_REPEATS = "some annotators answered a question more than once; pairs of answers by the same annotator are left out"


@dataclass(frozen=True, slots=True)
class Agreement(Statistics):
    """The agreement among annotators: statistics, and notes on how they were computed.

    `histogram` exists for labels only: items by the size of their largest class, with its chance level.
    """

    kind: str
    statistics: tuple[Statistic, ...]
    notes: tuple[str, ...] = ()
    histogram: pl.DataFrame | None = None


def agreement(observations: Observations, *, seed: Seed = 0, replicates: int = 200, level: float = 0.95) -> Agreement:
    """Compute the agreement statistics for the kind of observations, each with its interval.

    Parameters
    ----------
    observations
        Ratings, labels, comparisons, rankings or choices.
    seed, replicates, level
        Settings of the intervals. The same seed gives the same statistics, regardless of the order of the judgments.
    """
    bootstrap = Bootstrap.of(seed, replicates, level)
    try:
        statistics = _BY_KIND[type(observations)]
    except KeyError:
        raise DataError(f"no agreement is defined for '{observations.kind}'.") from None
    return statistics(observations, bootstrap)


def item_statistics(
    kind: str, units: Units, scale: tuple[float, float], bootstrap: Bootstrap, names: Names
) -> tuple[Statistic, ...]:
    """Compute the statistics of ratings or labels that depend only on the answers to each item."""
    if kind == Labels.kind:
        return (
            alpha_statistic(units, "nominal", bootstrap, unit="items", names=names),
            _agreeing("observed_agreement", units, bootstrap, unit="items", names=names),
        )
    low, high = scale
    return (
        alpha_statistic(units, "interval", bootstrap, unit="items", names=names),
        alpha_statistic(units, "ordinal", bootstrap, unit="items", names=names),
        statistic_of_units(
            "mean_absolute_difference",
            lambda those: weighted_proportion(those.distances(), those.pairs),
            units,
            bootstrap,
            unit="items",
            note=f"between two annotators of one item, on the scale {low:g} to {high:g}",
            low=0.0,
            high=high - low,
            names=names,
        ),
    )


def _of_ratings(ratings: Ratings, bootstrap: Bootstrap) -> Agreement:
    units = Units.of(ratings.item, ratings.value, ratings.annotator)
    *alphas, distance = item_statistics(ratings.kind, units, ratings.scale, bootstrap, _item_names(ratings, units))
    return Agreement(
        ratings.kind,
        (
            *alphas,
            ita(ratings, bootstrap),
            ita(ratings, bootstrap, ranks=True),
            distance,
            *split_half_or_reason(ratings, bootstrap),
            *_self_consistency(ratings, bootstrap),
        ),
        _notes(ratings, units),
    )


def _of_labels(labels: Labels, bootstrap: Bootstrap) -> Agreement:
    units = Units.of(labels.item, labels.label, labels.annotator)
    obstacle = fleiss_obstacle(labels)
    names = _item_names(labels, units)
    alpha, observed = item_statistics(labels.kind, units, (0, 1), bootstrap, names)
    return Agreement(
        labels.kind,
        (
            alpha,
            Statistic("fleiss_kappa", None, n=len(units), note=obstacle)
            if obstacle
            else statistic_of_units("fleiss_kappa", fleiss_kappa, units, bootstrap, unit="items", names=names),
            cohen_kappa(labels, bootstrap),
            observed,
            majority(labels, bootstrap),
            *_self_consistency(labels, bootstrap),
        ),
        _notes(labels, units),
        majority_histogram(labels, bootstrap.level),
    )


def _of_comparisons(comparisons: Comparisons, bootstrap: Bootstrap) -> Agreement:
    statistics, notes = _agreement_on_pairs(comparisons, bootstrap)
    statistics += [
        *split_half_or_reason(comparisons, bootstrap),
        *_graph_statistics(comparisons, bootstrap),
        *_self_consistency(comparisons, bootstrap),
    ]
    return Agreement(comparisons.kind, tuple(statistics), notes)


@dataclass(frozen=True, slots=True)
class Grouped:
    """Answers by unit, the names of the resampling units, and each unit's cluster if clusters are resampled."""

    units: Units
    names: Names
    cluster: Codes | None = None


def pair_statistics(
    grouped: Callable[[bool], Grouped], bootstrap: Bootstrap, *, tasks: bool, ties: bool, annotators: bool
) -> tuple[list[Statistic], tuple[str, ...]]:
    """Compute the agreement on pairs, and notes on it.

    Parameters
    ----------
    grouped
        Groups the outcomes by pair: within tasks if called with True, otherwise across tasks.
    bootstrap
        Settings of the intervals.
    tasks, ties, annotators
        Whether the tasks are known, any pair was tied, and the annotators are known.
    """
    pairs, which = grouped(tasks), "a unit is a pair of items"
    if tasks and len(pairs.units):
        which += " within one task"
    elif tasks:
        pairs = grouped(False)
        which += " across tasks: no pair was answered twice within a task" if len(pairs.units) else ""
    unit = "pairs" if pairs.cluster is None else "tasks"
    chance, why = (1 / 3, "") if ties else (1 / 2, ", as no pair was tied")
    alpha = statistic_of_units(
        "alpha_nominal",
        mirrored_alpha,
        pairs.units,
        bootstrap,
        unit=unit,
        note="expected agreement counts each pair in both orders",
        cluster=pairs.cluster,
        names=pairs.names,
    )
    kappa = statistic_of_units(
        "kappa_fixed_chance",
        fixed_chance_kappa(chance),
        pairs.units,
        bootstrap,
        unit=unit,
        note=f"P(E) = 1/{round(1 / chance)}{why}",
        low=-1.0,
        cluster=pairs.cluster,
        names=pairs.names,
    )
    observed = _agreeing(
        "observed_agreement", pairs.units, bootstrap, unit=unit, cluster=pairs.cluster, names=pairs.names
    )
    return [alpha, observed, kappa], (which, *unit_notes(annotators, pairs.units))


def _agreement_on_pairs(comparisons: Comparisons, bootstrap: Bootstrap) -> tuple[list[Statistic], tuple[str, ...]]:
    swapped = comparisons.left > comparisons.right
    outcome = np.where(swapped, -comparisons.outcome, comparisons.outcome)
    grade = outcome.astype(np.int64) * np.maximum(comparisons.strength, 1)
    pair = group_codes(np.minimum(comparisons.left, comparisons.right), np.maximum(comparisons.left, comparisons.right))

    def across() -> Grouped:
        units = Units.of(pair, outcome, comparisons.annotator)

        def names() -> tuple[str, ...]:
            row = np.zeros(int(pair.max(initial=-1)) + 1, np.int64)
            row[pair] = np.arange(len(pair))
            sides = zip(comparisons.left[row[units.kept]], comparisons.right[row[units.kept]], strict=True)
            return tuple(set_name(comparisons.items[int(side)] for side in both) for both in sides)

        return Grouped(units, names)

    def within() -> Grouped:
        code = group_codes(comparisons.task, pair)
        units = Units.of(code, outcome, comparisons.annotator)
        task = np.zeros(int(code.max(initial=-1)) + 1, np.int64)
        task[code] = comparisons.task
        tasks = np.unique(task[units.kept])
        return Grouped(units, lambda: tuple(comparisons.tasks[int(c)] for c in tasks), group_codes(task[units.kept]))

    statistics, notes = pair_statistics(
        lambda in_tasks: within() if in_tasks else across(),
        bootstrap,
        tasks=comparisons.knows_tasks,
        ties=bool((outcome == 0).any()),
        annotators=comparisons.knows_annotators,
    )
    has_strength = comparisons.strength.max(initial=0) > 1
    if has_strength or (outcome == 0).any():
        what = "of the grades of preference" if has_strength else "of loss, tie and win in this order"
        statistics.insert(1, _grade_agreement(Units.of(pair, grade, comparisons.annotator), what, bootstrap))
    return statistics, notes


def _grade_agreement(units: Units, what: str, bootstrap: Bootstrap) -> Statistic:
    """Compute the agreement on ordered outcomes: loss, tie and win, or from much worse to much better."""
    note = f"{what}, whatever the task; expected agreement counts each pair in both orders"
    return statistic_of_units("alpha_ordinal", mirrored_ordinal_alpha, units, bootstrap, unit="pairs", note=note)


def _of_rankings(rankings: Rankings, bootstrap: Bootstrap) -> Agreement:
    pairs = rankings.to_comparisons()
    statistics, notes = _agreement_on_pairs(pairs, bootstrap)
    statistics += [
        *split_half_or_reason(rankings, bootstrap),
        *_graph_statistics(pairs, bootstrap),
        *_self_consistency(pairs, bootstrap),
    ]
    return Agreement(rankings.kind, tuple(statistics), ("rankings are analysed as their pairs", *notes))


def _graph_statistics(comparisons: Comparisons, bootstrap: Bootstrap) -> tuple[Statistic, ...]:
    cycles = cycle_consistency(comparisons, seed=bootstrap.seed, replicates=bootstrap.replicates, level=bootstrap.level)
    return (*cycles.statistics, position_bias(comparisons, level=bootstrap.level).statistic)


def _self_consistency(observations: Observations, bootstrap: Bootstrap) -> tuple[Statistic, ...]:
    """Compute the self-consistency of annotators; empty if none answered a question twice."""
    if not (observations.annotator != UNKNOWN).any():
        return ()
    statistics = self_consistency(
        observations, seed=bootstrap.seed, replicates=bootstrap.replicates, level=bootstrap.level
    ).statistics
    return statistics if any(statistic.value is not None for statistic in statistics) else ()


def choice_statistics(name: str, sets: Grouped, options: FloatArray, bootstrap: Bootstrap) -> tuple[Statistic, ...]:
    """Compute the agreement on the best or the worst of sets; `options` is the number of items of each, shape (U,)."""
    return (
        statistic_of_units(
            f"alpha_nominal_{name}",
            lambda units: options_alpha(units, options),
            sets.units,
            bootstrap,
            unit="tuples",
            names=sets.names,
        ),
        _agreeing(f"observed_agreement_{name}", sets.units, bootstrap, unit="tuples", names=sets.names),
    )


def choice_notes(annotators: bool, by_name: Mapping[str, tuple[Units, int]]) -> tuple[str, ...]:
    """Return notes on the statistics of choices, from the units and the number of left-out answers of each side."""
    notes = ["a unit is a set of items; under chance, each item is equally likely to be chosen"]
    for name, (units, left_out) in by_name.items():
        notes += [note for note in unit_notes(annotators, units) if note not in notes]
        if left_out:
            notes.append(f"{left_out:,} answers that name no {name} item are left out")
    return tuple(notes)


def _of_choices(choices: Choices, bootstrap: Bootstrap) -> Agreement:
    sorted_items = np.sort(choices.shown, axis=1)
    tuples = group_codes(*sorted_items.T) if len(choices) else np.empty(0, np.int64)
    row = np.zeros(int(tuples.max(initial=-1)) + 1, np.int64)
    row[tuples] = np.arange(len(tuples))
    statistics: list[Statistic] = []
    by_name = {}
    for name, chosen in (("best", choices.best), ("worst", choices.worst)):
        named = chosen != UNKNOWN
        units = Units.of(tuples[named], chosen[named], choices.annotator[named])
        sets = sorted_items[row[units.kept]]
        options = (sets != UNKNOWN).sum(axis=1).astype(np.float64)
        statistics += choice_statistics(name, Grouped(units, _tuple_names(choices, sets)), options, bootstrap)
        by_name[name] = units, int((~named).sum())
    statistics += [*split_half_or_reason(choices, bootstrap), *_self_consistency(choices, bootstrap)]
    return Agreement(choices.kind, tuple(statistics), choice_notes(choices.knows_annotators, by_name))


def _agreeing(
    name: str,
    units: Units,
    bootstrap: Bootstrap,
    *,
    unit: str,
    cluster: Codes | None = None,
    names: Names | None = None,
) -> Statistic:
    note = "proportion of pairs that agree"
    return statistic_of_units(
        name, observed_agreement, units, bootstrap, unit=unit, note=note, low=0.0, cluster=cluster, names=names
    )


def _item_names(observations: Observations, units: Units) -> Names:
    return lambda: tuple(observations.items[int(code)] for code in units.kept)


def _tuple_names(choices: Choices, tuples: NDArray[np.int32]) -> Names:
    return lambda: tuple(set_name(choices.items[int(c)] for c in row if c != UNKNOWN) for row in tuples)


def set_name(items: Iterable[str]) -> str:
    """Name a set of items, independently of their order."""
    return "|".join(sorted(items))


def _notes(observations: Observations, units: Units) -> tuple[str, ...]:
    return unit_notes(observations.knows_annotators, units)


def unit_notes(knows_annotators: bool, units: Units) -> tuple[str, ...]:
    """Return notes on the assumptions of the statistics."""
    notes = []
    if not knows_annotators:
        notes.append(_ANONYMOUS)
    if len(units.group_unit):
        notes.append(_REPEATS)
    return tuple(notes)


_BY_KIND: dict[type[Observations], Callable[[Any, Bootstrap], Agreement]] = {
    Ratings: _of_ratings,
    Labels: _of_labels,
    Comparisons: _of_comparisons,
    Rankings: _of_rankings,
    Choices: _of_choices,
}
