"""The test before the first task, and checks, as the API shows them."""

from __future__ import annotations

import json

import pytest

QUESTIONS = "items,answer,feedback\nw0,80..100,It is good.\nw1,0..20,\nw2,40..60,\n"


def with_test(make_study):
    folder = make_study(extra='[quality]\nqualification = { file = "test.csv", min_accuracy = 0.6 }\n')
    (folder / "test.csv").write_text(QUESTIONS)
    return folder


def test_the_test_comes_first_and_tells_nothing_about_what_is_right(make_study, serve_study):
    server = serve_study(with_test(make_study))
    ann = server.person()
    assert ann.join("ann")["needs"] == ["qualification"]
    assert ann.post("/tasks").json()["error"]["code"] == "test_needed"
    for number, answer in enumerate(({"w0": 90}, {"w1": 90}, {"w2": 50}), start=1):
        question = ann.get("/qualification").json()
        assert (question["number"], question["of"]) == (number, 3)
        assert "80" not in json.dumps(question["question"]["items"])
        result = ann.post("/qualification", {"number": number, "answer": answer}).json()
        assert result == {"done": number == 3, "passed": True if number == 3 else None}
    assert len(ann.post("/tasks", {"count": 1}).json()["tasks"]) == 1


def test_who_fails_the_test_is_asked_nothing_and_cannot_take_it_again(make_study, serve_study):
    server = serve_study(with_test(make_study))
    ann = server.person("ann")
    for number, item in enumerate(("w0", "w1", "w2"), start=1):
        result = ann.post("/qualification", {"number": number, "answer": {item: 50}}).json()
    assert result == {"done": True, "passed": False}
    assert ann.post("/tasks", {"count": 1}).json()["no_task"]["reason_code"] == "excluded"
    again = ann.post("/qualification", {"number": 1, "answer": {"w0": 90}}).json()
    assert again == {"done": True, "passed": False}
    assert ann.post("/qualification", {"number": 4, "answer": {"w0": 90}}).status_code == 409


def test_an_answer_sent_twice_counts_once_and_one_ahead_is_refused(make_study, serve_study):
    server = serve_study(with_test(make_study))
    ann = server.person("ann")
    assert ann.post("/qualification", {"number": 2, "answer": {"w1": 5}}).json()["error"]["code"] == "not_yet"
    for _ in range(2):
        ann.post("/qualification", {"number": 1, "answer": {"w0": 90}})
    assert ann.get("/qualification").json()["number"] == 2
    assert ann.post("/qualification", {"number": 2, "answer": {"w1": 500}}).status_code == 422


def checked(make_study, loud: str):
    folder = make_study(extra=f'[quality]\nchecks = {{ file = "gold.csv", rate = 0.95, feedback = {loud} }}\n')
    (folder / "gold.csv").write_text("items,answer,feedback\ngold word,80..100,It is *good*.\n")
    return folder


@pytest.mark.parametrize("loud", ["true", "false"])
def test_a_loud_check_says_what_was_right_and_a_silent_one_nothing(make_study, serve_study, loud):
    ann = serve_study(checked(make_study, loud)).person("ann")
    task = ann.post("/tasks", {"count": 1}).json()["tasks"][0]
    assert task["items"][0]["id"] == "gold word"
    assert not ({"purpose", "check", "gold", "expected"} & (set(task) | set(task["items"][0])))
    saved = ann.post("/judgments", {"judgment_id": task["judgment_id"], "answer": {"gold word": 5}}).json()
    if loud == "true":
        assert (saved["feedback"]["right"], saved["feedback"]["expected"]) == (False, "80 to 100")
        assert "It is <em>good</em>." in saved["feedback"]["feedback_html"]
    else:
        assert saved["feedback"] is None
