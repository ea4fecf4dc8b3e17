"""The options that a plan compares: a protocol with a design, at any budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steelyard import registry
from steelyard.designs import Design
from steelyard.designs.budgets import BUDGET_NAMES, BUDGETED, budget_settings
from steelyard.errors import ConfigError, Problem, did_you_mean
from steelyard.protocols import Protocol
from steelyard.simulate.task_time import task_seconds
from steelyard.study.config import StudyConfig, parse_config

DEFAULT_OPTIONS: tuple[tuple[str, str], ...] = (
    ("direct", "per_item"),
    ("likert", "per_item"),
    ("pairwise", "random_tuples"),
    ("pairwise", "adaptive"),
    ("best_worst", "balanced_tuples"),
    ("best_worst", "random_tuples"),
    ("scored_ranking", "random_tuples"),
    ("scored_ranking", "match_quality"),
    ("ranking", "random_tuples"),
)
"""The options compared by default."""
SYSTEM_OPTIONS: tuple[tuple[str, str], ...] = (
    ("direct", "per_item"),
    ("pairwise", "all_pairs"),
    ("pairwise", "random_tuples"),
    ("best_worst", "balanced_tuples"),
    ("scored_ranking", "random_tuples"),
    ("ranking", "random_tuples"),
)
"""The options compared by default where systems are compared source by source."""


@dataclass(frozen=True, slots=True)
class PlanOption:
    """A protocol with a design."""

    protocol: str
    design: str
    settings: tuple[tuple[str, Any], ...] = ()
    """Settings of the protocol that differ from the defaults."""
    model: str = ""
    """Model of the scores; by default that of new studies."""
    model_settings: tuple[tuple[str, Any], ...] = ()
    design_settings: tuple[tuple[str, Any], ...] = ()
    """Settings of model and design that differ from the defaults, the number of judgments excepted."""

    @classmethod
    def of_study(cls, config: StudyConfig) -> PlanOption:
        """Return the protocol, design and model of a study."""
        if len(config.stages) > 1:
            raise ConfigError("a study of several stages cannot be planned.", "Use steelyard simulate DIR.")
        source = config.source or {}
        stage, table = config.stages[0], source.get("stage")
        part = table[0] if isinstance(table, list) and table else source

        def own(name: str, *budget: str) -> tuple[tuple[str, Any], ...]:
            settings = part.get(name, {}) if name != "model" else source.get(name, {})
            return tuple((key, value) for key, value in settings.items() if key not in {"name", *budget})

        return cls(
            stage.protocol.name,
            stage.design.name,
            own("protocol"),
            config.model.name,
            own("model"),
            own("design", *BUDGET_NAMES),
        )

    @property
    def model_name(self) -> str:
        """Name of the model."""
        return self.model or self.create_protocol().model_of_new_studies(self.design)

    @property
    def name(self) -> str:
        """Display name."""
        return f"{self.protocol} · {self.design}"

    def create_protocol(self) -> Protocol:
        """Return the protocol."""
        protocol: Protocol = registry.create("protocols", self.protocol, dict(self.settings))
        return protocol

    def config(self, each: int, n_items: int, seed: int) -> StudyConfig:
        """Return a study that shows every item at least `each` times."""
        settings = budget_settings(self.design, each, self.create_protocol().task_size, n_items)
        return parse_config(
            {
                "title": "plan",
                "question": "plan",
                "items": "plan.csv",
                "seed": seed,
                "protocol": {"name": self.protocol, **dict(self.settings)},
                "design": {"name": self.design, **dict(self.design_settings), **settings},
                "model": {"name": self.model_name, **dict(self.model_settings)},
            }
        )

    def problems(self, n_items: int) -> list[Problem]:
        """List the conflicts between protocol, design and number of items."""
        return _create_design(self.design, 2, self.create_protocol(), n_items).problems(self.create_protocol(), n_items)

    @property
    def items_per_judgment(self) -> int:
        """Number of items per task."""
        return self.create_protocol().task_size

    @property
    def seconds(self) -> float:
        """Estimated seconds per task."""
        return task_seconds(self.create_protocol())


def _create_design(name: str, each: int, protocol: Protocol, n_items: int) -> Design:
    design: Design = registry.create("designs", name, budget_settings(name, each, protocol.task_size, n_items))
    return design


def choose_options(
    n_items: int,
    protocols: Sequence[str] = (),
    designs: Sequence[str] = (),
    *,
    default: Sequence[tuple[str, str]] = DEFAULT_OPTIONS,
) -> list[PlanOption]:
    """Return the options to compare: the default ones, or all that fit the named protocols or designs.

    `n_items` is the number of items that can be compared with each other: all of them, or the outputs of one source.
    """
    for name in protocols:
        registry.find("protocols", name)
    for name in designs:
        registry.find("designs", name)
    if "choice" in protocols:
        raise ConfigError(
            "labels have no split-half reliability, so choice cannot be planned for a target.",
            "Simulate the study instead: steelyard simulate DIR.",
        )
    names = [name for name in BUDGETED if name in registry.names("designs")]
    for name in designs:
        if name not in names:
            raise ConfigError(f"the number of judgments of {name} cannot be planned.", did_you_mean(name, names))
    pairs = (
        [pair for pair in default if pair[1] in names]
        if not protocols and not designs
        else [
            (protocol, design)
            for protocol in protocols or dict(default)
            for design in designs or names
            if design in designs or not (design == "all_pairs" and n_items > _FEW_ITEMS)
        ]
    )
    options = [PlanOption(protocol, design, _settings(protocol, n_items)) for protocol, design in pairs]
    problems = [option.problems(n_items) for option in options]
    fitting = [option for option, wrong in zip(options, problems, strict=True) if not wrong]
    if not fitting:
        raise ConfigError(dict.fromkeys(problem for wrong in problems for problem in wrong))
    return fitting


def _settings(protocol: str, n_items: int) -> tuple[tuple[str, Any], ...]:
    """Return the settings with which a protocol shows no more items than can be compared, but at least three."""
    size = getattr(registry.find("protocols", protocol)(), "size", 0)
    return (("size", n_items),) if size > n_items >= 3 else ()


_FEW_ITEMS = 40
"""Up to this many items, all_pairs is among the options."""
