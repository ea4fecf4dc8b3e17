"""Events are typed: each kind has a payload class and a handler, and anything else in a file is refused."""

from __future__ import annotations

import json

import msgspec
import pytest

from steelyard import Study
from steelyard.errors import DataError, StoreError
from steelyard.recruitment import ledger
from steelyard.storage import StoredEvent
from steelyard.study import events as ev
from steelyard.study import read_log, write_log
from steelyard.study.state import HANDLERS


@pytest.fixture
def log(make_study, tmp_path):
    """The lines of a small study's log, as dictionaries."""
    path = tmp_path / "log.jsonl"
    with Study.open(make_study()) as study:
        task = study.ask("ann")
        study.tell(task, dict.fromkeys(task.item_ids, 50), seconds=2)
        write_log(study, path, real_ids=True)
    return [json.loads(line) for line in path.read_text().splitlines()]


def written(tmp_path, lines) -> str:
    path = tmp_path / "changed.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def subclasses(payload: type[ev.Payload]) -> set[type[ev.Payload]]:
    return {payload}.union(*(subclasses(child) for child in payload.__subclasses__()))


def test_every_payload_class_has_a_handler_and_a_kind():
    payloads = subclasses(ev.Payload) - {ev.Payload, ev.PlatformEvent}
    assert set(HANDLERS) == payloads
    assert {payload.kind for payload in payloads} == set(ev.PAYLOADS)
    assert set(ledger._HANDLERS) == set(ev.PLATFORM_EVENTS)


@pytest.mark.parametrize("kind", ["handle_for", "count", "apply", "__init__", "picked_up", ""])
def test_an_unknown_kind_in_a_file_is_refused_with_its_line(log, tmp_path, kind):
    log[2]["kind"] = kind
    with pytest.raises(DataError, match="unknown to this version") as caught:
        list(read_log(written(tmp_path, log)))
    (problem,) = caught.value.problems
    assert (problem.line, problem.field, problem.file) == (3, "kind", "changed.jsonl")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"stage": "first"}, "data.stage"),
        ({"items": "i1"}, "data.items"),
        ({"items": ["i1", 2]}, "data.items[1]"),
        ({"purpose": "fun"}, "data.purpose"),
        ({"lease_end": None}, "data.lease_end"),
        ({"colour": "red"}, "data"),
    ],
)
def test_a_malformed_event_in_a_file_is_refused_with_its_line_and_field(log, tmp_path, change, field):
    place = next(n for n, line in enumerate(log) if line["kind"] == "picked")
    log[place]["data"] |= change
    with pytest.raises(DataError, match=r"picked.* is malformed") as caught:
        list(read_log(written(tmp_path, log)))
    (problem,) = caught.value.problems
    assert (problem.line, problem.field) == (place + 1, field)


@pytest.mark.parametrize("missing", ["seq", "kind", "data", "digest"])
def test_a_line_without_a_field_is_refused(log, tmp_path, missing):
    del log[1][missing]
    with pytest.raises(DataError, match=f"missing required field '{missing}'") as caught:
        list(read_log(written(tmp_path, log)))
    assert caught.value.problems[0].line == 2


def test_a_malformed_event_in_the_database_names_its_number():
    stored = StoredEvent(7, 1, "judgment", "ann", "j", '{"stage":0}', "")
    with pytest.raises(StoreError, match=r"event 7 \(judgment\) is malformed.*items"):
        ev.decode_own(stored)
    with pytest.raises(StoreError, match="event 7: events of kind 'told' are unknown"):
        ev.decode_own(stored._replace(kind="told"))


def test_an_event_about_something_that_is_not_in_the_log_is_refused(make_study):
    folder = make_study()
    with Study.open(folder) as study, study._log.write(alone=True) as transaction:
        payload = ev.Judged(stage=0, items=("nowhere",), answer={"nowhere": 5}, imported=True)
        with pytest.raises(StoreError, match="refers to 'nowhere', which is not in the log before it"):
            transaction.append(payload, at=1, annotator="ann", judgment_id="j")


def test_what_is_written_reads_back_the_same(log, tmp_path):
    for event in read_log(written(tmp_path, log)):
        assert ev.decode(event.stored()) == event
        rewritten = StoredEvent(event.seq, event.at, event.kind, None, None, event.data.text(), "")
        assert ev.decode(rewritten).data == event.data


def test_platform_steps_are_told_apart_by_what_they_say():
    step = ev.BonusRequested(batch=1, attempt=2)
    assert json.loads(step.text()) == {"what": "bonus_paying", "batch": 1, "attempt": 2}
    stored = StoredEvent(1, 1, "platform", None, None, step.text(), "")
    assert ev.decode(stored).data == step
    with pytest.raises(msgspec.ValidationError, match="what"):
        ev.decode(stored._replace(data='{"what": "wish", "batch": 1}'))
