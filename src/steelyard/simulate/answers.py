"""How perceived values become an answer, for each protocol."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

from steelyard.errors import ConfigError
from steelyard.protocols import BestWorst, Choice, Likert, Pairwise, Protocol, Ranking, ScoredRanking
from steelyard.protocols.rated import Rated

TIE_MARGIN = 0.03
"""Perceived values on [0, 1] this close look the same."""


@singledispatch
def answer_for(protocol: Protocol, perceived: Mapping[str, float]) -> Any:
    """Return the answer of someone who perceives these values on [0, 1], in the order shown."""
    raise ConfigError(
        f"simulated people cannot answer {protocol.name} yet.",
        "Register a function with steelyard.simulate.answer_for.register.",
    )


@answer_for.register
def _(protocol: Rated, perceived: Mapping[str, float]) -> Any:
    scales = protocol.scales()
    if protocol.criteria:
        return {
            item: {name: _on(scale, value, protocol) for name, scale in scales.items()}
            for item, value in perceived.items()
        }
    return {item: _on(protocol.scale, value, protocol) for item, value in perceived.items()}


def _on(scale: tuple[float, float], value: float, protocol: Rated) -> float:
    low, high = scale
    exact = low + value * (high - low)
    return round(exact) if isinstance(protocol, Likert) or high - low >= 20 else round(exact, 2)


@answer_for.register
def _(protocol: ScoredRanking, perceived: Mapping[str, float]) -> Any:
    low, high = protocol.scale
    return {item: round(low + value * (high - low), 2) for item, value in perceived.items()}


@answer_for.register
def _(protocol: Choice, perceived: Mapping[str, float]) -> Any:
    def label(labels: tuple[str, ...], value: float) -> str:
        return labels[min(int(value * len(labels)), len(labels) - 1)]

    if protocol.criteria:
        classes = protocol.classes()
        return {
            item: {name: label(labels, value) for name, labels in classes.items()} for item, value in perceived.items()
        }
    return {item: label(protocol.labels, value) for item, value in perceived.items()}


@answer_for.register
def _(protocol: Pairwise, perceived: Mapping[str, float]) -> Any:
    (left, a), (right, b) = perceived.items()
    if protocol.ties and abs(a - b) < TIE_MARGIN:
        return {"winner": None}
    return {"winner": left if a > b else right}


@answer_for.register
def _(protocol: BestWorst, perceived: Mapping[str, float]) -> Any:
    ordered = sorted(perceived, key=lambda item: perceived[item])
    return {"best": ordered[-1], "worst": ordered[0]}


@answer_for.register
def _(protocol: Ranking, perceived: Mapping[str, float]) -> Any:
    tiers: list[list[str]] = []
    for item in sorted(perceived, key=lambda item: -perceived[item]):
        if protocol.ties and tiers and abs(perceived[tiers[-1][0]] - perceived[item]) < TIE_MARGIN:
            tiers[-1].append(item)
        else:
            tiers.append([item])
    return tiers
