"""The manager's pages: list of studies, dashboard, items, and the form for a study's configuration."""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections import defaultdict
from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote

from fastapi import APIRouter, Form, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from steelyard.analysis.marked_errors import severity_order
from steelyard.analysis.match_quality import matched_stage
from steelyard.study import Stage, Study
from steelyard.study.fitting import tournament_design
from steelyard.study.marks import marking_stages
from steelyard.study.systems import has_systems
from steelyard.web.addresses import address_of
from steelyard.web.draft_folders import Drafts, draft_titles
from steelyard.web.errors import Refusal, log_refusal
from steelyard.web.identity import (
    Identity,
    StudyDep,
    check_manage_token,
    identity_of,
    manage_csrf,
    set_manage_cookie,
    set_team_cookie,
    teams_of,
)
from steelyard.web.identity import sign_out as end_sessions
from steelyard.web.live_updates import dashboard_of, dashboards_of, summary_of
from steelyard.web.pages import page
from steelyard.web.studies import ServedStudy, Studies
from steelyard.web.summary import SummaryOut

router = APIRouter(include_in_schema=False)

T = TypeVar("T")
_PATIENCE = 0.3
"""Seconds a page waits for its first numbers; after that it is shown without, and receives them as live updates."""


def _admitted(request: Request) -> Identity | None:
    identity = identity_of(request.scope)
    if identity is not None:
        request.state.who = identity.name or "the owner"
    return identity


def _is_owner(request: Request) -> bool:
    identity = _admitted(request)
    return identity is not None and identity.role == "owner"


def show_login(request: Request, what: str = "", status: int = 401, path: str | None = None) -> Response:
    """Show the page on which managers sign in, with the reason why they were refused."""
    path = next_page(request.url.path if path is None else path)
    return page(
        request,
        "manage/login.html",
        status,
        language="en",
        what=what,
        next=path,
        oidc=request.app.state.oidc is not None,
    )


def next_page(path: str) -> str:
    """Return the page to show after the login, normalised as browsers do; only pages of the manager are allowed."""
    plain = unquote(path)
    if not re.fullmatch(r"/[A-Za-z0-9_./-]*", plain):
        return "/manage/"
    path = posixpath.normpath("/" + plain.lstrip("/")) + ("/" if plain.endswith("/") else "")
    return path if path.startswith("/manage/") else "/manage/"


def _sign_in(request: Request, token: str, path: str, served: ServedStudy | None = None) -> Response:
    try:
        identity = check_manage_token(request, token, served)
    except Refusal as refusal:
        log_refusal(request.method, request.url.path, refusal, address_of(request.scope))
        return show_login(request, f"{refusal.what} {refusal.remedy}", refusal.status, path)
    # Redirect, so that the token does not stay in the address bar or the history.
    response = RedirectResponse(request.app.state.studies.root_path + path, 303)
    if served is not None and identity.role != "owner":
        set_team_cookie(request, response, served, token)
    else:
        set_manage_cookie(request, response)
    return response


@router.get("/manage/")
async def studies(request: Request, token: str | None = None) -> Response:
    """List the studies; a link with the token signs the manager in."""
    if token is not None:
        return await run_in_threadpool(_sign_in, request, token, "/manage/")
    identity = await run_in_threadpool(_admitted, request)
    teams = {} if identity is not None else await run_in_threadpool(teams_of, request)
    if identity is None and not teams:
        return show_login(request)
    dashboards_of(request.app).warm_up()
    context = await run_in_threadpool(_listed, request.app.state.studies, None if identity is not None else teams)
    return page(
        request,
        "manage/studies.html",
        language="en",
        csrf=manage_csrf(request, next(iter(teams.values()), identity)),
        is_owner=identity is not None,
        **context,
    )


@router.post("/manage/")
def login(
    request: Request, token: Annotated[str, Form()] = "", path: Annotated[str, Form(alias="next")] = "/manage/"
) -> Response:
    """Sign somebody in with the token typed on the page: the owner, or a team member of the study they came for."""
    path = next_page(path)
    slug = path.removeprefix("/manage/").partition("/")[0]
    return _sign_in(request, token.strip(), path, request.app.state.studies.get(slug))


@router.post("/manage/sign-out")
def sign_out(request: Request, csrf: Annotated[str, Form()] = "") -> Response:
    """End the session in this browser, on the server too."""
    response = RedirectResponse(f"{request.app.state.studies.root_path}/manage/", 303)
    end_sessions(request, response, csrf)
    return response


def _listed(studies: Studies, teams: Mapping[str, Identity] | None) -> dict[str, Any]:
    """Return what the list shows: studies, drafts and unreadable folders; to team members only their studies."""
    rows = [_study_row(served) for served in studies.all() if teams is None or served.slug in teams]
    if teams is not None:
        return {"studies": rows, "drafts": [], "unreadable": {}, "workspace": ""}
    drafts = [
        {**draft, "updated": datetime.fromtimestamp(draft["updated"], UTC).isoformat()}
        for draft in draft_titles(Drafts(studies))
    ]
    return {
        "studies": rows,
        "drafts": drafts,
        "unreadable": studies.unreadable,
        "workspace": str(studies.home or ""),
    }


