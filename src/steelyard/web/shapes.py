"""The shapes of what the API takes and gives; the OpenAPI description is made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from steelyard.protocols.base import Protocol
from steelyard.records import Item
from steelyard.study.config import Stage
from steelyard.web.content import block, render
from steelyard.web.studies import Served

MOST_TASKS = 50


class _Asked(BaseModel):
    """What is sent to the server; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewSession(_Asked):
    """Who comes in: by a name they choose, or by the token of a personal link."""

    name: Annotated[str | None, Field(description="a name, in studies that anybody may join")] = None
    invite: Annotated[str | None, Field(description="the token of a personal link")] = None


class Nothing_(_Asked):  # noqa: N801 - the name of the schema is what readers see
    """An empty object."""

    model_config = ConfigDict(extra="forbid", title="Empty")


class WantedTasks(_Asked):
    """How many tasks to hold at once."""

    count: Annotated[int, Field(ge=1, le=MOST_TASKS)] = 1


class NewJudgment(_Asked):
    """An answer."""

    judgment_id: Annotated[str, Field(min_length=1, max_length=200)]
    answer: Annotated[Any, Field(description="as the protocol asks: see the reference of protocols")]
    seconds: Annotated[
        float | None, Field(ge=0, allow_inf_nan=False, description="active time it took, idle time left out")
    ] = None


class RevisedAnswer(_Asked):
    """Another answer to the same task."""

    answer: Any


class Reason(_Asked):
    """Why a task is skipped or flagged."""

    reason: Annotated[str, Field(max_length=2000)] = ""


class TrainingAnswer(_Asked):
    """An answer to a practice question."""

    number: Annotated[int, Field(ge=1)]
    answer: Any


class MediaOut(BaseModel):
    """A picture, sound or film."""

    kind: Literal["image", "audio", "video"]
    url: str


class ItemOut(BaseModel):
    """One thing to be judged: its text as it is, and as safe HTML."""

    id: str
    text: str
    html: str
    dir: Literal["ltr", "rtl", "auto"]
    context: str | None = None
    context_html: str | None = None
    reference: str | None = None
    reference_html: str | None = None
    media: MediaOut | None = None
    media_missing: Annotated[bool, Field(description="it has media that cannot be shown")] = False


class SharedOut(BaseModel):
    """What all items of a task share; it is not repeated with each."""

    context: str | None = None
    context_html: str | None = None
    reference: str | None = None
    reference_html: str | None = None


class CriterionOut(BaseModel):
    """One thing asked about each item."""

    name: str
    scale: tuple[float, float] | None = None
    labels: tuple[str, ...] = ()


class TaskOut(BaseModel):
    """What one annotator sees on one screen."""

    judgment_id: str
    stage: str
    protocol: str
    question: str
    lease_end: datetime | None
    items: list[ItemOut]
    shared: SharedOut
    settings: Annotated[
        dict[str, Any], Field(description="the protocol's settings; criteria as a list of name, scale and labels")
    ]


class StandingOut(BaseModel):
    """How far an annotator is."""

    answered: int
    limit: int | None
    minutes_left: Annotated[float | None, Field(description="null while nobody's pace is known")]


class StudyOut(BaseModel):
    """What everybody may know of a study."""

    title: str
    question: str
    state: Literal["open", "paused", "closed"]
    state_reason: str
    contact: str | None
    open: Annotated[bool, Field(description="whether anybody may join by choosing a name")]


class PageOut(BaseModel):
    """How the page shows things."""

    show_value: bool
    sort_live: bool
    prefetch: int
    revise: int


class Welcome(BaseModel):
    """All that a page needs to begin."""

    annotator: Annotated[str | None, Field(description="the name the annotator goes by here")]
    key: Annotated[str | None, Field(description="tells annotators of the same name apart, in what a browser keeps")]
    csrf: Annotated[str | None, Field(description="to be sent as X-CSRF-Token with everything that changes something")]
    study: StudyOut
    needs: list[Literal["name", "consent", "training", "qualification"]]
    consent_html: str | None
    instructions_html: str | None
    page: PageOut
    standing: StandingOut
    resume_url: Annotated[
        str | None,
        Field(description="personal link; relative to the server unless it knows its public address"),
    ]
    language: str


class SignedOut(BaseModel):
    """The session has ended."""

    signed_out: Literal[True] = True


