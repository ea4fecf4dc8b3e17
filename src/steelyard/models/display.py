"""Small tables for notebooks, in plain HTML that works on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import polars as pl

MOST_ROWS = 10
_CELL = "padding:2px 12px 2px 0;text-align:{}"


def html_table(frame: pl.DataFrame, title: str, notes: Sequence[str] = (), *, most: int = MOST_ROWS) -> str:
    """Lay a frame out as HTML: a title, the first and last rows, and notes below."""
    half = most // 2
    whole = frame.height <= most
    parts = [frame] if whole else [frame.head(half), frame.tail(half)]
    align = ["right" if kind.is_numeric() else "left" for kind in frame.dtypes]
    head = "".join(
        f'<th style="{_CELL.format(side)}">{escape(name)}</th>' for name, side in zip(frame.columns, align, strict=True)
    )
    bodies = ["".join(_row(row, align) for row in part.iter_rows()) for part in parts]
    gap = f'<tr><td colspan="{frame.width}">… {frame.height - 2 * half:,} more …</td></tr>'
    below = "".join(f"<div><small>{escape(note)}</small></div>" for note in notes)
    return (
        f"<div><strong>{escape(title)}</strong>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{gap.join(bodies)}</tbody></table>{below}</div>"
    )


def _row(row: tuple[object, ...], align: list[str]) -> str:
    cells = (
        f'<td style="{_CELL.format(side)}">{escape(_text(value))}</td>' for value, side in zip(row, align, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
