"""Labels for tests: built from rows, drawn at random, or read from the recorded data."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from steelyard.models.fit import Fit
from steelyard.observations import Index, Labels, Ratings


def labels_of(rows: Iterable[Sequence[str]], items: Sequence[str] = (), classes: Sequence[str] = ()) -> Labels:
    """Build Labels from (annotator, item, label); ids are sorted, further items and classes may be named."""
    who, what, given = (list(column) for column in zip(*rows, strict=True))
    annotators = Index(sorted(set(who)))
    all_items, all_classes = Index(sorted({*what, *items})), Index(sorted({*given, *classes}))
    return Labels(
        items=all_items,
        annotators=annotators,
        classes=all_classes,
        item=all_items.codes(what),
        annotator=annotators.codes(who),
        label=all_classes.codes(given),
    )


def ratings_of(rows: Iterable[tuple[str, str, float]], scale: tuple[float, float]) -> Ratings:
    """Build Ratings from (annotator, item, value); ids are sorted."""
    who, what, value = (list(column) for column in zip(*rows, strict=True))
    annotators, items = Index(sorted(set(who))), Index(sorted(set(what)))
    return Ratings(
        items=items,
        annotators=annotators,
        item=items.codes(what),
        annotator=annotators.codes(who),
        value=np.array(value, np.float64),
        scale=scale,
    )


def random_labels(
    seed: int, *, items: int = 60, annotators: int = 12, per_item: int = 5, classes: int = 3, skill: float = 0.6
) -> tuple[Labels, dict[str, str]]:
    """Draw labels by annotators who know the answer with probability skill ± .3 and else guess evenly."""
    rng = np.random.default_rng(seed)
    knowing = np.clip(skill + rng.uniform(-0.3, 0.3, annotators), 0, 1)
    true = rng.integers(0, classes, items)
    rows = []
    for item in range(items):
        for annotator in rng.choice(annotators, per_item, replace=False):
            label = true[item] if rng.random() < knowing[annotator] else rng.integers(0, classes)
            rows.append((f"a{annotator:02}", f"i{item:03}", f"c{label}"))
    truth = {f"i{item:03}": f"c{true[item]}" for item in range(items)}
    return labels_of(rows, classes=[f"c{k}" for k in range(classes)]), truth


def read_columns(path: Path, *names: str) -> list[tuple[str, ...]]:
    """Read some columns of a recorded file, as text."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        return [tuple(row[name] for name in names) for row in csv.DictReader(stream)]


def recorded(shared_data: Path, name: str) -> tuple[Labels, dict[str, str]]:
    """Read one of the labels sets with its truth."""
    labels = labels_of(read_columns(shared_data / "labels" / f"{name}.csv.gz", "annotator", "item", "label"))
    truth = read_columns(shared_data / "labels" / f"{name}_truth.csv.gz", "item", "label")
    return labels, {row[0]: row[1] for row in truth}


def snow(shared_data: Path, name: str) -> tuple[Labels, dict[str, str]]:
    """Read one of Snow et al.'s label tasks with its gold."""
    path = shared_data / "snow2008" / f"{name}.csv.gz"
    gold = {row[0]: row[1] for row in read_columns(path, "item", "gold")}
    return labels_of(read_columns(path, "annotator", "item", "label")), gold


def accuracy(fit: Fit, truth: dict[str, str]) -> float:
    """Return the share of items with truth that got it."""
    labels_by_item = dict(zip(fit.scores["item"], fit.scores["label"], strict=True))
    return float(np.mean([labels_by_item[item] == label for item, label in truth.items()]))


def permuted(labels: Labels, seed: int) -> Labels:
    """Return the same judgments in another order."""
    order = np.random.default_rng(seed).permutation(len(labels))
    return Labels(
        items=labels.items,
        annotators=labels.annotators,
        classes=labels.classes,
        item=labels.item[order],
        annotator=labels.annotator[order],
        label=labels.label[order],
    )
