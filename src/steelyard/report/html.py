"""A report as one self-contained HTML file, without scripts or network access."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from steelyard.report import charts, typeface
from steelyard.report.document import Block, Cell, Document, Figure

WIDE, NARROW = 760, 330
"""Every chart is drawn in two widths, so that its text has the same size on phones and desktops."""
_ID = re.compile(r"""(\bid="|url\(#|href="#)([\w-]+)""")


def html_page(document: Document, on_step: Callable[[str], None] = lambda step: None) -> str:
    """Write a report as HTML; `on_step` is called before each figure is drawn."""
    environment = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["kind"] = _kind
    environment.globals["data"] = _data
    drawings = {}
    for block in document.blocks():
        if isinstance(block, Figure):
            on_step(block.name)
            drawings[block.name] = _draw(block)
    sections = [section for section in document.sections if section.blocks]
    rules = typeface.embedded_faces() + "\n" + _template("report.css")
    style = Markup(rules)  # noqa: S704 - our own files  # nosec B704
    template = environment.get_template("report.html")
    return template.render(document=document, sections=sections, drawings=drawings, style=style) + "\n"


def _template(name: str) -> str:
    return (files("steelyard.report") / "templates" / name).read_text(encoding="utf-8")


def _kind(block: Block) -> str:
    return type(block).__name__.lower()


def _data(cell: Cell) -> dict[str, Any]:
    """Return the numbers of a cell as data attributes."""
    numbers = {"value": cell.value, "lower": cell.lower, "upper": cell.upper}
    return {f"data-{name}": repr(float(number)) for name, number in numbers.items() if number is not None}


def _draw(figure: Figure) -> dict[str, Any]:
    """Draw a figure in both widths; vl-convert escapes the texts in it."""
    return {
        "title": charts.title_of(figure.chart),
        "wide": _inline(charts.svg(figure.chart, width=WIDE, embed_font=False), f"{figure.name}-w"),
        "narrow": _inline(charts.svg(figure.chart, width=NARROW, embed_font=False), f"{figure.name}-n"),
    }


def _inline(svg: str, prefix: str) -> Markup:
    """Return an SVG for a page with several: its ids get a prefix, so that they are unique."""
    named = _ID.sub(rf"\g<1>{prefix}-\g<2>", svg)
    return Markup(named)  # noqa: S704 - vl-convert escapes  # nosec B704
