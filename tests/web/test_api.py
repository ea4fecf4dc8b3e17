"""The API as a page uses it, against a real server."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from steelyard import Study
from steelyard.study.core import now_in_microseconds
from steelyard.study.events import Trained
from steelyard.web import Studies

PROTOCOLS = {
    "direct": ('name = "direct"\nlabels = ["low", "high"]', lambda ids: {ids[0]: 40}),
    "likert": ('name = "likert"', lambda ids: {ids[0]: 3}),
    "choice": ('name = "choice"\nlabels = ["yes", "no"]', lambda ids: {ids[0]: "yes"}),
    "pairwise": ('name = "pairwise"', lambda ids: {"winner": ids[1]}),
    "best_worst": ('name = "best_worst"', lambda ids: {"best": ids[2], "worst": ids[0]}),
    "scored_ranking": ('name = "scored_ranking"', lambda ids: {name: 10 * n for n, name in enumerate(ids)}),
    "ranking": ('name = "ranking"\nsize = 3', lambda ids: [[ids[2]], [ids[0], ids[1]]]),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_is_asked_and_answered(protocol, make_study, serve_study):
    settings, answer = PROTOCOLS[protocol]
    server = serve_study(make_study(settings))
    ann = server.person("ann")
    task = ann.task()
    ids = [item["id"] for item in task["items"]]
    assert task["protocol"] == protocol
    assert task["question"] == "How positive?"
    saved = ann.tell(task, answer(ids))
    assert saved.json()["saved"] is True
    row = server.study.judgments().row(0, named=True)
    assert (row["annotator"], row["items"]) == ("ann", ids)
    # The answer came sooner than the two seconds that it claims; the claim stays in the log.
    assert 0 <= row["seconds"] <= 2.0
    assert [event.data.seconds for event in server.study.events(("judgment",))] == [2.0]


def test_asking_again_gives_the_same_tasks(make_study, serve_study):
    ann = serve_study(make_study()).person("ann")
    first = [task["judgment_id"] for task in ann.tasks(3)["tasks"]]
    assert len(set(first)) == 3
    assert [task["judgment_id"] for task in ann.tasks(3)["tasks"]] == first
    assert [task["judgment_id"] for task in ann.tasks(1)["tasks"]] == first[:1]


def test_the_same_answer_again_is_one_judgment(make_study, serve_study):
    server = serve_study(make_study())
    ann = server.person("ann")
    task = ann.task()
    answer = {task["items"][0]["id"]: 70}
    assert ann.tell(task, answer).status_code == ann.tell(task, answer).status_code == 200
    assert server.study.judgments().height == 1


def test_ten_sent_at_once_from_two_tabs_are_ten_judgments(make_study, serve_study):
    server = serve_study(make_study(items=20, extra="[page]\nprefetch = 10"))
    ann = server.person("ann")
    tasks = ann.tasks(10)["tasks"]
    with ThreadPoolExecutor(8) as pool:
        sent = list(pool.map(lambda task: ann.tell(task, {task["items"][0]["id"]: 1}), tasks * 2))
    assert {response.status_code for response in sent} == {200}
    assert server.study.judgments().height == 10


def test_when_there_is_nothing_left_it_says_why(make_study, serve_study):
    server = serve_study(make_study(extra="[annotators]\nmax_tasks = 2"))
    ann = server.person("ann")
    for _ in range(2):
        task = ann.task()
        ann.tell(task, {task["items"][0]["id"]: 1})
    answer = ann.tasks()
    assert answer["tasks"] == []
    assert answer["no_task"]["reason_code"] == "quota"
    assert answer["progress"] == {"answered": 2, "limit": 2, "minutes_left": 0.0}


@pytest.mark.parametrize("state", ["paused", "closed"])
def test_answers_on_their_way_are_kept_when_the_study_rests(state, make_study, serve_study):
    server = serve_study(make_study())
    ann = server.person("ann")
    task = ann.task()
    server.study.set_state(state, "Lunch.")
    assert ann.tasks(2)["no_task"] == {"reason_code": state, "reason": "Lunch.", "ending": None}
    study = ann.get("/me").json()["study"]
    assert (study["state"], study["state_reason"]) == (state, "Lunch.")
    assert ann.tell(task, {task["items"][0]["id"]: 1}).status_code == 200
    assert ann.tasks()["tasks"] == []
    server.study.set_state("open")
    assert ann.get("/me").json()["study"]["state_reason"] == ""
    assert ann.tasks()["tasks"]


def test_an_excluded_annotator_is_told_politely(make_study, serve_study):
    server = serve_study(make_study(extra='[annotators]\ncontact = "lab@example.org"'))
    ann = server.person("ann")
    task = ann.task()
    ann.tell(task, {task["items"][0]["id"]: 1})
    server.study.annotators.exclude("ann", "spam, pure and simple")
    nothing = ann.tasks()["no_task"]
    assert nothing["reason_code"] == "excluded"
    assert "spam" not in nothing["reason"]
    assert ann.get("/me").json()["study"]["contact"] == "lab@example.org"


def test_skip_and_flag_are_in_the_log_with_their_reasons(make_study, serve_study):
    server = serve_study(make_study())
    ann = server.person("ann")
    task = ann.task()
    name = task["judgment_id"]
    assert ann.post(f"/tasks/{name}/flag", {"reason": "typo"}).status_code == 200
    assert ann.post(f"/tasks/{name}/skip", {"reason": "cannot read it"}).status_code == 200
    assert ann.task()["judgment_id"] != name
    noted = [(event.kind, event.data.reason) for event in server.study.events(("skip", "flag"))]
    assert noted == [("flag", "typo"), ("skip", "cannot read it")]


def test_renewing_moves_the_end_of_the_lease(make_study, serve_study):
    ann = serve_study(make_study()).person("ann")
    task = ann.task()
    renewed = ann.post(f"/tasks/{task['judgment_id']}/renew", {}).json()
    assert renewed["lease_end"] > task["lease_end"]


def test_recent_answers_can_be_seen_and_changed(make_study, serve_study):
    server = serve_study(make_study(extra="[annotators]\nrevisable_answers = 2"))
    ann = server.person("ann")
    tasks = []
    for value in (10, 20, 30):
        task = ann.task()
        ann.tell(task, {task["items"][0]["id"]: value})
        tasks.append(task)
    recent = ann.get("/judgments", params={"recent": 3}).json()["judgments"]
    assert [row["task"]["judgment_id"] for row in recent] == [task["judgment_id"] for task in reversed(tasks)]
    assert [list(row["answer"].values()) for row in recent] == [[30], [20], [10]]
    assert [row["may_change"] for row in recent] == [True, True, False]
    item = tasks[1]["items"][0]["id"]
    assert ann.put(f"/judgments/{tasks[1]['judgment_id']}", {"answer": {item: 99}}).status_code == 200
    late = ann.put(f"/judgments/{tasks[0]['judgment_id']}", {"answer": {tasks[0]["items"][0]["id"]: 99}})
    assert (late.status_code, late.json()["error"]["code"]) == (403, "too_late")
    scores = dict(server.study.scores().select("item", "score").iter_rows())
    assert (scores[item], scores[tasks[0]["items"][0]["id"]]) == (99, 10)


def test_minutes_left_come_from_the_annotators_own_pace_and_from_others_at_first(make_study, serve_study):
    server = serve_study(make_study(items=30, extra="[annotators]\nmax_tasks = 20"))
    passed = 0
    server.study._clock = lambda: now_in_microseconds() + passed
    ann, bob = server.person("ann"), server.person("bob")
    assert ann.get("/me").json()["progress"]["minutes_left"] is None
    for _ in range(5):
        task = ann.task()
        passed += 12_000_000
        ann.tell(task, {task["items"][0]["id"]: 1}, seconds=12)
    # 15 left at 12 s each are 3 minutes; bob, of whom nothing is known, has 20 left at ann's pace.
    assert ann.get("/me").json()["progress"]["minutes_left"] == 3.0
    assert bob.get("/me").json()["progress"]["minutes_left"] == 4.0
    for seconds in (60, 60, 60, 60, 600):
        task = bob.task()
        passed += seconds * 1_000_000
        bob.tell(task, {task["items"][0]["id"]: 1}, seconds=seconds)
    assert bob.get("/me").json()["progress"]["minutes_left"] == 15.0


def test_the_pace_is_known_again_after_a_restart(make_study, serve_study):
    folder = make_study(items=30, extra="[annotators]\nmax_tasks = 20")
    with Study.open(folder) as study:
        for _ in range(5):
            task = study.ask("ann")
            study.tell(task, {task.item_ids[0]: 1}, seconds=12)
        link = study.access.grant("invite", annotator="ann")
    ann = serve_study(folder).person()
    assert ann.join_by(link)["progress"] == {"answered": 5, "limit": 20, "minutes_left": 3.0}


def test_consent_comes_before_the_first_task(make_study, serve_study):
    folder = make_study(extra='[annotators]\nconsent = "consent.md"\ninstructions = "Judge **well**."')
    (folder / "consent.md").write_text("# Consent\n<script>alert(1)</script>")
    server = serve_study(folder)
    ann = server.person()
    before = ann.get("/me").json()
    assert before["needs"] == ["name", "consent"]
    assert "<h1>Consent</h1>" in before["consent_html"]
    assert "<script" not in before["consent_html"]
    assert "<strong>well</strong>" in before["instructions_html"]
    assert ann.join("ann")["needs"] == ["consent"]
    refused = ann.post("/tasks", {"count": 1})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "consent_needed")
    assert ann.post("/consent").json()["needs"] == []
    ann.post("/consent")
    assert len(list(server.study.events(("consent",)))) == 1
    assert ann.task()


def test_the_questionnaire_comes_after_the_consent_and_before_the_first_task(make_study, serve_study):
    questions = """[annotators]
