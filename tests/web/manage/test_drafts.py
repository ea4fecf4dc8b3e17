"""Making and changing studies through the API, and the study.toml that comes of it."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard import Study
from steelyard.web.drafts import toml_text
from steelyard.web.settings_forms import forms

ITEMS = {"name": "my words.csv", "text": "id,text\na,an apple\nb,a bee\nc,a cat\nd,a dog\n"}
VALUES = {
    "title": "Größe & Co",
    "question": "How large?",
    "protocol": {"name": "direct", "scale": [0, 10], "labels": ["tiny", "huge"]},
    "design": {"name": "per_item", "judgments": 2},
}

plain = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.dictionaries(st.text(), plain, max_size=5))
def test_what_is_written_as_toml_is_read_the_same(values):
    assert tomllib.loads(toml_text(values)) == {
        key: value for key, value in values.items() if value != {} or key == "items"
    }


def test_every_setting_has_a_field_with_a_description():
    descriptions = forms()
    for parts in (descriptions.protocols, descriptions.designs, descriptions.models):
        for part in parts.values():
            assert part.description
            assert all(field.description for field in part.fields)
    assert {"annotators", "page", "pay", "quality", "stop"} <= set(descriptions.sections)
    assert [field.name for field in descriptions.study if field.required] == ["title", "question"]
    scale = next(field for field in descriptions.protocols["likert"].fields if field.name == "scale")
    assert (scale.kind, scale.default) == ("range", [1, 5])
    # What a protocol offers goes with it: its own defaults are among the choices.
    for protocol in descriptions.protocols.values():
        assert protocol.design in protocol.designs
        assert protocol.model in protocol.models


@pytest.fixture
def served(make_study, serve_study, manager_of):
    server = serve_study(make_study(items=3))
    return server, manager_of(server)


def test_a_study_made_in_the_browser_is_a_folder_beside_the_others_and_can_be_judged(served):
    server, manager = served
    created = manager.post("/api/v1/manage/studies", {"values": VALUES, "items": ITEMS})
    assert created.status_code == 201, created.text
    slug = created.json()["study"]
    assert slug == "groe-co"
    folder = server.folders[0].parent / slug
    files = sorted(path.name for path in folder.iterdir() if "study.db" not in path.name)
    assert files == [".made-in-browser", "items.csv", "study.toml"]
    written = tomllib.loads((folder / "study.toml").read_text(encoding="utf-8"))
    assert written["protocol"] == VALUES["protocol"]
    with Study.open(folder) as study:
        assert [item.text for item in study.items] == ["an apple", "a bee", "a cat", "a dog"]
        assert study.ask("ann").protocol == "direct"
    page = manager.http.get(f"{server.url}/s/{slug}/")
    assert page.status_code == 200
    assert "How large?" in page.text


def test_two_studies_of_one_title_get_a_folder_each(served):
    _, manager = served
    slugs = [manager.post("/api/v1/manage/studies", {"values": VALUES, "items": ITEMS}).json()["study"] for _ in "ab"]
    assert len(set(slugs)) == 2


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"title": ""}, "title"),
        ({"question": None}, "question"),
        ({"protocol": {"name": "slider"}}, "protocol.name"),
        ({"protocol": {"name": "direct", "scale": [10, 0]}}, "protocol.scale"),
        ({"protocol": {"name": "direct", "colour": "red"}}, "protocol.colour"),
        ({"protocol": {"name": "direct", "criteria": {"$toml": "{ fluency = "}}}, "protocol.criteria"),
        ({"design": {"name": "per_item", "judgments": 0}}, "design.judgments"),
        ({"design": {"name": "random_tuples", "judgments": "many"}}, "design.judgments"),
        ({"annotators": {"max_tasks": 0}}, "annotators.max_tasks"),
        ({"annotators": {"consent": "../../secret.md"}}, "annotators.consent"),
        ({"annotators": {"questionnaire": [{"name": "age", "question": "?", "type": "number"}]}}, "annotators.consent"),
        ({"page": {"media": "/etc"}}, "page.media"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_made(served, change, field):
    server, manager = served
    before = sorted(path.name for path in server.folders[0].parent.iterdir())
    values = {key: value for key, value in {**VALUES, **change}.items() if value is not None}
    refused = manager.post("/api/v1/manage/studies", {"values": values, "items": ITEMS})
    assert refused.status_code == 422
    problem_fields = [problem["field"] for problem in refused.json()["problems"]]
    assert field in problem_fields or any(name and name.startswith(field) for name in problem_fields), refused.json()
    checked = manager.post("/api/v1/manage/check", {"values": values, "items": ITEMS}).json()
    assert [problem["field"] for problem in checked["problems"]] == problem_fields
    assert sorted(path.name for path in server.folders[0].parent.iterdir()) == before


@pytest.mark.parametrize(
    ("items", "what"),
    [
        (None, "there are no items."),
        ({"name": "words.xlsx", "text": "a"}, "'words.xlsx' is not a file of items."),
        ({"name": "words.csv", "text": "id,text\na,x\na,y\n"}, "items.csv line 3"),
        ({"name": "words.csv", "text": "id,txet\na,x\n"}, "there is no text column"),
    ],
)
def test_items_that_are_wrong_are_named_with_their_line(served, items, what):
    _, manager = served
    refused = manager.post("/api/v1/manage/studies", {"values": VALUES, "items": items})
    assert refused.status_code == 422
    [problem] = refused.json()["problems"]
    assert problem["field"] == "items"
    assert what in problem["what"]


def test_a_check_shows_a_task_as_people_would_see_it_even_before_there_are_items(served):
    _, manager = served
    values = {**VALUES, "protocol": {"name": "pairwise"}, "design": {"name": "random_tuples", "judgments": 2}}
    check = manager.post("/api/v1/manage/check", {"values": values, "items": ITEMS}).json()
    assert check["problems"] == []
    assert (check["items"], check["preview"]["protocol"]) == (4, "pairwise")
    assert [item["html"] for item in check["preview"]["items"]] == ["an apple", "a bee"]
    bare = manager.post("/api/v1/manage/check", {"values": {"protocol": {"name": "best_worst"}}}).json()
    assert len(bare["preview"]["items"]) == 4
    assert {problem["field"] for problem in bare["problems"]} >= {"title", "question"}


def test_hostile_items_are_harmless_in_the_preview(served):
    _, manager = served
    items = {"name": "x.csv", "text": 'id,text\na,"<script>alert(1)</script>"\n'}
    values = {**VALUES, "design": {"name": "per_item", "judgments": 1}, "page": {"content": "html"}}
    check = manager.post("/api/v1/manage/check", {"values": values, "items": items}).json()
    assert "<script" not in check["preview"]["items"][0]["html"]


def test_before_anybody_was_asked_everything_may_change(served):
    server, manager = served
    draft = manager.get("/config").json()
    assert (draft["begun"], draft["by_form"], draft["items"]) == (False, True, "items.csv")
    values = {**draft["values"], "question": "How small?", "protocol": {"name": "likert"}}
    assert manager.put("/config", {"values": values}).status_code == 200
    assert server.study.config.question == "How small?"
    assert server.study.ask("ann").protocol == "likert"


def test_once_somebody_was_asked_the_question_stays_and_the_rest_may_change(served):
    server, manager = served
    server.study.ask("ann")
    draft = manager.get("/config").json()
    assert draft["begun"]
    before = (server.folders[0] / "study.toml").read_bytes()
    refused = manager.put("/config", {"values": {**draft["values"], "question": "Other?"}})
    assert refused.status_code == 422
    assert refused.json()["problems"][0]["field"] == "question"
    assert (server.folders[0] / "study.toml").read_bytes() == before
    assert server.study.ask("ann") is not None
    changed = {**draft["values"], "design": {"name": "per_item", "judgments": 4}}
    assert manager.put("/config", {"values": changed}).status_code == 200
    assert manager.get("/summary").json()["total"] == 12


def test_items_can_be_added_but_none_may_vanish(served):
    server, manager = served
    server.study.ask("ann")
    values = manager.get("/config").json()["values"]
    more = {"name": "i.csv", "text": "id,text\nw0,word w0\nw1,word w1\nw2,word w2\nw3,new\n"}
    assert manager.put("/config", {"values": values, "items": more}).status_code == 200
    assert [item.id for item in server.study.items] == ["w0", "w1", "w2", "w3"]
    less = {"name": "i.csv", "text": "id,text\nw0,word w0\n"}
    refused = manager.put("/config", {"values": values, "items": less})
    assert refused.status_code == 422
    assert "no longer in the file" in refused.json()["problems"][0]["what"]
    assert [item.id for item in server.study.items] == ["w0", "w1", "w2", "w3"]
    assert (server.folders[0] / "items.csv").read_text(encoding="utf-8") == more["text"]


def test_study_toml_can_be_edited_as_text_and_keeps_its_comments(served):
    server, manager = served
    text = manager.get("/config").json()["text"] + "\n# a thought\n[pay]\nper_task = 0.25\n"
    assert manager.put("/config", {"text": text}).status_code == 200
    assert "# a thought" in (server.folders[0] / "study.toml").read_text(encoding="utf-8")
    assert server.study.config.pay.per_task == 0.25
    refused = manager.put("/config", {"text": text + "[pay"})
    assert (refused.status_code, refused.json()["problems"][0]["field"]) == (422, "text")


def test_the_check_warns_of_a_source_with_one_item(served):
    _, manager = served
    text = "id,source,system,output\n1,a,x,one\n2,a,y,two\n3,b,x,three\n"
    values = VALUES | {"protocol": {"name": "pairwise"}, "design": {"name": "all_pairs"}}
    checked = manager.post("/api/v1/manage/check", {"values": values, "items": {"name": "i.csv", "text": text}}).json()
    assert checked["problems"] == []
    assert checked["warnings"] == ["1 source has only one item, and is left out: “b”"]
    assert checked["judgments"] == 1
