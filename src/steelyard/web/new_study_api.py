"""The API of the pages on which studies are created and edited: drafts, uploads, preview, plan, and sharing."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from steelyard.errors import ConfigError, Problem, SteelyardError
from steelyard.formats.item_columns import Role
from steelyard.formats.uploads import ENCODINGS, MAX_UPLOAD_BYTES
from steelyard.records import Item
from steelyard.recruitment.links import link_template
from steelyard.study import StudyConfig
from steelyard.study.config import CONFIG_FILE
from steelyard.study.leases import annotator_name
from steelyard.web.addresses import origin_of
from steelyard.web.catalogue import catalogues
from steelyard.web.content import render_page_text
from steelyard.web.draft_folders import (
    DraftFolder,
    Drafts,
    QuestionsKind,
    StagePlan,
    Step,
    plain_name,
    stage_tables,
)
from steelyard.web.drafts import (
    ProblemOut,
    SavedStudyOut,
    checked,
    has_begun,
    page_settings,
    problems_out,
    protocol_of,
    task_preview,
    text_without_password,
    with_password_text,
    with_password_values,
)
from steelyard.web.errors import Refusal
from steelyard.web.identity import (
    Manager,
    Owner,
    StudyDep,
    check_manager,
    is_resume,
    require_manager,
    require_owner,
)
from steelyard.web.schemas import ErrorOut, TaskOut
from steelyard.web.settings_forms import FormsOut, forms
from steelyard.web.study_plan import (
    MAX_SIMULATED_TASKS,
    PlanOut,
    ReliabilityOut,
    expected_reliability,
    plan_of,
)

_REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"model": ErrorOut, "description": "Not the manager."},
    403: {"model": ErrorOut, "description": "The page is out of date."},
    404: {"model": ErrorOut, "description": "There is no such draft, study or file."},
    409: {"model": ErrorOut, "description": "It cannot be done now."},
    412: {"model": ErrorOut, "description": "The draft was changed by somebody else."},
    422: {"model": ErrorOut, "description": "The request or the uploaded file is not valid."},
}
router = APIRouter(tags=["manage"], responses=_REFUSALS)
draft_router = APIRouter()
"""Operations on one draft; see the end of this module for their two addresses."""

_STUDY = "/api/v1/studies/{study}/manage"
_PREVIEW_ROWS = 8
_PREVIEW_CELL = 300
_MOST_ITEM_NAMES = 500
_MOST_MISSING = 20
_MOST_INVITATIONS = 1000
T = TypeVar("T")
_draft_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


class _RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class DraftChange(_RequestBody):
    """Changes of a draft; what is absent stays as it is."""

    values: dict[str, Any] | None = None
    text: Annotated[str | None, Field(max_length=1_000_000)] = None
    step: Step | None = None
    plan: list[StagePlan] | None = None
    automatic_model: bool | None = None
    annotators: Annotated[int | None, Field(ge=1, le=100_000)] = None
    seconds: Annotated[float | None, Field(gt=0, le=36_000, strict=False)] = None


class ColumnsChange(_RequestBody):
    """How the uploaded file is read; what is absent stays as it is."""

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


class ItemsOut(BaseModel):
    """The uploaded file of items: its first rows, the roles of its columns, and how it was read."""

    name: str
    columns: list[str]
    roles: dict[str, Role]
    rows: list[list[str]]
    total: int
    has_header: bool
    is_header_certain: bool
    first_row: Annotated[list[str], Field(description="the row that may be a header")]
    separator: str | None
    encoding: str | None
    encodings: dict[str, str]
    sheet: str | None
    sheets: list[str]
    drop_repeats: bool
    notes: list[str]
    problems: list[ProblemOut]


class MediaOut(BaseModel):
    """Media files of a draft, held against the items."""

    count: int
    needed: int
    missing: list[str]
    missing_count: int
    unused_count: int


class StepProblemOut(ProblemOut):
    """A problem, and the step on which it is solved."""

    step: Step


class DraftStateOut(BaseModel):
    """Everything the pages show about a draft."""

    id: str
    study: str | None
    begun: Annotated[bool, Field(description="whether judging has started, so that questions cannot change")]
    step: Step
    values: dict[str, Any]
    text: str
    problems: list[StepProblemOut]
    items: ItemsOut | None
    item_count: int
    item_names: Annotated[list[str], Field(description="ids of the first items, for tables of questions")]
    has_sources: bool
    systems: list[str]
    media: MediaOut
    questions: dict[str, list[dict[str, str]]]
    plan: PlanOut | None
    plans: list[StagePlan]
    automatic_model: bool
    annotators: int | None
    seconds: float | None
    previews: Annotated[list[TaskOut | None], Field(description="a task of each stage; null if it is not valid")]
    page: dict[str, Any]
    updated: float


def drafts_of(request: Request) -> Drafts:
    """Return the drafts of a server."""
    return Drafts(request.app.state.studies)


def _refusing(action: Callable[[], T]) -> T:
    """Turn the problems of a file or a value into a refusal that names them all."""
    try:
        return action()
    except SteelyardError as error:
        problems = [str(problem) for problem in error.problems]
        raise Refusal(422, "file_invalid", " ".join(problems[:5]), "Nothing was changed.") from None


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
            _refusing(lambda: folder.save_text(with_password_text(text, folder.served)))
        else:
            values = change.values if change.values is not None else _values(folder)
            _refusing(lambda: folder.save_values(with_password_values(values, folder.served)))
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


@draft_router.post("/reliability")
def estimate_reliability(folder: DraftDep) -> list[ReliabilityOut]:
    """Simulate the study with typical annotators: how reliable its scores would be."""
    config, items, problems = checked(folder.path) if not folder.file_problems() else (None, [], [])
    if config is None or problems:
        raise Refusal(409, "draft_incomplete", "The study is not complete yet.", "Complete the steps before first.")
    plan = plan_of(config, items, folder.plans(folder.values()), folder.about.annotators, folder.about.seconds)
    if plan.tasks > MAX_SIMULATED_TASKS:
        raise Refusal(
            409,
            "plan_too_large",
            f"Plans of more than {MAX_SIMULATED_TASKS:,} tasks are not simulated in the browser.",
            "Create the study, then use steelyard simulate.",
        )
    return _refusing(lambda: expected_reliability(config, items, plan.annotators))


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
            _refusing(lambda: folder.set_upload(data, name))
        return state_of(folder)

    return await run_in_threadpool(save)


@draft_router.put("/items/columns")
def change_columns(request: Request, found: DraftDep, change: ColumnsChange, version: Version = None) -> DraftStateOut:
    """Change how the uploaded file is read."""
    changes = change.model_dump(exclude_unset=True)
    with changing(request, found, version) as folder:
        _refusing(lambda: folder.set_columns(changes))
    return state_of(folder)


@draft_router.put("/questions/{kind}")
def change_questions(
    request: Request, found: DraftDep, kind: QuestionsKind, questions: QuestionRows, version: Version = None
) -> DraftStateOut:
    """Save questions with known answers that were typed in the browser."""
    with changing(request, found, version) as folder:
        _refusing(lambda: folder.set_questions(kind, questions.rows))
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
            _refusing(lambda: folder.set_questions_file(kind, data, name))
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
    target = await run_in_threadpool(_refusing, lambda: folder.media_target(name))
    part = folder.path / f".media-{secrets.token_hex(8)}.part"
    try:
        with part.open("wb") as file:
            async for chunk in request.stream():
                await asyncio.to_thread(file.write, chunk)
        await run_in_threadpool(_refusing, lambda: folder.add_media(part, target))
    finally:
        part.unlink(missing_ok=True)
    return await run_in_threadpool(lambda: _media(folder, folder.items()))


@draft_router.get("/media/{name:path}", response_class=FileResponse)
def show_media(folder: DraftDep, name: str) -> FileResponse:
    """Send a media file of a draft, for its preview."""
    file = folder.media.find(name)
    if file is None:
        raise Refusal(404, "no_such_media", "There is no such image, audio or video file.", "Upload it first.")
    policy = {"Content-Security-Policy": "default-src 'none'; sandbox"}
    return FileResponse(file[0], media_type=file[1], headers=policy)


@router.post("/api/v1/manage/render")
@router.post(_STUDY + "/render")
def render_text(_: Manager, body: TextIn) -> HtmlOut:
    """Render Markdown as the annotator's page shows it."""
    return HtmlOut(html=render_page_text(body.text, ""))


