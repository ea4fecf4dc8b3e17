"""The status of a study: counts of items, annotators, judgments and tasks."""

from __future__ import annotations

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
    )
