"""Recipes: a whole study from a file, with protocol, design and model chosen for a purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, comb
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from steelyard import registry
from steelyard.designs.budgets import budget_settings
from steelyard.designs.contexts import context_sizes
from steelyard.errors import ConfigError, DataError
from steelyard.formats import JudgmentFile
from steelyard.formats.outputs import SystemOutputs
from steelyard.observations import Choices, Labels, Observations, Rankings, Ratings
from steelyard.protocols import ErrorSpans
from steelyard.protocols.base import Protocol
from steelyard.protocols.error_spans import SEVERITIES
from steelyard.records import Item

ITEMS_FILE = "items.csv"
_MAX_SYSTEMS_OF_ALL_PAIRS = 6
"""Up to this many systems, every two outputs of a source are compared: 15 pairs per source."""
_COMPARISONS_PER_OUTPUT = 6
_RATINGS_PER_OUTPUT = 3
_OVERLAP_RATE = 0.05
_MAX_STEPS = 11
"""Most steps of a Likert scale; ratings on a longer one are shown as a slider's."""

_QUESTIONS: dict[str, str] = {
    "pairwise": "Which {noun} is better?",
    "best_worst": "Which {noun} is best, and which is worst?",
    "ranking": "Put the {nouns} in order, the best first.",
    "scored_ranking": "How good are these {nouns}?",
    "direct": "How good is this {noun}?",
    "likert": "How good is this {noun}?",
    "choice": "Is this {noun} good enough?",
    "error_spans": "Mark the errors in this {noun}. Then score it.",
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


def recorded_judgments(judgments: JudgmentFile, texts: Mapping[str, str], *, title: str, source: str) -> Recipe:
    """Return a study for judgments that were collected elsewhere, with the protocol that would have asked for them.

    Parameters
    ----------
    judgments : JudgmentFile
        From `read_judgments`.
    texts : mapping
        Texts of the items by id; an item without a text shows its id.
    title : str
        Title of the study.
    source : str
        Name of the file, for the question and the comments.
    """
    settings = _recorded_marking(judgments) or _recorded_protocol(judgments.by_criterion)
    protocol = registry.create("protocols", settings["name"], {k: v for k, v in settings.items() if k != "name"})
    names = list(dict.fromkeys(name for part in judgments.by_criterion.values() for name in part.items.ids))
    if len(names) < 2:
        raise DataError("the judgments are about one item only.", "Scores need at least two items.")
    items = [Item(name, texts.get(name, name)) for name in names]
    first = next(iter(judgments.by_criterion.values()))
    per_item = max(1, ceil(len(first) * protocol.task_size / len(names)))
    return Recipe(
        values={
            "title": title,
            "question": f"Judgments imported from {source}",
            "items": ITEMS_FILE,
            "protocol": settings,
            "design": choose_design(protocol, items, per_item).settings,
            "model": {"name": type(protocol).model_of_new_studies()},
        },
        comments={"protocol.scale": "scale of the imported ratings"},
        header=(f"Judgments imported from {source}.",),
        items=pl.DataFrame({"id": names, "text": [item.text for item in items]})
        if judgments.items is None
        else judgments.items,
        notes=judgments.notes,
    )


def _recorded_marking(judgments: JudgmentFile) -> dict[str, Any] | None:
    """Return the protocol that would have collected marked errors; None if the file has none, or not the texts."""
    spans = judgments.marked_texts("") if judgments.items is not None and "" in judgments.by_criterion else None
    ratings = judgments.by_criterion.get("")
    if spans is None or not isinstance(ratings, Ratings):
        return None
    severities = SEVERITIES | {name: 1.0 for name in spans.severities.ids if name not in SEVERITIES}
    settings: dict[str, Any] = {"name": ErrorSpans.name, "severities": severities}
    if len(spans.categories):
        settings["categories"] = list(spans.categories.ids)
    low, high = float(ratings.value.min()), float(ratings.value.max())
    if high <= 0:
        return {**settings, "score": "mqm"}
    return {**settings, "scale": [0, 100] if low >= 0 and high <= 100 else [low, high]}


def _recorded_protocol(parts: Mapping[str, Observations]) -> dict[str, Any]:
    """Return the protocol, with its settings, that would have collected these judgments."""
    first = next(iter(parts.values()))
    if isinstance(first, Ratings):
        ratings = {name: part for name, part in parts.items() if isinstance(part, Ratings)}
        are_steps = all(_has_steps(part) for part in ratings.values())
        scales = {name: [int(end) if are_steps else float(end) for end in part.scale] for name, part in ratings.items()}
        return {"name": "likert" if are_steps else "direct", **_by_criterion("scale", scales)}
    if isinstance(first, Labels):
        labels = {name: sorted(part.classes.ids) for name, part in parts.items() if isinstance(part, Labels)}
        return {"name": "choice", **_by_criterion("labels", labels)}
    if len(parts) > 1:
        raise DataError(
            f"the {first.kind} have several criteria: {', '.join(parts)}.",
            "Upload a file for each criterion, or score it on the command line: steelyard fit",
        )
    if isinstance(first, Choices):
        return {"name": "best_worst", "size": max(3, first.shown.shape[1])}
    if isinstance(first, Rankings):
        return {"name": "ranking", "size": max(2, int(np.diff(first.start).max())), "ties": True}
    return {"name": "pairwise", "ties": True}


def _by_criterion(setting: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a setting of the protocol, or of each criterion if there are several."""
    if len(values) == 1:
        return {setting: next(iter(values.values()))}
    return {"criteria": {name: {setting: value} for name, value in values.items()}}


def _has_steps(ratings: Ratings) -> bool:
    """Whether ratings are whole numbers on a scale of at most eleven steps."""
    low, high = ratings.scale
    is_whole = bool((ratings.value == np.round(ratings.value)).all()) and low == int(low) and high == int(high)
    return ratings.scale_known and is_whole and high - low <= _MAX_STEPS - 1


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


def choose_design(
    protocol: Protocol, items: Sequence[Item], judgments: int | None = None, document: str = ""
) -> DesignChoice:
    """Choose the design of a new study: outputs are compared within their source, other items with any other.

    `judgments` is the number of judgments per item; by default 3 ratings or labels, or 6 comparisons. `document` is the
    column of the documents, if annotators get whole documents.
    """
    size = protocol.task_size
    if protocol.takes_short_pages:
        return _choose_for_ratings(protocol, judgments or _RATINGS_PER_OUTPUT, document)
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


def _choose_for_ratings(protocol: Protocol, judgments: int, document: str) -> DesignChoice:
    annotators = "one annotator" if judgments == 1 else f"{judgments} different annotators"
    settings: dict[str, Any] = {"name": "per_item", "judgments": judgments}
    if document:
        reason = f"Each document is judged by {annotators}, text by text in the order of the file."
        return DesignChoice({**settings, "document": document}, reason)
    if protocol.is_contrastive:
        reason = f"Each item is judged by {annotators}, beside other outputs for the same source."
        return DesignChoice({**settings, "name": "random_tuples", "across_contexts": False}, reason)
    return DesignChoice(settings, f"Each item is judged by {annotators}.")


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
