"""Bonuses on Prolific, against a stand-in with a ledger of its own: paid by the formula, and once."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

from steelyard.recruitment import bonuses
from steelyard.recruitment.client import Client, PlatformError
from steelyard.recruitment.ledger import PlatformLedger
from steelyard.recruitment.prolific import drafted_id
from steelyard.study import Study
from steelyard.study.rebuild import check_chain, read_log, rebuild, write_log
from tests.cli.running import run
from tests.recruitment.at_prolific import OWED, platform_ledger, set_key
from tests.recruitment.conftest import work
from tests.recruitment.standin import TOKEN
from tests.waiting import wait_until


def test_bonuses_by_the_formula_are_paid_once(prolific, approved):
    declined = prolific("bonus", text="n\n", code=1).stdout
    assert "Pay $1.70 to 3 participants?" in declined
    assert approved.paid("bonus") == {}
    assert "$1.70 of bonuses paid" in prolific("bonus", "--yes").stdout
    assert "No bonuses are due" in prolific("bonus", "--yes").stdout
    assert approved.paid("bonus") == OWED


def test_only_the_difference_is_paid_when_the_formula_gives_more(prolific, approved, folder):
    prolific("bonus", "--yes")
    set_key(folder, "0.1 * tasks", "0.2 * tasks")
    prolific("bonus", "--yes")
    assert approved.paid("bonus") == {name: amount + 40 for name, amount in OWED.items()}
    assert len(approved.batches) == 2


def test_a_bonus_paid_by_hand_counts(prolific, approved):
    submission = next(s for s in approved.submissions.values() if s["participant_id"] == "p1")
    submission["bonus_payments"].append(50)
    # Whether it shows already or not.
    approved.pay_delay = 2
    prolific("bonus", "--yes")
    prolific("bonus", "--yes")
    assert approved.paid("bonus") == {**OWED, "p1": 15}
    wait_until(approved.bonuses_are_visible)
    prolific("bonus", "--yes")
    assert approved.paid("bonus") == {**OWED, "p1": 15}


def test_who_is_not_approved_gets_no_bonus(prolific, platform, folder):
    prolific("draft")
    prolific("publish", "--yes")
    work(folder, platform, "p1")
    assert "No bonuses are due" in prolific("bonus", "--yes").stdout


def test_a_payment_whose_answer_was_lost_is_not_sent_again_while_it_may_still_show(prolific, approved, folder):
    approved.pay_delay = 1.5
    approved.on_request = lambda number, request: "lost after" if request.endswith("/pay/") else None
    prolific("bonus", "--yes", code=1)
    sent = [request for request in approved.requests if request.endswith("/pay/")]
    # It was carried out, and does not show yet: whoever is impatient is told to wait.
    waiting = prolific("bonus", "--yes", "--grace", "5", code=1).stderr
    assert "Nothing was sent" in waiting
    assert platform_ledger(folder).open_batch is not None
    wait_until(approved.bonuses_are_visible)
    assert "$1.70 of bonuses paid" in prolific("bonus", "--yes").stdout
    assert approved.paid("bonus") == OWED
    assert [request for request in approved.requests if request.endswith("/pay/")] == sent


def test_a_payment_that_never_got_there_is_sent_again_when_somebody_says_so(prolific, approved):
    lost = iter(["lost"])
    approved.on_request = lambda number, request: next(lost, None) if request.endswith("/pay/") else None
    prolific("bonus", "--yes", code=1)
    assert approved.paid("bonus") == {}
    assert "Nothing was sent" in prolific("bonus", "--yes", "--grace", "5", code=1).stderr
    result = prolific("bonus", "--grace", "0", text="n\n", code=1)
    assert "Send it again?" in result.stdout
    assert approved.paid("bonus") == {}
    prolific("bonus", "--grace", "0", text="y\n")
    assert approved.paid("bonus") == OWED


def test_a_payment_that_is_refused_can_be_made_later(prolific, approved):
    approved.balance = 0
    assert "Not enough funds" in prolific("bonus", "--yes", code=1).stderr
    approved.balance = 10_000
    prolific("bonus", "--yes")
    assert approved.paid("bonus") == OWED


def test_two_commands_at_once_pay_once(approved, folder, standin):
    """Both begin; whichever comes second at any step stops."""
    gate, ended = threading.Barrier(4), []

    def pay() -> None:
        with Study.open(folder) as study, Client(TOKEN, address=standin.url) as client:
            listed, _ = client.submissions(drafted_id(study))
            ledger = PlatformLedger.of(study.recruitment.steps())
            owed, received = bonuses.still_owed(OWED, ledger, listed)
            gate.wait()
            try:
                batch = bonuses.plan_batch(study, owed, received, ledger)
                bonuses.complete_batch(client, study, batch, grace_minutes=1, send_again=lambda _: False)
                ended.append("paid")
            except PlatformError:
                ended.append("refused")

    threads = [threading.Thread(target=pay) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(ended) == ["paid", "refused", "refused", "refused"]
    assert approved.paid("bonus") == OWED


def test_what_another_command_pays_while_this_one_asks_is_not_paid_again(prolific, approved, folder):
    """The second command runs from beginning to end between what the first looked up and what it sends."""
    begun = []

    def another(number, request):
        if request.endswith("/submissions/") and not begun:
            begun.append(request)
            command = [sys.executable, "-m", "steelyard", "prolific", "bonus", "words", "--yes"]
            done = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, check=True)
            assert "$1.70 of bonuses paid" in done.stdout

    approved.pay_delay = 5
    approved.on_done = another
    assert "No bonuses are due" in prolific("bonus", "--yes").stdout
    assert begun
    assert approved.paid("bonus") == OWED


def test_more_people_than_fit_into_a_batch_are_paid_in_several(approved, folder, standin, monkeypatch):
    monkeypatch.setattr(bonuses, "BATCH_SIZE", 2)
    with Study.open(folder) as study, Client(TOKEN, address=standin.url) as client:
        listed, _ = client.submissions(drafted_id(study))
        options: dict[str, Any] = {"grace_minutes": 1.0, "send_again": lambda _: False}
        assert bonuses.pay_owed(client, study, OWED, OWED, listed, **options) == 170
        assert bonuses.pay_owed(client, study, OWED, OWED, listed, **options) == 0
    assert [sorted(amounts) for _, amounts in approved.batches.values()] == [["p1", "p2"], ["p3"]]
    assert approved.paid("bonus") == OWED


def test_a_log_with_pseudonyms_names_nobody_and_is_whole(prolific, approved, folder, tmp_path):
    prolific("bonus", "--yes")
    with Study.open(folder) as study:
        write_log(study, tmp_path / "log.jsonl")
        pseudonym = study.privacy.pseudonym("p1")
    text = (tmp_path / "log.jsonl").read_text(encoding="utf-8")
    assert not [s["id"] for s in approved.submissions.values() if s["id"] in text]
    assert '"p1"' not in text
    check_chain(read_log(tmp_path / "log.jsonl"))
    with rebuild(read_log(tmp_path / "log.jsonl"), folder, f"sqlite:///{tmp_path / 'again.db'}") as again:
        assert PlatformLedger.of(again.recruitment.steps()).bonuses()[pseudonym] == 65
        assert len(again.recruitment.arrivals_of(pseudonym)) == 1


def test_who_is_forgotten_is_nowhere_any_more_and_the_platform_ledger_still_add_up(prolific, approved, folder):
    prolific("sync")
    prolific("bonus", "--yes")
    submission_ids = {s["participant_id"]: s["id"] for s in approved.submissions.values()}
    run("forget", "words", "p1", "--yes", cwd=folder.parent)
    run("forget", "words", "p2", "--yes", cwd=folder.parent)
    stored = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert submission_ids["p3"].encode() in stored
    assert submission_ids["p1"].encode() not in stored
    assert submission_ids["p2"].encode() not in stored
    assert [batch.total for batch in platform_ledger(folder).batches] == [170]
    # Nobody is paid again for it, and looking again does not bring them back.
    prolific("sync")
    prolific("bonus", "--yes")
    assert approved.paid("bonus") == OWED
    assert submission_ids["p1"].encode() not in b"".join(
        path.read_bytes() for path in folder.rglob("*") if path.is_file()
    )
