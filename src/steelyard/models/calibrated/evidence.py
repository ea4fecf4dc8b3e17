"""Observations of any kinds, laid out for the calibrated scale's sampler in an order that does not depend on theirs.

Items come in the order of their ids, annotators in the order of what they answered, rows by annotator. So the same
judgments in another order, or under other names of annotators, give the same draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.calibrated.covariates import Covariates, uncorrelated
from steelyard.models.comparisons.cumulative_link import strength_levels
from steelyard.models.gold import Gold, gold_values
from steelyard.observations import (
    UNKNOWN,
    Choices,
    Comparisons,
    FloatArray,
    Index,
    IntArray,
    Observations,
    Rankings,
    Ratings,
)

MOST_STEPS = 11
"""A scale of up to so many steps is taken as steps; values on a finer one as a slider's."""

BEYOND = 1.0
"""How far beyond the end of a slider a response at that end may lie, as a fraction of the scale.

Without this bound, annotators who use only the two ends of a slider get ever steeper slopes, and chains mix several
times more slowly. The likelihood is that of studies in which no response lies further out: simulation-based calibration
discards the simulated studies where one does, which leaves the posterior of the other studies as it is."""

GOLD_NOISE = 0.02
"""How far a gold score may be off, as a share of the scale."""

Bits = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """One way of asking: its responders are `first` to `last` - 1.

    `edge` are the places between the steps of a rating scale; empty for sliders.
    """

    kind: str
    first: int
    last: int
    scale: tuple[float, float] = (0.0, 1.0)
    bounded: bool = False
    edge: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def responders(self) -> slice:
        """Where its responders are."""
        return slice(self.first, self.last)

    @property
    def rates(self) -> bool:
        """Whether it is a way of rating."""
        return self.kind == Ratings.kind


class RatingRows(NamedTuple):
    """Ratings sorted by responder: the response lies between `lower` and `upper`, which are equal where it is known.

    `shift` numbers from 1 what goes up and down together, as `_shifts` says; 0 for the others.
    """

    first: NDArray[np.int64]
    item: IntArray
    shift: IntArray
    lower: FloatArray
    upper: FloatArray
    value: FloatArray


class PairRows(NamedTuple):
    """Comparisons, and for each item which of them it is in: `row[start[i]:start[i + 1]]`.

    The outcome is positive where left won, negative where right won and 0 for a tie; its size is the strength, from 1.
    A size above the number of strengths is a strength that is not known.
    """

    left: IntArray
    right: IntArray
    responder: IntArray
    outcome: NDArray[np.int8]
    start: NDArray[np.int64]
    row: IntArray


