"""Judgments exported by other tools: Label Studio, Potato, promptfoo and LangSmith, recognised by their JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from steelyard.errors import DataError

Record = Mapping[str, Any]


@dataclass(slots=True)
class Exported:
    """Rows with conventional columns, and what was left out of the export."""

    tool: str
    rows: list[dict[str, object]] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the tool that wrote the file, and what was left out."""
        notes = [f"read as an export of {self.tool}."]
        notes += [f"{count:,} × {what}: left out." for what, count in self.ignored.items()]
        return tuple(notes)


def read_export(content: object, file: str) -> Exported | None:
    """Return the judgments of an export, or None if no tool is recognised."""
    for is_export, read in _TOOLS:
        if is_export(content):
            exported = read(content)
            if not exported.rows:
                raise DataError(
                    f"this export of {exported.tool} has no ratings, labels or comparisons. {' '.join(exported.notes)}",
                    "Check the project's controls; formats: steelyard docs files",
                    file=file,
                )
            return exported
    return None


def _records(content: object) -> Sequence[Record]:
    return content if isinstance(content, list) and all(isinstance(one, Mapping) for one in content) else ()


def _first_has(content: object, *keys: str) -> bool:
    records = _records(content)
    return bool(records) and all(key in records[0] for key in keys)


# Label Studio: tasks with annotations, each a list of results of a control tag.


def _is_label_studio(content: object) -> bool:
    return _first_has(content, "data", "annotations")


def _read_label_studio(content: Any) -> Exported:
    exported = Exported("Label Studio")
    for task in _records(content):
        data = task["data"] if isinstance(task["data"], Mapping) else {}
        item = _label_studio_item(task)
        for annotation in task.get("annotations") or ():
            if annotation.get("was_cancelled"):
                exported.ignored["skipped annotation"] += 1
                continue
            shared = {
                "annotator": _annotator(annotation.get("completed_by")),
                "task": str(task.get("id")),
                "seconds": annotation.get("lead_time"),
            }
            for result in annotation.get("result") or ():
                answer = _label_studio_answer(result, item, data)
                if answer is None:
                    exported.ignored[f"result of type {result.get('type')}"] += 1
                else:
                    exported.rows.append({**shared, "criterion": result.get("from_name"), **answer})
    return exported


def _label_studio_item(task: Record) -> str:
    data = task["data"] if isinstance(task["data"], Mapping) else {}
    return str(data.get("item") or data.get("id") or task.get("id"))


def _annotator(value: object) -> str | None:
    if isinstance(value, Mapping):
        value = value.get("email") or value.get("id")
    return None if value is None else str(value)


def _label_studio_answer(result: Record, item: str, data: Record) -> dict[str, object] | None:
    value = result.get("value") or {}
    kind = str(result.get("type"))
    if kind in {"rating", "number"} and isinstance(value.get(kind), int | float):
        return {"item": item, "value": float(value[kind])}
    choices = value.get("choices")
    if kind == "choices" and isinstance(choices, list) and len(choices) == 1:
        return {"item": item, "label": str(choices[0])}
    names = str(result.get("to_name", "")).split(",")
    if kind == "pairwise" and len(names) == 2 and value.get("selected") in {"left", "right", "none", None}:
        left, right = (_compared(data, name.strip()) for name in names)
        if left is None or right is None:
            return None
        winner = value.get("selected") if value.get("selected") in {"left", "right"} else "tie"
        return {"left": left, "right": right, "winner": winner}
    return None


def _compared(data: Record, name: str) -> str | None:
    """Return the identity of a compared object: its id or system if the task's data have one, else its text."""
    for key in (f"{name}_id", f"{name}_system", f"{name}_model", name):
        if isinstance(data.get(key), str | int):
            return str(data[key])
    return None


# Potato: a line for each annotator and instance, with the labels of each scheme.


def _is_potato(content: object) -> bool:
    return _first_has(content, "user_id", "instance_id", "label_annotations")


