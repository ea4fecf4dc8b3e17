"""Whether checks find those who answer at random, and spare the others, in whole studies on SQLite.

A pairwise study, 100 simulated annotators with 20 checks each: 20 answer at random, the others are 93 % right on
checks. Wanted, on average: at least 18 of 20 found, at most 2 of 80 lost, and the budget refilled.

python -m benchmarks.coverage_checks [STUDIES] [FIRST_SEED]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from steelyard import Study
from steelyard.protocols import Protocol
from steelyard.simulate import answer_study

CHECKS = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many spammers were found, how many honest people lost, and whether all that was planned counts."""

    found: int
    lost: int
    set_aside: int
    counted: int
    planned: int
    checked: float

    @property
    def refilled(self) -> bool:
        """Whether what was set aside was asked again."""
        return self.counted >= self.planned


class Crowd:
    """Honest people, right on most checks, and spammers, who answer at random."""

    def __init__(self, honest: int, spammers: int, accuracy: float, rng: np.random.Generator) -> None:
        self.names = (*(f"honest-{n}" for n in range(honest)), *(f"spammer-{n}" for n in range(spammers)))
        self.accuracy = accuracy
        self.rng = rng

    def answer(self, annotator: str, protocol: Protocol, items: Sequence[str]) -> Any:
        """Choose one of two: checks by accuracy, items by how far apart they are."""
        first, second = items
        if annotator.startswith("spammer"):
            sure = 0.5
        elif first.startswith(("good", "bad")):
            sure = self.accuracy if first.startswith("good") else 1 - self.accuracy
        else:
            sure = 1 / (1 + np.exp(0.1 * (int(second[1:]) - int(first[1:]))))
        return {"winner": first if self.rng.random() < sure else second}

    def seconds(self, protocol: Protocol) -> float | None:
        """Nobody takes the time."""
        return None


def write_study(folder: Path, items: int, judgments: int, seed: int) -> None:
    """Write a pairwise study with twenty checks, mixed in at a rate that gives them to everybody."""
    (folder / "items.csv").write_text("id,text\n" + "".join(f"w{n},word {n}\n" for n in range(items)))
    checks = "".join(f"good {n}|bad {n},good {n}\n" for n in range(CHECKS))
    (folder / "gold.csv").write_text("items,answer\n" + checks)
    (folder / "study.toml").write_text(
        f'title = "Checks"\nquestion = "Which is better?"\nitems = "items.csv"\nseed = {seed}\n'
        f'[protocol]\nname = "pairwise"\n[design]\nname = "random_tuples"\njudgments = {judgments}\n'
        '[quality]\nchecks = { file = "gold.csv", rate = 0.5 }\n'
    )


def run(
    seed: int, *, honest: int = 80, spammers: int = 20, accuracy: float = 0.93, items: int = 100, judgments: int = 70
) -> Outcome:
    """Let a crowd work through a study, and see who was excluded."""
    with tempfile.TemporaryDirectory(prefix="steelyard-checks-") as scratch:
        folder = Path(scratch)
        write_study(folder, items, judgments, seed)
        rng = np.random.default_rng(seed)
        with Study.open(folder) as study:
            answer_study(study, Crowd(honest, spammers, accuracy, rng), rng)
            out = list(study.annotators.excluded)
            status = study.status()
            check_counts = [count for name, (_, count) in study.quality.check_results().items() if name not in out]
            stage = status.stages[0]
            spammers_excluded = sum(name.startswith("spammer") for name in out)
            return Outcome(
                spammers_excluded,
                len(out) - spammers_excluded,
                status.set_aside,
                stage.done,
                stage.total,
                float(np.mean(check_counts or [0])),
            )


def main(studies: int = 20, first: int = 0) -> None:
    """Print each study, and the means."""
    print(f"{studies} studies; wanted on average: 18 of 20 found, 2 of 80 lost, and refilled")
    print(f"{'seed':>5}{'found':>7}{'lost':>6}{'set aside':>11}{'counted':>9}{'planned':>9}{'checks':>8}{'seconds':>9}")
    outcomes = []
    for seed in range(first, first + studies):
        began = perf_counter()
        one = run(seed)
        outcomes.append(one)
        numbers = f"{seed:>5}{one.found:>7}{one.lost:>6}{one.set_aside:>11}{one.counted:>9}{one.planned:>9}"
        print(f"{numbers}{one.checked:>8.1f}{perf_counter() - began:>9.0f}", flush=True)
    found, lost = (float(np.mean([getattr(one, name) for one in outcomes])) for name in ("found", "lost"))
    print(f"mean: {found:.2f} found, {lost:.2f} lost, {sum(one.refilled for one in outcomes)} of {studies} refilled")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
