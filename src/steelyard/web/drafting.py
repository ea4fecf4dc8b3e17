"""Making and changing a study in the browser: its form, its checks, and the study.toml that comes of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from steelyard import registry
from steelyard.errors import ConfigError, Problem, SteelyardError
from steelyard.protocols.base import Protocol
from steelyard.records import Item
from steelyard.store.engine import without_password
from steelyard.study import StudyConfig
from steelyard.study.config import CONFIG_FILE
from steelyard.study.opening import check_study
from steelyard.web.content import block, render
from steelyard.web.errors import Refusal
from steelyard.web.settings_forms import FormsOut, forms
from steelyard.web.shapes import ItemOut, SharedOut, TaskOut, settings_out
from steelyard.web.studies import Served, Studies
from steelyard.web.toml_writing import toml_text

__all__ = [
    "CheckedOut",
    "Draft",
    "DraftOut",
    "FormsOut",
    "MadeOut",
    "check_draft",
    "draft_of",
    "forms",
    "make_study",
    "save_draft",
]

_ITEM_FILES = (".csv", ".tsv", ".jsonl")
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
_FILE_KEYS = {"items", "file", "training", "media"}
_TEXT_KEYS = {"consent", "instructions"}
"""Keys that hold a text, or the name of a file with it."""


class ItemsFile(BaseModel):
    """The items, as the text of a CSV, TSV or JSON-lines file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=200)]
    text: str


class Draft(BaseModel):
    """A study as somebody is writing it: `values` as study.toml has them, or `text` for study.toml itself.

    A value of the form {"$toml": "…"} is read as TOML. `items` may be left out where the study has some.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    values: dict[str, Any] = {}
    text: str | None = None
    items: ItemsFile | None = None
    study: Annotated[str | None, Field(description="the study that is changed; none for a new one")] = None


class ProblemOut(BaseModel):
    """One thing that is wrong, at which field, and how to mend it."""

    field: str | None
    what: str
    remedy: str


class CheckedOut(BaseModel):
    """What is wrong with a draft, how large it would be, and a task as people would see it."""

    problems: list[ProblemOut]
    items: int | None = None
    judgments: Annotated[int | None, Field(description="how many the design asks for in all")] = None
    preview: TaskOut | None = None
    page: dict[str, Any] = {}
    text: Annotated[str, Field(description="the study.toml that would be written")] = ""


class MadeOut(BaseModel):
    """A study that was made or changed; with problems, nothing was."""

    study: str | None = None
    url: str | None = None
    problems: list[ProblemOut] = []


class DraftOut(BaseModel):
    """A study's configuration; `begun` once somebody was asked, when the question and the protocol have to stay."""

    values: dict[str, Any]
    text: str
    begun: bool
    by_form: Annotated[bool, Field(description="whether the form can show it: several stages need the text")]
    items: str


def check_draft(draft: Draft, changed: Served | None = None) -> CheckedOut:
    """Check a draft without keeping anything; `changed` is the study that it would change."""
    try:
        draft = draft if changed is None else _with_password(draft, changed)
        values = _values(draft, changed)
    except ConfigError as error:
        return CheckedOut(problems=_out(error.problems), text=draft.text or "")
    text = draft.text if draft.text is not None else toml_text(values)
    with _scratch(draft, text, None if changed is None else changed.folder) as folder:
        config, items, problems = _checked(folder)
    preview, page = _preview(values, config, items)
    judgments = None
    if config is not None and not problems:
        judgments = sum(
            stage.design.goal(stage.design.new_progress(stage.protocol, items), stage.protocol.task_size).total
            for stage in config.stages
        )
    return CheckedOut(
        problems=_out(problems),
        items=len(items) if items else None,
        judgments=judgments,
        preview=preview,
        page=page,
        text=without_password(text),
    )


def make_study(studies: Studies, draft: Draft) -> MadeOut:
    """Make a study in a folder of its own, beside those that are served, and serve it; all of it or nothing."""
    served = studies.all()
    if not served:
        raise Refusal(409, "nowhere", "There is no study here beside which to put a new one.", "Use: steelyard new.")
    if draft.items is None:
        return MadeOut(problems=[ProblemOut(field="items", what="there are no items.", remedy="Choose a file.")])
    try:
        values = _values(draft)
        title = str(tomllib.loads(draft.text).get("title", "")) if draft.text is not None else values.get("title", "")
    except (ConfigError, tomllib.TOMLDecodeError) as error:
        found = error.problems if isinstance(error, ConfigError) else [Problem(f"not valid TOML: {error}.")]
        return MadeOut(problems=_out(found))
    parent = served[0].folder.parent
    folder = _free_folder(parent, str(title))
    if draft.text is None:
        # In a database that several studies share, each needs a name.
        values = {**values, "name": values.get("name") or folder.name}
    text = draft.text if draft.text is not None else toml_text(values)
    with _scratch(draft, text, None, parent) as made:
        _, _, problems = _checked(made)
        if problems:
            return MadeOut(problems=_out(problems))
        folder.mkdir()
        for file in made.iterdir():
            shutil.move(file, folder / file.name)
    try:
        new = studies.add(folder)
    except SteelyardError as error:
        shutil.rmtree(folder)
        return MadeOut(problems=_out(error.problems))
    return MadeOut(study=new.slug, url=f"/manage/{new.slug}/")


