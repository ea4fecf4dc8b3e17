"""Thirty annotators at once: three in browsers, twenty-seven through the API that the page uses."""

from __future__ import annotations

import threading

import pytest

from tests.web.conftest import start_in_thread
from tests.web.pages.studies import write_study

pytestmark = [pytest.mark.browser, pytest.mark.server]

ANSWERS = 3


def test_thirty_annotators_at_once_are_all_served_and_everything_is_stored_once(tmp_path, judge):
    server = start_in_thread(
        [write_study(tmp_path / "crowd", items=20, people=f"max_tasks = {ANSWERS}", design="judgments = 30")]
    )
    failures: list[str] = []

    def work(number: int) -> None:
        person = server.person(f"script {number}")
        for _ in range(ANSWERS):
            task = person.task()
            reply = person.tell(task, {"winner": task["items"][number % 2]["id"]})
            if reply.status_code != 200:
                failures.append(reply.text)
        if person.tasks()["no_task"]["reason_code"] != "quota":
            failures.append(f"script {number} got more than its share")
        person.http.close()

    try:
        seated = [judge(server.page, f"browser {number}") for number in range(3)]
        threads = [threading.Thread(target=work, args=(number,)) for number in range(27)]
        for thread in threads:
            thread.start()
        for _ in range(ANSWERS - 1):
            for person in seated:
                person.answer("1")
        for person in seated:
            person.press("2")
            person.submit()
            person.says(f"Answers you have given: {ANSWERS}. All of them are saved.")
        for thread in threads:
            thread.join(60)
        assert failures == []
        counts = dict(server.study.judgments()["annotator"].value_counts().iter_rows())
        assert len(counts) == 30
        assert set(counts.values()) == {ANSWERS}
    finally:
        server.stop()
