"""How long a study takes one person, and what they are paid: from answers where there are enough, else by protocol."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import polars as pl

from steelyard.errors import ConfigError
from steelyard.simulate.task_time import task_seconds
from steelyard.study import Study

ENOUGH_ANSWERS = 20
"""So many timed answers say more about a task's length than the protocol does."""
WORDS_A_MINUTE = 200


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long one person takes. `source` says where the seconds a task come from."""

    tasks: int
    seconds_a_task: float
    reading_seconds: float
    questions: int
    source: str

    @property
    def minutes(self) -> float:
        """The whole visit: reading, practice and test, tasks."""
        return (self.reading_seconds + (self.tasks + self.questions) * self.seconds_a_task) / 60


def timed_answers(study: Study) -> pl.DataFrame:
    """Return the answers that were given here, timed, and count: annotator, seconds."""
    frame = study.judgments()
    return frame.filter(~pl.col("imported") & ~pl.col("set_aside") & pl.col("seconds").is_not_null())


def estimate(study: Study) -> Estimate:
    """Say how long the study takes one person."""
    tasks = study.config.annotators.max_tasks
    if tasks is None:
        raise ConfigError(
            "the study does not say how many tasks one person gets, so that its length is open.",
            "Set max_tasks in [annotators].",
            field="annotators.max_tasks",
        )
    timed = timed_answers(study)
    if timed.height >= ENOUGH_ANSWERS:
        # The mean of the annotators' medians: somebody who left the page open does not make everybody slow.
        each = timed.group_by("annotator").agg(pl.col("seconds").median())["seconds"].mean()
        assert isinstance(each, float)  # noqa: S101 - a mean of numbers, for the type checker
        source = f"measured on {timed.height:,} answers"
    else:
        each = _by_protocol(study)
        source = "by the protocol: five seconds an item, four a mark"
    texts = study.annotators.texts()
    words = sum(len((text or "").split()) for text in (texts.consent, texts.instructions, study.config.question))
    questions = len(study.annotators.training()) + len(study.annotators.qualification())
    return Estimate(tasks, each, words * 60 / WORDS_A_MINUTE, questions, source)


def _by_protocol(study: Study) -> float:
    stages = study.config.stages
    shares = [stage.share if stage.share is not None else 1 / len(stages) for stage in stages]
    return sum(share * task_seconds(stage.protocol) for share, stage in zip(shares, stages, strict=True))


def whole_minutes(study: Study) -> int:
    """Return the estimated time as Prolific wants it: in minutes, from one up."""
    given = study.config.prolific.estimated_minutes if study.config.prolific is not None else None
    return max(1, ceil(given if given is not None else estimate(study).minutes))


def reward(study: Study) -> int:
    """Return what one person is paid, in minor units: as [prolific] says, or as [pay] adds up to."""
    config = study.config
    if config.prolific is not None and config.prolific.reward is not None:
        return round(config.prolific.reward * 100)
    paid = config.pay.rates.earned(config.annotators.max_tasks or 0, whole_minutes(study) / 60, 1)
    if paid <= 0:
        raise ConfigError(
            "the study does not say what people are paid.",
            "Set reward in [prolific], or per_task, per_visit or per_hour in [pay].",
            field="prolific.reward",
        )
    # Rounded up: nobody gets less than they were told.
    return ceil(round(paid * 100, 6))


def money(minor: float, currency: str) -> str:
    """Write an amount in minor units for people."""
    text = f"{minor / 100:,.2f}"
    return f"{currency}{text}" if len(currency) == 1 else f"{text} {currency}"
