"""Items that annotators could not judge, and items that were set aside, folded from the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from steelyard.study import events as ev
from steelyard.study.config.tables import Answers

BY_RULE = "rules"
"""What set an item aside, or restored it, where nobody did."""


class CannotJudge(NamedTuple):
    """An answer that an item cannot be judged; `beside` are the other items of a task that was judged as a whole."""

    annotator: str
    reason: str
    beside: tuple[str, ...] = ()


class UnjudgedState:
    """Answers that an item cannot be judged, by item and judgment, and the items that were set aside."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, CannotJudge]] = {}
        self.set_aside: dict[str, ev.ItemSetAside] = {}
        """Items that nobody is asked about any more, and why."""
        self.kept: set[str] = set()
        """Items that the researcher restored: the rule no longer sets them aside."""

    def record(
        self, judgment_id: str, annotator: str, items: Iterable[str], reasons: dict[str, str], *, is_whole: bool
    ) -> None:
        """Record what an answer, or its revision, says about its items; `is_whole` if it is about all together."""
        for item in items:
            if item in reasons:
                beside = tuple(sorted(other for other in items if is_whole and other != item))
                self.answers.setdefault(item, {})[judgment_id] = CannotJudge(annotator, reasons[item], beside)
            elif item in self.answers:
                self.answers[item].pop(judgment_id, None)
                if not self.answers[item]:
                    del self.answers[item]

    def decisions(
        self,
        rules: Answers,
        items: Iterable[str],
        counts_annotator: Callable[[str], bool],
        count_answers: Callable[[str], int],
    ) -> list[ev.ItemSetAside | ev.ItemRestored]:
        """Return which of the items the rule sets aside now, and which it restores.

        Answers of annotators for whom `counts_annotator` is false do not count; `count_answers` returns the number of
        all answers about an item that count.
        """
        decisions: list[ev.ItemSetAside | ev.ItemRestored] = []
        for item in dict.fromkeys(items):
            if item not in self.answers and item not in self.set_aside:
                continue
            counted = [answer for answer in self.answers.get(item, {}).values() if counts_annotator(answer.annotator)]
            n_answers = count_answers(item)
            is_due = _is_unjudgeable(rules, counted, n_answers)
            earlier = self.set_aside.get(item)
            if earlier is None and is_due and item not in self.kept:
                reasons = Counter(answer.reason for answer in counted)
                event = ev.ItemSetAside(
                    item=item, by=BY_RULE, cannot_judge=len(counted), answers=n_answers, reasons=dict(reasons)
                )
                decisions.append(event)
            elif earlier is not None and earlier.by == BY_RULE and not is_due:
                decisions.append(ev.ItemRestored(item=item, by=BY_RULE))
        return decisions


def _is_unjudgeable(rules: Answers, answers: Collection[CannotJudge], n_answers: int) -> bool:
    """Whether enough annotators, and a large enough fraction of the answers, say that an item cannot be judged.

    If a comparison cannot be judged, any of its items may be the reason: the item must have been compared with
    different items, or twice as many annotators must say so.
    """
    n_annotators = len({answer.annotator for answer in answers})
    after, besides = rules.set_aside_after, {answer.beside for answer in answers}
    if not 0 < after <= n_annotators or len(answers) < rules.set_aside_fraction * n_answers:
        return False
    return () in besides or len(besides) > 1 or n_annotators >= 2 * after


def describe_reasons(reasons: dict[str, int]) -> str:
    """Return the reasons with their numbers, the most frequent first: “too short (2); no reason (1)”."""
    return "; ".join(f"{reason or 'no reason'} ({count})" for reason, count in Counter(reasons).most_common())


def describe(decision: ev.ItemSetAside) -> str:
    """Return why an item was set aside."""
    if decision.by != BY_RULE:
        return decision.reason or "set aside by the researcher"
    words = f"{decision.cannot_judge} of {decision.answers} answers: cannot judge"
    stated = {reason: count for reason, count in decision.reasons.items() if reason}
    return f"{words}; {describe_reasons(decision.reasons)}" if stated else words
