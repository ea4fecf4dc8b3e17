"""Reports created in the browser: a separate process builds them, and they are stored in the study's folder.

Each report is a record `reports/ID.json` beside its files. The process that builds the report updates the record, so
every worker of a server sees the progress, and a finished report survives a restart.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from steelyard.analysis.activity import SCHEMA
from steelyard.errors import SteelyardError
from steelyard.web.calculator_process import Source, end_pool, lower_priority, new_pool, without_sigint
from steelyard.web.errors import Refusal
from steelyard.web.identity import Manager, StudyDep, Viewer
from steelyard.web.schemas import ErrorOut

FOLDER = "reports"
MOST_KEPT = 20
"""Number of reports that are kept; older ones are deleted."""
_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")
_INTERRUPTED = "The server was stopped while this report was created. Create it again."

Form = Literal["html", "pdf"]


class ReportOut(BaseModel):
    """A report: how far it is, and the files that can be downloaded."""

    id: str
    state: Literal["running", "done", "failed"]
    step: Annotated[str, Field(description="the current step")] = ""
    progress: Annotated[float, Field(description="from 0 to 1")] = 0.0
    wanted: Annotated[list[Form], Field(description="the requested files")]
    files: Annotated[dict[Form, int], Field(description="the existing files, with their sizes in bytes")] = {}
    judgments: Annotated[int, Field(description="number of judgments when it was created")]
    real_ids: bool = False
    created: datetime
    finished: datetime | None = None
    by: Annotated[str, Field(description="who created it, if known")] = ""
    error: Annotated[str, Field(description="the error; empty if there was none")] = ""


class _Record(ReportOut):
    """A report as its file keeps it, with the process that builds it."""

    pid: int

    def save(self, folder: Path) -> None:
        """Write the record; a reader sees the former or the new one, never half of it."""
        path = folder / FOLDER / f"{self.id}.json"
        scratch = path.with_suffix(f".{os.getpid()}.tmp")
        scratch.write_text(self.model_dump_json(), encoding="utf-8")
        scratch.replace(path)


class ReportsOut(BaseModel):
    """The reports of a study, latest first."""

    reports: list[ReportOut]
    can_print: Annotated[bool, Field(description="whether the server can make a PDF: it needs an installed Chromium")]


class NewReport(BaseModel):
    """The report to create: its files, and whether annotators have their own names in it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    forms: Annotated[list[Form], Field(min_length=1, max_length=2)] = ["html"]
    real_ids: bool = False


# The folder of reports


def reports_of(folder: Path) -> list[ReportOut]:
    """Return the reports of a study's folder, latest first."""
    return [ReportOut(**record.model_dump(exclude={"pid"})) for record in _records(folder)]


def _records(folder: Path) -> list[_Record]:
    records = []
    for path in sorted((folder / FOLDER).glob("*.json"), reverse=True):
        try:
            record = _Record.model_validate_json(path.read_bytes())
        except (ValidationError, OSError):
            continue
        if record.state == "running" and not _is_alive(record.pid):
            record = record.model_copy(update={"state": "failed", "error": _INTERRUPTED})
        records.append(record)
    return records


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def delete_reports(folder: Path) -> int:
    """Delete every report of a study, as after an annotator was forgotten; return how many there were."""
    count = len(_records(folder))
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    return count


