"""Studies created or edited in the browser: the draft, its checks, a preview, and the study.toml written from it."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Annotated, Any

import tomlkit
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tomlkit.items import Item as TomlItem

from steelyard import registry
from steelyard.designs.base import Design
from steelyard.designs.contexts import context_sizes
from steelyard.designs.description import describe_plan
from steelyard.errors import ConfigError, Problem, SteelyardError
from steelyard.formats.toml_reading import parse_toml, refuse_extreme_values
from steelyard.protocols import ErrorSpans, Protocol
from steelyard.records import Item
from steelyard.storage.engine import without_password
from steelyard.study import StudyConfig
from steelyard.study.check_plan import CheckPlan, describe_checks
from steelyard.study.config import CONFIG_FILE
from steelyard.study.config.tables import Page
from steelyard.study.confinement import (
    MARKER_FILE,
    confine,
    confinement_problems,
    is_confined,
    plain_file,
    texts_in,
)
from steelyard.study.display import label_beside
from steelyard.study.opening import check_study, read_checks
from steelyard.web.catalogue import study_direction
from steelyard.web.content import MediaFolder, contents_of
from steelyard.web.documents import Documents
from steelyard.web.errors import Refusal
from steelyard.web.schemas import TaskDisplay, TaskOut, task_shown
from steelyard.web.settings_forms import FormsOut, forms
from steelyard.web.studies import ServedStudy, Studies

__all__ = [
    "DraftCheckOut",
    "Draft",
    "DraftOut",
    "FormsOut",
    "SavedStudyOut",
    "check_draft",
    "draft_of",
    "forms",
    "create_study",
    "save_draft",
]

_ITEM_FILES = (".csv", ".tsv", ".jsonl")


class ItemsFile(BaseModel):
    """The items, as the text of a CSV, TSV or JSON-lines file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=200)]
    text: str


class Draft(BaseModel):
    """A study that is being edited: `values` with the keys of study.toml, or `text`, the text of study.toml.

    A value of the form {"$toml": "…"} is read as TOML. `items` may be omitted if the study has items already.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    values: dict[str, Any] = {}
    text: str | None = None
    items: ItemsFile | None = None
    study: Annotated[str | None, Field(description="slug of the study to change; null for a new study")] = None


class ProblemOut(BaseModel):
    """One problem: what is wrong, in which field, and what to do."""

    field: str | None
    what: str
    remedy: str


class DraftCheckOut(BaseModel):
    """The problems of a draft, the size of the study, and a preview of a task."""

    problems: list[ProblemOut]
    items: int | None = None
    judgments: Annotated[int | None, Field(description="number of judgments that the design asks for")] = None
    plan: Annotated[list[str], Field(description="what will be asked, in sentences")] = []
    warnings: Annotated[list[str], Field(description="items that cannot be compared as expected")] = []
    preview: TaskOut | None = None
    page: dict[str, Any] = {}
    text: Annotated[str, Field(description="the study.toml that would be written")] = ""


class SavedStudyOut(BaseModel):
    """The study that was created or changed; if there are problems, nothing was saved."""

    study: str | None = None
    url: str | None = None
    problems: list[ProblemOut] = []


class DraftOut(BaseModel):
    """A study's configuration. `begun`: a task was leased, so the question and the protocol can no longer change."""

    values: dict[str, Any]
    text: str
    begun: bool
    by_form: Annotated[
        bool, Field(description="whether the form can show it; studies with several stages are edited as text")
    ]
    items: str


def check_draft(draft: Draft, changed: ServedStudy | None = None) -> DraftCheckOut:
    """Check a draft without saving it; `changed` is the study that it would change."""
    try:
        draft = draft if changed is None else with_password(draft, changed)
        values = _values(draft, changed)
        text = draft.text if draft.text is not None else toml_text(values)
        _refuse_other_places(text, changed)
    except ConfigError as error:
        return DraftCheckOut(problems=problems_out(error.problems), text=draft.text or "")
    check_plan = CheckPlan((), ())
    with _scratch(draft, text, changed) as folder:
        config, items, problems = checked(folder)
        if config is not None and not problems:
            check_plan = describe_checks(config, len(read_checks(folder, config, items)))
    preview, page = preview_of(values, config, items)
    plans = []
    if config is not None and not problems:
        plans = [describe_plan(stage.design, stage.protocol, items) for stage in config.stages]
    return DraftCheckOut(
        problems=problems_out(problems),
        items=len(items) if items else None,
        judgments=sum(plan.size.judgments for plan in plans) if plans else None,
        plan=[*(sentence for plan in plans for sentence in plan.sentences), *check_plan.sentences],
        warnings=[*(warning for plan in plans for warning in plan.warnings), *check_plan.warnings],
        preview=preview,
        page=page,
        text=text_without_password(text, values),
    )


