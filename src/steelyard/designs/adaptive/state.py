"""State of the adaptive design: posterior of the scores, leased tasks, and how often each task was assigned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.designs.adaptive.compared_judges import ComparedJudges, ModelPairs
from steelyard.designs.adaptive.judge_prior import ItemPrior, JudgePrior, PeopleEvidence
from steelyard.designs.adaptive.kernels import ANY, DIFFERENT, SAME, Candidates, InformationTable, reduce_variances
from steelyard.designs.adaptive.objective import information_table, objective_cut, score_density, variance_weights
from steelyard.designs.adaptive.settings import Costs, ObjectiveSettings
from steelyard.designs.state import AnswerNotice, DesignState
from steelyard.designs.targets import GroupTargets, ItemTargets, Targets
from steelyard.models.calibrated.online import CalibratedState, tuple_weight
from steelyard.observations import UNKNOWN, Comparison, FloatArray, IntArray, Rating
from steelyard.protocols.base import Protocol
from steelyard.records import Item

_REFIT_GROWTH = 1.15
"""The posterior is refitted to all answers when their number has grown by this factor since the last refit."""
_REFRESHES_PER_ANSWER = 50
"""The order and density of the scores are recomputed after every 1/50 answer per item."""
_INITIAL_TIE_MARGIN = 0.1
_GOLDEN_RATIO = (5**0.5 - 1) / 2


class GainsByKind(NamedTuple):
    """Expected gain of one rating of each item by a person and by a model, and what an answer costs."""

    person: FloatArray
    model: FloatArray
    costs: Costs


class AdaptiveState(DesignState):
    """Posterior and counts of a stage with the adaptive design. A target is an item or, with by = "group", a group."""

    def __init__(
        self,
        protocol: Protocol,
        objective: ObjectiveSettings,
        *,
        by_group: bool,
        across: bool,
        different_groups: bool,
        limit: int | None,
        costs: Costs | None = None,
    ) -> None:
        self.targets: Targets = GroupTargets() if by_group else ItemTargets(across=across)
        self.task_size = protocol.task_size
        self.short_pages = protocol.takes_short_pages
        self.uses_ratings = "comparisons" not in protocol.kinds
        """Whether it learns from ratings. Sliders shown together are used as comparisons, which are free of bias."""
        self._scales = protocol.scales()
        self.views: IntArray = np.zeros(0, np.int32)
        """Number of tasks with each target that are answered or leased."""
        self.assignments: Counter[tuple[int, ...]] = Counter()
        """How often each set of items was assigned."""
        self.full_sets: set[tuple[int, ...]] = set()
        """Sets of items that have been assigned to as many annotators as allowed."""
        self.unjudged_sets: Counter[tuple[int, ...]] = Counter()
        """Sets of items that annotators could not judge. Other sets with the same items are asked first, if there are
        any, which shows the item at fault."""
        self._limit = limit
        self.labels: IntArray = np.zeros(0, np.int32)
        """Context of each item if items are compared within contexts, else its group."""
        self.label_rule = DIFFERENT if different_groups else ANY
        self.is_comparable: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Whether each target can be in a task; not if its context has too few items."""
        self._group_code: dict[str | None, int] = {}
        self._objective = objective
        # Sliders shown together are tied now and then, although scored_ranking has no setting for ties.
        ties = bool(getattr(protocol, "ties", "ratings" in protocol.kinds))
        self._model = CalibratedState(ties=ties)
        self._annotators: dict[str, int] = {}
        self._handles: dict[str, range] = {}
        self._refit_at = 4.0
        self._answers_since_refresh = 0
        self._leased: defaultdict[tuple[str, tuple[int, ...]], list[tuple[tuple[int, ...], FloatArray]]] = defaultdict(
            list
        )
        self._leased_precision: FloatArray = np.zeros(0)
        """Precision that the leased tasks are expected to add to each target."""
        self._tables: dict[int, InformationTable] = {}
        """Expected information by annotator code; cleared whenever the posterior changes."""
        self.judges: JudgePrior | ComparedJudges | None = None
        """What models' answers say of the items, if models share the design with people."""
        if costs is not None:
            self.judges = JudgePrior() if self.uses_ratings else ComparedJudges(ties=ties)
        self._costs = costs
        self._groups: IntArray = np.zeros(0, np.int32)
        self._anticipated: FloatArray = np.zeros(0)
        """Precision that models are expected to add to the items they will be asked about."""
        self._refresh()

    # Events

    def add_items(self, items: Sequence[Item]) -> None:
        """Add new items at the prior."""
        self.targets.add_items(items)
        codes = [self._group_code.setdefault(item.group, len(self._group_code)) for item in items]
        self.labels = np.concatenate([self.labels, np.array(codes, np.int32)])
        self._groups = np.concatenate([self._groups, np.array(codes, np.int32)])
        contexts = self.targets.contexts if isinstance(self.targets, ItemTargets) else None
        if contexts is not None and not contexts.is_single:
            self.label_rule, self.labels = SAME, contexts.of_item
        self._update_comparable()
        extra = self.targets.count - len(self.views)
        self.views = np.concatenate([self.views, np.zeros(extra, np.int32)])
        self._leased_precision = np.concatenate([self._leased_precision, np.zeros(extra)])
        self._anticipated = np.concatenate([self._anticipated, np.zeros(extra)])
        self._model.grow(self.targets.count, self._model.n_annotators)
        if isinstance(self.judges, ComparedJudges):
            self.judges.grow(self.targets.count)
        self._refresh()

    def on_item_set_aside(self, item: int) -> None:
        """Leave an item out of all further tasks."""
        self.targets.withhold(item)
        self._update_comparable()

    def on_item_restored(self, item: int) -> None:
        """Let an item be asked about again."""
        self.targets.restore(item)
        self._update_comparable()

    def _update_comparable(self) -> None:
        if isinstance(self.targets, ItemTargets):
            self.is_comparable = self.targets.contexts.is_comparable(self.smallest_task)
        else:
            self.is_comparable = np.ones(self.targets.count, np.bool_)

    def on_leased(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Count the precision that a leased task is expected to add as if it were known already."""
        key = tuple(sorted(items))
        targets = self._targets(items)
        self._count_assignment(key, 1)
        self.views[list(targets)] += 1
        self.targets.count_assignment(items, 1)
        precision = self._expected_precision(targets)
        self._leased_precision[list(targets)] += precision
        self._leased[annotator, key].append((targets, precision))

    def on_released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Take back what was expected of a task that was released, or whose answer no longer counts."""
        self._count_assignment(tuple(sorted(items)), -1)
        self.views[list(self._targets(items))] -= 1
        self.targets.count_assignment(items, -1)
        self._end_lease(annotator, items)

    def on_answer(self, answer: AnswerNotice) -> None:
        """Update the posterior with an answer to this stage or another."""
        if answer.own_stage:
            self._end_lease(answer.annotator, answer.items)
            self._count_unjudged(answer, 1)
        if self.uses_ratings:
            is_changed = self._learn_ratings(answer) if answer.own_stage else False
        else:
            is_changed = self._learn_comparisons(answer)
        if is_changed:
            self._after_update()

    def on_retract(self, answer: AnswerNotice) -> None:
        """Remove an answer that was revised or no longer counts from the posterior."""
        if answer.own_stage:
            self._count_unjudged(answer, -1)
        handles = self._handles.pop(answer.judgment_id, None)
        if handles is not None:
            (self._model.forget_ratings if self.uses_ratings else self._model.forget)(handles)
            self._tables.clear()

    def _count_unjudged(self, answer: AnswerNotice, by: int) -> None:
        targets = self.targets
        if len(answer.items) < 2 or answer.observations or not isinstance(targets, ItemTargets):
            return
        contexts = targets.contexts
        if len(contexts.members[contexts.context_of(answer.items[0])]) > len(answer.items) or by < 0:
            key = tuple(sorted(answer.items))
            self.unjudged_sets[key] += by
            if self.unjudged_sets[key] <= 0:
                del self.unjudged_sets[key]

    def on_model_answer(self, answer: AnswerNotice) -> None:
        """Learn from a model's answer as evidence that people's answers calibrate."""
        if self.judges is None or not answer.own_stage:
            return
        if isinstance(self.judges, ComparedJudges):
            if (pairs := self._pairs(answer)) is None:
                return
            self.judges.add(answer.annotator, answer.judgment_id, pairs)
        else:
            for item, value in self._unit_ratings(answer).items():
                self.judges.add(answer.annotator, item, answer.judgment_id, value)
        self._count_update()

    def on_model_retract(self, answer: AnswerNotice) -> None:
        """Remove a model's answer, such as one of a model that was excluded."""
        if self.judges is None or not answer.own_stage:
            return
        if isinstance(self.judges, ComparedJudges):
            pairs = self._pairs(answer)
            is_removed = pairs is not None and self.judges.remove(answer.judgment_id, pairs)
        else:
            removals = [self.judges.remove(answer.annotator, item, answer.judgment_id) for item in answer.items]
            is_removed = any(removals)
        if is_removed:
            self._refresh()

    def _unit_ratings(self, answer: AnswerNotice) -> dict[int, float]:
        """Return the rating of each target on [0, 1]; several criteria count as one, by their mean."""
        targets = dict(
            zip((self.targets.ids[item] for item in answer.items), self.targets.of_items(answer.items), strict=True)
        )
        values: defaultdict[int, list[float]] = defaultdict(list)
        for rating in answer.observations:
            if isinstance(rating, Rating) and (target := targets.get(rating.item, UNKNOWN)) != UNKNOWN:
                low, high = self._scales[rating.criterion]
                values[target].append((rating.value - low) / (high - low))
        return {target: sum(ratings) / len(ratings) for target, ratings in values.items()}

    def _learn_ratings(self, answer: AnswerNotice) -> bool:
        values = self._unit_ratings(answer)
        if not values:
            return False
        self._handles[answer.judgment_id] = self._model.learn_ratings(
            self._annotator_code(answer.annotator), list(values), list(values.values())
        )
        return True

    def _pairs(self, answer: AnswerNotice) -> ModelPairs | None:
        """Return the comparisons of an answer by target; None if it has none."""
        targets = dict(
            zip((self.targets.ids[item] for item in answer.items), self.targets.of_items(answer.items), strict=True)
        )
        pairs = [
            (left, right, comparison.outcome)
            for comparison in answer.observations
            if isinstance(comparison, Comparison)
            and (left := targets.get(comparison.left, UNKNOWN)) != (right := targets.get(comparison.right, UNKNOWN))
            and UNKNOWN not in (left, right)
        ]
        return ModelPairs(*map(list, zip(*pairs, strict=True))) if pairs else None

    def _learn_comparisons(self, answer: AnswerNotice) -> bool:
        """Learn from comparisons; those of one answer to several items share its weight."""
        pairs = self._pairs(answer)
        if pairs is None:
            return False
        left, right, outcome = (np.array(part, np.int32) for part in pairs)
        if self._model.margin == 0 and not outcome.all():
            # A tie from another stage or from an import, although this protocol has none.
            self._model.margin = _INITIAL_TIE_MARGIN
        self._handles[answer.judgment_id] = self._model.learn(
            self._annotator_code(answer.annotator),
            left,
            right,
            outcome.astype(np.int8),
            weight=tuple_weight(len(answer.items), len(outcome)),
        )
        return True

    def _annotator_code(self, annotator: str) -> int:
        code = self._annotators.setdefault(annotator, len(self._annotators))
        self._model.grow(self.targets.count, len(self._annotators))
        return code

    def _after_update(self) -> None:
        """Refit the posterior to all answers, or recompute order and density, when it is time."""
        count = self._model.n_comparisons + self._model.n_ratings
        is_refit_due = count >= self._refit_at
        if is_refit_due:
            self._model.refit()
            self._refit_at = max(count * _REFIT_GROWTH, self._refit_at + 4)
        self._count_update(is_refresh_due=is_refit_due)

    def _count_update(self, *, is_refresh_due: bool = False) -> None:
        self._tables.clear()
        self._answers_since_refresh += 1
        if is_refresh_due or self._answers_since_refresh * _REFRESHES_PER_ANSWER >= self.targets.count:
            self._refresh()

    def _count_assignment(self, key: tuple[int, ...], by: int) -> None:
        self.assignments[key] += by
        if self._limit is not None:
            (self.full_sets.add if self.assignments[key] >= self._limit else self.full_sets.discard)(key)

    def _end_lease(self, annotator: str, items: tuple[int, ...]) -> None:
        key = (annotator, tuple(sorted(items)))
        if leases := self._leased.get(key):
            targets, precision = leases.pop()
            self._leased_precision[list(targets)] -= precision
            if not leases:
                del self._leased[key]

    def _targets(self, items: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(target for target in dict.fromkeys(self.targets.of_items(items)) if target != UNKNOWN)

    def _expected_precision(self, targets: tuple[int, ...]) -> FloatArray:
        """Return the precision that a task is expected to add to each of its targets."""
        members = np.array(targets, np.int64)
        if self.uses_ratings:
            return self._default_information.rating_precision / self._model.unevenness[members]
        mean, before = self._model.mean[members], self.variance[members]
        after = before.copy()
        reduce_variances(np.arange(len(members)), mean, after, self._default_information)
        return 1 / after - 1 / before

    def _refresh(self) -> None:
        """Recompute order and density of the scores, at points that depend only on the log, so that picks replay."""
        self._answers_since_refresh = 0
        self._tables.clear()
        if self.targets.count == 0:
            return
        self._weigh_judges()
        mean, variance = self._model.mean, self._model.variance
        self._order = self.order_by(mean)
        self._position = np.empty_like(self._order)
        self._position[self._order] = np.arange(len(mean), dtype=np.int32)
        self._density = score_density(mean, variance)
        self._default_information = self.information(UNKNOWN)

    def order_by(self, mean: FloatArray) -> IntArray:
        """Return the targets by mean, those of each context together if tasks are within contexts."""
        first_key = self.labels if self.label_rule == SAME else np.zeros(len(mean), np.int32)
        return np.lexsort((mean, first_key)).astype(np.int32)

    def _weigh_judges(self) -> None:
        """Estimate how well models predict people, and which items models will be asked about."""
        if self.judges is None:
            return
        people = PeopleEvidence(*self._model.own_evidence())
        if isinstance(self.judges, ComparedJudges):
            self.judges.refit(people, self.item_prior)
            self._model.set_outside_evidence(self.judges.mean, self.judges.precision)
            return
        self.judges.refit(people, self.item_prior, self._groups)
        self._model.set_outside_evidence(self.judges.mean, self.judges.precision)
        answered_items = list(self.judges.judged_items)
        self._anticipated = np.zeros(self.targets.count)
        if answered_items:
            gains = self.gains_by_kind()
            is_worth_more = gains.model / gains.costs.model > gains.person / gains.costs.person
            is_worth_more[answered_items] = False
            self._anticipated[is_worth_more] = self.judges.expected[is_worth_more]

    def gains_by_kind(self) -> GainsByKind:
        """Return what an answer about each item is expected to add to the objective, from a person and from a model."""
        if not isinstance(self.judges, JudgePrior) or self._costs is None:
            raise TypeError("models do not rate items in this design: it has no model_cost, or compares items")
        variance = 1 / (1 / self._model.variance + self._leased_precision)
        weight = self._variance_weights(variance)
        rating = self._model.rating_precision(UNKNOWN) / self._model.unevenness
        by_person = weight * (variance - 1 / (1 / variance + rating))
        by_model = weight * (variance - 1 / (1 / variance + self.judges.expected))
        by_model[list(self.judges.judged_items)] = 0.0
        by_person[~self.is_comparable] = by_model[~self.is_comparable] = 0.0
        return GainsByKind(by_person, by_model, self._costs)

    def _variance_weights(self, variance: FloatArray) -> FloatArray:
        cut = objective_cut(self._objective, self._density, self.targets.count)
        return variance_weights(self._objective.objective, self._model.mean, variance, self._density, cut)

    # Read by picks; nothing below changes the state

    @property
    def item_prior(self) -> ItemPrior:
        """Mean and variance of an item before any answer."""
        return ItemPrior(*self._model.item_prior)

    @property
    def mean(self) -> FloatArray:
        """Posterior means of the targets."""
        return self._model.mean

    @property
    def variance(self) -> FloatArray:
        """Posterior variances of the targets, with leased tasks counted as if they were answered.

        So are the answers of models about items where a model is worth more than a person.
        """
        return 1 / (1 / self._model.variance + self._leased_precision + self._anticipated)

    @property
    def leased_sets(self) -> list[tuple[int, ...]]:
        """The sets of items that are leased now."""
        return [key for _, key in self._leased]

    @property
    def n_comparable(self) -> int:
        """Number of targets that can be in a task."""
        return int(self.is_comparable.sum())

    @property
    def smallest_task(self) -> int:
        """The smallest number of targets that make a task."""
        return 1 if self.short_pages and isinstance(self.targets, ItemTargets) else self.task_size

    @property
    def n_sets(self) -> int:
        """Number of different tasks, if targets are items."""
        available = np.ones(self.targets.count, np.bool_)
        available[list(self.targets.withheld)] = False
        sizes = np.bincount(self.labels[available]) if self.label_rule == SAME else available.sum(keepdims=True)
        return sum(comb(size, self.task_size) * times for size, times in Counter(sizes.tolist()).items())

    def noise(self, annotator: str) -> float:
        """Return the posterior noise of an annotator, in standard deviations of the items' scores."""
        return self._model.noise(self._annotators.get(annotator, UNKNOWN))

    def information_of(self, annotator: str) -> InformationTable:
        """Return the expected information of an annotator's answers; the population's for a new annotator."""
        code = self._annotators.get(annotator, UNKNOWN)
        return self._default_information if code == UNKNOWN else self.information(code)

    def information(self, annotator: int) -> InformationTable:
        """Return the expected information of the answers of an annotator, by code."""
        if annotator not in self._tables:
            probability = self._model.level_probabilities(annotator)
            pair_weight = 0.0 if self.uses_ratings else 2 / self.task_size
            precision = self._model.rating_precision(annotator) if self.uses_ratings else 0.0
            self._tables[annotator] = information_table(
                probability, self._model.margin, pair_weight=pair_weight, rating_precision=precision
            )
        return self._tables[annotator]

    def candidates(self, excluded: NDArray[np.bool_], excluded_pairs: NDArray[np.int64]) -> Candidates:
        """Return the posterior of the targets for a search; `excluded` and `excluded_pairs` as in `Candidates`."""
        mean, variance = self._model.mean, self.variance
        weight = self._variance_weights(variance)
        # Break ties by a fixed number of each target, not by its place in the items file, which is often sorted.
        weight *= 1 + 1e-9 * (np.arange(len(mean)) * _GOLDEN_RATIO % 1)
        labels = self.labels if self.label_rule != ANY else np.zeros(len(mean), np.int32)
        if self.uses_ratings:
            # A rating adds less precision to a noisier item: as if its variance were lower and its weight higher.
            variance, weight = variance / self._model.unevenness, weight * self._model.unevenness
        return Candidates(
            mean, variance, weight, excluded, labels, self.label_rule, self._order, self._position, excluded_pairs
        )
