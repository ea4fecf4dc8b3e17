"""The books of a study's dealings with Prolific, read from its log.

Every step that could cost money is written down before its request is sent, so that a command that was killed
anywhere can be run again: what is written and not confirmed is looked up on the platform first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from steelyard.study.recruits import Note

LEFT = {"RETURNED": "returned", "TIMED-OUT": "timed out", "REJECTED": "rejected", "SCREENED OUT": "screened out"}
"""Submissions in these states hold no place any more, whose tasks are free for others."""

BatchState: TypeAlias = Literal["planned", "set up", "paying", "paid", "dropped"]


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was last heard of a submission. `at` is in seconds since 1970, by the platform's clock where it said."""

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
    """What each had got on top when it was planned, as far as the books and Prolific knew."""
    state: BatchState = "planned"
    id: str = ""
    attempts: int = 0
    asked_at: int = 0
    """When the last request to pay was about to be sent, in microseconds since 1970."""

    @property
    def total(self) -> int:
        """The sum, in minor units."""
        return sum(self.amounts.values())


@dataclass(slots=True)
class Books:
    """What the log says of the dealings with Prolific."""

    key: str = ""
    """The name under which the draft is known again, were its id lost."""
    codes: dict[str, str] = field(default_factory=dict)
    study_id: str = ""
    places: int = 0
    """Places that were agreed to, at what cost was said; 0 before publishing."""
    pilot: int = 0
    """Places of the pilot, if there was one."""
    submissions: dict[str, Sighting] = field(default_factory=dict)
    events: set[str] = field(default_factory=set)
    """Webhook events that were heard."""
    batches: list[Batch] = field(default_factory=list)

    @staticmethod
    def of(notes: Iterable[Note]) -> Books:
        """Read the books off the log."""
        books = Books()
        for note in notes:
            handle = getattr(books, f"_{note.what}", None)
            if handle is not None:
                handle(note)
        return books

    def _draft(self, note: Note) -> None:
        self.key = note.data["key"]
        self.codes = dict(note.data["codes"])

    def _drafted(self, note: Note) -> None:
        self.study_id = note.data["study"]

    def _publish(self, note: Note) -> None:
        self.places = note.data["places"]
        if note.data.get("pilot"):
            self.pilot = note.data["places"]

    def _status(self, note: Note) -> None:
        data = note.data
        if data.get("event"):
            self.events.add(data["event"])
        known = self.submissions.get(data["submission"])
        if known is None or data["at"] >= known.at:
            seen = Sighting(data["submission"], data["participant"], data["status"], data["at"])
            self.submissions[seen.submission] = seen

    def _bonus(self, note: Note) -> None:
        self.batches.append(Batch(len(self.batches) + 1, dict(note.data["amounts"]), dict(note.data["before"])))

    def _bonus_set_up(self, note: Note) -> None:
        batch = self.batches[note.data["batch"] - 1]
        batch.state, batch.id = "set up", note.data["id"]

    def _bonus_paying(self, note: Note) -> None:
        batch = self.batches[note.data["batch"] - 1]
        batch.state, batch.attempts, batch.asked_at = "paying", note.data["attempt"], note.at

    def _bonus_paid(self, note: Note) -> None:
        self.batches[note.data["batch"] - 1].state = "paid"

    def _bonus_dropped(self, note: Note) -> None:
        self.batches[note.data["batch"] - 1].state = "dropped"

    # What follows

    @property
    def open_batch(self) -> Batch | None:
        """The batch that was begun and not brought to an end."""
        return next((batch for batch in self.batches if batch.state not in {"paid", "dropped"}), None)

    def bonuses(self) -> dict[str, int]:
        """What each participant has got on top, or will once what is under way is paid, in minor units.

        Bonuses that were paid by hand before a batch are in it; whether they or ours show on Prolific first does not
        matter.
        """
        totals: dict[str, int] = {}
        for batch in self.batches:
            if batch.state != "dropped":
                for participant, amount in batch.amounts.items():
                    after = batch.before[participant] + amount
                    totals[participant] = max(totals.get(participant, 0), after)
        return totals

    def is_news(self, sighting: Sighting, event: str = "") -> bool:
        """Whether a submission's state says more than what is known: not told before, and not overtaken."""
        if event and event in self.events:
            return False
        known = self.submissions.get(sighting.submission)
        return known is None or (sighting.at >= known.at and sighting.status != known.status)


def status_step(sighting: Sighting, by: str, event: str = "") -> dict[str, Any]:
    """Return the step that notes a submission's state."""
    step: dict[str, Any] = {
        "what": "status",
        "submission": sighting.submission,
        "participant": sighting.participant,
        "status": sighting.status,
        "at": sighting.at,
        "by": by,
    }
    return step | ({"event": event} if event else {})


def sighting_of(data: Mapping[str, Any], at: float) -> Sighting:
    """Read a submission as the platform lists it."""
    participant = data.get("participant_id") or data.get("participant") or ""
    return Sighting(str(data["id"]), str(participant), str(data["status"]).upper().replace("_", " "), at)
