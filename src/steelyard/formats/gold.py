"""Read gold answers from a table."""

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
    """Read gold answers: `{criterion: {item: answer}}`; the criterion is "" if the table has none.

    The columns are `item` and `gold` (or `label`, `value`, `score`, `truth`). Gold may be repeated in several rows,
    as in a file of judgments; two different answers for one item are refused. Rows without an answer are skipped.
    """
    table = open_table(source)
    problems = Problems(table.file, table.lines)
    fields = find_columns(table.frame.columns, _ALIASES, columns, problems)
    problems.refuse()
    for field in ("item", "gold"):
        if len(fields.columns.get(field, ())) != 1:
            several = " or ".join(fields.columns.get(field, ()))
            raise DataError(
                f"several columns could be the {field} ({several})." if several else f"there is no column {field}.",
                f'Name it: columns={{"{field}": "their_name"}}, or call the column {field}.',
                file=table.file,
            )
    picked = [fields.columns[field][0] for field in ("item", "gold")]
    criterion = fields.columns["criterion"][0] if "criterion" in fields else None
    gold: dict[str, dict[str, str]] = {}
    for row, values in enumerate(table.frame.select(*picked, *([criterion] if criterion else [])).iter_rows()):
        item, answer, *rest = ("" if value is None else str(value).strip() for value in values)
        if not item or not answer:
            continue
        answers = gold.setdefault(rest[0] if rest else "", {})
        if answers.setdefault(item, answer) != answer:
            problems.at([row], f"'{item}' has gold {answers[item]} above and {answer} here.", "Keep one.", "gold")
    problems.refuse()
    if not gold:
        raise DataError("there are no gold answers.", "Fill in the column gold for some items.", file=table.file)
    return gold
