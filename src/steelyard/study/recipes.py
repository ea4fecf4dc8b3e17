"""Recipes: a whole study from a file, with protocol, design and model chosen for a purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, comb
from typing import Any, NamedTuple

import polars as pl

from steelyard import registry
from steelyard.designs.budgets import budget_settings
from steelyard.designs.contexts import context_sizes
from steelyard.errors import ConfigError
from steelyard.formats.outputs import SystemOutputs
from steelyard.protocols.base import Protocol
from steelyard.records import Item

ITEMS_FILE = "items.csv"
_MAX_SYSTEMS_OF_ALL_PAIRS = 6
"""Up to this many systems, every two outputs of a source are compared: 15 pairs per source."""
_COMPARISONS_PER_OUTPUT = 6
_RATINGS_PER_OUTPUT = 3
_OVERLAP_RATE = 0.05

_QUESTIONS: dict[str, str] = {
    "pairwise": "Which {noun} is better?",
    "best_worst": "Which {noun} is best, and which is worst?",
    "ranking": "Put the {nouns} in order, the best first.",
    "scored_ranking": "How good are these {nouns}?",
    "direct": "How good is this {noun}?",
    "likert": "How good is this {noun}?",
    "choice": "Is this {noun} good enough?",
    "error_spans": "Mark the errors of this {noun}. Then score it.",
}
_PROTOCOL_SETTINGS: dict[str, dict[str, Any]] = {
    "pairwise": {"ties": True},
    "best_worst": {"size": 4, "labels": ["best", "worst"]},
    "ranking": {"size": 5, "ties": True},
    "scored_ranking": {"size": 5, "scale": [0, 100], "labels": ["very bad", "very good"]},
    "direct": {"scale": [0, 100], "labels": ["very bad", "very good"]},
    "likert": {"scale": [1, 5], "labels": ["very bad", "very good"]},
    "choice": {"labels": ["yes", "no"]},
    "error_spans": {"severities": {"minor": 1, "major": 5}, "labels": ["very bad", "perfect"]},
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """A study: the values of study.toml, comments on some of them by path, the items, and notes for the researcher.

    `header` are the lines that study.toml begins with.
    """

    values: dict[str, Any]
    comments: dict[str, str]
    header: tuple[str, ...]
    items: pl.DataFrame
    notes: tuple[str, ...]


def compare_systems(
    outputs: SystemOutputs,
    *,
    title: str,
    protocol: str = "pairwise",
    judgments: int | None = None,
    question: str | None = None,
) -> Recipe:
    """Return a study that compares systems by their outputs for the same sources.

    Parameters
    ----------
    outputs : SystemOutputs
        From `read_outputs`.
    title : str
        Title of the study.
    protocol : str
        How annotators are asked; by default which of two outputs is better.
    judgments : int, optional
        Judgments per output. By default all pairs of up to six systems once, or 6 comparisons or 3 ratings each.
    question : str, optional
        Question asked of annotators; by default one that fits protocol and outputs.
    """
    cls = registry.find("protocols", protocol)
    if protocol not in _PROTOCOL_SETTINGS:
        raise ConfigError(
            f"there is no recipe for the protocol {protocol}.", f"Use one of: {', '.join(_PROTOCOL_SETTINGS)}."
        )
    systems, sizes = outputs.systems, outputs.source_sizes
    n_outputs = Counter(sizes).most_common(1)[0][0]
    settings = dict(_PROTOCOL_SETTINGS[protocol])
    if "size" in settings:
        settings["size"] = min(settings["size"], n_outputs)
        if settings["size"] < 3:
            raise ConfigError(f"{protocol} needs at least 3 outputs per source.", "Use the protocol pairwise.")
    task_size = settings.get("size", 2 if protocol == "pairwise" else 1)
    design, comment = _design(protocol, judgments, task_size, n_outputs)
    if task_size > 1:
        design["across_contexts"] = False
    nouns = "summaries" if outputs.noun == "summary" else f"{outputs.noun}s"
    sources = f"{len(sizes):,} source{'s' * (len(sizes) != 1)}"
    return Recipe(
        values={
            "title": title,
            "question": question or _QUESTIONS[protocol].format(noun=outputs.noun, nouns=nouns),
            "items": ITEMS_FILE,
            "protocol": {"name": protocol, **settings},
            "design": design,
            "model": {"name": cls.model_of_new_studies()},
            "quality": {"overlap_rate": _OVERLAP_RATE},
            "annotators": {"lease_minutes": 30},
        },
        comments={
            "items": "id, source, system, output; annotators never see the system",
            "design.name": comment,
            "model.name": "scores of the systems: steelyard scores DIR --by system",
            "quality.overlap_rate": "fraction of tasks assigned to every annotator, to measure agreement",
            "annotators.lease_minutes": "a task not answered within this time is reassigned",
        },
        header=(f"Compares {len(systems)} systems by their {nouns} for {sources}: {', '.join(systems)}.",),
        items=outputs.frame,
        notes=outputs.notes,
    )


def _design(protocol: str, judgments: int | None, task_size: int, n_outputs: int) -> tuple[dict[str, Any], str]:
    """Return the table [design], and what its choice means for each source."""
    if task_size == 1:
        return {
            "name": "per_item",
            "judgments": judgments or _RATINGS_PER_OUTPUT,
        }, "every output is judged on its own, next to its source"
    if protocol == "pairwise":
        all_pairs = n_outputs - 1
        is_complete = n_outputs <= _MAX_SYSTEMS_OF_ALL_PAIRS if judgments is None else judgments >= all_pairs
        if is_complete:
            return {
                "name": "all_pairs",
                **budget_settings("all_pairs", judgments or all_pairs, 2, n_outputs),
            }, f"every pair of outputs of a source is compared: {comb(n_outputs, 2)} pairs per source"
        per_output = judgments or _COMPARISONS_PER_OUTPUT
        return {
            "name": "random_tuples",
            "judgments": per_output,
        }, f"two outputs of a source at a time, about {ceil(per_output * n_outputs / 2)} pairs per source"
    name = "balanced_tuples" if protocol == "best_worst" else "random_tuples"
    per_output = judgments or _COMPARISONS_PER_OUTPUT
    return {
        "name": name,
        **budget_settings(name, per_output, task_size, n_outputs),
    }, f"{task_size} outputs of a source at a time"


class DesignChoice(NamedTuple):
    """The settings of a design, and why it was chosen, in one sentence."""

    settings: dict[str, Any]
    reason: str


def choose_design(protocol: Protocol, items: Sequence[Item], judgments: int | None = None) -> DesignChoice:
    """Choose the design of a new study: outputs are compared within their source, other items with any other.

    `judgments` is the number of judgments per item; by default 3 ratings or labels, or 6 comparisons.
    """
    size = protocol.task_size
    if protocol.takes_short_pages:
        number = judgments or _RATINGS_PER_OUTPUT
        annotators = "one annotator" if number == 1 else f"{number} different annotators"
        return DesignChoice({"name": "per_item", "judgments": number}, f"Each item is judged by {annotators}.")
    sizes = context_sizes(items)
    is_within = bool(items) and set(sizes) != {None}
    comparable = [count for count in sizes.values() if count >= size] or [max(len(items), size)]
    n_comparable = Counter(comparable).most_common(1)[0][0] if is_within else max(len(items), size)
    settings, _ = _design(protocol.name, judgments, size, n_comparable)
    noun = "Outputs" if is_within else "Items"
    where = " within the same source" if is_within else ""
    if settings["name"] == "all_pairs":
        every = "every two outputs of a source are" if is_within else "every item is"
        others = "compared" if is_within else "compared with every other"
        return DesignChoice(settings, f"{noun} are compared{where}: {every} {others}.")
    if is_within:
        settings["across_contexts"] = False
    return DesignChoice(settings, f"{noun} are compared{where}, {size} at a time, each equally often.")


Describe = Callable[[str], str]


def recipe_toml(recipe: Recipe, lines: Sequence[str], describe: Describe = lambda path: "") -> str:
    """Write study.toml with comments; `lines` follow the header, `describe` explains settings without a comment."""
    import tomlkit

    document = tomlkit.document()
    for line in (*recipe.header, *lines):
        document.add(tomlkit.comment(line))
    for key, value in recipe.values.items():
        if isinstance(value, dict):
            table = tomlkit.table()
            for name, setting in value.items():
                path = f"{key}.{name}"
                table.add(name, _commented(setting, recipe.comments.get(path) or describe(path)))
            document.add(key, table)
        else:
            document.add(key, _commented(value, recipe.comments.get(key, "")))
    return tomlkit.dumps(document)


def _commented(value: Any, comment: str) -> Any:
    """Return a TOML value with a comment two spaces behind it."""
    import tomlkit

    item = tomlkit.item(value)
    if comment:
        item.comment(comment)
        item.trivia.comment_ws = "  "
    return item
