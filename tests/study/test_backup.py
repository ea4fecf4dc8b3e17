"""A backup is the whole study at one moment, made while people judge; restoring it gives that study again."""

from __future__ import annotations

import json
import threading
import time
import zipfile

import pytest

from steelyard import Study
from steelyard.errors import DataError, StoreError
from steelyard.study import write_log
from steelyard.study.backup import backup, restore
from tests.cli.running import run
from tests.study.crowds import answer_as


@pytest.fixture
def judged(make_study):
    """A folder whose study has been judged a little, with media and a backup of earlier in it."""
    folder = make_study(items=30)
    (folder / "media").mkdir()
    (folder / "media" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 20)
    (folder / "earlier.steelyard").write_text("an earlier backup")
    with Study.open(folder) as study:
        answer_as(study, "ann", 8, seed=1)
        answer_as(study, "bob", 8, seed=2)
        study.ask("cleo")
    return folder


def names(path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def test_a_restored_study_is_the_same_study(judged, tmp_path):
    with Study.open(judged) as study:
        token = study.access.grant("invite", annotator="ann")
        task = study.ask("cleo")
        before, scores, called = study.status(), study.scores().write_csv(), study.privacy.pseudonym("ann")
        write_log(study, tmp_path / "log.jsonl")
    manifest = backup(judged, tmp_path / "words.steelyard")
    assert names(tmp_path / "words.steelyard") == [
        "manifest.json",
        "folder/items.csv",
        "folder/media/a.png",
        "folder/study.toml",
        "access.jsonl",
        "secret.txt",
        "log.jsonl",
    ]
    assert (tmp_path / "words.steelyard").stat().st_mode & 0o077 == 0
    assert restore(tmp_path / "words.steelyard", tmp_path / "new" / "words") == manifest
    again = tmp_path / "new" / "words"
    assert sorted(path.name for path in again.iterdir()) == ["items.csv", "media", "study.db", "study.toml"]
    assert sorted(path.name for path in again.parent.iterdir()) == ["words"]
    with Study.open(again) as study:
        assert study.status() == before
        assert study.scores().write_csv() == scores
        assert study.privacy.pseudonym("ann") == called
        assert study.ask("cleo") == task
        assert study.access.find("invite", token).annotator == "ann"
        write_log(study, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "log.jsonl").read_bytes()


@pytest.mark.postgres
def test_a_backup_moves_between_engines(judged, tmp_path, postgres_server, postgres_url):
    backup(judged, tmp_path / "one.steelyard")
    restore(tmp_path / "one.steelyard", tmp_path / "there", database=postgres_url)
    assert not (tmp_path / "there" / "study.db").exists()
    with Study.open(tmp_path / "there", database=postgres_url) as study, Study.open(judged) as first:
        assert study.scores().write_csv() == first.scores().write_csv()
    backup(tmp_path / "there", tmp_path / "two.steelyard", database=postgres_url)
    restore(tmp_path / "two.steelyard", tmp_path / "back")
    with Study.open(tmp_path / "back") as study, Study.open(judged) as first:
        assert list(study.events()) == list(first.events())
    with pytest.raises(StoreError, match="already contains a study"):
        restore(tmp_path / "two.steelyard", tmp_path / "twice", database=postgres_url)
    assert not (tmp_path / "twice").exists()


def test_a_backup_made_while_people_judge_is_one_moment_of_the_study(make_study, database_url, tmp_path):
    folder = make_study(items=200, design="judgments = 5")
    stop = threading.Event()
    judgment_ids: list[str] = []

    def work(name: str) -> None:
        with Study.open(folder, database=database_url) as study:
            while not stop.is_set() and (task := study.ask(name)) is not None:
                judgment_ids.append(study.tell(task, dict.fromkeys(task.item_ids, 50)).judgment_id)

    Study.open(folder, database=database_url).close()
    workers = [threading.Thread(target=work, args=(f"ann-{number}",)) for number in range(4)]
    for worker in workers:
        worker.start()
    manifests = []
    promised: list[str] = []
    for number in range(4):
        deadline = time.monotonic() + 60
        while len(judgment_ids) <= len(promised) and time.monotonic() < deadline:
            time.sleep(0.005)
        promised = list(judgment_ids)
        manifests.append((promised, backup(folder, tmp_path / f"{number}.steelyard", database=database_url)))
    stop.set()
    for worker in workers:
        worker.join()
    with Study.open(folder, database=database_url) as study:
        log = list(study.events())
    assert len({manifest.events for _, manifest in manifests}) > 1, "nobody judged meanwhile"
    for number, (promised, manifest) in enumerate(manifests):
        restore(tmp_path / f"{number}.steelyard", tmp_path / f"again-{number}")
        with Study.open(tmp_path / f"again-{number}") as again:
            assert list(again.events()) == log[: manifest.events]
            # What had been acknowledged before the backup began is in it.
            assert set(promised) <= set(again.judgments()["judgment_id"])
            answer_as(again, "late", 2, seed=1)


@pytest.mark.server
def test_a_study_is_backed_up_while_it_is_served(make_study, tmp_path):
    from tests.web.conftest import start_in_thread

    folder = make_study(items=20)
    server = start_in_thread([folder])
    try:
        ann = server.person("ann")
        task = ann.task()
        run("backup", "study", "-o", "words.steelyard", cwd=tmp_path)
        assert ann.tell(task, {task["items"][0]["id"]: 50}).status_code == 200
    finally:
        ann.http.close()
        server.stop()
    run("restore", "words.steelyard", "again", cwd=tmp_path)
    # The page that was open goes on with the restored study: same session, same task.
    server = start_in_thread([tmp_path / "again"])
    try:
        same = server.person()
        same.csrf = ann.csrf
        cookie = next(cookie for cookie in ann.http.cookies.jar if cookie.path.startswith("/api/"))
        same.http.headers["Cookie"] = f"{cookie.name}={cookie.value}"
        assert same.tell(task, {task["items"][0]["id"]: 50}).json()["saved"] is True
    finally:
        same.http.close()
        server.stop()


def test_the_commands_say_what_they_did(judged, tmp_path):
    output = run("backup", "study", "-o", "words.steelyard", cwd=tmp_path).stdout
    assert output.startswith("✓ ")
    assert "events and 3 files written to words.steelyard" in output
    assert "files to again" in run("restore", "words.steelyard", "again", cwd=tmp_path).stdout
    assert run("backup", "study", cwd=tmp_path).stdout.startswith("✓ ")
    assert len(list(tmp_path.glob("study-*.steelyard"))) == 1


def test_nothing_is_overwritten(judged, tmp_path):
    run("backup", "study", "-o", "words.steelyard", cwd=tmp_path)
    before = (tmp_path / "words.steelyard").read_bytes()
    assert "already exists" in run("backup", "study", "-o", "words.steelyard", cwd=tmp_path, code=1).stderr
    assert (tmp_path / "words.steelyard").read_bytes() == before
    log = (judged / "study.db").read_bytes()
    assert "already exists" in run("restore", "words.steelyard", "study", cwd=tmp_path, code=1).stderr
    assert (judged / "study.db").read_bytes() == log


def altered(path, tmp_path, name: str, change) -> object:
    """Write a copy of a backup with one of its members changed."""
    copy = tmp_path / f"altered-{name.replace('/', '-')}"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for member in old.namelist():
            data = old.read(member)
            new.writestr(member, change(data) if member == name else data)
    return copy


def test_a_backup_that_was_altered_or_cut_short_is_refused_whole(judged, tmp_path):
    path = tmp_path / "words.steelyard"
    backup(judged, path)
    lines = zipfile.ZipFile(path).read("log.jsonl").splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if b'"kind":"judgment"' in line)
    event = json.loads(lines[place])
    event["data"]["answer"] = {event["data"]["items"][0]: 99}
    changes = {
        f"altered at or before event {event['seq']}": lambda _: b"".join(
            [*lines[:place], json.dumps(event).encode() + b"\n", *lines[place + 1 :]]
        ),
        f"contains {len(lines) - 1} events instead of {len(lines)}": lambda _: b"".join(lines[:-1]),
        "not an event of a study's log": lambda _: b"nonsense\n",
    }
    for what, change in changes.items():
        with pytest.raises((StoreError, DataError), match=what):
            restore(altered(path, tmp_path, "log.jsonl", change), tmp_path / "again")
        assert not (tmp_path / "again").exists()
    whole = path.read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    middle = len(whole) // 2
    (tmp_path / "rotten").write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
    (tmp_path / "other.zip").write_bytes(whole)
    for name in ("half", "rotten"):
        with pytest.raises((DataError, StoreError)):
            restore(tmp_path / name, tmp_path / "again")
    with pytest.raises(DataError, match="there is no file"):
        restore(tmp_path / "gone", tmp_path / "again")
    newer = altered(path, tmp_path, "manifest.json", lambda data: data.replace(b'"format": 1', b'"format": 2'))
    with pytest.raises(DataError, match="newer version of Steelyard"):
        restore(newer, tmp_path / "again")
    leftovers = [found.name for found in tmp_path.iterdir() if found.name.startswith(".")]
    assert leftovers == []
    assert not (tmp_path / "again").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["folder/../../evil", "folder//etc/evil", "folder/..", "folder/a\\b", "folder/C:evil"])
