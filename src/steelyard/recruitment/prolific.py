"""A study on Prolific: draft, publish, add places, sync submissions, stop.

Every step reads the state on Prolific first and records in the log what it is about to do. So each command can be run
again after it was killed at any point, and completes what remains to be done.
"""

from __future__ import annotations

import secrets
import string
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from steelyard.errors import ConfigError, did_you_mean
from steelyard.recruitment.client import Client, PlatformError, UnsureError
from steelyard.recruitment.estimates import reward, whole_minutes
from steelyard.recruitment.ledger import ENDED_STATUSES, PlatformLedger, read_submission
from steelyard.recruitment.links import link_template
from steelyard.recruitment.submissions import record_status
from steelyard.study import Study
from steelyard.study import events as ev
from steelyard.study.config.tables import Link, Prolific

MARKS = ("{{%PROLIFIC_PID%}}", "{{%STUDY_ID%}}", "{{%SESSION_ID%}}")
"""Placeholders in a link that Prolific replaces by the participant, the study and the submission."""
_TRIES = 4
_CODE_SIGNS = string.ascii_uppercase + string.digits
_PUBLIC = {"ACTIVE", "SCHEDULED", "PUBLISHING", "PAUSED", "AWAITING REVIEW", "COMPLETED"}


def prolific_table(study: Study) -> tuple[Prolific, Link]:
    """Return the study's settings for Prolific; refuse a study without them."""
    table, link = study.config.prolific, study.config.link
    if table is None or link is None:
        raise ConfigError(
            "study.toml has no [prolific] table.",
            "Add [prolific] with places. See: steelyard docs crowd",
            field="prolific",
        )
    return table, link


def ledger_of(study: Study) -> PlatformLedger:
    """Read the ledger."""
    return PlatformLedger.of(study.recruitment.steps())


def drafted_id(study: Study) -> str:
    """Return Prolific's id of the study; refuse one that was not drafted."""
    study_id = ledger_of(study).study_id
    if not study_id:
        raise ConfigError(
            "the study is not on Prolific yet.", f"Draft it first: steelyard prolific draft {study.folder}"
        )
    return study_id


# Drafting


def new_code() -> str:
    """Make a completion code that cannot be guessed."""
    return "".join(secrets.choice(_CODE_SIGNS) for _ in range(10))


def draft(client: Client, study: Study, base: str, slug: str) -> str:
    """Create an unpublished study on Prolific, or update the draft; return its id there."""
    body = study_body(client, study, base, slug, _plan_draft(client, study))
    study_id = ledger_of(study).study_id
    if study_id:
        _update_draft(client, study, study_id, body)
        return study_id
    created_id = str(_find_or_create(client, body)["id"])
    if not client.dry:
        study.recruitment.record(
            lambda steps: None if PlatformLedger.of(steps).study_id else ev.DraftCreated(study=created_id)
        )
    return created_id


def _plan_draft(client: Client, study: Study) -> PlatformLedger:
    """Record the internal name and the completion codes of the draft, unless they are recorded already."""
    _, link = prolific_table(study)
    kinds = ("completed", "screened_out", "failed")
    codes = {kind: getattr(link, kind) or new_code() for kind in kinds}
    # The draft is found again by this name if the answer with its id is lost.
    key = f"{study.config.name or study.folder.resolve().name} (steelyard {secrets.token_hex(4)})"
    if client.dry:
        ledger = ledger_of(study)
        return ledger if ledger.key else replace(ledger, key=key, codes=dict.fromkeys(kinds, "CODE"))
    step = ev.DraftPlanned(key=key, codes=codes)
    study.recruitment.record(lambda steps: None if PlatformLedger.of(steps).key else step)
    return ledger_of(study)


def _find_or_create(client: Client, body: dict[str, Any]) -> dict[str, Any]:
    for _ in range(_TRIES):
        draft = client.find_study(body["internal_name"])
        if draft is not None:
            return draft
        try:
            return client.create_study(body)
        except UnsureError:
            continue
    raise PlatformError("Prolific did not confirm the draft.", "Run the same command again.")


