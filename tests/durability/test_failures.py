"""When the disk, the database or the clock fails: a clear error, nothing half-written, and work goes on afterwards."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
import time
from itertools import count

import pytest

from steelyard import Study
from steelyard.errors import StoreError
from steelyard.storage import Store, engine
from steelyard.study import differing_picks, rebuild
from steelyard.study import events as ev
from tests.durability.conftest import mounted
from tests.waiting import wait_until

MINUTE = 60_000_000


def check_whole(study: Study, told: list[str]) -> None:
    """Hold a study against what was acknowledged: every answer once, the chain unbroken, the tables as the log says."""
    events = list(study.events())
    assert [event.judgment_id for event in events if event.kind == "judgment"] == told
    with tempfile.TemporaryDirectory() as scratch, rebuild(events, scratch, f"sqlite:///{scratch}/again.db") as again:
        assert again.status() == study.status()
        for event in events:
            if event.judgment_id is not None:
                assert again._log.store.task(event.judgment_id) == study._log.store.task(event.judgment_id)


def answer(task):
    return dict.fromkeys(task.item_ids, 50)


def write_for_ever(study: Study) -> None:
    """Write until no room is left."""
    for number in count():
        study.set_state("open", f"{number} ".ljust(2000, "x"))


def refused_plainly(response) -> None:
    """What a person reads on the page: no word of databases' insides, and that nothing is lost."""
    assert response.status_code == 503
    error = response.json()["error"]
    assert (error["code"], error["what"]) == ("try_again", "The database of the study cannot be reached at the moment.")
    assert "Nothing is lost" in error["remedy"]
    assert response.headers["Retry-After"] == "2"


def test_a_full_disk_is_an_error_that_passes(make_study, small_disk):
    folder = shutil.copytree(make_study(items=50), small_disk.path / "study")
    with Study.open(folder) as study:
        first, second = study.ask("ann"), study.ask("bob")
        saved_ids = [study.tell(first, answer(first)).judgment_id]
        small_disk.fill()
        with pytest.raises(StoreError, match=r"could not be written: database or disk is full\. Send the answer again"):
            write_for_ever(study)
        with pytest.raises(StoreError, match="full"):
            study.tell(second, answer(second))
        # What is there can still be read.
        assert study.judgments().height == 1
        small_disk.make_room()
        saved_ids.append(study.tell(second, answer(second)).judgment_id)
        check_whole(study, saved_ids)


def test_the_page_of_a_server_whose_disk_is_full_can_go_on_later(make_study, small_disk, serve_study):
    folder = shutil.copytree(make_study(items=50), small_disk.path / "study")
    server = serve_study(folder)
    ann = server.person("ann")
    task = ann.task()
    small_disk.fill()
    full = False
    for _ in range(1000):
        response = ann.post(f"/tasks/{task['judgment_id']}/flag", {"reason": "x" * 2000})
        if response.status_code != 429:
            full = response.status_code != 200
        if full:
            break
    refused_plainly(response)
    refused_plainly(ann.tell(task, {task["items"][0]["id"]: 60}))
    small_disk.make_room()
    assert ann.tell(task, {task["items"][0]["id"]: 60}).json()["saved"] is True
    check_whole(server.study, [task["judgment_id"]])


def test_a_read_only_file_system_is_an_error_that_passes(make_study, small_disk, serve_study):
    folder = shutil.copytree(make_study(items=50), small_disk.path / "study")
    server = serve_study(folder)
    ann = server.person("ann")
    task = ann.task()
    # A file system cannot be made read-only while a file on it is open for writing.
    server.study._log.store._engine.dispose()
    small_disk.remount("ro")
    refused_plainly(ann.tell(task, {task["items"][0]["id"]: 60}))
    with pytest.raises(StoreError, match=r"study\.db cannot be opened: .*\. Check that it exists"):
        Study.open(folder)
    small_disk.remount("rw")
    assert ann.tell(task, {task["items"][0]["id"]: 60}).json()["saved"] is True
    check_whole(server.study, [task["judgment_id"]])


