"""The API of the manager's pages: figures, tables, charts, downloads, and what a manager may do."""

from __future__ import annotations

from collections.abc import Iterator
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
from steelyard.web.drafting import (
    CheckedOut,
    Draft,
    DraftOut,
    FormsOut,
    MadeOut,
    check_draft,
    draft_of,
    forms,
    make_study,
    save_draft,
)
from steelyard.web.errors import Refusal
from steelyard.web.identity import Manager, ServedStudy
from steelyard.web.live import summary_of, watch_of
from steelyard.web.shapes import ErrorOut
from steelyard.web.summary import SummaryOut
from steelyard.web.watching import Watch

_REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"model": ErrorOut, "description": "Not the manager."},
    403: {"model": ErrorOut, "description": "The page is out of date."},
    404: {"model": ErrorOut, "description": "There is no such study, item, table or chart."},
    409: {"model": ErrorOut, "description": "It cannot be done now."},
    422: {"model": ErrorOut, "description": "The study is not right; each problem has its field."},
}
_STUDY = "/api/v1/studies/{study}/manage"
router = APIRouter(tags=["manage"], responses=_REFUSALS)

_MOST_ROWS = 500
_RealIds = Annotated[bool, Query(description="call annotators by their own names rather than by pseudonyms")]
_BOARD_TABLES = Literal[
    "scores",
    "annotators",
    "queue",
    "said",
    "least_certain",
    "costs",
    "progress",
    "speed",
    "histogram",
    "labels",
    "matching",
    "checks",
]
_TRUST_TABLES = Literal["figures", "reliability"]
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "svg": "image/svg+xml",
    "png": "image/png",
    "json": "application/json",
}


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Exclusion(_Asked):
    """Whom to exclude or readmit, and why; the reason stays in the log."""

    annotator: Annotated[str, Field(min_length=1, max_length=200)]
    reason: Annotated[str, Field(max_length=2000)] = ""


class Forgetting(_Asked):
    """Whom to forget; without `sure` it is only said what that would do."""

    annotator: Annotated[str, Field(min_length=1, max_length=200)]
    sure: bool = False


class ForgottenOut(BaseModel):
    """What forgetting a person does to the study, or did, in sentences; and what is left for people to do."""

    done: bool
    said: list[str]
    still_to_do: list[str]


class Verdict(_Asked):
    """What a look at a disputed check found."""

    check: str
    verdict: Literal["right", "wrong"]


class NewState(_Asked):
    """Whether the study asks people anything, and what to tell them if not."""

    state: Literal["open", "paused", "closed"]
    reason: Annotated[str, Field(max_length=2000)] = ""


class TableOut(BaseModel):
    """A page of a table."""

    columns: list[str]
    rows: list[dict[str, Any]]
    total: Annotated[int, Field(description="rows that fit the search, on all pages")]
    as_of: Annotated[int | None, Field(description="how many judgments it rests on; null while it is computed")]


class ItemPage(BaseModel):
    """An item, its scores, and every judgment of it, the latest first."""

    item: dict[str, Any]
    scores: list[dict[str, Any]]
    judgments: list[dict[str, Any]]
    as_of: int | None


class DoneOut(BaseModel):
    """It is in the log."""

    done: Literal[True] = True


# Reading


@router.get(_STUDY + "/summary")
async def read_summary(served: ServedStudy, request: Request, _: Manager) -> SummaryOut:
    """How far a study is: numbers, and the same in words."""
    return await summary_of(watch_of(request, served))


@router.get(_STUDY + "/tables/{name}")
async def table(
    served: ServedStudy,
    request: Request,
    _: Manager,
    name: _BOARD_TABLES | _TRUST_TABLES,
    search: str = "",
    sort: str | None = None,
    descending: bool = False,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = 50,
) -> TableOut:
    """A page of one of the dashboard's tables, sorted and searched; figures are as of so many judgments."""
    watch = watch_of(request, served)
    found, as_of = _table(watch, name)
    if found is None:
        return TableOut(columns=[], rows=[], total=0, as_of=as_of)
    if sort is not None and sort not in found.columns:
        raise Refusal(404, "no_such_column", f"There is no column '{sort}'.", f"Known: {', '.join(found.columns)}.")
    kept = _searched(found, search)
    if sort is not None:
        kept = kept.sort(sort, descending=descending, nulls_last=True, maintain_order=True)
    return TableOut(columns=found.columns, rows=_rows(kept[offset : offset + limit]), total=kept.height, as_of=as_of)


