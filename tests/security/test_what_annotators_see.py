"""Everything the server ever sends an annotator, searched for what is none of their business."""

from __future__ import annotations

import json
import re

import httpx
import pytest

from steelyard import Study
from tests.web.conftest import Person

GOLD = ["GOLDSECRET", "61.125", "63.875", "FEEDBACKSECRET", "GROUPSECRET", "TAGSECRET"]
EXTRA = """
[annotators]
consent = "Agree?"
[quality]
repeat_rate = 0.2
[quality.checks]
file = "checks.csv"
rate = 0.5
feedback = false
[quality.qualification]
file = "test.csv"
"""


@pytest.fixture
def server(make_study, serve_study):
    folder = make_study(extra=EXTRA, design="judgments = 3", items=8)
    rows = "".join(f"w{n},word {n},GROUPSECRET{n},TAGSECRET;x,GOLDSECRET{n}\n" for n in range(8))
    (folder / "items.csv").write_text("id,text,group,tags,gold\n" + rows)
    (folder / "checks.csv").write_text(
        "items,answer,feedback\nc0,61.125..63.875,FEEDBACKSECRET\nc1,61.125..63.875,FEEDBACKSECRET\n"
    )
    (folder / "test.csv").write_text("items,answer,feedback\nt0,61.125..63.875,FEEDBACKSECRET\n")
    with Study.open(folder) as study:
        for name in ("bob-the-other", "cleo-the-other"):
            study.annotators.record_consent(name)
            study.annotators.answer_test(name, 1, {"t0": 62.0})
            for _ in range(6):
                task = study.ask(name)
                study.tell(task, {task.items[0].id: 17.0 + len(name)})
    return serve_study(folder)


class Eavesdropper:
    """Notes everything that comes back."""

    def __init__(self, person: Person) -> None:
        self.said: list[tuple[str, str]] = []
        person.http.event_hooks = {"response": [self._note]}

    def _note(self, response: httpx.Response) -> None:
        response.read()
        self.said.append(
            (f"{response.request.method} {response.request.url.path}", response.text + str(response.headers))
        )


def test_known_answers_never_reach_the_browser(server):
    ann = server.person()
    eavesdropper = Eavesdropper(ann)
    ann.join("ann")
    ann.post("/consent")
    ann.get("/qualification")
    ann.post("/qualification", {"number": 1, "answer": {"t0": 62.5}})
    purposes = set()
    shapes = {}
    for _ in range(12):
        answer = ann.tasks()
        if not answer["tasks"]:
            break
        task = answer["tasks"][0]
        out = server.study._log._state.assigned_task(task["judgment_id"])
        purpose = out.purpose if out is not None else "judgment"
        purposes.add(purpose)
        response = ann.tell(task, {task["items"][0]["id"]: 62.5})
        shapes[purpose] = (sorted(task), sorted(task["items"][0]), sorted(response.json()), response.json()["feedback"])
        ann.put(f"/judgments/{task['judgment_id']}", {"answer": {task["items"][0]["id"]: 63}})
        ann.post(f"/tasks/{task['judgment_id']}/flag", {"reason": "?"})
    ann.get("/judgments", params={"recent": 200})
    ann.get("/me")
    ann.get("/training")
    ann.http.get(server.page)
    assert {"check", "judgment"} <= purposes
    # Nor does a check look like one.
    assert shapes["check"] == shapes["judgment"]
    assert len(eavesdropper.said) > 40
    for place, text in eavesdropper.said:
        for secret in GOLD:
            assert secret not in text, place
        assert not re.search(r'"(gold|purpose|right|expected|about|group|tags)"', text), place


def test_annotators_read_neither_scores_nor_each_other(server):
    """Every request that the description knows, and every page, with an annotator's session."""
    ann = server.person()
    eavesdropper = Eavesdropper(ann)
    ann.join("ann")
    description = httpx.get(f"{server.url}/api/v1/openapi.json").json()
    count = 0
    for path, operations in description["paths"].items():
        place = path.format(
            study="study", judgment_id="x", name="scores", form="csv", what="judgments", language="en", draft="0" * 16,
            kind="checks", report="0" * 16,
        )  # fmt: skip
        for method in operations:
            query = {"id": "w0"} if path.endswith("/item") else {}
            response = ann.http.request(
                method, server.url + place, params=query, headers={"X-CSRF-Token": ann.csrf}, json={}
            )
            count += 1
            if "/manage" in path:
                assert response.status_code == 401, path
    for page in (
        "/",
        "/s/study/",
        "/manage/",
        "/manage/study/",
        "/manage/study/item?id=w0",
        "/manage/study/edit",
        "/manage/new",
    ):
        ann.http.get(server.url + page, headers={"Accept": "text/html"})
    assert count >= 33
    scores = [str(score) for score in server.study.scores()["score"].drop_nulls() if score % 1]
    for place, text in eavesdropper.said:
        if place.endswith("openapi.json"):
            continue
        assert "the-other" not in text, place
        assert not any(score in text for score in scores), place
        if text.startswith("{"):
            assert "scores" not in json.loads(text.partition("Headers(")[0]), place
