"""The API of the pages on which studies are created and edited: drafts, their files, and finishing them."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, StreamingResponse

from steelyard.errors import ConfigError
from steelyard.formats.item_columns import Role
from steelyard.formats.uploads import MAX_UPLOAD_BYTES
from steelyard.records import Item
from steelyard.study import StudyConfig
from steelyard.web.catalogue import catalogues
from steelyard.web.content import media_policy, render_page_text
from steelyard.web.draft_folders import (
    DraftFolder,
    Drafts,
    QuestionsKind,
    StagePlan,
    Step,
    plain_name,
)
from steelyard.web.draft_state import DraftStateOut, MediaOut, media_of, state_of
from steelyard.web.drafts import (
    ProblemOut,
    SavedStudyOut,
    checked,
    with_password_text,
    with_password_values,
)
from steelyard.web.errors import Refusal, refusing
from steelyard.web.identity import (
    Manager,
    Owner,
    StudyDep,
    check_manager,
    require_manager,
    require_owner,
)
from steelyard.web.schemas import ErrorOut
from steelyard.web.settings_forms import FormsOut, forms
from steelyard.web.study_plan import (
    MAX_SIMULATED_TASKS,
    PlanOut,
    ReliabilityOut,
    expected_reliability,
    plan_of,
)
from steelyard.web.target_plan import TargetRequest, stream_target_plan

REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"model": ErrorOut, "description": "Not the manager."},
    403: {"model": ErrorOut, "description": "The page is out of date."},
    404: {"model": ErrorOut, "description": "There is no such draft, study or file."},
    409: {"model": ErrorOut, "description": "It cannot be done now."},
    412: {"model": ErrorOut, "description": "The draft was changed by somebody else."},
    422: {"model": ErrorOut, "description": "The request or the uploaded file is not valid."},
}
router = APIRouter(tags=["manage"], responses=REFUSALS)
draft_router = APIRouter()
"""Operations on one draft; see the end of this module for their two addresses."""

_STUDY = "/api/v1/studies/{study}/manage"
_PREVIEW_ROWS = 8
_PLANNED_ANNOTATORS = 50
"""Annotators that a plan for a target assumes, as `steelyard plan` does."""
_PREVIEW_CELL = 300
_MOST_ITEM_NAMES = 500
_MOST_MISSING = 20
_MOST_INVITATIONS = 1000
_draft_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


class _RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class DraftChange(_RequestBody):
    """Changes to a draft; omitted fields stay unchanged."""

    values: dict[str, Any] | None = None
    text: Annotated[str | None, Field(max_length=1_000_000)] = None
    step: Step | None = None
    plan: list[StagePlan] | None = None
    automatic_model: bool | None = None
    annotators: Annotated[int | None, Field(ge=1, le=100_000)] = None
    seconds: Annotated[float | None, Field(gt=0, le=36_000, strict=False)] = None


class ColumnsChange(_RequestBody):
    """How the uploaded file is read; omitted fields stay unchanged."""

    has_header: bool | None = None
    separator: Annotated[str | None, Field(max_length=1)] = None
    encoding: Annotated[str | None, Field(max_length=20)] = None
    sheet: Annotated[str | None, Field(max_length=200)] = None
    roles: dict[str, Role] | None = None
    drop_repeats: bool | None = None


class QuestionRows(_RequestBody):
    """Questions with known answers, one object per row."""

    rows: Annotated[list[dict[str, str]], Field(max_length=5000)]


class TextIn(_RequestBody):
    """A Markdown text."""

    text: Annotated[str, Field(max_length=200_000)]


class HtmlOut(BaseModel):
    """The same as sanitised HTML."""

    html: str


def drafts_of(request: Request) -> Drafts:
    """Return the drafts of a server."""
    return Drafts(request.app.state.studies)


# Drafts


@router.post("/api/v1/manage/drafts", status_code=201)
def create_draft(request: Request, _: Owner) -> DraftStateOut:
    """Create a draft of a new study."""
    return state_of(drafts_of(request).create())


@router.post(_STUDY + "/drafts", status_code=201)
def draft_changes(served: StudyDep, request: Request, _: Manager) -> DraftStateOut:
    """Create a draft of changes to a study; unfinished changes are continued."""
    return state_of(drafts_of(request).create(served))


def find_draft(request: Request, draft: str) -> DraftFolder:
    """Find a draft: the owner's of new studies, or that of the study in the path for whoever may change it."""
    study = request.path_params.get("study")
    if study is None:
        require_owner(request)
    else:
        require_manager(request)
    folder = drafts_of(request).get(draft)
    if folder.about.study != study:
        raise Refusal(404, "no_such_draft", "There is no such draft.", "See the list of studies.")
    return folder


DraftDep = Annotated[DraftFolder, Depends(find_draft)]


