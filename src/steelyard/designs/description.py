"""Description of a design in sentences: compared items, numbers of tasks and judgments, and omitted items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil, comb
from typing import NamedTuple

from steelyard.designs.base import Design
from steelyard.designs.contexts import context_sizes
from steelyard.protocols.base import Protocol
from steelyard.records import Item

_MOST_NAMES = 3
"""Sources that a warning names before it says how many more there are."""
_NAME_LENGTH = 40


class PlanSize(NamedTuple):
    """How much a stage asks: different tasks, answers to them, and answers that concern each item on average.

    `shown_items` counts the items that tasks can show; `annotators` are those of each task.
    """

    tasks: int
    judgments: int
    per_item: float
    shown_items: int
    annotators: int


class PlanDescription(NamedTuple):
    """Sentences that say what a stage asks, and warnings about items that it cannot compare as one might expect."""

    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
    size: PlanSize


def describe_plan(design: Design, protocol: Protocol, items: Sequence[Item]) -> PlanDescription:
    """Describe what a stage will ask."""
    size = plan_size(design, protocol, items)
    sentences, warnings = [], []
    if not protocol.takes_short_pages:
        sentences.append(_comparisons(design, protocol, items))
        warnings = _warnings(design, protocol, items)
    sentences.append(_totals(design, protocol, size))
    return PlanDescription(tuple(sentences), tuple(warnings), size)


def plan_size(design: Design, protocol: Protocol, items: Sequence[Item]) -> PlanSize:
    """Return the number of tasks and judgments of a stage, without exclusions or early stopping."""
    total = design.goal(design.new_progress(protocol, items), protocol.task_size).total
    sizes = context_sizes(items)
    n_shown = len(items)
    if design.within_contexts(protocol):
        n_shown = sum(count for count in sizes.values() if count >= protocol.task_size)
    if protocol.takes_short_pages and design.name == "per_item":
        # Its goal counts single items, of which a page may show several.
        judgments = ceil(total / protocol.task_size)
        return PlanSize(judgments, judgments, total / max(n_shown, 1), n_shown, 1)
    annotators = design.capacity
    return PlanSize(total // annotators, total, total * protocol.task_size / max(n_shown, 1), n_shown, annotators)


def _comparisons(design: Design, protocol: Protocol, items: Sequence[Item]) -> str:
    sizes = context_sizes(items)
    has_contexts = set(sizes) != {None}
    if not design.within_contexts(protocol) or not has_contexts:
        why = ", also of other sources, because across_contexts = true" if has_contexts else ""
        return f"Each item is compared with any other{why}: {len(items):,} items, {_sets([len(items)], protocol)}."
    comparable = [count for count in sizes.values() if count >= protocol.task_size]
    sources = sum(1 for name, count in sizes.items() if name is not None and count >= protocol.task_size)
    return (
        f"Items are compared within the same source: {_layout(items, sources, comparable)}, "
        f"{_sets(comparable, protocol)}."
    )


def _layout(items: Sequence[Item], sources: int, comparable: list[int]) -> str:
    """Describe the number of sources, and of items per source."""
    noun = "source" if sources == 1 else "sources"
    systems = {item.group for item in items if item.group is not None}
    pairs = Counter((item.context, item.group) for item in items)
    is_complete = len(pairs) == len(items) == len(systems) * sources and None not in systems
    low, high = min(comparable, default=0), max(comparable, default=0)
    if is_complete and low == high == len(systems):
        return f"{sources:,} {noun} × {len(systems):,} systems"
    each = f"{low:,} items each" if low == high else f"{low:,} to {high:,} items each"
    return f"{sources:,} {noun} with {each}"


def _sets(sizes: Sequence[int], protocol: Protocol) -> str:
    count = sum(comb(size, protocol.task_size) for size in sizes)
    if protocol.task_size == 2:
        return f"{count:,} possible pairs"
    return f"{count:,} possible sets of {protocol.task_size}" if count < 10**9 else f"sets of {protocol.task_size}"


def _totals(design: Design, protocol: Protocol, size: PlanSize) -> str:
    per_item = f"{size.per_item:,.1f}".removesuffix(".0")
    items_per_task = protocol.task_size
    each = f"of {items_per_task} items" if items_per_task > 1 else "of one item"
    by = f", each by {size.annotators} annotators" if size.annotators > 1 else ""
    at_most = "at most " if design.name == "propagation" else ""
    return (
        f"The plan has {at_most}{size.judgments:,} judgments: {size.tasks:,} tasks {each}{by}; "
        f"about {per_item} judgments per item."
    )


def _warnings(design: Design, protocol: Protocol, items: Sequence[Item]) -> list[str]:
    sizes = context_sizes(items)
    systems = {item.group for item in items if item.group is not None}
    if set(sizes) == {None}:
        if not systems:
            return []
        return [
            "items have systems but no source, so outputs for different inputs are compared; add a column source if "
            "each system answered the same inputs"
        ]
    if not design.within_contexts(protocol):
        return []
    warnings = []
    small = [name for name, count in sizes.items() if count < protocol.task_size and name is not None]
    if small:
        one = "source has" if len(small) == 1 else "sources have"
        fewer = "only one item" if protocol.task_size == 2 else f"fewer than {protocol.task_size} items"
        warnings.append(
            f"{len(small):,} {one} {fewer}, and {'is' if len(small) == 1 else 'are'} left out: {_names(small)}"
        )
    without = sizes.get(None, 0)
    if without:
        consequence = (
            "are compared with one another, never with items that have one"
            if without >= protocol.task_size
            else "are never shown"
        )
        warnings.append(f"{without:,} items have no source; they {consequence}")
    repeated = {
        context
        for (context, _), count in Counter((item.context, item.group) for item in items if item.group).items()
        if count > 1 and context is not None
    }
    if repeated:
        warnings.append(
            f"in {len(repeated):,} sources a system has several outputs, which may be compared with each other: "
            f"{_names(sorted(repeated))}"
        )
    return [*warnings, *design.plan_warnings(protocol, items)]


def _names(names: Sequence[str]) -> str:
    first_names = [name if len(name) <= _NAME_LENGTH else f"{name[:_NAME_LENGTH]}…" for name in names[:_MOST_NAMES]]
    more = len(names) - len(first_names)
    return ", ".join(f"“{name}”" for name in first_names) + (f" and {more:,} more" if more else "")
