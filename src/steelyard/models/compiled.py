"""One door to numba, so that types survive it and every kernel is compiled alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile a kernel on first use; the machine code is cached on disk."""
    return cast("F", numba.njit(function, cache=True, nogil=True))
