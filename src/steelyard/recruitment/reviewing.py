"""Who is paid: submissions that pass the rule are proposed for approval, the others for a look."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from steelyard.errors import ConfigError
from steelyard.recruitment.client import Client, PlatformError, UnsureError
from steelyard.recruitment.ledger import Sighting, sighting_of
from steelyard.recruitment.prolific import drafted_id, ledger_of, sync
from steelyard.study import Study

WAITING = "AWAITING REVIEW"
CATEGORIES = (
    "BAD_CODE",
    "FAILED_CHECK",
    "FAILED_INSTRUCTIONS",
    "INCOMP_LONGITUDINAL",
    "LOW_EFFORT",
    "MALINGERING",
    "NO_CODE",
    "NO_DATA",
    "OTHER",
    "TOO_QUICKLY",
    "TOO_SLOWLY",
    "UNSUPP_DEVICE",
)
SHORTEST_MESSAGE = 100
"""Prolific wants a rejection explained in at least so many characters."""
_AT_ONCE = 100
_LOOKS = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rule says of one submission."""

    submission: str
    participant: str
    good: bool
    why: str


def verdicts(study: Study, submissions: Iterable[dict[str, Any]]) -> list[Verdict]:
    """Hold the submissions that wait for a decision against the rule: all done, right code, checks passed."""
    codes, results, excluded = ledger_of(study).codes, study.quality.check_results(), study.annotators.excluded
    found = []
    for data in submissions:
        seen = sighting_of(data, 0.0)
        if seen.status == WAITING:
            why = _against(study, seen, data.get("study_code"), codes, results, excluded)
            found.append(Verdict(seen.submission, seen.participant, not why, why or _done(study, seen, results)))
    return found


def _done(study: Study, seen: Sighting, results: dict[str, tuple[int, int]]) -> str:
    standing = study.annotators.progress(seen.participant)
    done = f"{standing.answered}" + ("" if standing.limit is None else f" of {standing.limit}") + " answered"
    right, asked = results.get(seen.participant, (0, 0))
    return f"{done}, {right} of {asked} checks right" if asked else done


def _against(
    study: Study,
    seen: Sighting,
    code: str | None,
    codes: dict[str, str],
    results: dict[str, tuple[int, int]],
    excluded: dict[str, str],
) -> str:
    """Return the first thing that speaks against a submission; nothing if it passes the rule."""
    name = seen.participant
    sessions = {visit.session for visit in study.recruitment.arrivals_of(name)}
    standing, done = study.annotators.progress(name), _done(study, seen, results)
    rule = study.config.quality.checks
    right, asked = results.get(name, (0, 0))
    reasons = [
        (not sessions, "never came here"),
        (bool(sessions) and not sessions & {seen.submission, ""}, "came here, but not with this submission"),
        (name in excluded, f"excluded: {excluded.get(name)}"),
        (standing.qualified is False, "did not pass the test"),
        (standing.answered == 0 or standing.answered < (standing.limit or 0), done),
        (bool(code) and code != codes.get("completed"), f"{done}, but came back with another code"),
        (rule is not None and right < rule.min_accuracy * asked, done),
    ]
    return next((why for holds, why in reasons if holds), "")


def approve(client: Client, study: Study, chosen: list[Verdict]) -> int:
    """Approve submissions; return how many Prolific shows as no longer waiting. Doing it again is harmless."""
    wanted = {verdict.submission for verdict in chosen}
    left = sorted(wanted)
    for look in range(_LOOKS):
        for start in range(0, len(left), _AT_ONCE):
            try:
                client.approve(left[start : start + _AT_ONCE])
            except UnsureError:
                continue  # The look below tells what came of it.
        if client.dry:
            return 0
        left = sorted(wanted & _waiting(client, study))
        if not left:
            break
        if look < _LOOKS - 1:
            client.wait(1.0)
    return len(wanted) - len(left)


def _waiting(client: Client, study: Study) -> set[str]:
    listed = sync(client, study).submissions
    return {seen.submission for data in listed if (seen := sighting_of(data, 0.0)).status == WAITING}


def reject(client: Client, study: Study, participants: list[str], category: str, message: str) -> int:
    """Reject the submissions of these participants, with a reason that they read; return how many."""
    check_rejection(category, message)
    listed, at = client.submissions(drafted_id(study))
    seen_of = {
        seen.participant: seen for data in listed if (seen := sighting_of(data, at)).status in {WAITING, "REJECTED"}
    }
    missing = [name for name in participants if name not in seen_of]
    if missing:
        raise PlatformError(
            f"no submission of '{missing[0]}' waits for a decision.", "See: steelyard prolific status --format csv"
        )
    # Who is rejected already was so by an earlier run of this.
    waiting = {name: seen_of[name] for name in participants if seen_of[name].status == WAITING}
    for seen in waiting.values():
        try:
            client.reject(seen.submission, category, message)
        except UnsureError:
            if seen.submission in _waiting(client, study):
                raise
    if not client.dry:
        sync(client, study)
    return len(participants)


def check_rejection(category: str, message: str) -> None:
    """Refuse a rejection that Prolific would refuse."""
    if category not in CATEGORIES:
        raise ConfigError(f"'{category}' is not a reason that Prolific knows.", f"Use one of: {', '.join(CATEGORIES)}.")
    if len(message.strip()) < SHORTEST_MESSAGE:
        raise ConfigError(
            f"the message has {len(message.strip())} characters; Prolific wants {SHORTEST_MESSAGE} or more.",
            "Say what was wrong, so that the participant can understand it.",
        )