def draft_of(served: Served) -> DraftOut:
    """Return a study's configuration for its form."""
    config = served.study.config
    source = dict(config.source or {})
    text = (served.folder / CONFIG_FILE).read_text(encoding="utf-8")
    if isinstance(own := source.get("database"), str):
        # A password is nobody's business who may look at a study.
        source["database"] = without_password(own)
        text = text.replace(own, without_password(own))
    return DraftOut(
        values=source,
        text=text,
        begun=_begun(served),
        by_form="stage" not in source,
        items=config.items.file,
    )


def _with_password(draft: Draft, served: Served) -> Draft:
    """Put the database's password back where it was hidden."""
    own = (served.study.config.source or {}).get("database")
    if not isinstance(own, str) or (shown := without_password(own)) == own:
        return draft
    values = {**draft.values, "database": own} if draft.values.get("database") == shown else draft.values
    text = None if draft.text is None else draft.text.replace(shown, own)
    return draft.model_copy(update={"values": values, "text": text})


def _begun(served: Served) -> bool:
    """Whether anybody was ever asked anything."""
    status = served.study.status()
    return bool(status.judgments or status.skips or status.expired or any(s.tasks_out for s in status.stages))


def save_draft(served: Served, draft: Draft) -> MadeOut:
    """Change a study; if the new configuration cannot be opened, everything stays as it was."""
    try:
        draft = _with_password(draft, served)
        values = _values(draft, served)
    except ConfigError as error:
        return MadeOut(problems=_out(error.problems))
    text = draft.text if draft.text is not None else toml_text(_kept(served, values))
    with _scratch(draft, text, served.folder) as folder:
        config, _, problems = _checked(folder)
    if problems or config is None:
        return MadeOut(problems=_out(problems))
    new = {CONFIG_FILE: text.encode()}
    if draft.items is not None:
        new[config.items.file] = draft.items.text.encode()
    old = {name: (served.folder / name).read_bytes() for name in new if (served.folder / name).is_file()}
    try:
        for name, content in new.items():
            _replace(served.folder / name, content)
        served.reopen()
    except SteelyardError as error:
        for name, content in old.items():
            _replace(served.folder / name, content)
        return MadeOut(problems=_out(error.problems))
    return MadeOut(study=served.slug, url=f"/manage/{served.slug}/")


def _kept(served: Served, values: Mapping[str, Any]) -> dict[str, Any]:
    """Add what the form does not show: where the items and the judgments are."""
    source = served.study.config.source or {}
    return {**{key: source[key] for key in ("version", "items", "name", "database", "seed") if key in source}, **values}


def _replace(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    os.replace(part, path)


def _free_folder(parent: Path, title: str) -> Path:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60] or "study"
    folder, number = parent / name, 1
    while folder.exists():
        number += 1
        folder = parent / f"{name}-{number}"
    return folder


# Reading a draft


def _values(draft: Draft, changed: Served | None = None) -> dict[str, Any]:
    """Return a draft's values as study.toml would have them; refuse files outside the study's folder."""
    if draft.text is not None:
        try:
            given: dict[str, Any] = tomllib.loads(draft.text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"not valid TOML: {error}.", "Correct that place.", field="text") from None
        if draft.items is not None and _named_in(draft.text) is None:
            _items_name(draft.items)
    else:
        given = _read(draft.values, "")
        if draft.items is not None:
            given["items"] = _items_name(draft.items)
    _refuse_other_places(
        {**given, "$": [draft.text or "", draft.items.text if draft.items is not None else ""]},
        None if changed is None else (changed.study.config.source or {}).get("database"),
    )
    return given


