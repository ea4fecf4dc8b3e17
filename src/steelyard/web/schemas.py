"""Request and response schemas of the API, from which the OpenAPI description is generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from html import escape
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from steelyard.protocols import ErrorSpans, Protocol
from steelyard.records import Item
from steelyard.study.config import Stage
from steelyard.study.config.tables import Page
from steelyard.study.display import ItemPart, item_parts, part_beside
from steelyard.web.content import MediaFolder, Rendered, block, direction_of, render
from steelyard.web.documents import Documents
from steelyard.web.studies import ServedStudy

MAX_TASKS = 50


class _RequestBody(BaseModel):
    """Base of request bodies; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewSession(_RequestBody):
    """A sign-in, with a name, with the token of a personal link, or with the query of a link."""

    name: Annotated[str | None, Field(description="a name, in studies that are open to everybody")] = None
    invite: Annotated[str | None, Field(description="the token of a personal link")] = None
    arrival: Annotated[
        str | None, Field(max_length=4000, description="the query of a personal link or of a panel's link")
    ] = None
    embedded: Annotated[
        bool, Field(description="whether the page is in a frame of another site; then the answer holds the session")
    ] = False


NeededStep: TypeAlias = Literal["name", "consent", "questionnaire", "training", "qualification"]
"""What an annotator must do before the first task."""


class Empty(_RequestBody):
    """An empty object."""

    model_config = ConfigDict(extra="forbid", title="Empty")


class TaskRequest(_RequestBody):
    """The number of tasks to lease."""

    count: Annotated[int, Field(ge=1, le=MAX_TASKS)] = 1


class EffortIn(_RequestBody):
    """How an answer was given, as measured by the page."""

    first_action: Annotated[
        float | None, Field(ge=0, allow_inf_nan=False, description="active seconds before the answer was first touched")
    ] = None
    items: Annotated[
        dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]],
        Field(max_length=1000, description="active seconds spent on each item of a page with several"),
    ] = {}
    changes: Annotated[int, Field(ge=0, le=1_000_000, description="number of changes before the answer was sent")] = 0
    played: Annotated[
        dict[str, Annotated[float, Field(ge=0, le=1)]],
        Field(max_length=1000, description="fraction of each item's recording that was played (page.must_play)"),
    ] = {}
    untrusted: Annotated[int, Field(ge=0, le=1_000_000, description="events in the answer that a script made")] = 0
    pastes: Annotated[int, Field(ge=0, le=1_000_000, description="how often text was pasted into the comment")] = 0


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


class QuestionnaireAnswers(_RequestBody):
    """Answers to the questionnaire by the name of the question; null for “Prefer not to say”."""

    answers: dict[str, str | float | None]


class TrainingAnswer(_RequestBody):
    """An answer to a training or test question."""

    number: Annotated[int, Field(ge=1)]
    answer: Any


class MediaOut(BaseModel):
    """An image, sound, video or PDF."""

    kind: Literal["image", "audio", "video", "pdf"]
    url: str


class NeighbourOut(BaseModel):
    """A text of the same document, before or after the one to be judged."""

    text: str
    dir: Literal["ltr", "rtl", "auto"]
    context: str | None = None


class ItemOut(BaseModel):
    """One item: its text, and the same as sanitised HTML."""

    id: str
    text: Annotated[str, Field(description="empty where the study does not show it")]
    html: Annotated[str, Field(description="everything shown in the place of the item, apart from its media")]
    dir: Literal["ltr", "rtl", "auto"]
    fields: Annotated[
        dict[str, str], Field(description="the columns that the study shows besides or instead of the text")
    ] = {}
    context: str | None = None
    context_html: str | None = None
    reference: str | None = None
    reference_html: str | None = None
    media: MediaOut | None = None
    media_missing: Annotated[bool, Field(description="whether the item has media that cannot be shown")] = False
    fields_html: Annotated[str | None, Field(description="the columns besides the text, for error_spans")] = None
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
    reading: Annotated[bool, Field(description="whether items are for reading at length, with the answers below them")]
    sync_audio: Annotated[bool, Field(description="whether the recordings of a task share one player")]
    must_play: Annotated[bool, Field(description="whether audio and video must be played before an answer")]
    direction: Annotated[Literal["ltr", "rtl"], Field(description="direction of scales, from the study's question")]


