"""Request and response schemas of the API, from which the OpenAPI description is generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from steelyard.protocols import ErrorSpans, Protocol
from steelyard.records import Item
from steelyard.study.config import Stage
from steelyard.web.content import MediaFolder, block, direction_of, render
from steelyard.web.documents import Documents
from steelyard.web.studies import ServedStudy

MAX_TASKS = 50


class _RequestBody(BaseModel):
    """Base of request bodies; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewSession(_RequestBody):
    """A sign-in, with a name or with the token of a personal link."""

    name: Annotated[str | None, Field(description="a name, in studies that are open to everybody")] = None
    invite: Annotated[str | None, Field(description="the token of a personal link")] = None


class Empty(_RequestBody):
    """An empty object."""

    model_config = ConfigDict(extra="forbid", title="Empty")


class TaskRequest(_RequestBody):
    """The number of tasks to lease."""

    count: Annotated[int, Field(ge=1, le=MAX_TASKS)] = 1


class EffortIn(_RequestBody):
    """How an answer came about, measured by the page."""

    first_action: Annotated[
        float | None, Field(ge=0, allow_inf_nan=False, description="active seconds before the answer was first touched")
    ] = None
    items: Annotated[
        dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]],
        Field(max_length=1000, description="active seconds spent on each item of a page with several"),
    ] = {}
    changes: Annotated[
        int, Field(ge=0, le=1_000_000, description="how often something answered was changed before sending")
    ] = 0


class NewJudgment(_RequestBody):
    """An answer."""

    judgment_id: Annotated[str, Field(min_length=1, max_length=200)]
    answer: Annotated[Any, Field(description="in the format of the protocol: see the reference of protocols")]
    seconds: Annotated[
        float | None, Field(ge=0, allow_inf_nan=False, description="active time in seconds, without idle time")
    ] = None
    comment: Annotated[str, Field(max_length=2000, description="what the annotator wrote about the task")] = ""
    effort: EffortIn | None = None


class RevisedAnswer(_RequestBody):
    """A new answer to the same task."""

    answer: Any
    comment: Annotated[str | None, Field(max_length=2000, description="null leaves the comment as it was")] = None


class Reason(_RequestBody):
    """The reason for skipping or flagging a task."""

    reason: Annotated[str, Field(max_length=2000)] = ""


class TrainingAnswer(_RequestBody):
    """An answer to a training or test question."""

    number: Annotated[int, Field(ge=1)]
    answer: Any


class MediaOut(BaseModel):
    """An image, sound or video."""

    kind: Literal["image", "audio", "video"]
    url: str


class NeighbourOut(BaseModel):
    """A text of the same document, before or after the one to be judged."""

    text: str
    dir: Literal["ltr", "rtl", "auto"]
    context: str | None = None


class ItemOut(BaseModel):
    """One item: its text, and the same as sanitised HTML."""

    id: str
    text: str
    html: str
    dir: Literal["ltr", "rtl", "auto"]
    context: str | None = None
    context_html: str | None = None
    reference: str | None = None
    reference_html: str | None = None
    media: MediaOut | None = None
    media_missing: Annotated[bool, Field(description="whether the item has media that cannot be shown")] = False
    suggestions: Annotated[
        list[dict[str, Any]], Field(description="suggested marks, in the form of an answer's spans (error_spans)")
    ] = []
    before: Annotated[list[NeighbourOut], Field(description="texts before this one in its document")] = []
    after: Annotated[list[NeighbourOut], Field(description="texts after this one in its document")] = []


class SharedOut(BaseModel):
    """Context and reference that all items of a task share."""

    context: str | None = None
    context_html: str | None = None
    reference: str | None = None
    reference_html: str | None = None


class CriterionOut(BaseModel):
    """One criterion by which each item is judged."""

    name: str
    scale: tuple[float, float] | None = None
    labels: tuple[str, ...] = ()


class TaskOut(BaseModel):
    """A task: what one annotator sees on one screen."""

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


