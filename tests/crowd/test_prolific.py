"""A study on Prolific, against a stand-in with books of its own."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from steelyard.crowd import bonuses
from steelyard.crowd.books import Books
from steelyard.crowd.client import Client, PlatformError
from steelyard.crowd.prolific import drafted_id
from steelyard.errors import ConfigError
from steelyard.study import Study
from steelyard.study.rebuild import check_chain, read_log, rebuild, write_log
from tests.cli.running import run
from tests.crowd.conftest import work
from tests.crowd.standin import TOKEN, RefusedError


def books(folder: Path) -> Books:
    with Study.open(folder) as study:
        return Books.of(study.dealings())


def only(platform):
    (study,) = platform.studies.values()
    return study


def set_key(folder: Path, old: str, new: str) -> None:
    text = (folder / "study.toml").read_text(encoding="utf-8")
    assert old in text
    (folder / "study.toml").write_text(text.replace(old, new), encoding="utf-8")


# Drafting


def test_the_draft_says_what_the_study_says(prolific, platform):
    said = prolific("draft").stdout
    made = only(platform)
    assert made["status"] == "UNPUBLISHED"
    assert (made["name"], made["description"]) == ("Words", "How positive is it?")
    link = "https://judge.example.org/s/words/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}"
    assert made["external_study_url"] == link + "&SESSION_ID={{%SESSION_ID%}}"
    # Four tasks of nine seconds (five to read, four to mark) and four words: 37.2 seconds, so one minute; 4 × 0.50.
    assert (made["estimated_completion_time"], made["reward"], made["total_available_places"]) == (1, 200, 3)
    assert made["filters"] == [
        {"filter_id": "current-country-of-residence", "selected_values": ["1", "0"]},
        {"filter_id": "fluent-languages", "selected_values": ["19"]},
        {"filter_id": "approval_rate", "selected_range": {"lower": 99, "upper": 100}},
        {"filter_id": "approval_numbers", "selected_range": {"lower": 501, "upper": 100_000}},
    ]
    types = [(code["code_type"], code["actions"][0]["action"]) for code in made["completion_codes"]]
    assert types == [
        ("COMPLETED", "MANUALLY_REVIEW"),
        ("OTHER", "REQUEST_RETURN"),
        ("FAILED_ATTENTION_CHECK", "MANUALLY_REVIEW"),
    ]
    assert len({code["code"] for code in made["completion_codes"]}) == 3
    assert "$2.00 for about a minute: $120.00 an hour" in said


def test_drafting_again_keeps_the_draft_and_brings_it_up_to_date(prolific, platform, folder):
    prolific("draft")
    codes = only(platform)["completion_codes"]
    prolific("draft")
    set_key(folder, "tasks = 4", "tasks = 40")
    prolific("draft")
    # Forty tasks of nine seconds and a second of reading: a little over six minutes.
    assert (only(platform)["estimated_completion_time"], only(platform)["reward"]) == (7, 2000)
    assert only(platform)["completion_codes"] == codes


def test_what_a_published_study_cannot_change_is_refused_by_name(prolific, platform, folder):
    prolific("draft")
    prolific("publish", "--yes")
    set_key(folder, "per_task = 0.5", "per_task = 0.6")
    assert "no longer change: reward" in prolific("draft", code=1).stderr
    assert only(platform)["reward"] == 200


def test_times_that_answers_tell_do_not_disturb_a_published_study(prolific, platform, folder):
    prolific("draft")
    prolific("publish", "--yes")
    with Study.open(folder) as study:
        for name in "abcdef":
            for _ in range(4):
                study.tell(task := study.ask(name), {task.item_ids[0]: 50}, seconds=100)
    prolific("draft")
    assert only(platform)["estimated_completion_time"] == 1


def test_a_country_that_prolific_does_not_know_is_named(prolific, platform, folder):
    set_key(folder, '"United Kingdom"', '"United Kingdon"')
    assert "Did you mean 'United Kingdom'?" in prolific("draft", code=1).stderr
    assert platform.studies == {}


def test_times_measured_on_answers_replace_the_protocols(prolific, platform, folder):
    set_key(folder, "tasks = 4", "tasks = 10")
    with Study.open(folder) as study:
        for name in ("ann", "bob"):
            for _ in range(10):
                task = study.ask(name)
                study.tell(task, {task.item_ids[0]: 50}, seconds=60)
    prolific("draft")
    # Ten tasks of a minute, and some seconds to read the question.
    assert only(platform)["estimated_completion_time"] == 11


# Publishing


def test_the_cost_is_said_and_asked_for(prolific, platform):
    prolific("draft")
    declined = prolific("publish", text="n\n", code=1)
    # 3 × $2.00, a third of it as fee, and a fifth of the fee as tax.
    assert "Publish for $8.40, fees and taxes included?" in declined.stdout
    assert "up to 12 answers, checks among them; the design wants 36 more" in declined.stdout
    assert only(platform)["status"] == "UNPUBLISHED"
    prolific("publish", text="y\n")
    assert only(platform)["status"] == "ACTIVE"
    assert platform.balance == 1_000_000 - 840
    assert "Nothing to do" in prolific("publish").stdout


def test_places_only_grow(prolific, platform, folder):
    prolific("draft")
    prolific("publish", "--yes")
    set_key(folder, "places = 3", "places = 5")
    # Two more: 4.00 and 1.60 on top.
    assert "Add the places for $5.60" in prolific("publish", text="y\n").stdout
    assert only(platform)["total_available_places"] == 5
    set_key(folder, "places = 5", "places = 4")
    assert "places can only grow" in prolific("publish", "--yes", code=1).stderr
    assert only(platform)["total_available_places"] == 5


def test_the_stand_in_itself_freezes_and_only_grows(prolific, platform):
    prolific("draft")
    prolific("publish", "--yes")
    for change in ({"reward": 300}, {"total_available_places": 2}, {"filters": []}):
        with pytest.raises(RefusedError):
            platform.update_study(only(platform)["id"], query={}, body=change)


def test_too_little_money_is_said_and_can_be_mended(prolific, platform):
    prolific("draft")
    platform.balance = 100
    assert "Not enough funds" in prolific("publish", "--yes", code=1).stderr
    platform.balance = 1000
    prolific("publish", "--yes")
    assert only(platform)["status"] == "ACTIVE"


def test_nothing_can_be_published_before_it_is_drafted(prolific):
    assert "steelyard prolific draft" in prolific("publish", "--yes", code=1).stderr


# People


def test_tasks_of_people_who_give_their_place_back_are_free_at_once(prolific, platform, folder):
    prolific("draft")
    prolific("publish", "--yes")
    for name, status in (("p1", "RETURNED"), ("p2", "TIMED-OUT")):
        submission = work(folder, platform, name, answers=1)
        with Study.open(folder) as study:
            assert study.ask(name) is not None
        platform.change(submission, status)
    said = prolific("sync").stdout
    assert "1 returned, 1 timed-out. 2 changed; 2 tasks are free for others" in said
    with Study.open(folder) as study:
        assert study.gone == {"p1": "returned", "p2": "timed out"}
        assert study.ask("p1") is None
        assert study.status().stages[0].tasks_out == 0
    assert "0 changed" in prolific("sync").stdout


# Approval


def test_work_that_passes_the_rule_is_approved_and_the_rest_is_left_to_a_person(prolific, platform, folder):
    prolific("draft")
    prolific("publish", "--yes")
    work(folder, platform, "good")
    work(folder, platform, "wrong", value=95)
    half = work(folder, platform, "half", answers=2)
    platform.finish(half, "NOCODE")
    declined = prolific("approve", text="n\n", code=1).stdout
    assert "Approve 1 of 3 submissions?" in declined
    assert platform.paid("reward") == {}
    prolific("approve", text="y\n")
    assert platform.paid("reward") == {"good": 200}
    assert "2 of 4 answered" in declined
    assert "4 of 4 answered, 0 of 1 checks right" in declined
    # A person may decide otherwise, by name; and again changes nothing.
    prolific("approve", "half", "--yes")
    prolific("approve", "--yes")
    assert platform.paid("reward") == {"good": 200, "half": 200}


def test_who_finished_under_another_submission_is_looked_at(prolific, platform, folder):
    prolific("draft")
    prolific("publish", "--yes")
    submission = platform.take_place("p1")
    with Study.open(folder) as study:
        study.arrive("p1", "", "somebody else's")
        for _ in range(4):
            study.tell(task := study.ask("p1"), {task.item_ids[0]: 50})
    platform.finish(submission, only(platform)["completion_codes"][0]["code"])
    never = platform.take_place("p2")
    platform.finish(never, only(platform)["completion_codes"][0]["code"])
    said = prolific("approve", "--yes").stdout
    assert "not with this submission" in said
    assert "never came here" in said
    assert "Nothing to approve" in said
    assert platform.paid("reward") == {}


def test_a_rejection_needs_a_reason_that_can_be_understood(prolific, platform, folder):
    prolific("draft")
    prolific("publish", "--yes")
    work(folder, platform, "wrong", value=95)
    assert "Prolific wants 100 or more" in prolific("reject", "wrong", "-m", "bad", "--yes", code=1).stderr
    why = "Of the questions with a known answer, which the instructions had announced, none was answered right. " * 2
    assert "waits for a decision" in prolific("reject", "nobody", "-m", why, "--yes", code=1).stderr
    prolific("reject", "wrong", "-m", why, text="n\n", code=1)
    assert [s["status"] for s in platform.submissions.values()] == ["AWAITING REVIEW"]
    prolific("reject", "wrong", "-m", why, "--yes")
    assert [s["status"] for s in platform.submissions.values()] == ["REJECTED"]
    with Study.open(folder) as study:
        assert study.gone == {"wrong": "rejected"}


def test_stopping_asks_and_stops_once(prolific, platform):
    prolific("draft")
    prolific("publish", "--yes")
    prolific("stop", text="n\n", code=1)
    assert only(platform)["status"] == "ACTIVE"
    prolific("stop", "--yes")
    prolific("stop", "--yes")
    assert only(platform)["status"] == "COMPLETED"
    assert platform.requests.count(f"POST /api/v1/studies/{only(platform)['id']}/transition/") == 2


# Bonuses


@pytest.fixture
def approved(prolific, platform, folder):
    """Three people whose work is approved; the formula gives them 0.65, 0.65 and 0.40."""
    prolific("draft")
    prolific("publish", "--yes")
    for name, value in (("p1", 50), ("p2", 50), ("p3", 95)):
        work(folder, platform, name, value=value)
    prolific("approve", "p1", "p2", "p3", "--yes")
    return platform


# 0.1 × 4 tasks, and 0.25 for who passed the check.
OWED = {"p1": 65, "p2": 65, "p3": 40}


def test_bonuses_by_the_formula_are_paid_once(prolific, approved):
    declined = prolific("bonus", text="n\n", code=1).stdout
    assert "Pay $1.70 to 3 people?" in declined
    assert approved.paid("bonus") == {}
    assert "$1.70 of bonuses are paid" in prolific("bonus", "--yes").stdout
    assert "No bonuses are owed" in prolific("bonus", "--yes").stdout
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
    time.sleep(2)
    prolific("bonus", "--yes")
    assert approved.paid("bonus") == {**OWED, "p1": 15}


def test_who_is_not_approved_gets_no_bonus(prolific, platform, folder):
    prolific("draft")
    prolific("publish", "--yes")
    work(folder, platform, "p1")
    assert "No bonuses are owed" in prolific("bonus", "--yes").stdout


def test_a_payment_whose_answer_was_lost_is_not_sent_again_while_it_may_still_show(prolific, approved, folder):
    approved.pay_delay = 1.5
    approved.on_request = lambda number, request: "lost after" if request.endswith("/pay/") else None
    prolific("bonus", "--yes", code=1)
    sent = [request for request in approved.requests if request.endswith("/pay/")]
    # It was carried out, and does not show yet: whoever is impatient is told to wait.
    waiting = prolific("bonus", "--yes", "--grace", "5", code=1).stderr
    assert "Nothing was sent now" in waiting
    assert books(folder).open_batch is not None
    time.sleep(1.6)
    assert "$1.70 of bonuses are paid" in prolific("bonus", "--yes").stdout
    assert approved.paid("bonus") == OWED
    assert [request for request in approved.requests if request.endswith("/pay/")] == sent


def test_a_payment_that_never_got_there_is_sent_again_when_somebody_says_so(prolific, approved):
    lost = iter(["lost"])
    approved.on_request = lambda number, request: next(lost, None) if request.endswith("/pay/") else None
    prolific("bonus", "--yes", code=1)
    assert approved.paid("bonus") == {}
    assert "Nothing was sent now" in prolific("bonus", "--yes", "--grace", "5", code=1).stderr
    asked = prolific("bonus", "--grace", "0", text="n\n", code=1)
    assert "Send it again?" in asked.stdout
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
            known = Books.of(study.dealings())
            owed, shown = bonuses.still_owed(OWED, known, listed)
            gate.wait()
            try:
                batch = bonuses.plan_batch(study, owed, shown, known)
                bonuses.carry_on(client, study, batch, grace_minutes=1, send_again=lambda _: False)
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
            assert "$1.70 of bonuses are paid" in done.stdout

    approved.pay_delay = 5
    approved.on_done = another
    assert "No bonuses are owed" in prolific("bonus", "--yes").stdout
    assert begun
    assert approved.paid("bonus") == OWED


def test_more_people_than_fit_into_a_batch_are_paid_in_several(approved, folder, standin, monkeypatch):
    monkeypatch.setattr(bonuses, "AT_ONCE", 2)
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
        pseudonym = study.pseudonym("p1")
    text = (tmp_path / "log.jsonl").read_text(encoding="utf-8")
    assert not [s["id"] for s in approved.submissions.values() if s["id"] in text]
    assert '"p1"' not in text
    check_chain(read_log(tmp_path / "log.jsonl"))
    with rebuild(read_log(tmp_path / "log.jsonl"), folder, f"sqlite:///{tmp_path / 'again.db'}") as again:
        assert Books.of(again.dealings()).bonuses()[pseudonym] == 65
        assert len(again.arrivals_of(pseudonym)) == 1


def test_who_is_forgotten_is_nowhere_any_more_and_the_books_still_add_up(prolific, approved, folder):
    prolific("sync")
    prolific("bonus", "--yes")
    known = {s["participant_id"]: s["id"] for s in approved.submissions.values()}
    run("forget", "words", "p1", "--yes", cwd=folder.parent)
    run("forget", "words", "p2", "--yes", cwd=folder.parent)
    kept = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert known["p3"].encode() in kept
    assert known["p1"].encode() not in kept
    assert known["p2"].encode() not in kept
    assert [batch.total for batch in books(folder).batches] == [170]
    # Nobody is paid again for it, and looking again does not bring them back.
    prolific("sync")
    prolific("bonus", "--yes")
    assert approved.paid("bonus") == OWED
    assert known["p1"].encode() not in b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


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
        with pytest.raises(bonuses.PendingError, match="may have been carried out"):
            bonuses.pay_owed(client, study, OWED, OWED, listed, **options)
        batch = Books.of(study.dealings()).open_batch
        assert bonuses.carry_on(client, study, batch, **options)
    assert approved.paid("bonus") == OWED


def test_a_rate_limit_is_waited_out(prolific, platform):
    platform.troubles.extend(["429", "429"])
    began = time.monotonic()
    prolific("draft")
    assert time.monotonic() - began >= 2
    assert len(platform.studies) == 1


def test_a_platform_that_is_away_is_said_in_a_sentence(prolific, standin):
    standin.stop()
    said = prolific("draft", code=1).stderr
    assert "Prolific cannot be reached" in said
    assert "Traceback" not in said


# Dry runs and the token


def test_a_dry_run_prints_every_request_and_changes_nothing(prolific, platform, folder, standin):
    prolific("draft", "--dry-run")
    assert platform.studies == {}
    assert books(folder).key == ""
    prolific("draft")
    said = prolific("publish", "--dry-run").stdout
    assert f"POST {standin.url}/api/v1/studies/{only(platform)['id']}/transition/" in said
    assert '"action": "PUBLISH"' in said
    assert only(platform)["status"] == "UNPUBLISHED"
    prolific("publish", "--yes")
    work(folder, platform, "p1")
    assert "POST" in prolific("approve", "--dry-run").stdout
    prolific("approve", "--yes")
    before = platform.snapshot(), books(folder)
    said = prolific("bonus", "--dry-run").stdout
    assert '"csv_bonuses": "p1,0.65"' in said
    assert "/pay/" in said
    prolific("stop", "--dry-run")
    prolific("sync", "--dry-run")
    assert (platform.snapshot(), books(folder)) == before


def test_a_dry_run_of_the_draft_needs_no_token(prolific, platform, monkeypatch):
    monkeypatch.delenv("STEELYARD_PROLIFIC_TOKEN")
    said = prolific("draft", "--dry-run").stdout
    assert "POST" in said
    assert "the number of 'United States'" in said
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
    said = prolific("draft", code=1).stderr
    assert "does not accept the token" in said
    assert "another-token" not in said


def test_a_token_goes_nowhere_in_the_clear():
    with pytest.raises(ConfigError, match="no safe address"):
        Client("t", address="http://api.example.org")


# The pilot


def test_a_pilot_runs_its_people_and_says_what_the_full_run_takes(prolific, platform, folder):
    set_key(folder, "tasks = 4", "tasks = 12")
    set_key(folder, '[quality]\nchecks = { file = "gold.csv", rate = 0.25, at_least = 50 }', "")
    set_key(folder, 'bonus = "0.1 * tasks + 0.25 * passed"', 'bonus = "0.1 * tasks"')
    set_key(folder, "judgments = 3", "judgments = 5")
    prolific("draft")

    def people() -> None:
        give_up = time.monotonic() + 30
        while only(platform)["status"] != "ACTIVE" and time.monotonic() < give_up:
            time.sleep(0.05)
        code = only(platform)["completion_codes"][0]["code"]
        for name, off in (("p1", 0), ("p2", 4)):
            submission = platform.take_place(name)
            with Study.open(folder) as study:
                study.arrive(name, only(platform)["id"], submission)
                while (task := study.ask(name)) is not None:
                    (item,) = task.item_ids
                    study.tell(task, {item: 7 * int(item[1:]) + off * (int(item[1:]) % 3)}, seconds=6)
            platform.finish(submission, code)

    crowd = threading.Thread(target=people)
    crowd.start()
    done = prolific("publish", "--pilot", "2", "--every", "0.2", "--yes")
    crowd.join(30)
    assert "2 of 2 have finished" in done.stderr
    assert "Words: 2 people, 24 answers" in done.stdout
    # Six seconds a task, twelve tasks: 72 seconds for 6.00, which is 300 an hour.
    assert "6.0 s (half of them 6.0 to 6.0) a task; 72.0 s (half of them 72.0 to 72.0) a person" in done.stdout
    assert "6.00 $ a person: 300.00 $ an hour" in done.stdout
    assert "alpha (interval)" in done.stdout
    # Twelve items five times each, less the 24.
    assert "wants 36 more answers" in done.stdout
    assert "a split-half reliability of 0.9 takes" in done.stdout
    assert only(platform)["total_available_places"] == 2
    # The full run is the same study, grown.
    prolific("publish", "--yes")
    assert (only(platform)["status"], only(platform)["total_available_places"]) == ("ACTIVE", 3)
    assert run("pilot", "words", cwd=folder.parent).stdout.startswith("Words: 2 people")
