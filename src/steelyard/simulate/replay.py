"""Recorded judgments as annotators: a design tested on the answers of real annotators.

Every task is answered by a recorded judgment, so any design can be run on the recorded items. The possible protocols
depend on the recorded kind:

========================  ==========================================================================
recorded                  protocols it can answer
========================  ==========================================================================
ratings                   direct, likert, scored_ranking; pairwise, best_worst and ranking by one person's ratings
comparisons               pairwise, for pairs that were compared
choices                   best_worst, for tuples that were shown; pairwise, for pairs that a choice settles
rankings                  pairwise, best_worst and ranking, for items that one ranking holds together
labels                    choice
========================  ==========================================================================
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.errors import ConfigError, DataError
from steelyard.formats.judgments import JudgmentFile
from steelyard.observations import (
    UNKNOWN,
    Labels,
    Mixed,
    Observations,
    Ratings,
)
from steelyard.protocols import BestWorst, Choice, Pairwise, Protocol, Ranking, ScoredRanking
from steelyard.protocols.base import ONLY
from steelyard.protocols.rated import Rated
from steelyard.simulate.annotators import criterion_names
from steelyard.simulate.answers import answer_for


class RecordedAnnotators:
    """Answers drawn from recorded judgments, each used once while there are unused ones.

    A task is answered by one recorded person wherever one judged all its items and has not been drawn for any
    of them; at random among such people. Otherwise ratings and labels are drawn item by item, each from some
    person whose judgment of the item is unused; and where none is left, once more from all. Comparisons, choices
    and rankings are drawn whole, unused ones first. `counts` says how often each happened.

    Parameters
    ----------
    recorded
        What `read_judgments` returns, observations, or observations by criterion.
    seats
        How many annotators there are to be asked. They are seats only: each answer may be another person's.
    rng
        Draws among the recorded answers.
    """

    def __init__(
        self,
        observations: JudgmentFile | Observations | Mapping[str, Observations],
        seats: int,
        rng: np.random.Generator,
    ) -> None:
        if seats < 1:
            raise ConfigError("there are no annotators.", "Replay with at least one seat.")
        parts = observations.by_criterion if isinstance(observations, JudgmentFile) else observations
        self._parts = {ONLY: parts} if isinstance(parts, Observations) else dict(parts)
        self.names = tuple(f"seat-{number:0{len(str(seats))}d}" for number in range(1, seats + 1))
        self.kind = next(iter(self._parts.values())).kind
        self.counts: Counter[str] = Counter()
        self._rng = rng
        self._used: set[tuple[str, int]] = set()
        self._pools = {name: _Pool(part) for name, part in self._parts.items()}

    @property
    def items(self) -> tuple[str, ...]:
        """The items that have recorded judgments under every criterion, in the order of the record."""
        pools = list(self._pools.values())
        return tuple(item for item in pools[0].by_item if all(item in pool.by_item for pool in pools))

    def seconds(self, protocol: Protocol) -> float | None:
        """Return None: the recorded times are of other tasks."""
        return None

    def answer(self, annotator: str, protocol: Protocol, items: Sequence[str]) -> Any:
        """Return a recorded answer to a task that shows these items, or refuse what was never judged."""
        if self.kind == "ratings" and isinstance(protocol, Rated | ScoredRanking):
            return self._per_item(protocol, items)
        if self.kind == "labels" and isinstance(protocol, Choice):
            return self._per_item(protocol, items)
        if isinstance(protocol, Pairwise | BestWorst | Ranking) and self.kind != "labels":
            return self._relative(protocol, items)
        raise ConfigError(
            f"recorded {self.kind} cannot answer {protocol.name}.", "Choose a protocol that asks for what was recorded."
        )

    def _per_item(self, protocol: Rated | ScoredRanking | Choice, items: Sequence[str]) -> Any:
        row_choice = {name: self._rows(name, items) for name in criterion_names(protocol)}
        by_item: dict[str, Any] = {}
        for place, item in enumerate(items):
            values = {
                name: self._value_of(self._pools[self._criterion(name)], row[place]) for name, row in row_choice.items()
            }
            by_item[item] = values if len(values) > 1 or ONLY not in values else values[ONLY]
        if isinstance(protocol, Choice):
            return by_item
        return answer_for(protocol, by_item)

    def _criterion(self, name: str) -> str:
        if name in self._pools:
            return name
        raise DataError(
            f"nothing was recorded for criterion '{name}'." if name else "the record is by criterion.",
            f"Recorded: {', '.join(map(repr, self._pools))}.",
        )

    def _value_of(self, pool: _Pool, row: int) -> Any:
        observations = pool.observations
        return observations.answer_at(row) if observations.kind == Labels.kind else float(pool.unit[row])

    def _rows(self, criterion: str, items: Sequence[str]) -> list[int]:
        """Choose a recorded row for each item: all of one annotator if possible, and unused rows if there are any."""
        name = self._criterion(criterion)
        pool = self._pools[name]
        rows_of = [self._rows_of(pool, item) for item in items]
        unused_rows = [[row for row in rows if (name, row) not in self._used] for rows in rows_of]
        whole = pool.by_one_person(unused_rows) if len(items) > 1 else []
        if whole:
            self.counts["by one person"] += 1
            row_choice = whole[int(self._rng.integers(len(whole)))]
        else:
            self.counts["by one person" if len(items) == 1 else "item by item"] += 1
            self.counts["judgments used again"] += sum(not rows for rows in unused_rows)
            row_choice = [
                (unused or rows)[int(self._rng.integers(len(unused or rows)))]
                for unused, rows in zip(unused_rows, rows_of, strict=True)
            ]
        self._used.update((name, row) for row in row_choice)
        return row_choice

    def _rows_of(self, pool: _Pool, item: str) -> list[int]:
        rows = pool.by_item.get(item)
        if not rows:
            raise DataError(f"there are no recorded judgments of '{item}'.", "Leave it out of the items.")
        return rows

    def _relative(self, protocol: Pairwise | BestWorst | Ranking, items: Sequence[str]) -> Any:
        """Choose one recorded judgment that orders all these items."""
        pool = self._pools[self._criterion(ONLY)]
        for item in items:
            self._rows_of(pool, item)
        candidates = pool.orders(items, settles_all=not isinstance(protocol, BestWorst))
        if not candidates:
            raise DataError(
                f"no recorded {self.kind} compare {', '.join(map(repr, items))} with each other.",
                "Ask only what was recorded, or replay ratings or rankings, which order all items.",
            )
        keys = list(candidates)
        unused_rows = [key for key in keys if (ONLY, key) not in self._used]
        self.counts["judgments used again" if not unused_rows else "by one person"] += 1
        key = (unused_rows or keys)[int(self._rng.integers(len(unused_rows or keys)))]
        self._used.add((ONLY, key))
        # Equal ranks are broken at random where the protocol has no ties: whoever must choose does the same.
        values = dict(zip(items, candidates[key], strict=True))
        if not getattr(protocol, "ties", False):
            nudge = self._rng.permutation(len(items)) * 1e-6
            values = {item: value + float(nudge[place]) for place, (item, value) in enumerate(values.items())}
        return answer_for(protocol, values, tie_margin=1e-9)


class _Pool:
    """The recorded judgments of one criterion, indexed by item."""

    def __init__(self, observations: Observations) -> None:
        self.observations = observations
        self.by_item: dict[str, list[int]] = defaultdict(list)
        self.unit = observations.unit_value if isinstance(observations, Ratings) else np.zeros(0)
        for row, code in self._showings():
            self.by_item[observations.items[code]].append(row)

    def _showings(self) -> Iterable[tuple[int, int]]:
        if self.observations.kind == Mixed.kind:
            raise DataError(f"{self.observations.kind} cannot be replayed.")
        item, row = self.observations.incidence()
        order = np.argsort(row, kind="stable")
        return zip(row[order].tolist(), item[order].tolist(), strict=True)

    def by_one_person(self, rows_of: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return the ways to take a row for each item that are all of one known person."""
        annotator = self.observations.annotator
        of_person: list[dict[int, int]] = [
            {int(annotator[row]): row for row in reversed(rows) if annotator[row] != UNKNOWN} for rows in rows_of
        ]
        people = sorted(set(of_person[0]).intersection(*of_person[1:]))
        return [[rows[person] for rows in of_person] for person in people]

    def orders(self, items: Sequence[str], *, settles_all: bool) -> dict[int, tuple[float, ...]]:
        """Return each recorded judgment that orders these items: a key, and values that rise with preference.

        A choice orders its whole tuple for best–worst, and a pair of it if that settles which is preferred.
        """
        observations = self.observations
        if observations.kind == Ratings.kind:
            ways = self.by_one_person([self.by_item[item] for item in items])
            return {way[0]: tuple(float(self.unit[row]) for row in way) for way in ways}
        rows = sorted(set(self.by_item[items[0]]).intersection(*(self.by_item[item] for item in items[1:])))
        codes = observations.items.codes(items).tolist()
        orders: dict[int, tuple[float, ...]] = {}
        for row in rows:
            values = observations.order_at(row, codes, fully=settles_all)
            if values is not None:
                orders[row] = values
        return orders
