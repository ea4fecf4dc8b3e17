"""Wait for conditions instead of sleeping for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait_until(condition: Callable[[], Any], *, seconds: float = 60, interval: float = 0.02) -> Any:
    """Evaluate `condition` until it is true and return its value; fail after this many seconds."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"still not true after {seconds:g} s"
        time.sleep(interval)
    return value
