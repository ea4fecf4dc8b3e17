"""What becomes of people's submissions, heard by asking or by a webhook: whose place is free, who is back."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.recruitment.ledger import LEFT, PlatformLedger, Sighting, submission_event
from steelyard.study import Study
from steelyard.study import events as ev
from steelyard.study.recruitment_state import PlatformStep

HOOK_SECRET = "STEELYARD_PROLIFIC_HOOK_SECRET"  # noqa: S105 - the name of the variable, not a secret
FRESH_SECONDS = 600
"""A webhook that was sent longer ago (or is to be sent later) than this is refused: somebody may have kept it."""


class HookRefusedError(SteelyardError):
    """A webhook is not genuine, or cannot be read."""


def hear(study: Study, sighting: Sighting, by: str, event: str = "") -> int | None:
    """Take in a submission's state; return how many tasks it freed, or None where it was no news.

    The same news twice changes nothing, and news that was overtaken on its way changes nothing either. Of people who
    never came here, or were forgotten, nothing is written down.
    """
    if not study.recruitment.arrivals_of(sighting.participant):
        return None

    def decide(steps: Sequence[PlatformStep]) -> ev.PlatformEvent | None:
        return submission_event(sighting, by, event) if PlatformLedger.of(steps).is_news(sighting, event) else None

    news = study.recruitment.record(decide) is not None
    # Acted on even when it is no news: whoever noted it first may have been killed before this.
    known = PlatformLedger.of(study.recruitment.steps()).submissions[sighting.submission]
    freed = _act(study, known)
    return freed if news else None


def _act(study: Study, seen: Sighting) -> int:
    annotator = seen.participant
    sessions = [visit.session for visit in study.recruitment.arrivals_of(annotator)]
    if seen.submission in sessions[:-1]:
        # Another visit has followed since.
        return 0
    if seen.status in LEFT:
        # Their answers are in already; only what they still held is given back.
        reason = LEFT[seen.status]
        return 0 if study.recruitment.departed.get(annotator) == reason else study.recruitment.depart(annotator, reason)
    if annotator in study.recruitment.departed and seen.status in {"ACTIVE", "RESERVED", "AWAITING REVIEW", "APPROVED"}:
        study.recruitment.take_back(annotator)
    return 0


def hook_signature(secret: str, timestamp: str, body: bytes) -> str:
    """Sign a webhook as Prolific does: base64 of HMAC-SHA256 over its timestamp and body."""
    return base64.b64encode(hmac.new(secret.encode(), timestamp.encode() + body, hashlib.sha256).digest()).decode()


def check_hook(secret: str, timestamp: str, given: str, body: bytes, now: float) -> None:
    """Refuse a webhook that is not signed with the secret, or not of now."""
    expected = hook_signature(secret, timestamp, body)
    if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode()):
        raise HookRefusedError("the webhook's signature is wrong.", f"Check {HOOK_SECRET} against the workspace's.")
    if not timestamp.isdecimal() or abs(now - int(timestamp)) > FRESH_SECONDS:
        raise HookRefusedError("the webhook is too old.", "Check that the clocks are right.")


def hook_sighting(body: Any, study_id: str, at: float) -> Sighting | None:
    """Read what a webhook says of a submission of this study; None if it is about something else."""
    if not isinstance(body, dict) or body.get("event_type") != "submission.status.change":
        return None
    if body.get("study_id") not in (None, study_id):
        return None
    submission, participant, status = (body.get(key) for key in ("resource_id", "participant_id", "status"))
    if not all(isinstance(value, str) and 0 < len(value) <= 200 for value in (submission, participant, status)):
        raise HookRefusedError("the webhook does not say which submission it is about.", "Subscribe to it anew.")
    return Sighting(str(submission), str(participant), str(status).upper().replace("_", " "), at)
