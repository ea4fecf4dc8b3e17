"""A group of commands whose modules are imported only when a command is invoked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as command_of


class Entry(NamedTuple):
    """A command: its name, where it is defined, and its line in `steelyard --help`."""

    name: str
    target: str
    """`module:name` below steelyard.cli: of a function, or of a Typer with commands of its own."""
    panel: str
    summary: str
    """The first paragraph of the command's help; a test keeps the two equal."""

    @property
    def module(self) -> str:
        """The module that defines the command."""
        return f"steelyard.cli.{self.target.partition(':')[0]}"


@cache
def load(entry: Entry) -> Any:
    """Import a command and build it."""
    target = getattr(import_module(entry.module), entry.target.partition(":")[2])
    if not isinstance(target, typer.Typer):
        app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
        app.command(entry.name, rich_help_panel=entry.panel)(target)
        target = app
    command: Any = command_of(target)
    command.name = entry.name
    return command


class LazyGroup(TyperGroup):
    """The commands of `entries`. Help is printed from the entries, without importing any command."""

    entries: ClassVar[Sequence[Entry]] = ()

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            entry.name: TyperCommand(entry.name, help=entry.summary, rich_help_panel=entry.panel)
            for entry in self.entries
        }

    def list_commands(self, ctx: Any) -> list[str]:
        """List the names of the commands, in the order of the entries."""
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if there is no command of this name."""
        return next((load(entry) for entry in self.entries if entry.name == cmd_name), None)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help from the entries."""
        TyperGroup(
            name=self.name,
            commands=dict(self.commands),
            help=self.help,
            params=self.params,
            rich_markup_mode=self.rich_markup_mode,
        ).format_help(ctx, formatter)
