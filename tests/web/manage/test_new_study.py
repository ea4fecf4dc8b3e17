"""Creating and editing studies through the API of the five steps: drafts, uploads, plan, questions, sharing."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from steelyard import Study
from steelyard.web.toml_merging import merged_toml
from tests.web.conftest import TOKEN, Server

HEADERS = {"Authorization": f"Bearer {TOKEN}"}
BYTES = {"Content-Type": "application/octet-stream"}
WORDS = b"text\nhappy\nglad\nsad\nangry\n"
QUESTION = {"title": "Mood", "question": "How positive?", "protocol": {"name": "direct", "labels": ["not", "very"]}}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(30)


class Wizard:
    """Speaks the API as the pages do, with the owner's token."""

    def __init__(self, server: Server, study: str | None = None) -> None:
        self.http = httpx.Client(base_url=server.url, headers=HEADERS, timeout=60)
        self.base = "/api/v1/manage" if study is None else f"/api/v1/studies/{study}/manage"
        self.state: dict[str, Any] = self.http.post(f"{self.base}/drafts", json={}).json()

    @property
    def url(self) -> str:
        return f"{self.base}/drafts/{self.state['id']}"

    def put(self, path: str = "", **body: Any) -> dict[str, Any]:
        response = self.http.put(self.url + path, json=body)
        assert response.status_code == 200, response.text
        self.state = response.json()
        return self.state

    def upload(self, data: bytes, name: str, path: str = "/items") -> httpx.Response:
        response = self.http.put(self.url + path, params={"name": name}, content=data, headers=BYTES)
        if response.status_code == 200 and path == "/items":
            self.state = response.json()
        return response

    def values(self, **changes: Any) -> dict[str, Any]:
        return self.put(values={**self.state["values"], **changes})

    def finish(self) -> httpx.Response:
        return self.http.post(f"{self.url}/finish", json={})

    def problems(self) -> set[str]:
        return {problem["field"] for problem in self.state["problems"]}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def server(serve_study, workspace) -> Server:
    served: Server = serve_study(workspace=workspace)
    return served


@pytest.fixture
def wizard_of() -> Iterator[Callable[..., Wizard]]:
    """Return a function that begins a draft on a server."""
    wizards: list[Wizard] = []

    def begin(server: Server, study: str | None = None) -> Wizard:
        wizards.append(Wizard(server, study))
        return wizards[-1]

    yield begin
    for wizard in wizards:
        wizard.http.close()


@pytest.fixture
def wizard(server, wizard_of) -> Wizard:
    """A draft of a new study in an empty workspace."""
    begun: Wizard = wizard_of(server)
    return begun


def test_a_workspace_without_studies_leads_to_a_study_that_can_be_judged(server, workspace, wizard_of):
    page = httpx.get(f"{server.url}/manage/", headers=HEADERS)
    assert "No studies yet" in page.text
    wizard = wizard_of(server)
    assert wizard.problems() == {"items", "title", "question", "protocol"}
    wizard.upload(WORDS, "words.csv")
    wizard.values(**QUESTION)
    assert wizard.state["problems"] == []
    assert [item["text"] for item in wizard.state["previews"][0]["items"]] == ["happy"]
    created = wizard.finish()
    assert created.status_code == 201, created.text
    with Study.open(workspace / "mood") as study:
        assert [item.text for item in study.items] == ["happy", "glad", "sad", "angry"]
        # The same model as `steelyard new` writes.
        assert study.config.model.name == "calibrated_scale"
        assert study.ask("ann") is not None
    assert httpx.get(f"{server.url}/s/mood/").status_code == 200
    assert wizard.http.get(wizard.url).status_code == 404  # the draft is gone


def test_a_draft_is_left_and_resumed_with_everything_in_it(serve_study, workspace, wizard):
    wizard.upload(WORDS, "my words.csv")
    wizard.values(**QUESTION)
    wizard.put(step="plan", plan=[{"automatic": True, "judgments": 5}])
    again = serve_study(workspace=workspace)
    page = httpx.get(f"{again.url}/manage/", headers=HEADERS).text
    assert "Mood" in page
    assert "my words.csv" in page
    state = httpx.get(f"{again.url}{wizard.url}", headers=HEADERS).json()
    assert (state["step"], state["items"]["name"], state["values"]["design"]["judgments"]) == (
        "plan",
        "my words.csv",
        5,
    )
    assert wizard.http.request("DELETE", wizard.url, json={}).status_code == 204
    assert "my words.csv" not in httpx.get(f"{again.url}/manage/", headers=HEADERS).text


