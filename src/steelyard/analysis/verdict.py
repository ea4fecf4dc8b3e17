"""The verdict on a study: how reliable the scores are, how many judgments are missing, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log10
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from steelyard.analysis.tables import Estimate, Forecast, answers_to_target
from steelyard.quality.signals import far_below
from steelyard.reliability.statistic import Statistic
from steelyard.study import Status
from steelyard.study import events as ev
from steelyard.study.config.tables import Stop

if TYPE_CHECKING:
    from steelyard.analysis.analysis import Analysis

CUSTOMARY_TARGET = 0.9
"""Reliability that is customary for published norms and rankings; used where a study has no stopping rule."""
TENTATIVE_ALPHA, GOOD_ALPHA = 0.667, 0.8
"""Krippendorff's (2004) limits: below .667 he advises against conclusions, from .800 on data are reliable."""

Outcome = Literal["empty", "failed", "unknown", "below", "near", "reached"]
Tab = Literal["overview", "results", "quality", "annotators", "activity", "export", "edit"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the scores are reliable enough.

    `outcome` is near if the estimate has reached the target and its lower bound has not. `more` is the predicted number
    of further judgments; None if there is no prediction.
    """

    outcome: Outcome
    sentence: str
    statistic: str = ""
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    target: float | None = None
    more: Estimate | None = None


@dataclass(frozen=True, slots=True)
class NextStep:
    """Something the researcher may want to do now, and the page of the dashboard where it is done."""

    text: str
    tab: Tab


def verdict_of(analysis: Analysis) -> Verdict:
    """Compare the reliability of a study with its target, if both are known."""
    counted = analysis.history.counted.height
    if not counted:
        return Verdict("empty", "There are no judgments yet.")
    if analysis.model_failed:
        return Verdict("failed", str(analysis.fit))
    rule = analysis.study.config.stop
    if rule is not None and rule.measure != "split_half":
        return _by_interim_analysis(analysis, rule)
    is_corrected = rule is None or rule.spearman_brown
    key = "split_half_spearman_corrected" if is_corrected else "split_half_spearman"
    parts = [(part, one) for part in analysis.reliability for one in part.statistics if one.key == key]
    if not parts:
        return _by_alpha(analysis)
    defined = [(part, one) for part, one in parts if one.value is not None]
    if not defined:
        return Verdict("unknown", f"Reliability cannot be estimated yet: {_reason(parts[0][1])}", key)
    part, statistic = min(defined, key=lambda pair: pair[1].value or 0.0)
    name = f"Reliability of {part.criterion}" if part.criterion else "Reliability"
    target = rule or Stop(measure="split_half", target=CUSTOMARY_TARGET, spearman_brown=True)
    return _compared(name, statistic, target, is_customary=rule is None, answers=counted)


def _compared(name: str, statistic: Statistic, rule: Stop, *, is_customary: bool, answers: int) -> Verdict:
    value = statistic.value or 0.0
    goal = f"{'customary ' if is_customary else ''}target {_coefficient(rule.target)}"
    begin = f"{name} {_coefficient(value)}, {goal}"
    fields: dict[str, Any] = {
        "statistic": statistic.key,
        "value": value,
        "lower": statistic.lower,
        "upper": statistic.upper,
        "target": rule.target,
    }
    if value >= rule.target:
        if statistic.lower is not None and statistic.lower < rule.target:
            low = _coefficient(statistic.lower)
            return Verdict("near", f"{begin}: reached, but its lower bound is {low}.", more=None, **fields)
        return Verdict("reached", f"{begin}: reached.", more=Estimate(0.0), **fields)
    more = _further(statistic, rule, answers)
    if more is None:
        return Verdict("below", f"{begin}: not reached, and too low to predict how many judgments it takes.", **fields)
    return Verdict("below", f"{begin}: about {_judgments(more)}.", more=more, **fields)


def _further(statistic: Statistic, rule: Stop, answers: int) -> Estimate | None:
    """Predict the further judgments by the Spearman–Brown formula, from the estimate and the ends of its interval."""

    def further(value: float | None) -> float | None:
        total = None if value is None else answers_to_target(value, rule, answers)
        return None if total is None else max(0.0, total - answers)

    nearest = further(statistic.value)
    if nearest is None:
        return None
    # The higher the reliability, the fewer judgments are missing.
    least = 0.0 if (statistic.upper or 0.0) >= rule.target else further(statistic.upper)
    return Estimate(nearest, least, further(statistic.lower))


def _by_interim_analysis(analysis: Analysis, rule: Stop) -> Verdict:
    """Return the result of the last interim analysis, for rules that only these can judge."""
    results = [event.data for event in analysis.study.events((ev.InterimAnalysis.kind,))]
    if not results:
        return Verdict(
            "unknown", "It is not yet known whether the target is reached: no interim analysis has been due."
        )
    last = results[-1]
    summary = f"{last.summary[:1].upper()}{last.summary[1:]}"
    if last.reached:
        return Verdict("reached", f"{summary}: the target is reached.", rule.measure, last.value, target=last.target)
    if last.value is None:
        return Verdict("unknown", f"{summary}.", rule.measure)
    answers = last.judgments
    total = answers_to_target(last.value, rule, answers)
    if total is None:
        return Verdict("below", f"{summary}: not enough.", rule.measure, last.value, target=last.target)
    more = Estimate(max(0.0, total - answers))
    sentence = f"{summary}; target {rule.target:g}: about {_judgments(more)}."
    return Verdict("below", sentence, rule.measure, last.value, target=last.target, more=more)


def _by_alpha(analysis: Analysis) -> Verdict:
    """Judge labels, which have no scores to correlate, by Krippendorff's α."""
    alphas = [
        (part, one)
        for part in analysis.reliability
        for one in part.statistics
        if one.key in {"alpha_nominal", "alpha_ordinal"} and one.value is not None
    ]
    if not alphas:
        return Verdict("unknown", "Agreement cannot be estimated yet: too few items have two judgments.")
    part, statistic = min(alphas, key=lambda pair: pair[1].value or 0.0)
    value = statistic.value or 0.0
    of = f" of {part.criterion}" if part.criterion else ""
    grade = "good" if value >= GOOD_ALPHA else "acceptable" if value >= TENTATIVE_ALPHA else "low"
    sentence = f"Agreement{of} is {grade}: Krippendorff’s α {_coefficient(value)} ({_coefficient(GOOD_ALPHA)} is good)."
    outcome: Outcome = "reached" if value >= GOOD_ALPHA else "below"
    return Verdict(outcome, sentence, statistic.key, value, statistic.lower, statistic.upper, GOOD_ALPHA)


def _reason(statistic: Statistic) -> str:
    note = statistic.note.removeprefix("undefined: ").rstrip(".")
    return f"{note or 'too few items have two judgments'}."


def _coefficient(value: float) -> str:
    """Format a coefficient as papers do: .86."""
    # Rounded down, so that .8996 does not read as a target of .90 that was missed.
    text = f"{int(value * 100 + 1e-9) / 100:.2f}" if 0 <= value < 1 else f"{value:.2f}"
    return text.removeprefix("0")


def _judgments(more: Estimate) -> str:
    """Format a predicted number of judgments with its range."""
    text = f"{_round(more.value):,} more judgment{'' if _round(more.value) == 1 else 's'}"
    if more.lower is None or more.upper is None or _round(more.lower) == _round(more.upper):
        return text
    return f"{text} ({_round(more.lower):,}–{_round(more.upper):,})"


def _round(count: float) -> int:
    """Round a predicted count up to two significant digits: a prediction is no more exact than that."""
    whole = ceil(count - 1e-9)
    unit = 10 ** max(0, int(log10(max(whole, 1))) - 1)
    return int(-(-whole // unit) * unit)


# What to do next


def next_steps(
    verdict: Verdict,
    status: Status,
    left: Forecast,
    speed: Estimate | None,
    *,
    annotators: pl.DataFrame | None = None,
    disputed_checks: int = 0,
    most: int = 3,
) -> tuple[NextStep, ...]:
    """Return what the researcher may want to do now, the most urgent first.

    `left` and `speed` are the forecast and the present rate; `annotators` is the table of annotators.
    """
    steps = [
        *_about_deviations(status),
        *_about_state(status, verdict),
        *_about_checks(disputed_checks),
        *([] if annotators is None else _about_annotators(annotators)),
        *_about_progress(status, verdict, left, speed),
    ]
    return tuple(steps[:most])


def _about_state(status: Status, verdict: Verdict) -> list[NextStep]:
    if verdict.outcome == "failed":
        return [NextStep("Choose another model: the judgments are safe, and scores are computed again.", "edit")]
    if status.state == "paused":
        return [NextStep("The study is paused. Reopen it to collect judgments.", "overview")]
    if verdict.outcome == "empty" and status.state == "open":
        return [NextStep("Send annotators the link, or judge some items yourself.", "overview")]
    return []


def _about_deviations(status: Status) -> list[NextStep]:
    if not status.deviations:
        return []
    count = len(status.deviations)
    noun = "deviation" if count == 1 else "deviations"
    return [NextStep(f"{count} {noun} from the preregistration: {' '.join(status.deviations)}", "overview")]


def _about_checks(disputed: int) -> list[NextStep]:
    if not disputed:
        return []
    checks = "1 check is" if disputed == 1 else f"{disputed} checks are"
    text = f"{checks} disputed by most annotators. Decide whether the expected answer is right."
    return [NextStep(text, "quality")]


def _about_annotators(annotators: pl.DataFrame) -> list[NextStep]:
    people = annotators.filter(pl.col("excluded").is_null() & (pl.col("kind") == "person"))
    low = far_below(people.sort("agreement"))
    if not low:
        return []
    who = "1 annotator agrees" if len(low) == 1 else f"{len(low)} annotators agree"
    text = f"{who} clearly less with the other annotators. Review their answers."
    return [NextStep(text, "annotators")]


def _about_progress(status: Status, verdict: Verdict, left: Forecast, speed: Estimate | None) -> list[NextStep]:
    is_finished = not left.tasks and bool(status.judgments)
    if verdict.outcome == "reached" and status.state == "open" and not is_finished:
        return [NextStep("The target is reached. You can close the study and create the report.", "export")]
    if is_finished and verdict.outcome in {"below", "near"}:
        return [
            NextStep("All planned judgments are collected. Plan more judgments per item to reach the target.", "edit"),
            NextStep("Create the report.", "export"),
        ]
    if status.judgments and (is_finished or status.state == "closed"):
        return [NextStep("Create the report.", "export")]
    if left.held_tasks and left.held_tasks >= left.tasks and left.held_until is not None:
        tasks = "The last task is" if left.held_tasks == 1 else f"The last {left.held_tasks} tasks are"
        text = f"{tasks} held by annotators who have stopped, until {left.held_until:%H:%M} UTC."
        return [NextStep(text, "activity")]
    if status.state == "open" and status.judgments and (speed is None or not speed.value):
        return [NextStep("Nobody has judged in the last hour. Invite more annotators.", "overview")]
    return []
