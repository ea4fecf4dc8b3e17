"""Printing: tables, JSON and CSV to standard output, notes and problems to standard error."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.cli.options import Format
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    import polars as pl

_WIDEST_BAR, _NARROWEST_BAR = 31, 12
_BESIDE_THE_BAR = 52
_NARROWEST_NAME = 10


def err_console() -> Console:
    """The console for everything except results."""
    return Console(stderr=True, highlight=False)


def print_problems(error: SteelyardError) -> None:
    """Print the problems, one per line."""
    console = err_console()
    for problem in error.problems:
        console.print(Text("✗ ", style="bold red"), Text(str(problem)), sep="", soft_wrap=True)
    for note in getattr(error, "__notes__", ()):
        console.print(Text(f"  {note}"), soft_wrap=True)


def print_done(text: str) -> None:
    """Print a message of success."""
    Console(highlight=False).print(Text("✓ ", style="green"), Text(text), sep="", soft_wrap=True)


def print_notes(notes: Iterable[str]) -> None:
    """Print notes on a result."""
    console = err_console()
    for note in notes:
        console.print(Text(f"· {note}", style="dim"), soft_wrap=True)


def print_warnings(warnings: Iterable[str]) -> None:
    """Print what may not be as intended, to standard error."""
    console = err_console()
    for warning in warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)


def print_frame(frame: pl.DataFrame, form: Format) -> None:
    """Print a table for machines: JSON as a list of objects, or CSV."""
    from steelyard.formats import write_table

    write_table(frame, sys.stdout, form.value)
    if form is Format.json:
        sys.stdout.write("\n")
    sys.stdout.flush()


def with_criteria(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Put the tables of several criteria into one, with a column `criterion`; a single one has no name."""
    import polars as pl

    return pl.concat(
        [
            frame.select(pl.lit(criterion).alias("criterion"), pl.all()) if criterion else frame
            for criterion, frame in frames.items()
        ],
        how="diagonal",
    )


def print_scores(frame: pl.DataFrame, title: str, form: Format, top: int | None = None, level: float = 0.95) -> None:
    """Print a scores (or labels) table: all of it, or the first `top` rows of each criterion."""
    import polars as pl

    rows = frame if top is None else pl.concat(part.head(top) for part in _by_criterion(frame).values())
    if form is not Format.table:
        print_frame(rows, form)
        return
    console = Console()
    console.print(scores_table(rows, title, console.width, frame, level))
    if rows.height < frame.height:
        console.print(Text(f"… and {frame.height - rows.height} more (--top 0 for all)", style="dim"))


def scores_table(
    frame: pl.DataFrame, title: str, width: int, whole: pl.DataFrame | None = None, level: float = 0.95
) -> Table:
    """Format a scores table, with intervals drawn if the terminal is wide enough."""
    if "score" not in frame.columns:
        return labels_table(frame, title, level)
    whole = frame if whole is None else whole
    table = _bare_table(title)
    extra = [name for name in ("criterion", "group") if name in frame.columns]
    table.add_column("rank", justify="right")
    table.add_column("item", overflow="fold", max_width=40)
    for name in extra:
        table.add_column(name)
    table.add_column("score", justify="right")
    table.add_column(f"{level * 100:g} % interval", justify="right")
    bar = min(_WIDEST_BAR, width - _BESIDE_THE_BAR - 12 * len(extra))
    if bar >= _NARROWEST_BAR:
        table.add_column("", width=bar, style="blue")
    table.add_column("judgments", justify="right")
    ends = {key: _ends(part) for key, part in _by_criterion(whole).items()}
    for row in frame.iter_rows(named=True):
        low, high = ends[row.get("criterion")]
        cells = [_rank(row), str(row["item"]), *(str(row[name] or "") for name in extra)]
        places = 1 if max(abs(low), abs(high)) >= 10 else 3
        cells += [number(row["score"], places), _interval(row, places)]
        if bar >= _NARROWEST_BAR:
            cells.append(_bar(row, low, high, bar))
        table.add_row(*map(Text, cells), str(row["judgments"]))
    return table


