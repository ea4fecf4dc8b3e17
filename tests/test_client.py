"""steelyard.Client against a real server."""

from __future__ import annotations

import httpx
import polars.testing
import pytest

from steelyard.client import Client
from steelyard.errors import AnswerError, ConfigError, SteelyardError, StoreError, TaskError
from steelyard.study import Study
from tests.web.conftest import TOKEN, serve_study  # noqa: F401 - a fixture


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr("steelyard.client.time.sleep", lambda _: None)


def test_a_whole_study_is_judged_from_a_script(make_study, serve_study):  # noqa: F811
    server = serve_study(make_study(design='name = "per_item"\njudgments = 2'))
    for number, name in enumerate(("ann", "bob")):
        with Client(server.page, name=name) as client:
            while (task := client.ask()) is not None:
                client.tell(task, {item.id: 10 * int(item.id[1:]) + number for item in task.items}, seconds=1.5)
            assert client.offer().reason_code == "done"
    with Client(server.url, "study", token=TOKEN) as client:
        polars.testing.assert_frame_equal(client.scores(), server.study.scores())
    # Item w3 had 30 and 31.
    assert dict(server.study.scores().select("item", "score").iter_rows())["w3"] == 30.5


def test_a_task_is_the_one_the_study_asks(make_study, serve_study):  # noqa: F811
    folder = make_study('name = "pairwise"')
    (folder / "items.csv").write_text("id,text,context,reference\na,A,source,ra\nb,B,source,rb\n")
    server = serve_study(folder)
    with Client(server.invite("ann")) as client:
        task = client.ask()
        assert task == server.study.ask("ann")
        assert client.annotator == "ann"
        assert client.question == "How positive?"
        assert client.protocol_of(task) == server.study.config.stages[0].protocol


@pytest.mark.parametrize(
    "protocol",
    [
        'name = "direct"\nlabels = ["a", "b"]\n[protocol.criteria.x]\n[protocol.criteria.y]\nscale = [-1, 1]',
        'name = "likert"\nscale = [1, 7]',
        'name = "choice"\nlabels = ["yes", "no"]\n[protocol.criteria.x]\n[protocol.criteria.y]\nlabels = ["p", "q"]',
        'name = "scored_ranking"\nsize = 3\ntie_margin = 2',
        'name = "ranking"\nsize = 3\nties = false',
        'name = "best_worst"\nlabels = ["most", "least"]',
    ],
)
def test_the_protocol_is_known_with_its_settings(protocol, make_study, serve_study):  # noqa: F811
    server = serve_study(make_study(protocol))
    with Client(server.page, name="ann") as client:
        theirs, ours = client.protocol_of(client.ask()), server.study.config.stages[0].protocol
        assert (theirs.scales(), theirs.classes()) == (ours.scales(), ours.classes())
        assert type(theirs) is type(ours)
        assert theirs.task_size == ours.task_size


def test_refusals_are_the_errors_the_study_raises(make_study, serve_study):  # noqa: F811
    server = serve_study(make_study())
    with Client(server.page, name="ann") as ann, Client(server.page, name="bob") as bob:
        task = ann.ask()
        with pytest.raises(AnswerError, match="outside the scale"):
            ann.tell(task, {task.item_ids[0]: 500})
        with pytest.raises(TaskError, match="another annotator"):
            bob.tell(task, {task.item_ids[0]: 5})
        ann.tell(task, {task.item_ids[0]: 5})
        ann.tell(task, {task.item_ids[0]: 5})
        with pytest.raises(TaskError, match="already has another answer"):
            ann.tell(task, {task.item_ids[0]: 6})
        ann.revise(task, {task.item_ids[0]: 6})
        ann.flag(task, "odd")
        ann.skip(ann.ask(), "unreadable")
        assert [event.data.reason for event in server.study.events(("flag", "skip"))] == ["odd", "unreadable"]
        assert server.study.judgments()["answer"].to_list() == [f'{{"{task.item_ids[0]}":6}}']
        with Client(server.page, name="ann") as stranger, pytest.raises(TaskError, match="another annotator"):
            stranger.tell(task, {task.item_ids[0]: 5})


def test_consent_is_asked_for(make_study, serve_study):  # noqa: F811
    server = serve_study(make_study(extra='[annotators]\nconsent = "Do you agree?"'))
    with Client(server.page, name="ann") as client:
        assert client.needs == ["consent"]
        with pytest.raises(TaskError, match="not agreed"):
            client.ask()
        client.consent()
        assert client.needs == []
        assert client.ask() is not None


def test_a_busy_server_is_tried_again(make_study, serve_study, monkeypatch):  # noqa: F811
    server = serve_study(make_study())
    real, failures = Study.tell, [StoreError("locked"), StoreError("locked")]

    def tell(*arguments, **options):
        if failures:
            raise failures.pop()
        return real(*arguments, **options)

    monkeypatch.setattr(Study, "tell", tell)
    with Client(server.page, name="ann") as client:
        task = client.ask()
        client.tell(task, {task.item_ids[0]: 5})
    assert not failures
    assert server.study.judgments().height == 1


def test_a_lost_answer_of_the_server_costs_nothing(make_study, serve_study, monkeypatch):  # noqa: F811
    server = serve_study(make_study())
    with Client(server.page, name="ann") as client:
        task = client.ask()
        real, lost = client._http.request, [True]

        def request(*arguments, **options):
            response = real(*arguments, **options)
            if lost:
                lost.pop()
                raise httpx.ReadError("connection lost")
            return response

        monkeypatch.setattr(client._http, "request", request)
        client.tell(task, {task.item_ids[0]: 5})
    assert server.study.judgments().height == 1


def test_what_cannot_work_is_said_plainly(make_study, serve_study):  # noqa: F811
    server = serve_study(make_study())
    with pytest.raises(ConfigError, match="is not a web address"):
        Client("words")
    with pytest.raises(ConfigError, match="does not name a study"):
        Client(server.url)
    with Client(server.page) as client, pytest.raises(ConfigError, match="no annotator is named"):
        client.ask()
    with Client(server.page) as client, pytest.raises(ConfigError, match="manager"):
        client.scores()
    with Client(server.page, token="wrong") as client, pytest.raises(SteelyardError, match="people who run the study"):
        client.scores()
    with Client(server.url, "other", name="ann") as client, pytest.raises(TaskError, match="no such study"):
        client.ask()
    with (
        Client("http://127.0.0.1:9/s/words/", name="ann", retries=1) as client,
        pytest.raises(StoreError, match="cannot be reached"),
    ):
        client.ask()
