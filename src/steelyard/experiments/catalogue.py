"""Experiments by name. Each package beside this module holds those of one paper, and lists them as EXPERIMENTS."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from steelyard.errors import ConfigError, did_you_mean
from steelyard.experiments.base import Experiment

ALL = "all"


@cache
def experiments() -> dict[str, type[Experiment]]:
    """Return every experiment by its name, paper by paper."""
    packages = [module.name for module in iter_modules([str(Path(__file__).parent)]) if module.ispkg]
    found: dict[str, type[Experiment]] = {}
    for package in packages:
        listed: tuple[type[Experiment], ...] = import_module(f"steelyard.experiments.{package}").EXPERIMENTS
        found |= {cls.name: cls for cls in listed}
    return found


def names() -> tuple[str, ...]:
    """List the experiments' names."""
    return tuple(experiments())


def find(name: str) -> type[Experiment]:
    """Return the experiment of that name."""
    if name in experiments():
        return experiments()[name]
    # The part after the dot is enough where it is plain which one is meant.
    ending = [full for full in names() if full.endswith(f".{name}")]
    if len(ending) == 1:
        return experiments()[ending[0]]
    raise ConfigError(f"there is no experiment called '{name}'.", did_you_mean(name, names()))


def chosen(name: str) -> tuple[type[Experiment], ...]:
    """Return the experiments that a name stands for: one, those of a paper's package, or all."""
    if name == ALL:
        return tuple(experiments().values())
    of_package = tuple(cls for full, cls in experiments().items() if full.startswith(f"{name}."))
    return of_package or (find(name),)
