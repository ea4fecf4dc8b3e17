"""Who is notified when kernels are compiled: known before numba is imported, which takes a third of a second."""

from __future__ import annotations

from collections.abc import Callable

_callbacks: list[Callable[[], None]] = []


def on_compilation(callback: Callable[[], None]) -> None:
    """Call `callback` once, before the first kernel of this process is compiled (not loaded from the cache)."""
    _callbacks.append(callback)


def notify_compilation() -> None:
    """Call the callbacks, each once."""
    while _callbacks:
        _callbacks.pop()()
