"""Random lives of a study against a plain account of what must hold."""

from __future__ import annotations

import contextlib
import json
from collections import Counter

import numpy as np
import polars as pl
import pytest

from steelyard import Study, Task
from steelyard.errors import TaskError
from steelyard.simulate import answer_for
from steelyard.study import differing_picks, rebuild
from steelyard.study.importing import import_file

pytestmark = pytest.mark.filterwarnings("ignore::steelyard.errors.SteelyardWarning")

MINUTE = 60_000_000
SETUPS = {
    "direct": ('name = "direct"', 'name = "per_item"\njudgments = 3'),
    "pages": ('name = "likert"\nitems_per_page = 3', 'name = "per_item"\njudgments = 2'),
    "pairs": ('name = "pairwise"', 'name = "random_tuples"\njudgments = 4\nannotators_per_task = 2'),
    "spans": ('name = "error_spans"', 'name = "per_item"\njudgments = 2'),
    "tuples": ('name = "best_worst"\nsize = 3', 'name = "random_tuples"\njudgments = 3'),
}


class Life:
    """A study, a clock, and an account of what was acknowledged."""

    def __init__(self, folder, tmp_path, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.now = 1_700_000_000_000_000
        self.folder, self.tmp_path = folder, tmp_path
        self.study = self.open()
        self.answers: dict[str, object] = {}
        self.seen: list[Task] = []

    def open(self) -> Study:
        return Study.open(self.folder, clock=lambda: self.now)

    def answer(self, task) -> object:
        values = dict(zip(task.item_ids, self.rng.random(len(task.items)).tolist(), strict=True))
        return answer_for(self.study.core.stage_of(task).protocol, values)

    def some_task(self):
        return self.seen[int(self.rng.integers(len(self.seen)))] if self.seen else None

    # What may happen

    def ask(self) -> None:
        annotator = f"ann-{self.rng.integers(3)}"
        self.seen += self.study.ask(annotator, count=int(self.rng.integers(1, 3)))

    def tell(self) -> None:
        if (task := self.some_task()) is not None and task.judgment_id not in self.answers:
            judgment = self.study.tell(task, self.answer(task))
            self.answers[task.judgment_id] = judgment.answer

    def retry(self) -> None:
        if (task := self.some_task()) is not None and task.judgment_id in self.answers:
            before = self.study.status().judgments
            self.study.tell(task, self.answers[task.judgment_id])
            assert self.study.status().judgments == before

    def revise(self) -> None:
        if (task := self.some_task()) is not None and task.judgment_id in self.answers:
            self.answers[task.judgment_id] = self.study.revise(task.judgment_id, self.answer(task)).answer

    def skip(self) -> None:
        if (task := self.some_task()) is not None:
            with contextlib.suppress(TaskError):
                self.study.skip(task, "no idea")

    def renew(self) -> None:
        if (task := self.some_task()) is not None:
            with contextlib.suppress(TaskError):
                self.study.renew(task)

    def wait(self) -> None:
        self.now += int(self.rng.integers(1, 40)) * MINUTE

    def exclude(self) -> None:
        with contextlib.suppress(TaskError):
            self.study.annotators.exclude(f"ann-{self.rng.integers(3)}", "careless")

    def readmit(self) -> None:
        for annotator in self.study.annotators.excluded:
            self.study.annotators.readmit(annotator)

    def pause(self) -> None:
        self.study.set_state("paused", "lunch")
        assert self.study.ask("somebody-new") is None
        self.study.set_state("open")

    def reopen(self) -> None:
        self.study.close()
        self.study = self.open()

    def add_items(self) -> None:
        number = len(self.study.items)
        with (self.folder / "items.csv").open("a") as file:
            file.write(f"new{number},new word {number}\n")
        self.reopen()

    # What must hold

    def check(self) -> None:
        events = list(self.study.events())
        frame = self.study.judgments()
        answers = {row["judgment_id"]: json.loads(row["answer"]) for row in frame.iter_rows(named=True)}
        assert answers == json.loads(json.dumps(self.answers))
        with self.study._log.read() as state:
            progress = state.progress[0]
            counted = frame.filter(~pl.col("set_aside"))
            assert set(frame.filter("set_aside")["annotator"]) <= set(state.excluded)
            answered = Counter(item for items in counted["items"] for item in items)
            assert {item.id: int(n) for item, n in zip(state.items, progress.answers, strict=True) if n} == answered
            last_kind = {}
            for event in events:
                if event.judgment_id is not None and event.kind in {
                    "picked",
                    "judgment",
                    "skip",
                    "expired",
                    "withdrawn",
                }:
                    last_kind[event.judgment_id] = event.kind
            out = Counter(last_kind.values())["picked"]
            assert progress.tasks_leased == out
            assert (progress.assignments.level >= progress.answers).all()
        assert differing_picks(events) == []
        database = f"sqlite:///{self.tmp_path / 'again.db'}"
        with rebuild(events, self.folder, database) as again:
            assert again.status() == self.study.status()
            if counted.height:
                assert again.scores().write_csv() == self.study.scores().write_csv()


STEPS = [Life.ask] * 6 + [Life.tell] * 6 + [
    Life.retry, Life.revise, Life.skip, Life.renew, Life.wait, Life.wait, Life.reopen, Life.add_items,
    Life.exclude, Life.readmit, Life.readmit, Life.pause,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("setup", SETUPS)
def test_whatever_happens_every_answer_is_there_once_and_the_log_tells_it_all(make_study, tmp_path, setup, seed):
    life = Life(make_study(*SETUPS[setup], items=5), tmp_path, seed)
    for _ in range(90):
        STEPS[int(life.rng.integers(len(STEPS)))](life)
    life.check()
    life.study.close()


@pytest.mark.slow
def test_nobody_answers_the_same_twice_unless_it_was_late(make_study, tmp_path):
    """Over many lives: two judgments of one item by one person mean that one came after its lease."""
    for seed in range(10):
        life = Life(make_study(*SETUPS["direct"], items=4, name=f"s{seed}"), tmp_path, 100 + seed)
        for _ in range(120):
            STEPS[int(life.rng.integers(len(STEPS)))](life)
        frame = life.study.judgments().explode("items")
        for (_, _), part in frame.group_by("annotator", "items"):
            assert part.height == 1 or part["late"].any()
        life.study.close()


def test_an_import_in_the_middle_of_it_all_counts_once(make_study, tmp_path):
    life = Life(make_study(*SETUPS["direct"], items=4), tmp_path, 3)
    (tmp_path / "j.csv").write_text("annotator,item,value\nzoe,w0,5\nzoe,w1,7\n")
    for step in range(60):
        STEPS[int(life.rng.integers(len(STEPS)))](life)
        if step in (20, 40):
            import_file(life.study, tmp_path / "j.csv")
    assert life.study.status().imported == 2
    assert differing_picks(life.study.events()) == []
    life.study.close()
