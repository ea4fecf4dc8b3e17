"""Judgments written some at a time: the same rows, in memory that does not grow with them."""

from __future__ import annotations

import json
import subprocess
import sys

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from steelyard import Study
from steelyard.formats import read_judgments
from steelyard.study import exporting
from steelyard.study.exporting import conventional_judgments, write_answers, write_judgments
from steelyard.study.importing import import_file
from tests.cli.running import run
from tests.study.test_importing import CASES


@pytest.mark.parametrize("protocol", CASES)
def test_the_rows_are_those_of_the_whole_table(make_study, tmp_path, protocol, monkeypatch):
    monkeypatch.setattr(exporting, "CHUNK", 1)
    (tmp_path / "judgments.csv").write_text(CASES[protocol])
    with Study.open(make_study(protocol)) as study:
        import_file(study, tmp_path / "judgments.csv")
        rows = write_judgments(study, tmp_path / "out.parquet")
        whole = conventional_judgments(study)
    exported = pl.read_parquet(tmp_path / "out.parquet")
    assert rows == exported.height == whole.height
    order = sorted(set(whole.columns) - {"task"})
    assert_frame_equal(exported.select(order).sort(order), whole.select(order).sort(order))
    read_judgments(tmp_path / "out.parquet", scale=(0, 100))


def answered(study: Study, person: str, value: float) -> str:
    task = study.ask(person)
    assert task is not None
    study.tell(task, {task.item_ids[0]: value})
    return task.judgment_id


def test_revisions_count_and_excluded_people_do_not(make_study, tmp_path, database_url):
    chunks: list[int] = []
    with Study.open(make_study(), database=database_url) as study:
        first = answered(study, "ann", 10)
        answered(study, "bob", 20)
        answered(study, "eve", 30)
        study.revise(first, {study.task(first).item_ids[0]: 90})
        study.annotators.exclude("eve", "no work")
        study.annotators.exclude("bob", "by mistake")
        study.annotators.readmit("bob")
        assert write_judgments(study, tmp_path / "out.parquet", real_ids=True, on_progress=chunks.append) == 2
        assert write_answers(study, tmp_path / "answers.parquet", real_ids=True) == study.status().judgments == 3
        assert_frame_equal(pl.read_parquet(tmp_path / "answers.parquet"), study.judgments().drop("comment"))
    exported = pl.read_parquet(tmp_path / "out.parquet")
    assert dict(exported.select("annotator", "value").rows()) == {"ann": 90.0, "bob": 20.0}
    assert sum(chunks) == 3


def test_nobody_is_named_unless_asked_for(make_study, tmp_path):
    with Study.open(make_study()) as study:
        answered(study, "ann", 10)
        write_judgments(study, tmp_path / "out.parquet")
        write_answers(study, tmp_path / "answers.parquet")
        called = study.privacy.pseudonym("ann")
    for name in ("out", "answers"):
        assert pl.read_parquet(tmp_path / f"{name}.parquet")["annotator"].to_list() == [called]


def test_a_column_that_comes_up_late_is_there_from_the_start(make_study, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "CHUNK", 1)
    (tmp_path / "judgments.csv").write_text(
        "annotator,item1,item2,item3,item4,best,worst\nann,w0,w1,w2,,w0,w2\nbob,w0,w1,w2,w3,w0,w3\n"
    )
    with Study.open(make_study('name = "best_worst"')) as study:
        import_file(study, tmp_path / "judgments.csv")
        assert write_judgments(study, tmp_path / "out.parquet", real_ids=True) == 2
    exported = pl.read_parquet(tmp_path / "out.parquet")
    assert exported.sort("annotator")["item4"].to_list() == [None, "w3"]


def test_a_study_without_judgments_gives_a_file_without_rows(make_study, tmp_path):
    with Study.open(make_study()) as study:
        assert write_judgments(study, tmp_path / "out.parquet") == 0
    assert pl.read_parquet(tmp_path / "out.parquet").height == 0


@pytest.mark.parametrize("name", ["out.parquet", "out [1] *.parquet"])
def test_polars_alone_writes_it_and_nothing_is_left_beside_it(make_study, tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setattr(exporting, "CHUNK", 2)
    folder = tmp_path / "out"
    folder.mkdir()
    with Study.open(make_study()) as study:
        people = ["cid", "ann", "bob", "dan", "eve"]
        for value, person in enumerate(people):
            answered(study, person, value)
        assert write_judgments(study, folder / name, real_ids=True) == 5
    with (folder / name).open("rb") as file:
        exported = pl.read_parquet(file)
    assert exported.select("annotator", "value").rows() == [(person, float(n)) for n, person in enumerate(people)]
    assert [file.name for file in folder.iterdir()] == [name]


def test_what_breaks_off_leaves_the_file_that_was_there(make_study, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "CHUNK", 1)
    out = tmp_path / "out"
    out.mkdir()
    (out / "out.parquet").write_bytes(b"the one before")

    def broken(count: int) -> None:
        raise KeyboardInterrupt

    with Study.open(make_study()) as study:
        answered(study, "ann", 10)
        with pytest.raises(KeyboardInterrupt):
            write_judgments(study, out / "out.parquet", on_progress=broken)
    assert (out / "out.parquet").read_bytes() == b"the one before"
    assert len(list(out.iterdir())) == 1


def test_a_folder_that_is_not_there_leaves_nothing_behind(make_study, tmp_path):
    folder = make_study()
    done = run("export", str(folder), "-o", str(tmp_path / "none" / "out.parquet"), cwd=tmp_path, code=1)
    assert "cannot be written" in done.stderr


EXPORT = """
import json, resource, sys
from pathlib import Path
from steelyard.study import Study, exporting

peaks = []
with Study.open(sys.argv[1], database=sys.argv[2]) as study:
    on_progress = lambda count: peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    exporting.write_judgments(study, Path(sys.argv[3]), on_progress=on_progress)
    on_progress(0)
print(json.dumps(peaks))
"""


def fill(study: Study, count: int) -> None:
    """Put answers into the log, without asking anybody."""
    from steelyard.storage import StoredTask
    from steelyard.study import events as ev
    from steelyard.study.log import append_event

    items = [item.id for item in study.items]
    with study._log.write() as transaction:
        tasks = []
        for number in range(count):
            item, name = items[number % len(items)], f"ann {number % 50}"
            judged = ev.Judged(stage=0, items=(item,), answer={item: number % 101}, imported=True)
            event = append_event(transaction.store, judged, at=number, annotator=name, judgment_id=f"j{number}")
            tasks.append(StoredTask(f"j{number}", name, 0, (item,), "answered", 0, event.seq, event.seq))
        transaction.store.add_tasks(tasks)


@pytest.mark.postgres
def test_memory_does_not_grow_with_the_judgments(make_study, tmp_path, postgres_url):
    folder, out, count = make_study(), tmp_path / "out.parquet", 60_000
    with Study.open(folder, database=postgres_url) as study:
        fill(study, count)
    command = [sys.executable, "-c", EXPORT, str(folder), postgres_url, str(out)]
    peaks = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert pl.scan_parquet(out).select(pl.len()).collect().item() == count
    *peaks, assembled = peaks
    assert len(peaks) == count / exporting.CHUNK
    # The peak after all is that after a third, but for what the allocator keeps.
    assert peaks[-1] - peaks[1] < 20, peaks
    # Polars' threads, and the rows they hold at a time, take their part in the end, whatever the number of rows.
    assert assembled - peaks[-1] < 60, (peaks, assembled)
