"""Assignment: the next task for an annotator, one of the design's or one about the annotator, and its events.

Everything here is a function of configuration and state, so that a study and a simulated study behave alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steelyard.designs.base import Design, NoTask, Pick, generator_for
from steelyard.designs.progress import Progress
from steelyard.records import Answer, Purpose
from steelyard.study import events as ev
from steelyard.study.config import StudyConfig
from steelyard.study.quality_state import SharedTask
from steelyard.study.state import AssignedTask, StudyState


@dataclass(frozen=True, slots=True)
class Assignment:
    """The next task: the ids of its items, why it is assigned, and how the design picked it.

    `about` is the key of the check or the id of the repeated judgment; `shared` means that every annotator gets it.
    """

    stage: int
    items: tuple[str, ...]
    pick: Pick
    purpose: Purpose = "judgment"
    about: str = ""
    shared: bool = False


def refusal_for(config: StudyConfig, state: StudyState, annotator: str) -> NoTask | None:
    """Return the reason why an annotator gets no task whatever the designs say; None if there is none."""
    refusal = state.refusal(annotator)
    if refusal is not None:
        return refusal
    if annotator in state.judges:
        # Quotas are for people. A model whose judgments do not count must not take tasks from people.
        reason = "Models' judgments do not count in this study, so they get none of its tasks; use: steelyard judges."
        return None if state.counts_models else NoTask(reason, reason_code="closed")
    limit = state.recruitment.quotas.get(annotator, config.annotators.max_tasks)
    if limit is not None and state.tasks_of[annotator] >= limit:
        return NoTask(f"You have completed all your {limit} tasks.", reason_code="quota")
    return None


def pick_next(config: StudyConfig, state: StudyState, annotator: str, now: int) -> Assignment | NoTask:
    """Choose the task for an annotator; the same state gives the same choice at the same time."""
    state.set_time(now)
    picked = pick_from_designs(config, state.progress, state.seq, annotator)
    if isinstance(picked, NoTask):
        return picked
    stage, pick = picked
    chosen = Assignment(stage, tuple(state.items[code].id for code in pick.items), pick)
    quality = config.quality
    if quality.checks is None and not quality.repeat_rate and not quality.overlap_rate:
        return chosen
    # A generator of its own, so that the design's random choices do not depend on checks and repeats.
    rng = generator_for(config.seed, len(config.stages), state.seq)
    draw = float(rng.random())
    if quality.checks is not None and (unseen := state.quality.unseen_checks(annotator)):
        n_checks, n_tasks = state.quality.checks_assigned(annotator), state.tasks_of[annotator]
        probability = quality.checks.probability(n_checks, n_tasks)
        if draw < probability:
            return _check(state, unseen, rng)
        draw -= probability
    if 0 <= draw < quality.repeat_rate:
        return _repeat(state, annotator, quality.repeat_after, rng) or chosen
    draw -= quality.repeat_rate
    is_overlap_drawn = 0 <= draw < quality.overlap_rate
    design = config.stages[stage].design
    if design.shares_sources:
        chosen = _with_shared_source(design, state, annotator, chosen, rng if is_overlap_drawn else None)
    elif is_overlap_drawn:
        chosen = _overlap(state, annotator, rng) or replace(chosen, shared=True)
    return chosen


def _with_shared_source(
    design: Design, state: StudyState, annotator: str, chosen: Assignment, rng: np.random.Generator | None
) -> Assignment:
    """Begin a source that everybody gets, if overlap was drawn (`rng` is not None) and no source is unfinished.

    The first annotator of a shared source gets it from the design; the others get it as overlap, from the first of its
    tasks to the last.
    """
    progress = state.progress[chosen.stage]
    if design.is_continued(progress, annotator, chosen.pick.items):
        is_overlap = design.is_overlap(progress, annotator, chosen.pick.items)
        return replace(chosen, purpose="overlap") if is_overlap else chosen
    if rng is None:
        return chosen
    pick = design.shared_pick(progress, annotator, rng)
    if pick is None:
        return replace(chosen, shared=True)
    pick = replace(pick, items=progress.positions.balance(pick.items))
    return Assignment(chosen.stage, tuple(state.items[code].id for code in pick.items), pick, purpose="overlap")


def picked_event(
    config: StudyConfig, chosen: Assignment, *, log_digest: str, lease_end: int, behind: int = 0
) -> ev.Picked:
    """Return the event that leases a task; `log_digest` is the digest of the log before it (see `ev.Picked`)."""
    design, pick = config.stages[chosen.stage].design, chosen.pick
    return ev.Picked(
        stage=chosen.stage,
        items=chosen.items,
        slot=pick.slot,
        design=design.name,
        settings=design.settings(),
        seed=config.seed,
        round=pick.round,
        weight=pick.weight,
        propensity=pick.propensity,
        state=log_digest,
        lease_end=lease_end,
        purpose=chosen.purpose,
        about=chosen.about,
        shared=chosen.shared,
        reason=pick.reason,
        behind=behind,
    )


def purpose_fields(state: StudyState, judgment_id: str, answer: Answer) -> dict[str, Any]:
    """Return the fields of a judgment's event that say why its task was assigned and whether a check was passed."""
    task = state.assigned_task(judgment_id)
    if task is None or task.purpose == "judgment":
        return {}
    fields: dict[str, Any] = {"purpose": task.purpose, "about": task.about}
    if task.purpose == "check":
        question = state.quality.questions.get(task.about)
        # A check that was removed from the file meanwhile counts against nobody.
        fields["right"] = question is None or question.grade(answer)
    return fields