def _update_draft(client: Client, study: Study, study_id: str, body: dict[str, Any]) -> None:
    current = client.study(study_id)
    published = current.get("status") != "UNPUBLISHED"
    table, _ = prolific_table(study)
    # Values computed from answers change as these arrive; participants were promised the values at publication.
    computed = set() if table.estimated_minutes is not None else {"estimated_completion_time"}
    if table.estimated_minutes is None and table.reward is None and study.config.pay.per_hour:
        computed.add("reward")
    changes = {key: value for key, value in body.items() if not _same(current.get(key), value)}
    changes = {key: value for key, value in changes.items() if not (published and key in computed)}
    if not changes:
        return
    if published:
        raise PlatformError(
            f"the study is published, so Prolific does not allow changes to {', '.join(sorted(changes))}.",
            "Undo these changes. To add places: steelyard prolific publish",
        )
    client.update_study(study_id, changes)


def _same(current: Any, expected: Any) -> bool:
    """Whether a value on Prolific is as expected; its objects may have further keys."""
    if isinstance(expected, dict):
        return isinstance(current, dict) and all(_same(current.get(key), value) for key, value in expected.items())
    if isinstance(expected, list):
        return (
            isinstance(current, list)
            and len(current) == len(expected)
            and all(_same(a, b) for a, b in zip(current, expected, strict=True))
        )
    return bool(current == expected)


def study_body(client: Client, study: Study, base: str, slug: str, ledger: PlatformLedger) -> dict[str, Any]:
    """Return the body of the request that creates the study on Prolific."""
    table, link = prolific_table(study)
    body: dict[str, Any] = {
        "name": table.name or study.config.title,
        "internal_name": ledger.key,
        "description": table.description or study.config.question,
        "external_study_url": link_template(link, base, slug, MARKS),
        "prolific_id_option": "url_parameters",
        "completion_codes": _completion_codes(table, ledger.codes),
        "total_available_places": ledger.places or table.places,
        "estimated_completion_time": whole_minutes(study),
        "reward": reward(study),
        "device_compatibility": list(table.devices),
        "filters": _filters(client, table),
        "submissions_config": {"max_submissions_per_participant": 1},
    }
    return body | ({"project": table.project} if table.project is not None else {})


def _completion_codes(table: Prolific, codes: dict[str, str]) -> list[dict[str, Any]]:
    if table.screen_out_reward is None:
        reason = "The short test before the study was not passed, or no tasks were left."
        screened: dict[str, Any] = {"action": "REQUEST_RETURN", "return_reason": reason}
    else:
        screened = {
            "action": "FIXED_SCREEN_OUT_PAYMENT",
            "fixed_screen_out_reward": round(table.screen_out_reward * 100),
            "slots": table.screen_out_places,
        }
    paid = table.screen_out_reward is not None
    return [
        {"code": codes["completed"], "code_type": "COMPLETED", "actions": [{"action": "MANUALLY_REVIEW"}]},
        {"code": codes["screened_out"], "code_type": "FIXED_SCREENOUT" if paid else "OTHER", "actions": [screened]},
        {"code": codes["failed"], "code_type": "FAILED_ATTENTION_CHECK", "actions": [{"action": "MANUALLY_REVIEW"}]},
    ]


def _filters(client: Client, table: Prolific) -> list[dict[str, Any]]:
    chosen: list[dict[str, Any]] = []
    named = {"current-country-of-residence": table.countries, "fluent-languages": table.languages}
    if any(named.values()):
        # Prolific defines the ids of the choices, so they are looked up each time.
        choices = {str(one.get("filter_id")): one.get("choices") or {} for one in client.filters()}
        for name, labels in named.items():
            if labels:
                chosen.append({"filter_id": name, "selected_values": _choice_ids(client, name, labels, choices)})
    ranges = {"approval_rate": (table.min_approval_rate, 100), "approval_numbers": (table.min_approved, 100_000)}
    for name, (lower, upper) in ranges.items():
        if lower is not None:
            chosen.append({"filter_id": name, "selected_range": {"lower": lower, "upper": upper}})
    return chosen


def _choice_ids(client: Client, name: str, labels: list[str], choices: dict[str, dict[str, str]]) -> list[str]:
    if client.dry and not choices:
        return [f"the number of '{label}'" for label in labels]
    if name not in choices:
        raise PlatformError(
            f"Prolific no longer has the filter '{name}'.", "Please report this to the developers of Steelyard."
        )
    ids = {label: choice_id for choice_id, label in choices[name].items()}
    for label in labels:
        if label not in ids:
            raise ConfigError(f"Prolific does not know '{label}'.", did_you_mean(label, list(ids)), field="prolific")
    return [ids[label] for label in labels]


