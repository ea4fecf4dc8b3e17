"""Estimates of one participant's visit: its duration (from answers, or by protocol while there are few) and pay."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import polars as pl

from steelyard.errors import ConfigError
from steelyard.simulate.task_time import task_seconds
from steelyard.study import Study

ENOUGH_ANSWERS = 20
"""From this many timed answers on, the duration of a task is measured instead of estimated from the protocol."""
WORDS_PER_MINUTE = 200


@dataclass(frozen=True, slots=True)
class VisitEstimate:
    """Duration of one participant's visit. `source` describes where the seconds per task come from."""

    tasks: int
    seconds_per_task: float
    reading_seconds: float
    questions: int
    source: str

    @property
    def minutes(self) -> float:
        """The whole visit: reading, training and test questions, tasks."""
        return (self.reading_seconds + (self.tasks + self.questions) * self.seconds_per_task) / 60


def timed_answers(study: Study) -> pl.DataFrame:
    """Return the answers with a time that were given in this study and count."""
    frame = study.judgments()
    return frame.filter(~pl.col("imported") & ~pl.col("set_aside") & pl.col("seconds").is_not_null())


def estimate_visit(study: Study) -> VisitEstimate:
    """Estimate how long the study takes one participant."""
    tasks = study.config.annotators.max_tasks
    if tasks is None:
        raise ConfigError(
            "the number of tasks per annotator is not set, so the duration is unknown.",
            "Set max_tasks in [annotators].",
            field="annotators.max_tasks",
        )
    timed = timed_answers(study)
    if timed.height >= ENOUGH_ANSWERS:
        # The mean of the annotators' medians: robust against an annotator who left the page open.
        seconds = timed.group_by("annotator").agg(pl.col("seconds").median())["seconds"].mean()
        assert isinstance(seconds, float)  # noqa: S101 - a mean of numbers, for the type checker
        source = f"measured on {timed.height:,} answers"
    else:
        seconds = _by_protocol(study)
        source = "assumed: five seconds per item and four per answer"
    texts = study.annotators.texts()
    words = sum(len((text or "").split()) for text in (texts.consent, texts.instructions, study.config.question))
    annotators = study.annotators
    questions = len(annotators.questionnaire()) + len(annotators.training()) + len(annotators.qualification())
    return VisitEstimate(tasks, seconds, words * 60 / WORDS_PER_MINUTE, questions, source)


def _by_protocol(study: Study) -> float:
    stages = study.config.stages
    shares = [stage.share if stage.share is not None else 1 / len(stages) for stage in stages]
    return sum(share * task_seconds(stage.protocol) for share, stage in zip(shares, stages, strict=True))


def whole_minutes(study: Study) -> int:
    """Return the estimated duration as Prolific requires it: whole minutes, at least one."""
    minutes = study.config.prolific.estimated_minutes if study.config.prolific is not None else None
    return max(1, ceil(minutes if minutes is not None else estimate_visit(study).minutes))


def reward(study: Study) -> int:
    """Return the pay of one participant in minor units: `reward` of [prolific], or computed from [pay]."""
    config = study.config
    if config.prolific is not None and config.prolific.reward is not None:
        return round(config.prolific.reward * 100)
    paid = config.pay.rates.earned(config.annotators.max_tasks or 0, whole_minutes(study) / 60, 1)
    if paid <= 0:
        raise ConfigError(
            "study.toml does not define the pay.",
            "Set reward in [prolific], or per_task, per_visit or per_hour in [pay].",
            field="prolific.reward",
        )
    # Rounded up, so that nobody is paid less than the rates promise.
    return ceil(round(paid * 100, 6))


def money(minor: float, currency: str) -> str:
    """Format an amount given in minor units."""
    text = f"{minor / 100:,.2f}"
    return f"{currency}{text}" if len(currency) == 1 else f"{text} {currency}"
