"""Numbers from names: the same on every machine, in every engine and for every order of the rows.

All arithmetic is on whole numbers below 2⁶², modulo the prime 2³¹ − 1, so that SQL can do the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

PRIME = 2**31 - 1


def hashed(names: Iterable[str], seed: int) -> NDArray[np.int64]:
    """Return a number from 1 to PRIME − 1 for each name: 32 bits of md5("seed:name")."""
    digests = b"".join(hashlib.md5(f"{seed}:{name}".encode(), usedforsecurity=False).digest()[:4] for name in names)
    return np.frombuffer(digests, ">u4").astype(np.int64) % (PRIME - 1) + 1


def multiplier_and_shift(number: int, seed: int, what: str = "trial") -> tuple[int, int]:
    """Return what sets one trial or replicate apart from another when names are scrambled."""
    first, second = hashed((f"{what} {number}", f"shift {number}"), seed)
    return int(first), int(second)


def scrambled(key: NDArray[np.int64], multiplier: int, shift: int) -> NDArray[np.int64]:
    """Return (multiplier · key + shift)⁵ modulo PRIME, a permutation of the residues."""
    x = (key * multiplier + shift) % PRIME
    square = x * x % PRIME
    scrambled: NDArray[np.int64] = square * square % PRIME * x % PRIME
    return scrambled
