"""The API of the manager's pages: tables, charts, downloads, and the manager's actions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import Annotated, Any, Literal

import polars as pl
import polars.selectors as cs
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from steelyard.errors import ConfigError, SteelyardError, TaskError
from steelyard.study import exported_log, forgetting
from steelyard.web import calculator
from steelyard.web.calculator import Scores
from steelyard.web.dashboard import Dashboard
from steelyard.web.drafts import (
    Draft,
    DraftCheckOut,
    DraftOut,
    FormsOut,
    SavedStudyOut,
    check_draft,
    create_study,
    draft_of,
    forms,
    save_draft,
)
from steelyard.web.errors import Refusal
from steelyard.web.identity import Identity, Manager, Owner, StudyDep, Viewer
from steelyard.web.live_updates import dashboard_of, summary_of
from steelyard.web.reports import delete_reports, report_rows
from steelyard.web.schemas import ErrorOut
from steelyard.web.studies import ServedStudy
from steelyard.web.summary import SummaryOut

_REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"model": ErrorOut, "description": "Neither the owner nor in the team."},
    403: {"model": ErrorOut, "description": "The page is out of date, or the link is for viewing only."},
    404: {"model": ErrorOut, "description": "There is no such study, item, table or chart."},
    409: {"model": ErrorOut, "description": "It cannot be done now."},
    422: {"model": ErrorOut, "description": "The study is not valid; each problem names its field."},
}
_STUDY = "/api/v1/studies/{study}/manage"
router = APIRouter(tags=["manage"], responses=_REFUSALS)

_MOST_ROWS = 500
_RealIds = Annotated[bool, Query(description="use annotators' real names instead of pseudonyms")]
_TABLES = Literal[
    "scores",
    "systems",
    "system_differences",
    "annotators",
    "judges",
    "rater_effects",
    "item_fit",
    "leased_tasks",
    "notes",
    "least_certain",
    "costs",
    "progress",
    "speed",
    "histogram",
    "labels",
    "matching",
    "checks",
    "unjudged",
    "average_dominance",
    "sources",
    "adequacy",
    "effort",
    "errors",
    "error_categories",
    "statistics",
    "reliability",
    "activity",
]
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "svg": "image/svg+xml",
    "png": "image/png",
    "json": "application/json",
}


class _RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Exclusion(_RequestBody):
    """The annotator to exclude or readmit, and the reason, which stays in the log."""

    annotator: Annotated[str, Field(min_length=1, max_length=200)]
    reason: Annotated[str, Field(max_length=2000)] = ""


class ItemDecision(_RequestBody):
    """The item to set aside or to ask about again, and the reason, which stays in the log."""

    item: Annotated[str, Field(min_length=1, max_length=10_000)]
    reason: Annotated[str, Field(max_length=2000)] = ""


class ForgetRequest(_RequestBody):
    """The annotator to forget. Without `confirm`, the effects are only previewed."""

    annotator: Annotated[str, Field(min_length=1, max_length=200)]
    confirm: bool = False


class ForgetOut(BaseModel):
    """The effects of forgetting an annotator, as sentences, and the steps that remain for the manager."""

    done: bool
    effects: list[str]
    remaining_steps: list[str]


class CheckVerdict(_RequestBody):
    """Whether the expected answer of a disputed check is right."""

    check: str
    verdict: Literal["right", "wrong"]


class NewState(_RequestBody):
    """The state of the study, and the reason shown to annotators while it is not open."""

    state: Literal["open", "paused", "closed"]
    reason: Annotated[str, Field(max_length=2000)] = ""


class TableOut(BaseModel):
    """A page of a table."""

    columns: list[str]
    empty_columns: Annotated[list[str], Field(description="columns without any value in the whole table")] = []
    rows: list[dict[str, Any]]
    total: Annotated[int, Field(description="number of rows that match the search, on all pages")]
    as_of: Annotated[int | None, Field(description="number of judgments included; null while it is computed")]


class ItemPage(BaseModel):
    """An item, its scores, and all its judgments, latest first."""

    item: dict[str, Any]
    scores: list[dict[str, Any]]
    judgments: list[dict[str, Any]]
    as_of: int | None


class FindingOut(BaseModel):
    """One aspect of an annotator's work, in a sentence."""

    aspect: str
    sentence: str
    notable: Annotated[bool, Field(description="whether it is worth discussing")]