def test_columns_header_and_encoding_are_corrected_by_the_researcher(wizard):
    wizard.upload("Größe;klein\nWärme;kalt\n".encode("cp1252"), "wörter.csv")
    items = wizard.state["items"]
    assert (items["total"], items["is_header_certain"], items["encoding"]) == (2, False, "cp1252")
    assert "Windows-1252" in items["notes"][0]
    wizard.put("/items/columns", has_header=True)
    assert wizard.state["items"]["columns"] == ["Größe", "klein"]
    assert (wizard.state["item_count"], wizard.state["items"]["is_header_certain"]) == (1, True)
    wizard.put("/items/columns", has_header=False, roles={"column 1": "source", "column 2": "text"})
    [first, _] = wizard.state["items"]["rows"]
    assert first == ["Größe", "klein"]
    wizard.values(**QUESTION)
    task = wizard.state["previews"][0]
    assert (task["items"][0]["text"], task["items"][0]["context"] or task["shared"]["context"]) == ("klein", "Größe")


def test_problems_name_the_users_file_and_line_and_repeats_can_be_left_out(wizard):
    wizard.upload(b"text\nsame\nother\nsame\n", "Meine Liste.csv")
    [problem] = [problem for problem in wizard.state["problems"] if problem["field"] == "items"]
    assert problem["what"].startswith("Meine Liste.csv line 4: 'same' appears twice")
    assert problem["step"] == "items"
    wizard.put("/items/columns", drop_repeats=True)
    assert wizard.state["item_count"] == 2
    refused = wizard.upload(b"id,text\na,b,c\n", "broken.csv")
    assert refused.status_code == 422
    assert "broken.csv line 2" in refused.json()["error"]["what"]
    # What was there before stays.
    assert wizard.http.get(wizard.url).json()["items"]["name"] == "Meine Liste.csv"


def test_extra_columns_are_kept_with_the_items(workspace, wizard):
    wizard.upload(b"text,domain,word\nhappy,a,1\nsad,b,2\n", "w.csv")
    assert wizard.state["items"]["roles"] == {"text": "text", "domain": "extra", "word": "extra"}
    wizard.values(**QUESTION)
    assert wizard.finish().status_code == 201
    with Study.open(workspace / "mood") as study:
        assert [dict(item.metadata) for item in study.items] == [
            {"domain": "a", "word (extra)": "1"},
            {"domain": "b", "word (extra)": "2"},
        ]


OUTPUTS = "prompt;A;B;C\n" + "".join(f"question {n};of A {n};of B {n};of C {n}\n" for n in range(5))


def test_outputs_of_systems_are_compared_within_their_source_by_default(wizard):
    wizard.upload(OUTPUTS.encode(), "outputs.csv")
    assert wizard.state["systems"] == ["A", "B", "C"]
    wizard.values(**{**QUESTION, "protocol": {"name": "pairwise"}})
    plan = wizard.state["plan"]
    assert plan["stages"][0]["reason"].startswith("Outputs are compared within the same source")
    assert plan["judgments"] == 5 * 3  # three pairs for each of five sources
    contexts = {item["context"] for item in wizard.state["previews"][0]["items"]}
    assert contexts == {None}  # shared by both, shown once
    assert wizard.state["previews"][0]["shared"]["context"] == "question 0"


def test_the_preview_follows_the_question_type_and_says_nothing_rather_than_the_old_one(wizard):
    wizard.upload(WORDS, "w.csv")
    for name, size in (("direct", 1), ("pairwise", 2), ("best_worst", 4), ("ranking", 4), ("likert", 1)):
        settings = {"size": size} if name == "ranking" else {}
        wizard.values(**{**QUESTION, "protocol": {"name": name, **settings}})
        assert (wizard.state["previews"][0]["protocol"], len(wizard.state["previews"][0]["items"])) == (name, size)
        # Design and model follow too, until the researcher chooses them.
        assert wizard.state["problems"] == [], name
    wizard.values(**{**QUESTION, "protocol": {"name": "choice", "labels": ["only one"]}})
    assert wizard.state["previews"] == [None]
    assert "protocol.labels" in wizard.problems()


