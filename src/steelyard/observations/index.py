"""Ids and their integer codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import DataError, did_you_mean

IntArray: TypeAlias = NDArray[np.int32]
FloatArray: TypeAlias = NDArray[np.float64]

UNKNOWN = -1
"""The code of an annotator, task, best or worst item that is not known."""


class Index:
    """Ids and their codes 0…n-1, both ways."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self.ids: tuple[str, ...] = tuple(ids)

    @cached_property
    def _codes(self) -> dict[str, int]:
        codes = {name: code for code, name in enumerate(self.ids)}
        if len(codes) != len(self.ids):
            duplicate = next(name for code, name in enumerate(self.ids) if codes[name] != code)
            raise DataError(f"id '{duplicate}' appears twice.", "Give each a unique id.")
        return codes

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, code: int) -> str:
        return self.ids[code]

    def __contains__(self, name: object) -> bool:
        return name in self._codes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and self.ids == other.ids

    def __hash__(self) -> int:
        return hash(self.ids)

    def __repr__(self) -> str:
        first = ", ".join(self.ids[:3]) + (", …" if len(self) > 3 else "")
        return f"Index({len(self)}: {first})"

    def code(self, name: str) -> int:
        """Return the code of an id."""
        try:
            return self._codes[name]
        except KeyError:
            candidates = self.ids if len(self.ids) <= 1000 else ()
            raise DataError(f"unknown id '{name}'.", did_you_mean(name, candidates)) from None

    def codes(self, names: Sequence[str | None]) -> IntArray:
        """Return the codes of many ids; None becomes UNKNOWN."""
        lookup = self._codes
        try:
            return np.fromiter(
                (UNKNOWN if name is None else lookup[name] for name in names), np.int32, count=len(names)
            )
        except KeyError as error:
            self.code(error.args[0])
            raise
