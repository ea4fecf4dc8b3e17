"""When Prolific fails, against a stand-in; and what is never sent: a dry run's requests, a token in the clear."""

from __future__ import annotations

import time
from typing import Any

import pytest

from steelyard.errors import ConfigError
from steelyard.recruitment import bonuses
from steelyard.recruitment.client import Client
from steelyard.recruitment.ledger import PlatformLedger
from steelyard.recruitment.prolific import drafted_id
from steelyard.study import Study
from tests.recruitment.at_prolific import OWED, only, platform_ledger
from tests.recruitment.conftest import work
from tests.recruitment.platform import RefusedError
from tests.recruitment.standin import TOKEN

# When the platform fails


@pytest.mark.parametrize("trouble", ["429", "500", "500 after", "lost", "lost after"])
def test_one_trouble_on_the_way_changes_nothing_in_the_end(prolific, platform, folder, trouble):
    """Every request fails the first time it is sent; what cannot be sent blindly is looked up."""
    sent = set()

    def disturb(number, request):
        first = request not in sent
        sent.add(request)
        return trouble if first else None

    def patiently(*command: str) -> None:
        for _ in range(8):
            try:
                prolific(*command)
            except AssertionError:
                continue
            return
        raise AssertionError(command)

    platform.on_request = disturb
    patiently("draft")
    patiently("publish", "--yes")
    work(folder, platform, "p1")
    patiently("sync")
    patiently("approve", "--yes")
    patiently("bonus", "--yes", "--grace", "0")
    assert (len(platform.studies), only(platform)["status"]) == (1, "ACTIVE")
    assert platform.balance == 1_000_000 - 840 - round(65 * 1.4)
    assert (platform.paid("reward"), platform.paid("bonus")) == ({"p1": 200}, {"p1": 65})


def test_an_answer_that_takes_too_long_counts_as_lost(approved, folder, standin):
    """The request is carried out while nobody waits any more: read again, it may be; paid again, it may not."""
    approved.on_done = lambda number, request: time.sleep(0.8) if request.endswith("/pay/") else None
    options: dict[str, Any] = {"grace_minutes": 1.0, "send_again": lambda _: True}
    with Study.open(folder) as study, Client(TOKEN, address=standin.url, timeout=0.3) as client:
        listed, _ = client.submissions(drafted_id(study))
        with pytest.raises(bonuses.PendingError, match="the payment may have been made"):
            bonuses.pay_owed(client, study, OWED, OWED, listed, **options)
        batch = PlatformLedger.of(study.recruitment.steps()).open_batch
        assert bonuses.complete_batch(client, study, batch, **options)
    assert approved.paid("bonus") == OWED


def test_a_rate_limit_is_waited_out(prolific, platform):
    platform.troubles.extend(["429", "429"])
    began = time.monotonic()
    prolific("draft")
    assert time.monotonic() - began >= 2
    assert len(platform.studies) == 1


def test_a_platform_that_is_away_is_said_in_a_sentence(prolific, standin):
    standin.stop()
    output = prolific("draft", code=1).stderr
    assert "Prolific cannot be reached" in output
    assert "Traceback" not in output


# Dry runs and the token


def test_a_dry_run_prints_every_request_and_changes_nothing(prolific, platform, folder, standin):
    prolific("draft", "--dry-run")
    assert platform.studies == {}
    assert platform_ledger(folder).key == ""
    prolific("draft")
    assert "The draft would be updated:" in prolific("draft", "--dry-run").stdout
    output = prolific("publish", "--dry-run").stdout
    assert f"POST {standin.url}/api/v1/studies/{only(platform)['id']}/transition/" in output
    assert '"action": "PUBLISH"' in output
    assert only(platform)["status"] == "UNPUBLISHED"
    prolific("publish", "--yes")
    work(folder, platform, "p1")
    assert "POST" in prolific("approve", "--dry-run").stdout
    prolific("approve", "--yes")
    before = platform.snapshot(), platform_ledger(folder)
    output = prolific("bonus", "--dry-run").stdout
    assert '"csv_bonuses": "p1,0.65"' in output
    assert "/pay/" in output
    prolific("stop", "--dry-run")
    prolific("sync", "--dry-run")
    assert (platform.snapshot(), platform_ledger(folder)) == before


def test_a_dry_run_of_the_draft_needs_no_token(prolific, platform, monkeypatch):
    monkeypatch.delenv("STEELYARD_PROLIFIC_TOKEN")
    output = prolific("draft", "--dry-run").stdout
    assert "POST" in output
    # Three places at four tasks of 0.50.
    assert "The draft would be created on Prolific, unpublished:" in output
    assert "3 participants, $6.00 in total, without fees and taxes" in output
    assert "living in United States or United Kingdom, fluent in English, approval rate of 99 % or more" in output
    assert "Each participant gets 4 tasks" in output
    assert "Dry run: nothing was changed on Prolific" in output
    assert "the number of 'United States'" in output
    assert platform.requests == []
    assert "STEELYARD_PROLIFIC_TOKEN" in prolific("draft", code=1).stderr


def test_the_token_appears_nowhere(prolific, platform, folder, caplog, monkeypatch):
    caplog.set_level("DEBUG")
    printed: list[str] = []

    def refuse(what: str) -> None:
        raise RefusedError(400, what)

    def keep(*command: str, code: int = 0, text: str = "") -> None:
        printed.extend(prolific(*command, code=code, text=text))

    keep("draft", "--dry-run")
    keep("draft")
    keep("publish", "--dry-run")
    keep("publish", "--yes")
    work(folder, platform, "p1")
    keep("sync")
    keep("approve", "--yes")
    keep("bonus", "--dry-run")
    keep("bonus", "--yes")
    keep("status")
    # A platform that says it back in an error.
    monkeypatch.setattr(platform, "answer", lambda *_: refuse(f"you sent {TOKEN}"))
    keep("status", code=1)
    assert "you sent •••" in printed[-1]
    assert TOKEN not in "".join(printed)
    assert TOKEN not in caplog.text
    for path in folder.rglob("*"):
        assert TOKEN.encode() not in path.read_bytes(), path


def test_a_wrong_token_is_said(prolific, monkeypatch):
    monkeypatch.setenv("STEELYARD_PROLIFIC_TOKEN", "another-token-of-somebody")
    output = prolific("draft", code=1).stderr
    assert "does not accept the token" in output
    assert "another-token" not in output


def test_a_token_goes_nowhere_in_the_clear():
    with pytest.raises(ConfigError, match="not a safe address"):
        Client("t", address="http://api.example.org")
