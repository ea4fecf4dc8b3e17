"""Which process is busy with a long operation, so that another can complete it if that process has ended."""

from __future__ import annotations

import os
import secrets
import socket
import time

_SILENT_SECONDS = 60
"""A process on another machine that has done nothing for this long is taken for dead."""
_HUNG_SECONDS = 600
"""So is one on this machine whose number another process may have by now."""
_TOKEN = secrets.token_hex(4)
"""Tells this process from an earlier one with the same number, as in a container that was restarted."""


def this_process() -> str:
    """Return what identifies this process: its machine, its number and a token."""
    return f"{socket.gethostname()} {os.getpid()} {_TOKEN}"


def now() -> int:
    """Return the time in microseconds."""
    return time.time_ns() // 1000


def is_abandoned(process: str, touched: int) -> bool:
    """Whether a process that did something at a time has ended, or does nothing any more."""
    machine, number, _ = process.split(" ")
    silent_seconds = (now() - touched) / 1e6
    if machine != socket.gethostname():
        return silent_seconds > _SILENT_SECONDS
    if int(number) == os.getpid():
        return process != this_process()
    return silent_seconds > _HUNG_SECONDS or not _is_running(int(number))


def _is_running(process: int) -> bool:
    if os.name == "nt":
        # Sending a signal would end the process there.
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
