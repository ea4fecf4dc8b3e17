"""Which task teaches most, for one person: who may be asked about, what they have seen, and what is left."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.designs.gain_kernels import ANY, DIFFERENT, SAME, Answers, Standing, best_tasks, regional_tops, task_gain
from steelyard.designs.information_gain_memory import GainMemory
from steelyard.designs.progress import Person
from steelyard.designs.units import ItemUnits, Shown, seen_sets, sets_of_size
from steelyard.observations import FloatArray

HEADS = 32
"""Items of highest stake for which a partner is sought; for larger tasks fewer, as each head costs more."""
REGIONS, EACH = 48, 4
"""The scale is cut into so many regions of equally many items; so many of the highest stake of each are candidates."""
WINDOW = 16
"""So many neighbours on either side are candidates."""
_ENUMERABLE = 20_000
"""Up to this many sets are listed where nothing better is found."""
_TRIES = 300


class Found(NamedTuple):
    """A task: its items, what it is expected to teach, and the chance with which its items stand for their units."""

    items: tuple[int, ...]
    gain: float
    chance: float


class Search:
    """Looks for tasks for one person, changing nothing.

    `looks` is how often every unit is to be shown before the gain alone decides; with `only_new` nobody meets a unit
    twice.
    """

    def __init__(self, memory: GainMemory, person: Person, annotator: str, *, looks: int, only_new: bool) -> None:
        self.memory = memory
        self.person = person
        self._looks = looks
        self.barred: NDArray[np.bool_] = np.zeros(memory.units.count, np.bool_)
        if only_new:
            self.barred[person.items.rows.ravel()] = True
        free = int((~self.barred).sum())
        self.size = min(memory.task_size, free) if memory.short_pages and free else memory.task_size
        self._seen = seen_sets(person, self.size)
        self.answers = memory.answers_of(annotator)

    def best(self, rng: np.random.Generator) -> Found | None:
        """Return the task that teaches most: one that is with nobody now, if there is one."""
        out = set(self.memory.out)
        standing = self.memory.standing(self.barred, self._keys(out))
        for avoided in (out, set()) if out else (out,):
            if not avoided and out:
                standing = standing._replace(seen=self._keys(avoided))
            for units, gain in self._by_gain(standing):
                shown = self._shown(units, rng)
                if shown is not None and tuple(sorted(shown.items)) not in avoided:
                    return Found(shown.items, gain, shown.chance)
        return self._best_of_all(standing, rng)

    def any(self, rng: np.random.Generator) -> Found | None:
        """Return a task drawn from all that this person may see, each as likely; None if drawing finds none."""
        free = np.flatnonzero(~self.barred)
        if len(free) < self.size:
            return None
        standing = self.memory.standing(self.barred, _NONE)
        for _ in range(_TRIES):
            units = tuple(rng.choice(free, self.size, replace=False).tolist())
            shown = self._shown(units, rng) if self._fits(units) else None
            if shown is not None:
                return Found(shown.items, self._gain(units, standing), shown.chance)
        return None

    def count(self) -> int | None:
        """How many tasks `any` draws from; None where that is not known."""
        memory = self.memory
        if not isinstance(memory.units, ItemUnits) or (memory.rule == DIFFERENT and self.size > 2):
            return None
        free = np.flatnonzero(~self.barred)
        whole = comb(len(free), self.size)
        if memory.rule != ANY:
            alike = sum(comb(int(number), self.size) for number in np.bincount(memory.labels[free]))
            whole = alike if memory.rule == SAME else whole - alike
        gone = {tuple(row) for row in sets_of_size(self._seen, self.size).tolist()} | {
            items for items in memory.full if len(items) == self.size
        }
        return whole - sum(not self.barred[list(units)].any() and self._fits(units) for units in gone)

    def _by_gain(self, standing: Standing) -> Iterator[tuple[tuple[int, ...], float]]:
        """Go through the best tasks found, one for each head, the best first."""
        stake = standing.worth * standing.variance**2
        stake[self.barred] = -1.0
        new = (self.memory.shown < self._looks) & ~self.barred
        if new.any():
            stake[~new] = -1.0
        tasks, gains = best_by_head(standing, self.answers, self.size, stake)
        for row in np.argsort(-gains, kind="stable"):
            if gains[row] > 0:
                yield tuple(tasks[row].tolist()), float(gains[row])

    def _best_of_all(self, standing: Standing, rng: np.random.Generator) -> Found | None:
        """Little is left for this person: list it, or draw."""
        free = np.flatnonzero(~self.barred).tolist()
        if comb(len(free), self.size) > _ENUMERABLE:
            return self.any(rng)
        left = [units for units in combinations(free, self.size) if self._fits(units)]
        for gain, units in sorted(((self._gain(units, standing), units) for units in left), reverse=True):
            shown = self._shown(units, rng)
            if shown is not None:
                return Found(shown.items, gain, shown.chance)
        return None

    def _gain(self, units: tuple[int, ...], standing: Standing) -> float:
        return float(task_gain(np.array(units, np.int64), self.size, standing, self.answers))

    def _shown(self, units: tuple[int, ...], rng: np.random.Generator) -> Shown | None:
        """Return the items that stand for units, unless this person or enough others have seen them together."""
        shown = self.memory.units.show(units, self.person, rng)
        return None if shown is None or tuple(sorted(shown.items)) in self.memory.full else shown

    def _fits(self, units: tuple[int, ...]) -> bool:
        if self.memory.rule == ANY:
            return True
        labels = {int(self.memory.labels[unit]) for unit in units}
        return len(labels) == (1 if self.memory.rule == SAME else len(units))

    def _keys(self, avoided: set[tuple[int, ...]]) -> NDArray[np.int64]:
        """Return the sorted keys of pairs that are not to be asked, for the search."""
        if self.size != 2 or not isinstance(self.memory.units, ItemUnits):
            return _NONE
        others = [items for items in [*avoided, *self.memory.full] if len(items) == 2]
        rows = np.concatenate([sets_of_size(self._seen, 2), np.array(others, np.int32).reshape(-1, 2)])
        return np.sort(rows[:, 0].astype(np.int64) * self.memory.units.count + rows[:, 1])


_NONE: NDArray[np.int64] = np.empty(0, np.int64)


def best_by_head(
    standing: Standing, answers: Answers, size: int, stake: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the best task found for each of the units of highest stake, one a row, and what each teaches.

    Where units are few, all are looked at. Units whose stake is below 0 are no heads.
    """
    few = len(stake) <= REGIONS * EACH
    heads = _highest(stake, len(stake) if few else HEADS if size == 2 else 2 * HEADS // size)
    company = np.arange(len(stake)) if few else regional_tops(standing, REGIONS, EACH)
    tasks = np.empty((len(heads), size), np.int64)
    return tasks, best_tasks(heads, company, 0 if few else WINDOW, standing, answers, tasks)


def _highest(stake: FloatArray, count: int) -> NDArray[np.int64]:
    """Return the units of highest stake, highest first; those below 0 are none."""
    count = min(count, int((stake >= 0).sum()))
    if count == 0:
        return _NONE
    top = np.argpartition(-stake, count - 1)[:count]
    return top[np.argsort(-stake[top], kind="stable")].astype(np.int64)
