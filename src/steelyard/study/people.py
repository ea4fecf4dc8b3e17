"""What a study knows about the people who judge, and what it gives them to read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from steelyard.errors import ConfigError
from steelyard.records import Judgment, Task
from steelyard.study.config_tables import People

_TEXT_FILES = (".md", ".txt")


@dataclass(frozen=True, slots=True)
class Standing:
    """How far one annotator is; `excluded` is the reason, if they are.

    `qualified` is None for those who have yet to take the test.
    """

    answered: int
    limit: int | None
    consented: bool
    trained: bool
    qualified: bool | None
    excluded: str | None


@dataclass(frozen=True, slots=True)
class Answered:
    """A task with the answer it got."""

    task: Task
    judgment: Judgment


@dataclass(frozen=True, slots=True)
class Feedback:
    """What an annotator is told after a loud check."""

    right: bool
    expected: str
    text: str


@dataclass(frozen=True, slots=True)
class Texts:
    """What annotators read before they begin, as Markdown."""

    consent: str | None
    instructions: str | None


def read_texts(folder: Path, people: People) -> Texts:
    """Return the texts; a value that ends in .md or .txt is the name of a file in the study's folder."""
    return Texts(_text(folder, people.consent, "consent"), _text(folder, people.instructions, "instructions"))


def names_a_file(text: str) -> bool:
    """Whether a text of study.toml is the name of a file that holds the text."""
    return "\n" not in text and text.endswith(_TEXT_FILES)


def _text(folder: Path, given: str | None, key: str) -> str | None:
    if given is None or not names_a_file(given):
        return given
    try:
        return (folder / given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(
            f"{folder / given} cannot be read: {why}.",
            "Put the text there, or write it into study.toml.",
            field=f"people.{key}",
        ) from None


def text_digest(text: str) -> str:
    """Return a digest by which a wording is known again."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