# The state of a draft


def state_of(folder: DraftFolder) -> DraftStateOut:
    """Check a draft, and return all that its pages show."""
    about = folder.about
    text = folder.text()
    problems: list[Problem] = []
    config: StudyConfig | None = None
    items: list[Item] = []
    values: dict[str, Any] = {}
    try:
        values = folder.values()
        problems = folder.file_problems()
        if not problems:
            config, items, problems = checked(folder.path)
    except ConfigError as error:
        problems = list(error.problems)
    items = items or folder.items()
    upload, item_problems = _items_out(folder)
    plan = None
    if config is not None and not problems and items:
        plan = plan_of(config, items, folder.plans(values), about.annotators, about.seconds)
    return DraftStateOut(
        id=folder.id,
        study=about.study,
        begun=folder.served is not None and has_begun(folder.served),
        step=about.step,
        values=_without_password(values, text),
        text=text_without_password(text, values),
        problems=_by_step([*problems, *_type_problems(values, problems)], item_problems, has_items=bool(items)),
        items=upload,
        item_count=len(items),
        item_names=[item.id for item in items[:_MOST_ITEM_NAMES]],
        has_sources=any(item.context is not None for item in items),
        systems=sorted({item.group for item in items if item.group is not None})[:50],
        media=_media(folder, items),
        questions={kind: folder.questions(kind) for kind in ("checks", "qualification", "training")},
        plan=plan,
        plans=folder.plans(values),
        automatic_model=about.automatic_model,
        annotators=about.annotators,
        seconds=about.seconds,
        previews=_previews(folder, values, config, items),
        page=page_settings(values),
        updated=about.updated,
    )


