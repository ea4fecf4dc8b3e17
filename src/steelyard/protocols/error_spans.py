"""Error marking: mark the errors of a text, then score it (ESA), or let the marks decide the score (MQM)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from steelyard.errors import AnswerError, Problem, did_you_mean
from steelyard.observations import MarkedText, Observation, Rating, Span
from steelyard.protocols.base import ONLY, Scale, refuse
from steelyard.protocols.per_item import PerItemProtocol, number_on
from steelyard.records import Answer, Item

SEVERITIES = {"minor": 1.0, "major": 5.0}
MQM_CATEGORY_WEIGHTS = {"Fluency/Punctuation": {"minor": 0.1}, "Non-translation": {"minor": 25.0, "major": 25.0}}
"""Weights that differ from those of the severities (Freitag et al. 2021)."""
MQM_CATEGORIES = (
    *("Accuracy/Addition", "Accuracy/Omission", "Accuracy/Mistranslation", "Accuracy/Untranslated text"),
    *("Fluency/Punctuation", "Fluency/Spelling", "Fluency/Grammar", "Fluency/Register", "Fluency/Inconsistency"),
    *("Terminology", "Style/Awkward", "Locale convention", "Source error", "Non-translation", "Other"),
)
"""A short form of the MQM typology, offered to new studies."""
MOST_SPANS = 500
"""Most marks of one answer about one text."""
_LONGEST_NAME = 200
_FURTHEST = 10_000_000
_FIELDS = ("start", "end", "omission", "severity", "category", "suggestion")

Mark = dict[str, object]


@dataclass(frozen=True, slots=True)
class ErrorSpans(PerItemProtocol):
    """Ask for the errors of a text, with their severity, and for a score (ESA, Kocmi et al. 2024; MQM).

    Marks are half-open ranges of code points of the text as shown, and may overlap. An omission is marked without a
    place. Suggested marks come from a column of the items; the answer keeps them, and which marks come from them.
    """

    name: ClassVar[str] = "error_spans"
    default_design: ClassVar[str] = "per_item"
    default_model: ClassVar[str] = "mean"
    new_model: ClassVar[str | None] = "calibrated_scale"
    takes_short_pages: ClassVar[bool] = True
    kinds: ClassVar[tuple[str, ...]] = ("ratings", "spans")

    severities: Annotated[
        dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]],
        Field(description="the severities, with the penalty of each for MQM scores"),
    ] = field(default_factory=lambda: dict(SEVERITIES))
    categories: Annotated[tuple[str, ...], Field(description="categories of errors; empty: no categories")] = ()
    category_weights: Annotated[
        dict[str, dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]]],
        Field(description="penalties by severity for categories with separate penalties"),
    ] = field(default_factory=lambda: {name: dict(weights) for name, weights in MQM_CATEGORY_WEIGHTS.items()})
    score: Annotated[
        Literal["slider", "mqm"],
        Field(description="where the score comes from: a slider below the text, or the penalties of the marks"),
    ] = "slider"
    scale: Annotated[
        Scale | None,
        Field(description="ends of the scale; default: 0 to 100 for sliders, -100 to 0 for MQM, cut at the ends"),
    ] = None
    labels: Annotated[tuple[str, ...], Field(description="labels of the two ends, or of both ends and the middle")] = ()
    omission: Annotated[bool, Field(description="whether missing content can be marked")] = True
    suggestions: Annotated[
        str, Field(description="column of the items with suggested marks, a JSON list; empty: none")
    ] = ""
    document: Annotated[
        str, Field(description="column of the items with the document; its neighbouring texts are shown; empty: none")
    ] = ""
    neighbours: Annotated[int, Field(ge=0, le=20, description="neighbouring texts shown before and after")] = 2
    items_per_page: Annotated[
        int, Field(ge=1, description="texts per page; several: outputs for one source side by side")
    ] = 1

    @property
    def task_size(self) -> int:
        """Number of items per task."""
        return self.items_per_page

    @property
    def is_contrastive(self) -> bool:
        """Whether outputs of several systems are shown side by side: several texts on a page."""
        return self.items_per_page > 1

    def problems(self) -> list[Problem]:
        """Refuse missing severities, categories given twice, unknown weights and labels that do not fit."""
        problems = []
        if not self.severities:
            problems.append(Problem("there is no severity.", "Give at least one.", field="severities"))
        for name, names in (("severities", list(self.severities)), ("categories", list(self.categories))):
            if any(not one.strip() for one in names):
                problems.append(Problem("a name is empty.", "Give each one a name.", field=name))
        if len(set(self.categories)) < len(self.categories):
            problems.append(Problem("a category appears twice.", "Give each category once.", field="categories"))
        if self.labels and len(self.labels) not in {2, 3}:
            what = f"{len(self.labels)} labels do not fit a slider."
            problems.append(Problem(what, "Give 2 or 3 of them.", field="labels"))
        return problems

    def criterion_names(self) -> tuple[str, ...]:
        """Return the only criterion."""
        return (ONLY,)

    def scales(self) -> dict[str, tuple[float, float]]:
        """Return the scale of the score."""
        return {ONLY: self.scale or ((0, 100) if self.score == "slider" else (-100, 0))}

    def validate(self, items: Sequence[str], answer: Any, *, lenient: bool = False) -> Answer:
        """Return `{item: {"score": number, "spans": [mark, …]}}`; MQM answers have no score.

        A mark is `{"start": 3, "end": 8, "severity": "major"}`, or `{"omission": true, "severity": "major"}`, with a
        category if the study has any. An imported log may have scores without marks, and other severities and
        categories than the study.
        """
        return PerItemProtocol.validate(self, items, answer, lenient=lenient)

    def _refuse_incomplete(self, item: str, value: Any) -> None:
        if "spans" not in value:
            raise refuse(
                f"'{item}' has a score without marks.", 'Give "spans", an empty list if there are no errors.', item
            )
        if self.score == "slider" and "score" not in value:
            raise refuse(f"'{item}' has no score yet.", "Score it after marking its errors.", item)
        for mark in value["spans"]:
            if self.categories and not mark.get("category"):
                remedy = f"Choose one of: {', '.join(self.categories)}."
                raise refuse(f"a mark of '{item}' has no category yet.", remedy, item)

    def check_value(self, value: object, criterion: str, field: str) -> dict[str, object]:
        """Return score and marks in their normal form."""
        plain = self._value(value, field)
        self._refuse_incomplete(field, plain)
        return plain

    def check_imported(self, value: object, criterion: str, field: str) -> dict[str, object]:
        """Return score and marks in their normal form; a number is a score without marks."""
        return self._value(value, field, lenient=True)

    def _value(self, value: object, field: str, *, lenient: bool = False) -> dict[str, object]:
        scale = self.scales()[ONLY]
        if isinstance(value, Real) and not isinstance(value, bool):
            return {"score": number_on(scale, value, field)}
        form = 'Answer with {"score": number, "spans": [{"start": 0, "end": 4, "severity": "minor"}]}.'
        if not isinstance(value, Mapping) or not value or set(value) - {"score", "spans", "suggestions"}:
            raise refuse(f"{value!r:.200} is not an answer about a text.", form, field)
        plain: dict[str, object] = {}
        if value.get("spans") is not None:
            plain["spans"] = self._marks(value["spans"], f"{field}.spans", lenient=lenient)
        if value.get("score") is not None and (self.score == "slider" or "spans" not in plain):
            plain["score"] = number_on(scale, value["score"], f"{field}.score")
        if not plain:
            raise refuse(f"'{field}' has neither a score nor marks.", form, field)
        if value.get("suggestions"):
            plain["suggestions"] = self._marks(value["suggestions"], f"{field}.suggestions", lenient=lenient)
        return plain

    def _marks(self, marks: object, field: str, *, lenient: bool = False) -> list[Mark]:
        if not isinstance(marks, Sequence) or isinstance(marks, str) or len(marks) > MOST_SPANS:
            raise refuse(f"the marks are not a list of up to {MOST_SPANS}.", "Give a list of marks.", field)
        return [self._mark(mark, field, lenient) for mark in marks]

    def _mark(self, mark: object, field: str, lenient: bool) -> Mark:
        if not isinstance(mark, Mapping) or set(mark) - set(_FIELDS):
            raise refuse(f"{mark!r:.200} is not a mark.", f"A mark has {', '.join(_FIELDS)}.", field)
        plain: Mark = {}
        if mark.get("omission"):
            if not self.omission and not lenient:
                raise refuse("missing content cannot be marked in this study.", "Mark a place in the text.", field)
            plain["omission"] = True
        else:
            plain |= {end: _offset(mark.get(end), field) for end in ("start", "end")}
            if not plain["start"] < plain["end"]:  # type: ignore[operator]
                raise refuse("a mark ends before it starts.", "Give start < end, in characters.", field)
        names: dict[str, Sequence[str]] = {"severity": list(self.severities), "category": self.categories}
        for name, allowed in names.items():
            if mark.get(name) in (None, "") and (lenient or name == "category"):
                continue
            plain[name] = _one_of(name, mark.get(name), None if lenient else allowed, field)
        if mark.get("suggestion") is not None:
            plain["suggestion"] = _offset(mark["suggestion"], field)
        return plain

    def penalty(self, severity: str, category: str = "") -> float:
        """Return the penalty of a mark: its category's for this severity, or that of the severity.

        A category without weights has those of the longest name that it begins with: `Fluency/Punctuation` also for
        `Fluency/Punctuation/Comma`.
        """
        names = [name for name in self.category_weights if category.startswith(name)]
        weights = self.category_weights[max(names, key=len)] if names else {}
        return weights.get(severity, self.severities.get(severity, 0.0))

    def mqm_score(self, spans: Iterable[Span]) -> float:
        """Return minus the sum of the penalties, within the scale."""
        low, high = self.scales()[ONLY]
        return min(max(-sum(self.penalty(mark.severity, mark.category) for mark in spans), low), high)

    def observation(self, item: str, value: Any, criterion: str) -> Observation:
        """Return the rating of one answer."""
        score = value["score"] if "score" in value else self.mqm_score(spans_of(value["spans"]))
        return Rating(item, float(score), criterion)

    def observations(self, items: Sequence[str], answer: Any) -> list[Observation]:
        """Return the rating of each text, then its marks."""
        answered = [item for item in items if item in answer]
        # Marks of an imported answer may lack the score, and a score the marks.
        ratings = [
            self.observation(item, answer[item], ONLY)
            for item in answered
            if "score" in answer[item] or self.score == "mqm"
        ]
        return [
            *ratings,
            *(MarkedText(item, spans_of(answer[item]["spans"])) for item in answered if "spans" in answer[item]),
        ]

    def item_problems(self, items: Sequence[Item]) -> list[Problem]:
        """Refuse missing columns, and suggestions that are no marks of their texts."""
        problems = [
            Problem(f"no item has a column '{column}'.", "Name a column of the items file.", field=f"protocol.{name}")
            for name, column in (("suggestions", self.suggestions), ("document", self.document))
            if column and not any(column in item.metadata for item in items)
        ]
        empty = next((item for item in items if not item.text), None)
        if empty is not None:
            problems.append(Problem(f"'{empty.id}' has no text to mark.", "Give every item a text.", field="items"))
        if problems:
            return problems
        for item in items:
            try:
                self.suggested(item)
            except AnswerError as error:
                first = error.problems[0]
                problems.append(Problem(f"suggestions for '{item.id}': {first.what}", first.remedy, field="items"))
                break
        return problems

    def suggested(self, item: Item) -> list[Mark]:
        """Return the marks that an item's column suggests."""
        text = item.metadata.get(self.suggestions, "") if self.suggestions else ""
        if not text.strip():
            return []
        try:
            marks = json.loads(text)
        except (ValueError, RecursionError):
            remedy = 'Write a list such as [{"start": 0, "end": 4, "severity": "minor"}].'
            raise refuse("the column is not JSON.", remedy, self.suggestions) from None
        plain = self._marks(marks, self.suggestions)
        _refuse_beyond(item, plain)
        return plain

    def check_texts(self, items: Sequence[Item], answer: Any) -> None:
        """Refuse marks beyond the end of a text."""
        for item in items:
            value = answer.get(item.id, {})
            _refuse_beyond(item, [*value.get("spans", ()), *value.get("suggestions", ())])


