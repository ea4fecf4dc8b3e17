"""The manager's API: who may, what it says, and what it does."""

from __future__ import annotations

import csv
import io
import json

import httpx
import polars as pl
import pytest

from steelyard import Study
from steelyard.study.team import Team
from steelyard.web.calculator import PARTS
from tests.web.manage.conftest import Manager, wait_for

DESIGN = 'name = "per_item"\njudgments = 3'
VALUES = {"w0": 10, "w1": 40, "w2": 50, "w3": 90, "w4": 70}


def judge(folder, *people, shift=0):
    """Let people rate every item near its value."""
    with Study.open(folder) as study:
        for place, name in enumerate(people):
            while (task := study.ask(name)) is not None:
                value = min(100, max(0, VALUES[task.item_ids[0]] + shift + 3 * place))
                study.tell(task, {task.item_ids[0]: value}, seconds=4 + place)


@pytest.fixture
def judged(make_study, serve_study, manager_of):
    folder = make_study(design=DESIGN, items=5)
    judge(folder, "ann", "bob")
    server = serve_study(folder)
    return server, manager_of(server)


@pytest.mark.parametrize(
    "path",
    [
        "/summary",
        "/tables/scores",
        "/scores",
        "/systems",
        "/item?id=w0",
        "/charts/scores.svg",
        "/download/log.jsonl",
        "/live",
        "/config",
    ],
)
def test_nobody_but_the_manager_reads_anything(judged, path):
    server, _ = judged
    person = server.person("ann-too")
    for response in (httpx.get(f"{server.api}/manage{path}"), person.get(f"/manage{path}")):
        assert response.status_code == 401
        assert response.json()["error"]["code"] == "manager_only"


def test_systems_are_compared_where_items_belong_to_them(make_study, serve_study, manager_of):
    folder = make_study(design=DESIGN, items=5)
    rows = "".join(f"w{n},word {n},{'odd' if n % 2 else 'even'}\n" for n in range(5))
    (folder / "items.csv").write_text("id,text,system\n" + rows)
    judge(folder, "ann", "bob")
    manager = manager_of(serve_study(folder))
    body = manager.get("/systems").json()
    with Study.open(folder) as study:
        expected = study.systems()
    assert [row["system"] for row in body["scores"]] == expected.scores["system"].to_list()
    assert [row["score"] for row in body["scores"]] == pytest.approx(expected.scores["score"].to_list())
    assert body["differences"][0]["p_holm"] == pytest.approx(expected.differences["p_holm"][0])
    assert manager.get("/download/differences.csv").status_code == 200
    assert manager.get("/charts/systems.svg").status_code == 200


def test_a_study_without_systems_says_so(judged):
    _, manager = judged
    response = manager.get("/systems")
    assert response.status_code == 409
    assert response.json()["error"]["code"] == "no_systems"


def test_a_browser_without_the_csrf_token_changes_nothing(judged):
    server, manager = judged
    with httpx.Client(base_url=server.url, follow_redirects=True) as browser:
        assert browser.get(f"/manage/?token={server.token}").status_code == 200
        refused = browser.post(f"/api/v1/studies/{server.slug}/manage/state", json={"state": "closed"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "stale_page")
    assert manager.get("/summary").json()["state"] == "open"


def test_the_summary_says_how_far_the_study_is_in_numbers_and_words(judged):
    _, manager = judged
    summary = wait_for(lambda: set((s := manager.get("/summary").json())["parts"]) == set(PARTS) and s)
    assert (summary["done"], summary["total"], summary["judgments"], summary["annotators"]) == (10, 15, 10, 2)
    assert (summary["as_of"], summary["finished"], summary["state"]) == (10, False, "open")
    assert summary["texts"]["progress"] == "10 of 15"
    assert summary["texts"]["percent"] == "66 %"
    # Ten judgments of 4 and 5 seconds: 45 s; fifteen would take 67.5 s.
    assert summary["texts"]["cost"] == "45 s"
    assert "68 s in total" in summary["texts"]["cost_forecast"]
    assert "judgments per hour" in summary["texts"]["rate_interval"]
    assert {"progress", "speed", "scores", "histogram", "annotators"} <= set(summary["charts"])


def test_tables_sort_search_and_come_in_pages(judged):
    _, manager = judged
    best = manager.table("scores")
    # The mean of v and v + 3.
    assert [(row["item"], row["score"]) for row in best["rows"]][:2] == [("w3", 91.5), ("w4", 71.5)]
    worst = manager.table("scores", sort="score", limit=2)
    assert [row["item"] for row in worst["rows"]] == ["w0", "w1"]
    assert worst["total"] == 5
    assert [row["item"] for row in manager.table("scores", sort="score", limit=2, offset=4)["rows"]] == ["w3"]
    assert [row["item"] for row in manager.table("scores", search="WORD w2")["rows"]] == ["w2"]
    assert manager.get("/tables/scores", sort="nonsense").status_code == 404
    people = manager.table("annotators", sort="median_seconds", descending=True)["rows"]
    assert [(row["annotator"], row["median_seconds"]) for row in people] == [("bob", 5), ("ann", 4)]


def test_an_items_page_has_all_its_judgments(judged):
    _, manager = judged
    page = manager.get("/item", id="w3").json()
    assert page["item"]["text"] == "word w3"
    assert [(row["annotator"], row["answer_text"]) for row in page["judgments"]] == [("bob", "93"), ("ann", "90")]
    missing = manager.get("/item", id="nothing")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "no_such_item")


