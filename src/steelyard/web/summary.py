"""The summary at the top of the dashboard: numbers, and formatted texts with units and intervals."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from steelyard.report.formatting import format_duration, format_rounded
from steelyard.study import Status, StudyConfig
from steelyard.web.calculator import Overview, Reliability
from steelyard.web.dashboard import Dashboard

_NOT_COMPUTED = "could not be computed"


class SummaryOut(BaseModel):
    """Progress of a study: numbers for programs, and texts for display."""

    seq: Annotated[int, Field(description="the last event that the results include; 0 before the first computation")]
    judgments: int
    done: int
    total: int
    annotators: int
    leased_tasks: int
    excluded: int
    state: Literal["open", "paused", "closed"]
    state_reason: str
    finished: bool
    as_of: Annotated[
        int | None, Field(description="number of judgments in the scores; null before the first computation")
    ]
    reliability_as_of: int | None
    error: Annotated[str, Field(description="why the results cannot be computed; empty if they can")]
    texts: Annotated[dict[str, str], Field(description="formatted values for display")]
    charts: Annotated[dict[str, str], Field(description="titles of the charts that are available, by name")]


def summary(dashboard: Dashboard, status: Status, reason: str) -> SummaryOut:
    """Summarise the progress of a study; `reason` explains its state."""
    overview, reliability = dashboard.overview, dashboard.reliability
    done, total = (sum(getattr(stage, name) for stage in status.stages) for name in ("done", "total"))
    leased = sum(stage.leased for stage in status.stages)
    finished = total > 0 and done >= total
    charts = dict(overview.titles) if overview is not None else {}
    if reliability is not None and reliability.title:
        charts["reliability"] = reliability.title
    return SummaryOut(
        seq=overview.seq if overview is not None else 0,
        judgments=status.judgments,
        done=done,
        total=total,
        annotators=status.annotators,
        leased_tasks=leased,
        excluded=status.excluded,
        state=status.state,
        state_reason=reason,
        finished=finished,
        as_of=overview.judgments if overview is not None else None,
        reliability_as_of=reliability.judgments if reliability is not None else None,
        error=dashboard.error,
        texts={
            "progress": f"{done:,} of {total:,}",
            "percent": f"{100 * done // max(total, 1)} %",
            "annotators": _annotators(status, leased),
            "state": _state(status, reason),
            **_overview_texts(overview, dashboard.served.study.config, finished, dashboard.error),
            **_reliability_texts(reliability, dashboard.error),
        },
        charts=charts,
    )


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name if count != 1 else name.removesuffix('s')}"


def _annotators(status: Status, leased: int) -> str:
    aside = f"; {_counted(status.set_aside, 'judgments')} of excluded people set aside" if status.set_aside else ""
    return f"{_counted(leased, 'tasks')} out now{aside}"


def _state(status: Status, reason: str) -> str:
    label = {"open": "open", "paused": "paused: nobody is asked", "closed": "closed"}[status.state]
    return f"{label} ({reason})" if reason and status.state != "open" else label


def _overview_texts(overview: Overview | None, config: StudyConfig, finished: bool, error: str) -> dict[str, str]:
    if overview is None:
        empty = dict.fromkeys(("rate", "rate_interval", "remaining", "remaining_interval", "cost", "cost_forecast"), "")
        texts = dict.fromkeys(("notes", "problem", "systems_notes", "systems_problem"), "")
        return {**empty, **texts, "as_of": _NOT_COMPUTED if error else "computing…"}
    return {
        "as_of": f"as of {_counted(overview.judgments, 'judgments')}, {overview.at:%H:%M:%S} UTC",
        "notes": " · ".join(overview.notes),
        "problem": overview.problem,
        "systems_notes": " · ".join(overview.systems_notes),
        "systems_problem": overview.systems_problem,
        **_rate_texts(overview),
        **_remaining_texts(overview, finished),
        **_cost_texts(overview, config),
    }


def _rate_texts(overview: Overview) -> dict[str, str]:
    if overview.rate is None or not overview.rate.value:
        return {"rate": "0", "rate_interval": "nobody in the last hour"}
    low, high = format_rounded(overview.rate.lower or 0), format_rounded(overview.rate.upper or 0)
    return {"rate": format_rounded(overview.rate.value), "rate_interval": f"judgments an hour ({low}–{high})"}


def _remaining_texts(overview: Overview, finished: bool) -> dict[str, str]:
    if finished:
        return {"remaining": "Done", "remaining_interval": "all judgments are in"}
    hours = overview.forecast.hours
    if hours is None:
        return {"remaining": "–", "remaining_interval": "no forecast while nobody judges"}
    until = overview.at + timedelta(hours=min(hours.value, 24 * 3650))
    span = (
        ""
        if hours.lower is None or hours.upper is None
        else f"{format_duration(hours.lower)}–{format_duration(hours.upper)}, "
    )
    when = f"{until:%H:%M} UTC" if hours.value < 24 else f"{until:%d %b %Y}"
    return {"remaining": format_duration(hours.value), "remaining_interval": f"{span}at about {when}"}


def _cost_texts(overview: Overview, config: StudyConfig) -> dict[str, str]:
    paid, _, total = overview.tables["costs"].rows(named=True)
    if config.pay.nothing:
        if not paid["hours"]:
            return {"cost": "–", "cost_forecast": "no pay is set in study.toml, and no times are known"}
        return {
            "cost": format_duration(paid["hours"]),
            "cost_forecast": f"of people's time so far; about {format_duration(total['hours'])} in all",
        }
    sign = config.pay.currency

    def money(value: float) -> str:
        return f"{sign}{value:,.2f}" if len(sign) == 1 else f"{value:,.2f} {sign}"

    span = ""
    if total["upper"] - total["lower"] >= 0.01:
        span = f" ({money(max(total['lower'], 0))}–{money(total['upper'])})"
    return {"cost": money(paid["cost"]), "cost_forecast": f"so far; about {money(total['cost'])}{span} in all"}


def _reliability_texts(reliability: Reliability | None, error: str) -> dict[str, str]:
    if reliability is None:
        return {"reliability_as_of": _NOT_COMPUTED if error else "computing…"}
    return {"reliability_as_of": f"as of {_counted(reliability.judgments, 'judgments')}"}
