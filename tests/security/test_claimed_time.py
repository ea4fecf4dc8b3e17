"""A browser cannot make an answer dear by the time it claims."""

from __future__ import annotations

import httpx
import pytest

from tests.web.conftest import TOKEN

MANAGER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize("claimed", ["1e308", "1e999", "NaN", "Infinity", "-1", "1" + "0" * 400, "31536000"])
def test_a_claimed_time_changes_neither_cost_nor_pace(make_study, serve_study, claimed):
    server = serve_study(make_study(extra="[annotators]\nmax_tasks = 6\n[pay]\nper_hour = 3600\n"))
    ann = server.person("ann")
    task = ann.task()
    body = (
        f'{{"judgment_id": "{task["judgment_id"]}", "answer": {{"{task["items"][0]["id"]}": 5}}, "seconds": {claimed}}}'
    )
    headers = {"X-CSRF-Token": ann.csrf, "Content-Type": "application/json"}
    sent = ann.http.post("/judgments", content=body, headers=headers)
    assert sent.status_code in {200, 400}, sent.text
    # A dollar a second: the test takes less than a minute.
    assert server.study.annotators.pay()["total"].sum() < 60
    if sent.status_code == 200:
        assert [event.data.seconds for event in server.study.events(("judgment",))] == [float(claimed)]
        assert sent.json()["progress"]["minutes_left"] < 6
    summary = httpx.get(f"{server.api}/manage/summary", headers=MANAGER)
    assert summary.status_code == 200
