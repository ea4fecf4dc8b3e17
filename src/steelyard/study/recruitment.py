"""Recruitment: annotators from panels and platforms, their quotas, and the exchange with a platform."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from steelyard.errors import TaskError
from steelyard.study import events as ev
from steelyard.study.core import Core
from steelyard.study.leases import annotator_name, release_task
from steelyard.study.recruitment_state import Arrival, PlatformStep


class Recruitment:
    """Where annotators came from, and the requests to a recruitment platform; available as `study.recruitment`."""

    def __init__(self, core: Core) -> None:
        self._log = core.log
        self._clock = core.clock

    def arrive(self, participant: str, study: str = "", session: str = "") -> str:
        """Record a visit from a panel and return the annotator's name: a participant is always the same annotator."""
        name = annotator_name(participant)
        with self._log.read() as state:
            if state.recruitment.knows(name, study, session):
                return name
        with self._log.write() as transaction:
            if not transaction.state.recruitment.knows(name, study, session):
                transaction.append(ev.Arrived(study=study, session=session), at=self._clock(), annotator=name)
        return name

    @property
    def arrivals(self) -> dict[str, list[Arrival]]:
        """The visits of each annotator who came from a panel."""
        with self._log.read() as state:
            return {name: list(visits) for name, visits in state.recruitment.arrivals.items()}

    def arrivals_of(self, annotator: str) -> list[Arrival]:
        """Return the visits of one annotator; none if the annotator did not come from a panel."""
        with self._log.read() as state:
            return list(state.recruitment.arrivals.get(annotator, ()))

    @property
    def departed(self) -> dict[str, str]:
        """Annotators who returned their place on the platform, and how."""
        with self._log.read() as state:
            return dict(state.recruitment.departed)

    def depart(self, annotator: str, reason: str) -> int:
        """Assign no more tasks to an annotator and release their leased tasks; return how many were released.

        Their answers still count. Calling this method again has no effect.
        """
        annotator = annotator_name(annotator)
        with self._log.write() as transaction:
            now = self._clock()
            tasks = transaction.store.open_tasks(annotator)
            for task in tasks:
                release_task(transaction, task, now)
            if transaction.state.recruitment.departed.get(annotator) != reason:
                transaction.append(ev.Departed(reason=reason), at=now, annotator=annotator)
        return len(tasks)

    def take_back(self, annotator: str) -> None:
        """Undo `depart`: the annotator may be assigned tasks again."""
        annotator = annotator_name(annotator)
        with self._log.write() as transaction:
            if annotator in transaction.state.recruitment.departed:
                transaction.append(ev.Returned(), at=self._clock(), annotator=annotator)

    def set_quota(self, annotator: str, tasks: int) -> None:
        """Set an individual limit on the tasks of one annotator."""
        annotator = annotator_name(annotator)
        if isinstance(tasks, bool) or not isinstance(tasks, int) or tasks < 1:
            raise TaskError(f"{tasks!r} is not a quota of tasks for '{annotator}'.", "Give a whole number from 1 up.")
        with self._log.write() as transaction:
            if transaction.state.recruitment.quotas.get(annotator) != tasks:
                transaction.append(ev.QuotaSet(tasks=tasks), at=self._clock(), annotator=annotator)

    @property
    def quotas(self) -> dict[str, int]:
        """The limit of each annotator who has an individual limit."""
        with self._log.read() as state:
            return dict(state.recruitment.quotas)

    # The exchange with a platform

    def steps(self) -> list[PlatformStep]:
        """Return the recorded steps of the exchange with a platform, in order."""
        with self._log.read() as state:
            return list(state.recruitment.steps)

    def record(self, decide: Callable[[Sequence[PlatformStep]], ev.PlatformEvent | None]) -> ev.PlatformEvent | None:
        """Record the next step of the exchange with a platform.

        `decide` gets all steps so far and returns the next step, or None. No other process can write in between, so if
        two processes want to take the same step, only one of them does. The step is on disk when this method returns.
        """
        with self._log.write() as transaction:
            step = decide(transaction.state.recruitment.steps)
            if step is not None:
                transaction.append(step, at=self._clock())
        return step
