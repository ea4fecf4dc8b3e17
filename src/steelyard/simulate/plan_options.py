"""The ways of asking that a plan compares: a protocol with a design, at any budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from steelyard import registry
from steelyard.designs import Design
from steelyard.errors import ConfigError, Problem, did_you_mean
from steelyard.protocols import Protocol
from steelyard.records import Item
from steelyard.simulate.task_time import task_seconds
from steelyard.study.config import StudyConfig, parse_config

DEFAULT_OPTIONS: tuple[tuple[str, str], ...] = (
    ("direct", "per_item"),
    ("likert", "per_item"),
    ("pairwise", "random_tuples"),
    ("best_worst", "balanced_tuples"),
    ("best_worst", "random_tuples"),
    ("scored_ranking", "random_tuples"),
    ("scored_ranking", "match_quality"),
    ("ranking", "random_tuples"),
)
"""What is compared when nothing is chosen."""

_TUPLES_PER_ITEM = 2.0

_SETTINGS: dict[str, Callable[[int, int, int], Mapping[str, Any]]] = {
    "per_item": lambda each, size, items: {"judgments": each},
    "random_tuples": lambda each, size, items: {"judgments": each},
    "balanced_tuples": lambda each, size, items: {
        "factor": _TUPLES_PER_ITEM,
        "annotators": ceil(each / (_TUPLES_PER_ITEM * size)),
    },
    "match_quality": lambda each, size, items: {"rounds": ceil(each * items / size / max(items // size, 1))},
    "adaptive": lambda each, size, items: {"judgments": each},
    "all_pairs": lambda each, size, items: {"annotators": ceil(each / max(items - 1, 1))},
}
"""Each design's settings, so that every item is shown at least so often: times, items a task, items."""


@dataclass(frozen=True, slots=True)
class PlanOption:
    """A protocol and a design that asks with it."""

    protocol: str
    design: str
    settings: tuple[tuple[str, Any], ...] = ()
    """The protocol's settings, where they are not the usual ones."""

    @property
    def name(self) -> str:
        """What to call it."""
        return f"{self.protocol} · {self.design}"

    def create_protocol(self) -> Protocol:
        """Return the protocol."""
        protocol: Protocol = registry.create("protocols", self.protocol, dict(self.settings))
        return protocol

    def config(self, each: int, n_items: int, seed: int) -> StudyConfig:
        """Return a study that shows every item at least `each` times."""
        settings = _SETTINGS[self.design](each, self.create_protocol().task_size, n_items)
        return parse_config(
            {
                "title": "plan",
                "question": "plan",
                "items": "plan.csv",
                "seed": seed,
                "protocol": {"name": self.protocol, **dict(self.settings)},
                "design": {"name": self.design, **settings},
            }
        )

    def problems(self, n_items: int) -> list[Problem]:
        """Name what does not go together for so many items."""
        return _create_design(self.design, 2, self.create_protocol(), n_items).problems(self.create_protocol(), n_items)

    @property
    def items_per_judgment(self) -> int:
        """How many items one task shows."""
        return self.create_protocol().task_size

    @property
    def seconds(self) -> float:
        """How long one task takes, by the usual pace."""
        return task_seconds(self.create_protocol())


def _create_design(name: str, each: int, protocol: Protocol, n_items: int) -> Design:
    design: Design = registry.create("designs", name, _SETTINGS[name](each, protocol.task_size, n_items))
    return design


def choose_options(
    n_items: int,
    protocols: Sequence[str] = (),
    designs: Sequence[str] = (),
) -> list[PlanOption]:
    """Return the options to compare: the usual ones, or all that fit the protocols or designs named."""
    for name in protocols:
        registry.find("protocols", name)
    for name in designs:
        registry.find("designs", name)
    if "choice" in protocols:
        raise ConfigError(
            "labels have no split-half reliability, so that choice cannot be planned for one.",
            "Dry-run the study instead: steelyard simulate DIR.",
        )
    names = [name for name in _SETTINGS if name in registry.names("designs")]
    for name in designs:
        if name not in names:
            raise ConfigError(f"{name} has no budget to plan.", did_you_mean(name, names))
    pairs = (
        [pair for pair in DEFAULT_OPTIONS if pair[1] in names]
        if not protocols and not designs
        else [
            (protocol, design)
            for protocol in protocols or dict(DEFAULT_OPTIONS)
            for design in designs or names
            if design in designs or not (design in _WHEN_NAMED or (design == "all_pairs" and n_items > _FEW_ITEMS))
        ]
    )
    options = [PlanOption(protocol, design) for protocol, design in pairs]
    problems = [option.problems(n_items) for option in options]
    fitting = [option for option, wrong in zip(options, problems, strict=True) if not wrong]
    if not fitting:
        raise ConfigError(dict.fromkeys(problem for wrong in problems for problem in wrong))
    return fitting


_WHEN_NAMED = {"adaptive"}
"""Designs that think about every task, so that simulating many studies takes minutes: planned for when named."""

_FEW_ITEMS = 40
"""Up to so many items, comparing all pairs is worth a look."""


def numbered_items(count: int) -> list[Item]:
    """Return so many items with nothing but a name."""
    width = len(str(count))
    return [Item(f"item-{number:0{width}d}", "") for number in range(1, count + 1)]