def _without_password(values: dict[str, Any], text: str) -> dict[str, Any]:
    from steelyard.storage.engine import without_password

    own = values.get("database")
    return {**values, "database": without_password(own)} if isinstance(own, str) else values


def _previews(
    folder: DraftFolder, values: Mapping[str, Any], config: StudyConfig | None, items: list[Item]
) -> list[TaskOut | None]:
    previews: list[TaskOut | None] = []
    for number, stage in enumerate(stage_tables(values)):
        protocol = protocol_of(stage.get("protocol"))
        if protocol is None:
            previews.append(None)
            continue
        design = None
        if config is not None and number < len(config.stages):
            design = config.stages[number].design
        previews.append(task_preview(values, protocol, design, items, folder.media, stage.get("question")))
    return previews


def _items_out(folder: DraftFolder) -> tuple[ItemsOut | None, list[Problem]]:
    about = folder.about.upload
    if about is None:
        return None, []
    try:
        upload, reading, problems = folder.reading(about)
    except SteelyardError as error:
        empty = ItemsOut(
            name=about.name, columns=[], roles={}, rows=[], total=0, has_header=False, is_header_certain=True,
            first_row=[], separator=about.separator, encoding=about.encoding, encodings=ENCODINGS, sheet=about.sheet,
            sheets=[], drop_repeats=about.drop_repeats, notes=[], problems=problems_out(error.problems),
        )  # fmt: skip
        return empty, list(error.problems)
    frame = upload.table.frame
    first_rows = [[_short(cell) for cell in row] for row in frame.head(_PREVIEW_ROWS).rows()]
    out = ItemsOut(
        name=about.name,
        columns=frame.columns,
        roles=about.roles,
        rows=first_rows,
        total=frame.height,
        has_header=upload.has_header,
        is_header_certain=upload.is_header_certain or about.has_header is not None,
        first_row=frame.columns if upload.has_header else first_rows[0],
        separator=upload.separator,
        encoding=upload.encoding,
        encodings=ENCODINGS,
        sheet=upload.sheet,
        sheets=list(upload.sheets),
        drop_repeats=about.drop_repeats,
        notes=[*upload.notes, *(() if reading is None else reading.notes)],
        problems=[ProblemOut(field=p.field, what=_located(p), remedy=p.remedy) for p in problems],
    )
    return out, problems