Version = Annotated[
    str | None,
    Header(alias="If-Match", description="`updated` of the draft as it was read; refused if it has changed since"),
]


def _is_version(version: str, updated: float) -> bool:
    try:
        return float(version.strip('"')) == updated
    except ValueError:
        return False


@contextmanager
def changing(request: Request, folder: DraftFolder, version: str | None) -> Iterator[DraftFolder]:
    """Give a draft to be changed, one change at a time, if it is the version that its editor has seen.

    Two people may edit one draft, or one person in two windows: nobody overwrites what they have not seen.
    """
    with _draft_locks[folder.id]:
        latest = find_draft(request, folder.id)
        if version is not None and not _is_version(version, latest.about.updated):
            raise Refusal(
                412,
                "draft_changed",
                "This draft was changed in another window or by another person since you opened it.",
                "Reload the page to continue with that version; your last change here is not saved.",
            )
        yield latest


@draft_router.get("")
def read_draft(folder: DraftDep) -> DraftStateOut:
    """Return a draft with its problems, preview and plan."""
    return state_of(folder)


@draft_router.put("")
def change_draft(request: Request, found: DraftDep, change: DraftChange, version: Version = None) -> DraftStateOut:
    """Save changes of a draft; problems are reported, not refused."""
    with changing(request, found, version) as folder:
        about = folder.about
        for name in ("step", "plan", "automatic_model"):
            if getattr(change, name) is not None:
                setattr(about, name, getattr(change, name))
        for name in ("annotators", "seconds"):
            if name in change.model_fields_set:
                setattr(about, name, getattr(change, name))
        if change.text is not None:
            text = change.text
            refusing(lambda: folder.save_text(with_password_text(text, folder.served)))
        else:
            values = change.values if change.values is not None else _values(folder)
            refusing(lambda: folder.save_values(with_password_values(values, folder.served)))
    return state_of(folder)


def _values(folder: DraftFolder) -> dict[str, Any]:
    try:
        return folder.values()
    except ConfigError:
        raise Refusal(409, "text_invalid", "study.toml is not valid TOML.", "Correct it in its tab first.") from None


@draft_router.delete("", status_code=204)
def delete_draft(folder: DraftDep) -> Response:
    """Delete a draft with its files; a study that it would have changed stays as it is."""
    folder.delete()
    return Response(status_code=204)


@draft_router.post("/finish", status_code=201)
def finish_draft(found: DraftDep, request: Request, response: Response, version: Version = None) -> SavedStudyOut:
    """Create the study, or save the changes; with problems, nothing is created or changed."""
    with changing(request, found, version) as folder:
        return _finish(folder, request, response)


def _finish(folder: DraftFolder, request: Request, response: Response) -> SavedStudyOut:
    state = state_of(folder)
    if state.problems:
        response.status_code = 422
        return SavedStudyOut(
            problems=[ProblemOut(**problem.model_dump(exclude={"step"})) for problem in state.problems]
        )
    identity = check_manager(request.scope)
    result = drafts_of(request).finish(folder, member=identity.name)
    if result.problems:
        response.status_code = 422
    return result


@draft_router.post("/judgments", status_code=201)
def import_upload(found: DraftDep, request: Request, response: Response, version: Version = None) -> SavedStudyOut:
    """Create a closed study from the judgments in the uploaded file; with problems, nothing is created."""
    with changing(request, found, version) as folder:
        result = refusing(lambda: drafts_of(request).create_from_judgments(folder))
    if result.problems:
        response.status_code = 422
    return result


def _complete(folder: DraftFolder) -> tuple[StudyConfig, list[Item], PlanOut]:
    """Return the study of a draft with its plan; refuse a draft that is not complete."""
    config, items, problems = checked(folder.path) if not folder.file_problems() else (None, [], [])
    if config is None or problems:
        raise Refusal(409, "draft_incomplete", "The study is not complete yet.", "Complete the steps before first.")
    plan = plan_of(config, items, folder.plans(folder.values()), folder.about.annotators, folder.about.seconds)
    return config, items, plan


@draft_router.post("/target", response_class=StreamingResponse)
def plan_target(folder: DraftDep, body: TargetRequest) -> StreamingResponse:
    """Simulate how many judgments a target needs, as lines of JSON: the progress, then the result or the error."""
    config, items, plan = _complete(folder)
    # Without a number from the researcher, enough annotators that items can be judged several times by different ones.
    annotators = folder.about.annotators or max(plan.annotators, _PLANNED_ANNOTATORS)
    lines = stream_target_plan(config, items, body, annotators, plan.seconds)
    return StreamingResponse(lines, media_type="application/x-ndjson", headers={"Cache-Control": "no-store"})


