"""Agreement on marked spans: characters, texts with any error, severities, and γ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.observations import UNKNOWN, FloatArray, IntArray, Spans
from steelyard.reliability.bootstrap import Bootstrap, SumStatistic
from steelyard.reliability.gamma import gamma
from steelyard.reliability.proportions import proportion
from steelyard.reliability.statistic import Statistic, Statistics

NONE = ""
"""Severity of a character that is not marked."""
_MOST_PAIRS = 1_000
"""Pairs of annotations of the same text from which γ is computed; of more, a random sample."""


@dataclass(frozen=True, slots=True, eq=False)
class MarkAgreement(Statistics):
    """Agreement on marks, and how severities of the same characters compare.

    `severities` has the columns `first`, `second` and `proportion`: of the characters that at least one of two
    annotators marked, which severities they gave; the empty text is "not marked". It is symmetric.
    """

    statistics: tuple[Statistic, ...]
    severities: pl.DataFrame
    notes: tuple[str, ...] = ()


def mark_agreement(
    spans: Spans,
    *,
    lengths: Mapping[str, int] | None = None,
    severity_order: Sequence[str] = (),
    replicates: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> MarkAgreement:
    """Compute the agreement of annotators who marked the same texts.

    Parameters
    ----------
    spans : Spans
        The marks; one annotator's marks of a text are one row.
    lengths : mapping, optional
        Length of each item's text in characters; by default the end of its last mark.
    severity_order : sequence of str
        Severities from the mildest to the worst; where marks of one annotator overlap, the worst counts.
    replicates, level, seed
        Of the bootstrap over items.
    """
    bootstrap = Bootstrap(seed, replicates, level)
    order = [*severity_order, *(name for name in spans.severities.ids if name not in severity_order)]
    texts = _Texts(spans, lengths or {}, order)
    pairs = texts.pairs()
    statistics = [_any_error(texts, bootstrap), *_pair_statistics(texts, pairs, bootstrap)]
    notes = []
    omissions = int((spans.start == UNKNOWN).sum())
    if omissions and pairs:
        notes.append(
            f"omissions ({omissions:,}) have no position: they count as errors, but not in character F1 and γ."
        )
    return MarkAgreement(tuple(statistics), _confusion(texts, pairs), tuple(notes))


class _Texts:
    """The marks as severity levels of characters: 0 is not marked, 1 the mildest severity."""

    def __init__(self, spans: Spans, lengths: Mapping[str, int], order: Sequence[str]) -> None:
        self.spans = spans
        self.order = [NONE, *order]
        self.level = np.array([self.order.index(name) for name in spans.severities.ids] + [1], np.int8)
        end = np.zeros(len(spans.items), np.int64)
        np.maximum.at(end, spans.item[spans.row_of_mark], np.maximum(spans.end, 0))
        text_length = np.array([lengths.get(name, 0) for name in spans.items.ids], np.int64)
        self.length = np.maximum(end, text_length)
        self.rows: dict[int, list[int]] = defaultdict(list)
        for row, item in enumerate(spans.item.tolist()):
            self.rows[item].append(row)

    def characters(self, row: int) -> NDArray[np.int8]:
        """Return the worst severity of each character of a row's text."""
        spans = self.spans
        characters = np.zeros(int(self.length[spans.item[row]]), np.int8)
        for place in range(int(spans.first[row]), int(spans.first[row + 1])):
            if spans.start[place] != UNKNOWN:
                part = characters[spans.start[place] : spans.end[place]]
                np.maximum(part, max(self.level[spans.severity[place]], 1), out=part)
        return characters

    def pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of rows in which different annotators marked the same text."""
        who = self.spans.annotator
        return [
            (one, other)
            for rows in self.rows.values()
            for one, other in combinations(rows, 2)
            if who[one] != who[other] or UNKNOWN in (who[one], who[other])
        ]


def _any_error(texts: _Texts, bootstrap: Bootstrap) -> Statistic:
    spans = texts.spans
    has_marks = (np.diff(spans.first) > 0).astype(np.float64)
    return _by_item("texts_with_errors", texts, np.arange(len(spans)), has_marks, np.ones(len(spans)), bootstrap)


def _pair_statistics(texts: _Texts, pairs: list[tuple[int, int]], bootstrap: Bootstrap) -> list[Statistic]:
    spans = texts.spans
    size = np.diff(spans.first)
    first = np.array([one for one, _ in pairs], np.int64)
    both, same, either = (np.zeros(len(pairs)) for _ in range(3))
    for number, (one, other) in enumerate(pairs):
        a, b = texts.characters(one), texts.characters(other)
        marked = (a > 0) & (b > 0)
        both[number] = 2 * marked.sum()
        same[number] = 2 * (marked & (a == b)).sum()
        either[number] = (a > 0).sum() + (b > 0).sum()
    agree = np.array([float((size[one] > 0) == (size[other] > 0)) for one, other in pairs])
    return [
        _by_item("agreement_on_any_error", texts, first, agree, np.ones(len(pairs)), bootstrap),
        _by_item("character_f1", texts, first, both, either, bootstrap),
        _by_item("character_f1_same_severity", texts, first, same, either, bootstrap),
        _gamma(texts, pairs, bootstrap),
    ]


def _by_item(
    key: str, texts: _Texts, rows: NDArray[np.int64], part: FloatArray, whole: FloatArray, bootstrap: Bootstrap
) -> Statistic:
    """Compute Σ part / Σ whole, resampled over items."""
    items, cluster = np.unique(texts.spans.item[rows], return_inverse=True)
    sums = [np.bincount(cluster, column, len(items)).astype(np.float64) for column in (part, whole)]
    return proportion(
        key,
        sums[0],
        sums[1],
        bootstrap,
        unit="items",
        note="",
        undefined="undefined: no text was marked by two annotators"
        if whole.size == 0
        else "undefined: nothing is marked",
        names=lambda: tuple(texts.spans.items[int(item)] for item in items),
    )


def _gamma(texts: _Texts, pairs: list[tuple[int, int]], bootstrap: Bootstrap) -> Statistic:
    """Compute 1 − Σ observed / Σ expected disorder over pairs of annotations of the same text."""
    rng = np.random.default_rng(bootstrap.seed)
    spans = texts.spans
    units = {
        row: [mark for mark in spans.marks(row) if mark.start is not None]
        for row in {row for pair in pairs for row in pair}
    }
    # Texts in which neither annotator marked anything have no disorder, observed or expected.
    marked = [pair for pair in pairs if units[pair[0]] or units[pair[1]]]
    note = ""
    if len(marked) > _MOST_PAIRS:
        note = f"from {_MOST_PAIRS:,} of {len(marked):,} pairs of annotations, drawn at random."
        chosen = np.sort(rng.choice(len(marked), _MOST_PAIRS, replace=False))
        marked = [marked[int(number)] for number in chosen]
    first: IntArray = np.array([one for one, _ in marked], np.int32)
    results = [gamma(units[one], units[other], int(texts.length[spans.item[one]]), rng) for one, other in marked]
    observed, expected = (np.array([getattr(one, name) for one in results]) for name in ("observed", "expected"))
    items, cluster = np.unique(spans.item[first], return_inverse=True)
    sums = tuple(np.bincount(cluster, column, len(items)).astype(np.float64) for column in (observed, expected))
    return bootstrap.statistic(
        "gamma",
        SumStatistic(sums, _gamma_of),
        len(items),
        unit="items",
        note=note,
        undefined="undefined: no text with a mark was judged by two annotators",
        names=lambda: tuple(spans.items[int(item)] for item in items),
    )


def _gamma_of(sums: FloatArray) -> FloatArray:
    observed, expected = sums
    value: FloatArray = 1 - np.where(expected > 0, observed / np.where(expected > 0, expected, 1), np.nan)
    return value


def _confusion(texts: _Texts, pairs: list[tuple[int, int]]) -> pl.DataFrame:
    size = len(texts.order)
    counts = np.zeros((size, size))
    for one, other in pairs:
        a, b = texts.characters(one), texts.characters(other)
        counts += np.bincount(a.astype(np.int64) * size + b, minlength=size * size).reshape(size, size)
    counts[0, 0] = 0
    counts = (counts + counts.T) / 2
    total = counts.sum()
    rows = [
        (texts.order[i], texts.order[j], float(counts[i, j] / max(total, 1.0)))
        for i in range(size)
        for j in range(size)
        if i or j
    ]
    schema = {"first": pl.String, "second": pl.String, "proportion": pl.Float64}
    return pl.DataFrame(rows if total else [], schema=schema, orient="row")
