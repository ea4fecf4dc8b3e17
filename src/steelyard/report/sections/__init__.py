"""The sections of a report, one file each: they turn a study's analysis into tables, figures and prose."""

from __future__ import annotations

from collections.abc import Callable

from steelyard.analysis.analysis import Analysis
from steelyard.report.document import Section
from steelyard.report.sections import (
    annotators,
    checks,
    costs,
    exclusions,
    methods,
    order,
    participation,
    reliability,
    repeats,
    scores,
    stopping,
    summary,
    task,
)

SECTIONS: tuple[tuple[str, Callable[[Analysis], Section]], ...] = (
    ("the summary", summary.section),
    ("what was asked", task.section),
    ("who answered", participation.section),
    ("scores", scores.section),
    ("reliability", reliability.section),
    ("order", order.section),
    ("annotators", annotators.section),
    ("checks", checks.section),
    ("repeats", repeats.section),
    ("stopping", stopping.section),
    ("exclusions", exclusions.section),
    ("costs", costs.section),
    ("methods", methods.section),
)
"""Every section in order, with the name of its step while the report is built."""
