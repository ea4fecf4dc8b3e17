"""Escape text that a spreadsheet would run as a formula with a leading apostrophe, and remove it when reading.

Excel and LibreOffice run a cell that begins with =, +, -, @, a tab or a carriage return; signed numbers are harmless.
Text between apostrophes ('-ness') already has a leading one and is left unchanged. To tell the two apart, text that
ends with an apostrophe is escaped with two.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

_ENDS_QUOTED = r"'$"
_DANGEROUS = r"(?s)^'*[=+\-@\t\r]"
_ESCAPED = r"(?s)^'+[=+\-@\t\r]"
_ESCAPED_TWICE = r"(?s)^''+[=+\-@\t\r]"
_NUMBER = r"^[+-](\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def escape_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Escape every cell and column name that a spreadsheet would run as a formula."""
    return _changed(frame, _escaped)


def restore_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Undo `escape_formulas`."""
    return _changed(frame, _restored)


def _escaped(text: pl.Expr) -> pl.Expr:
    quoted = text.str.contains(_ENDS_QUOTED)
    in_apostrophes = quoted & text.str.contains(_ESCAPED) & ~text.str.contains(_ESCAPED_TWICE)
    needed = text.str.contains(_DANGEROUS) & ~text.str.contains(_NUMBER) & ~in_apostrophes
    prefix = pl.when(quoted).then(pl.lit("''")).otherwise(pl.lit("'"))
    return pl.when(needed).then(prefix + text).otherwise(text)


def _restored(text: pl.Expr) -> pl.Expr:
    quoted = text.str.contains(_ENDS_QUOTED)
    return (
        pl.when(quoted & text.str.contains(_ESCAPED_TWICE))
        .then(text.str.slice(2))
        .when(~quoted & text.str.contains(_ESCAPED))
        .then(text.str.slice(1))
        .otherwise(text)
    )


def _changed(frame: pl.DataFrame, change: Callable[[pl.Expr], pl.Expr]) -> pl.DataFrame:
    if not frame.width:
        return frame
    texts = [name for name, kind in frame.schema.items() if kind in (pl.String, pl.Categorical, pl.Enum)]
    changed = frame.with_columns(change(pl.col(name).cast(pl.String)).alias(name) for name in texts)
    names = pl.DataFrame({"name": frame.columns}).select(change(pl.col("name")).alias("name"))
    return changed.rename(dict(zip(frame.columns, names["name"], strict=True)))
