"""Invitations by name: a table of invitees with quotas, and reminders for those who have not finished."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from steelyard.errors import DataError, Problem, SteelyardError, did_you_mean
from steelyard.formats import read_table
from steelyard.recruitment.estimates import timed_answers
from steelyard.simulate.task_time import task_seconds
from steelyard.study import Study
from steelyard.study.leases import annotator_name

_COLUMNS = ("name", "tasks", "email")


@dataclass(frozen=True, slots=True)
class Invitee:
    """An annotator to invite. `tasks` is their own quota, if any; `email` is only printed, never stored."""

    name: str
    tasks: int | None = None
    email: str = ""


@dataclass(frozen=True, slots=True)
class RemainingWork:
    """An invited annotator who has not finished: tasks answered, their limit, and the minutes that remain."""

    name: str
    answered: int
    limit: int | None
    minutes: float | None


def read_invitees(path: Path) -> list[Invitee]:
    """Read a table of invitees with the column `name`, and optionally `tasks` and `email`."""
    frame = read_table(path)
    problems = [
        Problem(f"unknown column '{column}'.", did_you_mean(column, _COLUMNS), file=path.name)
        for column in frame.columns
        if column not in _COLUMNS
    ]
    if "name" not in frame.columns:
        problems.append(
            Problem("there is no column 'name'.", "Add the column name, with one annotator per row.", file=path.name)
        )
    if problems:
        raise DataError(problems)
    invitees: dict[str, Invitee] = {}
    for line, row in enumerate(frame.iter_rows(named=True), start=2):
        try:
            invitee = _invitee(row)
        except SteelyardError as error:
            problems.append(Problem(error.problems[0].what, error.problems[0].remedy, file=path.name, line=line))
            continue
        if invitee.name in invitees:
            problems.append(Problem(f"'{invitee.name}' appears twice.", "Keep one.", file=path.name, line=line))
        invitees[invitee.name] = invitee
    if problems:
        raise DataError(problems)
    return list(invitees.values())


def _invitee(row: dict[str, object]) -> Invitee:
    tasks = str(row.get("tasks") or "").strip()
    if tasks and not (tasks.isdecimal() and int(tasks) > 0):
        raise DataError(
            f"'{tasks}' is not a number of tasks.", "Give a whole number of 1 or more, or leave the cell empty."
        )
    return Invitee(
        annotator_name(str(row["name"] or "")), int(tasks) if tasks else None, str(row.get("email") or "").strip()
    )


def unfinished_work(study: Study, invited: Iterable[str]) -> list[RemainingWork]:
    """Return the remaining work of invited annotators who have not finished, without excluded and departed ones.

    If the study sets no limit of tasks, these are the annotators who have not begun.
    """
    seconds = _seconds_per_task(study)
    departed = set(study.recruitment.departed)
    remaining = []
    for name in dict.fromkeys(invited):
        progress = study.annotators.progress(name)
        if progress.excluded is not None or progress.qualified is False or name in departed:
            continue
        if progress.answered >= (1 if progress.limit is None else progress.limit):
            continue
        tasks = None if progress.limit is None else progress.limit - progress.answered
        minutes = None if tasks is None else tasks * seconds.get(name, seconds[""]) / 60
        remaining.append(RemainingWork(name, progress.answered, progress.limit, minutes))
    return remaining


def _seconds_per_task(study: Study) -> dict[str, float]:
    """Median seconds per task of each annotator, and under '' the value for annotators without answers."""
    timed = timed_answers(study).group_by("annotator").agg(pl.col("seconds").median())
    own = dict(timed.iter_rows())
    default = task_seconds(study.config.stages[0].protocol)
    return {**own, "": float(sum(own.values()) / len(own)) if own else default}


def reminder(study: Study, work: RemainingWork, link: str) -> str:
    """Return the text of a reminder, to be pasted into a message."""
    if work.answered == 0:
        so_far = f'you were invited to answer questions in "{study.config.title}" and have not started yet.'
    else:
        so_far = (
            f'you have answered {work.answered} of your {work.limit} questions in "{study.config.title}". Thank you!'
        )
    minutes = max(1, round(work.minutes or 0))
    about = "a minute is" if minutes == 1 else f"{minutes} minutes are"
    time = "" if work.minutes is None else f" About {about} left."
    contact = study.config.annotators.contact
    help_text = f" If you have a question or a problem, write to {contact}." if contact else ""
    return (
        f"Dear {work.name},\n\n{so_far}{time}\nContinue here, on any device:\n\n{link}\n\n"
        f"This is your personal link; please do not share it.{help_text}\n"
    )
