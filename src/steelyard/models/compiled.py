"""Compilation of numerical kernels with numba: every kernel has the same options and keeps its Python types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba
from numba import extending
from numba.core import event

from steelyard.models.compilation_notice import notify_compilation

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile a kernel on first use; the machine code is cached on disk."""
    return cast("F", numba.njit(function, cache=True, nogil=True))


def compiled_part(function: F) -> F:
    """Compile a kernel as part of the kernels that call it; from Python it runs as it is, uncompiled.

    Numba's wrapper for calls from Python is left out: for kernels with many arrays it is a third of the compile time.
    """
    return cast("F", extending.register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function))


def inlined(function: F) -> F:
    """Compile a kernel as part of its only caller, so that all that it calls is optimised once less."""
    return cast("F", numba.njit(function, cache=True, nogil=True, inline="always"))


class _CompilationListener(event.Listener):  # type: ignore[misc]  # numba has no types
    """Pass on that numba compiles; kernels loaded from its cache do not count."""

    def on_start(self, event: object) -> None:
        notify_compilation()

    def on_end(self, event: object) -> None:
        pass


event.register("numba:compile", _CompilationListener())
