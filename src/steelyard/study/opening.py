"""Opening a study: its files are read, checked, and compared with its log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from steelyard.errors import ConfigError, DataError, Problem, SteelyardError
from steelyard.formats import read_items
from steelyard.formats.toml_reading import parse_toml
from steelyard.quality.questions import Question, read_questions
from steelyard.records import Item
from steelyard.storage.events import to_json
from steelyard.study import events as ev
from steelyard.study.annotators import read_texts
from steelyard.study.config import CONFIG_FILE, StudyConfig, parse_config, read_config
from steelyard.study.config.tables import ItemsSource, Page, is_address
from steelyard.study.config.toml_lines import key_lines, line_of
from steelyard.study.confinement import confinement_problems, is_confined
from steelyard.study.display import content_problems, display_problems, shown_columns
from steelyard.study.state import StudyState

_MOST_PROBLEMS = 20
_ITEMS_PER_EVENT = 1000


def check_study(folder: Path) -> tuple[StudyConfig, list[Item]]:
    """Read study.toml and the items; raise one error that names everything that is wrong."""
    problems: list[Problem] = []
    config: StudyConfig | None = None
    items: list[Item] = []
    if is_confined(folder):
        # Checked before any file that the configuration names is read.
        _refuse_other_places(folder)
    try:
        config = read_config(folder / CONFIG_FILE)
    except ConfigError as error:
        problems += error.problems
    source = config.items if config else _items_source(folder / CONFIG_FILE)
    if source is not None:
        if not (folder / source.file).is_file():
            problems.append(
                Problem(
                    f"there is no file {folder / source.file}.",
                    "Create this file, or set items to another one.",
                    CONFIG_FILE,
                    line_of(dict(config.lines or {}), "items") if config else None,
                    "items",
                )
            )
            raise ConfigError(problems)
        try:
            items = read_items(folder / source.file, columns=source.columns, ignore=source.ignore)
        except SteelyardError as error:
            problems += [replace(problem, file=source.file) for problem in error.problems]
    if config is not None:
        problems += _question_file_problems(folder, config, items)
        problems += _link_problems(config)
    if config is not None and items:
        problems += config.problems_with(items)
        problems += _display_problems(folder, config, items)
    if problems or config is None:
        raise ConfigError(problems)
    return config, items


def _display_problems(folder: Path, config: StudyConfig, items: Sequence[Item]) -> list[Problem]:
    """List the problems of the columns that annotators see."""
    lines = dict(config.lines or {})
    problems = display_problems(config.page, [stage.protocol for stage in config.stages], items)
    if not problems:
        file = config.items.file
        return content_problems(config.page, items, folder / file, file)
    return [replace(p, file=CONFIG_FILE, line=line_of(lines, p.field or "")) for p in problems]


def _refuse_other_places(folder: Path) -> None:
    try:
        text = (folder / CONFIG_FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return  # read_config says what is wrong with it, and reads nothing else.
    lines = key_lines(text)
    problems = confinement_problems(parse_toml(text, file=CONFIG_FILE), folder)
    if problems:
        raise ConfigError([replace(p, file=CONFIG_FILE, line=line_of(lines, p.field or "")) for p in problems])


def _question_file_problems(folder: Path, config: StudyConfig, items: Sequence[Item]) -> list[Problem]:
    """List the problems of the files with texts for annotators."""
    problems: list[Problem] = []
    annotators = config.annotators
    lines = dict(config.lines or {})
    try:
        read_texts(folder, annotators)
    except ConfigError as error:
        problems += [replace(p, file=CONFIG_FILE, line=line_of(lines, p.field or "")) for p in error.problems]
    quality = config.quality
    tables = [table.file for table in (quality.checks, quality.qualification) if table is not None]
    for file in [annotators.training, *tables] if annotators.training else tables:
        try:
            read_questions(folder / file, config.stages[0].protocol, items)
        except SteelyardError as error:
            problems += [replace(p, file=p.file or file) for p in error.problems]
    return problems


def _link_problems(config: StudyConfig) -> list[Problem]:
    """Name what [link] asks for that people who come from Prolific cannot do."""
    if config.prolific is None or config.link is None:
        return []
    link, lines = config.link, dict(config.lines or {})
    problems = []
    for kind in ("completed", "screened_out", "failed"):
        value = getattr(link, kind)
        if value is not None and is_address(value):
            what = f"'{kind}' is an address, but participants from Prolific return with a code."
            problems.append(Problem(what, "Leave it out (a code is created), or give a code.", field=f"link.{kind}"))
    if link.signed:
        what = "signed links are required, but Prolific does not sign links, so nobody could take part."
        problems.append(
            Problem(what, "Leave out signed, or create a separate study for Prolific.", field="link.signed")
        )
    return [replace(problem, file=CONFIG_FILE, line=line_of(lines, problem.field or "")) for problem in problems]


def items_digest(folder: Path, source: ItemsSource) -> str:
    """Return a digest of the items file and how it is read, to tell at once whether it has changed."""
    how = to_json(source.model_dump())
    return hashlib.blake2b((folder / source.file).read_bytes() + how.encode(), digest_size=16).hexdigest()


def changed_items(state: StudyState, items: Sequence[Item], file: str, page: Page) -> list[Item]:
    """Return the items that are new, or differ in what annotators do not see (group, tags, gold, most metadata).

    Refuse a file from which one vanished, or that would show annotators something else.
    """
    by_id = {item.id: item for item in items}
    columns = shown_columns(page)
    problems = [
        Problem(
            f"item '{old.id}' is in the study but no longer in the file."
            if old.id not in by_id
            else f"item '{old.id}' has changed since it was added to the study.",
            "Undo the change; give a corrected item a new id.",
            file=file,
        )
        for old in state.items
        if old.id not in by_id or _shown(by_id[old.id], columns) != _shown(old, columns)
    ]
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        raise DataError(
            [*problems[:_MOST_PROBLEMS], *([Problem(f"… and {more} more.", file=file)] if more > 0 else [])]
        )
    return [item for item in items if item.id not in state.code or state.items[state.code[item.id]] != item]


def read_checks(folder: Path, config: StudyConfig, items: Sequence[Item]) -> list[Question]:
    """Read the checks that a study mixes in among its tasks; none if it has no checks."""
    checks = config.quality.checks
    return [] if checks is None else read_questions(folder / checks.file, config.stages[0].protocol, items)


def opening_events(
    config: ev.ConfigChanged, new_items: Sequence[Item], new_questions: Sequence[dict[str, str]]
) -> Iterator[ev.Payload]:
    """Yield the events that bring a log up to date: new or changed items and checks, then the configuration."""
    for start in range(0, len(new_items), _ITEMS_PER_EVENT):
        yield ev.ItemsAdded(items=list(new_items[start : start + _ITEMS_PER_EVENT]))
    if new_questions:
        yield ev.ChecksAdded(questions=list(new_questions))
    yield config


def _shown(item: Item, columns: Sequence[str]) -> Item:
    metadata = {name: item.metadata[name] for name in columns if name in item.metadata}
    return replace(item, group=None, tags=(), gold=None, metadata=metadata)


def check_same_questions(old: Mapping[str, Any], config: StudyConfig) -> None:
    """Refuse changes of question or protocol after the first task; designs and models may change."""
    before = parse_config(old)
    changed = [
        name
        for name, same in (
            ("question", _questions(before) == _questions(config)),
            ("protocol", [s.protocol for s in before.stages] == [s.protocol for s in config.stages]),
        )
        if not same
    ]
    if changed:
        raise ConfigError(
            Problem(
                f"the {name} has changed since the first judgment.",
                "Undo the change, or create a new study: steelyard new",
                file=CONFIG_FILE,
                line=line_of(dict(config.lines or {}), name),
                field=name,
            )
            for name in changed
        )


def _questions(config: StudyConfig) -> list[str]:
    """Return what annotators are asked in each stage."""
    return [config.question_of(stage) for stage in config.stages]


def _items_source(path: Path) -> ItemsSource | None:
    """Find the items even in a configuration that is wrong elsewhere."""
    try:
        source = parse_toml(path.read_text(encoding="utf-8")).get("items")
        return ItemsSource(file=source) if isinstance(source, str) else ItemsSource.model_validate(source)
    except (OSError, UnicodeDecodeError, ConfigError, ValidationError):
        return None
