"""Adequacy judged after a tournament: simulated answers, and what the propagation design makes of them."""

from __future__ import annotations

from typing import cast

import numpy as np

from reproductions.tournament.recordings import Sources
from steelyard.designs import Propagation
from steelyard.designs.propagation.state import AdequacyLabel, Effort
from steelyard.designs.state import AnswerNotice
from steelyard.observations import Comparison, Observation
from steelyard.records import Item
from steelyard.simulate import SimulatedStudy

READING = (
    "the rankings have no adequacy: an output is considered adequate if its rank is at or above a cut, drawn for "
    "each source from 1 to 5, or if it is not below the reference"
)


def draw_adequacy(sources: Sources, slip: float, seed: int) -> dict[str, bool]:
    """Draw what a person would say of each output; with chance `slip` they apply another cut to it than to the rest."""
    rng = np.random.default_rng([seed, 3])
    size = sources.ranks.shape[1]
    cut = rng.integers(1, size + 1, (len(sources), 1))
    changed = rng.integers(1, size + 1, sources.ranks.shape)
    cuts = np.where(rng.random(sources.ranks.shape) < slip, changed, cut)
    reference = np.where(sources.systems == "_ref", sources.ranks, 0).max(axis=1, keepdims=True)
    adequate = (sources.ranks <= cuts) | (sources.ranks <= reference)
    return {
        sources.item(source, place): bool(adequate[source, place])
        for source in range(len(sources))
        for place in range(size)
    }


def judged(rehearsal: SimulatedStudy, items: list[Item]) -> tuple[Effort, list[AdequacyLabel]]:
    """Return the effort table and every item's label, from the answers of both stages."""
    stage = rehearsal.config.stages[1]
    design = cast("Propagation", stage.design)
    progress = design.new_progress(stage.protocol, items)
    for number, asked in enumerate(rehearsal.config.stages):
        for judgment in rehearsal.judgments(number):
            codes = tuple(rehearsal.index.code(name) for name in judgment.items)
            observations: list[Observation] = list(asked.protocol.observations(judgment.items, judgment.answer))
            own = not isinstance(observations[0], Comparison)
            progress.notify_answer(
                AnswerNotice(f"{number}-{judgment.judgment_id}", judgment.annotator, codes, observations, own_stage=own)
            )
    return design.effort(progress), design.labels(progress)