class TupleRows(NamedTuple):
    """Choices and rankings as tiers, the best first: tuple t holds rows `first[t]` to `first[t + 1]` - 1."""

    first: NDArray[np.int64]
    item: IntArray
    tier: IntArray
    responder: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """All that was observed. `item` has the code of each item that was judged, in the order of their ids.

    `annotator` is that of each responder, UNKNOWN where nobody is named. `fixed` responders answer as the population
    does: they have no parameters of their own. `witnesses` counts the other responders of the same group with whom each
    shares items (no further than a few). Group 0 sets the scale.
    """

    item: IntArray
    groups: tuple[Group, ...]
    annotator: IntArray
    fixed: NDArray[np.bool_]
    gold: NDArray[np.bool_]
    witnesses: IntArray
    ratings: RatingRows
    pairs: PairRows
    tuples: TupleRows
    columns: FloatArray | None = None
    """Covariates of the items, uncorrelated, with mean 0 and variance 1; None if there are none."""
    n_strengths: int = 1
    """How many strengths of preferences are told apart."""
    notes: tuple[str, ...] = ()
    """Sentences on strengths that were merged or left out."""

    @property
    def n_rows(self) -> int:
        """How many responses there are."""
        return len(self.ratings.item) + len(self.pairs.left) + len(self.tuples.item)

    @property
    def rows_by_responder(self) -> NDArray[np.int64]:
        """How many responses each responder gave."""
        size = np.diff(self.tuples.first).astype(np.float64)
        n = len(self.annotator)
        in_tuples = np.bincount(self.tuples.responder, size, minlength=n).astype(np.int64)
        return np.diff(self.ratings.first) + np.bincount(self.pairs.responder, minlength=n) + in_tuples

    def sample(self, most_rows: int, least_annotators: int, rng: np.random.Generator) -> Evidence:
        """Return all that some annotators answered, drawn at random until there are `most_rows` responses.

        There are at least `least_annotators`. Gold stays, and at least one responder of each way of asking; answers
        without a name do not.
        """
        ids, first, of_responder = np.unique(self.annotator, return_index=True, return_inverse=True)
        # In the order of the responders, so that names do not matter.
        order = np.argsort(first)
        order = rng.permutation(order[ids[order] != UNKNOWN])
        rows = np.bincount(of_responder, self.rows_by_responder)
        chosen = np.zeros(len(ids), np.bool_)
        chosen[order[np.cumsum(rows[order]) <= most_rows]] = True
        chosen[order[:least_annotators]] = True
        is_kept = chosen[of_responder] | self.gold
        for group in self.groups:
            if not is_kept[group.responders].any():
                is_kept[group.first] = True
        return self._of_responders(is_kept)

    def _of_responders(self, is_kept: NDArray[np.bool_]) -> Evidence:
        """Return all that some responders answered; items and responders are numbered anew."""
        ratings, pairs, tuples = self.ratings, self.pairs, self.tuples
        place = (np.cumsum(is_kept) - 1).astype(np.int32)
        rated = np.repeat(is_kept, np.diff(ratings.first))
        compared, ordered = is_kept[pairs.responder], is_kept[tuples.responder]
        in_tuple = np.repeat(ordered, np.diff(tuples.first))
        items = (ratings.item[rated], pairs.left[compared], pairs.right[compared], tuples.item[in_tuple])
        judged_items, codes = np.unique(np.concatenate(items), return_inverse=True)
        of_rating, left, right, of_tuple = np.split(
            codes.astype(np.int32), np.cumsum([len(part) for part in items[:-1]])
        )
        shift = ratings.shift[rated]
        several = np.unique(shift[shift > 0])
        kept_rows = np.append(0, np.cumsum(np.diff(ratings.first)[is_kept]))
        groups = []
        for group in self.groups:
            before = int(is_kept[: group.first].sum())
            groups.append(replace(group, first=before, last=before + int(is_kept[group.responders].sum())))
        return Evidence(
            self.item[judged_items],
            tuple(groups),
            self.annotator[is_kept],
            self.fixed[is_kept],
            self.gold[is_kept],
            self.witnesses[is_kept],
            RatingRows(
                kept_rows.astype(np.int64),
                of_rating,
                np.where(shift > 0, 1 + np.searchsorted(several, shift), 0).astype(np.int32),
                ratings.lower[rated],
                ratings.upper[rated],
                ratings.value[rated],
            ),
            PairRows(
                left,
                right,
                place[pairs.responder[compared]],
                pairs.outcome[compared],
                *_by_item(left, right, len(judged_items)),
            ),
            TupleRows(
                np.append(0, np.cumsum(np.diff(tuples.first)[ordered])).astype(np.int64),
                of_tuple,
                tuples.tier[in_tuple],
                place[tuples.responder[ordered]],
            ),
            None if self.columns is None else uncorrelated(self.columns[judged_items]),
            self.n_strengths,
        )

    @classmethod
    def of(
        cls, model: str, observations: Observations, gold: Gold | None = None, covariates: Covariates | None = None
    ) -> Evidence:
        """Lay observations out; ratings first, as they set the scale where there are any."""
        parts = tuple(
            sorted((p for p in observations.components() if len(p)), key=lambda part: part.kind != Ratings.kind)
        )
        parts, n_strengths, notes = _graded(parts)
        coded = [_Coded.of(part) for part in parts]
        if gold:
            coded = _with_gold(model, parts, coded, gold, observations.items)
        judged_items = np.unique(np.concatenate([part.item for part in coded]))
        judged_items = judged_items[judged_items != UNKNOWN]
        ids = np.array([observations.items[int(code)] for code in judged_items], dtype=object)
        judged_items = judged_items[np.argsort(ids, kind="stable")].astype(np.int32)
        place = np.full(len(observations.items) + 1, UNKNOWN, np.int32)
        place[judged_items] = np.arange(len(judged_items), dtype=np.int32)
        coded = [part.placed(place) for part in coded]
        rank = _by_content(coded, len(observations.annotators))
        groups, annotator, responders = _responders(coded, rank)
        is_gold = np.concatenate([np.full(g.last - g.first, c.is_gold) for g, c in zip(groups, coded, strict=True)])
        groups, fixed = _merged_gold(groups, coded), np.zeros(len(annotator), np.bool_)
        fixed[groups[0].responders] = annotator[groups[0].responders] == UNKNOWN
        return cls(
            judged_items,
            groups,
            annotator,
            fixed,
            is_gold,
            _witnesses(coded, responders, len(annotator)),
            _rating_rows(coded, responders, len(annotator)),
            _pair_rows(coded, responders, len(judged_items)),
            _tuple_rows(coded, responders),
            None if covariates is None else covariates.uncorrelated(judged_items),
            n_strengths,
            notes,
        )