def report_rows(folder: Path) -> pl.DataFrame:
    """Return the finished reports as rows of the study's activity."""
    rows = [
        (
            report.finished,
            "reports",
            report.by,
            f"Report created ({', '.join(report.files).upper()}) from {report.judgments:,} judgments",
            report.error,
        )
        for report in reports_of(folder)
        if report.state == "done" and report.finished is not None
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


# Building


def build(source: Source, record_json: str) -> None:
    """Build a report and keep its record up to date; runs in a process of its own."""
    lower_priority()
    folder = Path(source.folder)
    record = _Record.model_validate_json(record_json).model_copy(update={"pid": os.getpid()})
    record.save(folder)
    try:
        record = _write_files(source, record)
        record = record.model_copy(update={"state": "done", "progress": 1.0, "step": ""})
    except SteelyardError as error:
        problem = error.problems[0]
        record = record.model_copy(update={"state": "failed", "error": f"{problem.what} {problem.remedy}".strip()})
    except Exception as error:
        # Every exception: whoever waits for the report must learn that it will not come.
        record = record.model_copy(
            update={"state": "failed", "error": f"The report could not be created ({type(error).__name__}: {error})."}
        )
    record.model_copy(update={"finished": datetime.now(UTC)}).save(folder)


def _write_files(source: Source, record: _Record) -> _Record:
    from steelyard.report.builder import STEPS, build_report
    from steelyard.report.document import Figure
    from steelyard.report.html import html_page
    from steelyard.report.pdf import print_pdf
    from steelyard.study import Study

    folder = Path(source.folder)
    # Drawing takes about as long as computing; printing about as long as three steps.
    total = 2 * len(STEPS) + (3 if "pdf" in record.wanted else 0)
    done = 0

    def on_step(prefix: str) -> Callable[[str], None]:
        def update(step: str) -> None:
            nonlocal done
            done += 1
            progress = min(0.98, done / total)
            record.model_copy(update={"step": f"{prefix} {step}", "progress": progress}).save(folder)

        return update

    with Study.open(folder, database=source.database) as study:
        document = build_report(study, real_ids=record.real_ids, on_step=on_step("computing"))
    figures = sum(isinstance(block, Figure) for block in document.blocks())
    total = len(STEPS) + figures + (3 if "pdf" in record.wanted else 0)
    page = folder / FOLDER / f"{record.id}.html"
    page.write_text(html_page(document, on_step("drawing")), encoding="utf-8")
    files: dict[str, int] = {"html": page.stat().st_size}
    error = ""
    if "pdf" in record.wanted:
        on_step("printing")("the PDF")
        target = page.with_suffix(".pdf")
        try:
            print_pdf(page, target)
            files["pdf"] = target.stat().st_size
        except SteelyardError as problem:
            error = f"There is no PDF: {problem.problems[0].what} The HTML file is complete."
    return record.model_copy(update={"files": files, "error": error})


class ReportProcesses:
    """The processes of this server that build reports."""

    def __init__(self) -> None:
        self._pools: set[ProcessPoolExecutor] = set()

    def start(self, source: Source, record: _Record) -> None:
        """Build a report in a process of its own."""
        pool = new_pool()
        self._pools.add(pool)

        def on_done(future: Future[None]) -> None:
            self._pools.discard(pool)
            pool.shutdown(wait=False)
            if not future.cancelled() and future.exception() is not None:
                # The process was killed or ran out of memory.
                failed = {"state": "failed", "error": "The process that created the report ended unexpectedly."}
                record.model_copy(update=failed).save(Path(source.folder))

        with without_sigint():
            pool.submit(build, source, record.model_dump_json()).add_done_callback(on_done)

    def end(self) -> None:
        """End all of them at once."""
        for pool in list(self._pools):
            end_pool(pool)


# The API

_REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"model": ErrorOut, "description": "Not the manager."},
    404: {"model": ErrorOut, "description": "There is no such study or report."},
    409: {"model": ErrorOut, "description": "It cannot be created."},
}
router = APIRouter(prefix="/api/v1/studies/{study}/manage/reports", tags=["manage"], responses=_REFUSALS)


def processes_of(request: Request) -> ReportProcesses:
    """Return the report processes of a server; they are created at the first call."""
    if not hasattr(request.app.state, "report_processes"):
        request.app.state.report_processes = ReportProcesses()
    processes: ReportProcesses = request.app.state.report_processes
    return processes


@router.get("")
def list_reports(served: StudyDep, viewer: Viewer) -> ReportsOut:
    """The reports of a study, latest first, with the progress of one that is being created."""
    from steelyard.report.pdf import find_chromium

    # Annotators' own names are for those who manage the study.
    reports = [report for report in reports_of(served.folder) if viewer.may_manage or not report.real_ids]
    return ReportsOut(reports=reports, can_print=find_chromium() is not None)


@router.post("", status_code=202)
async def create_report(served: StudyDep, request: Request, manager: Manager, body: NewReport) -> ReportOut:
    """Create a report in the background; while one is being created, that one is returned."""
    from steelyard.report.pdf import find_chromium

    if "pdf" in body.forms and find_chromium() is None:
        raise Refusal(
            409,
            "no_chromium",
            "Writing a PDF needs Chromium, which is not installed on the server.",
            "Create the HTML report and print it from your browser, or install Chromium on the server.",
            field="forms",
        )

    def begin() -> ReportOut:
        records = _records(served.folder)
        running = next((one for one in records if one.state == "running"), None)
        if running is not None:
            return running
        folder = served.folder / FOLDER
        folder.mkdir(exist_ok=True)
        for old in records[MOST_KEPT - 1 :]:
            for path in folder.glob(f"{old.id}.*"):
                path.unlink(missing_ok=True)
        now = datetime.now(UTC)
        record = _Record(
            id=f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}",
            state="running",
            step="starting",
            wanted=sorted(set(body.forms)),
            judgments=served.study.status().judgments,
            real_ids=body.real_ids,
            created=now,
            by=manager.name,
            pid=os.getpid(),
        )
        record.save(served.folder)
        processes_of(request).start(Source(str(served.folder), served.database), record)
        return record

    record = await run_in_threadpool(begin)
    return ReportOut(**record.model_dump(exclude={"pid"}))


@router.get("/{report}.{form}", response_class=Response)
def download_report(served: StudyDep, viewer: Viewer, report: str, form: Form) -> Response:
    """A finished report as a file."""
    path = served.folder / FOLDER / f"{report}.{form}"
    record = next((one for one in _records(served.folder) if one.id == report), None)
    is_there = _ID.fullmatch(report) and record is not None and form in record.files and path.is_file()
    if record is None or not is_there or (record.real_ids and not viewer.may_manage):
        raise Refusal(404, "no_such_report", "There is no such report.", "Create it on the tab Export.")
    name = f"{served.slug}-report-{report[:8]}.{form}"
    media = "text/html; charset=utf-8" if form == "html" else "application/pdf"
    return FileResponse(path, media_type=media, filename=name, headers={"Cache-Control": "no-store"})
