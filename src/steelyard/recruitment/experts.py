"""People who are invited by name: a list of them with quotas, and reminders for those who are not done."""

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
class Expert:
    """Somebody to invite. `tasks` is their quota, if it is their own; `email` is only printed, never stored."""

    name: str
    tasks: int | None = None
    email: str = ""


@dataclass(frozen=True, slots=True)
class Left:
    """What somebody has yet to do."""

    name: str
    answered: int
    limit: int | None
    minutes: float | None


def read_experts(path: Path) -> list[Expert]:
    """Read a list of people: a table with the column name, and tasks and email if wanted."""
    frame = read_table(path)
    problems = [
        Problem(f"unknown column '{column}'.", did_you_mean(column, _COLUMNS), file=path.name)
        for column in frame.columns
        if column not in _COLUMNS
    ]
    if "name" not in frame.columns:
        problems.append(Problem("there is no column 'name'.", "Give every person a name.", file=path.name))
    if problems:
        raise DataError(problems)
    people: dict[str, Expert] = {}
    for line, row in enumerate(frame.iter_rows(named=True), start=2):
        try:
            expert = _expert(row)
        except SteelyardError as error:
            problems.append(Problem(error.problems[0].what, error.problems[0].remedy, file=path.name, line=line))
            continue
        if expert.name in people:
            problems.append(Problem(f"'{expert.name}' is there twice.", "Keep one.", file=path.name, line=line))
        people[expert.name] = expert
    if problems:
        raise DataError(problems)
    return list(people.values())


def _expert(row: dict[str, object]) -> Expert:
    given = str(row.get("tasks") or "").strip()
    if given and not (given.isdecimal() and int(given) > 0):
        raise DataError(f"'{given}' is no number of tasks.", "Give a whole number from 1 up, or leave it empty.")
    return Expert(
        annotator_name(str(row["name"] or "")), int(given) if given else None, str(row.get("email") or "").strip()
    )


def not_done(study: Study, invited: Iterable[str]) -> list[Left]:
    """Return who of the invited has yet to do something; who is excluded or gone is left in peace.

    Where nobody's share is limited, those who have not begun.
    """
    pace = _seconds(study)
    gone = set(study.recruitment.departed)
    found = []
    for name in dict.fromkeys(invited):
        standing = study.annotators.progress(name)
        if standing.excluded is not None or standing.qualified is False or name in gone:
            continue
        if standing.answered >= (1 if standing.limit is None else standing.limit):
            continue
        left = None if standing.limit is None else standing.limit - standing.answered
        minutes = None if left is None else left * pace.get(name, pace[""]) / 60
        found.append(Left(name, standing.answered, standing.limit, minutes))
    return found


def _seconds(study: Study) -> dict[str, float]:
    """Seconds a task: everybody's own where they have answered, and under '' what others may expect."""
    timed = timed_answers(study).group_by("annotator").agg(pl.col("seconds").median())
    own = dict(timed.iter_rows())
    usual = task_seconds(study.config.stages[0].protocol)
    return {**own, "": float(sum(own.values()) / len(own)) if own else usual}


def reminder(study: Study, left: Left, link: str) -> str:
    """Write a reminder, to be pasted into a message."""
    if left.answered == 0:
        so_far = f'you were invited to judge in "{study.config.title}", and have not begun yet.'
    else:
        so_far = (
            f'you have answered {left.answered} of your {left.limit} questions in "{study.config.title}". Thank you!'
        )
    minutes = max(1, round(left.minutes or 0))
    about = "a minute is" if minutes == 1 else f"{minutes} minutes are"
    time = "" if left.minutes is None else f" About {about} left."
    contact = study.config.annotators.contact
    asked = f" If something is in the way, write to {contact}." if contact else ""
    return (
        f"Dear {left.name},\n\n{so_far}{time}\nGo on here, on any device:\n\n{link}\n\n"
        f"The link is yours alone; please do not pass it on.{asked}\n"
    )
