"""Annotators from elsewhere: arrivals, departures, quotas, and the exchange with a platform, folded from the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from steelyard.study import events as ev
from steelyard.study.events import Event


@dataclass(frozen=True, slots=True)
class Arrival:
    """One visit from a panel, in the panel's own ids. `at` is in microseconds since 1970, UTC."""

    participant: str
    study: str
    session: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class PlatformStep:
    """One step of the exchange with a platform, and when it was written."""

    at: int
    data: ev.PlatformEvent


class RecruitmentState:
    """What the log says about recruited annotators; a part of the study's state."""

    def __init__(self) -> None:
        self.arrivals: dict[str, list[Arrival]] = {}
        """The visits of each annotator who came from a panel, in order."""
        self.departed: dict[str, str] = {}
        """Annotators who returned their place on the platform, and how."""
        self.quotas: dict[str, int] = {}
        """How many tasks an annotator may have, where it differs from everybody's limit."""
        self.steps: list[PlatformStep] = []
        """The exchange with a platform, in order."""

    def apply(self, event: Event) -> None:
        """Fold an event about recruitment into the state."""
        annotator, data = str(event.annotator), event.data
        if isinstance(data, ev.PlatformEvent):
            self.steps.append(PlatformStep(event.at, data))
        elif isinstance(data, ev.Arrived):
            visit = Arrival(annotator, data.study, data.session, event.at)
            self.arrivals.setdefault(annotator, []).append(visit)
            # A new visit is a new place, whatever became of the last one.
            self.departed.pop(annotator, None)
        elif isinstance(data, ev.Departed):
            self.departed[annotator] = data.reason
        elif isinstance(data, ev.Returned):
            self.departed.pop(annotator, None)
        elif isinstance(data, ev.QuotaSet):
            self.quotas[annotator] = data.tasks

    def knows(self, annotator: str, study: str, session: str) -> bool:
        """Whether this visit is in the log already."""
        return any((visit.study, visit.session) == (study, session) for visit in self.arrivals.get(annotator, ()))


def without_participant(step: ev.PlatformEvent, name: str, instead: str) -> ev.PlatformEvent:
    """Return a step that does not name a participant; the same object where it did not name them.

    Amounts of bonuses stay, under `instead` with a number, so that the sums still add up.
    """
    if isinstance(step, ev.SubmissionSeen) and step.participant == name:
        return ev.SubmissionForgotten()
    if not isinstance(step, ev.BonusPlanned) or name not in step.amounts:
        return step
    number = 1 + sum(participant.startswith(instead) for participant in step.amounts)

    def renamed(amounts: dict[str, int]) -> dict[str, int]:
        return {f"{instead} {number}" if key == name else key: amount for key, amount in amounts.items()}

    return replace(step, amounts=renamed(step.amounts), before=renamed(step.before))


def with_pseudonyms(data: ev.Payload, pseudonym: Callable[[str], str]) -> ev.Payload:
    """Return a payload about recruitment with the ids of participants and of their visits replaced."""
    if isinstance(data, ev.Arrived):
        return replace(data, session=pseudonym(data.session))
    if isinstance(data, ev.SubmissionSeen):
        return replace(data, participant=pseudonym(data.participant), submission=pseudonym(data.submission))
    if isinstance(data, ev.BonusPlanned):
        amounts, before = (
            {pseudonym(name): amount for name, amount in part.items()} for part in (data.amounts, data.before)
        )
        return replace(data, amounts=amounts, before=before)
    return data