_POTATO_NUMBER = re.compile(r"(?:scale_|rating_)?(-?\d+(?:\.\d+)?)")
_POTATO_SLIDERS = {"slider", "number", "value"}


def _read_potato(content: Any) -> Exported:
    exported = Exported("Potato")
    for line in _records(content):
        shared = {"annotator": str(line["user_id"]), "item": str(line["instance_id"])}
        for scheme, answers in (line["label_annotations"] or {}).items():
            answer = _potato_answer(answers)
            if answer is None:
                exported.ignored[f"answer to {scheme}"] += 1
            else:
                exported.rows.append({**shared, "criterion": str(scheme), **answer})
    return exported


def _potato_answer(answers: object) -> dict[str, object] | None:
    """Read a Likert step, a slider or a radio button; text, multiple choices and comparisons are not read.

    Comparisons name positions only (A, B): the file does not tell which items were shown.
    """
    if not isinstance(answers, Mapping) or len(answers) != 1:
        return None
    ((key, value),) = ((str(key), str(value)) for key, value in answers.items())
    if match := _POTATO_NUMBER.fullmatch(key):
        return {"value": float(match[1])}
    if key in _POTATO_SLIDERS:
        match = _POTATO_NUMBER.fullmatch(value)
        return {"value": float(match[1])} if match else None
    if key in {"text_box", "selection", "scale_value", "free_response"}:
        return None
    return {"label": key}


# promptfoo: results of prompts and providers on the same tests.


def _is_promptfoo(content: object) -> bool:
    if not isinstance(content, Mapping) or not isinstance(content.get("results"), Mapping):
        return False
    return _first_has(content["results"].get("results"), "provider", "vars")


def _read_promptfoo(content: Any) -> Exported:
    exported = Exported("promptfoo")
    results = _records(content["results"]["results"])
    several_prompts = len({_prompt_of(result) for result in results}) > 1
    selections: dict[str, list[tuple[str, bool]]] = {}
    for result in results:
        test = str(result.get("testIdx", result.get("vars")))
        system = _provider_of(result) + (f" / {_prompt_of(result)}" if several_prompts else "")
        chosen = _selected(result)
        if chosen is not None:
            selections.setdefault(test, []).append((system, chosen))
        elif result.get("error") or not isinstance(result.get("score"), int | float):
            exported.ignored["result with an error or without a score"] += 1
        else:
            exported.rows.append({"item": system, "task": test, "value": float(result["score"])})
    for test, outputs in selections.items():
        winners = [system for system, chosen in outputs if chosen]
        if len(winners) != 1:
            exported.ignored["test without one selected output"] += 1
            continue
        exported.rows += [
            {"left": system, "right": winners[0], "winner": "right", "task": test}
            for system, chosen in outputs
            if not chosen
        ]
    return exported


def _provider_of(result: Record) -> str:
    provider = result["provider"]
    if isinstance(provider, Mapping):
        provider = provider.get("label") or provider.get("id")
    return str(provider)


def _prompt_of(result: Record) -> str:
    prompt = result.get("prompt")
    return str(prompt.get("label") or prompt.get("raw")) if isinstance(prompt, Mapping) else str(prompt)


def _selected(result: Record) -> bool | None:
    """Return whether a comparison (select-best) chose this output; None if there was no comparison."""
    for part in (result.get("gradingResult") or {}).get("componentResults") or ():
        if ((part.get("assertion") or {}).get("type")) in {"select-best", "max-score"}:
            return bool(part.get("pass"))
    return None


# LangSmith: feedback of a comparative experiment, one entry for each run, those of one comparison in a group.


def _is_langsmith(content: object) -> bool:
    return _first_has(content, "run_id", "score", "comparative_experiment_id")


