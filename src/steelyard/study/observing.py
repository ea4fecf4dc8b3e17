"""From a study's judgments to the observations that models accept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.observations import (
    UNKNOWN,
    Choice,
    Choices,
    Comparison,
    Comparisons,
    Index,
    Label,
    Labels,
    MarkedText,
    Mixed,
    Observation,
    Observations,
    RankedItems,
    Rankings,
    Rating,
    Ratings,
    Spans,
)
from steelyard.protocols.base import Protocol
from steelyard.protocols.unjudged import observe
from steelyard.records import Judgment

_RECORDS: dict[str, type[Observation]] = {
    "ratings": Rating,
    "comparisons": Comparison,
    "choices": Choice,
    "rankings": RankedItems,
    "labels": Label,
    "spans": MarkedText,
}


class _Rows:
    """Observations of one kind and criterion, with who made them and in which task."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.annotators: list[str] = []
        self.tasks: list[str] = []
        self.stages: list[str] = []


def collect(
    kind: str, judgments: Iterable[Judgment], protocols: Mapping[str, Protocol], items: Index
) -> dict[str, Observations]:
    """Collect all observations of a kind, by criterion.

    `protocols` are those of the stages, by name. Ratings that stages took on different scales are carried over
    to the first stage's. The kind "mixed" is all of them, for a model that takes several at once.
    """
    if kind == Mixed.kind:
        return _mixed(judgments, protocols, items)
    collector = ObservationCollector(kind, protocols)
    collector.add(judgments)
    return collector.observations(items)


class ObservationCollector:
    """Observations of one kind from judgments that arrive little by little."""

    def __init__(self, kind: str, protocols: Mapping[str, Protocol]) -> None:
        self._kind = kind
        self._protocols = protocols
        self._rows: dict[str, _Rows] = defaultdict(_Rows)

    def add(self, judgments: Iterable[Judgment]) -> None:
        """Add the observations that judgments yield."""
        record_type = _RECORDS[self._kind]
        for judgment in judgments:
            for record in observe(self._protocols[judgment.stage], judgment.items, judgment.answer):
                if isinstance(record, record_type):
                    into = self._rows[getattr(record, "criterion", "")]
                    into.records.append(record)
                    into.annotators.append(judgment.annotator)
                    into.tasks.append(judgment.judgment_id)
                    into.stages.append(judgment.stage)

    def observations(self, items: Index) -> dict[str, Observations]:
        """Return all observations so far, by criterion."""
        return {
            criterion: _columns(self._kind, criterion, rows, self._protocols, items)
            for criterion, rows in self._rows.items()
        }


def way_of(protocol: Protocol) -> tuple[object, ...] | None:
    """Return what makes one way of asking like another: people answer alike there. None for labels."""
    kind = protocol.kinds[0]
    return None if kind == Labels.kind else (kind, protocol.name, protocol.strengths, *protocol.scales().values())


def _mixed(judgments: Iterable[Judgment], protocols: Mapping[str, Protocol], items: Index) -> dict[str, Observations]:
    """Gather what all stages say, each way of asking as a part of its own."""
    ways: dict[tuple[object, ...], dict[str, Protocol]] = defaultdict(dict)
    for name, protocol in protocols.items():
        if (way := way_of(protocol)) is not None:
            ways[way][name] = protocol
    all_judgments = list(judgments)
    return Mixed.by_criterion(
        collect(str(way[0]), (judgment for judgment in all_judgments if judgment.stage in stages), stages, items)
        for way, stages in ways.items()
    )


def _columns(kind: str, criterion: str, rows: _Rows, protocols: Mapping[str, Protocol], items: Index) -> Observations:
    # Imported judgments may not say who made them: '' is nobody's name.
    annotators, tasks = Index(sorted(set(rows.annotators) - {""})), Index(dict.fromkeys(rows.tasks))
    shared: dict[str, Any] = {
        "items": items,
        "annotators": annotators,
        "tasks": tasks,
        "annotator": annotators.codes([name or None for name in rows.annotators]),
        "task": tasks.codes(rows.tasks),
    }
    records = rows.records
    if kind == "ratings":
        value, scale = _on_one_scale(criterion, rows, protocols)
        return Ratings(item=items.codes([r.item for r in records]), value=value, scale=scale, **shared)
    if kind == "comparisons":
        return Comparisons(
            left=items.codes([r.left for r in records]),
            right=items.codes([r.right for r in records]),
            outcome=np.array([r.outcome for r in records], np.int8),
            strength=_on_one_strength(rows, protocols),
            **shared,
        )
    if kind == "choices":
        shown_codes = np.full((len(records), max(len(r.items) for r in records)), UNKNOWN, np.int32)
        for row, record in enumerate(records):
            shown_codes[row, : len(record.items)] = items.codes(record.items)
        return Choices(
            shown=shown_codes,
            best=items.codes([r.best for r in records]),
            worst=items.codes([r.worst for r in records]),
            **shared,
        )
    if kind == "labels":
        classes = Index(dict.fromkeys(c for p in protocols.values() for c in p.classes().get(criterion, ())))
        return Labels(
            item=items.codes([r.item for r in records]),
            label=classes.codes([r.label for r in records]),
            classes=classes,
            **shared,
        )
    if kind == "spans":
        return Spans.of(records, **shared)
    sizes = [sum(map(len, r.tiers)) for r in records]
    return Rankings(
        start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        item=items.codes([name for r in records for tier in r.tiers for name in tier]),
        rank=np.array([rank for r in records for rank, tier in enumerate(r.tiers, 1) for _ in tier], np.int32),
        **shared,
    )


def _on_one_strength(rows: _Rows, protocols: Mapping[str, Protocol]) -> NDArray[np.int8]:
    """Return the strengths; of stages with different numbers of strengths, those of the first that asks for them."""
    strength = np.array([r.strength for r in rows.records], np.int8)
    steps = {name: protocol.strengths for name, protocol in protocols.items()}
    first = next((count for count in steps.values() if count > 1), 1)
    if all(count in (1, first) for count in steps.values()):
        return strength
    return np.where([steps[name] == first for name in rows.stages], strength, 0).astype(np.int8)


def _on_one_scale(
    criterion: str, rows: _Rows, protocols: Mapping[str, Protocol]
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], tuple[float, float]]:
    scales = {name: p.scales()[criterion] for name, p in protocols.items() if criterion in p.scales()}
    low, high = next(iter(scales.values()))
    value = np.array([r.value for r in rows.records], np.float64)
    if len(set(scales.values())) > 1:
        own = np.array([scales[name] for name in rows.stages])
        # Rounding may take an end of one scale a hair past the end of the other.
        value = np.clip(low + (value - own[:, 0]) / (own[:, 1] - own[:, 0]) * (high - low), low, high)
    return value, (low, high)