def create_study(studies: Studies, draft: Draft) -> SavedStudyOut:
    """Create a study in a new folder beside the served ones, and serve it; on failure nothing is left behind."""
    parent = studies.home
    if parent is None:
        raise Refusal(409, "nowhere", "There is no folder for new studies.", "Start the server with --workspace DIR.")
    if draft.items is None:
        return SavedStudyOut(problems=[ProblemOut(field="items", what="there are no items.", remedy="Choose a file.")])
    try:
        values = _values(draft)
        folder = free_folder(parent, str(values.get("title", "")))
        if draft.text is None:
            # Studies that share a database need distinct names.
            values = {**values, "name": values.get("name") or folder.name}
        text = draft.text if draft.text is not None else toml_text(values)
        _refuse_other_places(text)
    except ConfigError as error:
        return SavedStudyOut(problems=problems_out(error.problems))
    with _scratch(draft, text, None, parent) as scratch:
        _, _, problems = checked(scratch)
        if problems:
            return SavedStudyOut(problems=problems_out(problems))
        folder.mkdir()
        try:
            # Written first, so that the folder is never opened without its restrictions.
            confine(folder)
            for file in scratch.iterdir():
                shutil.move(file, folder / file.name)
            new = studies.add(folder)
        except BaseException as error:
            shutil.rmtree(folder)
            if isinstance(error, SteelyardError):
                return SavedStudyOut(problems=problems_out(error.problems))
            raise
    return SavedStudyOut(study=new.slug, url=new.manage_url)


def draft_of(served: ServedStudy) -> DraftOut:
    """Return a study's configuration for its form, without the password of its database."""
    config = served.study.config
    source = dict(config.source or {})
    text = text_without_password((served.folder / CONFIG_FILE).read_text(encoding="utf-8"), source)
    if isinstance(own := source.get("database"), str):
        source["database"] = without_password(own)
    return DraftOut(
        values=source,
        text=text,
        begun=has_begun(served),
        by_form="stage" not in source,
        items=config.items.file,
    )


def text_without_password(text: str, values: Mapping[str, Any]) -> str:
    """Return the text of study.toml without the password; `values` are its parsed contents."""
    own = values.get("database")
    if not isinstance(own, str) or (shown := without_password(own)) == own:
        return text
    hidden = text.replace(own, shown)
    try:
        if hidden != text and parse_toml(hidden).get("database") == shown:
            return hidden
    except ConfigError:
        pass
    # The address is written with escapes, so it cannot be replaced in the text.
    return toml_text({**values, "database": shown})


def with_password(draft: Draft, served: ServedStudy) -> Draft:
    """Restore the database's password where it was hidden."""
    text = None if draft.text is None else with_password_text(draft.text, served)
    return draft.model_copy(update={"values": with_password_values(draft.values, served), "text": text})


def with_password_text(text: str, served: ServedStudy | None) -> str:
    """Restore the database's password in a text of study.toml."""
    own, shown = _database_of(served)
    return text if own is None or shown is None else text.replace(shown, own)


def with_password_values(values: dict[str, Any], served: ServedStudy | None) -> dict[str, Any]:
    """Restore the database's password in the values of a form."""
    own, shown = _database_of(served)
    return {**values, "database": own} if own is not None and values.get("database") == shown else values


def _database_of(served: ServedStudy | None) -> tuple[str | None, str | None]:
    """Return the database of a study with and without its password; None if there is nothing to hide."""
    own = None if served is None else (served.study.config.source or {}).get("database")
    if not isinstance(own, str) or (shown := without_password(own)) == own:
        return None, None
    return own, shown


def has_begun(served: ServedStudy) -> bool:
    """Whether a task was ever leased."""
    status = served.study.status()
    return bool(status.judgments or status.skips or status.expired or any(s.leased for s in status.stages))