def systems_table(frame: pl.DataFrame, title: str, level: float = 0.95) -> Table:
    """Format a comparison of systems; a line separates clusters, and criteria or subsets."""
    keys = frame.columns[: frame.columns.index("system")]
    table = _bare_table(title)
    for name in keys:
        table.add_column(name)
    table.add_column("cluster", justify="right")
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("system", overflow="fold", max_width=40)
    table.add_column("score", justify="right")
    table.add_column(f"{level * 100:g} % interval", justify="right", no_wrap=True)
    for name in ("better than", "wins", "ties", "losses", "judgments"):
        table.add_column(name, justify="right")
    low, high = _ends(frame)
    places = 1 if max(abs(low), abs(high)) >= 10 else 3
    before: tuple[object, ...] | None = None
    for row in frame.iter_rows(named=True):
        place = (*(row[name] for name in keys), row["cluster"])
        if before is not None and place != before:
            table.add_row()
        before = place
        rank = _rank(row)
        if row["rank_lower"] is not None and row["rank_lower"] != row["rank_upper"]:
            rank += f" ({row['rank_lower']}–{row['rank_upper']})"
        cells = [str(row[name] or "") for name in keys]
        cells += ["–" if row["cluster"] is None else str(row["cluster"]), rank, str(row["system"])]
        cells += [number(row["score"], places), _interval(row, places)]
        cells += [str(row[name]) for name in ("better_than", "wins", "ties", "losses", "judgments")]
        table.add_row(*map(Text, cells))
    return table


def differences_table(frame: pl.DataFrame, title: str, level: float = 0.95) -> Table:
    """Format the differences of every two systems; a star marks those that are significant after the correction."""
    keys = frame.columns[: frame.columns.index("system")]
    table = _bare_table(title)
    for name in (*keys, "system", "compared with"):
        table.add_column(name, overflow="fold", max_width=30)
    for name in ("difference", f"{level * 100:g} % interval", "p", "p (Holm)", "", "P(better)", "wins–ties–losses"):
        table.add_column(name, justify="right", no_wrap=True)
    largest = max((abs(value) for value in frame["difference"].drop_nulls()), default=0.0)
    places = 1 if largest >= 10 else 3
    for row in frame.iter_rows(named=True):
        cells = [str(row[name] or "") for name in (*keys, "system", "other")]
        cells += [number(row["difference"], places), _interval(row, places), number(row["p_value"])]
        cells += [number(row["p_holm"]), "*" if row["significant"] else "", number(row["probability"])]
        table.add_row(*map(Text, cells), f"{row['wins']}–{row['ties']}–{row['losses']}")
    return table


def labels_table(frame: pl.DataFrame, title: str, level: float = 0.95) -> Table:
    """Format a table of labels."""
    extra = [name for name in ("criterion", "group") if name in frame.columns]
    table = _bare_table(title)
    for name in ("item", *extra, "label"):
        table.add_column(name, overflow="fold", max_width=40)
    for name in ("proportion", f"{level * 100:g} % interval", "judgments"):
        table.add_column(name, justify="right")
    for row in frame.iter_rows(named=True):
        label = "–" if row["label"] is None else str(row["label"])
        if (row.get("tied") or 0) > 1:
            label += f" (tied with {row['tied'] - 1})"
        cells = [str(row["item"]), *(str(row[name] or "") for name in extra), label]
        table.add_row(*map(Text, cells), number(row["probability"]), _interval(row), str(row["judgments"]))
    return table


def statistics_table(frame: pl.DataFrame, title: str) -> Table:
    """Format a table of reliability statistics for the terminal."""
    extra = [name for name in ("criterion",) if name in frame.columns]
    table = _bare_table(title)
    for name in (*extra, "statistic"):
        table.add_column(name)
    for name in ("value", "95 % interval", "n"):
        table.add_column(name, justify="right")
    table.add_column("interval by")
    for row in frame.iter_rows(named=True):
        cells = [*(str(row[name]) for name in extra), row["label"], number(row["value"]), _interval(row)]
        table.add_row(*map(Text, cells), "" if row["n"] is None else f"{row['n']:,}", row["interval"] or "")
    return table


