"""Review of Prolific submissions: which ones pass the rule for approval, and approving or rejecting them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from steelyard.errors import ConfigError
from steelyard.recruitment.client import Client, PlatformError, UnsureError
from steelyard.recruitment.ledger import SubmissionStatus, read_submission
from steelyard.recruitment.prolific import drafted_id, ledger_of, sync
from steelyard.study import Study

AWAITING_REVIEW = "AWAITING REVIEW"
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
MIN_MESSAGE_LENGTH = 100
"""Prolific requires at least this many characters to explain a rejection."""
_BATCH_SIZE = 100
_MAX_CHECKS = 5
"""How often `approve` checks on Prolific whether the submissions are approved."""


@dataclass(frozen=True, slots=True)
class Review:
    """Whether one submission passes the rule for approval, and why."""

    submission: str
    participant: str
    passes: bool
    reason: str


def review_submissions(study: Study, submissions: Iterable[dict[str, Any]]) -> list[Review]:
    """Review the submissions that await it: all tasks answered, the right completion code, checks passed."""
    codes, results, excluded = ledger_of(study).codes, study.quality.check_results(), study.annotators.excluded
    reviews = []
    for data in submissions:
        status = read_submission(data, 0.0)
        if status.status == AWAITING_REVIEW:
            objection = _objection(study, status, data.get("study_code"), codes, results, excluded)
            reason = objection or _work_summary(study, status, results)
            reviews.append(Review(status.submission, status.participant, not objection, reason))
    return reviews


def _work_summary(study: Study, status: SubmissionStatus, results: dict[str, tuple[int, int]]) -> str:
    progress = study.annotators.progress(status.participant)
    answered = f"{progress.answered}" + ("" if progress.limit is None else f" of {progress.limit}") + " answered"
    right, checks = results.get(status.participant, (0, 0))
    return f"{answered}, {right} of {checks} checks right" if checks else answered


def _objection(
    study: Study,
    status: SubmissionStatus,
    code: str | None,
    codes: dict[str, str],
    results: dict[str, tuple[int, int]],
    excluded: dict[str, str],
) -> str:
    """Return the first reason against approving a submission; empty if it passes the rule."""
    name = status.participant
    sessions = {arrival.session for arrival in study.recruitment.arrivals_of(name)}
    progress, summary = study.annotators.progress(name), _work_summary(study, status, results)
    rule = study.config.quality.checks
    right, checks = results.get(name, (0, 0))
    objections = [
        (not sessions, "never opened the study"),
        (bool(sessions) and not sessions & {status.submission, ""}, "opened the study, but with another submission"),
        (name in excluded, f"excluded: {excluded.get(name)}"),
        (progress.qualified is False, "failed the qualification test"),
        (progress.answered == 0 or progress.answered < (progress.limit or 0), summary),
        (bool(code) and code != codes.get("completed"), f"{summary}, but submitted a different completion code"),
        (rule is not None and right < rule.min_accuracy * checks, summary),
    ]
    return next((reason for holds, reason in objections if holds), "")


def approve(client: Client, study: Study, reviews: list[Review]) -> int:
    """Approve submissions; return how many of them no longer await review on Prolific. Repeating it is harmless."""
    submissions = {review.submission for review in reviews}
    remaining = sorted(submissions)
    for check in range(_MAX_CHECKS):
        for start in range(0, len(remaining), _BATCH_SIZE):
            try:
                client.approve(remaining[start : start + _BATCH_SIZE])
            except UnsureError:
                continue  # The check below shows whether it was carried out.
        if client.dry:
            return 0
        remaining = sorted(submissions & _awaiting_review(client, study))
        if not remaining:
            break
        if check < _MAX_CHECKS - 1:
            client.wait(1.0)
    return len(submissions) - len(remaining)


def _awaiting_review(client: Client, study: Study) -> set[str]:
    statuses = (read_submission(data, 0.0) for data in sync(client, study).submissions)
    return {status.submission for status in statuses if status.status == AWAITING_REVIEW}


def reject(client: Client, study: Study, participants: list[str], category: str, message: str) -> int:
    """Reject the submissions of these participants, with a message that they read; return how many."""
    check_rejection(category, message)
    submissions, at = client.submissions(drafted_id(study))
    statuses = (read_submission(data, at) for data in submissions)
    by_participant = {
        status.participant: status for status in statuses if status.status in {AWAITING_REVIEW, "REJECTED"}
    }
    missing = [name for name in participants if name not in by_participant]
    if missing:
        raise PlatformError(
            f"no submission of '{missing[0]}' awaits review.", "See: steelyard prolific status --format csv"
        )
    # An earlier run of this command may have rejected some of them.
    for name in participants:
        status = by_participant[name]
        if status.status != AWAITING_REVIEW:
            continue
        try:
            client.reject(status.submission, category, message)
        except UnsureError:
            if status.submission in _awaiting_review(client, study):
                raise
    if not client.dry:
        sync(client, study)
    return len(participants)


def check_rejection(category: str, message: str) -> None:
    """Refuse a rejection that Prolific would refuse."""
    if category not in CATEGORIES:
        raise ConfigError(f"'{category}' is not one of Prolific's categories.", f"Use one of: {', '.join(CATEGORIES)}.")
    if len(message.strip()) < MIN_MESSAGE_LENGTH:
        raise ConfigError(
            f"the message has {len(message.strip())} characters; Prolific requires {MIN_MESSAGE_LENGTH} or more.",
            "Explain to the participant what was wrong.",
        )
