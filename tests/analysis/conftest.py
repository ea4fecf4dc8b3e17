"""Small studies whose every answer is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from steelyard import Study

START = 1_700_000_000_000_000
MINUTE = 60_000_000


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_study(make_study, clock) -> Iterator[Callable[..., Study]]:
    """Return a function that makes and opens a study; all are closed afterwards."""
    opened: list[Study] = []

    def make(*args, **settings) -> Study:
        opened.append(Study.open(make_study(*args, **settings), clock=clock))
        return opened[-1]

    yield make
    for study in opened:
        study.close()


def answer_all(study: Study, annotator: str, answers, *, seconds: float | None = None, count: int | None = None) -> int:
    """Let an annotator answer with `answers(item ids)` until no task remains, or `count` times."""
    done = 0
    while count is None or done < count:
        task = study.ask(annotator)
        if task is None:
            break
        study.tell(task, answers(task.item_ids), seconds=seconds)
        done += 1
    return done
