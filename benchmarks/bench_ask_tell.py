"""ask + tell in one process: how many a second with 10,000 items, and is it flat as the log grows?

`--judgments N` grows the log to N (a million takes about ten minutes); 100,000 by default.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from steelyard import Study

ITEMS = 10_000
PEOPLE = 200
STAGES = {
    "redundant": ('name = "direct"', 'name = "redundant"\njudgments = 200'),
    "random_tuples": ('name = "best_worst"', 'name = "random_tuples"\njudgments = 1000'),
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


def main() -> None:
    """Print the rate at growing sizes of the log."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--judgments", type=int, default=100_000)
    parser.add_argument("--design", choices=STAGES, default=None)
    wanted = parser.parse_args()
    for design in [wanted.design] if wanted.design else STAGES:
        with tempfile.TemporaryDirectory() as folder, make(Path(folder), design) as study:
            print(f"{design}: {ITEMS:,} items, {PEOPLE} annotators, SQLite (goal: at least 300 a second, flat)")
            done, first_rate = 0, None
            mark = 1000
            while done < wanted.judgments:
                rate = work(study, done, mark - done)
                done = mark
                recent = work(study, done, 1000)
                done += 1000
                first_rate = first_rate or recent
                print(
                    f"  at {done:>9,} judgments: {recent:7.0f} a second ({recent / first_rate:.2f}×; on the way {rate:.0f})"
                )
                mark = min(max(done * 3, done + 1000), wanted.judgments)
                if mark <= done:
                    break


if __name__ == "__main__":
    main()