@draft_router.post("/reliability")
def estimate_reliability(folder: DraftDep) -> list[ReliabilityOut]:
    """Simulate the study with typical annotators: how reliable its scores would be."""
    config, items, plan = _complete(folder)
    if plan.tasks > MAX_SIMULATED_TASKS:
        raise Refusal(
            409,
            "plan_too_large",
            f"Plans of more than {MAX_SIMULATED_TASKS:,} tasks are not simulated in the browser.",
            "Create the study, then use steelyard simulate.",
        )
    return refusing(lambda: expected_reliability(config, items, plan.annotators))


# Files


@draft_router.put("/items")
async def upload_items(
    found: DraftDep,
    request: Request,
    name: Annotated[str, Query(min_length=1, max_length=300)],
    version: Version = None,
) -> DraftStateOut:
    """Upload the file of items as the body of the request; its ending gives the format."""
    data = await _body(request, plain_name(name))

    def save() -> DraftStateOut:
        with changing(request, found, version) as folder:
            refusing(lambda: folder.set_upload(data, name))
        return state_of(folder)

    return await run_in_threadpool(save)


@draft_router.put("/items/columns")
def change_columns(request: Request, found: DraftDep, change: ColumnsChange, version: Version = None) -> DraftStateOut:
    """Change how the uploaded file is read."""
    changes = change.model_dump(exclude_unset=True)
    with changing(request, found, version) as folder:
        refusing(lambda: folder.set_columns(changes))
    return state_of(folder)


@draft_router.put("/questions/{kind}")
def change_questions(
    request: Request, found: DraftDep, kind: QuestionsKind, questions: QuestionRows, version: Version = None
) -> DraftStateOut:
    """Save questions with known answers that were typed in the browser."""
    with changing(request, found, version) as folder:
        refusing(lambda: folder.set_questions(kind, questions.rows))
    return state_of(folder)


@draft_router.put("/questions/{kind}/file")
async def upload_questions(
    found: DraftDep,
    request: Request,
    kind: QuestionsKind,
    name: Annotated[str, Query(min_length=1, max_length=300)],
    version: Version = None,
) -> DraftStateOut:
    """Upload a file of questions with known answers as the body of the request."""
    data = await _body(request, plain_name(name))

    def save() -> DraftStateOut:
        with changing(request, found, version) as folder:
            refusing(lambda: folder.set_questions_file(kind, data, name))
        return state_of(folder)

    return await run_in_threadpool(save)


async def _body(request: Request, name: str) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_UPLOAD_BYTES:
            raise Refusal(
                413,
                "file_too_large",
                f"{name} is larger than {MAX_UPLOAD_BYTES / 1e6:,.0f} MB.",
                "Nothing was changed. Split the file, or create the study on the command line.",
            )
        parts.append(part)
    return b"".join(parts)


@draft_router.put("/media")
async def upload_media(
    folder: DraftDep, request: Request, name: Annotated[str, Query(min_length=1, max_length=300)]
) -> MediaOut:
    """Upload a picture, sound or video as the body of the request."""
    target = await run_in_threadpool(refusing, lambda: folder.media_target(name))
    part = folder.path / f".media-{secrets.token_hex(8)}.part"
    try:
        with part.open("wb") as file:
            async for chunk in request.stream():
                await asyncio.to_thread(file.write, chunk)
        await run_in_threadpool(refusing, lambda: folder.add_media(part, target))
    finally:
        part.unlink(missing_ok=True)
    return await run_in_threadpool(lambda: media_of(folder, folder.items()))


@draft_router.get("/media/{name:path}", response_class=FileResponse)
def show_media(folder: DraftDep, name: str) -> FileResponse:
    """Send a media file of a draft, for its preview."""
    file = folder.media.find(name)
    if file is None:
        raise Refusal(404, "no_such_media", "There is no such image, audio, video or PDF file.", "Upload it first.")
    return FileResponse(file[0], media_type=file[1], headers=media_policy(file[1]))


@router.post("/api/v1/manage/render")
@router.post(_STUDY + "/render")
def render_text(_: Manager, body: TextIn) -> HtmlOut:
    """Render Markdown as the annotator's page shows it."""
    return HtmlOut(html=render_page_text(body.text, ""))


@router.get(_STUDY + "/forms")
def read_forms(_: Manager) -> FormsOut:
    """The settings of every protocol, design and model, and of the study itself, as fields of a form."""
    return forms()


@router.get("/api/v1/manage/languages")
@router.get(_STUDY + "/languages")
def read_languages(_: Manager) -> list[tuple[str, str]]:
    """The languages of the annotator's page: code, and the language's own name."""
    return [(code, catalogue.own_name) for code, catalogue in catalogues().items()]


# A team member may change their study, so the draft of its changes is also found below the study's own address.
router.include_router(draft_router, prefix="/api/v1/manage/drafts/{draft}")
router.include_router(draft_router, prefix=_STUDY + "/drafts/{draft}")