def check_decisions(config: StudyConfig, state: StudyState) -> list[tuple[str, ev.Excluded | ev.Readmitted]]:
    """Return the annotators to exclude because they fail the checks, and to readmit because of disputed checks."""
    rule = config.quality.checks
    if rule is None:
        return []
    failing = state.quality.failing(rule)
    decisions: list[tuple[str, ev.Excluded | ev.Readmitted]] = [
        (annotator, ev.Excluded(reason=reason, by="checks"))
        for annotator, reason in failing.items()
        if annotator not in state.excluded
    ]
    if any(check.disputed or check.resolved == "wrong" for check in state.quality.checks()):
        readmission = ev.Readmitted(reason="the checks that they failed are disputed", by="checks")
        decisions += [(name, readmission) for name in sorted(state.quality.excluded_by_checks - set(failing))]
    return decisions


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
            return number, replace(picked, items=progress[number].positions.balance(picked.items))
        if nothing is None or nothing.complete:
            nothing = picked
        if not config.mixed and not picked.complete:
            return picked
    return nothing or NoTask("There are no tasks.", complete=True)


def _check(state: StudyState, unseen: Sequence[str], rng: np.random.Generator) -> Assignment:
    key = unseen[int(rng.integers(len(unseen)))]
    item_ids = tuple(rng.permutation(state.quality.questions[key].item_ids).tolist())
    return Assignment(0, item_ids, Pick(()), purpose="check", about=key)


def _repeat(state: StudyState, annotator: str, after: int, rng: np.random.Generator) -> Assignment | None:
    repeatable = state.quality.repeatable(annotator, state.answered_ids(annotator), after)
    candidates = [key for key in repeatable if _is_askable(state, state.answered_task(annotator, key))]
    if not candidates:
        return None
    again = candidates[int(rng.integers(len(candidates)))]
    first = state.answered_task(annotator, again)
    item_ids = tuple(state.items[code].id for code in rng.permutation(first.items))
    return Assignment(first.stage, item_ids, Pick(()), purpose="repeat", about=again)


def _overlap(state: StudyState, annotator: str, rng: np.random.Generator) -> Assignment | None:
    """Return a task for all annotators that this annotator has not had, if there is one."""
    unseen = [
        shared
        for shared in state.quality.shared
        if not _has_seen(state, annotator, shared) and _is_askable(state, shared)
    ]
    if not unseen:
        return None
    shared = unseen[0]
    order = tuple(int(code) for code in rng.permutation(shared.items))
    order = state.progress[shared.stage].positions.balance(order)
    item_ids = tuple(state.items[code].id for code in order)
    return Assignment(shared.stage, item_ids, Pick(order, slot=shared.slot), purpose="overlap")


def _is_askable(state: StudyState, task: SharedTask | AssignedTask) -> bool:
    """Whether none of a task's items was set aside."""
    return state.progress[task.stage].is_available(task.items)


def _has_seen(state: StudyState, annotator: str, shared: SharedTask) -> bool:
    history = state.progress[shared.stage].history(annotator)
    key = tuple(sorted(shared.items))
    return key in (history.sets if len(key) > 1 else history.items)
