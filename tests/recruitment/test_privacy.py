"""Ids that a platform gave people: in no export, and gone when somebody is forgotten."""

from __future__ import annotations

import json

from steelyard import Study
from steelyard.recruitment.ledger import PlatformLedger
from steelyard.study import events as ev
from steelyard.study.forgetting import forget
from steelyard.study.rebuild import check_chain, exported_log

ANN, BOB = "5f8a0c1d2e3b4a5968778899", "600dbeefcafe000011112222"


def note(study: Study, step: ev.PlatformEvent) -> None:
    """Write a step of the dealings with Prolific down."""
    study.recruitment.record(lambda _: step)


def worked(folder) -> Study:
    """Two people came from Prolific, answered, and are to get a bonus."""
    study = Study.open(folder)
    for name in (ANN, BOB):
        study.recruitment.arrive(name, "study-1", f"session-of-{name}")
        task = study.ask(name)
        assert task is not None
        study.tell(task, dict.fromkeys(task.item_ids, 50))
        submission = f"s-{name[:4]}"
        note(study, ev.SubmissionSeen(submission=submission, participant=name, status="APPROVED", at=1.0, by="test"))
    note(study, ev.BonusPlanned(amounts={ANN: 50, BOB: 30}, before={ANN: 0, BOB: 0}))
    return study


def test_an_exported_log_names_nobody_whom_a_platform_sent(make_study):
    with worked(make_study('name = "direct"', 'name = "per_item"\njudgments = 2', items=3)) as study:
        events = list(exported_log(study))
    text = "\n".join(json.dumps([event.annotator, event.text]) for event in events)
    assert not any(trace in text for trace in (ANN, BOB, "session-of", "s-5f8a"))
    check_chain(events)


def test_who_is_forgotten_is_out_of_the_platform_ledger_and_the_amounts_stay(make_study):
    folder = make_study('name = "direct"', 'name = "per_item"\njudgments = 2', items=3)
    with worked(folder) as study:
        forget(study, ANN)
        books = PlatformLedger.of(study.recruitment.steps())
        check_chain(study.events())
    assert books.batches[0].total == 80
    assert books.bonuses()[BOB] == 30
    left = b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    assert ANN.encode() not in left
    assert BOB.encode() in left
