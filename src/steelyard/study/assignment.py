"""Which task comes next: one of the design's, or one that tells about the annotator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.designs.base import NoTask, Pick, generator_for
from steelyard.designs.progress import Progress
from steelyard.records import Purpose
from steelyard.study.config import StudyConfig
from steelyard.study.quality_state import SharedTask
from steelyard.study.state import StudyState


@dataclass(frozen=True, slots=True)
class Chosen:
    """The next task: what is shown (ids), why, and how the design came to it.

    `about` is the key of the check or the judgment repeated; `shared` says that everybody will get it.
    """

    stage: int
    items: tuple[str, ...]
    pick: Pick
    purpose: Purpose = "judgment"
    about: str = ""
    shared: bool = False


def pick_next(config: StudyConfig, state: StudyState, annotator: str, now: int) -> Chosen | NoTask:
    """Choose the task for an annotator; the same state gives the same choice at the same time."""
    state.set_time(now)
    picked = pick_from_designs(config, state.progress, state.seq, annotator)
    if isinstance(picked, NoTask):
        return picked
    stage, pick = picked
    chosen = Chosen(stage, tuple(state.items[code].id for code in pick.items), pick)
    quality = config.quality
    # A stream of its own, so that what the design draws does not hang on what is mixed in.
    rng = generator_for(config.seed, len(config.stages), state.seq)
    draw = float(rng.random())
    if quality.checks is not None:
        if draw < quality.checks.rate and (check := _check(state, annotator, rng)) is not None:
            return check
        draw -= quality.checks.rate
    if 0 <= draw < quality.repeat_rate:
        return _repeat(state, annotator, quality.repeat_after, rng) or chosen
    draw -= quality.repeat_rate
    if 0 <= draw < quality.overlap_rate:
        return _overlap(state, annotator, rng) or Chosen(chosen.stage, chosen.items, chosen.pick, shared=True)
    return chosen


def pick_from_designs(
    config: StudyConfig, progress: Sequence[Progress], seq: int, annotator: str
) -> tuple[int, Pick] | NoTask:
    """Choose the stage and the task: stages in sequence, or by share; `seq` is the last event's number."""
    order = list(range(len(config.stages)))
    if config.mixed:
        order.sort(key=lambda n: progress[n].tasks_assigned / (config.stages[n].share or 1))
    nothing: NoTask | None = None
    for number in order:
        stage = config.stages[number]
        rng = generator_for(config.seed, number, seq)
        picked = stage.design.pick(progress[number], stage.protocol.task_size, annotator, rng)
        if isinstance(picked, Pick):
            return number, picked
        if nothing is None or nothing.complete:
            nothing = picked
        if not config.mixed and not picked.complete:
            return picked
    return nothing or NoTask("There is nothing to ask.", complete=True)


def _check(state: StudyState, annotator: str, rng: np.random.Generator) -> Chosen | None:
    unseen = state.quality.unseen_checks(annotator)
    if not unseen:
        return None
    key = unseen[int(rng.integers(len(unseen)))]
    shown = tuple(rng.permutation(state.quality.questions[key].item_ids).tolist())
    return Chosen(0, shown, Pick(()), purpose="check", about=key)


def _repeat(state: StudyState, annotator: str, after: int, rng: np.random.Generator) -> Chosen | None:
    candidates = state.quality.repeatable(annotator, after)
    if not candidates:
        return None
    again = candidates[int(rng.integers(len(candidates)))]
    first = state.answered_task(annotator, again)
    shown = tuple(state.items[code].id for code in rng.permutation(first.items))
    return Chosen(first.stage, shown, Pick(()), purpose="repeat", about=again)


def _overlap(state: StudyState, annotator: str, rng: np.random.Generator) -> Chosen | None:
    """Return a task that everybody gets and this annotator has not had, if there is one."""
    unseen = [shared for shared in state.quality.shared if not _has_seen(state, annotator, shared)]
    if not unseen:
        return None
    shared = unseen[0]
    order = tuple(int(code) for code in rng.permutation(shared.items))
    shown = tuple(state.items[code].id for code in order)
    return Chosen(shared.stage, shown, Pick(order, slot=shared.slot), purpose="overlap")


def _has_seen(state: StudyState, annotator: str, shared: SharedTask) -> bool:
    seen = state.progress[shared.stage].history(annotator)
    key = tuple(sorted(shared.items))
    return key in (seen.sets if len(key) > 1 else seen.items)
