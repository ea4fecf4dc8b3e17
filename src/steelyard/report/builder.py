"""Build the report of a study, section by section."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from steelyard.analysis.analysis import Analysis
from steelyard.report.document import Document, Section
from steelyard.report.sections import (
    annotators,
    checks,
    costs,
    exclusions,
    judges,
    marks,
    methods,
    order,
    participation,
    perspectives,
    preregistration,
    reliability,
    repeats,
    scores,
    stopping,
    summary,
    systems,
    task,
    tournaments,
)
from steelyard.study import Study
from steelyard.version import __version__

SECTIONS: tuple[tuple[str, Callable[[Analysis], Section]], ...] = (
    ("the summary", summary.section),
    ("what was asked", task.section),
    ("preregistration", preregistration.section),
    ("who answered", participation.section),
    ("systems", systems.section),
    ("scores", scores.section),
    ("marked errors", marks.section),
    ("reliability", reliability.section),
    ("order", order.section),
    ("tournaments", tournaments.section),
    ("disagreement", perspectives.section),
    ("annotators", annotators.section),
    ("models as judges", judges.section),
    ("checks", checks.section),
    ("repeats", repeats.section),
    ("stopping", stopping.section),
    ("exclusions", exclusions.section),
    ("costs", costs.section),
    ("methods", methods.section),
)
"""Every section in order, with the name of its step."""
READING = "the log"
STEPS = (READING, *(name for name, _ in SECTIONS))
"""The steps of building a report, in order."""


def build_report(
    study: Study, *, real_ids: bool = False, on_step: Callable[[str], None] = lambda step: None
) -> Document:
    """Build the report of a study; `on_step` is called before each of `STEPS`.

    Annotators have pseudonyms, the same as in the study's exports, unless `real_ids`.
    """
    on_step(READING)
    analysis = Analysis.of(study, real_ids=real_ids)
    sections: list[Section] = []
    for name, make in SECTIONS:
        on_step(name)
        sections.append(make(analysis))
    return Document(study.config.title, study.config.question, tuple(sections), datetime.now(UTC), __version__)
