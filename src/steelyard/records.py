"""The basic records of a study: Item, Task, Judgment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

Purpose: TypeAlias = Literal["judgment", "overlap", "check", "repeat"]
"""Why a task was assigned: for the design, because everybody gets it, or to learn about the annotator."""

AnnotatorKind: TypeAlias = Literal["person", "model"]
"""Who annotates: a person, or a model (a language model, a metric, a function)."""

ABOUT_ANNOTATORS: frozenset[Purpose] = frozenset({"check", "repeat"})
"""Purposes of tasks that are there to learn about annotators, not about items."""

Answer: TypeAlias = "Mapping[str, object] | list[list[str]]"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to be judged.

    `group` is a group that is also scored, such as an MT system. `context` is shown beside the item, such as a source
    sentence. `reference` is a known good version, and `gold` a known answer. `metadata` has the other columns of the
    items file; annotators see those that `[page] fields` lists.
    """

    id: str
    text: str
    group: str | None = None
    context: str | None = None
    reference: str | None = None
    media: str | None = None
    tags: tuple[str, ...] = ()
    gold: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Task:
    """What one annotator sees on one screen: items, in the order shown, under one protocol.

    `judgment_id` identifies the answer, so that sending it twice creates one judgment. `lease_end` is the time until
    which the task is reserved for this annotator.
    """

    judgment_id: str
    annotator: str
    stage: str
    protocol: str
    items: tuple[Item, ...]
    lease_end: datetime

    @property
    def item_ids(self) -> tuple[str, ...]:
        """The ids of the items, in the order shown."""
        return tuple(item.id for item in self.items)


@dataclass(frozen=True, slots=True)
class Effort:
    """How an answer was given, as measured by the page. Times are active seconds, without pauses.

    `first_action` is the time until the annotator first touched the answer, `items` the time spent on each item of a
    page with several items, and `changes` the number of changes before the answer was sent. `played` is the fraction
    of each recording that was played, if the study requires it. `untrusted` is the number of events triggered by a
    script instead of a person, and `pastes` how often text was pasted into a comment; neither contains any content.
    """

    first_action: float | None = None
    items: Mapping[str, float] = field(default_factory=dict, hash=False)
    changes: int = 0
    played: Mapping[str, float] = field(default_factory=dict, hash=False)
    untrusted: int = 0
    pastes: int = 0


@dataclass(frozen=True, slots=True)
class Judgment:
    """One annotator's answer to one task.

    A judgment is `late` if it arrived after its lease had expired; it counts nevertheless. It is `set_aside` if its
    annotator is excluded; it is then kept but does not count. Judgments by models (`annotator_kind`) have `in_scores`
    only in studies that count them. `purpose` is the reason for the task: `judgment` (chosen by the design), `overlap`
    (given to all annotators), `check` (with a known answer) or `repeat` (given to the same annotator again). Checks and
    repeats measure the annotator and do not count in the scores.
    """

    judgment_id: str
    annotator: str
    stage: str
    protocol: str
    items: tuple[str, ...]
    answer: Answer
    at: datetime
    seconds: float | None = None
    late: bool = False
    imported: bool = False
    revised: bool = False
    set_aside: bool = False
    purpose: Purpose = "judgment"
    right: bool | None = None
    """Whether the answer to a check agrees with its known answer."""
    about: str = ""
    """Key of the check, or id of the judgment that was repeated."""
    seq: int = 0
    """Number of the event that recorded the first answer."""
    annotator_kind: AnnotatorKind = "person"
    in_scores: bool = True
    """False for models, unless the study counts their judgments like those of people."""
    version: str = ""
    """Version of a model's prompt and settings."""
    cost: float | None = None
    """What a model's answer cost, in the currency of [judges]."""
    comment: str = ""
    """What the annotator wrote about the task."""
    effort: Effort | None = None
    """How the first answer was given, if a page measured it."""

    @property
    def counts(self) -> bool:
        """Whether it counts in the scores."""
        return self.in_scores and not self.set_aside and self.purpose not in ABOUT_ANNOTATORS
