"""examples/llm_judge.py against a real server and a stub of an OpenAI-compatible endpoint."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.web.conftest import serve_study  # noqa: F401 - a fixture

pytestmark = pytest.mark.server

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "llm_judge.py"


def _load():
    spec = importlib.util.spec_from_file_location("llm_judge", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["llm_judge"] = module
    spec.loader.exec_module(module)
    return module


llm_judge = _load()


class Stub(ThreadingHTTPServer):
    """Answers chat requests by a function of the conversation; a number is sent as a status."""

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.seen: list[dict] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/v1/chat/completions"
        self.server.seen.append({"key": self.headers.get("Authorization"), **body})
        answer = self.server.answer(body["messages"])
        status = answer if isinstance(answer, int) else 200
        text = json.dumps({"choices": [{"message": {"role": "assistant", "content": answer}}]}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@pytest.fixture
def stub():
    stubs = []

    def make(answer):
        stubs.append(Stub(answer))
        return stubs[-1]

    yield make
    for server in stubs:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(llm_judge.time, "sleep", lambda _: None)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def shown(messages) -> dict[str, int]:
    """What the model was shown: letter -> the number in the item's text."""
    return {x: int(n) for x, n in re.findall(r"<item (\w+)>word w(\d+)</item>", messages[1]["content"])}


def best(messages) -> str:
    return max(shown(messages), key=shown(messages).__getitem__)


def worst(messages) -> str:
    return min(shown(messages), key=shown(messages).__getitem__)


# The stub's taste: the higher the number in a word, the better.
PROTOCOLS = {
    'name = "direct"\nlabels = ["low", "high"]': lambda m: json.dumps({x: 10 * n for x, n in shown(m).items()}),
    'name = "direct"\nitems_per_page = 2': lambda m: json.dumps({x: 10 * n for x, n in shown(m).items()}),
    'name = "likert"': lambda m: "```json\n" + json.dumps({x: 1 + n // 2 for x, n in shown(m).items()}) + "\n```",
    'name = "choice"\nlabels = ["good", "bad"]': lambda m: json.dumps(
        {x: "good" if n > 2 else "bad" for x, n in shown(m).items()}
    ),
    'name = "direct"\n[protocol.criteria.joy]\n[protocol.criteria.fear]\nscale = [-1, 1]': lambda m: json.dumps(
        {x: {"joy": 10 * n, "fear": -1} for x, n in shown(m).items()}
    ),
    'name = "pairwise"': lambda m: f'I think {{"winner": "{best(m)}"}} is right.',
    'name = "best_worst"': lambda m: json.dumps({"best": best(m), "worst": worst(m)}),
    'name = "scored_ranking"\nsize = 3': lambda m: json.dumps({x: 10 * n for x, n in shown(m).items()}),
    'name = "ranking"\nsize = 3': lambda m: json.dumps(
        {"ranking": [[x] for x in sorted(shown(m), key=shown(m).__getitem__, reverse=True)]}
    ),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_is_judged(protocol, make_study, serve_study, stub, capsys):  # noqa: F811
    server = serve_study(make_study(protocol))
    endpoint = stub(PROTOCOLS[protocol])
    arguments = [server.page, "--name", "gpt", "--endpoint", endpoint.url, "--model", "m", "--most", "4"]
    llm_judge.main(arguments)
    count = server.study.judgments().height
    assert capsys.readouterr().out == f"{count} answered, 0 skipped\n"
    assert count >= 3
    for row in server.study.judgments().iter_rows(named=True):
        answer = json.loads(row["answer"])
        order = sorted(row["items"], key=lambda item: int(item[1:]))
        if isinstance(answer, list):
            assert answer == [[item] for item in reversed(order)]
        elif "winner" in answer:
            assert answer == {"winner": order[-1]}
        elif "best" in answer:
            assert answer == {"best": order[-1], "worst": order[0]}
        else:
            assert set(answer) == set(order)
    assert {body["key"] for body in endpoint.seen} == {"Bearer sk-test"}
    assert {body["model"] for body in endpoint.seen} == {"m"}
    # Ids stay here; what is asked, and on which scale, goes along.
    assert "How positive?" in endpoint.seen[0]["messages"][1]["content"]


def test_an_answer_that_does_not_fit_is_sent_back_with_the_reason(make_study, serve_study, stub):  # noqa: F811
    server = serve_study(make_study(items=1))
    replies = iter(["I would rather not.", '{"A": 500}', '{"A": 50}'])
    endpoint = stub(lambda _: next(replies))
    llm_judge.main([server.page, "--name", "gpt", "--endpoint", endpoint.url, "--model", "m"])
    messages = [message["content"] for message in endpoint.seen[-1]["messages"][2:]]
    assert messages[0] == "I would rather not."
    assert "there is no JSON" in messages[1]
    assert "0 to 100" in messages[3]
    assert server.study.judgments()["answer"].to_list() == ['{"w0":50}']


def test_a_model_that_never_answers_skips_with_a_reason(make_study, serve_study, stub, capsys):  # noqa: F811
    server = serve_study(make_study(items=2))
    endpoint = stub(lambda _: "no")
    llm_judge.main([server.page, "--name", "gpt", "--endpoint", endpoint.url, "--model", "m", "--tries", "2"])
    assert capsys.readouterr().out == "0 answered, 2 skipped\n"
    assert len(endpoint.seen) == 4
    assert all("no valid answer in 2 tries" in event.data.reason for event in server.study.events(("skip",)))


def test_a_busy_endpoint_is_tried_again(make_study, serve_study, stub):  # noqa: F811
    server = serve_study(make_study(items=1))
    replies = iter([429, 503, '{"A": 50}'])
    endpoint = stub(lambda _: next(replies))
    llm_judge.main([server.page, "--name", "gpt", "--endpoint", endpoint.url, "--model", "m"])
    assert server.study.judgments().height == 1


def test_pictures_are_left_to_people(make_study, serve_study, stub):  # noqa: F811
    folder = make_study()
    (folder / "items.csv").write_text("id,text,media\na,A,cat.png\n")
    (folder / "media").mkdir()
    (folder / "media" / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 20)
    server = serve_study(folder)
    endpoint = stub(lambda _: '{"A": 50}')
    llm_judge.main([server.page, "--name", "gpt", "--endpoint", endpoint.url, "--model", "m"])
    assert endpoint.seen == []
    assert len(list(server.study.events(("skip",)))) == 1
