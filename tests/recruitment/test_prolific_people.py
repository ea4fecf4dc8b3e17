"""People from Prolific, against a stand-in: places given back, approval, rejection, the end."""

from __future__ import annotations

import re

from steelyard.study import Study
from tests.recruitment.at_prolific import only
from tests.recruitment.conftest import work

# People


def test_tasks_of_people_who_give_their_place_back_are_free_at_once(prolific, platform, folder):
    prolific("draft")
    prolific("publish", "--yes")
    for name, status in (("p1", "RETURNED"), ("p2", "TIMED-OUT")):
        submission = work(folder, platform, name, answers=1)
        with Study.open(folder) as study:
            assert study.ask(name) is not None
        platform.change(submission, status)
    output = prolific("sync").stdout
    assert "1 returned, 1 timed-out. 2 changed; 2 tasks released" in output
    with Study.open(folder) as study:
        assert study.recruitment.departed == {"p1": "returned", "p2": "timed out"}
        assert study.ask("p1") is None
        assert study.status().stages[0].leased == 0
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
    assert re.search(r"4 of 4 answered, 0 of [1-4] checks right", declined)
    # A person may decide otherwise, by name; and again changes nothing.
    prolific("approve", "half", "--yes")
    prolific("approve", "--yes")
    assert platform.paid("reward") == {"good": 200, "half": 200}


def test_who_finished_under_another_submission_is_looked_at(prolific, platform, folder):
    prolific("draft")
    prolific("publish", "--yes")
    submission = platform.take_place("p1")
    with Study.open(folder) as study:
        study.recruitment.arrive("p1", "", "somebody else's")
        for _ in range(4):
            study.tell(task := study.ask("p1"), {task.item_ids[0]: 50})
    platform.finish(submission, only(platform)["completion_codes"][0]["code"])
    never = platform.take_place("p2")
    platform.finish(never, only(platform)["completion_codes"][0]["code"])
    output = prolific("approve", "--yes").stdout
    assert "but with another submission" in output
    assert "never opened the study" in output
    assert "Nothing to approve" in output
    assert platform.paid("reward") == {}


def test_a_rejection_needs_a_reason_that_can_be_understood(prolific, platform, folder):
    prolific("draft")
    prolific("publish", "--yes")
    work(folder, platform, "wrong", value=95)
    assert "Prolific requires 100 or more" in prolific("reject", "wrong", "-m", "bad", "--yes", code=1).stderr
    why = "Of the questions with a known answer, which the instructions had announced, none was answered right. " * 2
    assert "awaits review" in prolific("reject", "nobody", "-m", why, "--yes", code=1).stderr
    prolific("reject", "wrong", "-m", why, text="n\n", code=1)
    assert [s["status"] for s in platform.submissions.values()] == ["AWAITING REVIEW"]
    prolific("reject", "wrong", "-m", why, "--yes")
    assert [s["status"] for s in platform.submissions.values()] == ["REJECTED"]
    with Study.open(folder) as study:
        assert study.recruitment.departed == {"wrong": "rejected"}


def test_stopping_asks_and_stops_once(prolific, platform):
    prolific("draft")
    prolific("publish", "--yes")
    prolific("stop", text="n\n", code=1)
    assert only(platform)["status"] == "ACTIVE"
    prolific("stop", "--yes")
    prolific("stop", "--yes")
    assert only(platform)["status"] == "COMPLETED"
    assert platform.requests.count(f"POST /api/v1/studies/{only(platform)['id']}/transition/") == 2
