"""The ledger of a study's exchange with Prolific, read from its log.

Every step that could cost money is written before its request is sent, so that a command that was killed anywhere can
be run again: a step that was written and not confirmed is looked up on the platform first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from steelyard.study import events as ev
from steelyard.study.recruitment_state import PlatformStep

ENDED_STATUSES = {
    "RETURNED": "returned",
    "TIMED-OUT": "timed out",
    "REJECTED": "rejected",
    "SCREENED OUT": "screened out",
}
"""Statuses of submissions that have ended without completion, whose tasks are released to others."""

BatchState: TypeAlias = Literal["planned", "set up", "paying", "paid", "dropped"]


@dataclass(frozen=True, slots=True)
class SubmissionStatus:
    """The latest reported status of a submission. `at` is in seconds since 1970, by the platform's clock if known."""

    submission: str
    participant: str
    status: str
    at: float


@dataclass(slots=True)
class Batch:
    """Bonuses paid together. `amounts` are in minor units (cents), by participant."""

    number: int
    amounts: dict[str, int]
    before: dict[str, int]
    """Bonuses that each participant had already received when the batch was planned."""
    state: BatchState = "planned"
    id: str = ""
    attempts: int = 0
    requested_at: int = 0
    """When the last request to pay was about to be sent, in microseconds since 1970."""

    @property
    def total(self) -> int:
        """The sum, in minor units."""
        return sum(self.amounts.values())


@dataclass(slots=True)
class PlatformLedger:
    """The state of the exchange with Prolific, as of the log."""

    key: str = ""
    """Internal name of the draft, by which it is found again if the answer with its id was lost."""
    codes: dict[str, str] = field(default_factory=dict)
    study_id: str = ""
    places: int = 0
    """Places that the researcher agreed to pay for; 0 before publishing."""
    pilot: int = 0
    """Places of the pilot, if there was one."""
    submissions: dict[str, SubmissionStatus] = field(default_factory=dict)
    events: set[str] = field(default_factory=set)
    """Webhook events that were received."""
    batches: list[Batch] = field(default_factory=list)

    @staticmethod
    def of(steps: Iterable[PlatformStep]) -> PlatformLedger:
        """Build the ledger from the steps in the log."""
        ledger = PlatformLedger()
        for step in steps:
            handler = _HANDLERS[type(step.data)]
            if handler is not None:
                handler(ledger, step.data, step.at)
        return ledger

    def _on_draft_planned(self, data: ev.DraftPlanned, at: int) -> None:
        self.key = data.key
        self.codes = dict(data.codes)

    def _on_draft_created(self, data: ev.DraftCreated, at: int) -> None:
        self.study_id = data.study

    def _on_publication_planned(self, data: ev.PublicationPlanned, at: int) -> None:
        self.places = data.places
        if data.pilot:
            self.pilot = data.places

    def _on_submission_seen(self, data: ev.SubmissionSeen, at: int) -> None:
        if data.event:
            self.events.add(data.event)
        latest = self.submissions.get(data.submission)
        if latest is None or data.at >= latest.at:
            status = SubmissionStatus(data.submission, data.participant, data.status, data.at)
            self.submissions[status.submission] = status

    def _on_bonus_planned(self, data: ev.BonusPlanned, at: int) -> None:
        self.batches.append(Batch(len(self.batches) + 1, dict(data.amounts), dict(data.before)))

    def _on_bonus_created(self, data: ev.BonusCreated, at: int) -> None:
        batch = self.batches[data.batch - 1]
        batch.state, batch.id = "set up", data.id

    def _on_bonus_requested(self, data: ev.BonusRequested, at: int) -> None:
        batch = self.batches[data.batch - 1]
        batch.state, batch.attempts, batch.requested_at = "paying", data.attempt, at

    def _on_bonus_paid(self, data: ev.BonusPaid, at: int) -> None:
        self.batches[data.batch - 1].state = "paid"

    def _on_bonus_dropped(self, data: ev.BonusDropped, at: int) -> None:
        self.batches[data.batch - 1].state = "dropped"

    # Queries

    @property
    def open_batch(self) -> Batch | None:
        """The batch that was planned and neither paid nor dropped."""
        return next((batch for batch in self.batches if batch.state not in {"paid", "dropped"}), None)

    def bonuses(self) -> dict[str, int]:
        """Bonuses of each participant that were paid or are being paid, in minor units.

        Bonuses that were paid by hand before a batch are included, in whatever order they appear on Prolific.
        """
        totals: dict[str, int] = {}
        for batch in self.batches:
            if batch.state != "dropped":
                for participant, amount in batch.amounts.items():
                    after = batch.before[participant] + amount
                    totals[participant] = max(totals.get(participant, 0), after)
        return totals

    def is_new(self, status: SubmissionStatus, event: str = "") -> bool:
        """Whether a submission's status is new: not recorded before, and not older than the latest recorded one."""
        if event and event in self.events:
            return False
        latest = self.submissions.get(status.submission)
        return latest is None or (status.at >= latest.at and status.status != latest.status)


def submission_event(status: SubmissionStatus, by: str, event: str = "") -> ev.SubmissionSeen:
    """Return the event that records a submission's status."""
    return ev.SubmissionSeen(
        submission=status.submission,
        participant=status.participant,
        status=status.status,
        at=status.at,
        by=by,
        event=event,
    )


def read_submission(data: Mapping[str, Any], at: float) -> SubmissionStatus:
    """Read the status of a submission from the platform's list."""
    participant = data.get("participant_id") or data.get("participant") or ""
    return SubmissionStatus(str(data["id"]), str(participant), str(data["status"]).upper().replace("_", " "), at)


_HANDLERS: dict[type[ev.PlatformEvent], Callable[[PlatformLedger, Any, int], None] | None] = {
    ev.DraftPlanned: PlatformLedger._on_draft_planned,
    ev.DraftCreated: PlatformLedger._on_draft_created,
    ev.PublicationPlanned: PlatformLedger._on_publication_planned,
    ev.SubmissionSeen: PlatformLedger._on_submission_seen,
    ev.BonusPlanned: PlatformLedger._on_bonus_planned,
    ev.BonusCreated: PlatformLedger._on_bonus_created,
    ev.BonusRequested: PlatformLedger._on_bonus_requested,
    ev.BonusPaid: PlatformLedger._on_bonus_paid,
    ev.BonusDropped: PlatformLedger._on_bonus_dropped,
    ev.SubmissionForgotten: None,
}
"""The handler of each step; a forgotten submission changes nothing."""