def test_hours_and_cost_follow_from_the_plan(wizard):
    wizard.upload(WORDS, "w.csv")
    wizard.values(**QUESTION, pay={"per_task": 0.5, "fee": 0.25}, quality={"repeat_rate": 0.5})
    wizard.put(plan=[{"automatic": True, "judgments": 3}], seconds=36, annotators=6)
    plan = wizard.state["plan"]
    # 4 items x 3 judgments; as many repeats again; 36 s each; 24 tasks x 0.5 and a quarter on top.
    assert (plan["judgments"], plan["tasks"], plan["hours"], plan["cost"]) == (12, 24, 0.24, 15.0)
    assert (plan["tasks_each"], plan["per_hour"]) == (4, 50)
    assert wizard.state["values"]["design"] == {"name": "per_item", "judgments": 3}


def test_more_judgments_are_expected_to_be_more_reliable(wizard):
    words = "text\n" + "".join(f"word {n}\n" for n in range(30))
    wizard.upload(words.encode(), "w.csv")
    assert wizard.http.post(f"{wizard.url}/reliability", json={}).status_code == 409  # there is no question yet
    wizard.values(**QUESTION)
    values = []
    for judgments in (2, 10):
        wizard.put(plan=[{"automatic": True, "judgments": judgments}], annotators=20)
        [stage] = wizard.http.post(f"{wizard.url}/reliability", json={}).json()
        assert stage["lower"] <= stage["value"] <= stage["upper"] <= 1
        values.append(stage["value"])
    assert values[0] < values[1]


def test_a_target_is_planned_with_progress_ranges_a_chart_and_a_sentence(wizard):
    words = "text\n" + "".join(f"word {n}\n" for n in range(30))
    wizard.upload(words.encode(), "w.csv")
    target = {"measure": "reliability", "goal": 0.8}
    assert wizard.http.post(f"{wizard.url}/target", json=target).status_code == 409  # there is no question yet
    wizard.values(**QUESTION, pay={"per_hour": 12, "currency": "€"})
    wizard.put(
        values={**wizard.state["values"], "model": {"name": "mean"}},
        automatic_model=False,
        plan=[{"automatic": True, "judgments": 3}],
        seconds=36,
        annotators=20,
    )

    def plan(**body):
        lines = [json.loads(line) for line in wizard.http.post(f"{wizard.url}/target", json=body).iter_lines()]
        progress = [line["done"] for line in lines[:-1]]
        assert progress == sorted(progress)
        return lines[-1]

    result = plan(**target)["result"]
    assert result["lower"] <= result["judgments"] <= result["upper"]
    # 36 seconds a judgment are a hundredth of an hour, paid 12 an hour.
    assert result["hours"] == pytest.approx(result["judgments"] / 100)
    assert result["cost"] == pytest.approx(12 * result["hours"])
    assert result["per_item"] == pytest.approx(result["judgments"] / 30, abs=0.01)
    assert f"{result['judgments']:,} direct judgments" in result["sentence"]
    assert "the model mean" in result["sentence"]
    assert result["chart"].startswith("<svg")
    afforded = plan(measure="cost", goal=12 * result["hours"])["result"]
    assert afforded["judgments"] == pytest.approx(result["judgments"], abs=1)
    assert afforded["reached"][0] == pytest.approx(0.8, abs=0.1)
    assert "between 0 and 1" in plan(measure="interval_width", goal=3)["error"]["remedy"]


def test_two_stages_each_with_their_own_plan(workspace, wizard):
    wizard.upload(OUTPUTS.encode(), "outputs.csv")
    stages = [
        {"name": "compare", "protocol": {"name": "pairwise"}, "design": {"name": "tournament"}},
        {"name": "adequate", "protocol": {"name": "choice", "labels": ["yes", "no"]}},
    ]
    wizard.put(
        values={**wizard.state["values"], "title": "Mood", "question": "Which is better?", "stage": stages},
        plan=[{"automatic": False, "judgments": None}, {"automatic": True, "judgments": 2}],
    )
    assert wizard.state["problems"] == []
    assert [task["protocol"] for task in wizard.state["previews"]] == ["pairwise", "choice"]
    assert "[[stage]]" in wizard.state["text"]
    assert wizard.finish().status_code == 201
    with Study.open(workspace / "mood") as study:
        assert [stage.design.name for stage in study.config.stages] == ["tournament", "per_item"]


