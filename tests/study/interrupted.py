"""Run an operation on a study and kill this process after some transactions: python -m tests.study.interrupted."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from steelyard import Study
from steelyard.study import bulk, forgetting
from steelyard.study.importing import import_file
from steelyard.study.log import Log


def use_small_steps() -> None:
    """Let the operations take many transactions even in a small study."""
    forgetting._JUDGMENTS_AT_ONCE = 2
    bulk._AT_ONCE, bulk._STAGED_AT_ONCE = 4, 3
    forgetting._SHORTEST_PAUSE_SECONDS = bulk._SHORTEST_PAUSE_SECONDS = 0.0


def counting(original: Callable[..., Any], on_end: Callable[[], None]) -> Callable[..., Any]:
    """Return a transaction's context manager that calls `on_end` after each."""

    @contextmanager
    def counted(*arguments: Any, **options: Any) -> Iterator[Any]:
        with original(*arguments, **options) as transaction:
            yield transaction
        on_end()

    return counted


def main(operation: str, folder: str, database: str, what: str, transactions: str) -> None:
    """Forget the annotator `what`, or import the file `what`, and be killed on the way."""
    use_small_steps()
    left = int(transactions)

    def on_end() -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    with Study.open(folder, database=database) as study:
        Log.rewrite, Log.write = counting(Log.rewrite, on_end), counting(Log.write, on_end)  # type: ignore[method-assign]
        if operation == "forget":
            forgetting.take_out(study, what)
        else:
            import_file(study, what)


if __name__ == "__main__":
    main(*sys.argv[1:])
