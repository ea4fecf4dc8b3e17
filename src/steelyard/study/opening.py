"""What happens when a study is opened: its files are read, checked, and held against its log."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from steelyard.errors import ConfigError, DataError, Problem, SteelyardError
from steelyard.formats import read_items
from steelyard.records import Item
from steelyard.store.events import to_json
from steelyard.study.config import CONFIG_FILE, ItemsSource, StudyConfig, read_config
from steelyard.study.ledger import Ledger


def check_study(folder: Path) -> tuple[StudyConfig, list[Item]]:
    """Read study.toml and the items; raise one error that names everything that is wrong."""
    problems: list[Problem] = []
    config: StudyConfig | None = None
    items: list[Item] = []
    try:
        config = read_config(folder / CONFIG_FILE)
    except ConfigError as error:
        problems += error.problems
    source = config.items if config else _items_source(folder / CONFIG_FILE)
    if source is not None:
        try:
            items = read_items(folder / source.file, columns=source.columns, ignore=source.ignore)
        except SteelyardError as error:
            problems += [replace(problem, file=source.file) for problem in error.problems]
    if config is not None and items:
        problems += config.problems_with(len(items))
    if problems or config is None:
        raise ConfigError(problems)
    return config, items


def items_digest(folder: Path, source: ItemsSource) -> str:
    """Return a digest of the items file and how it is read, to tell at once whether it has changed."""
    how = to_json(source.model_dump())
    return hashlib.blake2b((folder / source.file).read_bytes() + how.encode(), digest_size=16).hexdigest()


def new_items(ledger: Ledger, items: Sequence[Item], file: str) -> list[Item]:
    """Return the items that are not in the study yet; refuse a file from which one vanished or changed."""
    given = {item.id: item for item in items}
    problems = [
        Problem(
            f"item '{old.id}' is in the study but no longer in the file."
            if old.id not in given
            else f"item '{old.id}' has changed since it joined the study.",
            "Put it back as it was; a corrected item gets a new id.",
            file=file,
        )
        for old in ledger.items
        if given.get(old.id) != old
    ]
    if problems:
        raise DataError(problems)
    return [item for item in items if item.id not in ledger.code]


def check_protocols_unchanged(ledger: Ledger, config: Mapping[str, Any]) -> None:
    """Refuse another protocol once somebody was asked; designs and models may change."""
    old = ledger.config.get("config")
    if old is None or not any(progress.tasks_asked for progress in ledger.progress):
        return
    if _protocols(old) != _protocols(config):
        raise ConfigError(
            "the protocol has changed since people began to judge.",
            "Put it back as it was, or make a new study (steelyard new).",
            file=CONFIG_FILE,
            field="protocol",
        )


def _protocols(config: Mapping[str, Any]) -> list[Any]:
    return [config.get("protocol"), *(stage["protocol"] for stage in config.get("stage", []))]


def _items_source(path: Path) -> ItemsSource | None:
    """Find the items even in a configuration that is wrong elsewhere."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8")).get("items")
        return ItemsSource(file=given) if isinstance(given, str) else ItemsSource.model_validate(given)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError):
        return None