def _graded(parts: tuple[Observations, ...]) -> tuple[tuple[Observations, ...], int, tuple[str, ...]]:
    """Number the strengths of the first comparisons that have any from 1; strengths of others are not known.

    Strengths that are unrelated to the items are left out, as in the cumulative link model.
    """
    graded = next((part for part in parts if isinstance(part, Comparisons) and part.has_strength), None)
    if graded is None:
        return parts, 1, ()
    levels = strength_levels(graded)
    if levels.n_levels < 2:
        bare = tuple(part.without_strength() if isinstance(part, Comparisons) else part for part in parts)
        return bare, 1, levels.notes
    unknown = levels.n_levels + 1

    def with_levels(part: Observations) -> Observations:
        if not isinstance(part, Comparisons):
            return part
        level = levels.of_row if part is graded else np.zeros(len(part), np.int8)
        strength = np.where(level == 0, unknown, level)
        return replace(part, strength=np.where(part.outcome == 0, 0, strength).astype(np.int8))

    return tuple(map(with_levels, parts)), levels.n_levels, levels.notes


@dataclass(slots=True, eq=False)
class _Coded:
    """One kind of observations: rows (one per rating, pair or tuple) and their items in one shape.

    `item` has the item of every entry; `entry` is its value, outcome or tier; `row` says which row it belongs to.
    """

    kind: str
    item: IntArray
    entry: FloatArray
    row: NDArray[np.int64]
    annotator: IntArray
    task: IntArray
    scale: tuple[float, float] = (0.0, 1.0)
    bounded: bool = False
    is_gold: bool = False

    @classmethod
    def of(cls, part: Observations) -> _Coded:
        return _CODERS[part.kind](part)

    @classmethod
    def of_ratings(cls, part: Ratings) -> _Coded:
        return cls(
            part.kind,
            part.item,
            part.unit_value,
            np.arange(len(part)),
            part.annotator,
            part.task,
            part.scale,
            part.scale_known,
        )

    @classmethod
    def of_comparisons(cls, part: Comparisons) -> _Coded:
        item = np.column_stack([part.left, part.right]).ravel()
        sign: FloatArray = part.outcome.astype(np.float64) * np.maximum(part.strength, 1)
        entry = np.column_stack([sign, -sign]).ravel()
        return cls(part.kind, item, entry, np.repeat(np.arange(len(part)), 2), part.annotator, part.task)

    @classmethod
    def of_choices(cls, part: Choices) -> _Coded:
        item, row = part.incidence()
        tier = np.ones(len(item))
        tier[item == part.best[row]] = 0
        tier[item == part.worst[row]] = 2
        # A choice of one item as both best and worst is not informative.
        tier[((part.best == part.worst) & (part.best != UNKNOWN))[row]] = 1
        return cls(part.kind, item, tier, row.astype(np.int64), part.annotator, part.task)

    @classmethod
    def of_rankings(cls, part: Rankings) -> _Coded:
        item, row = part.incidence()
        return cls(part.kind, item, part.rank.astype(np.float64), row.astype(np.int64), part.annotator, part.task)

    def placed(self, place: IntArray) -> _Coded:
        return _Coded(
            self.kind,
            place[self.item],
            self.entry,
            self.row,
            self.annotator,
            self.task,
            self.scale,
            self.bounded,
            self.is_gold,
        )

    def content(self) -> Bits:
        """Return a number for each row that identifies its content."""
        # Adding 0 makes -0 a plain 0.
        entry = _mixed((self.entry + 0.0).view(np.uint64))
        item = _mixed(self.item.astype(np.uint64) + np.uint64(1))
        each = _mixed(entry + np.uint64(3) * item)
        total = np.zeros(len(self.annotator), np.uint64)
        np.add.at(total, self.row, each)
        return _mixed(total + np.uint64(len(self.kind)))


