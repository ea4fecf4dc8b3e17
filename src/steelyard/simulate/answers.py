"""Answers of simulated annotators: from perceived values, for each protocol, and correct answers to checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import singledispatch
from typing import Any, TypeAlias

from steelyard.errors import ConfigError
from steelyard.protocols import BestWorst, Choice, ErrorSpans, Likert, Pairwise, Protocol, Ranking, ScoredRanking
from steelyard.protocols.rated import Rated
from steelyard.protocols.whole_task import WholeTaskProtocol
from steelyard.quality.expectations import Above, ChosenAs, HasLabel, Within
from steelyard.quality.questions import Question

TIE_MARGIN = 0.03
"""Perceived values on [0, 1] this close count as equal."""

STRENGTH_EDGES = {1: (), 2: (0.25,), 3: (0.15, 0.35)}
"""Perceived differences from which a preference is called stronger, by the number of strengths."""

Perceived: TypeAlias = Mapping[str, Any]
"""The value of each item, or `{criterion: value}` for several criteria; 0 and 1 are the ends of the scale."""


@singledispatch
def answer_for(protocol: Protocol, perceived: Perceived, tie_margin: float = TIE_MARGIN) -> Any:
    """Return the answer of an annotator who perceives these values, in display order.

    Values may lie beyond 0 and 1, the ends of the scale: two items beyond the same end can still be compared.
    """
    raise ConfigError(
        f"simulated annotators cannot answer {protocol.name}.",
        "Register a function with steelyard.simulate.answer_for.register.",
    )


def by_criterion(value: Any, criterion: str) -> float:
    """Return the perceived value for a criterion; a single value applies to all criteria."""
    return float(value[criterion] if isinstance(value, Mapping) else value)


def decimals(protocol: Protocol, scale: tuple[float, float]) -> int:
    """Return the decimals of a slider value: none on scales of 20 units or more."""
    return 0 if isinstance(protocol, Likert) or scale[1] - scale[0] >= 20 else 2


@answer_for.register(Rated)
@answer_for.register(ScoredRanking)
def _(protocol: Rated | ScoredRanking, perceived: Perceived, tie_margin: float = TIE_MARGIN) -> Any:
    scales = protocol.scales()
    if protocol.criterion_names() == ("",):
        return {item: _set(protocol, scales[""], by_criterion(value, "")) for item, value in perceived.items()}
    return {
        item: {name: _set(protocol, scale, by_criterion(value, name)) for name, scale in scales.items()}
        for item, value in perceived.items()
    }


_FLAWLESS = 0.9
"""Texts perceived as at least this good have no marks."""
_MOST_MARKS = 40


@answer_for.register
def _(protocol: ErrorSpans, perceived: Perceived, tie_margin: float = TIE_MARGIN) -> Any:
    """Score as a slider would be set, and mark the first character: simulated annotators do not read texts."""
    scale = protocol.scales()[""]
    answer = {}
    for item, percept in perceived.items():
        score = _set(protocol, scale, by_criterion(percept, ""))
        severities = _simulated_errors(protocol, by_criterion(percept, ""), float(score))
        category = {"category": protocol.categories[0]} if protocol.categories else {}
        spans = [{"start": 0, "end": 1, "severity": severity, **category} for severity in severities]
        answer[item] = {"spans": spans} if protocol.score == "mqm" else {"score": score, "spans": spans}
    return answer


def _simulated_errors(protocol: ErrorSpans, value: float, score: float) -> list[str]:
    """Return severities of errors: for MQM those whose penalties come closest to the score, otherwise one at most."""
    severities = sorted(protocol.severities, key=lambda name: protocol.severities[name])
    if protocol.score == "slider":
        place = int((1 - min(max(value, 0.0), 1.0)) * len(severities))
        return [] if value >= _FLAWLESS else [severities[min(place, len(severities) - 1)]]
    errors: list[str] = []
    category = protocol.categories[0] if protocol.categories else ""
    penalty = protocol.scales()[""][1] - score
    for severity in reversed(severities):
        weight = protocol.penalty(severity, category)
        count = min(int(penalty / weight + 1e-9), _MOST_MARKS - len(errors)) if weight else 0
        errors += [severity] * count
        penalty -= count * weight
    return errors


def _set(protocol: Protocol, scale: tuple[float, float], value: float) -> float:
    low, high = scale
    exact = low + min(max(value, 0.0), 1.0) * (high - low)
    # Rounds as numpy does, so that answers one by one and in batches are equal.
    return round(exact) if decimals(protocol, scale) == 0 else round(exact * 100) / 100


@answer_for.register
def _(protocol: Choice, perceived: Perceived, tie_margin: float = TIE_MARGIN) -> Any:
    classes = protocol.classes()
    if not protocol.criteria:
        return {item: _label(classes[""], by_criterion(value, "")) for item, value in perceived.items()}
    return {
        item: {name: _label(labels, by_criterion(value, name)) for name, labels in classes.items()}
        for item, value in perceived.items()
    }


def _label(labels: tuple[str, ...], value: float) -> str:
    return labels[min(int(min(max(value, 0.0), 1.0) * len(labels)), len(labels) - 1)]


def _by_each_criterion(protocol: WholeTaskProtocol, perceived: Perceived, tie_margin: float) -> Any:
    plain = protocol.without_criteria()
    return {
        name: answer_for(plain, {item: by_criterion(value, name) for item, value in perceived.items()}, tie_margin)
        for name in protocol.criterion_names()
    }


@answer_for.register
def _(protocol: Pairwise, perceived: Perceived, tie_margin: float = TIE_MARGIN) -> Any:
    if protocol.criteria:
        return _by_each_criterion(protocol, perceived, tie_margin)
    (left, a), (right, b) = perceived.items()
    if protocol.ties and abs(a - b) < tie_margin:
        return {"winner": None}
    answer: dict[str, object] = {"winner": left if a > b else right}
    if protocol.strengths > 1:
        answer["strength"] = 1 + sum(abs(a - b) >= edge for edge in STRENGTH_EDGES[protocol.strengths])
    return answer


@answer_for.register
def _(protocol: BestWorst, perceived: Perceived, tie_margin: float = TIE_MARGIN) -> Any:
    if protocol.criteria:
        return _by_each_criterion(protocol, perceived, tie_margin)
    ordered = sorted(perceived, key=lambda item: perceived[item])
    return {"best": ordered[-1], "worst": ordered[0]}


@answer_for.register
def _(protocol: Ranking, perceived: Perceived, tie_margin: float = TIE_MARGIN) -> Any:
    if protocol.criteria:
        return _by_each_criterion(protocol, perceived, tie_margin)
    tiers: list[list[str]] = []
    for item in sorted(perceived, key=lambda item: -perceived[item]):
        if protocol.ties and tiers and abs(perceived[tiers[-1][0]] - perceived[item]) < tie_margin:
            tiers[-1].append(item)
        else:
            tiers.append([item])
    return tiers


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
