"""steelyard new: a study that runs as it is."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from steelyard.cli.options import ColumnsOption, pairs
from steelyard.errors import ConfigError, DataError

_PROTOCOL_SETTINGS = {
    "direct": 'scale  = [0, 100]\nlabels = ["not at all", "very much"]',
    "likert": 'scale  = [1, 5]\nlabels = ["not at all", "very much"]',
    "choice": 'labels = ["yes", "no"]',
    "pairwise": "ties = true",
    "best_worst": 'size   = 4\nlabels = ["most", "least"]',
    "scored_ranking": 'size   = 5\nscale  = [0, 100]\nlabels = ["not at all", "very much"]',
    "ranking": "size = 4\nties = true",
}

_EXAMPLE_QUESTIONS = {
    "choice": "Is this a positive word?",
    "pairwise": "Which word is more positive?",
    "best_worst": "Which word is most positive, and which is least?",
    "scored_ranking": "How positive are these words?",
    "ranking": "Put these words in order, the most positive first.",
}

_TEMPLATE = """\
# A Steelyard study. Every key: docs/reference/study-toml.md; check it with: steelyard check {folder}
title    = {title}
question = {question}
items    = {items}

[protocol]
name   = "{protocol}"
{settings}

[design]
name = "{design}"
{design_settings}
[model]
name = "{model}"{plainer}

[people]
lease_minutes = 30  # a task that is not answered within this time goes to somebody else
"""


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
    """Make a study: a folder with study.toml and an items file, ready to run.

    Example: steelyard new words --items words.csv --protocol best_worst --question "Which is most positive?"
    """
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
        text = _TEMPLATE.format(
            folder=folder,
            title=_quoted(title or ("How positive?" if example else folder.name)),
            question=_quoted(
                question or (_EXAMPLE_QUESTIONS.get(protocol, "How positive is this word?") if example else "How much?")
            ),
            items=_put_items(items, draft, pairs(columns, "--columns"), ignore or []),
            protocol=protocol,
            settings=_with_size(protocol, chosen, size),
            design=design or chosen.default_design,
            design_settings=_design_settings(design or chosen.default_design, judgments),
            model=model or chosen.model_of_new_studies(),
            plainer="" if model or chosen.new_model is None else f"  # or the plain {chosen.default_model}",
        )
        (draft / CONFIG_FILE).write_text(text, encoding="utf-8")
        _, found = check_study(draft)
        folder.mkdir(exist_ok=True)
        for made in draft.iterdir():
            shutil.move(made, folder / made.name)
    console = Console(highlight=False, markup=False)
    print_done(f"{folder} holds a study of {len(found):,} items.")
    console.print(f"  Change {folder / CONFIG_FILE} as you like, then:", soft_wrap=True)
    console.print(f"  steelyard check {folder}", soft_wrap=True)
    console.print(f"  steelyard judge {folder} --annotator YOUR-NAME", soft_wrap=True)
    console.print(f"  steelyard scores {folder}", soft_wrap=True)


def _needs_settings(protocol: type) -> bool:
    return bool(protocol().problems())


def _design_settings(name: str, judgments: int | None) -> str:
    """Return the design's settings, each with what it means, to be changed as one likes."""
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
    lines = [
        f"{key} = {json.dumps(value)}  # {described[key].get('description', '')}"
        for key, value in settings.items()
        if value is not None
    ]
    return "".join(f"{line}\n" for line in lines)


def _with_size(protocol: str, cls: Any, size: int | None) -> str:
    """Return the protocol's settings with another number of items a task."""
    settings = _PROTOCOL_SETTINGS.get(protocol, "")
    if size is None:
        return settings
    names = [field.name for field in fields(cls) if field.name in {"size", "items_per_page"}]
    if not names:
        raise ConfigError(f"{protocol} always shows {cls().task_size} items.", "Leave out --size.", field="--size")
    kept = [line for line in settings.splitlines() if not line.startswith("size")]
    return "\n".join([f"{names[0]} = {size}", *kept])


def _put_items(source: Path | None, draft: Path, columns: dict[str, str], ignore: list[str]) -> str:
    """Put the items file into the folder; return how study.toml names it."""
    if source is None:
        from steelyard.examples import WORDS

        (draft / "items.csv").write_text("id,text\n" + "".join(f"{w},{w}\n" for w in WORDS), encoding="utf-8")
        return _quoted("items.csv")
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
        return _quoted(source.name)
    parts = [f"file = {_quoted(source.name)}"]
    if columns:
        parts.append(
            "columns = { " + ", ".join(f"{ours} = {_quoted(theirs)}" for ours, theirs in columns.items()) + " }"
        )
    if ignore:
        parts.append("ignore = [" + ", ".join(map(_quoted, ignore)) + "]")
    return "{ " + ", ".join(parts) + " }"


_UNKNOWN_COLUMN = "Say what it is (--columns text={name}), or leave it out (--ignore {name})."


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