_CODERS: dict[str, Callable[[Any], _Coded]] = {
    Ratings.kind: _Coded.of_ratings,
    Comparisons.kind: _Coded.of_comparisons,
    Choices.kind: _Coded.of_choices,
    Rankings.kind: _Coded.of_rankings,
}


def _mixed(bits: Bits) -> Bits:
    """Scatter the bits of numbers (splitmix64)."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(bits ^ (bits >> np.uint64(31)))


def _with_gold(
    model: str, parts: Sequence[Observations], coded: list[_Coded], gold: Gold, items: Index
) -> list[_Coded]:
    """Add gold as the ratings of a perfect annotator: on the first ratings' scale, or on a separate scale."""
    rated = parts[0] if isinstance(parts[0], Ratings) else None
    values = gold_values(model, items, gold, rated.scale if rated else None)
    gold_items = np.flatnonzero(~np.isnan(values)).astype(np.int32)
    low, high = rated.scale if rated else (float(values[gold_items].min()), float(values[gold_items].max()))
    unit = (values[gold_items] - low) / ((high - low) or 1.0)
    nobody = np.full(len(gold_items), UNKNOWN, np.int32)
    bounded = rated.scale_known if rated else False
    added = _Coded(
        Ratings.kind, gold_items, unit, np.arange(len(gold_items)), nobody, nobody, (low, high), bounded, True
    )
    return [coded[0], added, *coded[1:]] if rated else [*coded, added]


def _by_content(coded: Sequence[_Coded], n_annotators: int) -> IntArray:
    """Return the rank of every annotator by a number made of all that they answered."""
    total = np.zeros(n_annotators + 1, np.uint64)
    for number, part in enumerate(coded):
        np.add.at(total, part.annotator, _mixed(part.content() + np.uint64(number)))
    rank = np.empty(n_annotators, np.int32)
    rank[np.argsort(total[:n_annotators], kind="stable")] = np.arange(n_annotators, dtype=np.int32)
    return rank


