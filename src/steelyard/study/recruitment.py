"""Recruitment: annotators from panels and platforms, their quotas, and the exchange with a platform."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from steelyard.errors import TaskError
from steelyard.study import events as ev
from steelyard.study.core import Core
from steelyard.study.leases import annotator_name, release_task
from steelyard.study.recruitment_state import Arrival, PlatformStep


class Recruitment:
    """Where annotators came from, and the exchange with the platform that sent them; open it as `study.recruitment`."""

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
        """Return the visits of one annotator; none for those who came another way."""
        with self._log.read() as state:
            return list(state.recruitment.arrivals.get(annotator, ()))

    @property
    def departed(self) -> dict[str, str]:
        """Annotators who returned their place on the platform, and how."""
        with self._log.read() as state:
            return dict(state.recruitment.departed)

    def depart(self, annotator: str, reason: str) -> int:
        """Assign an annotator no more tasks and release theirs at once; return how many were released.

        Their answers stay and count. Calling it again is harmless.
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
        """Give one annotator a limit of tasks of their own."""
        annotator = annotator_name(annotator)
        if isinstance(tasks, bool) or not isinstance(tasks, int) or tasks < 1:
            raise TaskError(f"{tasks!r} is not a quota of tasks for '{annotator}'.", "Give a whole number from 1 up.")
        with self._log.write() as transaction:
            if transaction.state.recruitment.quotas.get(annotator) != tasks:
                transaction.append(ev.QuotaSet(tasks=tasks), at=self._clock(), annotator=annotator)

    @property
    def quotas(self) -> dict[str, int]:
        """How many tasks each annotator with a quota of their own may have."""
        with self._log.read() as state:
            return dict(state.recruitment.quotas)

    # The exchange with a platform

    def steps(self) -> list[PlatformStep]:
        """Return the steps of the exchange with a platform, in order."""
        with self._log.read() as state:
            return list(state.recruitment.steps)

    def record(self, decide: Callable[[Sequence[PlatformStep]], ev.PlatformEvent | None]) -> ev.PlatformEvent | None:
        """Write the next step of the exchange, decided on the log as it is at this very moment.

        `decide` gets all steps so far and returns the next one, or None for no step. No other process writes in
        between, so of two that want the same step only one gets it. It is on disk when this returns.
        """
        with self._log.write() as transaction:
            step = decide(transaction.state.recruitment.steps)
            if step is not None:
                transaction.append(step, at=self._clock())
        return step
