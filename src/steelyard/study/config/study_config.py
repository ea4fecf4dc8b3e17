"""A study's configuration, with its protocols, designs and model built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from steelyard.designs.base import Design
from steelyard.errors import Problem
from steelyard.models.fit import Model
from steelyard.protocols.base import Protocol
from steelyard.records import Item
from steelyard.study.config.tables import (
    AnnotatorSettings,
    Answers,
    Embed,
    ItemsSource,
    Judges,
    Link,
    Page,
    Pay,
    Prolific,
    Quality,
    Stop,
)
from steelyard.study.config.toml_lines import line_of

CONFIG_FILE = "study.toml"


@dataclass(frozen=True, slots=True)
class Stage:
    """One protocol with one design."""

    name: str
    protocol: Protocol
    design: Design
    share: float | None = None
    question: str = ""
    """Question of this stage; empty where it is the study's."""


@dataclass(frozen=True, slots=True)
class StudyConfig:
    """The configuration in study.toml, with protocols, designs and model built and defaults filled in."""

    title: str
    question: str
    items: ItemsSource
    stages: tuple[Stage, ...]
    model: Model
    annotators: AnnotatorSettings
    page: Page
    quality: Quality
    stop: Stop | None
    pay: Pay
    link: Link | None = None
    prolific: Prolific | None = None
    judges: Judges = field(default_factory=Judges)
    answers: Answers = field(default_factory=Answers)
    embed: Embed = field(default_factory=Embed)
    seed: int = 0
    database: str | None = None
    name: str | None = None
    source: Mapping[str, Any] | None = None
    lines: Mapping[str, int] | None = None

    @property
    def mixed(self) -> bool:
        """Whether stages run side by side, by share, rather than one after the other."""
        return self.stages[0].share is not None

    def question_of(self, stage: Stage) -> str:
        """Return what annotators are asked in a stage."""
        return stage.question or self.question

    def problems_with(self, items: Sequence[Item]) -> list[Problem]:
        """List the problems of stages whose design or protocol does not work with these items."""
        several = "stage" in (self.source or {})
        problems = []
        for number, stage in enumerate(self.stages):
            prefix = f"stage.{number}." if several else ""
            design, protocol = stage.design, stage.protocol
            of_design = design.problems(protocol, len(items)) or design.item_problems(protocol, items)
            for problem in [*of_design, *protocol.item_problems(items)]:
                path = prefix + (problem.field or "")
                line = line_of(dict(self.lines or {}), path)
                problems.append(replace(problem, field=path, file=CONFIG_FILE, line=line))
        return problems