def _table(watch: Watch, name: str) -> tuple[pl.DataFrame | None, int | None]:
    if name in {"figures", "reliability"}:
        reliability = watch.reliability
        if reliability is None:
            return None, None
        return reliability.statistics if name == "figures" else reliability.curve, reliability.judgments
    board = watch.board
    return (None, None) if board is None else (board.tables.get(name), board.judgments)


def _searched(frame: pl.DataFrame, search: str) -> pl.DataFrame:
    words = search.lower().split()
    texts = frame.select(cs.string()).columns
    if not words or not texts:
        return frame
    line = pl.concat_str([pl.col(name).fill_null("") for name in texts], separator=" ").str.to_lowercase()
    return frame.filter(*(line.str.contains(word, literal=True) for word in words))


def _rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return frame.with_columns(cs.float().fill_nan(None)).to_dicts()


@router.get(_STUDY + "/scores")
async def scores(served: ServedStudy, request: Request, _: Manager) -> TableOut:
    """All scores, computed now if need be."""
    watch = watch_of(request, served)
    board = watch.board
    if board is None or board.seq < await run_in_threadpool(served.study.last_seq):
        board = await watch.fresh_figures()
    if board.failure:
        raise Refusal(409, "model_failed", board.problem, calculator.MODEL_REMEDY)
    if board.problem:
        raise Refusal(409, "no_scores", board.problem, "Collect some judgments first.")
    found = board.tables["scores"]
    return TableOut(columns=found.columns, rows=_rows(found), total=found.height, as_of=board.judgments)


@router.get(_STUDY + "/item")
async def item_page(
    served: ServedStudy, request: Request, _: Manager, item: Annotated[str, Query(alias="id")]
) -> ItemPage:
    """One item with every judgment of it."""
    watch = watch_of(request, served)
    known = await run_in_threadpool(lambda: next((one for one in served.study.items if one.id == item), None))
    if known is None:
        raise Refusal(404, "no_such_item", f"There is no item '{item}' in this study.", "Look it up in the scores.")
    judgments = await watch.run(calculator.compute_item, item)
    board = watch.board
    own: list[dict[str, Any]] = []
    if board is not None and "scores" in board.tables:
        found = board.tables["scores"]
        own = _rows(found.filter(pl.col(found.columns[0]) == item))
    shown = {
        name: getattr(known, name) for name in ("id", "text", "group", "context", "reference", "media", "tags", "gold")
    }
    return ItemPage(
        item=shown, scores=own, judgments=_rows(judgments), as_of=board.judgments if board is not None else None
    )


@router.get(_STUDY + "/charts/{name}.{form}", response_class=Response)
async def chart(
    served: ServedStudy,
    request: Request,
    _: Manager,
    name: str,
    form: Literal["svg", "png", "json", "csv"],
    theme: Literal["light", "dark"] = "light",
    width: Annotated[int, Query(ge=200, le=2000)] = 640,
    item: str | None = None,
    download: bool = False,
    real_ids: _RealIds = False,
) -> Response:
    """A chart as SVG, PNG or Vega-Lite specification (json), or its data (csv)."""
    watch = watch_of(request, served)
    if form == "csv":
        body = await watch.run(calculator.export, name, form, None, item, real_ids)
    else:
        # The dashboard shows its manager who is who; a file that is kept does not say it unasked.
        body = await watch.run(calculator.draw, name, form, theme, width, item, real_ids or not download)
    if body is None:
        raise Refusal(404, "no_such_chart", f"There is no chart '{name}' of this study now.", "Look again later.")
    headers = {"Content-Disposition": f'attachment; filename="{served.slug}-{_plain(name)}.{form}"'} if download else {}
    # A picture is of one state of the study, which its address names (v=…), so it may be kept.
    headers["Cache-Control"] = "private, max-age=86400" if "v" in request.query_params else "no-store"
    return Response(body, media_type=_TYPES[form], headers=headers)


def _plain(name: str) -> str:
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign in "-_") else "-" for sign in name)


@router.get(_STUDY + "/download/log.jsonl", response_class=StreamingResponse)
def download_log(served: ServedStudy, _: Manager, real_ids: _RealIds = False) -> StreamingResponse:
    """The whole log, from which the study can be rebuilt, an event a line."""

    def lines() -> Iterator[str]:
        for event in exported_log(served.study, real_ids=real_ids):
            yield event.line() + "\n"

    headers = {"Content-Disposition": f'attachment; filename="{served.slug}-log.jsonl"'}
    return StreamingResponse(lines(), media_type=_TYPES["jsonl"], headers=headers)


