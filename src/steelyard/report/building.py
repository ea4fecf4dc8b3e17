"""From a study to its report."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from steelyard.analysis.analysis import Analysis
from steelyard.report.document import Document, Section
from steelyard.report.sections import SECTIONS
from steelyard.study import Study
from steelyard.version import __version__

READING = "the log"
STEPS = (READING, *(name for name, _ in SECTIONS))
"""What is worked out, in order."""


def build_report(study: Study, *, real_ids: bool = False, told: Callable[[str], None] = lambda step: None) -> Document:
    """Work out a study's report; `told` is called before each of `STEPS`.

    Annotators go by pseudonyms, the same as in the study's exports, unless `real_ids`.
    """
    told(READING)
    analysis = Analysis.of(study, real_ids=real_ids)
    sections: list[Section] = []
    for name, make in SECTIONS:
        told(name)
        sections.append(make(analysis))
    return Document(study.config.title, study.config.question, tuple(sections), datetime.now(UTC), __version__)