def _study_row(served: ServedStudy) -> dict[str, Any]:
    status = served.study.status()
    done, total = (sum(getattr(stage, name) for stage in status.stages) for name in ("done", "total"))
    annotators = f"{status.annotators:,} annotator{'' if status.annotators == 1 else 's'}"
    return {
        "url": served.manage_url,
        "judge": served.url,
        "title": served.study.config.title,
        "question": served.study.config.question,
        "state": status.state,
        "share": 100 * done // max(total, 1),
        "progress": f"{done:,} of {total:,} judgments by {annotators}",
    }


@router.get("/manage/new")
def new(request: Request) -> Response:
    """Show the five steps to a new study, to the owner of the server."""
    if not _is_owner(request):
        return show_login(request)
    return _new_study_page(request)


@router.get("/manage/drafts/{draft}")
def draft(request: Request, draft: str) -> Response:
    """Continue a draft."""
    if not _is_owner(request):
        return show_login(request)
    return _new_study_page(request, draft=Drafts(request.app.state.studies).get(draft).id)


def _new_study_page(request: Request, *, draft: str = "", study: str = "", title: str = "New study") -> Response:
    return page(
        request,
        "manage/new_study.html",
        language="en",
        csrf=manage_csrf(request),
        draft=draft,
        study=study,
        title=title,
    )


TABS = {
    "overview": ("./", "Overview"),
    "results": ("results", "Results"),
    "quality": ("quality", "Quality"),
    "annotators": ("annotators", "Annotators"),
    "activity": ("activity", "Activity"),
    "export": ("export", "Export"),
}
"""The tabs of a dashboard: their addresses, relative to the study's, and titles."""


@router.get("/manage/{study}/")
async def dashboard(served: StudyDep, request: Request, token: str | None = None) -> Response:
    """Show the overview of a study with the results so far; later ones arrive as live updates."""
    if token is not None:
        return await run_in_threadpool(_sign_in, request, token, f"/manage/{served.slug}/", served)
    return await _dashboard_page(served, request, "overview")


async def _dashboard_page(served: ServedStudy, request: Request, tab: str) -> Response:
    identity = await run_in_threadpool(_admitted, request)
    if identity is None:
        return show_login(request)
    summary = await _within_patience(summary_of(dashboard_of(request, served)))
    return await run_in_threadpool(_render_dashboard, served, request, tab, summary, identity.may_manage)


def _render_dashboard(
    served: ServedStudy, request: Request, tab: str, summary: SummaryOut | None, may_manage: bool
) -> Response:
    config = served.study.config
    return page(
        request,
        f"manage/{tab}.html",
        language="en",
        csrf=manage_csrf(request),
        study=served.slug,
        title=config.title,
        question=config.question,
        judge=served.url,
        may_manage=may_manage,
        tab=tab,
        tabs=[{"name": name, "url": url, "title": title} for name, (url, title) in TABS.items()],
        state=summary.state if summary is not None else "open",
        texts=summary.texts if summary is not None else defaultdict(str),
        verdict=summary.verdict if summary is not None else None,
        steps=summary.steps if summary is not None else [],
        first=summary.model_dump_json() if summary is not None else "",
        **_tab_context(served.study, tab),
    )


def _tab_context(study: Study, tab: str) -> dict[str, Any]:
    """Return what only one tab needs."""
    stages, items = study.config.stages, study.items
    if tab == "results":
        severities = dict.fromkeys(name for stage in marking_stages(study) for name in severity_order(stage.protocol))
        return {
            "systems": has_systems(items),
            "tournaments": tournament_design(stages) is not None,
            "severities": list(severities),
        }
    if tab == "quality":
        return {
            "about": [_about(stage) for stage in stages],
            "matching": matched_stage(study) is not None,
            "checks": study.config.quality.checks is not None,
            "unjudged": _has_unjudged(study),
        }
    if tab == "annotators":
        return {"checks": study.config.quality.checks is not None, "models": bool(study.judges.names())}
    if tab == "export":
        tournaments, marks = tournament_design(stages) is not None, bool(marking_stages(study))
        return {"downloads": _downloads(has_systems(items), tournaments, marks, _has_unjudged(study))}
    return {}


def _has_unjudged(study: Study) -> bool:
    """Whether annotators may answer that they cannot judge an item, or items were set aside."""
    return study.config.answers.cannot_judge or bool(study.quality.items_set_aside())