def test_a_database_that_is_taken_away_gets_no_answers(make_study):
    folder = make_study(items=50)
    with Study.open(folder) as study:
        task = study.ask("ann")
        # As somebody would who restores a copy without stopping the server.
        database = folder / "study.db"
        database.rename(folder / "before.db")
        with pytest.raises(StoreError, match=r"study\.db was removed or replaced"):
            study.tell(task, answer(task))
        assert not database.exists()
        database.write_bytes((folder / "before.db").read_bytes())
        with pytest.raises(StoreError, match="removed or replaced"):
            study.tell(task, answer(task))
        (folder / "before.db").replace(database)
        saved_id = study.tell(task, answer(task)).judgment_id
        check_whole(study, [saved_id])


def test_connections_that_are_all_busy_are_an_error_that_passes(database_url, monkeypatch):
    with Store.open(database_url, "words") as store:
        pool = store._engine.pool
        monkeypatch.setattr(pool, "_timeout", 0.05)
        busy = [store._engine.connect() for _ in range(15)]
        with pytest.raises(StoreError, match="all connections have been busy"):
            store.last_seq()
        with pytest.raises(StoreError, match="all connections have been busy"):
            store.access(lambda: 0).find("session", "x")
        for connection in busy:
            connection.close()
        assert store.last_seq() == 0


@pytest.mark.postgres
def test_postgresql_may_be_restarted_under_a_server(make_study, serve_study, postgres_server, postgres_url):
    server = serve_study(make_study(items=50), database=postgres_url)
    ann = server.person("ann")
    task = ann.task()
    postgres_server.go_down()
    refused_plainly(ann.tell(task, {task["items"][0]["id"]: 60}))
    refused_plainly(ann.post("/tasks", {"count": 1}))
    postgres_server.go_up()
    assert ann.tell(task, {task["items"][0]["id"]: 60}).json()["saved"] is True
    check_whole(server.study, [task["judgment_id"]])


@pytest.mark.postgres
def test_a_connection_cut_in_mid_transaction_leaves_nothing(make_study, postgres_server, postgres_url):
    with Study.open(make_study(items=50), database=postgres_url) as study:
        task = study.ask("ann")
        before = study.last_seq()

        def cut() -> None:
            name = postgres_url.rpartition("/")[2]
            for _ in range(500):
                terminated = postgres_server.run(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    f" WHERE datname = '{name}' AND xact_start IS NOT NULL AND state LIKE 'idle in%'"
                )
                if terminated:
                    return
                time.sleep(0.01)

        def write_and_be_cut() -> None:
            with study._log.write() as transaction:
                transaction.append(ev.Flagged(reason="lost"), at=1, judgment_id=task.judgment_id, annotator="ann")
                transaction.store.event(transaction.state.seq)
                cut()

        with pytest.raises(StoreError, match="terminating connection due to administrator command"):
            write_and_be_cut()
        assert study.last_seq() == before
        saved_id = study.tell(task, answer(task)).judgment_id
        check_whole(study, [saved_id])


class Proxy:
    """Passes on what a client and PostgreSQL say; on demand it lets a COMMIT through and hangs up before the answer."""

    def __init__(self, port: int) -> None:
        self.hang_up = False
        self._answered = threading.Event()
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets = [self._listener]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            self._sockets += [client, server]
            for one, other in ((client, server), (server, client)):
                thread = threading.Thread(target=self._pass_on, args=(one, other, one is client))
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, one: socket.socket, other: socket.socket, asks: bool) -> None:
        while True:
            try:
                data = one.recv(65536)
                if data and not asks:
                    self._answered.set()
                if data and asks and self.hang_up and b"COMMIT" in data:
                    self.hang_up = False
                    one.shutdown(socket.SHUT_RDWR)
                    self._answered.clear()
                    other.sendall(data)
                    assert self._answered.wait(60), "PostgreSQL did not answer the COMMIT"
                    data = b""
                if not data:
                    other.shutdown(socket.SHUT_RDWR)
                    return
                other.sendall(data)
            except OSError:
                return


@pytest.mark.postgres
def test_an_answer_whose_acknowledgement_got_lost_counts_once_when_it_is_sent_again(make_study, postgres_url):
    port = int(postgres_url.rpartition(":")[2].partition("/")[0])
    proxy = Proxy(port)
    through = postgres_url.replace(f":{port}/", f":{proxy.port}/")
    with Study.open(make_study(items=50), database=through) as study:
        task = study.ask("ann")
        proxy.hang_up = True
        with pytest.raises(StoreError, match="saved answers are never counted twice"):
            study.tell(task, answer(task))
        # It is there all the same; nobody but the database could know.
        assert study.status().judgments == 1
        assert study.tell(task, answer(task)).judgment_id == task.judgment_id
        check_whole(study, [task.judgment_id])
    proxy.close()


