"""A study on Prolific, against a stand-in with books of its own: drafting, publishing, the pilot."""

from __future__ import annotations

import threading
import time

import pytest

from steelyard.study import Study
from tests.cli.running import run
from tests.recruitment.at_prolific import only, set_key
from tests.recruitment.platform import RefusedError


def test_the_draft_says_what_the_study_says(prolific, platform):
    output = prolific("draft").stdout
    draft = only(platform)
    assert draft["status"] == "UNPUBLISHED"
    assert (draft["name"], draft["description"]) == ("Words", "How positive is it?")
    link = "https://judge.example.org/s/words/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}"
    assert draft["external_study_url"] == link + "&SESSION_ID={{%SESSION_ID%}}"
    # Four tasks of nine seconds (five to read, four to mark) and four words: 37.2 seconds, so one minute; 4 × 0.50.
    assert (draft["estimated_completion_time"], draft["reward"], draft["total_available_places"]) == (1, 200, 3)
    assert draft["filters"] == [
        {"filter_id": "current-country-of-residence", "selected_values": ["1", "0"]},
        {"filter_id": "fluent-languages", "selected_values": ["19"]},
        {"filter_id": "approval_rate", "selected_range": {"lower": 99, "upper": 100}},
        {"filter_id": "approval_numbers", "selected_range": {"lower": 501, "upper": 100_000}},
    ]
    types = [(code["code_type"], code["actions"][0]["action"]) for code in draft["completion_codes"]]
    assert types == [
        ("COMPLETED", "MANUALLY_REVIEW"),
        ("OTHER", "REQUEST_RETURN"),
        ("FAILED_ATTENTION_CHECK", "MANUALLY_REVIEW"),
    ]
    assert len({code["code"] for code in draft["completion_codes"]}) == 3
    assert "$2.00 for about a minute: $120.00 per hour" in output


def test_ways_back_and_signatures_that_prolific_does_not_have_are_refused_by_every_command(prolific, platform, folder):
    link = (
        '[link]\ncompleted = "CODE7"\nfailed = "https://panel.example.org/?p={participant}"\nsigned = true\n[prolific]'
    )
    set_key(folder, "[prolific]", link)
    for said in (
        run("check", "words", cwd=folder.parent, code=1).stderr,
        prolific("draft", "--dry-run", code=1).stderr,
    ):
        assert "(link.failed): 'failed' is an address, but participants from Prolific return with a code" in said
        assert "(link.signed): signed links are required, but Prolific does not sign links" in said
        assert "link.completed" not in said
    assert platform.requests == []


def test_drafting_again_keeps_the_draft_and_brings_it_up_to_date(prolific, platform, folder):
    prolific("draft")
    codes = only(platform)["completion_codes"]
    prolific("draft")
    set_key(folder, "max_tasks = 4", "max_tasks = 40")
    prolific("draft")
    # Forty tasks of nine seconds and a second of reading: a little over six minutes.
    assert (only(platform)["estimated_completion_time"], only(platform)["reward"]) == (7, 2000)
    assert only(platform)["completion_codes"] == codes


def test_what_a_published_study_cannot_change_is_refused_by_name(prolific, platform, folder):
    prolific("draft")
    prolific("publish", "--yes")
    set_key(folder, "per_task = 0.5", "per_task = 0.6")
    assert "changes to reward" in prolific("draft", code=1).stderr
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
    set_key(folder, "max_tasks = 4", "max_tasks = 10")
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
    assert "up to 12 answers, checks included; the design needs 36 more" in declined.stdout
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
    assert "their number can only be increased" in prolific("publish", "--yes", code=1).stderr
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


# The pilot


def test_a_pilot_runs_its_people_and_says_what_the_full_run_takes(prolific, platform, folder):
    set_key(folder, "max_tasks = 4", "max_tasks = 12")
    set_key(folder, '[quality]\nchecks = { file = "gold.csv", rate = 0.25, min_checks = 50 }', "")
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
                study.recruitment.arrive(name, only(platform)["id"], submission)
                while (task := study.ask(name)) is not None:
                    (item,) = task.item_ids
                    study.tell(task, {item: 7 * int(item[1:]) + off * (int(item[1:]) % 3)}, seconds=6)
            platform.finish(submission, code)

    crowd = threading.Thread(target=people)
    crowd.start()
    done = prolific("publish", "--pilot", "2", "--every", "0.2", "--yes")
    crowd.join(30)
    assert "2 of 2 participants have finished" in done.stderr
    assert "Words: 2 annotators, 24 answers" in done.stdout
    # Six seconds a task, twelve tasks: 72 seconds for 6.00, which is 300 an hour.
    assert (
        "6.0 s (median; interquartile range 6.0 to 6.0) per task; 72.0 s (median; interquartile range 72.0 to "
        "72.0) per annotator" in done.stdout
    )
    assert "6.00 $ per annotator, 300.00 $ per hour" in done.stdout
    assert "alpha (interval)" in done.stdout
    # Twelve items five times each, less the 24.
    assert "needs 36 more answers" in done.stdout
    assert "a split-half reliability of 0.9 takes" in done.stdout
    assert only(platform)["total_available_places"] == 2
    # The full run is the same study, grown.
    prolific("publish", "--yes")
    assert (only(platform)["status"], only(platform)["total_available_places"]) == ("ACTIVE", 3)
    assert run("pilot", "words", cwd=folder.parent).stdout.startswith("Words: 2 annotators")