class ProgressOut(BaseModel):
    """Progress of an annotator."""

    answered: int
    limit: int | None
    minutes_left: Annotated[float | None, Field(description="null while there are no times to estimate it from")]


class StudyOut(BaseModel):
    """Public information about a study."""

    title: str
    question: str
    state: Literal["open", "paused", "closed"]
    state_reason: str
    contact: str | None
    open: Annotated[bool, Field(description="whether everybody may join by choosing a name")]


class PageOut(BaseModel):
    """Settings of the annotators' page."""

    show_value: bool
    sort_live: bool
    prefetch: int
    revisable_answers: int
    context_label: str | None
    reference_label: str | None
    cannot_judge: Annotated[bool, Field(description="whether annotators may answer that they cannot judge")]
    reasons: Annotated[tuple[str, ...], Field(description="reasons for “cannot judge” to choose from")]
    comments: Annotated[bool, Field(description="whether annotators may write a comment on each task")]
    direction: Annotated[Literal["ltr", "rtl"], Field(description="direction of scales, from the study's question")]


class SessionOut(BaseModel):
    """The session, and everything that the page needs to start."""

    annotator: Annotated[str | None, Field(description="the annotator's name")]
    key: Annotated[str | None, Field(description="distinguishes annotators of the same name in the browser's storage")]
    csrf: Annotated[
        str | None, Field(description="to be sent as X-CSRF-Token with every request that changes something")
    ]
    study: StudyOut
    needs: list[Literal["name", "consent", "training", "qualification"]]
    consent_html: str | None
    instructions_html: str | None
    page: PageOut
    progress: ProgressOut
    resume_url: Annotated[
        str | None,
        Field(description="personal link; relative to the server unless it knows its public address"),
    ]
    language: str


class SignedOut(BaseModel):
    """The session has ended."""

    signed_out: Literal[True] = True


class EndingOut(BaseModel):
    """How a participant returns to the panel that they came from."""

    kind: Literal["completed", "screened_out", "failed"]
    code: str | None
    url: Annotated[str | None, Field(description="an address from study.toml, or Prolific's")]


class NoTaskOut(BaseModel):
    """Why there is no further task."""

    reason_code: Literal["done", "waiting", "quota", "excluded", "paused", "closed"]
    reason: str
    ending: Annotated[EndingOut | None, Field(description="for participants who came by a panel's link")] = None


class TasksOut(BaseModel):
    """The tasks that an annotator has leased; `no_task` explains why there are fewer than requested."""

    tasks: list[TaskOut]
    no_task: NoTaskOut | None
    progress: ProgressOut


class FeedbackOut(BaseModel):
    """Feedback on the answer to a check."""

    right: bool
    expected: str
    feedback_html: str


class SavedOut(BaseModel):
    """The answer is saved on disk."""

    judgment_id: str
    saved: Literal[True] = True
    progress: ProgressOut
    feedback: Annotated[FeedbackOut | None, Field(description="after a check, if the study shows feedback")] = None


class JudgmentOut(BaseModel):
    """A recent answer with its task."""

    task: TaskOut
    answer: Any
    comment: str
    at: datetime
    may_change: bool


class JudgmentsOut(BaseModel):
    """Recent answers, latest first."""

    judgments: list[JudgmentOut]


class LeaseOut(BaseModel):
    """The end of a renewed lease."""

    judgment_id: str
    lease_end: datetime


class TaskNoteOut(BaseModel):
    """The skip or flag is in the log."""

    judgment_id: str
    progress: ProgressOut


class TrainingOut(BaseModel):
    """The next training or test question; null when all are answered."""

    question: TaskOut | None
    number: int
    of: int


class TrainingResultOut(BaseModel):
    """Whether a training answer was right, and the expected answer."""

    right: bool
    expected: str
    feedback_html: str
    done: bool


class TestResultOut(BaseModel):
    """Progress of the qualification test; right answers are not disclosed."""

    done: bool
    passed: Annotated[bool | None, Field(description="null before the last question is answered")]