def _downloads(systems: bool, tournaments: bool, marks: bool, unjudged: bool) -> list[dict[str, Any]]:
    """Return the tables that can be downloaded, with what each is for."""
    rows = [
        ("scores", "Scores", "One row per item: score, interval, rank, number of judgments."),
        ("judgments", "Judgments", "One row per judgment, as steelyard fit and import read them; for other models."),
        ("answers", "Answers", "Every answer as it was given, with times, checks and repeats; for audits."),
        ("annotators", "Annotators", "One row per annotator: work, speed, agreement, checks, exclusions."),
        ("rater_effects", "Rater effects", "One row per annotator and criterion: infit, outfit, severity, drift."),
        ("item_fit", "Fit of the items", "One row per item: infit and outfit; high values mean disagreement."),
        ("distributions", "Answers by item", "One row per item and answer: how many annotators gave it."),
        ("soft_labels", "Soft labels", "One row per item: the proportion of each answer; for training models."),
        ("statistics", "Reliability", "Every statistic of reliability and agreement with its interval."),
        ("items", "Items", "The items as they were shown."),
    ]
    if systems:
        rows[1:1] = [
            ("systems", "Systems", "One row per system: score, interval, rank range, cluster."),
            ("differences", "Differences of systems", "One row per pair of systems: difference, interval, p-values."),
        ]
    if marks:
        rows.insert(2, ("marks", "Marked errors", "One row per mark: place, words, severity, category, origin."))
    if unjudged:
        rows.append(("unjudged", "Cannot judge", "One row per item that annotators could not judge, with the reasons."))
    if tournaments:
        rows += [
            ("sources", "Tournaments", "One row per source and annotator: comparisons and cycles."),
            ("adequacy", "Adequacy", "Adequacy labels and harmonized ranks of the items."),
            ("effort", "Effort", "How many adequacy labels were asked for and how many inferred."),
        ]
    tables = [
        {"name": name, "title": title, "purpose": purpose, "forms": ("csv", "jsonl", "parquet")}
        for name, title, purpose in rows
    ]
    log = {
        "name": "log",
        "title": "Log",
        "purpose": "Every event; the study can be rebuilt from it.",
        "forms": ("jsonl",),
    }
    return [*tables, log]


async def _within_patience(pending: Awaitable[T]) -> T | None:
    """Return the result if it arrives within `_PATIENCE`, else None: a new server reads the log first."""
    task = asyncio.ensure_future(pending)
    # Not wait_for, which would wait for the thread anyway: threads cannot be interrupted.
    done, _ = await asyncio.wait({task}, timeout=_PATIENCE)
    return task.result() if done else None


def _about(stage: Stage) -> dict[str, str]:
    why = " ".join((type(stage.design).__doc__ or "").strip().split("\n\n")[0].split()).replace("`", "")
    settings = ", ".join(f"{name} {value}" for name, value in stage.design.settings().items() if value is not None)
    return {
        "stage": stage.name,
        "protocol": stage.protocol.name,
        "design": stage.design.name,
        "why": why,
        "settings": settings,
    }


@router.get("/manage/{study}/results")
@router.get("/manage/{study}/quality")
@router.get("/manage/{study}/annotators")
@router.get("/manage/{study}/activity")
@router.get("/manage/{study}/export")
async def dashboard_tab(served: StudyDep, request: Request) -> Response:
    """Show a tab of the dashboard other than the overview."""
    return await _dashboard_page(served, request, request.url.path.rpartition("/")[2])


@router.get("/manage/{study}/item")
def item(served: StudyDep, request: Request) -> Response:
    """Show one item with all its judgments."""
    if not _admitted(request):
        return show_login(request)
    return page(
        request,
        "manage/item.html",
        language="en",
        csrf=manage_csrf(request),
        study=served.slug,
        title=served.study.config.title,
        item=request.query_params.get("id", ""),
    )


@router.get("/manage/{study}/annotator")
def annotator(served: StudyDep, request: Request) -> Response:
    """Show one annotator's work."""
    if not _admitted(request):
        return show_login(request)
    return page(
        request,
        "manage/annotator.html",
        language="en",
        csrf=manage_csrf(request),
        study=served.slug,
        title=served.study.config.title,
        annotator=request.query_params.get("id", ""),
    )


@router.get("/manage/{study}/edit")
def edit(served: StudyDep, request: Request) -> Response:
    """Show the steps with a study's settings, to those who may change it."""
    identity = _admitted(request)
    if identity is None or not identity.may_manage:
        return show_login(request)
    return _new_study_page(request, study=served.slug, title=served.study.config.title)


@router.get("/manage/{study}/team")
def team(served: StudyDep, request: Request) -> Response:
    """Show the team of a study, to those who may change it."""
    identity = _admitted(request)
    if identity is None or not identity.may_manage:
        return show_login(request)
    title = served.study.config.title
    return page(request, "manage/team.html", language="en", csrf=manage_csrf(request), study=served.slug, title=title)
