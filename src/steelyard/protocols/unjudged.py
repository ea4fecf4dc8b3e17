"""Answers that say that something cannot be judged: no information about the items, and no missing answer either.

Every protocol takes `{"cannot_judge": reason}` for a whole task. Protocols with one value per item take it for single
items too: `{"a": 71, "b": {"cannot_judge": "not in my language"}}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.errors import AnswerError
from steelyard.observations import Observation
from steelyard.protocols.base import Protocol, refuse
from steelyard.records import Answer

CANNOT_JUDGE = "cannot_judge"


class AnswerRules(NamedTuple):
    """Whether annotators may answer that they cannot judge, and the reasons to choose from (none: no reason)."""

    cannot_judge: bool = False
    reasons: tuple[str, ...] = ()


def accept_answer(
    protocol: Protocol, items: Sequence[str], answer: Any, rules: AnswerRules, *, lenient: bool = False
) -> Answer:
    """Return an answer in its normal form, or refuse it; a part that cannot be judged is taken by the study's rules."""
    if _is_mark(answer) and CANNOT_JUDGE not in items:
        return {CANNOT_JUDGE: _reason(answer, rules, None)}
    marks = _marks(protocol, items, answer)
    if not marks:
        return protocol.validate(items, answer, lenient=lenient)
    judged_items = [item for item in items if item not in marks]
    rest = {item: value for item, value in answer.items() if item not in marks}
    judged: Mapping[str, object] = {}
    if judged_items or rest:
        plain = protocol.validate(judged_items or items, rest, lenient=lenient)
        judged = plain if isinstance(plain, Mapping) else {}
    unjudged = {item: {CANNOT_JUDGE: _reason(mark, rules, item)} for item, mark in marks.items()}
    both: dict[str, object] = {**judged, **unjudged}
    return {item: both[item] for item in items if item in both}


def observe(protocol: Protocol, items: Sequence[str], answer: Any) -> list[Observation]:
    """Return the observations of an accepted answer; what cannot be judged yields none."""
    if is_unjudged(items, answer):
        return []
    marks = _marks(protocol, items, answer)
    if not marks:
        return protocol.observations(items, answer)
    judged = {item: value for item, value in answer.items() if item not in marks}
    return protocol.observations(items, judged) if judged else []


def is_unjudged(items: Sequence[str], answer: Any) -> bool:
    """Return whether an accepted answer says that the whole task cannot be judged."""
    return _is_mark(answer) and CANNOT_JUDGE not in items


def unjudged_items(protocol: Protocol, items: Sequence[str], answer: Any) -> dict[str, str]:
    """Return the items that an accepted answer calls impossible to judge, with the reasons."""
    if is_unjudged(items, answer):
        return dict.fromkeys(items, str(answer[CANNOT_JUDGE]))
    return {item: str(mark[CANNOT_JUDGE]) for item, mark in _marks(protocol, items, answer).items()}


def _is_mark(value: object) -> bool:
    return isinstance(value, Mapping) and set(value) == {CANNOT_JUDGE}


def _marks(protocol: Protocol, items: Sequence[str], answer: Any) -> dict[str, Any]:
    """Return the marks of single items, for protocols with a value per item; a criterion may have the mark's name."""
    if not protocol.judges_single_items or not isinstance(answer, Mapping):
        return {}
    if CANNOT_JUDGE in {**protocol.scales(), **protocol.classes()}:
        return {}
    return {item: answer[item] for item in items if item in answer and _is_mark(answer[item])}


def _reason(mark: Mapping[str, Any], rules: AnswerRules, field: str | None) -> str:
    if not rules.cannot_judge:
        raise refuse("this study does not offer “cannot judge”.", "Answer, or skip the task.", field)
    reason = mark[CANNOT_JUDGE]
    if rules.reasons:
        if reason not in rules.reasons:
            remedy = f"Give one of: {'; '.join(rules.reasons)}."
            raise refuse(f"{reason!r} is not a reason of this study.", remedy, field)
        return str(reason)
    if reason not in ("", None, True):
        raise AnswerError(f"this study asks for no reason, but there is {reason!r}.", "Leave it empty.", field=field)
    return ""
