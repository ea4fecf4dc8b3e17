"""Look up experiments by name. Each package holds the experiments of one paper and lists them in EXPERIMENTS."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from reproductions.base import Experiment
from steelyard.errors import ConfigError, did_you_mean

ALL = "all"


@cache
def experiments() -> dict[str, type[Experiment]]:
    """Return every experiment by name, grouped by paper."""
    packages = [module.name for module in iter_modules([str(Path(__file__).parent)]) if module.ispkg]
    by_name: dict[str, type[Experiment]] = {}
    for package in packages:
        classes: tuple[type[Experiment], ...] = import_module(f"reproductions.{package}").EXPERIMENTS
        by_name |= {cls.name: cls for cls in classes}
    return by_name


def names() -> tuple[str, ...]:
    """List the experiments' names."""
    return tuple(experiments())


def find(name: str) -> type[Experiment]:
    """Return the experiment of that name."""
    if name in experiments():
        return experiments()[name]
    # The part after the dot is enough where it is unambiguous.
    matches = [full for full in names() if full.endswith(f".{name}")]
    if len(matches) == 1:
        return experiments()[matches[0]]
    raise ConfigError(f"there is no experiment called '{name}'.", did_you_mean(name, names()))


def select(name: str) -> tuple[type[Experiment], ...]:
    """Return the experiments that a name selects: one, all of a paper's package, or all."""
    if name == ALL:
        return tuple(experiments().values())
    in_package = tuple(cls for full, cls in experiments().items() if full.startswith(f"{name}."))
    return in_package or (find(name),)
