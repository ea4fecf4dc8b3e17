"""Bonuses through bad luck of every kind: at no time has anybody got more than was owed, in the end all have it."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from steelyard.recruitment import bonuses
from steelyard.recruitment.client import Client, PlatformError
from steelyard.recruitment.prolific import drafted_id, ledger_of
from steelyard.study import Study
from tests.recruitment.conftest import work
from tests.recruitment.standin import TOKEN
from tests.sizes import FULL

TROUBLES = ["429", "500", "500 after", "lost", "lost after"]
PEOPLE = ("p1", "p2", "p3")
GRACE_SECONDS = 0.5
"""Ten times as long as a payment takes to appear on the stand-in."""


@pytest.mark.parametrize("seed", range(4 if FULL else 2))
def test_nobody_ever_gets_more_than_is_owed(seed, prolific, platform, folder, standin, monkeypatch):
    chance = random.Random(seed)
    monkeypatch.setattr(bonuses, "BATCH_SIZE", 2)
    prolific("draft")
    prolific("publish", "--yes")
    for name in PEOPLE:
        work(folder, platform, name)
    prolific("approve", "--yes")
    platform.pay_delay = 0.05
    earned = dict.fromkeys(PEOPLE, 0)
    by_hand = dict.fromkeys(PEOPLE, 0)

    def pay(*, calm: bool) -> None:
        """Run `bonus` once, as the command does; it waits long enough for payments to show, or not at all."""
        options: dict[str, Any] = {
            "grace_minutes": GRACE_SECONDS / 60,
            "send_again": lambda _: calm or chance.random() < 0.7,
        }
        with Study.open(folder) as study, Client(TOKEN, address=standin.url, sleep=lambda _: None) as client:
            begun = ledger_of(study).open_batch
            if begun is not None:
                bonuses.complete_batch(client, study, begun, **options)
            listed, _ = client.submissions(drafted_id(study))
            if ledger_of(study).open_batch is None:
                bonuses.pay_owed(client, study, earned, earned, listed, **options)

    def check() -> None:
        got = platform.paid("bonus")
        for name in PEOPLE:
            assert got.get(name, 0) + by_hand[name] <= max(earned[name], by_hand[name]), (name, got, earned, by_hand)

    for _ in range(14):
        for name in PEOPLE:
            earned[name] += chance.choice([0, 0, 10, 35])
        with Study.open(folder) as study:
            no_open_batch = ledger_of(study).open_batch is None
        if no_open_batch and chance.random() < 0.2:
            name = chance.choice(PEOPLE)
            by_hand[name] += 20
            earned[name] = max(earned[name], by_hand[name] + platform.paid("bonus").get(name, 0))
            next(s for s in platform.submissions.values() if s["participant_id"] == name)["bonus_payments"].append(20)
        platform.troubles.clear()
        platform.troubles.extend(chance.choice([*TROUBLES, None, None, None]) for _ in range(4))
        try:
            pay(calm=False)
        except PlatformError:
            time.sleep(chance.choice([0, 0, 0.06, 1.05 * GRACE_SECONDS]))
        check()
    platform.troubles.clear()
    for _ in range(3):
        time.sleep(1.05 * GRACE_SECONDS)
        pay(calm=True)
        check()
    got = platform.paid("bonus")
    assert {name: got.get(name, 0) + by_hand[name] for name in PEOPLE} == earned
