"""The summary of a dashboard: numbers, the verdict, and formatted texts with units and intervals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from steelyard.analysis.verdict import Outcome, Tab, Verdict, next_steps
from steelyard.report.formatting import format_duration, format_rounded
from steelyard.study import Status, StudyConfig
from steelyard.web.calculator import PartName, Progress, Scores
from steelyard.web.dashboard import Dashboard

_NOT_COMPUTED = "could not be computed"


class VerdictOut(BaseModel):
    """Whether the scores are reliable enough: a sentence, and the statistic with its interval and target."""

    outcome: Outcome
    sentence: str
    value: float | None
    lower: float | None
    upper: float | None
    target: float | None


class StepOut(BaseModel):
    """Something to do next, and the tab of the dashboard where it is done."""

    text: str
    tab: Tab


class SummaryOut(BaseModel):
    """Progress of a study: numbers for programs, and texts for display."""

    seq: Annotated[int, Field(description="the last event that the scores include; 0 before the first computation")]
    judgments: int
    done: int
    total: int
    annotators: Annotated[int, Field(description="people; models are counted in `models`")]
    models: int
    model_judgments: int
    leased_tasks: int
    excluded: int
    state: Literal["open", "paused", "closed"]
    state_reason: str
    finished: bool
    as_of: Annotated[
        int | None, Field(description="number of judgments in the scores; null before the first computation")
    ]
    reliability_as_of: int | None
    parts: Annotated[
        dict[str, str],
        Field(description="version of each part of the results; it changes with new data"),
    ]
    verdict: Annotated[VerdictOut | None, Field(description="null until reliability is computed")]
    steps: list[StepOut]
    error: Annotated[str, Field(description="why the results cannot be computed; empty if they can")]
    texts: Annotated[dict[str, str], Field(description="formatted values for display")]
    charts: Annotated[list[str], Field(description="names of the charts that can be drawn now")]


def summary(dashboard: Dashboard, status: Status, reason: str) -> SummaryOut:
    """Summarise the progress of a study; `reason` explains its state."""
    scores, reliability = dashboard.scores, dashboard.reliability
    done, total = (sum(getattr(stage, name) for stage in status.stages) for name in ("done", "total"))
    leased = sum(stage.leased for stage in status.stages)
    finished = total > 0 and done >= total
    verdict = _verdict(dashboard, status)
    return SummaryOut(
        seq=scores.seq if scores is not None else 0,
        judgments=status.judgments,
        done=done,
        total=total,
        annotators=status.annotators,
        models=status.models,
        model_judgments=status.model_judgments,
        leased_tasks=leased,
        excluded=status.excluded,
        state=status.state,
        state_reason=reason,
        finished=finished,
        as_of=scores.judgments if scores is not None else None,
        reliability_as_of=reliability.judgments if reliability is not None else None,
        parts={name: _version(name, part.seq, part.at.timestamp()) for name, part in dashboard.parts.items()},
        verdict=None if verdict is None else _verdict_out(verdict),
        steps=[] if verdict is None else _steps(dashboard, status, verdict),
        error=dashboard.error,
        texts={
            "progress": f"{done:,} of {total:,}",
            "percent": f"{100 * done // max(total, 1)} %",
            "annotators_now": _annotators(status, leased),
            "state": _state(status, reason),
            **_progress_texts(dashboard.progress, dashboard.served.study.config, finished, dashboard.error),
            **_score_texts(scores, dashboard.error),
            "models": "" if reliability is None else reliability.models,
            "reliability_as_of": _as_of(None if reliability is None else reliability.judgments, dashboard.error),
        },
        charts=[name for part in dashboard.parts.values() for name in part.charts],
    )


def _version(name: PartName, seq: int, at: float) -> str:
    # Rates change with time, even if nothing happens.
    return f"{seq}-{at:.0f}" if name == "progress" else str(seq)


def _verdict(dashboard: Dashboard, status: Status) -> Verdict | None:
    if dashboard.reliability is not None:
        return dashboard.reliability.verdict
    return None if status.judgments else Verdict("empty", "There are no judgments yet.")


def _verdict_out(verdict: Verdict) -> VerdictOut:
    return VerdictOut(
        outcome=verdict.outcome,
        sentence=verdict.sentence,
        value=verdict.value,
        lower=verdict.lower,
        upper=verdict.upper,
        target=verdict.target,
    )


def _steps(dashboard: Dashboard, status: Status, verdict: Verdict) -> list[StepOut]:
    progress = dashboard.progress
    if progress is None:
        return []
    annotators = None if dashboard.annotators is None else dashboard.annotators.tables["annotators"]
    checks = progress.tables["checks"]
    disputed = int(checks["disputed"].sum()) if checks.height else 0
    steps = next_steps(
        verdict, status, progress.forecast, progress.rate, annotators=annotators, disputed_checks=disputed
    )
    return [StepOut(text=step.text, tab=step.tab) for step in steps]


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name if count != 1 else name.removesuffix('s')}"


def _annotators(status: Status, leased: int) -> str:
    aside = f"; {_counted(status.set_aside, 'judgments')} of excluded annotators set aside" if status.set_aside else ""
    by_models = ""
    if status.models:
        counted = "" if status.counts_models else ", which do not count as people's judgments"
        by_models = f"; {_counted(status.model_judgments, 'judgments')} by {_counted(status.models, 'models')}{counted}"
    items = f"; {_counted(status.items_set_aside, 'items')} set aside" if status.items_set_aside else ""
    return f"{_counted(leased, 'tasks')} leased now{aside}{items}{by_models}"


def _state(status: Status, reason: str) -> str:
    label = {"open": "open", "paused": "paused: no tasks are assigned", "closed": "closed"}[status.state]
    return f"{label} ({reason})" if reason and status.state != "open" else label


def _as_of(judgments: int | None, error: str) -> str:
    if judgments is None:
        return _NOT_COMPUTED if error else "computing…"
    return f"as of {_counted(judgments, 'judgments')}"


def _moment(at: datetime) -> str:
    """Return the time of a computation; with the date if it was on another day."""
    is_today = at.date() == datetime.now(UTC).date()
    return f"{at:%H:%M:%S} UTC" if is_today else f"{at:%d %b %Y, %H:%M} UTC"


def _score_texts(scores: Scores | None, error: str) -> dict[str, str]:
    if scores is None:
        empty = dict.fromkeys(("notes", "problem", "systems_notes", "systems_problem", "model"), "")
        return {**empty, "as_of": _as_of(None, error)}
    return {
        "as_of": f"{_as_of(scores.judgments, '')}, {_moment(scores.at)}",
        "model": scores.model,
        "notes": " · ".join(scores.notes),
        "problem": scores.problem,
        "systems_notes": " · ".join(scores.systems_notes),
        "systems_problem": scores.systems_problem,
    }


def _progress_texts(progress: Progress | None, config: StudyConfig, finished: bool, error: str) -> dict[str, str]:
    names = ("rate", "rate_interval", "remaining", "remaining_interval", "cost", "cost_forecast")
    if progress is None:
        return dict.fromkeys(names, "–" if error else "")
    return {**_rate_texts(progress), **_remaining_texts(progress, finished), **_cost_texts(progress, config)}


def _rate_texts(progress: Progress) -> dict[str, str]:
    if progress.rate is None or not progress.rate.value:
        return {"rate": "0", "rate_interval": "nobody in the last hour"}
    low, high = format_rounded(progress.rate.lower or 0), format_rounded(progress.rate.upper or 0)
    return {"rate": format_rounded(progress.rate.value), "rate_interval": f"judgments per hour ({low}–{high})"}


def _remaining_texts(progress: Progress, finished: bool) -> dict[str, str]:
    if finished:
        return {"remaining": "Done", "remaining_interval": "all judgments are collected"}
    left = progress.forecast
    free = "" if left.held_until is None else f"{left.held_until:%H:%M} UTC"
    leases = f"{_counted(left.held_tasks, 'tasks')} held by annotators who have stopped, free by {free}"
    hours = left.hours
    if hours is None:
        reason = leases if left.held_tasks else "no forecast without recent judgments"
        return {"remaining": "–", "remaining_interval": reason}
    until = progress.at + timedelta(hours=min(hours.value, 24 * 3650))
    span = (
        ""
        if hours.lower is None or hours.upper is None
        else f"{format_duration(hours.lower)}–{format_duration(hours.upper)}, "
    )
    when = f"{until:%H:%M} UTC" if hours.value < 24 else f"{until:%d %b %Y}"
    interval = f"{span}at about {when}" + (f"; {leases}" if left.held_tasks else "")
    return {"remaining": format_duration(hours.value), "remaining_interval": interval}


def _cost_texts(progress: Progress, config: StudyConfig) -> dict[str, str]:
    paid, _, total = progress.tables["costs"].rows(named=True)
    if config.pay.nothing:
        if not paid["hours"]:
            return {"cost": "–", "cost_forecast": "no pay is set, and no times were recorded"}
        return {
            "cost": format_duration(paid["hours"]),
            "cost_forecast": f"of annotators' time so far; about {format_duration(total['hours'])} in total",
        }
    sign = config.pay.currency

    def money(value: float) -> str:
        return f"{sign}{value:,.2f}" if len(sign) == 1 else f"{value:,.2f} {sign}"

    span = ""
    if total["upper"] - total["lower"] >= 0.01:
        span = f" ({money(max(total['lower'], 0))}–{money(total['upper'])})"
    return {"cost": money(paid["cost"]), "cost_forecast": f"so far; about {money(total['cost'])}{span} in total"}