consent = "We store your answers."
[[annotators.questionnaire]]
name = "reads"
question = "How often do you read?"
choices = ["daily", "rarely"]
[[annotators.questionnaire]]
name = "age"
question = "How old are you?"
type = "number"
optional = true
"""
    server = serve_study(make_study(extra=questions))
    ann = server.person()
    assert ann.join("ann")["needs"] == ["consent", "questionnaire"]
    answers = {"answers": {"reads": "daily", "age": 42}}
    assert ann.post("/questionnaire", answers).json()["error"]["code"] == "consent_needed"
    questionnaire = ann.post("/consent").json()["questionnaire"]
    assert [(question["name"], question["choices"]) for question in questionnaire] == [
        ("reads", ["daily", "rarely"]),
        ("age", []),
    ]
    assert ann.post("/tasks").json()["error"]["code"] == "questionnaire_needed"
    wrong = ann.post("/questionnaire", {"answers": {"reads": "hourly"}})
    assert (wrong.status_code, wrong.json()["error"]["field"]) == (422, "reads")
    done = ann.post("/questionnaire", answers).json()
    assert (done["needs"], done["questionnaire"]) == ([], [])
    assert ann.task()
    # A second tab that sends other answers changes nothing.
    assert ann.post("/questionnaire", {"answers": {"reads": "rarely"}}).json()["needs"] == []
    assert server.study.annotators.attributes().rows() == [("ann", "daily", 42.0)]
    bob = server.person("bob")
    bob.post("/consent")
    assert bob.post("/questionnaire", {"answers": {"reads": None}}).json()["needs"] == []
    assert bob.get("/me").json()["needs"] == []


def test_training_gives_feedback_and_opens_the_study(make_study, serve_study):
    folder = make_study(extra='[annotators]\ntraining = "training.csv"')
    (folder / "training.csv").write_text('items,answer,feedback\nw0,80..100,"It is *good*."\nw1,0..20,\n')
    server = serve_study(folder)
    ann = server.person()
    assert ann.join("ann")["needs"] == ["training"]
    assert ann.post("/tasks").json()["error"]["code"] == "training_needed"
    first = ann.get("/training").json()
    assert (first["number"], first["of"], first["question"]["items"][0]["id"]) == (1, 2, "w0")
    assert first["question"]["lease_end"] is None
    invalid = ann.post("/training", {"number": 1, "answer": {"w0": 500}})
    assert (invalid.status_code, invalid.json()["error"]["code"]) == (422, "answer_invalid")
    assert ann.post("/training", {"number": 2, "answer": {"w1": 1}}).status_code == 409
    wrong = ann.post("/training", {"number": 1, "answer": {"w0": 5}}).json()
    assert (wrong["right"], wrong["expected"], wrong["done"]) == (False, "80 to 100", False)
    assert "<em>good</em>" in wrong["feedback_html"]
    assert ann.get("/training").json()["number"] == 2
    assert ann.post("/training", {"number": 2, "answer": {"w1": 5}}).json()["done"] is True
    assert ann.get("/training").json()["question"] is None
    assert [event.data for event in server.study.events(("trained",))] == [Trained(right=1, asked=2)]
    assert ann.get("/me").json()["needs"] == []
    assert ann.task()
    assert server.study.judgments().height == 0


def test_a_forged_training_record_counts_for_nothing(make_study, serve_study):
    folder = make_study(extra='[annotators]\ntraining = "training.csv"')
    (folder / "training.csv").write_text("items,answer\nw0,80..100\nw1,0..20\n")
    ann = serve_study(folder).person("ann")
    ann.http.cookies.set("steelyard_training", "2.2.forged")
    assert ann.get("/training").json()["number"] == 1


def test_what_all_items_share_is_said_once(tmp_path, serve_study):
    folder = tmp_path / "mt"
    folder.mkdir()
    (folder / "items.csv").write_text("id,text,context,reference\na,A,source,ra\nb,B,source,rb\n")
    (folder / "study.toml").write_text(
        'title = "MT"\nquestion = "Which?"\nitems = "items.csv"\n[protocol]\nname = "pairwise"\n'
    )
    task = serve_study(folder).person("ann").task()
    assert task["shared"]["context"] == "source"
    assert task["shared"]["context_html"] == '<div dir="ltr">source</div>'
    assert task["shared"]["reference"] is None
    assert [item["context_html"] for item in task["items"]] == [None, None]
    assert {item["reference"] for item in task["items"]} == {"ra", "rb"}


def test_criteria_come_as_a_list_with_their_scales(make_study, serve_study):
    protocol = 'name = "direct"\nlabels = ["low", "high"]\n[protocol.criteria.adequacy]\n[protocol.criteria.valence]\n'
    server = serve_study(make_study(protocol + 'scale = [-100, 100]\nlabels = ["bad", "good"]'))
    settings = server.person("ann").task()["settings"]
    assert settings["criteria"] == [
        {"name": "adequacy", "scale": [0, 100], "labels": ["low", "high"]},
        {"name": "valence", "scale": [-100, 100], "labels": ["bad", "good"]},
    ]


def test_media_are_served_from_their_folder_only(make_study, serve_study, tmp_path):
    folder = make_study()
    (folder / "items.csv").write_text("id,text,media\na,A,cat.png\nb,B,gone.png\n")
    (folder / "media").mkdir()
    (folder / "media" / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 100)
    server = serve_study(folder)
    items = {item["id"]: item for task in server.person("ann").tasks(2)["tasks"] for item in task["items"]}
    assert items["a"]["media"] == {"kind": "image", "url": "/s/study/media/cat.png"}
    assert (items["b"]["media"], items["b"]["media_missing"]) == (None, True)
    picture = httpx.get(server.url + items["a"]["media"]["url"])
    assert (picture.headers["content-type"], picture.headers["x-content-type-options"]) == ("image/png", "nosniff")
    part = httpx.get(server.url + items["a"]["media"]["url"], headers={"Range": "bytes=0-7"})
    assert (part.status_code, part.content) == (206, b"\x89PNG\r\n\x1a\n")
    for path in ("gone.png", "..%2fstudy.toml", "%2e%2e/study.db", "..%2f..%2f..%2fetc%2fpasswd"):
        assert httpx.get(f"{server.page}media/{path}").status_code == 404


def test_two_studies_on_one_server_do_not_mix(make_study, serve_study):
    server = serve_study(make_study(name="one"), make_study(name="two"))
    ann = server.person("ann")
    task = ann.task()
    ann.http.base_url = server.api.replace("one", "two")
    assert ann.get("/me").json()["annotator"] is None
    welcome = ann.http.post("/session", json={"name": "ann"}).json()
    answer = {"judgment_id": task["judgment_id"], "answer": {task["items"][0]["id"]: 1}}
    response = ann.http.post("/judgments", json=answer, headers={"X-CSRF-Token": welcome["csrf"]})
    assert (response.status_code, response.json()["error"]["code"]) == (404, "no_such_task")
    assert re.findall(r'href="(/s/\w+/)"', httpx.get(server.url).text) == ["/s/one/", "/s/two/"]


def test_folders_of_one_name_get_addresses_of_their_own(tmp_path, serve_study):
    folders = [tmp_path / "x" / "Über uns", tmp_path / "y" / "Über uns"]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "items.csv").write_text("id,text\na,A\n")
        (folder / "study.toml").write_text(
            'title = "T"\nquestion = "Q"\nitems = "items.csv"\n[protocol]\nname = "direct"\n'
        )
    server = serve_study(*folders)
    assert [served.slug for served in server.studies.all()] == ["uber-uns", "uber-uns-2"]


def test_everything_is_described(make_study, serve_study):
    server = serve_study(make_study())
    described = httpx.get(f"{server.url}/api/v1/openapi.json").json()
    base = "/api/v1/studies/{study}"
    for path in ("/session", "/me", "/consent", "/training", "/tasks", "/judgments", "/tasks/{judgment_id}/skip"):
        assert base + path in described["paths"]
    welcome = described["components"]["schemas"]["SessionOut"]["properties"]
    assert set(welcome) == set(server.person("ann").get("/me").json())


def test_a_study_changed_by_another_process_is_opened_anew(make_study, serve_study):
    folder = make_study()
    server = serve_study(folder)
    server.studies.all()[0]._tried -= 60
    ann = server.person("ann")
    ann.task()
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace('title = "Words"', 'title = "Good words"'))
    Study.open(folder).close()
    assert ann.post("/tasks").status_code == 503
    assert ann.post("/tasks").status_code == 200
    assert ann.get("/me").json()["study"]["title"] == "Good words"


def test_the_reference_lists_every_request_and_code(make_study, serve_study):
    root = Path(__file__).resolve().parents[2]
    reference = (root / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    base = "/api/v1/studies/{study}"
    described = httpx.get(f"{serve_study(make_study()).url}/api/v1/openapi.json").json()["paths"]
    judging = {
        f"`{method.upper()} {path.removeprefix(base)}`"
        for path, methods in described.items()
        for method, operation in methods.items()
        if operation.get("tags") == ["judging"]
    }
    assert len(judging) == 16
    assert judging == set(re.findall(r"^\| (`[A-Z]+ /\S+`) \|", reference, re.M))
    own = ("api", "app", "errors", "webhooks", "security", "identity", "pages")
    sources = [(root / "src" / "steelyard" / "web" / f"{name}.py").read_text(encoding="utf-8") for name in own]
    raised = {code for text in sources for code in re.findall(r'\b[45]\d\d,\s+"(\w+)"', text)}
    assert {"not_yours", "too_large", "no_such_media"} <= raised
    assert raised <= set(re.findall(r"`(\w+)`", reference))


def test_two_people_judge_on_every_database(make_study, serve_study, database_url):
    folder = make_study(design='name = "per_item"\njudgments = 2', extra="[page]\nprefetch = 6")
    server = serve_study(folder, database=database_url)
    for person in (server.person("ann"), server.person("bob")):
        for task in person.tasks(6)["tasks"]:
            assert person.tell(task, {task["items"][0]["id"]: 50}).status_code == 200
        assert person.tasks()["no_task"]["reason_code"] == "done"
        assert len(person.get("/judgments").json()["judgments"]) == 6
    assert server.study.judgments().height == 12


def test_a_study_added_in_one_worker_is_served_by_the_others(make_study, tmp_path):
    listing = tmp_path / "listing.txt"
    listing.write_text(f"{make_study(name='one')}\n")
    first, second = Studies(listing=listing), Studies(listing=listing)
    try:
        added = first.add(make_study(name="two"))
        assert added.slug == "two"
        assert first.add(added.folder) is added
        assert second.get("two").study.config.name == "two"
        assert [served.slug for served in second.all()] == ["one", "two"]
        assert second.get("three") is None
    finally:
        first.close()
        second.close()
