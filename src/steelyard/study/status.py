"""How far a study is, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.study.config import StudyConfig
from steelyard.study.ledger import Ledger, State


@dataclass(frozen=True, slots=True)
class StageStatus:
    """How far one stage is; `done` and `total` count judgments."""

    name: str
    protocol: str
    design: str
    done: int
    total: int
    tasks_out: int


@dataclass(frozen=True, slots=True)
class Status:
    """How far a study is."""

    title: str
    items: int
    annotators: int
    judgments: int
    imported: int
    late: int
    revisions: int
    skips: int
    flags: int
    expired: int
    state: State
    excluded: int
    set_aside: int
    stages: tuple[StageStatus, ...]


def status_of(config: StudyConfig, ledger: Ledger) -> Status:
    """Read the status off the ledger."""
    stages = []
    for stage, progress in zip(config.stages, ledger.progress, strict=True):
        goal = stage.design.goal(progress, stage.protocol.task_size)
        stages.append(
            StageStatus(
                stage.name, stage.protocol.name, stage.design.name, goal.done, goal.total, progress.tasks_leased
            )
        )
    return Status(
        title=config.title,
        items=len(ledger.items),
        annotators=sum(1 for name, tasks in ledger.tasks_of.items() if name and tasks > 0),
        judgments=ledger.counts["judgments"],
        imported=ledger.counts["imported"],
        late=ledger.counts["late"],
        revisions=ledger.counts["revisions"],
        skips=ledger.counts["skips"],
        flags=ledger.counts["flags"],
        expired=ledger.counts["expired"],
        state=ledger.state,
        excluded=len(ledger.excluded),
        set_aside=ledger.set_aside_count(),
        stages=tuple(stages),
    )
