"""Selection of the task with the largest expected gain for one annotator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.designs.adaptive.kernels import (
    ANY,
    DIFFERENT,
    SAME,
    Candidates,
    InformationTable,
    best_tasks,
    regional_tops,
    task_gain,
)
from steelyard.designs.adaptive.state import AdaptiveState
from steelyard.designs.progress import AnnotatorHistory
from steelyard.designs.targets import ItemTargets, TargetItems, sets_of_size, shown_sets
from steelyard.observations import FloatArray

HEADS = 32
"""Items of highest priority for which partners are searched; fewer for larger tasks, whose heads cost more."""
REGIONS, PER_REGION = 48, 4
"""The scale is divided into 48 regions of equally many items; the 4 items of highest priority in each are partners."""
WINDOW = 16
"""Neighbours on either side of a head that are tried as partners."""
_MAX_ENUMERATED_SETS = 20_000
"""Up to this many sets are enumerated when the search finds no task."""
_MAX_RANDOM_DRAWS = 300
_NO_PAIRS: NDArray[np.int64] = np.empty(0, np.int64)


class SelectedTask(NamedTuple):
    """A task: its items, its expected gain, and the probability that these items were drawn for its targets."""

    items: tuple[int, ...]
    gain: float
    probability: float


class TaskSelector:
    """Searches tasks for one annotator without changing the state.

    Every target is shown `initial_views` times before the gain alone decides. With `only_new`, an annotator never sees
    a target twice.
    """

    def __init__(
        self,
        state: AdaptiveState,
        history: AnnotatorHistory,
        annotator: str,
        *,
        initial_views: int,
        only_new: bool,
    ) -> None:
        self.state = state
        self.history = history
        self._initial_views = initial_views
        self.excluded: NDArray[np.bool_] = ~state.is_comparable
        if only_new:
            self.excluded[history.items.rows.ravel()] = True
        available = int((~self.excluded).sum())
        self.size = min(state.task_size, available) if state.short_pages and available else state.task_size
        self._seen_sets = shown_sets(history, self.size)
        self.information = state.information_of(annotator)

    def best(self, rng: np.random.Generator) -> SelectedTask | None:
        """Return the task of largest gain, if possible one that is not leased and that nobody failed to judge."""
        unwanted = {*self.state.leased_sets, *self.state.unjudged_sets}
        candidates = self.state.candidates(self.excluded, self._pair_keys(unwanted))
        for avoided in (unwanted, set()) if unwanted else (unwanted,):
            if not avoided and unwanted:
                candidates = candidates._replace(excluded_pairs=self._pair_keys(avoided))
            for targets, gain in self._by_gain(candidates):
                task_items = self._items_for(targets, rng)
                if task_items is not None and tuple(sorted(task_items.items)) not in avoided:
                    return SelectedTask(task_items.items, gain, task_items.probability)
        return self._best_of_remaining(candidates, rng)

    def random(self, rng: np.random.Generator) -> SelectedTask | None:
        """Return a task drawn uniformly from all that this annotator may see; None if no draw succeeds."""
        available = np.flatnonzero(~self.excluded)
        if len(available) < self.size:
            return None
        candidates = self.state.candidates(self.excluded, _NO_PAIRS)
        draw_pool = self._pool_drawer(available, rng)
        for _ in range(_MAX_RANDOM_DRAWS):
            pool = draw_pool()
            if len(pool) < self.size:
                return None
            targets = tuple(rng.choice(pool, self.size, replace=False).tolist())
            task_items = self._items_for(targets, rng) if self._labels_fit(targets) else None
            if task_items is not None:
                return SelectedTask(task_items.items, self._gain(targets, candidates), task_items.probability)
        return None

    def _pool_drawer(self, available: NDArray[np.int64], rng: np.random.Generator) -> Callable[[], NDArray[np.int64]]:
        """Return a function that draws the targets to choose a task from: all, or those of one context.

        A context is drawn in proportion to its number of tasks, so that every task is equally likely.
        """
        if self.state.label_rule != SAME:
            return lambda: available
        order = available[np.argsort(self.state.labels[available], kind="stable")]
        sizes = np.bincount(self.state.labels[available])
        end = np.cumsum(sizes)
        tasks = np.cumsum([float(comb(size, self.size)) for size in sizes.tolist()])

        def draw() -> NDArray[np.int64]:
            label = int(np.searchsorted(tasks, rng.random() * tasks[-1], side="right"))
            label = min(label, len(sizes) - 1)
            return order[end[label] - sizes[label] : end[label]]

        return draw

    def count(self) -> int | None:
        """Return the number of tasks that `random` draws from; None where it cannot be computed."""
        state = self.state
        if not isinstance(state.targets, ItemTargets) or (state.label_rule == DIFFERENT and self.size > 2):
            return None
        available = np.flatnonzero(~self.excluded)
        total = comb(len(available), self.size)
        if state.label_rule != ANY:
            same_label = sum(comb(int(number), self.size) for number in np.bincount(state.labels[available]))
            total = same_label if state.label_rule == SAME else total - same_label
        unavailable = {tuple(row) for row in sets_of_size(self._seen_sets, self.size).tolist()} | {
            items for items in state.full_sets if len(items) == self.size
        }
        return total - sum(
            not self.excluded[list(targets)].any() and self._labels_fit(targets) for targets in unavailable
        )

    def _by_gain(self, candidates: Candidates) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield the best task of each head, the one of largest gain first."""
        priority = candidates.weight * candidates.variance**2
        priority[self.excluded] = -1.0
        is_new = (self.state.views < self._initial_views) & ~self.excluded
        if is_new.any():
            priority[~is_new] = -1.0
        tasks, gains = best_by_head(candidates, self.information, self.size, priority)
        for row in np.argsort(-gains, kind="stable"):
            if gains[row] > 0:
                yield tuple(tasks[row].tolist()), float(gains[row])

    def _best_of_remaining(self, candidates: Candidates, rng: np.random.Generator) -> SelectedTask | None:
        """Enumerate the few tasks that remain for this annotator, or draw one where they are many."""
        available = np.flatnonzero(~self.excluded).tolist()
        if comb(len(available), self.size) > _MAX_ENUMERATED_SETS:
            return self.random(rng)
        remaining = [targets for targets in combinations(available, self.size) if self._labels_fit(targets)]
        by_gain = sorted(((self._gain(targets, candidates), targets) for targets in remaining), reverse=True)
        for gain, targets in by_gain:
            task_items = self._items_for(targets, rng)
            if task_items is not None:
                return SelectedTask(task_items.items, gain, task_items.probability)
        return None

    def _gain(self, targets: tuple[int, ...], candidates: Candidates) -> float:
        return float(task_gain(np.array(targets, np.int64), self.size, candidates, self.information))

    def _items_for(self, targets: tuple[int, ...], rng: np.random.Generator) -> TargetItems | None:
        """Return items for the targets, unless this annotator or enough others have seen them together."""
        task_items = self.state.targets.choose_items(targets, self.history, rng)
        return None if task_items is None or tuple(sorted(task_items.items)) in self.state.full_sets else task_items

    def _labels_fit(self, targets: tuple[int, ...]) -> bool:
        if self.state.label_rule == ANY:
            return True
        labels = {int(self.state.labels[target]) for target in targets}
        return len(labels) == (1 if self.state.label_rule == SAME else len(targets))

    def _pair_keys(self, avoided: set[tuple[int, ...]]) -> NDArray[np.int64]:
        """Return the sorted keys of the pairs that must not be asked, as in `Candidates`."""
        if self.size != 2 or not isinstance(self.state.targets, ItemTargets):
            return _NO_PAIRS
        others = [items for items in [*avoided, *self.state.full_sets] if len(items) == 2]
        rows = np.concatenate([sets_of_size(self._seen_sets, 2), np.array(others, np.int32).reshape(-1, 2)])
        return np.sort(rows[:, 0].astype(np.int64) * self.state.targets.count + rows[:, 1])


def best_by_head(
    candidates: Candidates, information: InformationTable, size: int, priority: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the best task for each target of highest priority, one per row, and the gains.

    With few targets, all are tried. Targets of negative priority are not heads.
    """
    use_all = len(priority) <= REGIONS * PER_REGION
    heads = _highest(priority, len(priority) if use_all else HEADS if size == 2 else 2 * HEADS // size)
    partners = np.arange(len(priority)) if use_all else regional_tops(candidates, REGIONS, PER_REGION)
    tasks = np.empty((len(heads), size), np.int64)
    return tasks, best_tasks(heads, partners, 0 if use_all else WINDOW, candidates, information, tasks)


def _highest(priority: FloatArray, count: int) -> NDArray[np.int64]:
    """Return the targets of highest priority in falling order, without those of negative priority."""
    count = min(count, int((priority >= 0).sum()))
    if count == 0:
        return _NO_PAIRS
    top = np.argpartition(-priority, count - 1)[:count]
    return top[np.argsort(-priority[top], kind="stable")].astype(np.int64)