def test_a_backup_cannot_write_outside_its_folder(judged, tmp_path, name):
    backup(judged, tmp_path / "words.steelyard")
    with zipfile.ZipFile(tmp_path / "words.steelyard", "a") as archive:
        archive.writestr(name, "evil")
    with pytest.raises(DataError, match="invalid name"):
        restore(tmp_path / "words.steelyard", tmp_path / "again")
    assert not list(tmp_path.rglob("*evil*"))
    assert not (tmp_path / "again").exists()


def test_an_altered_database_is_not_backed_up_as_if_it_were_whole(judged, tmp_path):
    import sqlite3

    with sqlite3.connect(judged / "study.db") as database:
        database.execute("UPDATE events SET data = replace(data, '50', '51') WHERE kind = 'picked'")
        database.execute("UPDATE events SET annotator = 'eve' WHERE seq = 5")
    database.close()
    with pytest.raises(StoreError, match="altered at or before event"):
        backup(judged, tmp_path / "words.steelyard")
    assert not list(tmp_path.glob("*.steelyard*"))
    assert not list(tmp_path.glob(".*"))


def test_a_study_that_was_never_opened_is_not_created_by_a_backup(make_study, tmp_path, postgres_url):
    folder = make_study()
    assert "there is no database" in run("backup", "study", "-o", "x.steelyard", cwd=tmp_path, code=1).stderr
    assert not (folder / "study.db").exists()
    with pytest.raises(StoreError, match="does not contain this study"):
        backup(folder, tmp_path / "x.steelyard", database=postgres_url)
    assert not list(tmp_path.glob("*x.steelyard*"))