class EntryQuestionOut(BaseModel):
    """A question of the questionnaire."""

    name: str
    question: str
    type: Literal["choice", "number", "text"]
    choices: tuple[str, ...]
    optional: bool
    prefer_not_to_say: bool
    minimum: float | None
    maximum: float | None
    max_length: int


class SessionOut(BaseModel):
    """The session, and everything that the page needs to start."""

    annotator: Annotated[str | None, Field(description="the annotator's name")]
    key: Annotated[str | None, Field(description="distinguishes annotators of the same name in the browser's storage")]
    csrf: Annotated[
        str | None, Field(description="to be sent as X-CSRF-Token with every request that changes something")
    ]
    study: StudyOut
    needs: list[NeededStep]
    consent_html: str | None
    questionnaire: Annotated[list[EntryQuestionOut], Field(description="questions that are still to be answered")]
    instructions_html: str | None
    page: PageOut
    progress: ProgressOut
    resume_url: Annotated[
        str | None,
        Field(description="personal link; relative to the server unless it knows its public address"),
    ]
    language: str
    session: Annotated[
        str | None, Field(description="for embedded pages: to be sent as X-Session-Token with every request")
    ] = None


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
    """The error, and how to fix it."""

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
    display = TaskDisplay(config.question_of(stage), config.page, served.media, documents)
    return task_shown(display, judgment_id, stage.name, protocol, items, lease_end)


class TaskDisplay(NamedTuple):
    """How the tasks of a study are displayed: their question, the columns shown, and where media come from.

    `documents` has the neighbouring texts of an item, where the study shows them.
    """

    question: str
    page: Page
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
            context_html=None if context is None else _html_beside(display, items[0], "context"),
            reference=reference,
            reference_html=None if reference is None else _html_beside(display, items[0], "reference"),
        ),
        settings=settings_out(protocol),
    )


def _item_out(display: TaskDisplay, item: Item, own_context: bool, own_reference: bool) -> ItemOut:
    parts = item_parts(item, display.page)
    rendered = _rendered(display, parts)
    texts = {part.column: part.text for part in parts}
    media = display.media.media(item.media) if item.media else None
    context = item.context if own_context else None
    reference = item.reference if own_reference else None
    return ItemOut(
        id=item.id,
        text=texts.pop("text", ""),
        html=rendered.html,
        dir=rendered.direction,
        fields=texts,
        context=context,
        context_html=_html_beside(display, item, "context") if context else None,
        reference=reference,
        reference_html=_html_beside(display, item, "reference") if reference else None,
        media=None if media is None else MediaOut(kind=media.kind, url=media.url),
        media_missing=bool(item.media) and media is None,
    )


def _rendered(display: TaskDisplay, parts: list[ItemPart]) -> Rendered:
    """Return the parts of an item as HTML: the text alone as it is, others each under its heading."""
    rendered = [render(part.text, part.format, display.media.url, part.language) for part in parts]
    if len(parts) == 1 and not parts[0].label:
        return rendered[0]
    sections = (
        f'<div class="field">{_heading(part.label)}<div class="field-text" dir="{one.direction}">{one.html}</div></div>'
        for part, one in zip(parts, rendered, strict=True)
    )
    return Rendered("".join(sections), "auto")


def _heading(label: str) -> str:
    return f'<p class="field-label" dir="auto">{escape(label)}</p>' if label else ""


def _marking_out(display: TaskDisplay, item: Item, protocol: Protocol) -> dict[str, Any]:
    """Return what is shown for error marking only: suggested marks, and the texts around this one."""
    if not isinstance(protocol, ErrorSpans):
        return {}
    out: dict[str, Any] = {"suggestions": protocol.suggested(item)}
    # The text itself is drawn by the page, with its marks.
    others = [part for part in item_parts(item, display.page) if part.column != "text"]
    out["fields_html"] = _rendered(display, others).html if others else None
    if display.documents is not None:
        before, after = display.documents.around(item, protocol.neighbours)
        out["before"], out["after"] = (
            [NeighbourOut(text=one.text, dir=direction_of(one.text), context=one.context) for one in side]
            for side in (before, after)
        )
    return out


def _html_beside(display: TaskDisplay, item: Item, name: str) -> str | None:
    """Return the context or reference of an item as HTML."""
    part = part_beside(item, name, display.page)
    if part is None:
        return None
    return block(render(part.text, part.format, display.media.url, part.language))


def _common(values: list[str | None]) -> str | None:
    return values[0] if values and len(set(values)) == 1 else None
