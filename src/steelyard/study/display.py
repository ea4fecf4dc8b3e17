"""What annotators see of an item: the columns that [page] fields names, their order, headings and formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.errors import DataError, Problem, did_you_mean
from steelyard.formats.conversations import conversation_text, parse_conversation
from steelyard.formats.tables import open_table
from steelyard.protocols import ErrorSpans, Protocol
from steelyard.records import Item
from steelyard.study.config.tables import Format, Page, ShownField

_FIELDS: dict[str, Callable[[Item], str | None]] = {
    "text": lambda item: item.text,
    "id": lambda item: item.id,
    "group": lambda item: item.group,
    "system": lambda item: item.group,
    "context": lambda item: item.context,
    "source": lambda item: item.context,
    "reference": lambda item: item.reference,
    "gold": lambda item: item.gold,
    "tags": lambda item: ", ".join(item.tags) or None,
}
"""Names of an item's own fields; other names are columns of its metadata."""
_BESIDE = {"context": "context", "source": "context", "reference": "reference"}
"""Fields with a place of their own, beside the items."""
_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class ItemPart:
    """One text of an item: its column, heading, format, and programming language if it is code."""

    column: str
    label: str
    format: Format
    text: str
    language: str | None = None

    def plain(self) -> str:
        """Return the text for terminals and language models."""
        return conversation_text(self.text) if self.format == "conversation" else self.text


def item_parts(item: Item, page: Page) -> list[ItemPart]:
    """Return what is shown in the place of an item, without its media, context and reference."""
    fields = [field for field in page.fields if field.column not in _BESIDE]
    parts = (_part(item, field, page) for field in fields or [ShownField(column="text")])
    return [part for part in parts if part.text]


def part_beside(item: Item, name: str, page: Page) -> ItemPart | None:
    """Return the context or the reference of an item; None if it has none."""
    text = _FIELDS[name](item)
    if not text:
        return None
    field = next((one for one in page.fields if _BESIDE.get(one.column) == name), ShownField(column=name))
    return replace(_part(item, field, page), column=name, label=label_beside(name, page) or "")


def label_beside(name: str, page: Page) -> str | None:
    """Return the heading above the context or the reference; None for the usual word."""
    field = next((one for one in page.fields if _BESIDE.get(one.column) == name), None)
    return (page.context_label if name == "context" else page.reference_label) or (field.label if field else None)


def _part(item: Item, field: ShownField, page: Page) -> ItemPart:
    read = _FIELDS.get(field.column)
    text = item.metadata.get(field.column) if read is None else read(item)
    label = field.label
    if label is None:
        label = "" if field.column == "text" else field.column.replace("_", " ")
    return ItemPart(field.column, label, field.format or _default_format(field, page), text or "", field.language)


def _default_format(field: ShownField, page: Page) -> Format:
    # Conversations and code are seldom the format of titles and sources too.
    if page.content in {"conversation", "code"} and field.column != "text":
        return "text"
    return page.content


def shown_columns(page: Page) -> tuple[str, ...]:
    """Return the columns of the metadata that annotators see."""
    return tuple(field.column for field in page.fields if field.column not in _FIELDS)


def reading_length(item: Item, page: Page) -> int:
    """Return how many characters an annotator reads for an item, with its context and reference."""
    beside = sum(len(text or "") for text in (item.context, item.reference))
    return beside + sum(len(part.text) for part in item_parts(item, page))


# What is wrong, and what annotators might learn from it


def display_problems(page: Page, protocols: Iterable[Protocol], items: Sequence[Item]) -> list[Problem]:
    """List the problems of [page] fields, apart from the contents of items."""
    problems: list[Problem] = []
    columns = dict.fromkeys(name for item in items for name in item.metadata)
    names = [field.column for field in page.fields]
    for number, name in enumerate(names):
        place = f"page.fields.{number}.column"
        if name == "media":
            problems.append(Problem("media are always shown.", "Leave 'media' out of fields.", field=place))
        elif name not in _FIELDS and name not in columns:
            choices = [*columns, *(one for one in _FIELDS if one not in {"group", "source"})]
            problems.append(Problem(f"the items have no column '{name}'.", did_you_mean(name, choices), field=place))
        elif name in names[:number]:
            problems.append(Problem(f"'{name}' is named twice.", "Name each column once.", field=place))
    if any(isinstance(protocol, ErrorSpans) for protocol in protocols):
        problems += _marking_problems(page)
    return problems


def _marking_problems(page: Page) -> list[Problem]:
    fields = [field for field in page.fields if field.column not in _BESIDE]
    text = next((field for field in fields if field.column == "text"), None)
    if fields and text is None:
        what = "error_spans marks the text, but fields does not name it."
        return [Problem(what, "Add 'text' to fields.", field="page.fields")]
    kind = text.format if text is not None and text.format else page.content
    if kind in {"conversation", "code", "html"} or (text is not None and text.format == "markdown"):
        what = f"error_spans marks plain text, so the text cannot be shown as {kind}."
        place = "page.content" if text is None or text.format is None else "page.fields"
        return [Problem(what, "Use the format 'text', or another protocol.", field=place)]
    return []


def content_problems(page: Page, items: Sequence[Item], file: Path, label: str) -> list[Problem]:
    """Name the items whose conversations cannot be read, or of which nothing is shown, with their lines in the file."""
    if not page.fields and page.content != "conversation":
        return []
    problems = [(row, problem) for row, item in enumerate(items) for problem in _item_problems(item, page)]
    if not problems:
        return []
    table = open_table(file)
    lines = table.lines([row for row, _ in problems[:_MOST_PROBLEMS]])
    located = [
        replace(problem, file=label, line=line)
        for (_, problem), line in zip(problems[:_MOST_PROBLEMS], lines, strict=True)
    ]
    more = len(problems) - _MOST_PROBLEMS
    return [*located, *([Problem(f"… and {more} more.", file=label)] if more > 0 else [])]


def _item_problems(item: Item, page: Page) -> Iterable[Problem]:
    parts = item_parts(item, page)
    if not parts and not item.media:
        remedy = "Fill in one of its columns, or add 'text' to [page] fields."
        yield Problem(f"nothing of item '{item.id}' would be shown.", remedy)
    beside = [part for name in ("context", "reference") if (part := part_beside(item, name, page)) is not None]
    for part in [*parts, *beside]:
        if part.format == "conversation":
            try:
                parse_conversation(part.text)
            except DataError as error:
                yield replace(error.problems[0], field=part.column)


def unblinding_warnings(page: Page, items: Sequence[Item]) -> list[str]:
    """Warn about columns from which annotators learn the known answer, or which system an item comes from."""
    warnings = []
    systems = {item.group for item in items if item.group is not None}
    for field in page.fields:
        name = field.column
        if name in {"group", "system"} and systems:
            warnings.append("Annotators see which system each item comes from, because [page] fields names it.")
        elif name == "gold":
            warnings.append("Annotators see the known answers, because [page] fields names 'gold'.")
        elif name not in _FIELDS and len(systems) > 1 and _reveals_system(name, items):
            warnings.append(
                f"The column '{name}' differs between systems and is the same within each, so annotators who see it "
                "can tell systems apart."
            )
    return warnings


def _reveals_system(column: str, items: Sequence[Item]) -> bool:
    values: dict[str | None, set[str | None]] = {}
    for item in items:
        values.setdefault(item.group, set()).add(item.metadata.get(column))
    sole = [next(iter(own)) for own in values.values() if len(own) == 1]
    return len(sole) == len(values) and len(set(sole)) == len(sole)
