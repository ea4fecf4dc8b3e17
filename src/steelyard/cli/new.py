"""steelyard new: create a study that can be served without changes."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from steelyard.cli.options import ColumnsOption, pairs
from steelyard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from tomlkit.items import InlineTable

    from steelyard.records import Item
    from steelyard.study.config import StudyConfig
    from steelyard.study.recipes import Recipe

ITEMS_FILE = "items.csv"

_PROTOCOL_SETTINGS: dict[str, dict[str, object]] = {
    "direct": {"scale": [0, 100], "labels": ["not at all", "very much"]},
    "likert": {"scale": [1, 5], "labels": ["not at all", "very much"]},
    "choice": {"labels": ["yes", "no"]},
    "pairwise": {"ties": True},
    "best_worst": {"size": 4, "labels": ["most", "least"]},
    "scored_ranking": {"size": 5, "scale": [0, 100], "labels": ["not at all", "very much"]},
    "ranking": {"size": 4, "ties": True},
    "error_spans": {"severities": {"minor": 1, "major": 5}, "labels": ["very bad", "perfect"]},
}

_EXAMPLE_QUESTIONS = {
    "choice": "Is this a positive word?",
    "pairwise": "Which word is more positive?",
    "best_worst": "Which word is most positive, and which is least positive?",
    "scored_ranking": "How positive are these words?",
    "ranking": "Put these words in order, the most positive first.",
    "error_spans": "Mark the spelling errors in this word. Then rate its spelling.",
}


def new(
    folder: Annotated[Path, typer.Argument(help="The folder to create.", metavar="DIR", show_default=False)],
    items: Annotated[
        Path | None,
        typer.Option(
            "--items",
            "-i",
            help="Items file (CSV, TSV, JSONL, Parquet); default: example words.",
            show_default=False,
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare-systems",
            help="Set up an evaluation: the items are outputs of systems for the same sources.",
        ),
    ] = False,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            "-p",
            help="Protocol; default: direct, or pairwise with --compare-systems.",
            show_default=False,
        ),
    ] = None,
    design: Annotated[
        str | None,
        typer.Option("--design", "-d", help="Design; default: the protocol's default design.", show_default=False),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Model; default: the protocol's default model.", show_default=False),
    ] = None,
    question: Annotated[
        str | None, typer.Option("--question", "-q", help="Question asked of annotators.", show_default=False)
    ] = None,
    title: Annotated[str | None, typer.Option("--title", "-t", help="Title of the study.", show_default=False)] = None,
    judgments: Annotated[
        int | None, typer.Option("--judgments", "-n", min=1, help="Judgments per item; default: the design's.")
    ] = None,
    size: Annotated[int | None, typer.Option("--size", min=1, help="Items per task; default: the protocol's.")] = None,
    columns: ColumnsOption = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="COLUMN", help="Ignore a column of the items. Repeatable."),
    ] = None,
    extra: Annotated[
        list[str] | None,
        typer.Option(
            "--extra",
            metavar="COLUMN",
            help="With one column per system: a column that is not a system. Repeatable.",
        ),
    ] = None,
) -> None:
    """Create a study: a folder with study.toml and an items file.

    Example: steelyard new words --items words.csv --protocol best_worst --question "Which is most positive?"
    """
    from steelyard.study.config import CONFIG_FILE
    from steelyard.study.config.schema import SCHEMA_FILE, SCHEMA_LINE, schema_text
    from steelyard.study.opening import check_study

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} already exists and is not empty.", "Choose another folder.")
    choices = _Choices(protocol, design, model, question, title, judgments, size)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".steelyard-new-") as scratch:
        draft = Path(scratch)
        mapping = pairs(columns, "--columns")
        if compare:
            recipe = _evaluation(items, choices, folder, mapping, ignore or [], extra or [])
            recipe.items.write_csv(draft / ITEMS_FILE)
        else:
            recipe = _plain_study(items, choices, folder, draft, mapping, ignore or [])
        (draft / CONFIG_FILE).write_text(f"{SCHEMA_LINE}\n{_toml_of(recipe, folder)}", encoding="utf-8")
        (draft / SCHEMA_FILE).write_text(schema_text(), encoding="utf-8")
        config, study_items = check_study(draft)
        folder.mkdir(exist_ok=True)
        for file in draft.iterdir():
            shutil.move(file, folder / file.name)
    _print_next_steps(folder, config, study_items, recipe, by_system=compare)


def _print_next_steps(folder: Path, config: StudyConfig, items: list[Item], recipe: Recipe, *, by_system: bool) -> None:
    from rich.console import Console

    from steelyard.cli.output import print_done, print_notes, print_warnings
    from steelyard.designs.description import describe_plan
    from steelyard.study.config import CONFIG_FILE

    console = Console(highlight=False, markup=False)
    print_done(f"Created a study of {len(items):,} items in {folder}.")
    print_notes(recipe.notes)
    for stage in config.stages:
        plan = describe_plan(stage.design, stage.protocol, items)
        for sentence in plan.sentences:
            console.print(f"  {sentence}", soft_wrap=True)
        print_warnings(plan.warnings)
    console.print(f"  Edit {folder / CONFIG_FILE} if needed, then:", soft_wrap=True)
    steps = {
        f"steelyard check {folder}": "check the files and the plan",
        f"steelyard serve {folder}": "collect judgments in the browser",
        f"steelyard judge {folder} --annotator YOUR-NAME": "or in this terminal",
        f"steelyard scores {folder}{' --by system' if by_system else ''}": "show the scores",
    }
    width = max(map(len, steps))
    for command, purpose in steps.items():
        console.print(f"  {command:{width}}  # {purpose}", soft_wrap=True)


class _Choices(NamedTuple):
    """The options of the command line about a study; None if not given."""

    protocol: str | None
    design: str | None
    model: str | None
    question: str | None
    title: str | None
    judgments: int | None
    size: int | None


def _evaluation(
    items: Path | None,
    choices: _Choices,
    folder: Path,
    columns: dict[str, str],
    ignore: list[str],
    extra: list[str],
) -> Recipe:
    """Return the study that compares systems."""
    from steelyard.formats.outputs import read_outputs
    from steelyard.study.recipes import compare_systems

    if items is None:
        raise ConfigError("--compare-systems needs a file of system outputs.", "Give the file: --items outputs.csv")
    for name in ("design", "size"):
        if getattr(choices, name) is not None:
            raise ConfigError(
                f"--{name} cannot be combined with --compare-systems, which sets it.",
                "Leave it out, and edit study.toml afterwards.",
                field=f"--{name}",
            )
    recipe = compare_systems(
        read_outputs(items, columns=columns, ignore=ignore, extra=extra),
        title=choices.title or folder.name,
        protocol=choices.protocol or "pairwise",
        judgments=choices.judgments,
        question=choices.question,
    )
    if choices.model is not None:
        recipe.values["model"]["name"] = choices.model
    return recipe


def _plain_study(
    items: Path | None, choices: _Choices, folder: Path, draft: Path, columns: dict[str, str], ignore: list[str]
) -> Recipe:
    """Return a study of one protocol with its default settings; the items file is put into the draft."""
    import polars as pl

    from steelyard import registry
    from steelyard.designs.contexts import context_sizes
    from steelyard.study.recipes import Recipe

    protocol = choices.protocol or "direct"
    cls = registry.find("protocols", protocol)
    if protocol not in _PROTOCOL_SETTINGS and cls().problems():
        raise ConfigError(
            f"the protocol {protocol} has settings without defaults.",
            "Write study.toml by hand; see: steelyard docs study-toml",
        )
    is_example = items is None and choices.question is None
    example_question = _EXAMPLE_QUESTIONS.get(protocol, "How positive is this word?")
    files, study_items = _put_items(items, draft, columns, ignore)
    n_comparable = max(context_sizes(study_items).values())
    settings = _with_size(protocol, cls, choices.size, n_comparable)
    values = {
        "title": choices.title or ("How positive?" if is_example else folder.name),
        "question": choices.question or (example_question if is_example else "How much?"),
        "items": files,
        "protocol": {"name": protocol, **settings},
        "design": _design_settings(
            choices.design or cls.default_design, choices.judgments, cls(**settings).task_size, n_comparable
        ),
        "model": {"name": choices.model or cls.model_of_new_studies(choices.design or cls.default_design)},
        "annotators": {"lease_minutes": 30},
    }
    comments = {"annotators.lease_minutes": "a task not answered within this time is reassigned"}
    if not choices.model and cls.new_model is not None:
        comments["model.name"] = f"simpler: {cls.default_model}"
    return Recipe(values, comments, ("A Steelyard study.",), pl.DataFrame(), ())


def _toml_of(recipe: Recipe, folder: Path) -> str:
    """Write study.toml, every setting of the design with its description."""
    from pydantic import TypeAdapter

    from steelyard import registry
    from steelyard.study.recipes import recipe_toml

    described = TypeAdapter(registry.find("designs", recipe.values["design"]["name"])).json_schema()["properties"]

    def describe(path: str) -> str:
        table, _, key = path.partition(".")
        return str(described.get(key, {}).get("description", "")) if table == "design" else ""

    lines = ("All settings: steelyard docs study-toml", f"Check it with: steelyard check {folder}")
    return recipe_toml(recipe, lines, describe)


def _design_settings(name: str, judgments: int | None, task_size: int, n_comparable: int) -> dict[str, Any]:
    """Return the design with its default settings, or those that give every item this many judgments."""
    from steelyard import registry
    from steelyard.designs.budgets import BUDGETED, budget_settings

    cls = registry.find("designs", name)
    settings = {key: value for key, value in cls().settings().items() if value is not None}
    if judgments is not None and name not in BUDGETED:
        raise ConfigError(
            f"the design {name} determines the number of judgments per item.",
            f"Leave out --judgments; the design's settings are {', '.join(settings)}.",
            field="--judgments",
        )
    if judgments is not None:
        settings |= budget_settings(name, judgments, task_size, n_comparable)
    elif name == "balanced_tuples":
        default = budget_settings(name, 1, task_size, n_comparable)["factor"]
        settings["factor"] = min(settings["factor"], default)
    return {"name": name, **{key: list(v) if isinstance(v, tuple) else v for key, v in settings.items()}}


def _with_size(protocol: str, cls: Any, size: int | None, n_comparable: int) -> dict[str, Any]:
    """Return the protocol's settings, with `size` items in each task if a size is given, else as many as there are."""
    settings = dict(_PROTOCOL_SETTINGS.get(protocol, {}))
    if size is None:
        if "size" in settings and n_comparable > 1:
            settings["size"] = min(int(str(settings["size"])), max(n_comparable, 2))
        return settings
    names = [field.name for field in fields(cls) if field.name in {"size", "items_per_page"}]
    if not names:
        raise ConfigError(f"{protocol} always shows {cls().task_size} items.", "Leave out --size.", field="--size")
    return {names[0]: size, **{key: value for key, value in settings.items() if key != "size"}}


