"""A report as one HTML file that needs nothing else: no network, no scripts."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from steelyard.report import charts
from steelyard.report.document import Block, Cell, Document, Figure

WIDE, NARROW = 760, 330
"""Every chart is drawn twice, so that its letters are as large on a phone as on a desk."""
_ID = re.compile(r"""(\bid="|url\(#|href="#)([\w-]+)""")


def html_page(document: Document, told: Callable[[str], None] = lambda step: None) -> str:
    """Write a report as HTML; `told` is called before each figure is drawn."""
    environment = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["kind"] = _kind
    environment.globals["data"] = _data
    drawn = {}
    for block in document.blocks():
        if isinstance(block, Figure):
            told(block.name)
            drawn[block.name] = _drawn(block)
    shown = [section for section in document.sections if section.blocks]
    rules = _template("report.css")
    style = Markup(rules)  # noqa: S704 - our own file  # nosec B704
    template = environment.get_template("report.html")
    return template.render(document=document, sections=shown, drawn=drawn, style=style) + "\n"


def _template(name: str) -> str:
    return (files("steelyard.report") / "templates" / name).read_text(encoding="utf-8")


def _kind(block: Block) -> str:
    return type(block).__name__.lower()


def _data(cell: Cell) -> dict[str, Any]:
    """The numbers behind a cell, as attributes."""
    numbers = {"value": cell.value, "lower": cell.lower, "upper": cell.upper}
    return {f"data-{name}": repr(float(number)) for name, number in numbers.items() if number is not None}


def _drawn(figure: Figure) -> dict[str, Any]:
    """Draw a figure in both widths; vl-convert escapes the texts in it."""
    return {
        "title": charts.title_of(figure.chart),
        "wide": _inline(charts.svg(figure.chart, width=WIDE), f"{figure.name}-w"),
        "narrow": _inline(charts.svg(figure.chart, width=NARROW), f"{figure.name}-n"),
    }


def _inline(svg: str, prefix: str) -> Markup:
    """Make a drawing fit to stand in a page among others: names of its parts are its own."""
    named = _ID.sub(rf"\g<1>{prefix}-\g<2>", svg)
    return Markup(named)  # noqa: S704 - vl-convert escapes  # nosec B704
