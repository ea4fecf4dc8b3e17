"""Errors and warnings: what is wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: what is wrong, where, and what to do about it."""

    what: str
    remedy: str = ""
    file: str | None = None
    line: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        where = " ".join(
            part
            for part in (
                self.file,
                None if self.line is None else f"line {self.line}",
                None if self.field is None else f"({self.field})",
            )
            if part
        )
        text = f"{where}: {self.what}" if where else self.what
        return f"{text} {self.remedy}".rstrip()


class SteelyardError(Exception):
    """Base class of all errors. `problems` lists all problems, so that they can be fixed together."""

    def __init__(
        self,
        what: str | Iterable[Problem],
        remedy: str = "",
        *,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        if isinstance(what, str):
            self.problems: tuple[Problem, ...] = (Problem(what, remedy, file, line, field),)
        else:
            self.problems = tuple(what)
        super().__init__("\n".join(map(str, self.problems)))


class ConfigError(SteelyardError):
    """study.toml, or a setting given in Python or on the command line, is invalid."""


class DataError(SteelyardError):
    """A file or table of items or judgments is invalid."""


class ModelFailedError(SteelyardError):
    """A model or plug-in failed on valid judgments because of a defect in its code. No judgments are lost."""


class NoEvidenceError(DataError):
    """The judgments are valid, but too few or too uniform for this model to estimate anything."""


class AnswerError(SteelyardError):
    """An answer is not valid for its task."""


class TaskError(SteelyardError):
    """The task is not, or no longer, leased to this annotator."""


class LimitError(TaskError):
    """A rate limit is exceeded; the request may be repeated after `seconds`."""

    def __init__(self, what: str, remedy: str = "", *, seconds: float) -> None:
        super().__init__(what, remedy)
        self.seconds = seconds


class StoreError(SteelyardError):
    """The database is not a Steelyard database, is newer than this version, or cannot be reached."""


class StudyChangedError(StoreError):
    """Another process changed the study's configuration; this process must reopen the study."""


class SteelyardWarning(UserWarning):
    """Base class of warnings."""


class ConvergenceWarning(SteelyardWarning):
    """An iterative algorithm stopped before it converged."""


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Suggest the closest known word, or list all of them."""
    close = difflib.get_close_matches(word.lower(), [name.lower() for name in known], n=1, cutoff=0.6)
    if close:
        match = next(name for name in known if name.lower() == close[0])
        return f"Did you mean '{match}'?"
    return f"Known: {', '.join(known)}." if known else ""
