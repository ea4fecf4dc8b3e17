"""Write the files that are generated from the code: the references of study.toml and the commands, and the schema."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticUndefined
from typer.main import get_command

from steelyard import registry
from steelyard.cli.app import Commands, app
from steelyard.study.config.schema import SCHEMA_FILE, schema_text
from steelyard.study.config.tables import (
    AnnotatorSettings,
    Answers,
    Checks,
    ItemsSource,
    Judges,
    Link,
    Page,
    Pay,
    Prolific,
    Qualification,
    Quality,
    Rules,
    StageTable,
    Stop,
    StudyTable,
)

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
SCHEMA = ROOT / "src" / "steelyard" / "study" / "config" / SCHEMA_FILE


def study_toml() -> str:
    """Return the page about study.toml."""
    lines = [
        "# study.toml",
        "",
        "<!-- Made by scripts/reference.py from the code. -->",
        "",
        "This page lists all settings of a study. `title`, `question`, `items` and `[protocol]` are required. Keys",
        "that are not listed here are errors. `steelyard new` writes a file with comments, *New study* in the browser",
        "shows the file in a tab, and `steelyard check` reports every mistake with its line.",
        "",
        "```toml",
        'title    = "Positive words"',
        'question = "How positive is this word?"',
        'items    = "items.csv"',
        "",
        "[protocol]",
        'name   = "direct"',
        'labels = ["very negative", "very positive"]',
        "",
        "[design]",
        "judgments = 5",
        "```",
        "",
        "## The study",
        *_model_table(StudyTable),
        "## `items` as a table",
        *_model_table(ItemsSource),
        "## `[annotators]`",
        *_model_table(AnnotatorSettings),
        "## `[page]`",
        *_model_table(Page),
        "## `[answers]`",
        *_model_table(Answers),
        "## `[quality]`",
        *_model_table(Quality),
        "## `quality.checks`",
        *_model_table(Checks),
        "## `quality.qualification`",
        *_model_table(Qualification),
        "## `[quality.rules]`",
        *_model_table(Rules),
        "## `[stop]`",
        *_model_table(Stop),
        "## `[pay]`",
        *_model_table(Pay),
        "## `[link]`",
        *_model_table(Link),
        "## `[prolific]`",
        *_model_table(Prolific),
        "## `[judges]`",
        *_model_table(Judges),
        "## `[[stage]]`",
        "Stages run one after the other. If every stage has a `share`, their tasks are mixed instead.",
        "",
        *_model_table(StageTable),
    ]
    kinds: dict[str, registry.Kind] = {"protocol": "protocols", "design": "designs", "model": "models"}
    for table, kind in kinds.items():
        for name in registry.names(kind):
            cls = registry.find(kind, name)
            lines += [f'## `[{table}]` name = "{name}"', _first_paragraph(cls), "", *_settings_table(cls)]
    return "\n".join(lines).rstrip() + "\n"


def _model_table(model: type[BaseModel]) -> list[str]:
    rows = []
    for name, info in model.model_fields.items():
        default = "required" if info.is_required() else _shown(info.get_default(call_default_factory=True))
        rows.append((info.alias or name, default, info.description or ""))
    return _table(rows)


def _settings_table(cls: type[Any]) -> list[str]:
    assert is_dataclass(cls)
    rows = []
    for field in fields(cls):
        factory = field.default_factory
        default = factory() if factory is not MISSING else field.default
        rows.append((field.name, _shown(default), _description(cls, field.name)))
    return _table(rows) if rows else ["No settings.", ""]


def _description(cls: type[Any], name: str) -> str:
    schema = TypeAdapter(cls).json_schema()
    return str(schema["properties"][name].get("description", ""))


def _table(rows: list[tuple[str, str, str]], heading: str = "key") -> list[str]:
    if not rows:
        return []
    return [f"| {heading} | default | meaning |", "|---|---|---|", *(f"| `{a}` | {b} | {c} |" for a, b, c in rows), ""]


def _shown(value: object) -> str:
    if value is None or value is PydanticUndefined or value in ((), [], {}, ""):
        return "–"
    if isinstance(value, BaseModel):
        return "see below"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return "`[" + ", ".join(f'"{v}"' if isinstance(v, str) else f"{v:g}" for v in value) + "]`"
    return (
        f'`"{value}"`' if isinstance(value, str) else f"`{value:g}`" if isinstance(value, int | float) else f"`{value}`"
    )


def _first_paragraph(cls: type[Any]) -> str:
    paragraph = (cls.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(paragraph.split())


def _commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every command with its name, those of a group one by one."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def _overview(group: Any) -> list[str]:
    """Return a table of the commands, by what people do with them."""
    panels: dict[str, list[str]] = {}
    for entry in Commands.entries:
        # A group of commands has no section of its own: the link leads to that of its first command.
        section = next(name for name, _ in _commands(group) if name == entry.name or name.startswith(f"{entry.name} "))
        panels.setdefault(entry.panel, []).append(f"[`{entry.name}`](#steelyard-{section.replace(' ', '-')})")
    rows = [f"| {panel} | {' · '.join(names)} |" for panel, names in panels.items()]
    return ["| purpose | commands |", "|---|---|", *rows, ""]


def commands() -> str:
    """Return the page about the command line."""
    group: Any = get_command(app)
    lines = ["# Commands", "", "<!-- Made by scripts/reference.py from the code. -->", ""]
    lines += [
        "This page lists all commands with their arguments and options; `steelyard COMMAND --help` prints the same.",
        "The exit code is 0 for success, 1 for an error in data or configuration, and 2 for wrong usage.",
        "",
        *_overview(group),
    ]
    for name, command in _commands(group):
        description, _, example = str(command.help).partition("Example: ")
        lines += [
            f"## steelyard {name}",
            " ".join(description.split()),
            "",
            "```sh",
            example.strip(),
            "```",
            "",
        ]
        rows = []
        for parameter in command.params:
            if parameter.name != "help":
                names = " ".join(parameter.opts) if parameter.param_type_name == "option" else _argument(parameter)
                default = (
                    "required" if parameter.required else _shown(getattr(parameter.default, "value", parameter.default))
                )
                rows.append((names, default, parameter.help or ""))
        lines += _table(rows, "argument or option")
    return "\n".join(lines).rstrip() + "\n"


def _argument(parameter: Any) -> str:
    """Return the name of an argument as `--help` prints it."""
    return str(parameter.metavar or parameter.name.upper())


PAGES = {"study-toml.md": study_toml, "commands.md": commands}


def main() -> None:
    """Write the pages, or with --check say whether they are up to date."""
    stale = []
    files = {FOLDER / name: make for name, make in PAGES.items()} | {SCHEMA: schema_text}
    for path, make in files.items():
        text = make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    print("\n".join(stale) or "up to date")
    if stale and "--check" in sys.argv:
        sys.exit(1)


if __name__ == "__main__":
    main()
