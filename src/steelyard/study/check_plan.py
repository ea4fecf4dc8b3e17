"""When checks can exclude annotators: after how many tasks, and settings that prevent it."""

from __future__ import annotations

from typing import NamedTuple

from steelyard.study.config.study_config import StudyConfig


class CheckPlan(NamedTuple):
    """What the settings of the checks mean for an annotator."""

    sentences: tuple[str, ...]
    warnings: tuple[str, ...]


def describe_checks(config: StudyConfig, questions: int) -> CheckPlan:
    """Describe the checks of a study with this many check questions; without checks, the plan is empty."""
    checks = config.quality.checks
    if checks is None:
        return CheckPlan((), ())
    needed = checks.min_checks
    if questions < needed:
        return CheckPlan(
            (),
            (
                f"checks cannot exclude any annotator: an exclusion needs {needed} answered checks, and the number of "
                f"checks is {questions}. Add checks, or set min_checks = {max(questions, 1)} in [quality.checks].",
            ),
        )
    within = checks.early_tasks
    checks_needed = "1 check" if needed == 1 else f"{needed} checks"
    sentence = (
        f"Each annotator gets {checks_needed} within the first {within} tasks; after that, about {checks.rate:.0%} "
        "of the tasks are checks. Checks can exclude an annotator from then on."
    )
    limit = config.annotators.max_tasks
    if limit is not None and limit < within:
        warning = (
            f"annotators answer at most {limit} tasks, but get the {needed} checks that an exclusion needs within "
            f"{within}: most careless annotators will finish before they can be excluded. "
            f"Set min_checks_within = {limit} in [quality.checks]."
        )
        return CheckPlan((sentence,), (warning,))
    return CheckPlan((sentence,), ())