class AnnotatorPage(BaseModel):
    """An annotator's work: findings in sentences, effects by criterion, parts of the work, surprising answers."""

    annotator: dict[str, Any]
    findings: list[FindingOut]
    effects: list[dict[str, Any]]
    blocks: list[dict[str, Any]]
    surprises: Annotated[
        list[dict[str, Any]], Field(description="answers that differ most from what all answers together predict")
    ]


class SystemsOut(BaseModel):
    """Systems compared: scores with intervals, rank ranges and clusters, and the differences of every two systems."""

    scores: list[dict[str, Any]]
    differences: list[dict[str, Any]]
    notes: list[str]
    as_of: Annotated[int, Field(description="number of judgments that the comparison includes")]


class DoneOut(BaseModel):
    """The change is in the log."""

    done: Literal[True] = True


# Reading


@router.get(_STUDY + "/summary")
async def read_summary(served: StudyDep, request: Request, _: Viewer) -> SummaryOut:
    """Progress of a study: numbers, and texts for display."""
    return await summary_of(dashboard_of(request, served))


@router.get(_STUDY + "/tables/{name}")
async def table(
    served: StudyDep,
    request: Request,
    viewer: Viewer,
    name: _TABLES,
    search: str = "",
    sort: str | None = None,
    descending: bool = False,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = 50,
    where: Annotated[list[str], Query(max_length=20, description="column=value: only rows with this value")] = [],  # noqa: B006
) -> TableOut:
    """A page of one of the dashboard's tables, sorted and filtered."""
    dashboard = dashboard_of(request, served)
    frame, as_of = await _table(dashboard, name)
    if frame is None:
        return TableOut(columns=[], rows=[], total=0, as_of=as_of)
    if name == "scores":
        further = await run_in_threadpool(served.item_columns)
        frame = frame.join(further, left_on=frame.columns[0], right_on="item", how="left", maintain_order="left")
    conditions = [condition.partition("=")[::2] for condition in where]
    for column in (*([sort] if sort is not None else []), *(column for column, _ in conditions)):
        if column not in frame.columns:
            columns = ", ".join(frame.columns)
            raise Refusal(404, "no_such_column", f"There is no column '{column}'.", f"Known: {columns}.")
    rows = _search(_visible(frame, served, viewer), search)
    rows = rows.filter(*(pl.col(column).cast(pl.String) == value for column, value in conditions))
    if sort is not None:
        rows = rows.sort(sort, descending=descending, nulls_last=True, maintain_order=True)
    return TableOut(
        columns=frame.columns,
        empty_columns=[column.name for column in frame if column.null_count() == frame.height],
        rows=_rows(rows[offset : offset + limit]),
        total=rows.height,
        as_of=as_of,
    )


async def _table(dashboard: Dashboard, name: str) -> tuple[pl.DataFrame | None, int | None]:
    if name == "activity":
        frame = await dashboard.run(calculator.compute_activity)
        reports = await run_in_threadpool(report_rows, dashboard.served.folder)
        frame = pl.concat([frame, reports]).sort("at", descending=True, maintain_order=True)
        return frame, dashboard.served.study.status().judgments
    part = dashboard.parts.get(calculator.PART_OF_TABLE.get(name, "scores"))
    return (None, None) if part is None else (part.tables.get(name), part.judgments)


def _visible(frame: pl.DataFrame, served: ServedStudy, viewer: Identity) -> pl.DataFrame:
    """Replace annotators' names by pseudonyms for viewers."""
    if viewer.may_manage:
        return frame
    names = served.study.privacy.names()
    visible = names.frame(frame)
    # Sentences of the activity name annotators.
    is_activity = {"category", "text"} <= set(frame.columns)
    return visible.with_columns(pl.col("text").map_elements(names.within, pl.String)) if is_activity else visible


def _check_real_ids(real_ids: bool, viewer: Identity) -> None:
    if real_ids and not viewer.may_manage:
        raise Refusal(403, "viewer", "Your link is for viewing only, without annotators' names.", "Leave real_ids out.")


def _search(frame: pl.DataFrame, search: str) -> pl.DataFrame:
    words = search.lower().split()
    texts = frame.select(cs.string()).columns
    if not words or not texts:
        return frame
    line = pl.concat_str([pl.col(name).fill_null("") for name in texts], separator=" ").str.to_lowercase()
    return frame.filter(*(line.str.contains(word, literal=True) for word in words))


