"""The status of a study: counts of items, annotators, judgments and tasks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from steelyard.study.config import StudyConfig
from steelyard.study.events import StateName
from steelyard.study.state import StudyState


@dataclass(frozen=True, slots=True)
class StageStatus:
    """How far one stage is; `done` and `total` count judgments."""

    name: str
    protocol: str
    design: str
    done: int
    total: int
    leased: int


@dataclass(frozen=True, slots=True)
class Status:
    """How far a study is."""

    title: str
    items: int
    annotators: int
    """People; models are counted in `models`."""
    judgments: int
    """By people; those by models are counted in `model_judgments`."""
    imported: int
    late: int
    revisions: int
    skips: int
    flags: int
    expired: int
    state: StateName
    state_reason: str
    excluded: int
    set_aside: int
    stages: tuple[StageStatus, ...]
    models: int = 0
    model_judgments: int = 0
    counts_models: bool = False
    """Whether models' judgments count in the scores."""
    frozen: str = ""
    """Digest of the preregistration; empty if there is none."""
    items_set_aside: int = 0
    """Items that nobody is asked about any more."""
    deviations: tuple[str, ...] = ()
    """What was done differently from the preregistration."""


def status_of(config: StudyConfig, state: StudyState) -> Status:
    """Read the status off the state."""
    stages = []
    for stage, progress in zip(config.stages, state.progress, strict=True):
        goal = stage.design.goal(progress, stage.protocol.task_size)
        stages.append(
            StageStatus(
                stage.name, stage.protocol.name, stage.design.name, goal.done, goal.total, progress.tasks_leased
            )
        )
    return Status(
        title=config.title,
        items=len(state.items),
        annotators=sum(1 for name, tasks in state.tasks_of.items() if name and tasks > 0 and name not in state.judges),
        judgments=state.counts["judgments"],
        imported=state.counts["imported"],
        late=state.counts["late"],
        revisions=state.counts["revisions"],
        skips=state.counts["skips"],
        flags=state.counts["flags"],
        expired=state.counts["expired"],
        state=state.state,
        state_reason=state.state_reason,
        excluded=len(state.excluded),
        set_aside=state.set_aside_count(),
        stages=tuple(stages),
        models=len(state.judges),
        model_judgments=state.counts["model_judgments"],
        counts_models=state.counts_models,
        frozen="" if state.preregistration.frozen is None else state.preregistration.frozen.digest,
        items_set_aside=len(state.unjudged.set_aside),
        deviations=_deviations(state, stages),
    )


def _deviations(state: StudyState, stages: list[StageStatus]) -> tuple[str, ...]:
    """Return the deviations so far, repeated ones counted, and whether the study was stopped elsewhere."""
    frozen = state.preregistration.frozen
    if frozen is None:
        return ()
    counted = Counter(state.preregistration.deviations)
    deviations = [text if count == 1 else f"{text} ({count} times)" for text, count in counted.items()]
    done = sum(stage.done for stage in stages)
    if state.state == "closed" and done < frozen.planned and not state.preregistration.stopped_by_rule:
        deviations.append(
            f"The study was closed after {done:,} of {frozen.planned:,} planned judgments, not by its stopping rule."
        )
    return tuple(deviations)