def _responders(coded: Sequence[_Coded], rank: IntArray) -> tuple[tuple[Group, ...], IntArray, list[IntArray]]:
    """Number the responders by group and rank; return the groups, their annotators, and the responder of each row."""
    groups, annotators, of_row = [], [np.zeros(0, np.int32)], []
    count = 0
    back = np.argsort(rank)
    for part in coded:
        key = np.where(part.annotator == UNKNOWN, len(rank), rank[part.annotator] if len(rank) else 0)
        present, place = np.unique(key, return_inverse=True)
        named = present < len(rank)
        annotators.append(np.where(named, np.append(back, UNKNOWN)[present], UNKNOWN).astype(np.int32))
        of_row.append((place + count).astype(np.int32))
        steps = _edges(part) if part.kind == Ratings.kind else np.zeros(0)
        groups.append(Group(part.kind, count, count + len(present), part.scale, part.bounded, steps))
        count += len(present)
    return tuple(groups), np.concatenate(annotators), of_row


def _witnesses(coded: Sequence[_Coded], responders: Sequence[IntArray], n_responders: int) -> IntArray:
    """Count the other responders with whom each shares items: the most that some item of theirs has."""
    witnesses = np.zeros(n_responders, np.int32)
    for part, who in zip(coded, responders, strict=True):
        cells = np.unique(part.item.astype(np.int64) * n_responders + who[part.row])
        item, responder = cells // n_responders, cells % n_responders
        answerers = np.bincount(item, minlength=int(part.item.max(initial=0)) + 1)
        np.maximum.at(witnesses, responder, (answerers[item] - 1).astype(np.int32))
    return witnesses


def _merged_gold(groups: tuple[Group, ...], coded: Sequence[_Coded]) -> tuple[Group, ...]:
    """Let the one who knows the gold answer in the way of the first ratings, where there are some."""
    if len(groups) > 1 and coded[1].is_gold and groups[0].rates:
        first = groups[0]
        merged = Group(first.kind, first.first, groups[1].last, first.scale, first.bounded, first.edge)
        return (merged, *groups[2:])
    return groups


def _edges(part: _Coded) -> FloatArray:
    """Return the places between the steps of a scale, or nothing for a slider."""
    if not part.bounded:
        return np.zeros(0)
    for steps in range(1, MOST_STEPS):
        at = part.entry * steps
        if np.allclose(at, np.round(at), rtol=0, atol=1e-9):
            return (np.arange(steps) + 0.5) / steps
    return np.zeros(0)


def _rating_rows(coded: Sequence[_Coded], responders: Sequence[IntArray], n_responders: int) -> RatingRows:
    parts = [(part, who) for part, who in zip(coded, responders, strict=True) if part.kind == Ratings.kind]
    if not parts:
        nothing, none = np.zeros(0, np.int32), np.zeros(0)
        return RatingRows(np.zeros(n_responders + 1, np.int64), nothing, nothing, none, none, none)
    responder = np.concatenate([who for _, who in parts])
    item = np.concatenate([part.item for part, _ in parts])
    # The parts of mixed observations share their tasks, and a responder is of one part.
    task = np.concatenate([part.task for part, _ in parts])
    value = np.concatenate([part.entry for part, _ in parts])
    lower, upper = (np.concatenate(ends) for ends in zip(*(_interval(part) for part, _ in parts), strict=True))
    order = np.lexsort((value, item, task, responder))
    first = np.searchsorted(responder[order], np.arange(n_responders + 1)).astype(np.int64)
    named = np.concatenate([part.annotator for part, _ in parts]) != UNKNOWN
    shift = _shifts(responder[order], task[order], item[order], named[order])
    return RatingRows(first, item[order], shift, lower[order], upper[order], value[order])


def _interval(part: _Coded) -> tuple[FloatArray, FloatArray]:
    """Say between which ends each response lies: beyond the end of a slider, or within a step."""
    y = part.entry
    if not part.bounded:
        return y, y
    edges = np.r_[-np.inf, _edges(part), np.inf]
    if len(edges) > 2:
        step = np.rint(y * (len(edges) - 2)).astype(np.int64)
        return edges[step], edges[step + 1]
    lower, upper = y.copy(), y.copy()
    lower[y <= 0] = -BEYOND
    upper[y >= 1] = 1 + BEYOND
    return lower, upper