def test_charts_come_as_picture_specification_and_data(judged):
    _, manager = judged
    manager.table("scores")
    svg = manager.get("/charts/scores.svg", theme="dark", width=300)
    assert svg.headers["content-type"] == "image/svg+xml"
    assert "Highest: w3" in svg.text
    assert manager.get("/charts/scores.png").content.startswith(b"\x89PNG")
    assert manager.get("/charts/scores.json").json()["title"]["text"][0].startswith("Highest: w3")
    rows = list(csv.DictReader(io.StringIO(manager.get("/charts/scores.csv", download=True).text)))
    assert [row["item"] for row in rows] == ["w3", "w4", "w2", "w1", "w0"]
    assert "Highest" not in manager.get("/charts/item.svg", item="w3").text
    assert manager.get("/charts/nonsense.svg").status_code == 404


@pytest.mark.parametrize("what", ["scores", "judgments", "answers", "annotators", "statistics", "items"])
def test_everything_downloads_in_three_formats(judged, what):
    _, manager = judged
    read = {
        "csv": pl.read_csv,
        "jsonl": pl.read_ndjson,
        "parquet": pl.read_parquet,
    }
    heights = set()
    for form, reader in read.items():
        response = manager.get(f"/download/{what}.{form}")
        assert response.status_code == 200, response.text
        assert f"study-{what}.{form}" in response.headers["content-disposition"]
        heights.add(reader(io.BytesIO(response.content)).height)
    assert len(heights) == 1
    expected = {"scores": 5, "judgments": 10, "answers": 10, "annotators": 2, "items": 5}
    assert heights == {expected[what]} if what in expected else heights.pop() > 5


def test_the_log_downloads_whole_and_rebuilds_the_study(judged, tmp_path):
    from steelyard.study import read_log, rebuild

    server, manager = judged
    (tmp_path / "log.jsonl").write_bytes(manager.get("/download/log.jsonl").content)
    with rebuild(read_log(tmp_path / "log.jsonl"), server.folders[0], f"sqlite:///{tmp_path / 'again.db'}") as again:
        assert again.scores().equals(server.study.scores())


def test_a_stage_that_is_not_there_is_said(judged):
    """Found by fuzzing."""
    _, manager = judged
    response = manager.get("/download/judgments.csv", stage="nothing")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "no_such_stage")
    assert "no stage called 'nothing'" in response.json()["error"]["what"]


@pytest.mark.parametrize(
    "path", ["/download/log.jsonl", "/download/judgments.csv", "/download/annotators.jsonl", "/charts/annotators.csv"]
)
def test_downloads_name_nobody_unless_asked(judged, path):
    server, manager = judged
    called = server.study.privacy.pseudonym("bob")
    text = manager.get(path).text
    assert called in text
    assert "bob" not in text
    assert "bob" in manager.get(path, real_ids=True).text


def test_the_chart_of_an_item_names_people_on_the_page_and_not_in_a_file(judged):
    _, manager = judged
    on_page = manager.get("/charts/item.json", item="w0").text
    assert '"bob"' in on_page
    downloaded = manager.get("/charts/item.json", item="w0", download=True)
    assert downloaded.status_code == 200
    assert "bob" not in downloaded.text