def _read_langsmith(content: Any) -> Exported:
    exported = Exported("LangSmith")
    groups: dict[tuple[str, str], list[Record]] = {}
    for feedback in _records(content):
        group = feedback.get("feedback_group_id")
        if group is None or not isinstance(feedback.get("score"), int | float | bool):
            exported.ignored["feedback without a group or a score"] += 1
            continue
        groups.setdefault((str(group), str(feedback.get("key", ""))), []).append(feedback)
    for (group, key), members in groups.items():
        for one, other in combinations(members, 2):
            difference = float(one["score"]) - float(other["score"])
            exported.rows.append(
                {
                    "left": _experiment_of(one),
                    "right": _experiment_of(other),
                    "winner": "left" if difference > 0 else "right" if difference < 0 else "tie",
                    "annotator": _source_of(one),
                    "task": group,
                    "criterion": key,
                }
            )
    return exported


def _experiment_of(feedback: Record) -> str:
    return str(feedback.get("session_name") or feedback.get("session_id") or feedback["run_id"])


def _source_of(feedback: Record) -> str | None:
    source = feedback.get("feedback_source") or {}
    value = source.get("user_id") or source.get("user_name") or source.get("type")
    return None if value is None else str(value)


_TOOLS: tuple[tuple[Callable[[object], bool], Callable[[Any], Exported]], ...] = (
    (_is_label_studio, _read_label_studio),
    (_is_potato, _read_potato),
    (_is_promptfoo, _read_promptfoo),
    (_is_langsmith, _read_langsmith),
)


def columns_of(rows: Sequence[Mapping[str, object]]) -> Iterator[tuple[str, list[object]]]:
    """Yield the columns that have any value, in a fixed order; a single criterion is not a column."""
    order = ("annotator", "task", "criterion", "item", "value", "label", "left", "right", "winner", "seconds")
    for name in order:
        values = [row.get(name) for row in rows]
        if name == "criterion" and len(set(values)) == 1:
            continue
        if any(value is not None for value in values):
            yield name, values


def items_of_export(content: object) -> list[dict[str, object]] | None:
    """Return the items that an export is about, one row each; None if no tool with items is recognised."""
    if _is_label_studio(content):
        return [{"id": task.get("id"), **_plain(task["data"])} for task in _records(content)]
    if _is_potato(content):
        texts = {str(line["instance_id"]): line.get("displayed_text") for line in _records(content)}
        return [{"id": name, "text": text} for name, text in texts.items()]
    if isinstance(content, Mapping) and _is_promptfoo(content):
        return [
            {"source": _source_text(result), "system": _provider_of(result), "output": _output_of(result)}
            for result in _records(content["results"]["results"])
        ]
    return None


def texts_of_export(content: object) -> dict[str, str]:
    """Return the texts of the judged items by the ids that `read_export` gives them, as far as the export has them."""
    texts: dict[str, str] = {}
    if _is_label_studio(content):
        for task in _records(content):
            data = task["data"] if isinstance(task["data"], Mapping) else {}
            words = [value for key, value in _plain(data).items() if isinstance(value, str) and key != "item"]
            texts[_label_studio_item(task)] = " · ".join(words)
            for annotation in task.get("annotations") or ():
                for result in annotation.get("result") or ():
                    names = [name.strip() for name in str(result.get("to_name", "")).split(",")]
                    for name in names if result.get("type") == "pairwise" else ():
                        texts[str(_compared(data, name))] = str(data.get(name, ""))
    elif _is_potato(content):
        texts = {str(line["instance_id"]): str(line.get("displayed_text") or "") for line in _records(content)}
    return {name: text for name, text in texts.items() if text.strip()}


def _plain(data: object) -> dict[str, object]:
    values = data if isinstance(data, Mapping) else {}
    return {str(key): value for key, value in values.items() if isinstance(value, str | int | float) and key != "id"}


def _source_text(result: Record) -> str:
    values = result.get("vars")
    return " · ".join(map(str, values.values())) if isinstance(values, Mapping) else str(values)


def _output_of(result: Record) -> str:
    response = result.get("response")
    return str(response.get("output", "")) if isinstance(response, Mapping) else ""
