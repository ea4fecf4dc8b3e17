"""Bonuses, paid once.

Prolific pays a batch every time it is asked to, some minutes later, and cannot be asked whether it did. What it does
tell is which bonuses each participant got. So the ledger hold every step: a batch is planned, set up (which pays
nothing), and marked as being paid before the one request that pays is sent. Only one process can make that mark.
When a batch is found marked and not confirmed, nothing is sent: either Prolific shows the money, and the batch is
closed; or enough time passes for it to show, and a person decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steelyard.recruitment.client import Client, PlatformError, UnsureError
from steelyard.recruitment.ledger import Batch, PlatformLedger, sighting_of
from steelyard.recruitment.prolific import drafted_id, ledger_of
from steelyard.study import Study
from steelyard.study import events as ev
from steelyard.study.recruitment_state import PlatformStep

AT_ONCE = 200
"""So many participants in one batch, at most."""
GRACE_MINUTES = 60.0
"""How long a payment that was asked for may take to show on Prolific, where it is made "in the following minutes"."""
_SET_UPS = 3
_SOMEBODY_ELSE = "another command is dealing with bonuses at this moment."


class PendingError(PlatformError):
    """A payment was asked for, and it is too early to say whether it was made."""


def bonuses_shown(submissions: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return what Prolific says each participant got on top, in minor units."""
    shown: dict[str, int] = {}
    for data in submissions:
        paid = [one.get("amount", 0) if isinstance(one, Mapping) else one for one in data.get("bonus_payments") or []]
        participant = sighting_of(data, 0.0).participant
        shown[participant] = shown.get(participant, 0) + round(sum(float(amount) for amount in paid))
    return shown


def still_owed(
    earned: Mapping[str, int], ledger: PlatformLedger, submissions: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return what is owed to participants whose work was approved, and what Prolific shows as paid to all.

    What is in the ledger and what Prolific shows are both held against it, whichever is more: a bonus paid by hand
    counts, and so does one that does not show yet.
    """
    shown, promised = bonuses_shown(submissions), ledger.bonuses()
    approved = {s.participant for data in submissions if (s := sighting_of(data, 0.0)).status == "APPROVED"}
    owed = {
        name: amount - max(shown.get(name, 0), promised.get(name, 0))
        for name, amount in earned.items()
        if name in approved
    }
    return {name: amount for name, amount in sorted(owed.items()) if amount > 0}, shown


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
    """Pay what was agreed to, batch by batch; return how much it was.

    What is owed is worked out anew before each batch: while somebody was asked, another command may have paid it.
    """
    paid = 0
    while True:
        ledger = ledger_of(study)
        owed, shown = still_owed(earned, ledger, submissions)
        left = {name: amount for name, amount in owed.items() if name in agreed}
        if not left:
            return paid
        batch = plan_batch(study, left, shown, ledger)
        paid += batch.total * carry_on(client, study, batch, grace_minutes=grace_minutes, send_again=send_again)


def plan_batch(study: Study, owed: Mapping[str, int], shown: Mapping[str, int], ledger: PlatformLedger) -> Batch:
    """Write down the next batch of what is owed; refuse if another command has dealt in bonuses since `ledger`."""
    names = list(owed)[:AT_ONCE]
    promised = ledger.bonuses()
    step = ev.BonusPlanned(
        amounts={name: owed[name] for name in names},
        # The larger of the two: what was paid a moment ago may not show on Prolific yet.
        before={name: max(shown.get(name, 0), promised.get(name, 0)) for name in names},
    )

    def decide(steps: Sequence[PlatformStep]) -> ev.PlatformEvent | None:
        now = PlatformLedger.of(steps)
        return step if now.open_batch is None and len(now.batches) == len(ledger.batches) else None

    if study.recruitment.record(decide) is None:
        raise PlatformError(_SOMEBODY_ELSE, "Let it end, then run this again.")
    return ledger_of(study).batches[-1]


def carry_on(
    client: Client,
    study: Study,
    batch: Batch,
    *,
    grace_minutes: float,
    send_again: Callable[[Batch], bool],
    now: Callable[[], float] = time.time,
) -> bool:
    """Bring a batch to its end from wherever it is; return whether it is paid.

    `send_again` is asked whether to send a payment once more that Prolific does not show after the time of grace.
    """
    study_id = drafted_id(study)
    if batch.state == "planned":
        batch = _set_up(client, study, study_id, batch)
    if batch.state == "set up":
        return _pay(client, study, batch)
    listed, _ = client.submissions(study_id)
    shown = bonuses_shown(listed)
    # A batch is paid as a whole: one that shows is proof that the request was carried out.
    if any(shown.get(name, 0) >= batch.before[name] + amount for name, amount in batch.amounts.items()):
        _note(study, batch, ev.BonusPaid(batch=batch.number))
        return True
    waited = now() - batch.requested_at / 1e6
    if waited < grace_minutes * 60:
        raise PendingError(
            f"a payment of {batch.total / 100:,.2f} was asked for {waited / 60:.0f} minutes ago; its answer was lost, "
            "and Prolific does not show it yet.",
            f"Nothing was sent now. Run this again in {grace_minutes - waited / 60:.0f} minutes: by then it shows, or "
            "you are asked whether to send it again.",
        )
    return send_again(batch) and _pay(client, study, batch)


def _set_up(client: Client, study: Study, study_id: str, batch: Batch) -> Batch:
    for _ in range(_SET_UPS):
        try:
            made = client.set_up_bonuses(study_id, batch.amounts)
        except UnsureError:
            continue  # A batch that was set up and is never paid costs nothing.
        except PlatformError:
            _note(study, batch, ev.BonusDropped(batch=batch.number))
            raise
        amount = made.get("amount")
        if amount is not None and round(float(amount)) != batch.total:
            _note(study, batch, ev.BonusDropped(batch=batch.number))
            raise PlatformError(
                f"Prolific makes {float(amount) / 100:,.2f} of bonuses that add up to {batch.total / 100:,.2f}.",
                "Nothing was paid. Check your account's currency.",
            )
        _note(study, batch, ev.BonusCreated(batch=batch.number, id=str(made["id"])))
        return _found(study, batch.number)
    raise PlatformError("Prolific did not answer whether the bonuses were set up.", "Nothing was paid. Run this again.")


def _pay(client: Client, study: Study, batch: Batch) -> bool:
    _note(study, batch, ev.BonusRequested(batch=batch.number, attempt=batch.attempts + 1))
    batch = _found(study, batch.number)
    try:
        client.pay_bonuses(batch.id)
    except UnsureError as error:
        raise PendingError(
            f"no answer came to the request to pay {batch.total / 100:,.2f}; it may have been carried out.",
            "Run this again later: it looks on Prolific before anything is sent.",
        ) from error
    except PlatformError:
        # Refused before anything was paid, so it may be asked for again.
        _note(study, batch, ev.BonusCreated(batch=batch.number, id=batch.id))
        raise
    _note(study, batch, ev.BonusPaid(batch=batch.number))
    return True


def _note(study: Study, batch: Batch, step: ev.PlatformEvent) -> None:
    """Write a step of a batch down, unless another process has taken one since."""

    def decide(steps: Sequence[PlatformStep]) -> ev.PlatformEvent | None:
        now = PlatformLedger.of(steps).batches[batch.number - 1]
        return step if (now.state, now.attempts) == (batch.state, batch.attempts) else None

    if study.recruitment.record(decide) is None:
        raise PlatformError(_SOMEBODY_ELSE, "Let it end, then run this again.")


def _found(study: Study, number: int) -> Batch:
    return ledger_of(study).batches[number - 1]
