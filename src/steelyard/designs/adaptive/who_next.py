"""Whether a model or a person is asked next: the best answer of each kind, by expected gain."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.designs.adaptive.compared_judges import ComparedJudges
from steelyard.designs.adaptive.kernels import (
    Candidates,
    InformationTable,
    comparison_information,
    reduce_variances,
)
from steelyard.designs.adaptive.objective import information_table
from steelyard.designs.adaptive.selection import best_by_head
from steelyard.designs.adaptive.state import AdaptiveState
from steelyard.observations import FloatArray

_NO_PAIRS: NDArray[np.int64] = np.empty(0, np.int64)


class BestByKind(NamedTuple):
    """The items that a model should answer, its expected gain, and the gain of the best task for a person."""

    items: tuple[int, ...]
    model: float
    person: float


def best_by_kind(state: AdaptiveState, avoided: Collection[tuple[int, ...]]) -> BestByKind:
    """Return the best question for a model, without those in `avoided`, and what the best task of a person gains."""
    if isinstance(state.judges, ComparedJudges):
        return _best_pair(state, state.judges, avoided)
    gains = state.gains_by_kind()
    by_model = gains.model.copy()
    by_model[[items[0] for items in avoided]] = 0.0
    item = int(by_model.argmax())
    return BestByKind((item,), float(by_model[item]), float(gains.person.max()))


def model_gain(state: AdaptiveState, items: Collection[int]) -> float:
    """Return the expected gain of a model's answers about the items of a task."""
    if not isinstance(state.judges, ComparedJudges):
        return float(state.gains_by_kind().model[list(items)].sum())
    members = np.array(list(items), np.int64)
    return _pair_gain(state, state.judges, members, state.judges.variance, _information(state.judges))


def _best_pair(state: AdaptiveState, judges: ComparedJudges, avoided: Collection[tuple[int, ...]]) -> BestByKind:
    people = state.candidates(~state.is_comparable, _NO_PAIRS)
    person = _best(people, state.information_of(""))[1]
    pending = {(min(pair), max(pair)) for pair in avoided} - judges.pairs
    keys = np.sort(np.array([low * state.targets.count + high for low, high in pending | judges.pairs], np.int64))
    information = _information(judges)
    # Pairs that are about to be answered count as if they were.
    scores, variance = judges.scores, judges.variance.copy()
    for pair in pending:
        reduce_variances(np.array(pair, np.int64), scores, variance, information)
    # To first order, a comparison is worth weight · v² · slope for each unit by which it lowers the models' variance.
    weight = people.weight * people.variance**2 * judges.precision_slope(variance, state.item_prior)
    order = state.order_by(scores)
    position = np.empty_like(order)
    position[order] = np.arange(len(order), dtype=np.int32)
    models = state.candidates(~state.is_comparable, keys)._replace(
        mean=scores, variance=variance, weight=weight, order=order, position=position
    )
    items, _ = _best(models, information)
    if items is None:
        return BestByKind((), 0.0, person)
    gain = _pair_gain(state, judges, items, variance, information)
    return BestByKind(judges.ordered(items.tolist()), gain, person)


def _best(candidates: Candidates, information: InformationTable) -> tuple[NDArray[np.int64] | None, float]:
    priority = candidates.weight * candidates.variance**2
    priority[candidates.excluded] = -1.0
    tasks, gains = best_by_head(candidates, information, 2, priority)
    if not len(gains) or gains.max() <= 0:
        return None, 0.0
    return tasks[int(gains.argmax())], float(gains.max())


def _information(judges: ComparedJudges) -> InformationTable:
    return information_table(judges.level_probabilities(), judges.margin)


def _pair_gain(
    state: AdaptiveState,
    judges: ComparedJudges,
    pair: NDArray[np.int64],
    variance: FloatArray,
    information: InformationTable,
) -> float:
    """Return what a model's comparison of a pair is expected to gain, if its own variances of the items are these."""
    own, mean = variance[pair], judges.scores[pair]
    info = comparison_information(information, float(mean[0] - mean[1]), float(own.sum()))
    added = judges.added_precision(own, own - own**2 * info, state.item_prior)
    candidates = state.candidates(~state.is_comparable, _NO_PAIRS)
    before = candidates.variance[pair]
    return float((candidates.weight[pair] * (before - 1 / (1 / before + added))).sum())