def _shifts(who: IntArray, task: IntArray, item: IntArray, named: NDArray[np.bool_]) -> IntArray:
    """Number what goes up and down together from 1, and all else 0.

    These are the ratings of one answer; where every answer is one rating, those that one annotator gave one item.
    Of people without a name it is not known whether they are one.
    """
    if len(who) == 0:
        return np.zeros(0, np.int32)
    number = _several(who, task)
    number[task == UNKNOWN] = 0
    if number.any():
        return number
    again = np.zeros(len(who), np.int32)
    again[named] = _several(who[named], item[named])
    return again


def _several(who: IntArray, what: IntArray) -> IntArray:
    """Number the pairs of two codes that come more than once from 1, and others 0."""
    key = who.astype(np.int64) * (int(what.max(initial=0)) + 2) + what
    _, place, count = np.unique(key, return_inverse=True, return_counts=True)
    several = count > 1
    return np.asarray(np.where(several, np.cumsum(several), 0)[place], np.int32)


def _pair_rows(coded: Sequence[_Coded], responders: Sequence[IntArray], n_items: int) -> PairRows:
    columns: list[list[IntArray]] = [[np.zeros(0, np.int32)] for _ in range(4)]
    for part, who in zip(coded, responders, strict=True):
        if part.kind == Comparisons.kind:
            left, right, outcome = part.item[::2], part.item[1::2], part.entry[::2].astype(np.int32)
            # A pair shown the other way round is the same pair.
            swap = left > right
            left, right = np.where(swap, right, left), np.where(swap, left, right)
            outcome = np.where(swap, -outcome, outcome)
            for column, values in zip(columns, (left, right, who, outcome), strict=True):
                column.append(values.astype(np.int32))
    left, right, responder, outcome = (np.concatenate(column) for column in columns)
    order = np.lexsort((outcome, right, left, responder))
    left, right = left[order], right[order]
    start, row = _by_item(left, right, n_items)
    return PairRows(left, right, responder[order], outcome[order].astype(np.int8), start, row)


def _by_item(left: IntArray, right: IntArray, n_items: int) -> tuple[NDArray[np.int64], IntArray]:
    """List the comparisons of every item: where its part starts, and the rows."""
    ends = np.concatenate([left, right])
    rows = np.tile(np.arange(len(left), dtype=np.int32), 2)
    by_item = np.argsort(ends, kind="stable")
    start = np.searchsorted(ends[by_item], np.arange(n_items + 1)).astype(np.int64)
    return start, rows[by_item]


def _tuple_rows(coded: Sequence[_Coded], responders: Sequence[IntArray]) -> TupleRows:
    columns: list[list[NDArray[np.int64]]] = [[np.zeros(0, np.int64)] for _ in range(4)]
    count = 0
    for part, who in zip(coded, responders, strict=True):
        if part.kind not in (Choices.kind, Rankings.kind):
            continue
        order = np.argsort(np.argsort(part.content(), kind="stable"), kind="stable")
        values = (who[part.row], order[part.row] + count, part.entry, part.item)
        count += len(part.annotator)
        for column, row in zip(columns, values, strict=True):
            column.append(np.asarray(row, np.int64))
    responder, number, tier, item = (np.concatenate(column) for column in columns)
    order = np.lexsort((item, tier, number, responder))
    responder, number, tier, item = (column[order] for column in (responder, number, tier, item))
    new = np.r_[True, number[1:] != number[:-1]] if len(number) else np.zeros(0, np.bool_)
    starts = np.flatnonzero(new)
    first = np.append(starts, len(number)).astype(np.int64)
    return TupleRows(first, item.astype(np.int32), tier.astype(np.int32), responder[starts].astype(np.int32))