def save_draft(served: ServedStudy, draft: Draft, *, member: str = "") -> SavedStudyOut:
    """Change a study; if the new configuration cannot be opened, the old one is restored.

    `member` is the member of the team who changes it.
    """
    try:
        draft = with_password(draft, served)
        values = _values(draft, served)
        text = draft.text if draft.text is not None else toml_text(_with_hidden_keys(served, values))
        _refuse_other_places(text, served)
    except ConfigError as error:
        return SavedStudyOut(problems=problems_out(error.problems))
    with _scratch(draft, text, served) as folder:
        config, _, problems = checked(folder)
    if problems or config is None:
        return SavedStudyOut(problems=problems_out(problems))
    new = {CONFIG_FILE: text.encode()}
    if draft.items is not None:
        new[_upload_name(draft.items, served)] = draft.items.text.encode()
    return replace_files(served, new, member=member)


def replace_files(served: ServedStudy, new: Mapping[str, bytes], *, member: str = "") -> SavedStudyOut:
    """Replace files of a study and open it again; if it cannot be opened, the old files are restored."""
    old = {name: path.read_bytes() if (path := served.folder / name).is_file() else None for name in new}
    try:
        for name, content in new.items():
            _replace(served.folder / name, content)
        served.reopen(member)
    except BaseException as error:
        for name, before in old.items():
            if before is None:
                (served.folder / name).unlink(missing_ok=True)
            else:
                _replace(served.folder / name, before)
        if isinstance(error, SteelyardError):
            return SavedStudyOut(problems=problems_out(error.problems))
        raise
    return SavedStudyOut(study=served.slug, url=served.manage_url)


def _with_hidden_keys(served: ServedStudy, values: Mapping[str, Any]) -> dict[str, Any]:
    """Add the keys that the form does not show: the files of items and the database."""
    source = served.study.config.source or {}
    return {**{key: source[key] for key in ("version", "items", "name", "database", "seed") if key in source}, **values}


