"""How long the report of a study with 100,000 judgments takes.

python -m benchmarks.bench_report [JUDGMENTS]
"""

from __future__ import annotations

import sys
import tempfile
import uuid
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from steelyard import Study
from steelyard.report.builder import build_report
from steelyard.report.html import html_page
from steelyard.simulate import Population, SimulatedAnnotators, make_crowd
from steelyard.study import events as ev

PEOPLE, SECOND = 200, 1_000_000
STUDIES = {
    "direct": ('name = "direct"', "per_item", 2_000, 1),
    "pairwise": ('name = "pairwise"', "random_tuples", 500, 2),
    "best_worst": ('name = "best_worst"', "random_tuples", 500, 4),
}


def write_study(folder: Path, protocol: str, design: str, items: int) -> None:
    """Write a study's files."""
    (folder / "items.csv").write_text("id,text\n" + "".join(f"w{n},word {n}\n" for n in range(items)))
    (folder / "study.toml").write_text(
        'title = "Words"\nquestion = "How positive?"\nitems = "items.csv"\n'
        f'[protocol]\n{protocol}\n[design]\nname = "{design}"\njudgments = 1000\n[pay]\nper_task = 0.02\n'
    )


def fill(study: Study, judgments: int, items: int, size: int) -> None:
    """Write judgments straight into the log, each after its pick: asking one by one would take minutes."""
    rng = np.random.default_rng(1)
    people = Population()
    names = [f"w{n}" for n in range(items)]
    crowd = SimulatedAnnotators(make_crowd(PEOPLE, rng), people.truth(names, rng), rng)
    protocol = study.config.stages[0].protocol
    at = 1_700_000_000 * SECOND
    block = 5_000
    for start in range(0, judgments, block):
        with study._log.write() as transaction:
            for _ in range(start, min(start + block, judgments)):
                who = crowd.names[int(rng.integers(PEOPLE))]
                task_items = [names[n] for n in rng.choice(items, size, replace=False)]
                judgment = uuid.UUID(int=int(rng.integers(2**62))).hex
                pick = ev.Picked(
                    stage=0,
                    items=tuple(task_items),
                    slot=None,
                    design="per_item",
                    settings={},
                    seed=0,
                    round=0,
                    weight=1.0,
                    propensity=None,
                    state="",
                    lease_end=at + 60 * SECOND,
                )
                transaction.append(pick, at=at, annotator=who, judgment_id=judgment)
                answer = protocol.validate(task_items, crowd.answer(who, protocol, task_items))
                judged = ev.Judged(stage=0, items=tuple(task_items), answer=answer, seconds=float(rng.gamma(4, 2)))
                transaction.append(judged, at=at + 9 * SECOND, annotator=who, judgment_id=judgment)
                at += SECOND // 2


def main(judgments: int = 100_000) -> None:
    """Print the seconds each part takes, by the clock and of the processor."""
    print(f"{judgments:,} judgments of {PEOPLE} people; the report should take less than 15 s")
    for name, (protocol, design, items, size) in STUDIES.items():
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            write_study(folder, protocol, design, items)
            with Study.open(folder) as study:
                fill(study, judgments, items, size)
            steps = [("opening", perf_counter(), process_time())]

            def told(step: str, steps: list[tuple[str, float, float]] = steps) -> None:
                steps.append((step, perf_counter(), process_time()))

            with Study.open(folder) as study:
                document = build_report(study, on_step=told)
            told("drawing")
            page = html_page(document)
            told("")
        (_, begin, begin_cpu), (_, end, end_cpu) = steps[0], steps[-1]
        print(f"{name:24}{end - begin:6.1f} s  (processor {end_cpu - begin_cpu:.1f} s)   {len(page) / 1e6:.1f} MB")
        for (step, at, cpu), (_, after, after_cpu) in pairwise(steps):
            if after_cpu - cpu > 0.3:
                print(f"    {step:20}{after - at:6.1f} s  (processor {after_cpu - cpu:.1f} s)", flush=True)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
