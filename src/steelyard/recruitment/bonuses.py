"""Bonuses on Prolific, paid exactly once.

Prolific pays a batch each time it receives the request, some minutes later, and has no way to look up whether it did.
It does list the bonuses that each participant has received. So the ledger holds every step: a batch is planned, set up
(which pays nothing), and marked as being paid before the one request that pays is sent. Only one process can set that
mark. If a batch is marked but not confirmed, nothing is sent: either Prolific lists the bonuses, and the batch is
closed; or they are still missing after a grace period, and the researcher decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steelyard.errors import ConfigError
from steelyard.recruitment.client import Client, PlatformError, UnsureError
from steelyard.recruitment.ledger import Batch, PlatformLedger, read_submission
from steelyard.recruitment.prolific import drafted_id, ledger_of
from steelyard.study import Study
from steelyard.study import events as ev
from steelyard.study.recruitment_state import PlatformStep

BATCH_SIZE = 200
"""Maximum number of participants in a batch."""
GRACE_MINUTES = 60.0
"""How long a requested payment may take to appear; Prolific pays "in the following minutes"."""
_SET_UP_ATTEMPTS = 3
_CONCURRENT = "another command is processing bonuses."


class PendingError(PlatformError):
    """A payment was requested, and it is too early to tell whether it was made."""


def earned_bonuses(study: Study) -> dict[str, int]:
    """Return the bonus of each annotator by the study's formula, in minor units; refuse a study without a formula."""
    if study.config.pay.formula is None:
        raise ConfigError("the study pays no bonus.", "Add a formula to study.toml: bonus in [pay].", field="pay.bonus")
    table = study.annotators.pay()
    return {name: round(amount * 100) for name, amount in zip(table["annotator"], table["bonus"], strict=True)}


