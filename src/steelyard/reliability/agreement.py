"""How well annotators agree: the figures that fit each kind of judgments."""

from __future__ import annotations

from collections.abc import Callable
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
    IntArray,
    Labels,
    Observations,
    Rankings,
    Ratings,
)
from steelyard.reliability.alpha import alpha_figure, figure_of_units, mirrored_alpha, options_alpha
from steelyard.reliability.bootstrap import Bootstrap, Names, Seed, Statistic, weighted_share
from steelyard.reliability.cycles import cycle_consistency
from steelyard.reliability.figure import Figure, Figures
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
from steelyard.reliability.split_half import TRIALS, split_half_or_reason
from steelyard.reliability.units import Codes, Units, group_codes

_ANYONE = "the annotators are not known, so two answers of one person, if there are any, count as agreement"
_SPLIT_ROWS, _LEAST_TRIALS = 10_000_000, 10
_REPEATS = "some annotators answered a question more than once; pairs of answers by one annotator are left out"


@dataclass(frozen=True, slots=True)
class Agreement(Figures):
    """The agreement among annotators: figures, and notes on how they were taken.

    `histogram` is there for labels only: items by the size of their largest class, with its chance level.
    """

    kind: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()
    histogram: pl.DataFrame | None = None


def agreement(observations: Observations, *, seed: Seed = 0, replicates: int = 200, level: float = 0.95) -> Agreement:
    """Compute the figures of agreement that fit the kind of observations, each with its interval.

    Parameters
    ----------
    observations
        Ratings, labels, comparisons, rankings or choices.
    seed, replicates, level
        Of the intervals. The same seed gives the same figures, in whatever order the judgments come.
    """
    bootstrap = Bootstrap.of(seed, replicates, level)
    try:
        figures = _BY_KIND[type(observations)]
    except KeyError:
        raise DataError(f"no agreement is defined for '{observations.kind}'.") from None
    return figures(observations, bootstrap)