def _rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return frame.with_columns(cs.float().fill_nan(None)).to_dicts()


@router.get(_STUDY + "/scores")
async def scores(served: StudyDep, request: Request, _: Viewer) -> TableOut:
    """All scores, computed now if there are new judgments."""
    part: Scores = await dashboard_of(request, served).current("scores")
    if part.failure:
        raise Refusal(409, "model_failed", part.problem, calculator.MODEL_REMEDY)
    if part.problem:
        raise Refusal(409, "no_scores", part.problem, "Collect some judgments first.")
    frame = part.tables["scores"]
    return TableOut(columns=frame.columns, rows=_rows(frame), total=frame.height, as_of=part.judgments)


@router.get(_STUDY + "/systems")
async def systems(served: StudyDep, request: Request, _: Viewer) -> SystemsOut:
    """The comparison of all systems, computed now if there are new judgments."""
    part: Scores = await dashboard_of(request, served).current("scores")
    if "systems" not in part.tables:
        problem = part.systems_problem or "The items do not belong to two or more systems."
        raise Refusal(409, "no_systems", problem, "Name each item's system in the items file, and collect judgments.")
    return SystemsOut(
        scores=_rows(part.tables["systems"]),
        differences=_rows(part.tables["system_differences"]),
        notes=list(part.systems_notes),
        as_of=part.judgments,
    )


@router.get(_STUDY + "/item")
async def item_page(
    served: StudyDep, request: Request, viewer: Viewer, item: Annotated[str, Query(alias="id")]
) -> ItemPage:
    """One item with all its judgments."""
    dashboard = dashboard_of(request, served)
    record = await run_in_threadpool(lambda: next((one for one in served.study.items if one.id == item), None))
    if record is None:
        raise Refusal(404, "no_such_item", f"There is no item '{item}' in this study.", "Look it up in the scores.")
    judgments = await dashboard.run(calculator.compute_item, item)
    part = dashboard.scores
    own: list[dict[str, Any]] = []
    if part is not None and "scores" in part.tables:
        frame = part.tables["scores"]
        own = _rows(frame.filter(pl.col(frame.columns[0]) == item))
    content = {field.name: getattr(record, field.name) for field in fields(record)}
    content["set_aside"] = served.study.quality.items_set_aside().get(item, "")
    return ItemPage(
        item=content,
        scores=own,
        judgments=_rows(_visible(judgments, served, viewer)),
        as_of=part.judgments if part is not None else None,
    )


@router.get(_STUDY + "/annotator")
async def annotator_page(
    served: StudyDep, request: Request, viewer: Viewer, annotator: Annotated[str, Query(alias="id")]
) -> AnnotatorPage:
    """One annotator's work, to discuss with them; viewers know annotators by their pseudonyms."""
    name = await run_in_threadpool(_real_name, served, annotator, viewer)
    try:
        profile = await dashboard_of(request, served).run(calculator.compute_annotator, name)
    except TaskError as error:
        problem = error.problems[0]
        raise Refusal(404, "nobody", problem.what, problem.remedy, field="id") from None
    row = _visible(pl.DataFrame([profile.row], infer_schema_length=None), served, viewer)
    return AnnotatorPage(
        annotator=_rows(row)[0],
        findings=[FindingOut(**asdict(finding)) for finding in profile.findings],
        effects=_rows(profile.effects),
        blocks=_rows(profile.blocks),
        surprises=_rows(profile.surprises),
    )


def _real_name(served: ServedStudy, annotator: str, viewer: Identity) -> str:
    """Return the name of an annotator that a manager gives, or whose pseudonym a viewer gives."""
    pseudonyms = {called: name for name, called in served.study.privacy.names().called.items()}
    if annotator in pseudonyms:
        return pseudonyms[annotator]
    if not viewer.may_manage:
        raise Refusal(
            404, "nobody", "There is no such annotator in this study.", "Choose one in the table.", field="id"
        )
    return annotator