def received_bonuses(submissions: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the bonuses of each participant that Prolific lists, in minor units."""
    received: dict[str, int] = {}
    for data in submissions:
        paid = [one.get("amount", 0) if isinstance(one, Mapping) else one for one in data.get("bonus_payments") or []]
        participant = read_submission(data, 0.0).participant
        received[participant] = received.get(participant, 0) + round(sum(float(amount) for amount in paid))
    return received


def still_owed(
    earned: Mapping[str, int], ledger: PlatformLedger, submissions: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the bonuses owed to participants whose work is approved, and those that all participants have received.

    The larger of the ledger's and Prolific's amounts is subtracted: a bonus paid by hand counts, and so does one that
    Prolific does not list yet.
    """
    received, promised = received_bonuses(submissions), ledger.bonuses()
    approved = {s.participant for data in submissions if (s := read_submission(data, 0.0)).status == "APPROVED"}
    owed = {
        name: amount - max(received.get(name, 0), promised.get(name, 0))
        for name, amount in earned.items()
        if name in approved
    }
    return {name: amount for name, amount in sorted(owed.items()) if amount > 0}, received


def pay_owed(
    client: Client,
    study: Study,
    earned: Mapping[str, int],
    agreed: Mapping[str, int],
    submissions: Sequence[Mapping[str, Any]],
    *,
    grace_minutes: float,
    send_again: Callable[[Batch], bool],
) -> int:
    """Pay the bonuses that the researcher agreed to, batch by batch; return the total in minor units.

    The amounts owed are computed again before each batch: another command may have paid some of them meanwhile.
    """
    paid = 0
    while True:
        ledger = ledger_of(study)
        owed, received = still_owed(earned, ledger, submissions)
        remaining = {name: amount for name, amount in owed.items() if name in agreed}
        if not remaining:
            return paid
        batch = plan_batch(study, remaining, received, ledger)
        paid += batch.total * complete_batch(client, study, batch, grace_minutes=grace_minutes, send_again=send_again)


def plan_batch(study: Study, owed: Mapping[str, int], received: Mapping[str, int], ledger: PlatformLedger) -> Batch:
    """Record the next batch of bonuses; refuse if another command has recorded one since `ledger` was read."""
    names = list(owed)[:BATCH_SIZE]
    promised = ledger.bonuses()
    step = ev.BonusPlanned(
        amounts={name: owed[name] for name in names},
        # The larger of the two: Prolific may not list a recent payment yet.
        before={name: max(received.get(name, 0), promised.get(name, 0)) for name in names},
    )

    def decide(steps: Sequence[PlatformStep]) -> ev.PlatformEvent | None:
        now = PlatformLedger.of(steps)
        return step if now.open_batch is None and len(now.batches) == len(ledger.batches) else None

    if study.recruitment.record(decide) is None:
        raise PlatformError(_CONCURRENT, "Wait until it has finished, then run this command again.")
    return ledger_of(study).batches[-1]


def complete_batch(
    client: Client,
    study: Study,
    batch: Batch,
    *,
    grace_minutes: float,
    send_again: Callable[[Batch], bool],
    now: Callable[[], float] = time.time,
) -> bool:
    """Complete a batch from whatever state it is in; return whether it is paid.

    `send_again` decides whether to repeat a payment that Prolific does not list after the grace period.
    """
    study_id = drafted_id(study)
    if batch.state == "planned":
        batch = _set_up(client, study, study_id, batch)
    if batch.state == "set up":
        return _pay(client, study, batch)
    submissions, _ = client.submissions(study_id)
    received = received_bonuses(submissions)
    # A batch is paid as a whole: one bonus that is listed proves that the request was carried out.
    if any(received.get(name, 0) >= batch.before[name] + amount for name, amount in batch.amounts.items()):
        _record(study, batch, ev.BonusPaid(batch=batch.number))
        return True
    waited = now() - batch.requested_at / 1e6
    if waited < grace_minutes * 60:
        raise PendingError(
            f"a payment of {batch.total / 100:,.2f} was requested {waited / 60:.0f} minutes ago; no response "
            f"arrived, and Prolific does not list it yet.",
            f"Nothing was sent. Run this again in {grace_minutes - waited / 60:.0f} minutes: if Prolific does not "
            "list the payment by then, you are asked whether to send it again.",
        )
    return send_again(batch) and _pay(client, study, batch)


def _set_up(client: Client, study: Study, study_id: str, batch: Batch) -> Batch:
    for _ in range(_SET_UP_ATTEMPTS):
        try:
            created = client.set_up_bonuses(study_id, batch.amounts)
        except UnsureError:
            continue  # A batch that is set up but never paid costs nothing.
        except PlatformError:
            _record(study, batch, ev.BonusDropped(batch=batch.number))
            raise
        amount = created.get("amount")
        if amount is not None and round(float(amount)) != batch.total:
            _record(study, batch, ev.BonusDropped(batch=batch.number))
            raise PlatformError(
                f"Prolific reports {float(amount) / 100:,.2f} for bonuses that add up to {batch.total / 100:,.2f}.",
                "Nothing was paid. Check your account's currency.",
            )
        _record(study, batch, ev.BonusCreated(batch=batch.number, id=str(created["id"])))
        return _batch(study, batch.number)
    raise PlatformError("Prolific did not confirm the bonuses.", "Nothing was paid. Run this again.")


def _pay(client: Client, study: Study, batch: Batch) -> bool:
    _record(study, batch, ev.BonusRequested(batch=batch.number, attempt=batch.attempts + 1))
    batch = _batch(study, batch.number)
    try:
        client.pay_bonuses(batch.id)
    except UnsureError as error:
        raise PendingError(
            f"Prolific did not respond to the request to pay {batch.total / 100:,.2f}; the payment may have been made.",
            "Run this again later: it checks on Prolific before sending anything.",
        ) from error
    except PlatformError:
        # Refused before anything was paid, so it may be requested again.
        _record(study, batch, ev.BonusCreated(batch=batch.number, id=batch.id))
        raise
    _record(study, batch, ev.BonusPaid(batch=batch.number))
    return True


def _record(study: Study, batch: Batch, step: ev.PlatformEvent) -> None:
    """Record a step of a batch; refuse if another process has recorded one since."""

    def decide(steps: Sequence[PlatformStep]) -> ev.PlatformEvent | None:
        now = PlatformLedger.of(steps).batches[batch.number - 1]
        return step if (now.state, now.attempts) == (batch.state, batch.attempts) else None

    if study.recruitment.record(decide) is None:
        raise PlatformError(_CONCURRENT, "Wait until it has finished, then run this command again.")


def _batch(study: Study, number: int) -> Batch:
    return ledger_of(study).batches[number - 1]
