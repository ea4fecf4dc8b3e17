"""Questions with known answers, for training and for checks, read from a table.

Each row is one question. `items` lists the items, separated by `|`: ids of items of the study, or other texts.
`answer` is the correct answer: for each item a value (`71`, with a tolerance of a tenth of the scale) or a range
(`60..100`), a label, the winner (or `tie`), or an order (`a > b = c`); for best–worst, the columns `best` and
`worst`; for error marking, the column `marked` with words that a mark must overlap (several separated by `;`), or
`none`. `feedback` is shown to annotators after a wrong answer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.errors import AnswerError, DataError
from steelyard.formats.problems import Problems
from steelyard.formats.tables import Source, open_table, strings
from steelyard.protocols.base import Protocol
from steelyard.protocols.error_spans import ErrorSpans
from steelyard.protocols.unjudged import unjudged_items
from steelyard.quality.expectations import ChosenAs, Demand, HasLabel, Marked, Within, order_demands
from steelyard.records import Item

TOLERANCE = 0.1
"""Tolerance of a value without a range, as a fraction of the scale."""

QUESTION_COLUMNS = ("items", "answer", "best", "worst", "marked", "feedback", "context", "reference")
_NOTHING_MARKED = "none"
_ALIASES = {"item": "items", "text": "items", "gold": "answer", "source": "context"}
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_RANGE = re.compile(rf"({_NUMBER})(?:\s*\.\.\s*({_NUMBER}))?")


@dataclass(frozen=True, slots=True)
class Question:
    """A task with a known answer."""

    protocol: Protocol
    items: tuple[Item, ...]
    demands: tuple[Demand, ...]
    feedback: str = ""
    cells: Mapping[str, str] = field(default_factory=dict)
    """The cells of the row it was read from."""

    @property
    def key(self) -> str:
        """Identifier that depends only on the items and the answer."""
        cells = [self.cells.get(name, "") for name in ("items", "answer", "best", "worst")]
        if self.cells.get("marked"):
            cells.append(self.cells["marked"])
        return hashlib.blake2b("\x1f".join(cells).encode(), digest_size=8).hexdigest()

    @property
    def item_ids(self) -> tuple[str, ...]:
        """Ids of the items, in display order."""
        return tuple(item.id for item in self.items)

    @property
    def expected(self) -> str:
        """The correct answer in words."""
        return "; ".join(demand.description() for demand in self.demands)

    def grade(self, answer: Any) -> bool:
        """Return whether an answer is correct; raise AnswerError if it is not valid."""
        if unjudged_items(self.protocol, self.item_ids, answer):
            # The answer to a check is known, so that somebody who cannot judge it does not pass.
            return False
        plain = self.protocol.validate(self.item_ids, answer)
        self.protocol.check_texts(self.items, plain)
        observations = self.protocol.observations(self.item_ids, plain)
        return all(demand.holds(observations) for demand in self.demands)


def read_questions(source: Source, protocol: Protocol, items: Sequence[Item] = ()) -> list[Question]:
    """Read questions for a protocol; every problem is reported at once, with its line."""
    table = open_table(source)
    problems = Problems(table.file, table.lines)
    items_by_id = {item.id: item for item in items}
    names = {column: _ALIASES.get(column.strip().lower(), column.strip().lower()) for column in table.frame.columns}
    for column, name in names.items():
        if name not in QUESTION_COLUMNS:
            problems.add(f"unknown column '{column}'.", f"Known: {', '.join(QUESTION_COLUMNS)}.")
    if "items" not in names.values():
        problems.add("there is no column items.", "List the item ids that each question shows, separated by |.")
    problems.refuse()
    columns = {
        name: strings(table.frame[column], table.file, column).fill_null("").str.strip_chars().to_list()
        for column, name in names.items()
    }
    questions = []
    for row in range(table.frame.height):
        cells = {name: values[row] for name, values in columns.items()}
        try:
            questions.append(_question(cells, protocol, items_by_id))
        except AnswerError as error:
            problem = error.problems[0]
            problems.at([row], problem.what, problem.remedy, problem.field)
    problems.refuse()
    if not questions:
        raise DataError("there are no questions.", "Add one row per question.", file=table.file)
    return questions


def _question(cells: Mapping[str, str], protocol: Protocol, items_by_id: Mapping[str, Item]) -> Question:
    names = [name for part in cells["items"].split("|") if (name := part.strip())]
    if len(names) != protocol.task_size and not (protocol.takes_short_pages and 1 <= len(names) <= protocol.task_size):
        raise AnswerError(
            f"it shows {len(names)} items, but {protocol.name} shows {protocol.task_size}.",
            "Separate the items by |.",
            field="items",
        )
    if len(set(names)) < len(names):
        raise AnswerError("an item is listed twice.", "List each item once.", field="items")
    context, reference = cells.get("context") or None, cells.get("reference") or None
    items = tuple(items_by_id.get(name) or Item(name, name, context=context, reference=reference) for name in names)
    demands = [*_demands(cells, protocol, names), *_mark_demands(cells.get("marked", ""), protocol, items)]
    if not demands:
        raise AnswerError("it has no answer.", _remedy(protocol), field="answer")
    return Question(protocol, items, tuple(demands), cells.get("feedback", ""), cells)


def _demands(cells: Mapping[str, str], protocol: Protocol, names: Sequence[str]) -> list[Demand]:
    answer = cells.get("answer", "")
    if "choices" in protocol.kinds:
        return [ChosenAs(_one_of(names, name, end), end) for end in ("best", "worst") if (name := cells.get(end, ""))]
    if not answer:
        return []
    if any(sign in answer for sign in "><") or not (protocol.scales() or protocol.classes()):
        return _order(answer, names)
    parts = [part.strip() for part in answer.split("|")]
    if len(parts) != len(names):
        raise AnswerError(
            f"it has {len(names)} items but {len(parts)} answers.", "Separate the answers by |.", field="answer"
        )
    return [demand for name, part in zip(names, parts, strict=True) for demand in _about(name, part, protocol)]


def _mark_demands(cell: str, protocol: Protocol, items: Sequence[Item]) -> list[Demand]:
    """Parse the words that must be marked: for each item, separated by |, words separated by ;, or `none`."""
    if not cell:
        return []
    if not isinstance(protocol, ErrorSpans):
        raise AnswerError("only error_spans has marks.", "Leave the column marked empty.", field="marked")
    parts = [part.strip() for part in cell.split("|")]
    if len(parts) != len(items):
        what = f"it has {len(items)} items but marked words for {len(parts)}."
        raise AnswerError(what, "Separate the items by |, and words of one item by ;.", field="marked")
    demands: list[Demand] = []
    for item, part in zip(items, parts, strict=True):
        if part == _NOTHING_MARKED:
            demands.append(Marked(item.id, ""))
            continue
        for words in filter(None, map(str.strip, part.split(";"))):
            start = item.text.find(words)
            if start < 0:
                what = f"'{words}' is not in the text of '{item.id}'."
                raise AnswerError(what, "Copy the words from the text exactly.", field="marked")
            demands.append(Marked(item.id, words, start, start + len(words)))
    return demands


def _about(name: str, part: str, protocol: Protocol) -> list[Demand]:
    """Parse the correct answer for one item: `60..100`, `joy`, or by criterion `adequacy: 60..100, fluency: 0..40`."""
    criteria = set(protocol.scales()) | set(protocol.classes())
    pieces = [piece.strip() for piece in part.split(",")] if any(c and f"{c}:" in part for c in criteria) else [part]
    demands: list[Demand] = []
    for piece in pieces:
        criterion, _, value = piece.rpartition(":") if criteria != {""} else ("", "", piece)
        criterion = criterion.strip()
        if criterion and criterion not in criteria:
            raise AnswerError(f"there is no criterion '{criterion}'.", _remedy(protocol), field="answer")
        demands.append(_demand(name, value.strip(), criterion or None, protocol))
    return demands


def _demand(name: str, value: str, criterion: str | None, protocol: Protocol) -> Demand:
    classes = protocol.classes()
    if classes:
        labels = tuple(label.strip() for label in value.split("/"))
        allowed = classes.get(criterion or "") or next(iter(classes.values()))
        invalid_labels = [label for label in labels if label not in allowed]
        if invalid_labels:
            raise AnswerError(
                f"'{invalid_labels[0]}' is not a label.", f"Use one of: {', '.join(allowed)}.", field="answer"
            )
        return HasLabel(name, labels, criterion)
    match = _RANGE.fullmatch(value)
    if match is None:
        raise AnswerError(f"'{value}' is neither a value nor a range.", _remedy(protocol), field="answer")
    scales = protocol.scales()
    bottom, top = scales.get(criterion or "") or next(iter(scales.values()))
    low = float(match[1])
    high = float(match[2]) if match[2] else low
    if not bottom <= low <= high <= top:
        raise AnswerError(f"'{value}' is not a range within {bottom:g} to {top:g}.", _remedy(protocol), field="answer")
    tolerance = 0.0 if match[2] else TOLERANCE * (top - bottom)
    return Within(name, low - tolerance, high + tolerance, criterion)


def _order(answer: str, names: Sequence[str]) -> list[Demand]:
    if answer.lower() == "tie":
        return order_demands([names])
    if ">" not in answer and "=" not in answer and len(names) == 2:
        winner = _one_of(names, answer, "answer")
        return order_demands([[winner], [name for name in names if name != winner]])
    return order_demands(
        [[_one_of(names, name.strip(), "answer") for name in tier.split("=")] for tier in answer.split(">")]
    )


def _one_of(names: Sequence[str], name: str, field: str) -> str:
    if name not in names:
        raise AnswerError(f"'{name}' is not among the items shown.", f"Name one of: {', '.join(names)}.", field=field)
    return name


def _remedy(protocol: Protocol) -> str:
    if "choices" in protocol.kinds:
        return "Give the best item, the worst item or both, in the columns best and worst."
    if protocol.classes():
        return "Write the label; alternatives are separated by /."
    if protocol.scales():
        return "Write a value such as 71 or a range such as 60..100 for each item, separated by |."
    return "Write the winner, 'tie', or an order such as a > b."