@router.get(_STUDY + "/charts/{name}.{form}", response_class=Response)
async def chart(
    served: StudyDep,
    request: Request,
    viewer: Viewer,
    name: str,
    form: Literal["svg", "png", "json", "csv"],
    theme: Literal["light", "dark"] = "light",
    width: Annotated[int, Query(ge=200, le=2000)] = 640,
    item: str | None = None,
    annotator: str | None = None,
    download: bool = False,
    real_ids: _RealIds = False,
) -> Response:
    """A chart as SVG, PNG or Vega-Lite specification (json), or its data (csv)."""
    _check_real_ids(real_ids, viewer)
    dashboard = dashboard_of(request, served)
    if name == "annotator" and annotator is not None:
        item = await run_in_threadpool(_real_name, served, annotator, viewer)
    if form == "csv":
        body = await dashboard.run(calculator.export, name, form, None, item, real_ids)
    else:
        # The dashboard shows real ids to managers; a downloaded file has them only on request.
        real_ids = real_ids or (viewer.may_manage and not download)
        body = await dashboard.run(calculator.draw, name, form, theme, width, item, real_ids, download)
    if body is None:
        raise Refusal(404, "no_such_chart", f"The chart '{name}' is not available now.", "Try again later.")
    headers = {"Content-Disposition": f'attachment; filename="{served.slug}-{_plain(name)}.{form}"'} if download else {}
    # The address names the state of the study (v=…), so the picture may be cached.
    headers["Cache-Control"] = "private, max-age=86400" if "v" in request.query_params else "no-store"
    return Response(body, media_type=_TYPES[form], headers=headers)


def _plain(name: str) -> str:
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign in "-_") else "-" for sign in name)


@router.get(_STUDY + "/download/log.jsonl", response_class=StreamingResponse)
def download_log(served: StudyDep, viewer: Viewer, real_ids: _RealIds = False) -> StreamingResponse:
    """The whole log, from which the study can be rebuilt, an event a line."""
    _check_real_ids(real_ids, viewer)

    def lines() -> Iterator[str]:
        for event in exported_log(served.study, real_ids=real_ids):
            yield event.line() + "\n"

    headers = {"Content-Disposition": f'attachment; filename="{served.slug}-log.jsonl"'}
    return StreamingResponse(lines(), media_type=_TYPES["jsonl"], headers=headers)


@router.get(_STUDY + "/download/{what}.{form}", response_class=Response)
async def download(
    served: StudyDep,
    request: Request,
    viewer: Viewer,
    what: Literal[
        "scores",
        "systems",
        "differences",
        "judgments",
        "answers",
        "annotators",
        "rater_effects",
        "item_fit",
        "distributions",
        "soft_labels",
        "statistics",
        "items",
        "sources",
        "adequacy",
        "effort",
        "marks",
    ],
    form: Literal["csv", "jsonl", "parquet"],
    stage: str | None = None,
    real_ids: _RealIds = False,
) -> Response:
    """A table as a file: judgments as `import` and `fit` read them, answers with times, scores, annotators …"""
    _check_real_ids(real_ids, viewer)
    try:
        body = await dashboard_of(request, served).run(calculator.export, what, form, stage, None, real_ids)
    except ConfigError as error:
        problem = error.problems[0]
        raise Refusal(404, "no_such_stage", problem.what, problem.remedy, field="stage") from None
    if body is None:
        raise Refusal(404, "no_such_table", f"There are no {what} yet.", "Collect some judgments first.")
    headers = {"Content-Disposition": f'attachment; filename="{served.slug}-{what}.{form}"'}
    return Response(body, media_type=_TYPES[form], headers=headers)


# Actions


@router.post(_STUDY + "/exclude")
def exclude(served: StudyDep, manager: Manager, body: Exclusion) -> DoneOut:
    """Exclude an annotator: they get no further tasks, and their judgments are set aside and collected again."""
    if not body.reason.strip():
        raise Refusal(
            422, "no_reason", "No reason is given.", "Give a reason; it is stored in the log.", field="reason"
        )
    _act(lambda: served.study.annotators.exclude(body.annotator, body.reason.strip(), member=manager.name))
    return DoneOut()


@router.post(_STUDY + "/readmit")
def readmit(served: StudyDep, manager: Manager, body: Exclusion) -> DoneOut:
    """Undo an exclusion: the annotator's judgments count again."""
    _act(lambda: served.study.annotators.readmit(body.annotator, body.reason.strip(), member=manager.name))
    return DoneOut()


@router.post(_STUDY + "/set-aside")
def set_aside(served: StudyDep, manager: Manager, body: ItemDecision) -> DoneOut:
    """Set an item aside: nobody is asked about it any more; its judgments count as before."""
    _act(lambda: served.study.quality.set_item_aside(body.item, body.reason.strip(), member=manager.name))
    return DoneOut()


