"""The dashboard's headline numbers, each with its unit and interval, said in one place for page and API alike."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from steelyard.report.words import duration, rough
from steelyard.study import Status, StudyConfig
from steelyard.web.calculator import Board, Reliability
from steelyard.web.watching import Watch

_NOT_COMPUTED = "could not be computed"


class SummaryOut(BaseModel):
    """How far a study is: numbers for programs, and the same said in words."""

    seq: Annotated[int, Field(description="the number of the last event the figures rest on; 0 before the first")]
    judgments: int
    done: int
    total: int
    annotators: int
    tasks_out: int
    excluded: int
    state: Literal["open", "paused", "closed"]
    state_reason: str
    finished: bool
    as_of: Annotated[int | None, Field(description="how many judgments the scores rest on; null before the first fit")]
    reliability_as_of: int | None
    trouble: Annotated[str, Field(description="why the figures cannot be computed, if they cannot")]
    words: dict[str, str]
    charts: Annotated[dict[str, str], Field(description="the charts there are, and what each shows")]


def summary(watch: Watch, status: Status, reason: str) -> SummaryOut:
    """Say how far a study is; `reason` is that of its state."""
    board, reliability = watch.board, watch.reliability
    done, total = (sum(getattr(stage, name) for stage in status.stages) for name in ("done", "total"))
    out = sum(stage.leased for stage in status.stages)
    finished = total > 0 and done >= total
    charts = dict(board.titles) if board is not None else {}
    if reliability is not None and reliability.title:
        charts["reliability"] = reliability.title
    return SummaryOut(
        seq=board.seq if board is not None else 0,
        judgments=status.judgments,
        done=done,
        total=total,
        annotators=status.annotators,
        tasks_out=out,
        excluded=status.excluded,
        state=status.state,
        state_reason=reason,
        finished=finished,
        as_of=board.judgments if board is not None else None,
        reliability_as_of=reliability.judgments if reliability is not None else None,
        trouble=watch.trouble,
        words={
            "progress": f"{done:,} of {total:,}",
            "share": f"{100 * done // max(total, 1)} %",
            "people": _people(status, out),
            "state": _state(status, reason),
            **_board_words(board, watch.served.study.config, finished, watch.trouble),
            **_reliability_words(reliability, watch.trouble),
        },
        charts=charts,
    )


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name if count != 1 else name.removesuffix('s')}"


def _people(status: Status, out: int) -> str:
    aside = f"; {_counted(status.set_aside, 'judgments')} of excluded people set aside" if status.set_aside else ""
    return f"{_counted(out, 'tasks')} out now{aside}"


def _state(status: Status, reason: str) -> str:
    word = {"open": "open", "paused": "paused: nobody is asked", "closed": "closed"}[status.state]
    return f"{word} ({reason})" if reason and status.state != "open" else word


def _board_words(board: Board | None, config: StudyConfig, finished: bool, trouble: str) -> dict[str, str]:
    if board is None:
        waiting = dict.fromkeys(("rate", "rate_interval", "left", "left_interval", "cost", "cost_forecast"), "")
        return {**waiting, "as_of": _NOT_COMPUTED if trouble else "computing…", "notes": "", "problem": ""}
    return {
        "as_of": f"as of {_counted(board.judgments, 'judgments')}, {board.at:%H:%M:%S} UTC",
        "notes": " · ".join(board.notes),
        "problem": board.problem,
        **_rate_words(board),
        **_left_words(board, finished),
        **_cost_words(board, config),
    }


def _rate_words(board: Board) -> dict[str, str]:
    if board.rate is None or not board.rate.value:
        return {"rate": "0", "rate_interval": "nobody in the last hour"}
    low, high = rough(board.rate.lower or 0), rough(board.rate.upper or 0)
    return {"rate": rough(board.rate.value), "rate_interval": f"judgments an hour ({low}–{high})"}


def _left_words(board: Board, finished: bool) -> dict[str, str]:
    if finished:
        return {"left": "Done", "left_interval": "all judgments are in"}
    hours = board.forecast.hours
    if hours is None:
        return {"left": "–", "left_interval": "no forecast while nobody judges"}
    until = board.at + timedelta(hours=min(hours.value, 24 * 3650))
    span = "" if hours.lower is None or hours.upper is None else f"{duration(hours.lower)}–{duration(hours.upper)}, "
    when = f"{until:%H:%M} UTC" if hours.value < 24 else f"{until:%d %b %Y}"
    return {"left": duration(hours.value), "left_interval": f"{span}at about {when}"}


def _cost_words(board: Board, config: StudyConfig) -> dict[str, str]:
    so_far, _, in_all = board.tables["costs"].rows(named=True)
    if config.pay.nothing:
        if not so_far["hours"]:
            return {"cost": "–", "cost_forecast": "no pay is set in study.toml, and no times are known"}
        return {
            "cost": duration(so_far["hours"]),
            "cost_forecast": f"of people's time so far; about {duration(in_all['hours'])} in all",
        }
    sign = config.pay.currency

    def money(value: float) -> str:
        return f"{sign}{value:,.2f}" if len(sign) == 1 else f"{value:,.2f} {sign}"

    span = ""
    if in_all["upper"] - in_all["lower"] >= 0.01:
        span = f" ({money(max(in_all['lower'], 0))}–{money(in_all['upper'])})"
    return {"cost": money(so_far["cost"]), "cost_forecast": f"so far; about {money(in_all['cost'])}{span} in all"}


def _reliability_words(reliability: Reliability | None, trouble: str) -> dict[str, str]:
    if reliability is None:
        return {"reliability_as_of": _NOT_COMPUTED if trouble else "computing…"}
    return {"reliability_as_of": f"as of {_counted(reliability.judgments, 'judgments')}"}
