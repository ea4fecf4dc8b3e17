"""Which stage and which task come next."""

from __future__ import annotations

from steelyard.designs.base import Nothing, Pick, generator_for
from steelyard.study.config import StudyConfig
from steelyard.study.ledger import Ledger


def pick_next(config: StudyConfig, ledger: Ledger, annotator: str) -> tuple[int, Pick] | Nothing:
    """Choose the stage and the task for an annotator; the same ledger gives the same choice."""
    order = list(range(len(config.stages)))
    if config.mixed:
        order.sort(key=lambda n: ledger.progress[n].tasks_asked / (config.stages[n].share or 1))
    nothing: Nothing | None = None
    for number in order:
        stage = config.stages[number]
        rng = generator_for(config.seed, number, ledger.seq)
        chosen = stage.design.pick(ledger.progress[number], stage.protocol.task_size, annotator, rng)
        if isinstance(chosen, Pick):
            return number, chosen
        if nothing is None or nothing.complete:
            nothing = chosen
        if not config.mixed and not chosen.complete:
            return chosen
    return nothing or Nothing("There is nothing to ask.", complete=True)