@router.post(_STUDY + "/ask-again")
def ask_again(served: StudyDep, manager: Manager, body: ItemDecision) -> DoneOut:
    """Ask about an item again that was set aside; it is not set aside by itself any more."""
    _act(lambda: served.study.quality.restore_item(body.item, body.reason.strip(), member=manager.name))
    return DoneOut()


@router.post(_STUDY + "/forget")
def forget(served: StudyDep, manager: Manager, body: ForgetRequest) -> ForgetOut:
    """Delete an annotator from the study; without `confirm`, only preview the effects on the scores."""
    try:
        if body.confirm:
            report = forgetting.forget(served.study, body.annotator, member=manager.name)
        else:
            report = forgetting.preview(served.study, body.annotator)
    except TaskError as error:
        problem = error.problems[0]
        raise Refusal(404, "nobody", problem.what, problem.remedy, field="annotator") from None
    effects = report.did() if body.confirm else report.would()
    if body.confirm and delete_reports(served.folder):
        effects = [*effects, "The reports kept on the server are deleted; create them again."]
    return ForgetOut(
        done=body.confirm,
        effects=effects,
        remaining_steps=report.still_to_do(),
    )


class PilotOut(BaseModel):
    """Summary of the answers so far as a pilot: time, pay, and the plan of the full run, in sentences."""

    lines: list[str]


@router.get(_STUDY + "/pilot")
async def read_pilot(
    served: StudyDep, request: Request, _: Manager, target: Annotated[float, Query(ge=0.1, le=0.99)] = 0.9
) -> PilotOut:
    """Use the answers so far as a pilot, and plan the full run with similar annotators."""
    try:
        return PilotOut(lines=await dashboard_of(request, served).run(calculator.compute_pilot, target))
    except SteelyardError as error:
        problem = error.problems[0]
        raise Refusal(409, "no_pilot", problem.what, problem.remedy) from None


@router.post(_STUDY + "/resolve-check")
def resolve_check(served: StudyDep, manager: Manager, body: CheckVerdict) -> DoneOut:
    """Decide whether the expected answer of a disputed check is right. If it is wrong, the check does not count."""
    _act(lambda: served.study.quality.resolve_check(body.check, body.verdict, member=manager.name))
    return DoneOut()


@router.post(_STUDY + "/state")
def set_state(served: StudyDep, manager: Manager, body: NewState) -> DoneOut:
    """Open, pause or close the study; answers to leased tasks are still accepted."""
    _act(lambda: served.study.set_state(body.state, body.reason.strip(), member=manager.name))
    return DoneOut()


def _act(action: Any) -> None:
    try:
        action()
    except TaskError as error:
        problem = error.problems[0]
        raise Refusal(409, "refused", problem.what, problem.remedy, field=problem.field) from None


# Creating and changing studies


@router.get("/api/v1/manage/forms")
def read_forms(_: Manager) -> FormsOut:
    """The settings of every protocol, design and model, and of the study itself, as fields of a form."""
    return forms()


@router.post("/api/v1/manage/check")
def check(request: Request, _: Manager, draft: Draft) -> DraftCheckOut:
    """Check a draft without saving it: every problem with its field, and a preview of a task."""
    changed = request.app.state.studies.get(draft.study) if draft.study is not None else None
    return check_draft(draft, changed)


@router.post("/api/v1/manage/studies", status_code=201)
def new_study(request: Request, response: Response, _: Owner, draft: Draft) -> SavedStudyOut:
    """Create a study in a folder beside the others, and serve it."""
    result = create_study(request.app.state.studies, draft)
    if result.problems:
        response.status_code = 422
    return result


@router.get(_STUDY + "/config")
def read_config(served: StudyDep, _: Manager) -> DraftOut:
    """The study's configuration, as the form and as the text of study.toml."""
    return draft_of(served)


@router.put(_STUDY + "/config")
def change_config(served: StudyDep, response: Response, manager: Manager, draft: Draft) -> SavedStudyOut:
    """Change a study; once a task was leased, the question and the protocol cannot be changed."""
    try:
        result = save_draft(served, draft, member=manager.name)
    except SteelyardError as error:
        problem = error.problems[0]
        raise Refusal(409, "refused", problem.what, problem.remedy, field=problem.field) from None
    if result.problems:
        response.status_code = 422
    return result
