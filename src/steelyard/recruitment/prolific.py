"""A study on Prolific: drafted, published, grown, watched and stopped.

Every step reads what is there before it writes, and writes down what it is about to do before it does it. So each
can be run again after it was killed anywhere, and does what is left to do.
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
from steelyard.recruitment.ledger import LEFT, PlatformLedger, sighting_of
from steelyard.recruitment.links import link_template
from steelyard.recruitment.submissions import hear
from steelyard.study import Study
from steelyard.study import events as ev
from steelyard.study.config.tables import Link, Prolific

MARKS = ("{{%PROLIFIC_PID%}}", "{{%STUDY_ID%}}", "{{%SESSION_ID%}}")
"""What Prolific replaces in a link by the participant, the study and the submission."""
_TRIES = 4
_CODE_SIGNS = string.ascii_uppercase + string.digits
_PUBLIC = {"ACTIVE", "SCHEDULED", "PUBLISHING", "PAUSED", "AWAITING REVIEW", "COMPLETED"}


def prolific_table(study: Study) -> tuple[Prolific, Link]:
    """Return the study's settings for Prolific; refuse a study without them."""
    table, link = study.config.prolific, study.config.link
    if table is None or link is None:
        raise ConfigError(
            "study.toml does not say how the study is put to people on Prolific.",
            "Add [prolific] with places; see docs/guides/crowd.md.",
            field="prolific",
        )
    return table, link


def ledger_of(study: Study) -> PlatformLedger:
    """Read the ledger."""
    return PlatformLedger.of(study.recruitment.steps())


def drafted_id(study: Study) -> str:
    """Return Prolific's id of the study; refuse one that was not drafted."""
    found = ledger_of(study).study_id
    if not found:
        raise ConfigError(
            "the study is not on Prolific yet.", f"Draft it first: steelyard prolific draft {study.folder}"
        )
    return found


# Drafting


def new_code() -> str:
    """Make a completion code that cannot be guessed."""
    return "".join(secrets.choice(_CODE_SIGNS) for _ in range(10))


def draft(client: Client, study: Study, base: str, slug: str) -> str:
    """Make the study on Prolific, unpublished, or bring the draft up to date; return its id there."""
    body = study_body(client, study, base, slug, _agreed(client, study))
    known = ledger_of(study).study_id
    if known:
        _bring_up_to_date(client, study, known, body)
        return known
    made = _find_or_create(client, body)
    if not client.dry:
        study.recruitment.record(
            lambda steps: None if PlatformLedger.of(steps).study_id else ev.DraftCreated(study=str(made["id"]))
        )
    return str(made["id"])


def _agreed(client: Client, study: Study) -> PlatformLedger:
    """Write down the name and the codes of the draft, if that was not done before."""
    _, link = prolific_table(study)
    kinds = ("completed", "screened_out", "failed")
    made = {kind: getattr(link, kind) or new_code() for kind in kinds}
    # Known again by this, should the answer with its id be lost.
    key = f"{study.config.name or study.folder.resolve().name} (steelyard {secrets.token_hex(4)})"
    if client.dry:
        ledger = ledger_of(study)
        return ledger if ledger.key else replace(ledger, key=key, codes=dict.fromkeys(kinds, "CODE"))
    step = ev.DraftPlanned(key=key, codes=made)
    study.recruitment.record(lambda steps: None if PlatformLedger.of(steps).key else step)
    return ledger_of(study)


def _find_or_create(client: Client, body: dict[str, Any]) -> dict[str, Any]:
    for _ in range(_TRIES):
        found = client.find_study(body["internal_name"])
        if found is not None:
            return found
        try:
            return client.create_study(body)
        except UnsureError:
            continue
    raise PlatformError("Prolific did not answer whether the draft was made.", "Run the same command again.")


def _bring_up_to_date(client: Client, study: Study, study_id: str, body: dict[str, Any]) -> None:
    there = client.study(study_id)
    published = there.get("status") != "UNPUBLISHED"
    table, _ = prolific_table(study)
    # What is computed from answers moves as they come in; people were told what held when it was published.
    computed = set() if table.estimated_minutes is not None else {"estimated_completion_time"}
    if table.estimated_minutes is None and table.reward is None and study.config.pay.per_hour:
        computed.add("reward")
    changes = {key: value for key, value in body.items() if not _same(there.get(key), value)}
    changes = {key: value for key, value in changes.items() if not (published and key in computed)}
    if not changes:
        return
    if published:
        raise PlatformError(
            f"the study is published, and Prolific lets these no longer change: {', '.join(sorted(changes))}.",
            "Put them back as they were. More places: steelyard prolific publish.",
        )
    client.update_study(study_id, changes)