def test_a_person_is_forgotten_only_by_a_manager_who_is_sure(judged):
    server, manager = judged
    bob = server.person()
    bob.join_by(server.invite("bob").rpartition("=")[2])
    would = manager.post("/forget", {"annotator": "bob"}).json()
    assert would["done"] is False
    assert "5 of 5 scores change" in " ".join(would["effects"])
    assert bob.get("/me").json()["progress"]["answered"] == 5
    assert httpx.post(f"{server.api}/manage/forget", json={"annotator": "bob", "confirm": True}).status_code == 401
    done = manager.post("/forget", {"annotator": "bob", "confirm": True}).json()
    assert done["done"] is True
    assert server.study.privacy.pseudonym("bob") in " ".join(done["remaining_steps"])
    assert bob.get("/me").json()["annotator"] is None
    assert b"bob" not in (server.folders[0] / "study.db").read_bytes()
    assert wait_for(lambda: {row["annotator"] for row in manager.table("annotators")["rows"]} == {"ann"})
    assert manager.post("/forget", {"annotator": "bob"}).json()["error"]["code"] == "nobody"


def test_an_exclusion_sets_scores_aside_and_undoing_it_brings_them_back(judged):
    server, manager = judged
    before = {row["item"]: row["score"] for row in manager.get("/scores").json()["rows"]}
    refused = manager.post("/exclude", {"annotator": "bob", "reason": " "})
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "reason")
    assert manager.post("/exclude", {"annotator": "bob", "reason": "too fast"}).json() == {"done": True}
    assert manager.post("/exclude", {"annotator": "nobody", "reason": "?"}).status_code == 409
    without = {row["item"]: row["score"] for row in manager.get("/scores").json()["rows"]}
    assert without == {item: pytest.approx(value) for item, value in VALUES.items()}

    def reason():
        return {row["annotator"]: row for row in manager.table("annotators")["rows"]}["bob"]["excluded"]

    assert wait_for(reason) == "too fast"
    # What bob had judged is asked of others again.
    assert manager.get("/summary").json()["done"] == 5
    assert manager.post("/readmit", {"annotator": "bob"}).status_code == 200
    assert {row["item"]: row["score"] for row in manager.get("/scores").json()["rows"]} == before
    assert server.study.annotators.excluded == {}


def test_an_item_is_set_aside_and_asked_about_again(judged):
    server, manager = judged
    item = server.study.items[0].id
    assert manager.post("/set-aside", {"item": item, "reason": "cut off"}).json() == {"done": True}
    assert manager.post("/set-aside", {"item": "no such item"}).status_code == 409

    def reasons():
        return [(row["item"], row["set_aside"]) for row in manager.table("unjudged")["rows"]]

    assert wait_for(reasons) == [(item, "cut off")]
    assert "1 item set aside" in manager.get("/summary").json()["texts"]["annotators_now"]
    assert manager.get("/item", id=item).json()["item"]["set_aside"] == "cut off"
    assert manager.post("/ask-again", {"item": item}).status_code == 200
    assert server.study.quality.items_set_aside() == {}


def test_a_paused_study_asks_nobody_and_says_why(judged):
    server, manager = judged
    person = server.person("cleo")
    assert manager.post("/state", {"state": "paused", "reason": "lunch"}).status_code == 200
    nothing = person.tasks()["no_task"]
    assert nothing["reason_code"] == "paused"
    assert manager.get("/summary").json()["texts"]["state"] == "paused: no tasks are assigned (lunch)"
    assert manager.post("/state", {"state": "open"}).status_code == 200
    assert len(person.tasks()["tasks"]) == 1
    assert manager.post("/state", {"state": "asleep"}).status_code == 400


def test_a_check_that_is_not_there_cannot_be_settled(judged):
    _, manager = judged
    refused = manager.post("/resolve-check", {"check": "nonsense", "verdict": "right"})
    assert (refused.status_code, refused.json()["error"]["what"]) == (409, "there is no check 'nonsense'.")


