"""How each protocol is asked in the terminal, line by line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any, TypeAlias

from steelyard.errors import AnswerError
from steelyard.protocols import BestWorst, Choice, ErrorSpans, Pairwise, Protocol, Ranking
from steelyard.protocols.base import ONLY
from steelyard.protocols.error_spans import mark_of_quote
from steelyard.protocols.per_item import PerItemProtocol
from steelyard.protocols.whole_task import WholeTaskProtocol
from steelyard.records import Item

Prompt: TypeAlias = Callable[[str], str]
"""Shows a text and returns the line typed."""


@singledispatch
def ask_for(protocol: Protocol, items: Sequence[Item], prompt: Prompt) -> Any:
    """Ask for the answer to a task, in as many lines as it takes."""
    raise AnswerError(f"{protocol.name} cannot be answered in the terminal.", "Use the Python API.")


@ask_for.register
def _(protocol: PerItemProtocol, items: Sequence[Item], prompt: Prompt) -> Any:
    names = protocol.criterion_names()
    answer: dict[str, Any] = {}
    for item in items:
        label = item.text if len(items) > 1 else ""
        values = {name: _ask_value(protocol, item, label, name, prompt) for name in names}
        answer[item.id] = values[ONLY] if names == (ONLY,) else values
    return answer


def _ask_by_criterion(protocol: WholeTaskProtocol, items: Sequence[Item], prompt: Prompt) -> Any:
    plain = protocol.without_criteria()
    return {
        name: ask_for(plain, items, lambda text, name=name: prompt(f"{name}: {text}"))  # type: ignore[misc]
        for name in protocol.criterion_names()
    }


@ask_for.register
def _(protocol: ErrorSpans, items: Sequence[Item], prompt: Prompt) -> Any:
    answer: dict[str, Any] = {}
    for item in items:
        label = item.text if len(items) > 1 else ""
        value: dict[str, Any] = {"spans": _ask_marks(protocol, item, label, prompt)}
        if protocol.score == "slider":
            score: Any = _ask_value(protocol, item, "score", ONLY, prompt, protocol.check_imported)
            value |= score
        answer[item.id] = value
    return answer


def _ask_marks(protocol: ErrorSpans, item: Item, label: str, prompt: Prompt) -> list[Any]:
    """Ask for the wrong words, one error a line, until the line is empty."""
    severity = next(iter(protocol.severities))
    example = f"{severity}: {f'{protocol.categories[0]}: ' if protocol.categories else ''}the wrong words"
    marks: list[Any] = []
    note = ""
    while text := prompt(f"{note}{label} error {len(marks) + 1} ({example}; empty for none)".strip()):
        note = ""
        parts = [part.strip() for part in text.split(":", 2 if protocol.categories else 1)]
        try:
            mark = mark_of_quote(item.text, parts[-1], parts[0], parts[1] if len(parts) > 2 else "")
            protocol.validate([item.id], {item.id: {"spans": [*marks, mark], "score": protocol.scales()[ONLY][0]}})
        except AnswerError as error:
            note = f"{error.problems[0].what} {error.problems[0].remedy}\n  "
        else:
            marks.append(mark)
    return marks


@ask_for.register
def _(protocol: Pairwise, items: Sequence[Item], prompt: Prompt) -> Any:
    if protocol.criteria:
        return _ask_by_criterion(protocol, items, prompt)
    text = prompt("better: 1 or 2" + (", or 0 for a tie" if protocol.ties else ""))
    if text == "0" and protocol.ties:
        return {"winner": None}
    winner = _numbered(items, text, "Type 1 or 2" + (", or 0 for a tie." if protocol.ties else "."))
    if protocol.strengths == 1:
        return {"winner": winner}
    words = ", ".join(f"{number} {name}" for number, name in enumerate(protocol.strength_names, 1))
    strength = prompt(f"how much better: {words}")
    if not strength.isdecimal():
        raise AnswerError(f"'{strength}' is not a strength.", f"Type a number from 1 to {protocol.strengths}.")
    return {"winner": winner, "strength": int(strength)}


@ask_for.register
def _(protocol: BestWorst, items: Sequence[Item], prompt: Prompt) -> Any:
    if protocol.criteria:
        return _ask_by_criterion(protocol, items, prompt)
    best, worst = protocol.labels
    return {"best": _numbered(items, prompt(best)), "worst": _numbered(items, prompt(worst))}


@ask_for.register
def _(protocol: Ranking, items: Sequence[Item], prompt: Prompt) -> Any:
    if protocol.criteria:
        return _ask_by_criterion(protocol, items, prompt)
    text = prompt("from best to worst, like 2>1=3" if protocol.ties else "from best to worst, like 2>1>3")
    # Without ties, "2 1 3" and "2,1,3" can mean only one thing.
    plain = text if ">" in text or "=" in text else ">".join(text.replace(",", " ").split())
    remedy = f"Write all {len(items)} numbers, best first, like 2>1=3."
    return [[_numbered(items, number.strip(), remedy) for number in tier.split("=")] for tier in plain.split(">")]


def _numbered(items: Sequence[Item], text: str, remedy: str = "") -> str:
    if text.isdecimal() and 1 <= int(text) <= len(items):
        return items[int(text) - 1].id
    raise AnswerError(f"'{text}' is not one of the numbers.", remedy or f"Type a number from 1 to {len(items)}.")


def _question(protocol: PerItemProtocol, item: str, criterion: str) -> str:
    what = " ".join(part for part in (item, criterion) if part)
    if isinstance(protocol, Choice):
        labels = protocol.classes()[criterion]
        return f"{what} ({'  '.join(f'{n} {label}' for n, label in enumerate(labels, start=1))})".strip()
    low, high = protocol.scales()[criterion]
    labels = getattr(protocol, "labels", ())
    ends = f", {labels[0]} … {labels[-1]}" if labels and not criterion else ""
    return f"{what} ({low:g} to {high:g}{ends})".strip()


def _ask_value(
    protocol: PerItemProtocol,
    item: Item,
    shown: str,
    criterion: str,
    prompt: Prompt,
    check: Callable[[object, str, str], object] | None = None,
) -> object:
    """Ask until the value is one, so that a slip does not cost the values before it."""
    question = _question(protocol, shown, criterion)
    note = ""
    while True:
        try:
            return (check or protocol.check_value)(
                _value(protocol, criterion, prompt(note + question)), criterion, item.id
            )
        except AnswerError as error:
            problem = error.problems[0]
            note = f"{problem.what} {problem.remedy}\n  "


def _value(protocol: PerItemProtocol, criterion: str, text: str) -> object:
    if isinstance(protocol, Choice):
        labels = protocol.classes()[criterion]
        return labels[int(text) - 1] if text.isdecimal() and 1 <= int(text) <= len(labels) else text
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return text or None
