"""Processes that compute beside the server."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

from steelyard.web.calculator_process import PRIORITY, lower_priority


def priority_after_lowering() -> int:
    """Return the niceness of this process after `lower_priority`."""
    lower_priority()
    return os.getpriority(os.PRIO_PROCESS, 0)


def test_only_processes_beside_the_server_get_a_lower_priority():
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(priority_after_lowering).result() == max(before, PRIORITY)
    assert priority_after_lowering() == before