def test_a_study_without_judgments_says_so_and_breaks_nothing(make_study, serve_study, manager_of):
    manager = manager_of(serve_study(make_study(items=3)))
    summary = wait_for(lambda: (s := manager.get("/summary").json())["as_of"] is not None and s)
    assert summary["texts"]["problem"] == "there are no judgments yet."
    assert summary["charts"] == []
    assert manager.table("scores")["rows"] == []
    refused = manager.get("/scores")
    assert (refused.status_code, refused.json()["error"]["what"]) == (409, "there are no judgments yet.")


def test_the_stream_sends_events_for_new_judgments_and_new_results(judged):
    server, manager = judged
    person = server.person("cleo")
    events: list[tuple[str, dict]] = []
    with manager.http.stream("GET", manager.api + "/live") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        kind = ""
        for line in stream.iter_lines():
            if line.startswith("event:"):
                kind = line.removeprefix("event: ")
            elif line.startswith("data:"):
                events.append((kind, json.loads(line.removeprefix("data: "))))
                if len(events) == 1:
                    task = person.task()
                    person.tell(task, {task["items"][0]["id"]: 50})
                latest = [data for name, data in events if name == "summary"][-1]
                if latest["as_of"] == 11 and set(latest["parts"]) == set(PARTS):
                    break
    assert events[0][0] == "summary"
    assert events[0][1]["judgments"] == 10
    assert latest["judgments"] == 11


def test_several_workers_show_the_same_study(make_study, serve_study, manager_of):
    folder = make_study(design=DESIGN, items=5)
    judge(folder, "ann")
    server = serve_study(folder, process=True, workers=2)
    manager = manager_of(server)
    person = server.person("bob")
    for _ in range(5):
        task = person.task()
        assert person.tell(task, {task["items"][0]["id"]: 5}).status_code == 200
    # Whichever worker answers, it knows what came through the other.
    for _ in range(6):
        with httpx.Client(headers=manager.http.headers) as fresh:
            assert fresh.get(manager.api + "/summary").json()["judgments"] == 10


def test_everything_is_described_in_the_openapi(judged):
    server, _ = judged
    paths = httpx.get(f"{server.url}/api/v1/openapi.json").json()["paths"]
    assert {
        "/api/v1/studies/{study}/manage/summary",
        "/api/v1/studies/{study}/manage/tables/{name}",
        "/api/v1/studies/{study}/manage/exclude",
        "/api/v1/studies/{study}/manage/download/{what}.{form}",
        "/api/v1/studies/{study}/manage/live",
        "/api/v1/manage/studies",
    } <= set(paths)


def test_an_annotators_page_is_shown_to_viewers_under_the_pseudonym(judged):
    server, manager = judged
    page = manager.get("/annotator", id="bob").json()
    assert page["annotator"]["judgments"] == 5
    assert {"Work", "Agreement"} <= {finding["aspect"] for finding in page["findings"]}
    called = server.study.privacy.pseudonym("bob")
    viewer = Manager(server)
    viewer.http.headers["Authorization"] = f"Bearer {Team(server.study).add('Vera', 'viewer')}"
    assert viewer.get("/annotator", id="bob").status_code == 404
    seen_by_viewer = viewer.get("/annotator", id=called).json()
    assert seen_by_viewer["findings"] == page["findings"]
    assert seen_by_viewer["annotator"]["annotator"] == called
    assert "bob" not in json.dumps(seen_by_viewer)
    viewer.http.close()
    assert manager.get("/annotator", id="nobody").status_code == 404


def test_scores_show_and_filter_by_further_columns_of_the_items(make_study, serve_study, manager_of):
    folder = make_study(design=DESIGN, items=5)
    lines = (folder / "items.csv").read_text(encoding="utf-8").splitlines()
    rows = [
        f"{lines[0]},domain,tags",
        *(f"{line},{'web' if n % 2 else 'news'},t{n};x" for n, line in enumerate(lines[1:])),
    ]
    (folder / "items.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    judge(folder, "ann", "bob")
    manager = manager_of(serve_study(folder))
    wait_for(lambda: manager.get("/summary").json()["parts"].get("scores"))
    page = manager.table("scores", where="item.domain=web")
    assert {row["item"] for row in page["rows"]} == {"w1", "w3"}
    assert {row["item.tags"] for row in page["rows"]} == {"t1; x", "t3; x"}
    assert "item.gold" not in page["columns"]
    assert manager.table("scores", where="item.domain=films")["total"] == 0
    assert manager.get("/tables/scores", where="item.nonsense=1").status_code == 404
