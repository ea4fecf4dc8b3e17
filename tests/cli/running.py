"""Running commands in this process, as if they had been typed."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from steelyard.cli.app import main


class Done(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


def run(*arguments: str, cwd: Path, text: str = "", code: int = 0, main: Callable[[], None] = main) -> Done:
    """Run a command in this process, as if it had been typed in a folder."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.argv, sys.stdin
    sys.argv, sys.stdin = ["steelyard", *arguments], io.StringIO(text)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.chdir(cwd),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as stopped,
        ):
            main()
    finally:
        sys.argv, sys.stdin = before
    done = Done(out.getvalue(), err.getvalue())
    assert (stopped.value.code or 0) == code, done
    return done
