"""A task of a study that is being drafted, as annotators would see it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from steelyard import registry
from steelyard.errors import ConfigError
from steelyard.protocols.base import Protocol
from steelyard.records import Item
from steelyard.study import StudyConfig
from steelyard.web.content import block, render
from steelyard.web.schemas import ItemOut, SharedOut, TaskOut, settings_out

_MOST_EXAMPLES = 50
"""Invented items that a preview shows before there are real ones."""
_EXAMPLES = (
    "the first",
    "the second",
    "the third",
    "the fourth",
    "the fifth",
    "the sixth",
    "the seventh",
    "the eighth",
)


def preview_of(
    values: Mapping[str, Any], config: StudyConfig | None, items: list[Item]
) -> tuple[TaskOut | None, dict[str, Any]]:
    """Return a task as annotators would see it, with the items or invented ones, and how the page shows it."""
    protocol = config.stages[0].protocol if config is not None else _protocol(values)
    if protocol is None:
        return None, {}
    page = values.get("page") if isinstance(values.get("page"), Mapping) else {}
    content: Literal["text", "markdown", "html"] = config.page.content if config is not None else "text"
    task_items = items[: protocol.task_size] or [
        Item(str(number), _EXAMPLES[number % len(_EXAMPLES)])
        for number in range(min(protocol.task_size, _MOST_EXAMPLES))
    ]

    def html(text: str | None) -> str | None:
        return None if text is None else block(render(text, content, ""))

    def out(item: Item) -> ItemOut:
        rendered = render(item.text, content, "")
        return ItemOut(
            id=item.id,
            text=item.text,
            html=rendered.html,
            dir=rendered.direction,
            context=item.context,
            context_html=html(item.context),
            reference=item.reference,
            reference_html=html(item.reference),
        )

    task = TaskOut(
        judgment_id="preview",
        stage=protocol.name,
        protocol=protocol.name,
        question=str(values.get("question", "")),
        lease_end=None,
        items=[out(item) for item in task_items],
        shared=SharedOut(),
        settings=json.loads(json.dumps(settings_out(protocol))),
    )
    shows = {
        "show_value": True,
        "sort_live": False,
        **{k: v for k, v in dict(page or {}).items() if isinstance(v, bool)},
    }
    return task, shows


def _protocol(values: Mapping[str, Any]) -> Protocol | None:
    table = values.get("protocol")
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
        return None
    settings = {key: value for key, value in table.items() if key != "name"}
    try:
        protocol: Protocol = registry.create("protocols", table["name"], settings)
    except ConfigError:
        return None
    return protocol