class ErrorBody(BaseModel):
    """What is wrong, and what to do about it."""

    code: str
    what: str
    remedy: str
    field: str | None


class ErrorOut(BaseModel):
    """An error response."""

    error: ErrorBody


def settings_out(protocol: Protocol) -> dict[str, Any]:
    """Return a protocol's settings as JSON; criteria become a list, each with its scale and labels."""
    settings = {field.name: getattr(protocol, field.name) for field in fields(protocol)}  # type: ignore[arg-type]
    criteria = settings.get("criteria")
    if isinstance(criteria, Mapping):
        scales = protocol.scales()
        settings["criteria"] = [
            CriterionOut(
                name=name,
                scale=scales.get(name),
                labels=getattr(criterion, "labels", ()) or settings.get("labels", ()),
            ).model_dump()
            for name, criterion in criteria.items()
        ]
    return settings


def task_out(
    served: ServedStudy, judgment_id: str, stage: Stage, items: tuple[Item, ...], lease_end: datetime | None
) -> TaskOut:
    """Return a task for display: sanitised items, and their common context and reference once."""
    config = served.study.config
    protocol = stage.protocol
    documents = None
    if isinstance(protocol, ErrorSpans) and protocol.document:
        documents = served.documents(protocol.document)
    display = TaskDisplay(config.question_of(stage), config.page.content, served.media, documents)
    return task_shown(display, judgment_id, stage.name, protocol, items, lease_end)


class TaskDisplay(NamedTuple):
    """How the tasks of a study are displayed: their question, the format of texts, and where media come from.

    `documents` has the neighbouring texts of an item, where the study shows them.
    """

    question: str
    content: Literal["text", "markdown", "html"]
    media: MediaFolder
    documents: Documents | None = None


def task_shown(
    display: TaskDisplay,
    judgment_id: str,
    stage: str,
    protocol: Protocol,
    items: tuple[Item, ...],
    lease_end: datetime | None = None,
) -> TaskOut:
    """Return a task as the annotator's page displays it."""
    context = _common([item.context for item in items])
    reference = _common([item.reference for item in items])
    return TaskOut(
        judgment_id=judgment_id,
        stage=stage,
        protocol=protocol.name,
        question=display.question,
        lease_end=lease_end,
        items=[
            _item_out(display, item, context is None, reference is None).model_copy(
                update=_marking_out(display, item, protocol)
            )
            for item in items
        ],
        shared=SharedOut(
            context=context,
            context_html=_html(display, context),
            reference=reference,
            reference_html=_html(display, reference),
        ),
        settings=settings_out(protocol),
    )


def _item_out(display: TaskDisplay, item: Item, own_context: bool, own_reference: bool) -> ItemOut:
    rendered = render(item.text, display.content, display.media.url)
    media = display.media.media(item.media) if item.media else None
    context = item.context if own_context else None
    reference = item.reference if own_reference else None
    return ItemOut(
        id=item.id,
        text=item.text,
        html=rendered.html,
        dir=rendered.direction,
        context=context,
        context_html=_html(display, context),
        reference=reference,
        reference_html=_html(display, reference),
        media=None if media is None else MediaOut(kind=media.kind, url=media.url),
        media_missing=bool(item.media) and media is None,
    )


def _marking_out(display: TaskDisplay, item: Item, protocol: Protocol) -> dict[str, Any]:
    """Return what is shown for error marking only: suggested marks, and the texts around this one."""
    if not isinstance(protocol, ErrorSpans):
        return {}
    out: dict[str, Any] = {"suggestions": protocol.suggested(item)}
    if display.documents is not None:
        before, after = display.documents.around(item, protocol.neighbours)
        out["before"], out["after"] = (
            [NeighbourOut(text=one.text, dir=direction_of(one.text), context=one.context) for one in side]
            for side in (before, after)
        )
    return out


def _html(display: TaskDisplay, text: str | None) -> str | None:
    return None if text is None else block(render(text, display.content, display.media.url))


def _common(values: list[str | None]) -> str | None:
    return values[0] if values and len(set(values)) == 1 else None
