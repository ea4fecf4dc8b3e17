"""Compilation of numerical kernels with numba: every kernel has the same options and keeps its Python types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba
from numba.core import event

from steelyard.models.compilation_notice import notify_compilation

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile a kernel on first use; the machine code is cached on disk."""
    return cast("F", numba.njit(function, cache=True, nogil=True))


class _CompilationListener(event.Listener):  # type: ignore[misc]  # numba has no types
    """Pass on that numba compiles; kernels loaded from its cache do not count."""

    def on_start(self, event: object) -> None:
        notify_compilation()

    def on_end(self, event: object) -> None:
        pass


event.register("numba:compile", _CompilationListener())