def test_parts_have_their_own_question_and_are_mixed_by_share(server, workspace, wizard):
    wizard.upload(WORDS, "words.csv")
    first = {"name": "first", "protocol": {"name": "direct"}, "share": 0.6}
    second = {"name": "second", "protocol": {"name": "choice", "labels": ["yes", "no"]}, "question": "Is it a mood?"}
    values = {key: value for key, value in wizard.state["values"].items() if key not in {"protocol", "design"}}
    state = wizard.put(values={**values, "title": "Mood", "question": "How positive?", "stage": [first, second]})
    assert [preview["question"] for preview in state["previews"]] == ["How positive?", "Is it a mood?"]
    [problem] = state["problems"]
    assert (problem["field"], problem["step"]) == ("stage.1.share", "plan")
    state = wizard.put(values={**state["values"], "stage": [first, {**second, "share": 0.4}]})
    assert state["problems"] == []
    assert wizard.finish().status_code == 201
    questions = {}
    person = server.person()
    person.http.base_url = f"{server.url}/api/v1/studies/mood/"
    person.join("ann")
    for _ in range(8):
        [task] = person.tasks()["tasks"]
        questions[task["stage"]] = task["question"]
        name = task["items"][0]["id"]
        assert person.tell(task, {name: 50} if task["protocol"] == "direct" else {name: "yes"}).status_code == 200
    assert questions == {"first": "How positive?", "second": "Is it a mood?"}


def test_two_people_editing_one_draft_do_not_overwrite_each_other(wizard):
    first = wizard.values(title="Mood")

    def put(state: dict[str, Any], path: str = "", **body: Any) -> httpx.Response:
        response: httpx.Response = wizard.http.put(
            wizard.url + path, json=body, headers={"If-Match": f'"{state["updated"]}"'}
        )
        return response

    by_ann = put(first, values={**first["values"], "title": "Ann's"})
    assert by_ann.status_code == 200
    by_bea = put(first, values={**first["values"], "title": "Bea's"})
    assert by_bea.status_code == 412
    assert "Reload the page" in by_bea.json()["error"]["remedy"]
    assert put(first, "/questions/checks", rows=[]).status_code == 412
    refused = wizard.http.put(
        f"{wizard.url}/items", params={"name": "w.csv"}, content=WORDS, headers={**BYTES, "If-Match": "0"}
    )
    assert refused.status_code == 412
    state = wizard.http.get(wizard.url).json()
    assert state["values"]["title"] == "Ann's"
    assert state["item_count"] == 0
    assert put(state, values={**state["values"], "title": "Bea's"}).status_code == 200


def test_what_is_typed_as_text_comes_back_into_the_form_and_comments_stay(wizard):
    wizard.upload(WORDS, "w.csv")
    wizard.values(**QUESTION)
    text = wizard.state["text"].replace('title = "Mood"', '# ours\ntitle = "Feelings"  # for now')
    wizard.put(text=text)
    assert wizard.state["values"]["title"] == "Feelings"
    wizard.values(question="How glad?")
    assert "# ours" in wizard.state["text"]
    assert 'question = "How glad?"' in wizard.state["text"]
    broken = wizard.put(text="title = ")
    assert broken["problems"]
    assert broken["text"] == "title = "


@pytest.mark.parametrize(
    "change",
    [
        {"items": {"file": "items.csv", "columns": 3}},
        {"items": 5},
        {"stage": [{"protocol": 3}, 4]},
        {"protocol": {"name": "direct", "scale": "wide"}},
        {"quality": {"checks": 7}},
        {"page": [1], "model": "best"},
    ],
)
def test_nonsense_is_a_problem_of_the_draft_which_can_be_corrected(wizard, change):
    wizard.upload(WORDS, "w.csv")
    wizard.values(**{**QUESTION, **change})
    assert wizard.state["problems"]
    wizard.put(values={**QUESTION, "items": "items.csv"})
    assert wizard.state["problems"] == []


def test_merging_values_into_a_text_gives_exactly_these_values():
    text = '# a study\ntitle = "a"\n\n[design] # chosen\nname = "per_item"\njudgments = 3\n\n[page]\nprefetch = 2\n'
    values = {"title": "b", "seed": 3, "design": {"name": "per_item", "judgments": 5}, "pay": {"per_task": 0.1}}
    merged = merged_toml(text, values)
    assert tomllib.loads(merged) == values
    assert "# a study" in merged
    assert "# chosen" in merged