def _replace(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    os.replace(part, path)


def free_folder(parent: Path, title: str) -> Path:
    """Return a folder that does not exist yet, named after a title."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60] or "study"
    folder, number = parent / name, 1
    while os.path.lexists(folder):
        number += 1
        folder = parent / f"{name}-{number}"
    return folder


# Reading a draft


def _values(draft: Draft, changed: ServedStudy | None = None) -> dict[str, Any]:
    """Return a draft's values under the keys of study.toml."""
    if draft.text is not None:
        refuse_odd_characters({"text": draft.text})
        values = parse_toml(draft.text, field="text")
        if draft.items is not None:
            _refuse_other_items(values, _upload_name(draft.items, changed))
    else:
        refuse_odd_characters(draft.values)
        values = _read(draft.values, "")
        refuse_extreme_values(values)
        if draft.items is not None:
            values["items"] = _upload_name(draft.items, changed)
    if draft.items is not None:
        refuse_odd_characters({"items": draft.items.text})
    return values


def _refuse_other_items(values: Mapping[str, Any], name: str) -> None:
    """Refuse a study.toml that names another items file than the one the server chose for the upload."""
    items = values.get("items")
    file = items.get("file") if isinstance(items, Mapping) else items
    if isinstance(file, str) and file != name:
        raise ConfigError(
            f"the uploaded items are saved as {name}, but study.toml names another file.",
            f'Write items = "{name}".',
            field="items",
        )


def _read(value: Mapping[str, Any], path: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, inner in value.items():
        place = f"{path}.{key}".lstrip(".")
        if isinstance(inner, Mapping) and set(inner) == {"$toml"}:
            values[key] = _toml_value(str(inner["$toml"]), place)
        else:
            values[key] = _read(inner, place) if isinstance(inner, Mapping) else inner
    return values


def _toml_value(text: str, field: str) -> Any:
    try:
        return parse_toml(f"value = {text}", field=field)["value"]
    except ConfigError as error:
        raise ConfigError(
            [replace(p, remedy="Write it as in study.toml, e.g. { fluency = {} }.") for p in error.problems]
        ) from None


def _upload_name(items: ItemsFile, changed: ServedStudy | None = None) -> str:
    """Choose the name under which uploaded items are saved; only the suffix comes from the browser."""
    suffix = PurePath(items.name).suffix.lower()
    if suffix not in _ITEM_FILES:
        raise ConfigError(
            f"'{_plain(items.name)}' is not a file of items.",
            f"Choose one that ends in {', '.join(_ITEM_FILES)}.",
            field="items",
        )
    if changed is None:
        return f"items{suffix}"
    current = changed.study.config.items.file
    if plain_file(current, (suffix,)) and not (changed.folder / current).is_symlink():
        return current
    # Do not overwrite a file with another purpose, such as a table of checks.
    name, number = f"items{suffix}", 1
    while os.path.lexists(changed.folder / name):
        number += 1
        name = f"items-{number}{suffix}"
    return name


def _refuse_other_places(text: str, changed: ServedStudy | None = None) -> None:
    """Refuse a study.toml that names files or databases outside the study's folder.

    Whoever manages studies may not be allowed to read every file of the machine.
    """
    folder = None if changed is None else changed.folder
    unchanged = None if changed is None or is_confined(changed.folder) else changed.study.config.source
    problems = confinement_problems(parse_toml(text, field="text"), folder, unchanged)
    if problems:
        raise ConfigError(problems)


def refuse_odd_characters(values: Mapping[str, Any]) -> None:
    """Refuse texts that UTF-8 cannot encode."""
    problems = [
        Problem("it contains characters that cannot be stored in a file.", "Write it again.", field=_plain(path))
        for path, _, text in texts_in(values)
        if _plain(path + text) != path + text
    ]
    if problems:
        raise ConfigError(problems)


def _plain(text: str) -> str:
    """Remove characters that UTF-8 cannot encode."""
    return text.encode("utf-8", "ignore").decode()


@contextmanager
def _scratch(draft: Draft, text: str, changed: ServedStudy | None, parent: Path | None = None) -> Iterator[Path]:
    """Write a draft into a temporary folder, with links to the files of the study it changes."""
    with tempfile.TemporaryDirectory(prefix=".steelyard-new-", dir=parent) as scratch:
        folder = Path(scratch)
        for file in () if changed is None else changed.folder.iterdir():
            if file.name not in {CONFIG_FILE, MARKER_FILE} and ".db" not in file.name:
                (folder / file.name).symlink_to(file.resolve())
        (folder / CONFIG_FILE).write_text(text, encoding="utf-8")
        if draft.items is not None:
            name = _upload_name(draft.items, changed)
            (folder / name).unlink(missing_ok=True)
            (folder / name).write_text(draft.items.text, encoding="utf-8")
        yield folder


def checked(folder: Path) -> tuple[StudyConfig | None, list[Item], list[Problem]]:
    """Check the study in a folder; return its configuration and items as far as they are valid, and all problems."""
    try:
        config, items = check_study(folder)
    except SteelyardError as error:
        # The path of the temporary folder means nothing to the reader.
        hidden = [_without_path(problem, folder) for problem in error.problems]
        return None, _items_alone(folder), hidden
    return config, items, []


def _without_path(problem: Problem, folder: Path) -> Problem:
    what = problem.what.replace(f"{folder}/", "").replace(str(folder), "the study")
    return Problem(what, problem.remedy, problem.file, problem.line, problem.field)


def _items_alone(folder: Path) -> list[Item]:
    from steelyard.formats import read_items

    for suffix in _ITEM_FILES:
        path = folder / f"items{suffix}"
        if path.is_file():
            try:
                return read_items(path)
            except SteelyardError:
                return []
    return []


def problems_out(problems: Iterable[Problem]) -> list[ProblemOut]:
    """Return problems for the browser; those of other files than study.toml belong to the items."""
    rows = []
    for problem in problems:
        in_items = problem.file not in {None, CONFIG_FILE}
        line = f"{problem.file} line {problem.line}: " if in_items and problem.line else ""
        column = f"({problem.field}) " if in_items and problem.field else ""
        field = "items" if in_items else problem.field
        rows.append(ProblemOut(field=field, what=f"{line}{column}{problem.what}", remedy=problem.remedy))
    return rows


def toml_text(values: Mapping[str, Any]) -> str:
    """Write a study's values as TOML: plain keys first, then tables. None is left out, because TOML has no null."""
    document = tomlkit.document()
    document.add(tomlkit.comment("A Steelyard study, written in the browser. All settings: steelyard docs study-toml"))
    # `items` is written among the plain keys, as an inline table if it has settings.
    stages = values.get("stage")
    has_stages = isinstance(stages, list) and bool(stages) and all(isinstance(one, Mapping) and one for one in stages)
    for key in sorted(values, key=lambda key: key == "items" and isinstance(values[key], Mapping)):
        is_plain = key == "items" or not isinstance(values[key], Mapping)
        if values[key] is not None and is_plain and not (has_stages and key == "stage"):
            document.add(key, _toml_item(values[key]))
    if has_stages and isinstance(stages, list):
        array = tomlkit.aot()
        for stage in stages:
            table = tomlkit.table()
            for name, part in stage.items():
                if part is not None:
                    table.add(name, _toml_item(part))
            array.append(table)
        document.add("stage", array)
    for key, value in values.items():
        if isinstance(value, Mapping) and key != "items":
            table = tomlkit.table()
            for name, part in value.items():
                if part is not None:
                    table.add(name, _toml_item(part))
            if table:
                document.add(key, table)
    return tomlkit.dumps(document)


def _toml_item(value: Any) -> TomlItem:
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        for key, part in value.items():
            if part is not None:
                table.add(key, _toml_item(part))
        return table
    if isinstance(value, Sequence) and not isinstance(value, str):
        array = tomlkit.array()
        for part in value:
            if part is not None:
                array.append(_toml_item(part))
        return array
    scalar: TomlItem = tomlkit.item(value)
    return scalar


_MOST_EXAMPLES = 50
"""Maximum number of placeholder items in a preview of a study without items."""
_EXAMPLES = (
    "the first",
    "the second",
    "the third",
    "the fourth",
    "the fifth",
    "the sixth",
    "the seventh",
    "the eighth",
)


def preview_of(
    values: Mapping[str, Any], config: StudyConfig | None, items: list[Item], media: MediaFolder | None = None
) -> tuple[TaskOut | None, dict[str, Any]]:
    """Return a preview of a task of the first stage, with the first items or placeholders, and the page's settings."""
    table = values.get("protocol")
    protocol = config.stages[0].protocol if config is not None else protocol_of(table)
    if protocol is None:
        return None, {}
    design = None if config is None else config.stages[0].design
    return task_preview(values, protocol, design, items, media), page_settings(values, items)


def task_preview(
    values: Mapping[str, Any],
    protocol: Protocol,
    design: Design | None,
    items: list[Item],
    media: MediaFolder | None = None,
    question: object = None,
) -> TaskOut:
    """Return a task as annotators would see it, with items that may be shown together, or placeholders.

    `question` is that of the stage, where it has its own.
    """
    task_items = _example_items(protocol, design, items)[: protocol.task_size] or [
        Item(str(number), _EXAMPLES[number % len(_EXAMPLES)])
        for number in range(min(protocol.task_size, _MOST_EXAMPLES))
    ]
    display = TaskDisplay(
        str(question or values.get("question") or ""),
        page_of(values),
        media or MediaFolder(Path("media"), ""),
        Documents(items, protocol.document) if isinstance(protocol, ErrorSpans) and protocol.document else None,
    )
    task = task_shown(display, "preview", protocol.name, protocol, tuple(task_items))
    return task.model_copy(update={"settings": json.loads(json.dumps(task.settings))})


def page_of(values: Mapping[str, Any]) -> Page:
    """Return the [page] table of a draft; the default one while it is not valid."""
    try:
        return Page.model_validate(values.get("page") or {})
    except ValidationError:
        return Page()


def page_settings(values: Mapping[str, Any], items: list[Item]) -> dict[str, Any]:
    """Return the settings of the annotator's page that a preview needs."""
    page = page_of(values)
    own = {
        "show_value": page.show_value,
        "sort_live": page.sort_live,
        "context_label": label_beside("context", page),
        "reference_label": label_beside("reference", page),
        "reading": contents_of(items, page).for_reading,
        "sync_audio": page.sync_audio,
        "must_play": page.must_play,
    }
    direction = study_direction(str(values.get("question") or ""), None)
    answers = values.get("answers")
    answers = answers if isinstance(answers, Mapping) else {}
    reasons = answers.get("reasons")
    offered = {
        "cannot_judge": answers.get("cannot_judge") is True,
        "reasons": [str(reason) for reason in reasons] if isinstance(reasons, list) else [],
        "comments": answers.get("comments") is True,
    }
    return {**own, "direction": direction, **offered}


def _example_items(protocol: Protocol, design: Design | None, items: list[Item]) -> list[Item]:
    """Return items that a task may show together: those of the first large enough context."""
    if design is None or not design.within_contexts(protocol):
        return items
    sizes = context_sizes(items)
    context = next((name for name, count in sizes.items() if count >= protocol.task_size), None)
    return [item for item in items if item.context == context] or items


def protocol_of(table: object) -> Protocol | None:
    """Return the protocol of a table of study.toml; None if it is not valid."""
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
        return None
    settings = {key: value for key, value in table.items() if key != "name"}
    try:
        protocol: Protocol = registry.create("protocols", table["name"], settings)
    except ConfigError:
        return None
    return protocol
