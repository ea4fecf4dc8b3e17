"""steelyard new: a study that runs as it is."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.options import ColumnsOption, pairs
from steelyard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from tomlkit.items import InlineTable, Table

_PROTOCOL_SETTINGS: dict[str, dict[str, object]] = {
    "direct": {"scale": [0, 100], "labels": ["not at all", "very much"]},
    "likert": {"scale": [1, 5], "labels": ["not at all", "very much"]},
    "choice": {"labels": ["yes", "no"]},
    "pairwise": {"ties": True},
    "best_worst": {"size": 4, "labels": ["most", "least"]},
    "scored_ranking": {"size": 5, "scale": [0, 100], "labels": ["not at all", "very much"]},
    "ranking": {"size": 4, "ties": True},
}

_EXAMPLE_QUESTIONS = {
    "choice": "Is this a positive word?",
    "pairwise": "Which word is more positive?",
    "best_worst": "Which word is most positive, and which is least?",
    "scored_ranking": "How positive are these words?",
    "ranking": "Put these words in order, the most positive first.",
}


def new(
    folder: Annotated[Path, typer.Argument(help="The folder to make.", metavar="DIR", show_default=False)],
    items: Annotated[
        Path | None,
        typer.Option(
            "--items",
            "-i",
            help="Your items (CSV, TSV, JSONL, Parquet); example words if left out.",
            show_default=False,
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option("--protocol", "-p", help="direct, likert, choice, pairwise, best_worst, scored_ranking, ranking."),
    ] = "direct",
    design: Annotated[
        str | None, typer.Option("--design", "-d", help="The protocol's usual one if left out.", show_default=False)
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="The protocol's usual one if left out.", show_default=False)
    ] = None,
    question: Annotated[
        str | None, typer.Option("--question", "-q", help="What people are asked.", show_default=False)
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", "-t", help="What the study is called.", show_default=False)
    ] = None,
    judgments: Annotated[
        int | None,
        typer.Option("--judgments", "-n", min=1, help="Judgments for each item, where the design counts so."),
    ] = None,
    size: Annotated[
        int | None, typer.Option("--size", min=1, help="Items in each task; the protocol's usual number if left out.")
    ] = None,
    columns: ColumnsOption = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="COLUMN", help="Leave a column of the items out. Repeatable."),
    ] = None,
) -> None:
    """Create a study: a folder with study.toml and an items file.

    Example: steelyard new words --items words.csv --protocol best_worst --question "Which is most positive?"
    """
    import tomlkit
    from rich.console import Console

    from steelyard import registry
    from steelyard.cli.output import print_done
    from steelyard.study.config import CONFIG_FILE
    from steelyard.study.opening import check_study

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is already there and not empty.", "Choose another folder.")
    chosen = registry.find("protocols", protocol)
    if protocol not in _PROTOCOL_SETTINGS and _needs_settings(chosen):
        raise ConfigError(f"{protocol} needs settings of its own.", "Write study.toml by hand.")
    example = items is None
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".steelyard-new-") as scratch:
        draft = Path(scratch)
        example_question = _EXAMPLE_QUESTIONS.get(protocol, "How positive is this word?")
        document = tomlkit.document()
        document.add(tomlkit.comment("A Steelyard study. Every key: docs/reference/study-toml.md"))
        document.add(tomlkit.comment(f"Check it with: steelyard check {folder}"))
        document["title"] = title or ("How positive?" if example else folder.name)
        document["question"] = question or (example_question if example else "How much?")
        document["items"] = _put_items(items, draft, pairs(columns, "--columns"), ignore or [])
        document["protocol"] = {"name": protocol, **_with_size(protocol, chosen, size)}
        document["design"] = _design_table(design or chosen.default_design, judgments)
        document["model"] = {"name": model or chosen.model_of_new_studies()}
        if not model and chosen.new_model is not None:
            _comment(document["model"], "name", f"or the plain {chosen.default_model}")
        document["people"] = {"lease_minutes": 30}
        _comment(document["people"], "lease_minutes", "a task not answered within this time goes to somebody else")
        text = tomlkit.dumps(document)
        (draft / CONFIG_FILE).write_text(text, encoding="utf-8")
        _, study_items = check_study(draft)
        folder.mkdir(exist_ok=True)
        for file in draft.iterdir():
            shutil.move(file, folder / file.name)
    console = Console(highlight=False, markup=False)
    print_done(f"{folder} holds a study of {len(study_items):,} items.")
    console.print(f"  Change {folder / CONFIG_FILE} as you like, then:", soft_wrap=True)
    console.print(f"  steelyard check {folder}", soft_wrap=True)
    console.print(f"  steelyard judge {folder} --annotator YOUR-NAME", soft_wrap=True)
    console.print(f"  steelyard scores {folder}", soft_wrap=True)


def _comment(table: Any, key: str, text: str) -> None:
    """Put a comment behind a value, two spaces apart."""
    table[key].comment(text)
    table[key].trivia.comment_ws = "  "


def _needs_settings(protocol: type) -> bool:
    return bool(protocol().problems())


def _design_table(name: str, judgments: int | None) -> Table:
    """Return the design with its default settings, each with its description as a comment."""
    import tomlkit
    from pydantic import TypeAdapter

    from steelyard import registry

    cls = registry.find("designs", name)
    described = TypeAdapter(cls).json_schema()["properties"]
    if judgments is not None and "judgments" not in described:
        raise ConfigError(
            f"{name} does not count judgments for each item.",
            f"Leave out --judgments; it has: {', '.join(described)}.",
            field="--judgments",
        )
    settings = cls().settings() | ({} if judgments is None else {"judgments": judgments})
    table = tomlkit.table()
    table["name"] = name
    for key, value in settings.items():
        if value is not None:
            table[key] = list(value) if isinstance(value, tuple) else value
            _comment(table, key, described[key].get("description", ""))
    return table


def _with_size(protocol: str, cls: Any, size: int | None) -> dict[str, object]:
    """Return the protocol's settings, with `size` items in each task if a size is given."""
    settings = _PROTOCOL_SETTINGS.get(protocol, {})
    if size is None:
        return settings
    names = [field.name for field in fields(cls) if field.name in {"size", "items_per_page"}]
    if not names:
        raise ConfigError(f"{protocol} always shows {cls().task_size} items.", "Leave out --size.", field="--size")
    return {names[0]: size, **{key: value for key, value in settings.items() if key != "size"}}


def _put_items(source: Path | None, draft: Path, columns: dict[str, str], ignore: list[str]) -> str | InlineTable:
    """Put the items file into the folder; return the value of `items` in study.toml."""
    if source is None:
        from steelyard.examples import WORDS

        (draft / "items.csv").write_text("id,text\n" + "".join(f"{w},{w}\n" for w in WORDS), encoding="utf-8")
        return "items.csv"
    from steelyard.formats import read_items

    try:
        read_items(source, columns=columns, ignore=ignore)
    except DataError as error:
        raise DataError(
            replace(p, remedy=_UNKNOWN_COLUMN.format(name=p.field)) if "study.toml" in p.remedy else p
            for p in error.problems
        ) from None
    shutil.copyfile(source, draft / source.name)
    if not columns and not ignore:
        return source.name
    import tomlkit

    table = tomlkit.inline_table()
    table["file"] = source.name
    if columns:
        names = tomlkit.inline_table()
        names.update(columns)
        table["columns"] = names
    if ignore:
        table["ignore"] = ignore
    return table


_UNKNOWN_COLUMN = "Say what it is (--columns text={name}), or leave it out (--ignore {name})."
