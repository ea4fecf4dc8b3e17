"""Annotators at work on a real study, through ask and tell like anybody."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from steelyard.designs import NoTask
from steelyard.errors import ConfigError
from steelyard.simulate.annotators import Annotators, SimulatedAnnotators, Truth
from steelyard.simulate.population import SimulatedAnnotator
from steelyard.study import Study

_BLOCK = 4096


class Turns:
    """Who comes next: anybody who may have something to do, at random.

    Who is told that there is nothing waits until all others have been told so too, and is then called once
    more if there has been an answer since: it may have opened a round or a stage.
    """

    def __init__(self, names: Sequence[str], rng: np.random.Generator) -> None:
        self._active = list(names)
        self._waiting: list[str] = []
        self._rng = rng
        self._chances: list[float] = []
        self._told = False

    def next(self) -> str | None:
        """Return whose turn it is; None when nobody has anything to do."""
        if not self._active and self._told:
            self._active, self._waiting = self._waiting, []
            self._told = False
        if not self._active:
            return None
        if not self._chances:
            self._chances = self._rng.random(_BLOCK).tolist()
        return self._active[int(self._chances.pop() * len(self._active))]

    def answered(self) -> None:
        """Note that somebody answered."""
        self._told = True

    def nothing_for(self, annotator: str, nothing: NoTask) -> None:
        """Note that there is nothing for an annotator now; nor for anybody, if the study is complete."""
        if nothing.complete:
            self._active, self._waiting = [], []
        else:
            self._active.remove(annotator)
            self._waiting.append(annotator)


def answer_study(
    study: Study,
    annotators: Annotators,
    rng: np.random.Generator,
    *,
    told: Callable[[], None] = lambda: None,
    most: int | None = None,
    threads: int = 1,
) -> int:
    """Let annotators answer a study until nobody has anything left to do; return the number of judgments.

    `told` is called after each judgment; `most` ends it sooner. With several threads the people are shared out
    among them, and who comes when is up to the machine.
    """
    if threads < 1:
        raise ConfigError(f"{threads} threads.", "Use at least one.")
    lock = threading.Lock()
    count = 0
    failures: list[BaseException] = []

    def work(turns: Turns) -> None:
        nonlocal count
        try:
            while (annotator := turns.next()) is not None and (most is None or count < most):
                task = study.offer(annotator)
                if isinstance(task, NoTask):
                    turns.nothing_for(annotator, task)
                    continue
                with lock:
                    protocol = study.stage_of(task).protocol
                    answer = annotators.answer(annotator, protocol, task.item_ids)
                    seconds = annotators.seconds(protocol)
                    count += 1
                study.tell(task, answer, seconds=seconds)
                turns.answered()
                with lock:
                    told()
        except BaseException as error:
            failures.append(error)

    shares = [Turns(annotators.names[number::threads], child) for number, child in enumerate(rng.spawn(threads))]
    workers = [threading.Thread(target=work, args=(share,)) for share in shares[1:]]
    for worker in workers:
        worker.start()
    work(shares[0])
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return count


def work_through(
    study: Study,
    crowd: Sequence[SimulatedAnnotator],
    truth: Truth,
    rng: np.random.Generator,
    told: Callable[[], None] = lambda: None,
    most: int | None = None,
    threads: int = 1,
) -> int:
    """Let a simulated crowd answer a study, as `answer_study` does; `truth` gives each item's value on [0, 1]."""
    return answer_study(study, SimulatedAnnotators(crowd, truth, rng), rng, told=told, most=most, threads=threads)
