"""The part of a study that knows people from elsewhere: visits, places given back, quotas, dealings with a platform."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from steelyard.errors import TaskError
from steelyard.study.asking import Asking
from steelyard.study.recruits import Arrival, Note
from steelyard.study.tasks import annotator_name, give_back


class Recruiting(Asking):
    """Who came from where, and what was agreed with the platform that sent them."""

    def arrive(self, participant: str, study: str = "", session: str = "") -> str:
        """Note a visit from a panel and return the annotator's name: one participant is one annotator, always."""
        name = annotator_name(participant)
        with self._journal.reading() as ledger:
            if ledger.recruits.knows(name, study, session):
                return name
        with self._journal.writing() as entry:
            if not entry.ledger.recruits.knows(name, study, session):
                data = {"study": study, "session": session}
                entry.append("arrived", at=self._clock(), annotator=name, data=data)
        return name

    @property
    def arrivals(self) -> dict[str, list[Arrival]]:
        """The visits of each annotator that came from a panel."""
        with self._journal.reading() as ledger:
            return {name: list(visits) for name, visits in ledger.recruits.arrivals.items()}

    def arrivals_of(self, annotator: str) -> list[Arrival]:
        """The visits of one annotator; none for those who came otherwise."""
        with self._journal.reading() as ledger:
            return list(ledger.recruits.arrivals.get(annotator, ()))

    @property
    def gone(self) -> dict[str, str]:
        """Annotators who gave their place back on the platform, and how."""
        with self._journal.reading() as ledger:
            return dict(ledger.recruits.gone)

    def leave(self, annotator: str, reason: str) -> int:
        """Ask an annotator nothing more and free their tasks for others at once; return how many were free.

        Their answers stay and count. Saying it again is harmless.
        """
        annotator = annotator_name(annotator)
        with self._journal.writing() as entry:
            now = self._clock()
            tasks = entry.store.open_tasks(annotator)
            for task in tasks:
                give_back(entry, task, now)
            if entry.ledger.recruits.gone.get(annotator) != reason:
                entry.append("left", at=now, annotator=annotator, data={"reason": reason})
        return len(tasks)

    def come_back(self, annotator: str) -> None:
        """Undo `leave`: the annotator may be asked again."""
        annotator = annotator_name(annotator)
        with self._journal.writing() as entry:
            if annotator in entry.ledger.recruits.gone:
                entry.append("back", at=self._clock(), annotator=annotator)

    def set_quota(self, annotator: str, tasks: int) -> None:
        """Let one annotator have so many tasks, whatever others may have."""
        annotator = annotator_name(annotator)
        if isinstance(tasks, bool) or not isinstance(tasks, int) or tasks < 1:
            raise TaskError(f"{tasks!r} tasks are no quota for '{annotator}'.", "Give a whole number from 1 up.")
        with self._journal.writing() as entry:
            if entry.ledger.recruits.quotas.get(annotator) != tasks:
                entry.append("quota", at=self._clock(), annotator=annotator, data={"tasks": tasks})

    @property
    def quotas(self) -> dict[str, int]:
        """How many tasks each annotator with a quota of their own may have."""
        with self._journal.reading() as ledger:
            return dict(ledger.recruits.quotas)

    # Dealings with a platform

    def dealings(self) -> list[Note]:
        """What passed between the study and a platform, in order."""
        with self._journal.reading() as ledger:
            return list(ledger.recruits.notes)

    def deal(self, decide: Callable[[Sequence[Note]], dict[str, Any] | None]) -> dict[str, Any] | None:
        """Write the next step of the dealings, decided on what the log says at this very moment.

        `decide` gets all steps so far and returns the next (a dict with `what`), or None for no step. No other
        process writes in between, so of two that want the same step only one gets it. On disk when it returns.
        """
        with self._journal.writing() as entry:
            step = decide(entry.ledger.recruits.notes)
            if step is not None:
                entry.append("crowd", at=self._clock(), data=step)
        return step
