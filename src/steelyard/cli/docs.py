"""steelyard docs: the documentation that comes with the package, in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

_PACKAGED = Path(__file__).parents[1] / "docs"
_REPOSITORY = Path(__file__).parents[3] / "docs"
_FOLDERS = ("tutorials", "guides", "concepts", "reference")
"""Folders of pages, in reading order; pyproject.toml puts those that exist into the wheel."""


def docs(
    page: Annotated[
        str | None, typer.Argument(help="Name of a page; default: list all pages.", metavar="PAGE", show_default=False)
    ] = None,
) -> None:
    """Print a page of the documentation, or list all pages.

    Example: steelyard docs files
    """
    from rich.console import Console
    from rich.markdown import Markdown

    if page is None:
        _list_pages()
        return
    text = read_page(page)
    if sys.stdout.isatty():
        Console().print(Markdown(text))
    else:
        typer.echo(text, nl=False)


def pages() -> dict[str, Path]:
    """Return the pages by name; a page's name is that of its file."""
    root = _PACKAGED if _PACKAGED.is_dir() else _REPOSITORY
    files = [path for folder in _FOLDERS for path in sorted((root / folder).glob("*.md"))]
    return {path.stem: path for path in files if path.stem not in {"index", "README"}}


def read_page(name: str) -> str:
    """Return the Markdown of a page."""
    from steelyard.errors import ConfigError, did_you_mean

    path = pages().get(name)
    if path is None:
        raise ConfigError(f"there is no page '{name}'.", f"{did_you_mean(name, list(pages()))} List: steelyard docs")
    return path.read_text(encoding="utf-8")


def _list_pages() -> None:
    import polars as pl
    from rich.console import Console

    from steelyard.cli.output import plain_table

    rows = [{"page": name, "title": _title(path), "section": path.parent.name} for name, path in pages().items()]
    Console(highlight=False).print(plain_table(pl.DataFrame(rows), "Read a page with: steelyard docs PAGE"))


def _title(page: Path) -> str:
    with page.open(encoding="utf-8") as lines:
        return next((line.removeprefix("# ").strip() for line in lines if line.startswith("# ")), page.stem)
