"""Forgetting an annotator and importing a file, interrupted at every step: the next process completes them."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from steelyard import Study
from steelyard.errors import StoreError
from steelyard.storage import Store, processes
from steelyard.study import backup, bulk, differing_picks, forgetting, log, rebuild
from steelyard.study.backup import backup as make_backup
from steelyard.study.events import decode_own
from steelyard.study.importing import import_file
from steelyard.study.log import Log
from steelyard.study.rebuild import check_chain
from steelyard.study.state import StudyState
from tests.study.interrupted import counting, use_small_steps
from tests.study.test_checkpoints import differences, folded, plain
from tests.study.test_forgetting import DESIGNS, NAME, bytes_of, tables, worked
from tests.study.test_random_lives import STEPS, Life

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

ROWS = 11


class Killed(BaseException):
    """Stands for the end of the process, between two transactions."""


def stopped_after(transactions: int, work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run `work`, stop it after so many transactions as if the process had ended; return whether it was stopped."""
    count = 0

    def on_end() -> None:
        nonlocal count
        count += 1
        if count == transactions:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Log, "rewrite", counting(Log.rewrite, on_end))
        patch.setattr(Log, "write", counting(Log.write, on_end))
        try:
            work()
        except Killed:
            # What comes next is another process.
            monkeypatch.setattr(processes, "_TOKEN", f"after {transactions}".replace(" ", "-"))
            return True
    return False


