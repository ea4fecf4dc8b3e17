"""Poisson(1) weights of units in SQL, equal to those of `models.inference.resampling.poisson_weights`."""

from __future__ import annotations

import polars as pl

from steelyard.engines.log import Log
from steelyard.models.inference.hashing import PRIME, multiplier_and_shift
from steelyard.models.inference.resampling import HASHED_UNITS, poisson_thresholds

_DIGITS = "0123456789abcdef"


def create_weights(log: Log, cells: str, replicates: range, seed: int) -> None:
    """Create the view of weights (unit, replicate, weight) for the units of some cells."""
    engine, p = log.engine, log.prefix
    units = f"{cells}_units"
    engine.view(units, log.sql("units", cells=cells))
    count = int(log.query("count", what="*", view=units)["n"][0])
    pairs = [multiplier_and_shift(replicate, seed, "replicate") for replicate in replicates]
    frame = {
        "replicate": pl.Series(list(replicates), dtype=pl.Int64),
        "multiplier": pl.Series([multiplier for multiplier, _ in pairs], dtype=pl.Int64),
        "shift": pl.Series([shift for _, shift in pairs], dtype=pl.Int64),
    }
    engine.put(f"{p}replicates", pl.DataFrame(frame))
    if count <= HASHED_UNITS:
        engine.view(f"{p}weights", log.sql("weights_of_few_units", units=units, seed=seed, cases=_digest_cases()))
        return
    engine.view(f"{units}_hashes", log.sql("unit_hashes", units=units, seed=seed, digits=hexadecimal("digest")))
    engine.view(f"{p}weights", log.sql("weights_of_many_units", keys=f"{units}_hashes", cases=_number_cases()))


def _digest_cases() -> str:
    limits = [f"{limit:08x}" for limit in poisson_thresholds(2**32)]
    cases = [f"WHEN digest < '{limit}' THEN {weight}" for weight, limit in enumerate(limits)]
    return "\n  ".join([*cases, f"ELSE {len(limits)}"])


def _number_cases() -> str:
    limits = poisson_thresholds(PRIME).tolist()
    cases = [f"WHEN random_key < {limit} THEN {weight}" for weight, limit in enumerate(limits)]
    return "\n  ".join([*cases, f"ELSE {len(limits)}"])


def hexadecimal(column: str) -> str:
    """Return SQL that reads eight hexadecimal digits as an integer; no function does so in all engines."""
    return " + ".join(
        f"CAST({16 ** (7 - place)} AS BIGINT) * (INSTR('{_DIGITS}', SUBSTR({column}, {place + 1}, 1)) - 1)"
        for place in range(8)
    )