def _read(value: Mapping[str, Any], path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, inner in value.items():
        place = f"{path}.{key}".lstrip(".")
        if isinstance(inner, Mapping) and set(inner) == {"$toml"}:
            found[key] = _toml_value(str(inner["$toml"]), place)
        else:
            found[key] = _read(inner, place) if isinstance(inner, Mapping) else inner
    return found


def _toml_value(text: str, field: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"this cannot be read: {error}.", "Write it as in study.toml, e.g. { fluency = {} }.", field=field
        ) from None


def _items_name(items: ItemsFile) -> str:
    suffix = PurePath(items.name).suffix.lower()
    if suffix not in _ITEM_FILES:
        raise ConfigError(
            f"'{items.name}' is not a file of items.",
            f"Choose one that ends in {', '.join(_ITEM_FILES)}.",
            field="items",
        )
    return f"items{suffix}"


def _refuse_other_places(values: Mapping[str, Any], own_database: str | None) -> None:
    """Refuse files and databases elsewhere: who may manage studies need not be who may read everything."""
    problems = [
        Problem(f"'{_plain(text)}' is not in the study's folder.", "Name a file in that folder.", field=place)
        for place, key, text in _texts(values)
        if _leads_away(text, key)
    ]
    if values.get("database", own_database) != own_database:
        problems.append(
            Problem("where judgments are kept cannot be chosen here.", "Change study.toml itself.", field="database")
        )
    problems += [
        Problem("it holds characters that no file can.", "Write it anew.", field=_plain(place))
        for place, _, text in _texts(values)
        if _plain(place + text) != place + text
    ]
    if problems:
        raise ConfigError(problems)


def _texts(value: Any, place: str = "", key: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield every text in a configuration, with its place and the key it is under."""
    if isinstance(value, str):
        yield place, key, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, f"{place}.{name}".lstrip("."), str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, place, key)


def _plain(text: str) -> str:
    """Leave out what UTF-8 cannot write."""
    return text.encode("utf-8", "ignore").decode()


def _leads_away(name: str, key: str) -> bool:
    is_file = key in _FILE_KEYS or (key in _TEXT_KEYS and "\n" not in name and name.endswith((".md", ".txt")))
    parts = re.split(r"[/\\]", name)
    away = ".." in parts or name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name) is not None
    return is_file and (away or "\0" in name)


@contextmanager
def _scratch(draft: Draft, text: str, base: Path | None, parent: Path | None = None) -> Iterator[Path]:
    """Write a draft into a folder that is gone afterwards; the files of the study it changes are there too."""
    with tempfile.TemporaryDirectory(prefix=".steelyard-new-", dir=parent) as scratch:
        folder = Path(scratch)
        if base is not None:
            for file in base.iterdir():
                if file.name != CONFIG_FILE and ".db" not in file.name:
                    (folder / file.name).symlink_to(file.resolve())
        (folder / CONFIG_FILE).write_text(text, encoding="utf-8")
        if draft.items is not None:
            name = _named_in(text) or _items_name(draft.items)
            (folder / name).unlink(missing_ok=True)
            (folder / name).write_text(draft.items.text, encoding="utf-8")
        yield folder


def _named_in(text: str) -> str | None:
    try:
        items = tomllib.loads(text).get("items")
    except tomllib.TOMLDecodeError:
        return None
    found = items.get("file") if isinstance(items, Mapping) else items
    return found if isinstance(found, str) and PurePath(found).name == found else None


def _checked(folder: Path) -> tuple[StudyConfig | None, list[Item], list[Problem]]:
    try:
        config, items = check_study(folder)
    except SteelyardError as error:
        # Where the scratch folder was is of no use to anybody.
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


def _out(problems: Any) -> list[ProblemOut]:
    found = []
    for problem in problems:
        in_items = problem.file not in {None, CONFIG_FILE}
        line = f"{problem.file} line {problem.line}: " if in_items and problem.line else ""
        column = f"({problem.field}) " if in_items and problem.field else ""
        field = "items" if in_items else problem.field
        found.append(ProblemOut(field=field, what=f"{line}{column}{problem.what}", remedy=problem.remedy))
    return found


# What people would see


def _preview(
    values: Mapping[str, Any], config: StudyConfig | None, items: list[Item]
) -> tuple[TaskOut | None, dict[str, Any]]:
    protocol = config.stages[0].protocol if config is not None else _protocol(values)
    if protocol is None:
        return None, {}
    page = values.get("page") if isinstance(values.get("page"), Mapping) else {}
    content: Literal["text", "markdown", "html"] = config.page.content if config is not None else "text"
    shown = items[: protocol.task_size] or [
        Item(str(number), _EXAMPLES[number % len(_EXAMPLES)]) for number in range(protocol.task_size)
    ]

    def html(text: str | None) -> str | None:
        return None if text is None else block(render(text, content, ""))

    def out(item: Item) -> ItemOut:
        made = render(item.text, content, "")
        return ItemOut(
            id=item.id,
            text=item.text,
            html=made.html,
            dir=made.direction,
            context=item.context,
            context_html=html(item.context),
            reference=item.reference,
            reference_html=html(item.reference),
        )

    task = TaskOut(
        judgment_id="preview",
        stage=protocol.name,
        protocol=protocol.name,
        question=str(values.get("question", "")),
        lease_end=None,
        items=[out(item) for item in shown],
        shared=SharedOut(),
        settings=json.loads(json.dumps(settings_out(protocol))),
    )
    shows = {
        "show_value": True,
        "sort_live": False,
        **{k: v for k, v in dict(page or {}).items() if isinstance(v, bool)},
    }
    return task, shows


def _protocol(values: Mapping[str, Any]) -> Protocol | None:
    table = values.get("protocol")
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
        return None
    settings = {key: value for key, value in table.items() if key != "name"}
    try:
        made: Protocol = registry.create("protocols", table["name"], settings)
    except ConfigError:
        return None
    return made