def _located(problem: Problem) -> str:
    """Return a problem's description after its file and line."""
    where = " ".join(part for part in (problem.file, f"line {problem.line}" if problem.line else None) if part)
    return f"{where}: {problem.what}" if where else problem.what


def _short(cell: object) -> str:
    text = "" if cell is None else str(cell)
    return text if len(text) <= _PREVIEW_CELL else f"{text[:_PREVIEW_CELL]}…"


def _media(folder: DraftFolder, items: list[Item]) -> MediaOut:
    names = set(folder.media_names())
    needed = {item.media for item in items if item.media}
    missing = sorted(name for name in needed if name not in names)
    return MediaOut(
        count=len(names),
        needed=len(needed),
        missing=missing[:_MOST_MISSING],
        missing_count=len(missing),
        unused_count=len(names - needed),
    )


_STEPS: dict[str, Step] = {
    "items": "items",
    "title": "question",
    "question": "question",
    "protocol": "question",
    "page": "question",
    "design": "plan",
    "model": "plan",
    "pay": "plan",
    "stop": "plan",
    "seed": "plan",
    "share": "plan",
    "quality": "quality",
}
_FIELD_STEPS: dict[str, Step] = {
    "annotators.consent": "quality",
    "annotators.instructions": "quality",
    "annotators.training": "quality",
}
_PLAIN: dict[str, tuple[str, str]] = {
    "title": ("The study has no title.", "Write one."),
    "question": ("There is no question for the annotators yet.", "Write it."),
    "protocol": ("No question type is chosen yet.", "Choose one."),
}


def _type_problems(values: Mapping[str, Any], problems: list[Problem]) -> list[Problem]:
    """Name a missing question type, which is only reported otherwise if nothing else is missing."""
    is_known = bool(stage_tables(values)) or any((problem.field or "") in {"protocol", "text"} for problem in problems)
    return [] if is_known else [Problem("No question type is chosen yet.", "Choose one.", field="protocol")]


def _by_step(problems: list[Problem], item_problems: list[Problem], *, has_items: bool) -> list[StepProblemOut]:
    rows = [
        StepProblemOut(field="items", what=_located(problem), remedy=problem.remedy, step="items")
        for problem in item_problems
    ]
    if not has_items and not item_problems:
        rows.append(
            StepProblemOut(
                field="items", what="There are no items yet.", remedy="Choose a file, or paste lines.", step="items"
            )
        )
    for problem in problems:
        field = problem.field or ""
        is_table = problem.file not in {None, CONFIG_FILE}
        if field == "items" and problem.file in {None, CONFIG_FILE} and not has_items:
            continue
        if is_table and problem.file and "items" in problem.file and item_problems:
            continue
        what, remedy = problem.what, problem.remedy
        if field in _PLAIN and "missing" in what:
            what, remedy = _PLAIN[field]
        if is_table:
            what = _located(problem)
        rows.append(StepProblemOut(field=field or None, what=what, remedy=remedy, step=_step(field, problem.file)))
    return rows