# Publishing


@dataclass(frozen=True, slots=True)
class Offer:
    """What publishing would do: places now and afterwards, and the cost in minor units."""

    study_id: str
    status: str
    places_now: int
    places: int
    pilot: bool
    reward: int
    minutes: int
    cost: int | None

    @property
    def published(self) -> bool:
        """Whether the study is already public, so that publishing only adds places."""
        return self.status in _PUBLIC

    @property
    def nothing_to_do(self) -> bool:
        """Whether the study is public with the configured number of places."""
        return self.published and self.places == self.places_now


def offer(client: Client, study: Study, pilot: int | None = None) -> Offer:
    """Return what publishing would do and cost, without changing anything."""
    table, _ = prolific_table(study)
    study_id = drafted_id(study) if not client.dry else ledger_of(study).study_id or "STUDY"
    current = client.study(study_id)
    status = str(current.get("status", "")).upper()
    now = int(current.get("total_available_places", 0))
    places = table.places if pilot is None else min(pilot, table.places)
    if status in _PUBLIC and places < now:
        raise PlatformError(
            f"the study has {now} places on Prolific, and their number can only be increased.",
            f"Set places in [prolific] to {now} or more, or stop the study: steelyard prolific stop {study.folder}",
        )
    paid = int(current.get("reward", 0)) or reward(study)
    cost = client.cost(paid, places)
    if status in _PUBLIC and cost is not None and now:
        before = client.cost(paid, now) if places > now else cost
        cost = None if before is None else cost - before
    minutes = int(current.get("estimated_completion_time", 0)) or whole_minutes(study)
    return Offer(study_id, status, now, places, pilot is not None, paid, minutes, cost)


def publish(client: Client, study: Study, offer: Offer) -> None:
    """Publish the study, or add places to a published one."""
    step = ev.PublicationPlanned(places=offer.places, pilot=offer.pilot, cost=offer.cost)
    if not client.dry and not offer.nothing_to_do:
        study.recruitment.record(lambda _: step)
    if offer.places != offer.places_now:
        client.update_study(offer.study_id, {"total_available_places": offer.places})
    if not offer.published:
        _transition(client, offer.study_id, "PUBLISH", _PUBLIC)


def stop(client: Client, study: Study) -> str:
    """Stop the study on Prolific, which is final; return its status there."""
    study_id = drafted_id(study)
    _transition(client, study_id, "STOP", {"AWAITING REVIEW", "COMPLETED"})
    return str(client.study(study_id).get("status", ""))


def _transition(client: Client, study_id: str, action: str, reached: set[str]) -> None:
    for _ in range(_TRIES):
        if str(client.study(study_id).get("status", "")).upper() in reached:
            return
        try:
            client.transition(study_id, action)
        except UnsureError:
            continue
        return
    raise PlatformError(f"Prolific did not confirm: {action}.", "Run the same command again.")


# Syncing


@dataclass(frozen=True, slots=True)
class SyncResult:
    """All submissions as Prolific lists them, how many have changed, and how many tasks that released."""

    submissions: list[dict[str, Any]]
    changed: int
    released_tasks: int

    def status_counts(self) -> dict[str, int]:
        """Number of submissions by status."""
        return dict(sorted(Counter(read_submission(data, 0.0).status for data in self.submissions).items()))


def sync(client: Client, study: Study) -> SyncResult:
    """Record the statuses of all submissions; tasks of participants who returned theirs are released."""
    study_id = drafted_id(study)
    submissions, at = client.submissions(study_id)
    ledger = ledger_of(study)
    arrivals, departed = study.recruitment.arrivals, study.recruitment.departed
    changed = released_tasks = 0
    for data in submissions:
        status = read_submission(data, at)
        # A recorded status is applied again if the command that recorded it was killed before it applied it.
        stale = (status.status in ENDED_STATUSES) != (status.participant in departed)
        if client.dry or status.participant not in arrivals or not (ledger.is_new(status) or stale):
            continue
        released = record_status(study, status, "sync")
        changed += released is not None
        released_tasks += released or 0
    return SyncResult(submissions, changed, released_tasks)
