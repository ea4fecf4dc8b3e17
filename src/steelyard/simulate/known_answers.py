"""Correct answers to checks, as perceived values from which `answer_for` makes an answer."""

from __future__ import annotations

from collections import Counter
from typing import Any

from steelyard.quality.expectations import Above, ChosenAs, HasLabel, Within
from steelyard.quality.questions import Question
from steelyard.simulate.answers import Perceived

_MIDDLE = 0.5
"""Value of items about which a check demands nothing."""


def known_values(question: Question) -> Perceived:
    """Return values on [0, 1] that lead to a correct answer: one per item, or one per item and criterion."""
    protocol = question.protocol
    scales, classes = protocol.scales(), protocol.classes()
    criteria = [*scales, *classes] or [""]
    values: dict[str, dict[str, float]] = {item: dict.fromkeys(criteria, _MIDDLE) for item in question.item_ids}
    items_below: Counter[str] = Counter()
    for demand in question.demands:
        match demand:
            case Within(item, low, high, criterion):
                for name in scales if criterion is None else [criterion]:
                    bottom, top = scales[name]
                    middle = (max(low, bottom) + min(high, top)) / 2
                    values[item][name] = (middle - bottom) / (top - bottom)
            case HasLabel(item, labels, criterion):
                for name in classes if criterion is None else [criterion]:
                    values[item][name] = (classes[name].index(labels[0]) + 0.5) / len(classes[name])
            case ChosenAs(item, end):
                values[item] = dict.fromkeys(criteria, 1.0 if end == "best" else 0.0)
            case Above(item, _, is_tie):
                items_below[item] += not is_tie
    if any(isinstance(demand, Above) for demand in question.demands):
        n_items = len(question.item_ids)
        values = {item: dict.fromkeys(criteria, items_below[item] / n_items) for item in question.item_ids}
    by_item: dict[str, Any] = {item: row[""] if criteria == [""] else row for item, row in values.items()}
    return by_item
