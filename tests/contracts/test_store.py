"""What the store promises, on every engine."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import create_engine, text

from steelyard.errors import StoreError
from steelyard.storage import Store, StoredTask
from steelyard.storage.engine import HEAD, alembic_config
from steelyard.storage.events import to_json


def task(judgment_id: str, annotator: str = "ann", lease_end: int = 100, state: str = "open") -> StoredTask:
    return StoredTask(judgment_id, annotator, 0, ("a", "b"), state, lease_end, picked_seq=1)


@pytest.fixture
def store(database_url):
    with Store.open(database_url, "words") as opened:
        yield opened


def test_events_come_back_in_order_and_as_they_were_written(store):
    with store.write() as writer:
        first = writer.append("config", to_json({"b": 1, "a": [1.5, "ü", None]}), at=5)
        second = writer.append("judgment", to_json({"answer": {"x": 1}}), at=6, annotator="ann", judgment_id="j1")
    assert list(store.events()) == [first, second]
    assert list(store.events(after=1)) == [second]
    assert list(store.events(kinds=["config"])) == [first]
    assert store.last_seq() == 2


def test_nothing_is_kept_of_a_transaction_that_fails(store):
    def fail_halfway() -> None:
        with store.write() as writer:
            writer.append("config", "{}", at=1)
            writer.add_task(task("j1"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert list(store.events()) == []
    assert store.task("j1") is None
    assert store.last_seq() == 0


def test_a_digest_covers_everything_before_it(database_url, store):
    with store.write() as writer:
        writer.append("config", to_json({"x": 1}), at=1)
        last = writer.append("items", "{}", at=2)
    with Store.open(database_url, "words") as again, again.write() as writer:
        assert writer.digest == last.digest
        assert writer.append("items", "{}", at=2).digest != last.digest


def test_open_and_overdue_tasks_are_found(store):
    with store.write() as writer:
        writer.add_tasks([task("j1", lease_end=10), task("j2", lease_end=20), task("j3", "bob", lease_end=10)])
        writer.set_state("j3", "answered", answer_seq=7)
    with store.write() as writer:
        assert [t.judgment_id for t in writer.open_tasks("ann")] == ["j1", "j2"]
        assert [t.judgment_id for t in writer.untimely_tasks(10, 100)] == ["j1"]
        assert writer.untimely_tasks(9, 100) == []
        writer.renew("j1", 30)
        assert [t.judgment_id for t in writer.untimely_tasks(29, 100)] == ["j2"]
        assert [t.judgment_id for t in writer.untimely_tasks(9, 29)] == ["j1"]
    answered = store.task("j3")
    assert answered is not None
    assert (answered.state, answered.answer_seq, answered.items) == ("answered", 7, ("a", "b"))


def test_the_same_judgment_id_cannot_be_two_tasks(store):
    def add() -> None:
        with store.write() as writer:
            writer.append("config", "{}", at=1)
            writer.add_task(task("j1"))

    add()
    with pytest.raises(StoreError, match="never counted twice"):
        add()
    assert store.last_seq() == 1


def test_studies_of_one_database_do_not_see_each_other(postgres_url):
    with Store.open(postgres_url, "one") as one, Store.open(postgres_url, "two") as two:
        with one.write() as writer:
            writer.append("config", "{}", at=1)
            writer.add_task(task("j1"))
        assert list(two.events()) == []
        assert two.task("j1") is None
        with two.write() as writer:
            assert writer.untimely_tasks(10**9, 0) == []


def test_an_sqlite_file_needs_no_name_but_keeps_the_one_it_was_given(tmp_path):
    nameless, named = (f"sqlite:///{tmp_path / name}" for name in ("a.db", "b.db"))
    for _ in range(2):
        with Store.open(nameless, None) as store, store.write() as writer:
            writer.append("config", "{}", at=1)
    assert store.name == ""
    Store.open(named, "valence").close()
    Store.open(named, None).close()
    with pytest.raises(StoreError, match="another study, 'valence', not 'arousal'"):
        Store.open(named, "arousal")


def test_a_shared_database_needs_a_name(postgres_url):
    with pytest.raises(StoreError, match="needs a name"):
        Store.open(postgres_url, None)


def test_the_last_configuration_is_found_at_once(store):
    assert store.config_event() is None
    with store.write() as writer:
        writer.append("config", to_json({"n": 1}), at=1)
        writer.append("items", "{}", at=2)
        writer.append("config", to_json({"n": 2}), at=3)
        writer.append("items", "{}", at=4)
    assert store.config_event().data == to_json({"n": 2})


def test_whether_anybody_was_ever_asked_is_known(store):
    assert not store.has_tasks()
    with store.write() as writer:
        writer.add_task(task("j1"))
    assert store.has_tasks()


def test_writers_in_many_threads_leave_an_unbroken_chain(database_url):
    def work() -> None:
        with Store.open(database_url, "words") as store:
            for _ in range(25):
                with store.write() as writer:
                    writer.append("flag", str(threading.get_ident()), at=1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Store.open(database_url, "words") as store:
        assert [event.seq for event in store.events()] == list(range(1, 101))


def test_a_newer_schema_is_refused(database_url):
    Store.open(database_url, "words").close()
    engine = create_engine(database_url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text("UPDATE steelyard_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(StoreError, match=r"newer version of Steelyard.*Upgrade"):
        Store.open(database_url, "words")


def test_a_database_that_is_not_ours_is_refused_and_left_alone(tmp_path):
    url = f"sqlite:///{tmp_path / 'other.db'}"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE recipes (id INTEGER)"))
    engine.dispose()
    with pytest.raises(StoreError, match="not created by Steelyard"):
        Store.open(url, "words")
    engine = create_engine(url)
    with engine.connect() as connection:
        names = connection.execute(text("SELECT name FROM sqlite_master")).scalars().all()
    engine.dispose()
    assert names == ["recipes"]


def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "study.db"
    path.write_text("this is a shopping list, not a database\n" * 50)
    with pytest.raises(StoreError, match="cannot be opened"):
        Store.open(f"sqlite:///{path}", "words")


def test_the_url_must_be_one_we_know():
    with pytest.raises(StoreError, match="not supported"):
        Store.open("mysql://somewhere/db", "words")
    with pytest.raises(StoreError, match="not a database URL"):
        Store.open("study.db", "words")


def test_a_server_that_is_not_there_is_a_clear_error():
    with pytest.raises(StoreError, match="cannot be opened"):
        Store.open("postgresql://nobody:secret@127.0.0.1:1/none", "words")


def test_a_password_never_shows_in_an_error():
    with pytest.raises(StoreError) as caught:
        Store.open("postgresql://nobody:hunter2@127.0.0.1:1/none", "words")
    assert "hunter2" not in str(caught.value)


def test_head_is_alembics_head():
    from alembic.script import ScriptDirectory

    assert ScriptDirectory.from_config(alembic_config()).get_current_head() == HEAD


def test_the_migrations_make_the_tables_the_code_uses(database_url):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from steelyard.storage.engine import open_engine
    from steelyard.storage.tables import metadata

    engine = open_engine(database_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "steelyard_version"})
        assert compare_metadata(context, metadata) == []
    engine.dispose()
