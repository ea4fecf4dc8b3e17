"""The nouns of a study: Item, Task, Judgment."""

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

    `group` is what items belong to when scores are wanted for that too (an MT system), `context` what is
    shown beside it (a source sentence), `reference` a known good version, `gold` a known answer. `metadata` has the
    other columns of the items file; annotators see those that [page] fields names.
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

    `judgment_id` names the answer to come, so that sending it twice is one judgment; `lease_end` is until
    when the task is kept for this annotator.
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
    """How an answer came about, as the page measured it. Times are active seconds, without pauses.

    `first_action` is the time before the answer was first touched, `items` the time spent on each item of a page with
    several, `changes` how often something that was answered already was changed before the answer was sent. `played` is
    the fraction of each recording that was played, where the study asks for it.
    `untrusted` counts events in the answer that a script made and not a person, `pastes` how often text was pasted into
    a comment; neither says anything about content.
    """

    first_action: float | None = None
    items: Mapping[str, float] = field(default_factory=dict, hash=False)
    changes: int = 0
    played: Mapping[str, float] = field(default_factory=dict, hash=False)
    untrusted: int = 0
    pastes: int = 0


@dataclass(frozen=True, slots=True)
class Judgment:
    """One annotator's answer to one task. `late` ones came after the lease's end; they count all the same.

    `set_aside` ones are those of an excluded annotator: kept, but not counted. Those of models (`annotator_kind`) have
    `in_scores` only in studies that count them. `purpose` is why it was asked:
    `judgment` for the design; `overlap` because everybody gets it; `check` (the answer is known) and `repeat` (the
    same again to the same person) say something about the annotator and do not count in the scores.
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
    """False for models, unless the study counts their judgments as people's."""
    version: str = ""
    """Version of a model's prompt and settings."""
    cost: float | None = None
    """What a model's answer cost, in the currency of [judges]."""
    comment: str = ""
    """What the annotator wrote about the task."""
    effort: Effort | None = None
    """How the first answer came about, where a page measured it."""

    @property
    def counts(self) -> bool:
        """Whether it goes into the scores."""
        return self.in_scores and not self.set_aside and self.purpose not in ABOUT_ANNOTATORS
