"""Known answers from a table: the gold of some items."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.errors import DataError
from steelyard.formats.columns import find_columns
from steelyard.formats.problems import Problems
from steelyard.formats.tables import Source, open_table

_ALIASES: dict[str, tuple[str, ...]] = {
    "item": ("itemid", "id", "task"),
    "gold": ("label", "value", "score", "truth"),
    "criterion": ("dimension", "aspect"),
}


def read_gold(source: Source, *, columns: Mapping[str, str] | None = None) -> dict[str, dict[str, str]]:
    """Read known answers: `{criterion: {item: answer}}`, with the criterion "" where the table names none.

    The columns are `item` and `gold` (or `label`, `value`, `score`, `truth`). A file of judgments that repeats
    each item's gold in every row will do; two different answers for one item are refused. Rows without an
    answer are passed over.
    """
    table = open_table(source)
    problems = Problems(table.file, table.lines)
    found = find_columns(table.frame.columns, _ALIASES, columns, problems)
    problems.refuse()
    for field in ("item", "gold"):
        if len(found.columns.get(field, ())) != 1:
            several = " or ".join(found.columns.get(field, ()))
            raise DataError(
                f"it is not clear which column is the {field} ({several})."
                if several
                else f"there is no column {field}.",
                f'Name it: columns={{"{field}": "their_name"}}, or call the column {field}.',
                file=table.file,
            )
    picked = [found.columns[field][0] for field in ("item", "gold")]
    criterion = found.columns["criterion"][0] if "criterion" in found else None
    gold: dict[str, dict[str, str]] = {}
    for row, values in enumerate(table.frame.select(*picked, *([criterion] if criterion else [])).iter_rows()):
        item, answer, *rest = ("" if value is None else str(value).strip() for value in values)
        if not item or not answer:
            continue
        known = gold.setdefault(rest[0] if rest else "", {})
        if known.setdefault(item, answer) != answer:
            problems.at([row], f"'{item}' has gold {known[item]} above and {answer} here.", "Keep one.", "gold")
    problems.refuse()
    if not gold:
        raise DataError("there is no gold in it.", "Give some items an answer.", file=table.file)
    return gold