def _same(there: Any, wanted: Any) -> bool:
    """Whether Prolific has what is wanted; it may say more than it was told."""
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(_same(there.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return (
            isinstance(there, list)
            and len(there) == len(wanted)
            and all(_same(a, b) for a, b in zip(there, wanted, strict=True))
        )
    return bool(there == wanted)


def study_body(client: Client, study: Study, base: str, slug: str, ledger: PlatformLedger) -> dict[str, Any]:
    """Return what is sent to Prolific to make the study."""
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
        reason = "The short test before the study was not passed, or nothing was left to do."
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
        # The numbers of the choices are Prolific's to give out, so they are looked up each time.
        known = {str(one.get("filter_id")): one.get("choices") or {} for one in client.filters()}
        for name, wanted in named.items():
            if wanted:
                chosen.append({"filter_id": name, "selected_values": _choices(client, name, wanted, known)})
    ranges = {"approval_rate": (table.min_approval_rate, 100), "approval_numbers": (table.min_approved, 100_000)}
    for name, (lower, upper) in ranges.items():
        if lower is not None:
            chosen.append({"filter_id": name, "selected_range": {"lower": lower, "upper": upper}})
    return chosen


def _choices(client: Client, name: str, wanted: list[str], known: dict[str, dict[str, str]]) -> list[str]:
    if client.dry and not known:
        return [f"the number of '{word}'" for word in wanted]
    if name not in known:
        raise PlatformError(f"Prolific has no filter '{name}' any more.", "Tell the makers of Steelyard.")
    numbers = {label: number for number, label in known[name].items()}
    for word in wanted:
        if word not in numbers:
            raise ConfigError(f"Prolific does not know '{word}'.", did_you_mean(word, list(numbers)), field="prolific")
    return [numbers[word] for word in wanted]


# Publishing


@dataclass(frozen=True, slots=True)
class Offer:
    """What publishing would do: how many places there are and will be, and what that costs, in minor units."""

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
        """Whether the study is public already, so that only places are added."""
        return self.status in _PUBLIC

    @property
    def nothing_to_do(self) -> bool:
        """Whether all is as it should be."""
        return self.published and self.places == self.places_now


def offer(client: Client, study: Study, pilot: int | None = None) -> Offer:
    """Say what publishing would do and cost. Nothing is changed."""
    table, _ = prolific_table(study)
    study_id = drafted_id(study) if not client.dry else ledger_of(study).study_id or "STUDY"
    there = client.study(study_id)
    status = str(there.get("status", "")).upper()
    now = int(there.get("total_available_places", 0))
    wanted = table.places if pilot is None else min(pilot, table.places)
    if status in _PUBLIC and wanted < now:
        raise PlatformError(
            f"the study has {now} places on Prolific, and places can only grow.",
            f"Set places in [prolific] to {now} or more, or stop the study: steelyard prolific stop {study.folder}",
        )
    paid = int(there.get("reward", 0)) or reward(study)
    cost = client.cost(paid, wanted)
    if status in _PUBLIC and cost is not None and now:
        before = client.cost(paid, now) if wanted > now else cost
        cost = None if before is None else cost - before
    minutes = int(there.get("estimated_completion_time", 0)) or whole_minutes(study)
    return Offer(study_id, status, now, wanted, pilot is not None, paid, minutes, cost)


def publish(client: Client, study: Study, found: Offer) -> None:
    """Publish the study, or give a published one its further places."""
    step = ev.PublicationPlanned(places=found.places, pilot=found.pilot, cost=found.cost)
    if not client.dry and not found.nothing_to_do:
        study.recruitment.record(lambda _: step)
    if found.places != found.places_now:
        client.update_study(found.study_id, {"total_available_places": found.places})
    if not found.published:
        _transition(client, found.study_id, "PUBLISH", _PUBLIC)


def stop(client: Client, study: Study) -> str:
    """Take the study off Prolific for good; return its state there."""
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
    raise PlatformError(f"Prolific did not answer to {action}.", "Run the same command again.")


# Watching


@dataclass(frozen=True, slots=True)
class Synced:
    """What a look at the submissions found."""

    submissions: list[dict[str, Any]]
    news: int
    freed: int

    def counted(self) -> dict[str, int]:
        """How many submissions are in each state."""
        return dict(sorted(Counter(sighting_of(data, 0.0).status for data in self.submissions).items()))


def sync(client: Client, study: Study) -> Synced:
    """Look at all submissions; tasks of those who gave their place back are free for others at once."""
    study_id = drafted_id(study)
    listed, at = client.submissions(study_id)
    ledger = ledger_of(study)
    visits, gone = study.recruitment.arrivals, study.recruitment.departed
    news = freed = 0
    for data in listed:
        sighting = sighting_of(data, at)
        # What is known is acted on too, where the command that heard it was killed before it could.
        stale = (sighting.status in LEFT) != (sighting.participant in gone)
        if client.dry or sighting.participant not in visits or not (ledger.is_news(sighting) or stale):
            continue
        released = hear(study, sighting, "sync")
        news += released is not None
        freed += released or 0
    return Synced(listed, news, freed)
