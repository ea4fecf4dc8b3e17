"""The registry of protocols, designs and models, which are found through Python entry points.

The built-in ones are declared in our own pyproject.toml under `steelyard.protocols`, `steelyard.designs`
and `steelyard.models`; a plug-in package declares its own under the same groups and needs nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeAlias

from steelyard.errors import ConfigError, Problem, did_you_mean
from steelyard.renamed import renamed_remedy

Kind: TypeAlias = Literal["protocols", "designs", "models"]


@cache
def _entry_points(kind: Kind) -> dict[str, EntryPoint]:
    entry_points_by_name: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"steelyard.{kind}"):
        # An editable install can list one distribution twice; only a different target is a clash.
        if entry.name in entry_points_by_name and entry_points_by_name[entry.name].value != entry.value:
            raise ConfigError(
                f"two packages both provide the {kind[:-1]} '{entry.name}': "
                f"{entry_points_by_name[entry.name].value} and {entry.value}.",
                "Uninstall one of them.",
            )
        entry_points_by_name[entry.name] = entry
    return entry_points_by_name


def names(kind: Kind) -> tuple[str, ...]:
    """List what is registered, in alphabetical order."""
    return tuple(sorted(_entry_points(kind)))


def find(kind: Kind, name: str) -> type[Any]:
    """Return the class registered under `name`."""
    entry = _entry_points(kind).get(name)
    if entry is None:
        raise ConfigError(
            f"there is no {kind[:-1]} called '{name}'.",
            renamed_remedy(f"{kind}.{name}") or _which(name, names(kind)),
            field=f"{kind[:-1]}.name",
        )
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"the {kind[:-1]} '{name}' cannot be loaded from {entry.value}: {error}.",
            "Reinstall the package that provides it.",
        ) from error
    if not isinstance(loaded, type):
        raise ConfigError(f"the {kind[:-1]} '{name}' ({entry.value}) is not a class.")
    return loaded


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _which(name: str, known: tuple[str, ...]) -> str:
    """Suggest the nearest name, and list all names."""
    guess = did_you_mean(name, known)
    return f"{guess} Known: {', '.join(known)}." if guess.startswith("Did") else guess


@cache
def _validator(kind: Kind, name: str) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(find(kind, name))


def create(kind: Kind, name: str, settings: Mapping[str, object] | None = None) -> Any:
    """Build the protocol, design or model called `name`, refusing unknown or ill-typed settings."""
    from pydantic import ValidationError

    cls = find(kind, name)
    values = dict(settings or {})
    names = [f.name for f in fields(cls)]
    problems = [
        Problem(
            f"{name} has no setting '{key}'.",
            renamed_remedy(f"{kind[:-1]}.{name}.{key}")
            or renamed_remedy(f"{kind[:-1]}.{key}")
            or did_you_mean(key, names),
            field=f"{kind[:-1]}.{key}",
        )
        for key in values
        if key not in names
    ]
    problems += [
        Problem(f"{values[f.name]!r} is not a number.", "Write it without quotes.", field=f"{kind[:-1]}.{f.name}")
        for f in fields(cls)
        if f.name in values and _is_number(f.default) and not _is_number(values[f.name]) and values[f.name] is not None
    ]
    try:
        built = _validator(kind, name).validate_python({k: v for k, v in values.items() if k in names})
    except ValidationError as error:
        named = {problem.field for problem in problems}
        messages = [
            Problem(
                f"{details['msg']} (given: {details['input']!r}).",
                field=".".join([kind[:-1], *map(str, details["loc"])]),
            )
            for details in error.errors()
        ]
        problems += [problem for problem in messages if problem.field not in named]
    else:
        if kind == "protocols":
            problems += [replace(p, field=f"protocol.{p.field}") for p in built.problems()]
    if problems:
        raise ConfigError(problems)
    return built