@router.get(_STUDY + "/download/{what}.{form}", response_class=Response)
async def download(
    served: ServedStudy,
    request: Request,
    _: Manager,
    what: Literal["scores", "judgments", "answers", "annotators", "figures", "items"],
    form: Literal["csv", "jsonl", "parquet"],
    stage: str | None = None,
    real_ids: _RealIds = False,
) -> Response:
    """A table as a file: judgments as `import` and `fit` read them, answers with times, scores, annotators …"""
    try:
        body = await watch_of(request, served).run(calculator.export, what, form, stage, None, real_ids)
    except ConfigError as error:
        problem = error.problems[0]
        raise Refusal(404, "no_such_stage", problem.what, problem.remedy, field="stage") from None
    if body is None:
        raise Refusal(404, "no_such_table", f"There are no {what} yet.", "Collect some judgments first.")
    headers = {"Content-Disposition": f'attachment; filename="{served.slug}-{what}.{form}"'}
    return Response(body, media_type=_TYPES[form], headers=headers)


# Doing


@router.post(_STUDY + "/exclude")
def exclude(served: ServedStudy, _: Manager, wanted: Exclusion) -> DoneOut:
    """Exclude an annotator: no further tasks, their judgments set aside and asked of others again."""
    if not wanted.reason.strip():
        raise Refusal(422, "no_reason", "There is no reason given.", "Say why; it stays in the log.", field="reason")
    _done(lambda: served.study.annotators.exclude(wanted.annotator, wanted.reason.strip()))
    return DoneOut()


@router.post(_STUDY + "/readmit")
def readmit(served: ServedStudy, _: Manager, wanted: Exclusion) -> DoneOut:
    """Undo an exclusion: the annotator's judgments count again."""
    _done(lambda: served.study.annotators.readmit(wanted.annotator, wanted.reason.strip()))
    return DoneOut()


@router.post(_STUDY + "/forget")
def forget(served: ServedStudy, _: Manager, wanted: Forgetting) -> ForgottenOut:
    """Take a person out of the study for good; first ask without `sure`, to hear what that does to the scores."""
    try:
        act = forgetting.forget if wanted.sure else forgetting.preview
        found = act(served.study, wanted.annotator)
    except TaskError as error:
        problem = error.problems[0]
        raise Refusal(404, "nobody", problem.what, problem.remedy, field="annotator") from None
    return ForgottenOut(
        done=wanted.sure, said=found.did() if wanted.sure else found.would(), still_to_do=found.still_to_do()
    )


@router.post(_STUDY + "/settle")
def settle(served: ServedStudy, _: Manager, wanted: Verdict) -> DoneOut:
    """Say whether the known answer of a disputed check is right or wrong; a wrong one counts against nobody."""
    _done(lambda: served.study.quality.resolve_check(wanted.check, wanted.verdict))
    return DoneOut()


@router.post(_STUDY + "/state")
def set_state(served: ServedStudy, _: Manager, wanted: NewState) -> DoneOut:
    """Open, pause or close the study; people on their way may still send their answers."""
    _done(lambda: served.study.set_state(wanted.state, wanted.reason.strip()))
    return DoneOut()


def _done(act: Any) -> None:
    try:
        act()
    except TaskError as error:
        problem = error.problems[0]
        raise Refusal(409, "refused", problem.what, problem.remedy, field=problem.field) from None


# Making and changing studies


@router.get("/api/v1/manage/forms")
def read_forms(_: Manager) -> FormsOut:
    """The settings of every protocol, design and model, and of the study itself, as fields of a form."""
    return forms()


@router.post("/api/v1/manage/check")
def check(request: Request, _: Manager, draft: Draft) -> CheckedOut:
    """Check a draft of a study without keeping it: every problem with its field, and what people would see."""
    changed = request.app.state.studies.get(draft.study) if draft.study is not None else None
    return check_draft(draft, changed)


@router.post("/api/v1/manage/studies", status_code=201)
def new_study(request: Request, response: Response, _: Manager, draft: Draft) -> MadeOut:
    """Make a study in a folder beside the others, and serve it."""
    made = make_study(request.app.state.studies, draft)
    if made.problems:
        response.status_code = 422
    return made


@router.get(_STUDY + "/config")
def read_config(served: ServedStudy, _: Manager) -> DraftOut:
    """The study's configuration, as the form and as the text of study.toml."""
    return draft_of(served)


@router.put(_STUDY + "/config")
def change_config(served: ServedStudy, response: Response, _: Manager, draft: Draft) -> MadeOut:
    """Change a study; once somebody was asked, the question and the protocol have to stay."""
    try:
        made = save_draft(served, draft)
    except SteelyardError as error:
        problem = error.problems[0]
        raise Refusal(409, "refused", problem.what, problem.remedy, field=problem.field) from None
    if made.problems:
        response.status_code = 422
    return made
