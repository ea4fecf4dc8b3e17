"""Simulated people who answer a study's tasks as real ones would: through ask and tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.simulate.answers import answer_for
from steelyard.study import Study


@dataclass(frozen=True, slots=True)
class SimulatedAnnotator:
    """One simulated person, on the unit scale.

    What they perceive is the truth, shifted by `bias`, with normal `noise`; with probability `lapse` a task is
    answered without looking.
    """

    name: str
    bias: float = 0.0
    noise: float = 0.1
    lapse: float = 0.0

    def perceive(self, truth: Mapping[str, float], items: Sequence[str], rng: np.random.Generator) -> dict[str, float]:
        """Return what this person takes the items' values to be, within [0, 1]."""
        if rng.random() < self.lapse:
            seen = rng.random(len(items))
        else:
            seen = np.array([truth[item] for item in items]) + self.bias + rng.normal(0, self.noise, len(items))
        return dict(zip(items, np.clip(seen, 0, 1).tolist(), strict=True))


def make_crowd(size: int, rng: np.random.Generator) -> list[SimulatedAnnotator]:
    """Draw a crowd of ordinary people: small biases, noise around a tenth of the scale, few lapses."""
    return [
        SimulatedAnnotator(
            name=f"sim-{number:02d}",
            bias=float(rng.normal(0, 0.04)),
            noise=float(rng.gamma(6, 0.1 / 6)),
            lapse=float(rng.beta(1, 40)),
        )
        for number in range(1, size + 1)
    ]


def work_through(
    study: Study,
    crowd: Sequence[SimulatedAnnotator],
    truth: Mapping[str, float],
    rng: np.random.Generator,
    told: Callable[[], None] = lambda: None,
    most: int | None = None,
) -> int:
    """Let a crowd answer a study until nobody has anything left to do; return the number of judgments.

    `truth` gives every item's value on [0, 1]. `told` is called after each judgment; `most` ends it sooner.
    """
    waiting = list(crowd)
    count = 0
    while waiting and (most is None or count < most):
        person = waiting[int(rng.integers(len(waiting)))]
        task = study.ask(person.name)
        if task is None:
            waiting.remove(person)
            continue
        perceived = person.perceive(truth, task.item_ids, rng)
        answer = answer_for(study.stage_of(task).protocol, perceived)
        study.tell(task, answer, seconds=round(float(rng.lognormal(1.5, 0.4)), 1))
        count += 1
        told()
    return count