def test_questions_with_known_answers_are_typed_or_uploaded(workspace, wizard):
    wizard.upload(WORDS, "w.csv")
    wizard.values(**QUESTION)
    wizard.put("/questions/checks", rows=[{"items": "happy", "answer": "60..100", "feedback": "It is."}])
    assert wizard.state["values"]["quality"]["checks"] == {"file": "checks.csv"}
    table = b"Item;Answer\nsad;0..40\nhappy;60..100\n"
    assert wizard.upload(table, "my test.csv", "/questions/qualification/file").status_code == 200
    state = wizard.http.get(wizard.url).json()
    assert state["problems"] == []
    assert [row["items"] for row in state["questions"]["qualification"]] == ["sad", "happy"]
    wizard.put("/questions/checks", rows=[{"items": "happy", "answer": "600"}])
    [problem] = wizard.state["problems"]
    assert problem["step"] == "quality"
    assert "checks.csv line 2" in problem["what"]
    wizard.put("/questions/checks", rows=[])
    assert "checks" not in wizard.state["values"].get("quality", {})
    assert wizard.finish().status_code == 201
    with Study.open(workspace / "mood") as study:
        assert study.config.quality.qualification.file == "qualification.csv"


def test_media_are_held_against_the_items(workspace, wizard):
    wizard.upload(b"id,image\n1,cats/a.png\n2,b.png\n", "pictures.csv")
    assert wizard.state["media"]["missing"] == ["b.png", "cats/a.png"]
    stored = wizard.upload(PNG, "a.png", "/media").json()
    assert (stored["needed"], stored["missing"]) == (2, ["b.png"])
    assert "does not match its suffix" in wizard.upload(b"<svg>", "b.png", "/media").text
    assert wizard.upload(PNG, "b.svg", "/media").status_code == 422
    wizard.upload(PNG, "b.png", "/media")
    wizard.values(**QUESTION)
    media = wizard.state["previews"][0]["items"][0]["media"]
    assert wizard.http.get(media["url"]).content == PNG
    assert wizard.finish().status_code == 201
    assert (workspace / "mood" / "media" / "cats" / "a.png").read_bytes() == PNG


def test_a_running_study_keeps_its_question_and_changes_the_rest(make_study, serve_study, wizard_of):
    folder = make_study(items=3)
    server = serve_study(folder)
    wizard = wizard_of(server, "study")
    assert (wizard.state["begun"], wizard.state["item_count"]) == (False, 3)
    server.study.ask("ann")
    again = wizard_of(server, "study")
    assert again.state["id"] == wizard.state["id"]  # unfinished changes are continued
    assert again.state["begun"]
    wizard.values(question="Something else?")
    refused = wizard.finish()
    assert refused.status_code == 422
    assert refused.json()["problems"][0]["field"] == "question"
    wizard.values(question=server.study.config.question, annotators={"max_tasks": 7})
    more = b"id,text\nw0,word w0\nw1,word w1\nw2,word w2\nw3,a new one\n"
    wizard.upload(more, "more.csv")
    assert wizard.finish().status_code == 201
    assert server.study.config.annotators.max_tasks == 7
    assert len(server.study.items) == 4


def test_changes_made_elsewhere_are_not_overwritten(make_study, serve_study, wizard_of):
    folder = make_study(items=3)
    server = serve_study(folder)
    wizard = wizard_of(server, "study")
    (folder / "study.toml").write_text((folder / "study.toml").read_text().replace('"Words"', '"Other words"'))
    wizard.values(seed=5)
    refused = wizard.finish()
    assert refused.status_code == 409
    assert "changed elsewhere" in refused.json()["error"]["what"]
    assert "Other words" in (folder / "study.toml").read_text()


def test_personal_links_are_made_listed_and_revoked(make_study, serve_study):
    server = serve_study(make_study(extra="[annotators]\nopen = false"))
    with httpx.Client(base_url=f"{server.api}/manage", headers=HEADERS) as http:
        check_invitations(server, http)


def check_invitations(server, http):
    links = http.post("/invitations", json={"names": ["ann", "bob", "ann"]}).json()
    assert [row["annotator"] for row in links] == ["ann", "bob"]
    assert server.person().join_by(links[0]["link"].rpartition("=")[2])["annotator"] == "ann"
    sharing = http.get("/sharing").json()
    assert {row["annotator"] for row in sharing["invitations"]} == {"ann", "bob"}
    assert "PROLIFIC_PID={{%PROLIFIC_PID%}}" in sharing["prolific_link"]
    assert http.post("/invitations/revoke", json={"names": ["bob"]}).json() == {"revoked": 1}
    refused = server.person().http.post("/session", json={"invite": links[1]["link"].rpartition("=")[2]})
    assert refused.status_code == 403


