"""The state of a draft: everything that the pages of a new study show about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field

from steelyard.errors import ConfigError, DataError, Problem, SteelyardError
from steelyard.formats.item_columns import Role
from steelyard.formats.uploads import ENCODINGS
from steelyard.records import Item
from steelyard.study import StudyConfig
from steelyard.study.config import CONFIG_FILE
from steelyard.study.display import unblinding_warnings
from steelyard.web.content import media_file
from steelyard.web.draft_folders import DraftFolder, StagePlan, Step, stage_tables
from steelyard.web.drafts import (
    ProblemOut,
    checked,
    has_begun,
    page_of,
    page_settings,
    problems_out,
    protocol_of,
    task_preview,
    text_without_password,
)
from steelyard.web.schemas import TaskOut
from steelyard.web.study_plan import PlanOut, plan_of

_PREVIEW_ROWS = 8
_PREVIEW_CELL = 300
_MOST_ITEM_NAMES = 500
_MOST_MISSING = 20


class JudgmentsOut(BaseModel):
    """Judgments found in the uploaded file; `problem` says why they cannot be used."""

    tool: Annotated[str, Field(description="the tool that exported them; empty for a table")]
    kind: str
    count: int
    annotators: int
    items: int
    problem: str = ""


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
    judgments: JudgmentsOut | None = None


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
    extra_columns: Annotated[list[str], Field(description="columns of the items that have no role")]
    telling: Annotated[list[str], Field(description="what annotators learn from the columns shown, as warnings")]
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
        extra_columns=list(dict.fromkeys(name for item in items for name in item.metadata)),
        telling=unblinding_warnings(page_of(values), items),
        systems=sorted({item.group for item in items if item.group is not None})[:50],
        media=media_of(folder, items),
        questions={kind: folder.questions(kind) for kind in ("checks", "qualification", "training")},
        plan=plan,
        plans=folder.plans(values),
        automatic_model=about.automatic_model,
        annotators=about.annotators,
        seconds=about.seconds,
        previews=_previews(folder, values, config, items),
        page=page_settings(values, items),
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
        judgments=_judgments_out(folder),
    )
    return out, problems


def _judgments_out(folder: DraftFolder) -> JudgmentsOut | None:
    try:
        upload = folder.judgments()
    except DataError as error:
        return JudgmentsOut(tool="", kind="", count=0, annotators=0, items=0, problem=str(error.problems[0]))
    if upload is None:
        return None
    return JudgmentsOut(
        tool=upload.tool,
        kind=upload.judgments.kind,
        count=upload.count,
        annotators=len(upload.annotators),
        items=len(upload.items),
    )


def _located(problem: Problem) -> str:
    """Return a problem's description after its file and line."""
    where = " ".join(part for part in (problem.file, f"line {problem.line}" if problem.line else None) if part)
    return f"{where}: {problem.what}" if where else problem.what


def _short(cell: object) -> str:
    text = "" if cell is None else str(cell)
    return text if len(text) <= _PREVIEW_CELL else f"{text[:_PREVIEW_CELL]}…"


def media_of(folder: DraftFolder, items: list[Item]) -> MediaOut:
    """Hold the media files of a draft against its items."""
    names = set(folder.media_names())
    needed = {media_file(item.media)[0] for item in items if item.media}
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
    "answers": "question",
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
    "annotators.questionnaire": "quality",
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
    parts = [part for part in field.split(".") if not part.isdecimal()]
    if (key := ".".join(parts[:2])) in _FIELD_STEPS:
        return _FIELD_STEPS[key]
    if parts and parts[0] == "stage":
        parts = parts[1:] or ["protocol"]
    return _STEPS.get(parts[0], "share") if parts else "question"