def _step(field: str, file: str | None) -> Step:
    if file not in {None, CONFIG_FILE}:
        return "items" if file is not None and "item" in file else "quality"
    if field in _FIELD_STEPS:
        return _FIELD_STEPS[field]
    parts = [part for part in field.split(".") if not part.isdecimal()]
    if parts and parts[0] == "stage":
        parts = parts[1:] or ["protocol"]
    return _STEPS.get(parts[0], "share") if parts else "question"


@router.get(_STUDY + "/forms")
def read_forms(_: Manager) -> FormsOut:
    """The settings of every protocol, design and model, and of the study itself, as fields of a form."""
    return forms()


@router.get("/api/v1/manage/languages")
@router.get(_STUDY + "/languages")
def read_languages(_: Manager) -> list[tuple[str, str]]:
    """The languages of the annotator's page: code, and the language's own name."""
    return [(code, catalogue.own_name) for code, catalogue in catalogues().items()]


# Sharing a study


class InvitationOut(BaseModel):
    """Somebody who has a personal link. The link itself is only shown when it is made."""

    annotator: str
    created: float
    answered: int
    limit: int | None


class NewInvitationOut(BaseModel):
    """A new personal link."""

    annotator: str
    link: str


class SharingOut(BaseModel):
    """How people reach a study. Links are relative if the server does not know its public address."""

    link: str
    is_open: bool
    invitations: list[InvitationOut]
    panel_link: str | None
    prolific_link: str


class Names(_RequestBody):
    """Names of annotators."""

    names: Annotated[list[Annotated[str, Field(max_length=300)]], Field(min_length=1, max_length=_MOST_INVITATIONS)]


_PROLIFIC_VALUES = ("{{%PROLIFIC_PID%}}", "{{%STUDY_ID%}}", "{{%SESSION_ID%}}")


@router.get(_STUDY + "/sharing")
def read_sharing(served: StudyDep, request: Request, _: Manager) -> SharingOut:
    """The links of a study, and who was invited."""
    from steelyard.study.config.tables import Link

    study = served.study
    grants = study.access.grants("invite")
    latest = {grant.annotator: grant for grant in grants if grant.annotator is not None and not is_resume(grant.note)}
    progress = {name: study.annotators.progress(name) for name in latest}
    invitations = [
        InvitationOut(
            annotator=name,
            created=grant.created / 1e6,
            answered=progress[name].answered,
            limit=progress[name].limit,
        )
        for name, grant in latest.items()
    ]
    origin, link = origin_of(request), study.config.link
    panel = None if link is None else link_template(link, origin, served.slug, ("PARTICIPANT", "STUDY", "SESSION"))
    return SharingOut(
        link=f"{origin}{served.url}",
        is_open=study.config.annotators.open,
        invitations=invitations,
        panel_link=panel,
        prolific_link=link_template(link or Link(), origin, served.slug, _PROLIFIC_VALUES),
    )


@router.post(_STUDY + "/invitations", status_code=201)
def invite(served: StudyDep, request: Request, _: Manager, body: Names) -> list[NewInvitationOut]:
    """Make personal links; each is shown only once, because the study stores its digest."""
    names = _refusing(lambda: list(dict.fromkeys(annotator_name(name) for name in body.names if name.strip())))
    base = f"{origin_of(request)}{served.url}?invite="
    access = served.study.access
    return [NewInvitationOut(annotator=name, link=base + access.grant("invite", annotator=name)) for name in names]


@router.post(_STUDY + "/invitations/revoke")
def revoke(served: StudyDep, _: Manager, body: Names) -> dict[Literal["revoked"], int]:
    """Make the personal links of annotators stop working, and sign them out; their answers stay."""
    revoked = 0
    for name in body.names:
        revoked += served.study.access.revoke("invite", annotator=name)
        served.study.access.revoke("session", annotator=name)
    return {"revoked": revoked}


# A team member may change their study, so the draft of its changes is also found below the study's own address.
router.include_router(draft_router, prefix="/api/v1/manage/drafts/{draft}")
router.include_router(draft_router, prefix=_STUDY + "/drafts/{draft}")
