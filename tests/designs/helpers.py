"""Items and protocols for tests of designs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.designs import Design, NoTask, Pick, Progress
from steelyard.designs.state import AnswerNotice
from steelyard.protocols import Direct, Pairwise, Protocol, ScoredRanking
from steelyard.records import Item
from steelyard.simulate import answer_for


def make_items(count: int, first: int = 0, *, sources: int = 0) -> list[Item]:
    """Return plain items from `first` on, four to a document; with `sources`, each has one of so many contexts."""
    numbers = range(first, first + count)
    contexts = [f"source {number % sources}" if sources else None for number in numbers]
    return [
        Item(f"item-{n}", f"text {n}", context=context, metadata={"document": f"document {n // 4}"})
        for n, context in zip(numbers, contexts, strict=True)
    ]


def protocol_of(size: int) -> Protocol:
    """Return a protocol that shows so many items a task."""
    if size == 1:
        return Direct()
    return Pairwise() if size == 2 else ScoredRanking(size=size)


def take(
    design: Design,
    progress: Progress,
    protocol: Protocol,
    annotator: str,
    seed: Sequence[int],
    *,
    items: Sequence[Item] | None = None,
    answer: bool = True,
) -> Pick | NoTask:
    """Pick a task as a study does, and have it answered, unless it is to stay out.

    The annotator takes an item's code, modulo 97, for its value. `items` are the study's, if not from `make_items`.
    """
    pick = design.pick(progress, protocol.task_size, annotator, np.random.default_rng(seed))
    if isinstance(pick, NoTask):
        return pick
    progress.on_leased(annotator, pick.items, pick.slot, pick.round, np.random.default_rng(seed))
    if answer:
        ids = [items[code].id if items else f"item-{code}" for code in pick.items]
        answer_data = answer_for(protocol, {name: code % 97 / 97 for name, code in zip(ids, pick.items, strict=True)})
        progress.on_answered(pick.items, pick.slot)
        observations = protocol.observations(ids, answer_data)
        progress.notify_answer(AnswerNotice("-".join(map(str, seed)), annotator, pick.items, observations))
    return pick
