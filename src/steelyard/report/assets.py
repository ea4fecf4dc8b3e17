"""Write the figures and tables of a report to separate files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from steelyard.errors import ConfigError
from steelyard.formats import write_table
from steelyard.report import charts
from steelyard.report.document import Document, Figure, Listing, Table
from steelyard.report.latex import latex_table


def write_assets(document: Document, folder: Path, on_step: Callable[[str], None] = lambda step: None) -> int:
    """Write figures as SVG and PNG, tables as CSV (whole) and LaTeX, listings as text; return the number of files.

    `on_step` is called before each figure.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be created: {error.strerror}.", "Choose another folder.") from None
    count = 0
    for block in document.blocks():
        if isinstance(block, Figure):
            on_step(block.name)
            (folder / f"{block.name}.svg").write_text(charts.svg(block.chart), encoding="utf-8")
            (folder / f"{block.name}.png").write_bytes(charts.png(block.chart))
            count += 2
        elif isinstance(block, Table):
            write_table(block.frame, folder / f"{block.name}.csv")
            (folder / f"{block.name}.tex").write_text(latex_table(block), encoding="utf-8")
            count += 2
        elif isinstance(block, Listing):
            (folder / block.file).write_text(block.text, encoding="utf-8")
            count += 1
    return count
