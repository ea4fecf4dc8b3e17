"""The task section: question, stages, settings, and an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.records import Item
from steelyard.report.document import (
    Block,
    Example,
    Fact,
    Listing,
    Prose,
    Section,
    Table,
    count_column,
    facts_table,
    text_column,
)
from steelyard.study import Stage

ANSWERS = {
    "direct": "a slider for each item",
    "likert": "a step of a scale for each item",
    "choice": "a label for each item",
    "pairwise": "the better of two items",
    "best_worst": "the best and the worst of the items shown",
    "scored_ranking": "a slider for each of several items side by side",
    "ranking": "the items in order",
    "error_spans": "the errors of each text, with their severity, and a score",
}


def section(analysis: Analysis) -> Section:
    """Return the question, the stages and their settings, and an example."""
    study = analysis.study
    config = study.config
    items = study.items
    facts = []
    groups = {item.group for item in items if item.group is not None}
    if groups:
        facts.append(Fact("groups that items belong to", len(groups)))
    gold = sum(item.gold is not None for item in items)
    if gold:
        facts.append(Fact("items with a known answer", gold))
    questions = dict.fromkeys(config.question_of(stage) for stage in config.stages)
    quoted = ", ".join(f"“{question}”" for question in questions)
    label = "Question" if len(questions) == 1 else "Questions"
    blocks: list[Block] = [Prose(f"Annotators judged {len(items):,} items. {label}: {quoted}")]
    blocks += [facts_table("items", "Items.", facts)] if facts else []
    status = {stage.name: stage for stage in study.status().stages}
    rows = [
        (
            s.name,
            s.protocol.name,
            ANSWERS.get(s.protocol.name, ""),
            s.design.name,
            status[s.name].done,
            status[s.name].total,
        )
        for s in config.stages
    ]
    names = ["stage", "protocol", "answer", "design", "done", "planned"]
    columns = [
        text_column("protocol", "protocol"),
        text_column("answer", "one answer is"),
        text_column("design", "design"),
    ]
    columns += [count_column("done", "judgments done"), count_column("planned", "planned")]
    if len(rows) > 1:
        columns.insert(0, text_column("stage", "stage"))
    blocks.append(
        Table("stages", "Questions, designs and model.", pl.DataFrame(rows, schema=names, orient="row"), tuple(columns))
    )
    blocks += [example for stage in config.stages if (example := _example(analysis, stage)) is not None]
    settings = [
        (part, key, _written(value))
        for stage in config.stages
        for part, made in (
            (f"protocol {stage.protocol.name}", stage.protocol),
            (f"design {stage.design.name}", stage.design),
        )
        for key, value in _settings(made).items()
    ]
    settings += [(f"model {config.model.name}", key, _written(value)) for key, value in _settings(config.model).items()]
    frame = pl.DataFrame(settings, schema=["of", "setting", "value"], orient="row")
    columns = [text_column("of", "of"), text_column("setting", "setting"), text_column("value", "value")]
    blocks.append(Table("settings", "All settings of protocols, designs and the model.", frame, tuple(columns)))
    if (instructions := study.annotators.texts().instructions) is not None:
        blocks.append(Listing("instructions.md", "Instructions as shown to annotators.", instructions, wrapped=True))
    return Section("task", "What was asked", tuple(blocks))


def _settings(made: Any) -> dict[str, object]:
    return {f.name: getattr(made, f.name) for f in fields(made)}


def _written(value: object) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        return _written({key: one for key, one in _settings(value).items() if one not in (None, ())})
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_written(one)}" for key, one in value.items()) or "none"
    if isinstance(value, tuple | list):
        return ", ".join(_written(one) for one in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None or value == "" else str(value)


def _example(analysis: Analysis, stage: Stage) -> Example | None:
    """Show the first judged task of a stage, in the order of display."""
    judgments = analysis.history.judgments.filter(
        (pl.col("stage") == stage.name) & pl.col("purpose").is_in(["judgment", "overlap"])
    )
    if judgments.is_empty():
        return None
    items_by_id = {item.id: item for item in analysis.study.items}
    items: list[Item] = [items_by_id[name] for name in judgments["items"][0] if name in items_by_id]
    around = [
        (what, text)
        for what, text in (("context", items[0].context), ("reference", items[0].reference))
        if items and text is not None
    ]
    labels = getattr(stage.protocol, "labels", ())
    how = ANSWERS.get(stage.protocol.name, "")
    if stage.protocol.strengths > 1:
        how += f", and how much better: {', '.join(getattr(stage.protocol, 'strength_names', ()))}"
    scales = stage.protocol.scales()
    if scales:
        how += ", from " + "; ".join(f"{name} {low:g} to {high:g}".strip() for name, (low, high) in scales.items())
        how += f" ({' … '.join(labels)})" if labels else ""
    classes = stage.protocol.classes()
    if classes:
        how += ": " + "; ".join(f"{name} {', '.join(given)}".strip() for name, given in classes.items())
    return Example(
        f"A task of {stage.name}, in the order shown.",
        analysis.study.config.question_of(stage),
        tuple(item.text or item.media or item.id for item in items),
        tuple(around),
        f"The answer is {how}.",
    )