def test_one_study_that_cannot_be_opened_does_not_stop_the_others(serve_study, workspace, wizard_of):
    (workspace / "broken").mkdir(parents=True)
    (workspace / "broken" / "study.toml").write_text("title = 3")
    server = serve_study(workspace=workspace)
    wizard = wizard_of(server)
    wizard.upload(WORDS, "w.csv")
    wizard.values(**QUESTION)
    assert wizard.finish().status_code == 201
    page = httpx.get(f"{server.url}/manage/", headers=HEADERS).text
    assert "<strong>broken</strong> cannot be opened." in page
    assert "/manage/mood/" in page


# Judgments in the uploaded file


def test_an_upload_of_judgments_can_become_a_closed_study_with_their_scores(server, workspace, wizard_of):
    wizard = wizard_of(server)
    values = (("x", 5), ("y", 3), ("z", 1))
    rows = "".join(f"{name},{item},{value}\n" for name in ("ann", "bob") for item, value in values)
    wizard.upload(f"annotator,item,value\n{rows}".encode(), "old ratings.csv")
    offer = wizard.state["items"]["judgments"]
    assert offer == {"tool": "", "kind": "ratings", "count": 6, "annotators": 2, "items": 3, "problem": ""}
    response = wizard.http.post(f"{wizard.url}/judgments", json={})
    assert response.status_code == 201, response.text
    slug = response.json()["study"]
    assert wizard.http.get(wizard.url).status_code == 404
    with Study.open(workspace / slug) as study:
        assert (study.status().judgments, study.status().state) == (6, "closed")
        assert study.scores().sort("score", descending=True)["item"].to_list() == ["x", "y", "z"]
    assert not list((workspace / slug).glob("judgments*"))


def test_items_alone_are_not_offered_as_judgments(server, wizard_of):
    wizard = wizard_of(server)
    wizard.upload(WORDS, "words.csv")
    assert wizard.state["items"]["judgments"] is None
    refused = wizard.http.post(f"{wizard.url}/judgments", json={})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "no_judgments")


def test_conversations_are_recognised_and_columns_are_chosen_in_the_browser(wizard, workspace):
    talk = [{"role": "user", "content": "Count words"}]
    rows = [
        {"source": talk, "text": f"answer {n}", "system": "AB"[n % 2], "topic": f"t{n}", "engine": "xy"[n % 2]}
        for n in range(4)
    ]
    wizard.upload("\n".join(map(json.dumps, rows)).encode(), "answers.jsonl")
    assert wizard.state["values"]["page"]["fields"] == ["text", {"column": "context", "format": "conversation"}]
    assert wizard.state["extra_columns"] == ["topic", "engine"]
    fields = ["topic", {"column": "text", "format": "markdown"}, {"column": "context", "format": "conversation"}]
    wizard.values(title="Talk", question="Which?", protocol={"name": "pairwise"}, page={"fields": fields})
    assert wizard.state["problems"] == []
    assert wizard.state["telling"] == []
    preview = wizard.state["previews"][0]
    assert preview["items"][0]["fields"] == {"topic": "t0"}
    assert 'data-role="user"' in preview["shared"]["context_html"]
    assert wizard.state["page"]["reading"] is True
    wizard.values(page={"fields": [*fields, "engine"]})
    assert "can tell systems apart" in wizard.state["telling"][0]
    wizard.values(page={"fields": ["topics"]})
    assert "page.fields.0.column" in wizard.problems()
    wizard.values(page={"fields": fields})
    assert wizard.finish().status_code == 201
    with Study.open(workspace / "talk") as study:
        assert [field.column for field in study.config.page.fields] == ["topic", "text", "context"]


def test_a_broken_conversation_is_named_by_line_and_column(wizard):
    good = '[{"role": "user", "content": "Hi"}]'
    wizard.upload(f"id\ttalk\n1\t{good}\n2\t[{{broken\n".encode(), "talks.tsv")
    fields = [{"column": "text", "format": "conversation"}]
    wizard.values(title="T", question="Q?", protocol={"name": "direct"}, page={"fields": fields})
    (problem,) = wizard.state["problems"]
    assert problem["step"] == "items"
    assert "line 3" in problem["what"], problem
    assert "not JSON" in problem["what"], problem