def _put_items(
    source: Path | None, draft: Path, columns: dict[str, str], ignore: list[str]
) -> tuple[str | InlineTable, list[Item]]:
    """Put the items file into the folder; return the value of `items` in study.toml, and the items."""
    from steelyard.formats import read_items
    from steelyard.formats.items import COLUMNS_EXAMPLE

    if source is None:
        from steelyard.examples import WORDS

        (draft / ITEMS_FILE).write_text("id,text\n" + "".join(f"{w},{w}\n" for w in WORDS), encoding="utf-8")
        return ITEMS_FILE, read_items(draft / ITEMS_FILE)
    try:
        items = read_items(source, columns=columns, ignore=ignore)
    except DataError as error:
        raise DataError(
            replace(p, remedy=p.remedy.replace(COLUMNS_EXAMPLE, _COLUMN_OPTIONS.format(name=p.field or "COLUMN")))
            for p in error.problems
        ) from None
    shutil.copyfile(source, draft / source.name)
    if not columns and not ignore:
        return source.name, items
    import tomlkit

    table = tomlkit.inline_table()
    table["file"] = source.name
    if columns:
        names = tomlkit.inline_table()
        names.update(columns)
        table["columns"] = names
    if ignore:
        table["ignore"] = ignore
    return table, items


_COLUMN_OPTIONS = "for example: --columns text={name} or --ignore {name}"