class EndingOut(BaseModel):
    """How somebody who came from a panel goes back to it."""

    kind: Literal["completed", "screened_out", "failed"]
    code: str | None
    url: Annotated[str | None, Field(description="an address from study.toml, or Prolific's")]


class NothingOut(BaseModel):
    """Why there is no (further) task."""

    because: Literal["done", "waiting", "quota", "excluded", "paused", "closed"]
    reason: str
    ending: Annotated[EndingOut | None, Field(description="for those who came by a panel's link")] = None


class TasksOut(BaseModel):
    """The tasks an annotator holds."""

    tasks: list[TaskOut]
    nothing: NothingOut | None
    standing: StandingOut


class FeedbackOut(BaseModel):
    """What a check that speaks says after its answer."""

    right: bool
    expected: str
    feedback_html: str


class SavedOut(BaseModel):
    """An answer is on disk."""

    judgment_id: str
    saved: Literal[True] = True
    standing: StandingOut
    feedback: Annotated[
        FeedbackOut | None, Field(description="after a check, where the study lets annotators know")
    ] = None


class JudgmentOut(BaseModel):
    """A recent answer with its task."""

    task: TaskOut
    answer: Any
    at: datetime
    may_change: bool


class JudgmentsOut(BaseModel):
    """Recent answers, the last one first."""

    judgments: list[JudgmentOut]


class RenewedOut(BaseModel):
    """Until when a task is kept now."""

    judgment_id: str
    lease_end: datetime


class DoneOut(BaseModel):
    """It is in the log."""

    judgment_id: str
    standing: StandingOut


class TrainingOut(BaseModel):
    """The next practice question; none when all are done."""

    question: TaskOut | None
    number: int
    of: int


class GradedOut(BaseModel):
    """Whether a practice answer was right, and what would have been."""

    right: bool
    expected: str
    feedback_html: str
    done: bool


class TestedOut(BaseModel):
    """How the test before the first task goes; what was right is not told."""

    done: bool
    passed: Annotated[bool | None, Field(description="null until the last question is answered")]


class ErrorBody(BaseModel):
    """What is wrong, and what to do."""

    code: str
    what: str
    remedy: str
    field: str | None


class ErrorOut(BaseModel):
    """A refusal."""

    error: ErrorBody


def settings_out(protocol: Protocol) -> dict[str, Any]:
    """A protocol's settings as JSON; criteria become a list, each with the scale and labels that hold for it."""
    found = {field.name: getattr(protocol, field.name) for field in fields(protocol)}  # type: ignore[arg-type]
    criteria = found.get("criteria")
    if isinstance(criteria, Mapping):
        scales = protocol.scales()
        found["criteria"] = [
            CriterionOut(
                name=name,
                scale=scales.get(name),
                labels=getattr(criterion, "labels", ()) or found.get("labels", ()),
            ).model_dump()
            for name, criterion in criteria.items()
        ]
    return found


def task_out(
    served: Served, judgment_id: str, stage: Stage, items: tuple[Item, ...], lease_end: datetime | None
) -> TaskOut:
    """Show a task: its items made safe, and what they share said once."""
    context = _common([item.context for item in items])
    reference = _common([item.reference for item in items])
    return TaskOut(
        judgment_id=judgment_id,
        stage=stage.name,
        protocol=stage.protocol.name,
        question=served.study.config.question,
        lease_end=lease_end,
        items=[_item_out(served, item, context is None, reference is None) for item in items],
        shared=SharedOut(
            context=context,
            context_html=_html(served, context),
            reference=reference,
            reference_html=_html(served, reference),
        ),
        settings=settings_out(stage.protocol),
    )


def _item_out(served: Served, item: Item, own_context: bool, own_reference: bool) -> ItemOut:
    rendered = render(item.text, served.study.config.page.content, served.media.url)
    media = served.media.media(item.media) if item.media else None
    context = item.context if own_context else None
    reference = item.reference if own_reference else None
    return ItemOut(
        id=item.id,
        text=item.text,
        html=rendered.html,
        dir=rendered.direction,
        context=context,
        context_html=_html(served, context),
        reference=reference,
        reference_html=_html(served, reference),
        media=None if media is None else MediaOut(kind=media.kind, url=media.url),
        media_missing=bool(item.media) and media is None,
    )


def _html(served: Served, text: str | None) -> str | None:
    return None if text is None else block(render(text, served.study.config.page.content, served.media.url))


def _common(values: list[str | None]) -> str | None:
    return values[0] if values and len(set(values)) == 1 else None
