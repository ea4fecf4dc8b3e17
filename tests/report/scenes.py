"""Studies that simulated people worked through, with all that can happen: for the report's tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from steelyard import Study
from steelyard.simulate import SimulatedAnnotator, SimulatedAnnotators

MINUTE = 60_000_000
PEOPLE = 7
SPAMMERS = ("person-0", "person-1")

PAIRWISE = '[protocol]\nname = "pairwise"\n[design]\nname = "random_tuples"\njudgments = 22\n'
SCORED = (
    '[protocol]\nname = "scored_ranking"\nsize = 3\nlabels = ["never", "always"]\n'
    '[design]\nname = "random_tuples"\njudgments = 18\n[model]\nname = "mean"\n'
)
CHECKS = {
    "pairwise": "items,answer\n" + "".join(f"good {n}|bad {n},good {n}\n" for n in range(25)),
    "scored": "items,answer\n" + "".join(f"low {n}|mid {n}|high {n},0..40|0..100|60..100\n" for n in range(25)),
}
QUALITY = """
[quality]
checks = { file = "gold.csv", rate = 0.4, min_checks = 5 }
repeat_rate = 0.15
repeat_after = 4
overlap_rate = 0.1
[stop]
measure = "split_half"
target = 0.999
interim_analyses = 3
[pay]
per_task = 0.05
per_visit = 0.4
per_hour = 1.5
bonus = "0.03 * checks_right + (0.5 if accuracy >= 0.9 else 0)"
fee = 0.2
"""


class Clock:
    """A clock that goes on two minutes each time it is read."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        self.now += 2 * MINUTE
        return self.now


def write_study(folder: Path, kind: str, *, title: str = "Words", items: int = 10, quality: str = QUALITY) -> Path:
    """Write the files of a study; `kind` is pairwise or scored."""
    folder.mkdir()
    rows = "".join(f"w{number},word {number}\n" for number in range(items))
    (folder / "items.csv").write_text("id,text\n" + rows)
    (folder / "gold.csv").write_text(CHECKS[kind])
    tables = PAIRWISE if kind == "pairwise" else SCORED
    (folder / "study.toml").write_text(
        f'title = \'{title}\'\nquestion = "Which is more often used?"\nitems = "items.csv"\n{tables}{quality}'
    )
    return folder


def work(study: Study, *, items: int = 10, seed: int = 0) -> None:
    """Let honest people and spammers work, skip, revise and flag; somebody is excluded by hand, and readmitted."""
    rng = np.random.default_rng(seed)
    truth = {f"w{number}": (number + 0.5) / items for number in range(items)}
    for number in range(25):
        truth |= {f"good {number}": 0.97, f"bad {number}": 0.03}
        truth |= {f"low {number}": 0.1, f"mid {number}": 0.5, f"high {number}": 0.9}
    crowd = [
        SimulatedAnnotator(name, bias=0.02 * number, noise=0.17, careless="random" if name in SPAMMERS else None)
        for number, name in enumerate(f"person-{number}" for number in range(PEOPLE))
    ]
    people = SimulatedAnnotators(crowd, truth, rng)
    protocol = study.config.stages[0].protocol
    idle: set[str] = set()
    turn = 0
    while len(idle) < len(crowd):
        name = people.names[turn % len(crowd)]
        turn += 1
        task = study.ask(name)
        if task is None:
            idle.add(name)
            continue
        idle.clear()
        if turn in {23, 51}:
            study.flag(task, "odd")
            study.skip(task, "cannot say")
            continue
        seconds = None if turn % 9 == 0 else float(rng.gamma(4, 3))
        judgment = study.tell(task, people.answer(name, protocol, task.item_ids), seconds=seconds)
        if turn % 31 == 0:
            study.revise(judgment.judgment_id, people.answer(name, protocol, task.item_ids))
        if turn % 10 == 0:
            study.quality.interim_analysis()
        if turn == 60:
            study.annotators.exclude("person-6", "person-6 wrote that person-5 helped")
        if turn == 66:
            study.annotators.readmit("person-6", "cleared up")