@pytest.mark.postgres
def test_a_full_disk_under_postgresql_is_an_error_that_passes(make_study, postgres_server):
    with mounted(postgres_server.folder / "small", 30) as disk:
        place = disk.path / "tables"
        place.mkdir()
        shutil.chown(place, postgres_server.user)
        postgres_server.run(f"CREATE TABLESPACE small LOCATION '{place}'")
        url = postgres_server.new_database("small", tablespace="small")
        with Study.open(make_study(items=50), database=url) as study:
            task = study.ask("ann")
            disk.fill()
            with pytest.raises(StoreError, match=r"could not be written: could not extend file .*No space left"):
                write_for_ever(study)
            disk.make_room()
            saved_id = study.tell(task, answer(task)).judgment_id
            check_whole(study, [saved_id])
        postgres_server.run("DROP DATABASE small")
        postgres_server.run("DROP TABLESPACE small")


def test_a_clock_that_is_set_back_holds_no_task_for_long_and_loses_none(make_study, database_url):
    now = [1_000_000 * MINUTE]
    folder = make_study(design="judgments = 1", items=2, extra="[annotators]\nlease_minutes = 30")
    with Study.open(folder, database=database_url, clock=lambda: now[0]) as study:
        first = study.ask("ann")
        now[0] -= 10_000 * MINUTE
        second = study.ask("bob")
        assert study.tell(second, answer(second)).late is False
        # The clock that says when ann's lease ends has been set back a week; it still ends within the half hour.
        now[0] += 31 * MINUTE
        again = study.ask("cleo")
        assert again is not None
        assert again.item_ids == first.item_ids
        saved_ids = [second.judgment_id, study.tell(again, answer(again)).judgment_id]
        # And ann's answer, which comes at last, is kept, and known to be late.
        late = study.tell(first, answer(first))
        assert late.late is True
        events = list(study.events())
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert differing_picks(events) == []
        check_whole(study, [*saved_ids, late.judgment_id])


def test_clocks_of_two_machines_a_few_seconds_apart_do_not_disturb_each_other(make_study, database_url):
    folder = make_study(items=6, extra="[annotators]\nlease_minutes = 30")
    ahead, behind = 1_000_000 * MINUTE, 1_000_000 * MINUTE - 5_000_000
    with (
        Study.open(folder, database=database_url, clock=lambda: ahead) as one,
        Study.open(folder, database=database_url, clock=lambda: behind) as other,
    ):
        one.ask("ann")
        other.ask("bob")
        assert [event.kind for event in one.events(["renewed", "expired"])] == []


@pytest.mark.postgres
def test_a_process_that_stops_while_it_holds_the_study_does_not_hold_it_for_ever(
    make_study, postgres_server, postgres_url, monkeypatch
):
    name = postgres_url.rpartition("/")[2]
    monkeypatch.setattr(engine, "_TIMEOUT_SECONDS", 1)
    monkeypatch.setattr(engine, "_SILENT_SECONDS", 3)
    folder = make_study(items=50)
    with Study.open(folder, database=postgres_url) as stuck, Study.open(folder, database=postgres_url) as other:
        task, before = other.ask("ann"), other.last_seq()
        holds, finished = threading.Event(), threading.Event()
        errors = []

        def hold() -> None:
            try:
                with stuck._log.write() as transaction:
                    transaction.append(ev.Flagged(reason="stuck"), at=1, judgment_id=task.judgment_id, annotator="ann")
                    holds.set()
                    finished.wait(60)
            except StoreError as error:
                errors.append(str(error))

        holder = threading.Thread(target=hold)
        holder.start()
        holds.wait()
        with pytest.raises(StoreError, match="lock timeout"):
            other.tell(task, answer(task))
        # The server ends the session that holds the lock once it has been silent for three seconds.
        locks = f"SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE a.datname = '{name}'"
        wait_until(lambda: postgres_server.run(f"{locks} AND a.state LIKE 'idle in transaction%'") == [(0,)])
        told_id = other.tell(task, answer(task)).judgment_id
        finished.set()
        holder.join()
        assert "idle-in-transaction timeout" in errors[0]
        assert other.last_seq() == before + 1
        check_whole(other, [told_id])
