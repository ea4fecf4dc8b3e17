"""Stages of match_quality in some state, for its tests."""

from __future__ import annotations

from typing import Any

from steelyard.designs import MatchQuality, Pick, Progress
from steelyard.designs.match_quality.state import MatchQualityState
from steelyard.designs.state import AnswerNotice
from steelyard.protocols import Protocol
from steelyard.records import Item
from tests.designs.helpers import make_items, take


def state_of(progress: Progress) -> MatchQualityState:
    assert isinstance(progress.design_state, MatchQualityState)
    return progress.design_state


def started(design: MatchQuality, protocol: Protocol, n: int = 12, tasks: int = 5, people: int = 4) -> Progress:
    """A stage in which some tasks have been answered."""
    progress = design.new_progress(protocol, make_items(n))
    for step in range(tasks):
        assert isinstance(take(design, progress, protocol, f"ann-{step % people}", (9, step)), Pick)
    return progress


def heard(
    items: tuple[int, ...], observations: list[Any], judgment_id: str = "j", annotator: str = "ann"
) -> AnswerNotice:
    return AnswerNotice(judgment_id, annotator, items, observations)


def systems(groups: int, contexts: int) -> list[Item]:
    return [
        Item(f"g{g}-c{c}", f"output {g} {c}", group=f"g{g}", context=f"c{c}")
        for g in range(groups)
        for c in range(contexts)
    ]
