"""ask + tell in one process: how many a second with 10,000 items, and is it flat as the log grows?

`--judgments 1000000` grows the log to a million, by importing; 100,000 by default.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from steelyard import Study
from steelyard.study.study import ImportedAnswer

ITEMS = 10_000
PEOPLE = 200
STAGES = {
    "per_item": ('name = "direct"', 'name = "per_item"\njudgments = 2000'),
    "random_tuples": ('name = "best_worst"', 'name = "random_tuples"\njudgments = 2000'),
}


def make(folder: Path, design: str) -> Study:
    """Make a study of 10,000 items."""
    protocol, settings = STAGES[design]
    (folder / "items.csv").write_text("id,text\n" + "".join(f"i{n},item {n}\n" for n in range(ITEMS)))
    (folder / "study.toml").write_text(
        f'title = "B"\nquestion = "Q"\nitems = "items.csv"\n[protocol]\n{protocol}\n[design]\n{settings}\n'
    )
    return Study.open(folder)


def work(study: Study, first: int, count: int) -> float:
    """Ask and tell so many times; return the pairs a second."""
    began = time.perf_counter()
    for number in range(first, first + count):
        task = study.ask(f"ann-{number % PEOPLE}")
        assert task is not None
        ids = task.item_ids
        study.tell(task, {ids[0]: 50} if len(ids) == 1 else {"best": ids[0], "worst": ids[-1]})
    return count / (time.perf_counter() - began)


def grow(study: Study, design: str, size: int, rng: np.random.Generator) -> None:
    """Bring the log to so many judgments by importing some."""
    count = size - study.status().judgments
    answers = []
    for number in range(count):
        ids = tuple(f"i{n}" for n in rng.choice(ITEMS, 1 if design == "per_item" else 4, replace=False))
        answer = {ids[0]: 50} if len(ids) == 1 else {"best": ids[0], "worst": ids[-1]}
        answers.append(ImportedAnswer(f"{size}-{number}", f"old-{number % PEOPLE}", ids, answer))
    study.import_answers(0, answers)


def main() -> None:
    """Print the rate at growing sizes of the log."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--judgments", type=int, default=100_000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    for design in STAGES:
        with tempfile.TemporaryDirectory() as folder, make(Path(folder), design) as study:
            print(f"{design}: {ITEMS:,} items, {PEOPLE} annotators, SQLite (goal: at least 300 a second, flat)")
            first_rate = None
            for size in (1_000, 10_000, 100_000, 1_000_000):
                if size > options.judgments:
                    break
                grow(study, design, size, rng)
                rates = [work(study, 500 * block, 500) for block in range(6)]
                rate = statistics.median(rates)
                first_rate = first_rate or rate
                print(f"  at {size:>9,} judgments: {rate:6.0f} a second ({rate / first_rate:.2f}×)", flush=True)


if __name__ == "__main__":
    main()
