"""Every operation of the API, described by itself, against a real server: whatever is sent, it does not break.

Operations are read off the OpenAPI description, so new ones are tried without being named here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import httpx
import pytest
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import GenerationMode

from steelyard import Study
from steelyard.recruitment.submissions import WEBHOOK_SECRET
from steelyard.web.security import Limits, Rate
from tests.fuzz import examples
from tests.web.conftest import TOKEN, Server, start_in_thread

pytestmark = pytest.mark.server

NO_LIMITS = Limits(address=Rate(1e9, 1e9), annotator=Rate(1e9, 1e9), joining=Rate(1e9, 1e9), guessing=Rate(1e9, 1e9))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
WHO = ["nobody", "annotator", "manager"]


@pytest.fixture(scope="module", params=WHO)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, dict[str, str]]]:
    """A server with two studies in which everything there is, is; and the headers of somebody."""
    folder = tmp_path_factory.mktemp(request.param)
    folders = [_study(folder / "plain", ""), _study(folder / "strict", _STRICT)]
    with Study.open(folders[0]) as study:
        for name in ("ann", "bob", "cleo"):
            while (task := study.ask(name)) is not None:
                study.tell(task, {task.items[0].id: len(name) * 10.0}, seconds=3)
    # So that what platforms send is tried, too.
    hook = pytest.MonkeyPatch()
    hook.setenv(WEBHOOK_SECRET, "x" * 32)
    server = start_in_thread(folders, limits=NO_LIMITS)
    headers = {"manager": {"Authorization": f"Bearer {TOKEN}"}, "nobody": {}}.get(request.param)
    if headers is None:
        welcome = httpx.post(f"{server.api}/session", json={"name": "zoe"})
        token = welcome.headers["set-cookie"].partition("steelyard_session=")[2].partition(";")[0]
        headers = {"Cookie": f"steelyard_session={token}", "X-CSRF-Token": welcome.json()["csrf"]}
    yield server, headers
    server.stop()
    hook.undo()


_STRICT = """
[annotators]
consent = "Yes?"
training = "gold.csv"
[quality]
checks = { file = "gold.csv", rate = 0.5, feedback = true }
qualification = { file = "gold.csv" }
"""


def _study(folder: Any, extra: str) -> Any:
    folder.mkdir()
    (folder / "items.csv").write_text("id,text,group\n" + "".join(f"w{n},word {n},g{n % 2}\n" for n in range(8)))
    (folder / "gold.csv").write_text("items,answer\nw0,50\nw1,0..20\n")
    (folder / "study.toml").write_text(
        'title = "Words"\nquestion = "How?"\nitems = "items.csv"\n[protocol]\nname = "direct"\n'
        f"[design]\njudgments = 9\n{extra}"
    )
    return folder


def _known_ids(server: Server, headers: dict[str, str]) -> list[tuple[str, str]]:
    """Tasks that are out with whoever this is, and their items."""
    response = httpx.post(f"{server.api}/tasks", json={"count": 5}, headers=headers)
    tasks = response.json().get("tasks", []) if response.status_code == 200 else []
    return [(task["judgment_id"], task["items"][0]["id"]) for task in tasks] or [("none", "w0")]


def _drafts(server: Server, headers: dict[str, str], label: str) -> list[str]:
    """Drafts of a new study and of changes to one, for operations on drafts."""
    if "{draft}" not in label or "Authorization" not in headers:
        return ["0" * 16]
    place = f"studies/{server.slug}/manage" if "{study}" in label else "manage"
    response = httpx.post(f"{server.url}/api/v1/{place}/drafts", json={}, headers=headers)
    return [response.json()["id"]]


def _likely(case: Any, known: list[tuple[str, str]], drafts: list[str], draw: Callable[[Any], Any]) -> None:
    """Put in what is there, so that not everything is refused at the door."""
    name, item = draw(st.sampled_from(known))
    values = {
        "study": ["plain", "plain", "plain", "strict"],
        "judgment_id": [name],
        "language": ["en", "de"],
        "annotator": ["ann", "zoe"],
        "draft": drafts,
    }
    likely = {**values, "number": [1, 2], "name": ["zoe"], "invite": [None], "state": ["open"], "seconds": [2.5]}
    if isinstance(case.body, dict) and draw(st.booleans()):
        case.body = {key: draw(st.sampled_from(likely[key])) if key in likely else case.body[key] for key in case.body}
        if "answer" in case.body:
            case.body["answer"] = {item: draw(st.integers(0, 100))}
    parts = [case.path_parameters, case.query, case.body]
    for part in parts:
        if not isinstance(part, dict):
            continue
        for key in part:
            if key in values and draw(st.integers(0, 4)):
                part[key] = draw(st.sampled_from(values[key]))
            elif key in {"id", "item"} and draw(st.booleans()):
                part[key] = item
            elif key == "answer" and draw(st.booleans()):
                part[key] = {item: draw(JSON)}


def _send(client: httpx.Client, server: Server, case: Any, headers: dict[str, str]) -> tuple[int, httpx.Headers, bytes]:
    options = case.as_transport_kwargs(base_url=server.url)
    own = {key: value for key, value in (options.get("headers") or {}).items() if key != "User-Agent"}
    request = client.build_request(
        options["method"],
        options["url"],
        params=options.get("params"),
        json=options.get("json"),
        content=options.get("data") if isinstance(options.get("data"), str | bytes) else None,
        headers={**own, **headers},
    )
    response = client.send(request, stream=True)
    try:
        # The stream of news never ends; that it has begun is enough.
        live = response.headers.get("content-type", "").startswith("text/event-stream")
        return response.status_code, response.headers, b"" if live else response.read()
    finally:
        response.close()


def _takes_any_text(parameter: Any) -> bool:
    """Whether nothing can be wrong with it."""
    kinds = parameter.definition["schema"]
    return all(one.get("type") in {"string", "null"} and "enum" not in one for one in kinds.get("anyOf", [kinds]))


@dataclass
class Trial:
    """Operations tried out by somebody, and what the server said."""

    server: Server
    headers: dict[str, str]
    client: httpx.Client
    statuses: dict[str, set[int]] = field(default_factory=dict)

    def try_out(self, operation: Any, mode: GenerationMode) -> None:
        ids = _known_ids(self.server, self.headers)
        drafts = _drafts(self.server, self.headers, operation.label)
        short = 2

        @examples(short, 150)
        @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
        def tried_out(case: Any, data: st.DataObject) -> None:
            _likely(case, ids, drafts, data.draw)
            try:
                status, sent, body = _send(self.client, self.server, case, self.headers)
            except (UnicodeEncodeError, httpx.InvalidURL, TypeError, ValueError, httpx.LocalProtocolError):
                return  # it cannot be sent at all
            assert status < 500, (operation.label, status, body[:500], case.body, case.query)
            assert "content-security-policy" in sent
            if status >= 400:
                answer = json.loads(body)
                assert answer.get("problems") or set(answer["error"]) == {"code", "what", "remedy", "field"}
            self.statuses.setdefault(operation.label, set()).add(status)

        tried_out()


def test_whatever_is_sent_nothing_breaks(place: tuple[Server, dict[str, str]]) -> None:
    server, headers = place
    schema = schemathesis.openapi.from_dict(httpx.get(f"{server.url}/api/v1/openapi.json").json())
    operations: list[Any] = [cast(Any, found).ok() for found in schema.get_all_operations()]
    assert len(operations) >= 33
    # Signing out comes last: it ends the session that all others need.
    operations.sort(key=lambda operation: operation.label.endswith("/sign-out"))
    with httpx.Client(timeout=60) as client:
        trial = Trial(server, headers, client)
        for operation in operations:
            trial.try_out(operation, GenerationMode.POSITIVE)
            if operation.body or not all(map(_takes_any_text, operation.iter_parameters())):
                trial.try_out(operation, GenerationMode.NEGATIVE)
    reached = {label for label, statuses in trial.statuses.items() if any(status < 400 for status in statuses)}
    if not headers:
        assert not [label for label in reached if "/manage" in label]
        return
    # About half of the operations were reached by whom they are for; others need the right files or ids.
    mine = {one.label for one in operations if ("/manage" in one.label) == ("Authorization" in headers)}
    assert len(mine & reached) > 0.4 * len(mine), sorted(mine - reached)
