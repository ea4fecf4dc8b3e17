"""What information_gain remembers: the calibrated scale's online state, what is out, and what was asked how often."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.designs.gain_kernels import ANY, DIFFERENT, SAME, Answers, Standing, expect
from steelyard.designs.gains import Spread, expected_answers, spread_of, worth_of
from steelyard.designs.information_gain import Aim
from steelyard.designs.memory import Heard, Memory
from steelyard.designs.units import GroupUnits, ItemUnits, Units
from steelyard.models.calibrated.online import CalibratedState, tuple_weight
from steelyard.observations import UNKNOWN, Comparison, FloatArray, IntArray, Rating
from steelyard.protocols.base import Protocol
from steelyard.records import Item

_GROWTH = 1.15
"""All answers are gone over again when there are so many times as many as the last time."""
_LOOKS = 50
"""How the items lie is worked out anew after every fiftieth of an answer an item."""


FIRST_MARGIN = 0.1
_GOLDEN = (5**0.5 - 1) / 2


class Purpose(NamedTuple):
    """What the study is for: an aim, and where its cut is."""

    aim: Aim
    top: int | None
    threshold: float | None

    def cut(self, spread: Spread, count: int) -> float:
        """Return the place on the scale above which the items wanted are."""
        if self.aim == "top" and self.top is not None:
            return spread.quantile(1 - self.top / count)
        if self.aim == "threshold" and self.threshold is not None:
            return spread.quantile(self.threshold)
        return 0.0


class GainMemory(Memory):
    """The fold behind information_gain. A unit is an item or, by group, a group."""

    def __init__(
        self, protocol: Protocol, purpose: Purpose, *, by_group: bool, together: str, limit: int | None
    ) -> None:
        self.units: Units = GroupUnits() if by_group else ItemUnits()
        self.task_size = protocol.task_size
        self.short_pages = protocol.takes_short_pages
        self.rates = "comparisons" not in protocol.kinds
        """Whether it learns from ratings; sliders side by side are learnt from as comparisons, which no bias moves."""
        self._scales = protocol.scales()
        self.shown: IntArray = np.zeros(0, np.int32)
        """How many tasks with each unit are answered or out."""
        self.times: Counter[tuple[int, ...]] = Counter()
        """How often each set of items was asked."""
        self.full: set[tuple[int, ...]] = set()
        """Sets that were asked as often as may be."""
        self._limit = limit
        self.labels: IntArray = np.zeros(0, np.int32)
        self.rule = {"anything": ANY, "same_context": SAME, "other_groups": DIFFERENT}[together]
        self._label_code: dict[str | None, int] = {}
        self._purpose = purpose
        # Sliders side by side are tied now and then, also where there is no such setting.
        self._state = CalibratedState(ties=bool(getattr(protocol, "ties", "ratings" in protocol.kinds)))
        self._people: dict[str, int] = {}
        self._handles: dict[str, range] = {}
        self._refit_at = 4.0
        self._heard_since = 0
        self._out: defaultdict[tuple[str, tuple[int, ...]], list[tuple[tuple[int, ...], FloatArray]]] = defaultdict(
            list
        )
        self._added: FloatArray = np.zeros(0)
        """Precision that each unit is expected to gain from the tasks that are out."""
        self._tables: dict[int, Answers] = {}
        """What each annotator's answers tell, kept while nothing is learnt."""
        self._look()

    # The fold

    def add_items(self, items: Sequence[Item]) -> None:
        """Take in new items."""
        self.units.add_items(items)
        by_context = self.rule == SAME
        labels = [item.context if by_context else item.group for item in items]
        new = [self._label_code.setdefault(label, len(self._label_code)) for label in labels]
        self.labels = np.concatenate([self.labels, np.array(new, np.int32)])
        more = self.units.count - len(self.shown)
        self.shown = np.concatenate([self.shown, np.zeros(more, np.int32)])
        self._added = np.concatenate([self._added, np.zeros(more)])
        self._state.grow(self.units.count, self._state.n_annotators)
        self._look()

    def picked(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Count what a task that goes out is expected to teach as if it were known already."""
        key = tuple(sorted(items))
        units = self._units(items)
        self._count(key, 1)
        self.shown[list(units)] += 1
        self.units.asked(items, 1)
        added = self._expected(units)
        self._added[list(units)] += added
        self._out[annotator, key].append((units, added))

    def released(self, annotator: str, items: tuple[int, ...], slot: int | None) -> None:
        """Expect nothing more of a task that came back, or whose answer no longer counts."""
        self._count(tuple(sorted(items)), -1)
        self.shown[list(self._units(items))] -= 1
        self.units.asked(items, -1)
        self._no_longer_out(annotator, items)

    def heard(self, answer: Heard) -> None:
        """Learn from an answer, to this stage or another."""
        if answer.own:
            self._no_longer_out(answer.annotator, answer.items)
        units = dict(
            zip((self.units.ids[item] for item in answer.items), self.units.of_items(answer.items), strict=True)
        )
        if self.rates:
            learnt = self._learn_ratings(answer, units) if answer.own else False
        else:
            learnt = self._learn_comparisons(answer, units)
        if learnt:
            self._learnt()

    def _learn_ratings(self, answer: Heard, units: Mapping[str, int]) -> bool:
        """Take in ratings, an item's by several criteria as their mean on [0, 1]."""
        values: defaultdict[int, list[float]] = defaultdict(list)
        for said in answer.observations:
            if isinstance(said, Rating) and (unit := units.get(said.item, UNKNOWN)) != UNKNOWN:
                low, high = self._scales[said.criterion]
                values[unit].append((said.value - low) / (high - low))
        if not values:
            return False
        self._handles[answer.judgment_id] = self._state.learn_ratings(
            self._person(answer.annotator), list(values), [sum(each) / len(each) for each in values.values()]
        )
        return True

    def _learn_comparisons(self, answer: Heard, units: Mapping[str, int]) -> bool:
        """Take in comparisons; those of one answer to several items share what they say."""
        pairs = [
            (left, right, said.outcome)
            for said in answer.observations
            if isinstance(said, Comparison)
            and (left := units.get(said.left, UNKNOWN)) != (right := units.get(said.right, UNKNOWN))
            and UNKNOWN not in (left, right)
        ]
        if not pairs:
            return False
        left, right, outcome = np.array(pairs, np.int32).T
        if self._state.margin == 0 and not outcome.all():
            # A tie from another stage, or from elsewhere, where nobody could tie so far.
            self._state.margin = FIRST_MARGIN
        self._handles[answer.judgment_id] = self._state.learn(
            self._person(answer.annotator),
            left,
            right,
            outcome.astype(np.int8),
            weight=tuple_weight(len(answer.items), len(pairs)),
        )
        return True

    def _person(self, annotator: str) -> int:
        code = self._people.setdefault(annotator, len(self._people))
        self._state.grow(self.units.count, len(self._people))
        return code

    def _learnt(self) -> None:
        """Go over all answers again, or look how the items lie, when it is time."""
        self._tables.clear()
        self._heard_since += 1
        count = self._state.n_comparisons + self._state.n_ratings
        due = count >= self._refit_at
        if due:
            self._state.refit()
            self._refit_at = max(count * _GROWTH, self._refit_at + 4)
        if due or self._heard_since * _LOOKS >= self.units.count:
            self._look()

    def unheard(self, answer: Heard) -> None:
        """Unlearn an answer that was revised or set aside."""
        handles = self._handles.pop(answer.judgment_id, None)
        if handles is not None:
            (self._state.forget_ratings if self.rates else self._state.forget)(handles)
            self._tables.clear()

    def _count(self, key: tuple[int, ...], by: int) -> None:
        self.times[key] += by
        if self._limit is not None:
            (self.full.add if self.times[key] >= self._limit else self.full.discard)(key)

    def _no_longer_out(self, annotator: str, items: tuple[int, ...]) -> None:
        key = (annotator, tuple(sorted(items)))
        if waiting := self._out.get(key):
            units, added = waiting.pop()
            self._added[list(units)] -= added
            if not waiting:
                del self._out[key]

    def _units(self, items: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(unit for unit in dict.fromkeys(self.units.of_items(items)) if unit != UNKNOWN)

    def _expected(self, units: tuple[int, ...]) -> FloatArray:
        """Return the precision that each unit of a task is expected to gain from it."""
        members = np.array(units, np.int64)
        if self.rates:
            return self._anybody.rated / self._state.unevenness[members]
        mean, before = self._state.mean[members], self.variance[members]
        after = before.copy()
        expect(np.arange(len(members)), mean, after, self._anybody)
        return 1 / after - 1 / before

    def _look(self) -> None:
        """Work out how the items lie: at places that hang on the log alone, so that it replays to the same picks."""
        self._heard_since = 0
        self._tables.clear()
        if self.units.count == 0:
            return
        mean, variance = self._state.mean, self._state.variance
        first = self.labels if self.rule == SAME else np.zeros(len(mean), np.int32)
        self._order = np.lexsort((mean, first)).astype(np.int32)
        self._place = np.empty_like(self._order)
        self._place[self._order] = np.arange(len(mean), dtype=np.int32)
        self._spread = spread_of(mean, variance)
        self._anybody = self.answers(UNKNOWN)

    # What picks look at; nothing below changes anything

    @property
    def mean(self) -> FloatArray:
        """Where the units are believed to lie."""
        return self._state.mean

    @property
    def variance(self) -> FloatArray:
        """The units' variances, with what is out counted as if it were answered."""
        return 1 / (1 / self._state.variance + self._added)

    @property
    def out(self) -> list[tuple[int, ...]]:
        """The sets of items that are with somebody now."""
        return [key for _, key in self._out]

    def noise(self, annotator: str) -> float:
        """Return the noise an annotator is believed to have, in units of the items' spread."""
        return self._state.noise(self._people.get(annotator, UNKNOWN))

    def answers_of(self, annotator: str) -> Answers:
        """Return what an annotator's answers are expected to tell; of somebody new, those of anybody."""
        code = self._people.get(annotator, UNKNOWN)
        return self._anybody if code == UNKNOWN else self.answers(code)

    def answers(self, annotator: int) -> Answers:
        """Return what the answers of an annotator, by code, are expected to tell."""
        if annotator not in self._tables:
            chance = self._state.level_probabilities(annotator)
            share = 0.0 if self.rates else 2 / self.task_size
            rated = self._state.rating_precision(annotator) if self.rates else 0.0
            self._tables[annotator] = expected_answers(chance, self._state.margin, share=share, rated=rated)
        return self._tables[annotator]

    def standing(self, barred: NDArray[np.bool_], seen: NDArray[np.int64]) -> Standing:
        """Return what is believed of the units, for a search; `barred` and `seen` as there."""
        mean, variance = self._state.mean, self.variance
        cut = self._purpose.cut(self._spread, self.units.count)
        worth = worth_of(self._purpose.aim, mean, variance, self._spread, cut)
        # Equals are told apart by a number of their own, the same whoever asks: items of a file are often sorted.
        worth *= 1 + 1e-9 * (np.arange(len(mean)) * _GOLDEN % 1)
        labels = self.labels if self.rule != ANY else np.zeros(len(mean), np.int32)
        if self.rates:
            # A rating adds less where ratings are noisier: as if the item were known better, and wanted more.
            variance, worth = variance / self._state.unevenness, worth * self._state.unevenness
        return Standing(mean, variance, worth, barred, labels, self.rule, self._order, self._place, seen)
