"""The sections of a report, one file each: they turn a study's analysis into tables, figures and prose."""

from __future__ import annotations

from collections.abc import Callable

from steelyard.analysis.analysis import Analysis
from steelyard.report.document import Section
from steelyard.report.sections import (
    annotators,
    asked,
    checks,
    costs,
    exclusions,
    methods,
    order,
    people,
    reliability,
    repeats,
    scores,
    stopping,
    summary,
)

SECTIONS: tuple[tuple[str, Callable[[Analysis], Section]], ...] = (
    ("the summary", summary.section),
    ("what was asked", asked.section),
    ("who answered", people.section),
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
"""Every section in its order, with what it is called while it is made."""