def annotators_table(frame: pl.DataFrame, title: str, top: int | None = None) -> Table:
    """Format a table of annotators: each statistic with its interval, without confusion matrices."""
    names = [n for n in frame.columns if not n.endswith(("_lower", "_upper")) and not n.startswith("p(")]
    # Many intervals do not fit into one row; then they are below their statistics, in few digits.
    many = sum(f"{name}_lower" in frame.columns for name in names) > 2
    write = (lambda value: f"{value:.2g}") if many else number
    table = _bare_table(title)
    for name in names:
        table.add_column(name, justify="right" if frame.schema[name].is_numeric() else "left", no_wrap=True)
    for row in (frame if top is None else frame.head(top)).iter_rows(named=True):
        cells = []
        for name in names:
            value = row[name]
            text = write(value) if isinstance(value, float) else "" if value is None else str(value)
            if row.get(f"{name}_lower") is not None:
                lower, upper = write(row[f"{name}_lower"]), write(row[f"{name}_upper"])
                text += f"\n{lower}…{upper}" if many else f" ({lower} … {upper})"
            cells.append(Text(text))
        table.add_row(*cells)
    return table


def plain_table(frame: pl.DataFrame, title: str, numbers: Collection[str] = ()) -> Table:
    """Format any table; `numbers` are columns of numbers that are already text."""
    table = _bare_table(title)
    for name, dtype in frame.schema.items():
        right = name in numbers or dtype.is_numeric()
        table.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=name in numbers)
    for row in frame.iter_rows():
        table.add_row(*[Text(number(v) if isinstance(v, float) else "" if v is None else str(v)) for v in row])
    return table


def print_whole(table: Table) -> None:
    """Print a table whose columns that must not wrap are never cut.

    Columns of names are wrapped; if that is not enough, lines are longer than the terminal.
    """
    console = Console(highlight=False)
    widths = [
        (column.no_wrap, max(console.measure(cell).maximum for cell in (column.header, *column.cells)))
        for column in table.columns
    ]
    least = sum(width if whole else min(width, _NARROWEST_NAME) for whole, width in widths)
    least += table.padding[1] * (len(widths) - 1) + table.padding[3] * (len(widths) - 1)
    Console(highlight=False, width=max(console.width, least)).print(table)


def _bare_table(title: str) -> Table:
    # Ids, labels and titles are user data: markup such as [red] in them is printed literally.
    return Table(title=Text(title, style="bold"), title_justify="left", header_style="bold", box=None, pad_edge=False)


def number(value: float | None, places: int = 3) -> str:
    """Format a number with this many decimals, or a dash."""
    return "–" if value is None else f"{value:.{places}f}"


def _rank(row: dict[str, Any]) -> str:
    return "–" if row["rank"] is None else str(row["rank"])


def _interval(row: dict[str, Any], places: int = 3) -> str:
    return "–" if row["lower"] is None else f"{number(row['lower'], places)} … {number(row['upper'], places)}"


def _by_criterion(frame: pl.DataFrame) -> dict[str | None, pl.DataFrame]:
    if "criterion" not in frame.columns:
        return {None: frame}
    return {
        str(key[0]): part for key, part in frame.partition_by("criterion", as_dict=True, maintain_order=True).items()
    }


def _ends(frame: pl.DataFrame) -> tuple[float, float]:
    """The ends of the drawn scale: where the lowest and the highest interval end."""
    values = [v for name in ("lower", "score", "upper") for v in frame[name].drop_nulls()]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _bar(row: dict[str, Any], low: float, high: float, width: int) -> str:
    if row["score"] is None:
        return ""

    def place(value: float) -> int:
        return round((value - low) / (high - low) * (width - 1))

    cells = [" "] * width
    if row["lower"] is not None:
        for cell in range(place(row["lower"]), place(row["upper"]) + 1):
            cells[cell] = "─"
    cells[place(row["score"])] = "●"
    return "".join(cells)
