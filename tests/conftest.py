"""Markers and fixtures shared by all tests: a real PostgreSQL, the recorded data, small studies."""

from __future__ import annotations

import gc
import os
import uuid
from collections.abc import Callable, Generator, Iterator
from itertools import chain, islice
from pathlib import Path

import pytest

from tests.postgres import PostgresServer, find_postgres
from tests.sizes import FULL

ROOT = Path(__file__).resolve().parent.parent
SHARED_DATA = Path(os.environ.get("STEELYARD_DATA", ROOT.parent / "shared" / "data"))

# Tests speak to servers on this machine only. Reading all certificate authorities would take each of thousands of HTTP
# clients 27 ms; there are none in this folder.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(ROOT / "tests")

MARKERS_BY_FIXTURE = {
    "postgres_server": "postgres",
    "browser": "browser",
    "profiles": "browser",
    "spark_session": "spark",
    "serve_study": "server",
    "standin": "server",
    "shared_data": "shared_data",
}
"""A test that uses one of these fixtures, directly or through another fixture, gets the marker."""
MARKERS_BY_FOLDER = {"durability": "server", "fuzz": "slow", "reproductions": "slow"}
LONGEST = (
    "web/manage",
    "reproductions",
    "engines",
    "web/pages",
    "durability",
    "fuzz",
    "test_docs.py",
    "cli",
    "security",
    "web",
    "simulate",
)
"""Folders and files with the longest tests, in an order that gives each of some processes about as much of them."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures that they use and by their folder; other tests carry their markers themselves.

    Tests with the marker `full` are left out unless everything runs (`make full`).
    """
    folder = Path(__file__).parent
    if not FULL:
        left_out = [item for item in items if item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("full")]
    for item in items:
        names = {MARKERS_BY_FIXTURE[name] for name in getattr(item, "fixturenames", ()) if name in MARKERS_BY_FIXTURE}
        top = item.path.relative_to(folder).parts[0]
        for name in names | ({MARKERS_BY_FOLDER[top]} if top in MARKERS_BY_FOLDER else set()):
            item.add_marker(name)
    items[:] = _order(items, folder, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _order(items: list[pytest.Item], folder: Path, processes: int) -> list[pytest.Item]:
    """Begin the share of each process, an equal part of the list, with some of the longest tests.

    Tests of one folder stay together, as they share a browser or a Spark session; short tests are left for processes
    that finish early.
    """
    by_place: dict[str, list[pytest.Item]] = {}
    for item in items:
        path = item.path.relative_to(folder).as_posix()
        place = next((place for place in LONGEST if path.startswith(place)), "")
        by_place.setdefault(place, []).append(item)
    shares: list[list[pytest.Item]] = [[] for _ in range(processes)]
    for number, place in enumerate(LONGEST):
        shares[number % processes] += by_place.get(place, [])
    short = iter(by_place.get("", []))
    for share in shares[:-1]:
        share.extend(islice(short, max(0, len(items) // processes - len(share))))
    shares[-1].extend(short)
    return list(chain.from_iterable(shares))


def pytest_collection_finish() -> None:
    """Take tests and imported modules out of garbage collection, on which a tenth of the time was spent."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let the interpreter end as usual; with frozen objects some libraries report leaks."""
    gc.unfreeze()


def need_marker(name: str) -> None:
    """Fail in `make quick`, which leaves marked tests out: whoever starts a server or a tool needs its marker."""
    assert os.environ.get("STEELYARD_QUICK") != "1", f"mark this test with pytest.mark.{name} (CONTRIBUTING.md)"


def missing_tool(reason: str) -> None:
    """Skip for want of a tool; where everything must be there (CI), fail instead."""
    if os.environ.get("STEELYARD_REQUIRE_ALL") == "1":
        pytest.fail(f"STEELYARD_REQUIRE_ALL is set, but {reason}")
    pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where everything must be there, a skip for a peer that is not installed is a failure too."""
    report = yield
    missing = report.skipped and "could not import" in str(report.longrepr)
    if missing and os.environ.get("STEELYARD_REQUIRE_ALL") == "1":
        report.outcome = "failed"
    return report


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of recorded judgments."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the recorded judgments are not in {SHARED_DATA}; set STEELYARD_DATA to their folder")
    return SHARED_DATA


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A PostgreSQL server of our own, for the session."""
    need_marker("postgres")
    binaries = find_postgres()
    if binaries is None:
        missing_tool("PostgreSQL's server binaries were not found (apt-get install postgresql)")
        raise AssertionError
    with PostgresServer.start(binaries) as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """The URL of a new, empty PostgreSQL database."""
    return postgres_server.new_database(f"test_{uuid.uuid4().hex}")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new, empty database, on each engine in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'study.db'}"
    return str(request.getfixturevalue("postgres_url"))


MakeStudy = Callable[..., Path]


@pytest.fixture
def make_study(tmp_path: Path) -> MakeStudy:
    """Return a function that writes a small study's folder and returns its path."""

    def make(
        protocol: str = 'name = "direct"',
        design: str = "",
        *,
        items: int | list[str] = 6,
        extra: str = "",
        name: str = "study",
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        ids = [f"w{number}" for number in range(items)] if isinstance(items, int) else items
        (folder / "items.csv").write_text("id,text\n" + "".join(f"{i},word {i}\n" for i in ids), encoding="utf-8")
        lines = [f'name = "{name}"', 'title = "Words"', 'question = "How positive?"', 'items = "items.csv"', extra]
        lines += ["[protocol]", protocol]
        lines += ["[design]", design] if design else []
        (folder / "study.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return folder

    return make
