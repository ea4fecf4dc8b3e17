"""Annotators who arrive one after the other and rate the items with the largest expected gain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.designs.adaptive.design import Adaptive
from steelyard.designs.adaptive.selection import TaskSelector
from steelyard.designs.adaptive.state import AdaptiveState
from steelyard.designs.state import AnswerNotice
from steelyard.observations import IntArray, Ratings
from steelyard.protocols import Direct
from steelyard.records import Item

TASKS = 10
"""How many items one is asked about in a visit: half of what most people of the NLI sliders rated, so that there is
something to choose from."""


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """Ratings that would be given, and who comes when.

    `annotator` has the code of each visitor. Nobody is asked about an item that he did not rate, or twice.
    """

    ratings: Ratings
    annotator: IntArray

    def asked(self, rng: np.random.Generator) -> Iterator[int]:
        """Yield the rows of the ratings that are asked for, one after the other."""
        asking = _ByGain(self.ratings, rng)
        open_rows: dict[int, dict[int, int]] = {}
        for row, (who, item) in enumerate(
            zip(self.ratings.annotator.tolist(), self.ratings.item.tolist(), strict=True)
        ):
            open_rows.setdefault(who, {})[item] = row
        for who in self.annotator.tolist():
            rows = open_rows[who]
            for _ in range(min(TASKS, len(rows))):
                item = asking.choose(who, rows)
                row = rows.pop(item)
                asking.learn(who, item, row)
                yield row

    def given(self, counts: Sequence[int], rng: np.random.Generator) -> Iterator[NDArray[np.bool_]]:
        """Yield a mask of the ratings given so far, at each of the `counts`."""
        answered = np.zeros(len(self.ratings), np.bool_)
        for count, row in enumerate(self.asked(rng), 1):
            answered[row] = True
            if count in counts:
                yield answered.copy()
            if count == max(counts):
                return


class _ByGain:
    """Ask by the design adaptive, with its usual settings."""

    def __init__(self, ratings: Ratings, rng: np.random.Generator) -> None:
        self._ratings, self._rng = ratings, rng
        self._protocol = Direct()
        self._design = Adaptive(objective="scores")
        self._items = [Item(name, "") for name in ratings.items.ids]
        self._progress = self._design.new_progress(self._protocol, self._items)

    def choose(self, who: int, rows: dict[int, int]) -> int:
        if self._rng.random() < self._design.explore:
            return int(self._rng.choice(list(rows)))
        state = self._progress.design_state
        if not isinstance(state, AdaptiveState):
            raise TypeError(state)
        views = self._design.views_before_gain(uses_ratings=True)
        search = TaskSelector(state, self._progress.history(str(who)), str(who), initial_views=views, only_new=True)
        search.excluded[:] = True
        search.excluded[list(rows)] = False
        pick = search.best(self._rng)
        if pick is None:
            raise RuntimeError("the search returned no item although some are left")
        return pick.items[0]

    def learn(self, who: int, item: int, row: int) -> None:
        self._progress.on_leased(str(who), (item,), None, 0, self._rng)
        self._progress.on_answered((item,), None)
        name = self._items[item].id
        observations = self._protocol.observations([name], {name: float(self._ratings.value[row])})
        self._progress.notify_answer(AnswerNotice(str(row), str(who), (item,), observations))
