"""Parse untrusted TOML: every error becomes a ConfigError."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.errors import ConfigError, Problem

MAX_CHARACTERS = 1_000_000
"""A study.toml is a few kilobytes; consent and instructions may be written into it."""
MAX_DEPTH = 32
"""The deepest table that study.toml defines is at depth five."""
MAX_INTEGER = 2**63 - 1
"""The largest integer that the database, polars and numpy can hold."""

_REMEDY = "Correct it at that position."


def parse_toml(text: str, *, file: str | None = None, field: str | None = None) -> dict[str, Any]:
    """Parse TOML; refuse text that is invalid, too long, nested too deeply, or holds numbers we cannot represent.

    `file` and `field` name the source of the text in errors.
    """
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(
            f"it is longer than {MAX_CHARACTERS:,} characters.",
            "Move long texts to separate files.",
            file=file,
            field=field,
        )
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not valid TOML: {error}.", _REMEDY, file=file, field=field) from None
    except RecursionError:
        raise ConfigError("it is nested too deeply.", _REMEDY, file=file, field=field) from None
    except ValueError:
        # Python refuses to convert decimal integers of more than 4,300 digits.
        raise ConfigError(
            "it contains a number with too many digits.", "Write a smaller number.", file=file, field=field
        ) from None
    refuse_extreme_values(data, file=file, field=field)
    return data


def refuse_extreme_values(data: Mapping[str, Any], *, file: str | None = None, field: str | None = None) -> None:
    """Refuse a configuration with numbers beyond what can be stored, or nested more deeply than any real one.

    `field` replaces the path of the value in the error, for text that is not a whole study.toml.
    """
    problems: list[Problem] = []
    # A stack instead of recursion, because the depth is being checked.
    pending: list[tuple[str, int, Any]] = [("", 0, data)]
    while pending:
        path, depth, value = pending.pop()
        place = field or path
        if depth > MAX_DEPTH:
            raise ConfigError("it is nested too deeply.", _REMEDY, file=file, field=place[:100])
        if isinstance(value, Mapping):
            pending += [(f"{path}.{key}" if path else str(key), depth + 1, inner) for key, inner in value.items()]
        elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
            pending += [(path, depth + 1, inner) for inner in value]
        elif isinstance(value, int) and abs(value) > MAX_INTEGER:
            problems.append(Problem("the number is too large.", f"Use at most {MAX_INTEGER}.", file, field=place))
        elif isinstance(value, float) and not math.isfinite(value):
            problems.append(Problem(f"{value} is not a finite number.", "Write a finite number.", file, field=place))
    if problems:
        raise ConfigError(problems)
