"""Statuses of Prolific submissions, from a sync or a webhook: release the tasks of those who left, readmit others."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.recruitment.ledger import ENDED_STATUSES, PlatformLedger, SubmissionStatus, submission_event
from steelyard.study import Study
from steelyard.study import events as ev
from steelyard.study.recruitment_state import PlatformStep

WEBHOOK_SECRET = "STEELYARD_PROLIFIC_HOOK_SECRET"  # noqa: S105 - the name of the variable, not a secret
MAX_AGE_SECONDS = 600
"""A webhook whose timestamp is further from now is refused, so that an old one cannot be replayed."""
_ACTIVE_STATUSES = {"ACTIVE", "RESERVED", "AWAITING REVIEW", "APPROVED"}


class WebhookRefusedError(SteelyardError):
    """A webhook is not genuine, or cannot be read."""


def record_status(study: Study, status: SubmissionStatus, by: str, event: str = "") -> int | None:
    """Record a submission's status; return the number of tasks it released, or None if it was not new.

    A status that was already recorded, or is older than the recorded one, changes nothing. Nothing is recorded about
    participants who never opened the study, or were forgotten.
    """
    if not study.recruitment.arrivals_of(status.participant):
        return None

    def decide(steps: Sequence[PlatformStep]) -> ev.PlatformEvent | None:
        return submission_event(status, by, event) if PlatformLedger.of(steps).is_new(status, event) else None

    is_new = study.recruitment.record(decide) is not None
    # Applied even if it is not new: the process that recorded it may have been killed before it applied it.
    latest = PlatformLedger.of(study.recruitment.steps()).submissions[status.submission]
    released = _apply(study, latest)
    return released if is_new else None


def _apply(study: Study, status: SubmissionStatus) -> int:
    annotator = status.participant
    sessions = [arrival.session for arrival in study.recruitment.arrivals_of(annotator)]
    if status.submission in sessions[:-1]:
        # The participant has arrived again with another submission.
        return 0
    if status.status in ENDED_STATUSES:
        # Their answers stay; only the tasks that they still hold are released.
        reason = ENDED_STATUSES[status.status]
        return 0 if study.recruitment.departed.get(annotator) == reason else study.recruitment.depart(annotator, reason)
    if annotator in study.recruitment.departed and status.status in _ACTIVE_STATUSES:
        study.recruitment.take_back(annotator)
    return 0


def webhook_signature(secret: str, timestamp: str, body: bytes) -> str:
    """Sign a webhook as Prolific does: base64 of HMAC-SHA256 over its timestamp and body."""
    return base64.b64encode(hmac.new(secret.encode(), timestamp.encode() + body, hashlib.sha256).digest()).decode()


def check_webhook(secret: str, timestamp: str, signature: str, body: bytes, now: float) -> None:
    """Refuse a webhook whose signature is wrong or whose timestamp is too far from `now`."""
    expected = webhook_signature(secret, timestamp, body)
    if not hmac.compare_digest(signature.encode("utf-8", "surrogatepass"), expected.encode()):
        raise WebhookRefusedError(
            "the webhook's signature is wrong.", f"Check {WEBHOOK_SECRET} against the workspace's."
        )
    if not timestamp.isdecimal() or abs(now - int(timestamp)) > MAX_AGE_SECONDS:
        raise WebhookRefusedError("the webhook is too old.", "Check that the clocks are right.")


def read_webhook(body: Any, study_id: str, at: float) -> SubmissionStatus | None:
    """Read the status of a submission from a webhook; None if it is not about a submission of this study."""
    if not isinstance(body, dict) or body.get("event_type") != "submission.status.change":
        return None
    if body.get("study_id") not in (None, study_id):
        return None
    submission, participant, status = (body.get(key) for key in ("resource_id", "participant_id", "status"))
    if not all(isinstance(value, str) and 0 < len(value) <= 200 for value in (submission, participant, status)):
        raise WebhookRefusedError("the webhook does not name a submission.", "Create the subscription again.")
    return SubmissionStatus(str(submission), str(participant), str(status).upper().replace("_", " "), at)