def kill(*arguments: object) -> None:
    """Run an operation in a process of its own that is killed."""
    command = [sys.executable, "-m", "tests.study.interrupted", *map(str, arguments)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.fixture
def small_steps(monkeypatch):
    for module, names in ((forgetting, ["_JUDGMENTS_AT_ONCE"]), (bulk, ["_AT_ONCE", "_STAGED_AT_ONCE"])):
        for name in [*names, "_SHORTEST_PAUSE_SECONDS"]:
            monkeypatch.setattr(module, name, getattr(module, name))
    use_small_steps()


def forget_in(folder: Path) -> None:
    with Study.open(folder) as study:
        forgetting.take_out(study, NAME)


def fold(folder: Path, database: str) -> bool:
    """Fold the log as it is on disk, perhaps half-way through forgetting; return whether that is complete."""
    with Study.open(folder, database=database) as study:
        stages, name = study.config.stages, study.config.name
    with Store.open(database, name, create=False) as store:
        state = StudyState(stages)
        for event in map(decode_own, store.events()):
            state.apply(event)
        return store.erasure() is None


@pytest.mark.slow
def test_forgetting_that_was_interrupted_is_completed_by_the_next_process(
    make_study, tmp_path, small_steps, monkeypatch
):
    original = make_study()
    with worked(original) as study:
        others = study.judgments().filter(pl.col("annotator") != NAME)
    for kills in range(1, 20):
        folder = tmp_path / f"killed-{kills}"
        shutil.copytree(original, folder)
        if not stopped_after(kills, lambda folder=folder: forget_in(folder), monkeypatch):
            break
        with monkeypatch.context() as patch:
            # Nobody completes it: the log can be read all the same, but not be backed up.
            patch.setattr(Study, "resume", lambda study: None)
            if not fold(folder, f"sqlite:///{folder}/study.db"):
                with pytest.raises(StoreError, match="being forgotten"):
                    make_backup(folder, tmp_path / "half.steelyard")
        with Study.open(folder) as study:
            assert study.judgments().equals(others)
            events = list(study.events())
            check_chain(events)
            assert events[-1].kind == "forgotten"
            assert differing_picks(events) == []
            with rebuild(events, folder, f"sqlite:///{tmp_path / f'again-{kills}.db'}"):
                pass
            assert tables(tmp_path / f"again-{kills}.db") == tables(folder / "study.db")
        assert NAME.encode() not in bytes_of(folder)
    # The first transaction begins, the last one ends it; several replace events in between.
    assert kills > 5


def check_half_import(study: Study, file: Path) -> int:
    """Return how many judgments of the file are in the study; importing it again adds what is missing."""
    count = study.status().judgments
    assert not study.core.log.store.has_batches()
    result = import_file(study, file)
    assert study.status().judgments == ROWS == result.added + result.already
    check_chain(study.events())
    return count


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "judgments.csv"
    path.write_text("annotator,item,value\n" + "".join(f"ann,w{n % 6},{n}\n" for n in range(ROWS)))
    return path


@pytest.mark.slow
def test_an_import_that_was_interrupted_adds_all_judgments_or_none(make_study, file, small_steps, monkeypatch):
    counts = []
    for kills in range(1, 20):
        folder = make_study(items=6, design=f'name = "per_item"\njudgments = {ROWS}', name=f"study-{kills}")

        def work(folder: Path = folder) -> None:
            with Study.open(folder) as study:
                import_file(study, file)

        Study.open(folder).close()
        if not stopped_after(kills, work, monkeypatch):
            break
        with Study.open(folder) as study:
            counts.append(check_half_import(study, file))
    # Four transactions store the judgments, a fifth says that they are complete, the rest move them.
    assert counts == [0] * 4 + [ROWS] * (len(counts) - 4)
    assert len(counts) > 6


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_a_process_that_is_killed_leaves_nothing_undone(request, make_study, file, engine):
    folder = make_study(items=6, design=f'name = "per_item"\njudgments = {ROWS}')
    database = f"sqlite:///{folder}/study.db" if engine == "sqlite" else request.getfixturevalue("postgres_url")
    Study.open(folder, database=database).close()
    for transactions, count in ((3, 0), (7, ROWS)):
        kill("import", folder, database, file, transactions)
        with Study.open(folder, database=database) as study:
            assert study.status().judgments == count
    kill("forget", folder, database, "ann", 3)
    with Study.open(folder, database=database) as study:
        assert study.status().judgments == 0
        assert study.core.log.store.erasure() is None
        assert '"ann"' not in "".join(event.line() for event in study.events())
        check_chain(study.events())
        assert check_half_import(study, file) == 0


class Behind(Life):
    """A life in which another process forgets people, and this one goes on with its old state for a while."""

    def forget(self) -> None:
        names = [name for name in self.study.annotators.names() if name.startswith("ann-")]
        if not names:
            return
        name = names[int(self.rng.integers(len(names)))]
        own = {task.judgment_id for task in self.seen if task.annotator == name}
        self.answers = {key: answer for key, answer in self.answers.items() if key not in own}
        self.seen = [task for task in self.seen if task.annotator != name]
        with self.open() as other:
            forgetting.take_out(other, name)

    def refresh(self) -> None:
        self.study._log.refresh()


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_a_process_with_an_old_state_goes_on_until_it_has_read_the_log_again(make_study, tmp_path, monkeypatch, design):
    monkeypatch.setattr(log, "_REPLAYED_AT_ONCE", 0)
    monkeypatch.setattr(Log, "_refresh_in_background", lambda self: None)
    protocol, settings, items = DESIGNS[design]
    life = Behind(make_study(protocol, settings, items=items), tmp_path, len(design))
    steps = [step for step in STEPS if step is not Life.reopen] + [Behind.refresh]
    picks_behind = 0
    for number in range(80):
        (Behind.forget if number % 20 == 19 else steps[int(life.rng.integers(len(steps)))])(life)
        picks_behind += life.study._log._behind > 0
    assert picks_behind
    with life.study._log.read():
        assert life.study._log._behind
    life.refresh()
    with life.study._log.read() as state:
        assert not life.study._log._behind
        assert differences(plain(folded(life.study)), plain(state)) == []
    life.check()
    life.study.close()


def test_a_backup_can_be_made_after_somebody_was_forgotten(make_study, tmp_path):
    folder = make_study()
    with worked(folder) as study:
        forgetting.take_out(study, NAME)
    make_backup(folder, tmp_path / "after.steelyard")
    backup.restore(tmp_path / "after.steelyard", tmp_path / "restored")
    assert tables(tmp_path / "restored" / "study.db") == tables(folder / "study.db")