def item_figures(
    kind: str, units: Units, scale: tuple[float, float], bootstrap: Bootstrap, names: Names
) -> tuple[Figure, ...]:
    """Compute the figures that depend on the answers to each item alone, of ratings or labels."""
    if kind == Labels.kind:
        return (
            alpha_figure(units, "nominal", bootstrap, unit="items", names=names),
            _agreeing("observed agreement", units, bootstrap, unit="items", names=names),
        )
    low, high = scale
    return (
        alpha_figure(units, "interval", bootstrap, unit="items", names=names),
        alpha_figure(units, "ordinal", bootstrap, unit="items", names=names),
        figure_of_units(
            "mean absolute difference",
            lambda those: weighted_share(those.distances(), those.pairs),
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
    *alphas, distance = item_figures(ratings.kind, units, ratings.scale, bootstrap, _item_names(ratings, units))
    return Agreement(
        ratings.kind,
        (
            *alphas,
            ita(ratings, bootstrap),
            ita(ratings, bootstrap, ranks=True),
            distance,
            *_split_half(ratings, bootstrap),
            *_self_consistency(ratings, bootstrap),
        ),
        _notes(ratings, units),
    )


def _of_labels(labels: Labels, bootstrap: Bootstrap) -> Agreement:
    units = Units.of(labels.item, labels.label, labels.annotator)
    obstacle = fleiss_obstacle(labels)
    names = _item_names(labels, units)
    alpha, observed = item_figures(labels.kind, units, (0, 1), bootstrap, names)
    return Agreement(
        labels.kind,
        (
            alpha,
            Figure("Fleiss' kappa", None, n=len(units), note=obstacle)
            if obstacle
            else figure_of_units("Fleiss' kappa", fleiss_kappa, units, bootstrap, unit="items", names=names),
            cohen_kappa(labels, bootstrap),
            observed,
            majority(labels, bootstrap),
            *_self_consistency(labels, bootstrap),
        ),
        _notes(labels, units),
        majority_histogram(labels, bootstrap.level),
    )


def _of_comparisons(comparisons: Comparisons, bootstrap: Bootstrap) -> Agreement:
    figures, notes = _agreement_on_pairs(comparisons, bootstrap)
    figures += [
        *_split_half(comparisons, bootstrap),
        *_graph_figures(comparisons, bootstrap),
        *_self_consistency(comparisons, bootstrap),
    ]
    return Agreement(comparisons.kind, tuple(figures), notes)


def _agreement_on_pairs(comparisons: Comparisons, bootstrap: Bootstrap) -> tuple[list[Figure], tuple[str, ...]]:
    swapped = comparisons.left > comparisons.right
    outcome = np.where(swapped, -comparisons.outcome, comparisons.outcome)
    pair = group_codes(np.minimum(comparisons.left, comparisons.right), np.maximum(comparisons.left, comparisons.right))
    units, task, which = _pairs_in_tasks(comparisons, pair, outcome)
    unit = "pairs" if task is None else "tasks"
    chance, why = (1 / 3, "") if (outcome == 0).any() else (1 / 2, ", as no pair was tied")

    def names() -> tuple[str, ...]:
        row = np.zeros(int(pair.max(initial=-1)) + 1, np.int64)
        row[pair] = np.arange(len(pair))
        sides = zip(comparisons.left[row[units.kept]], comparisons.right[row[units.kept]], strict=True)
        return tuple("|".join(sorted(comparisons.items[int(side)] for side in both)) for both in sides)

    def task_names() -> tuple[str, ...]:
        code = group_codes(comparisons.task, pair)
        task_of = np.zeros(int(code.max()) + 1, np.int64)
        task_of[code] = comparisons.task
        return tuple(comparisons.tasks[int(c)] for c in np.unique(task_of[units.kept]))

    called = names if task is None else task_names
    figures = [
        figure_of_units(
            "alpha (nominal)",
            mirrored_alpha,
            units,
            bootstrap,
            unit=unit,
            note="chance takes each pair both ways round",
            cluster=task,
            names=called,
        ),
        _agreeing("observed agreement", units, bootstrap, unit=unit, cluster=task, names=called),
        figure_of_units(
            "kappa (fixed chance)",
            fixed_chance_kappa(chance),
            units,
            bootstrap,
            unit=unit,
            note=f"P(E) = 1/{round(1 / chance)}{why}",
            low=-1.0,
            cluster=task,
            names=called,
        ),
    ]
    return figures, (which, *_notes(comparisons, units))


def _pairs_in_tasks(
    comparisons: Comparisons, pair: Codes, outcome: NDArray[np.int8]
) -> tuple[Units, Codes | None, str]:
    """Group outcomes by pair within task where that leaves any to compare, with each unit's task."""
    if comparisons.knows_tasks:
        code = group_codes(comparisons.task, pair)
        within = Units.of(code, outcome, comparisons.annotator)
        task = np.zeros(int(code.max()) + 1, np.int64)
        task[code] = comparisons.task
        if len(within):
            return within, group_codes(task[within.kept]), "a unit is a pair of items within one task"
    across = Units.of(pair, outcome, comparisons.annotator)
    if comparisons.knows_tasks and len(across):
        return across, None, "a unit is a pair of items across tasks: within a task no pair was answered twice"
    return across, None, "a unit is a pair of items"


def _of_rankings(rankings: Rankings, bootstrap: Bootstrap) -> Agreement:
    pairs = rankings.comparisons()
    figures, notes = _agreement_on_pairs(pairs, bootstrap)
    figures += [
        *_split_half(rankings, bootstrap),
        *_graph_figures(pairs, bootstrap),
        *_self_consistency(pairs, bootstrap),
    ]
    return Agreement(rankings.kind, tuple(figures), ("rankings are taken as their pairs", *notes))


def _split_half(observations: Observations, bootstrap: Bootstrap) -> tuple[Figure, ...]:
    """Compute split-half reliability, with fewer trials the more judgments there are."""
    trials = int(np.clip(_SPLIT_ROWS // max(len(observations), 1), _LEAST_TRIALS, TRIALS))
    return split_half_or_reason(observations, trials, bootstrap)


def _graph_figures(comparisons: Comparisons, bootstrap: Bootstrap) -> tuple[Figure, ...]:
    cycles = cycle_consistency(comparisons, seed=bootstrap.seed, replicates=bootstrap.replicates, level=bootstrap.level)
    return (*cycles.figures, position_bias(comparisons, level=bootstrap.level).figure)


def _self_consistency(observations: Observations, bootstrap: Bootstrap) -> tuple[Figure, ...]:
    """Compute the self-consistency of annotators, where any of them answered twice."""
    if not (observations.annotator != UNKNOWN).any():
        return ()
    found = self_consistency(observations, seed=bootstrap.seed, replicates=bootstrap.replicates, level=bootstrap.level)
    return found.figures if any(figure.value is not None for figure in found.figures) else ()


def _of_choices(choices: Choices, bootstrap: Bootstrap) -> Agreement:
    shown = np.sort(choices.shown, axis=1)
    tuples = group_codes(*shown.T) if len(choices) else np.empty(0, np.int64)
    options = (shown != UNKNOWN).sum(axis=1)
    figures: list[Figure] = []
    notes: list[str] = ["a unit is a set of items shown; chance takes its items as equally likely"]
    row = np.zeros(int(tuples.max(initial=-1)) + 1, np.int64)
    row[tuples] = np.arange(len(tuples))
    for name, chosen in (("best", choices.best), ("worst", choices.worst)):
        units, options_of_unit = _chosen(choices, chosen, tuples, options)
        called = _tuple_names(choices, shown[row[units.kept]])
        figures += [
            figure_of_units(f"alpha (nominal, {name})", options_of_unit, units, bootstrap, unit="tuples", names=called),
            _agreeing(f"observed agreement ({name})", units, bootstrap, unit="tuples", names=called),
        ]
        notes += [note for note in _notes(choices, units) if note not in notes]
        if (chosen == UNKNOWN).any():
            notes.append(f"{(chosen == UNKNOWN).sum():,} answers that name no {name} item are left out")
    figures += [*_split_half(choices, bootstrap), *_self_consistency(choices, bootstrap)]
    return Agreement(choices.kind, tuple(figures), tuple(notes))


def _chosen(
    choices: Choices, chosen: IntArray, tuples: Codes, options: NDArray[np.int64]
) -> tuple[Units, Callable[[Units], Statistic]]:
    named = chosen != UNKNOWN
    units = Units.of(tuples[named], chosen[named], choices.annotator[named])
    by_tuple = np.zeros(int(tuples.max()) + 1 if tuples.size else 0)
    by_tuple[tuples] = options
    return units, lambda those: options_alpha(those, by_tuple[those.kept])


def _agreeing(
    name: str,
    units: Units,
    bootstrap: Bootstrap,
    *,
    unit: str,
    cluster: Codes | None = None,
    names: Names | None = None,
) -> Figure:
    note = "share of pairs that agree"
    return figure_of_units(
        name, observed_agreement, units, bootstrap, unit=unit, note=note, low=0.0, cluster=cluster, names=names
    )


def _item_names(observations: Observations, units: Units) -> Names:
    return lambda: tuple(observations.items[int(code)] for code in units.kept)


def _tuple_names(choices: Choices, shown: NDArray[np.int32]) -> Names:
    return lambda: tuple("|".join(sorted(choices.items[int(c)] for c in row if c != UNKNOWN)) for row in shown)


def _notes(observations: Observations, units: Units) -> tuple[str, ...]:
    return unit_notes(observations.knows_annotators, units)


def unit_notes(knows_annotators: bool, units: Units) -> tuple[str, ...]:
    """Say what the figures take for granted."""
    notes = []
    if not knows_annotators:
        notes.append(_ANYONE)
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