def _refuse_beyond(item: Item, marks: Iterable[Mark]) -> None:
    for mark in marks:
        if not mark.get("omission") and mark["end"] > len(item.text):  # type: ignore[operator]
            raise refuse(
                f"a mark of '{item.id}' ends at character {mark['end']}, but the text has {len(item.text)}.",
                "Count code points of the text, from 0.",
                item.id,
            )


def _offset(value: object, field: str) -> int:
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else -1
    if not 0 <= number <= _FURTHEST:
        raise refuse(f"{value!r:.100} is not a position in a text.", "Give a whole number from 0.", field)
    return number


def _one_of(what: str, value: object, names: Sequence[str] | None, field: str) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_NAME or (names is not None and value not in names):
        if not names:
            raise refuse(f"this study has no {what} of errors.", "Leave it out.", field)
        raise refuse(f"{value!r:.100} is not a {what} of this study.", did_you_mean(str(value), names), field)
    return value


def mark_of_quote(text: str, quote: str, severity: str, category: str = "") -> Mark:
    """Return the mark of the first place where a text has these words; an omission for an empty quote."""
    attributes: Mark = {"severity": severity, **({"category": category} if category else {})}
    if not quote:
        return {"omission": True, **attributes}
    start = text.find(quote)
    if start < 0:
        raise refuse(f"{quote!r:.200} is not in the text.", "Quote the words exactly as they are in the text.")
    return {"start": start, "end": start + len(quote), **attributes}


def spans_of(marks: Iterable[Mapping[str, Any]]) -> tuple[Span, ...]:
    """Return the marks of an answer as spans."""
    return tuple(
        Span(mark.get("start"), mark.get("end"), mark.get("severity", ""), mark.get("category", "")) for mark in marks
    )
