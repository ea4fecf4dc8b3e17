"""The activity of a study: a readable log of what happened, when, and who did it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from steelyard.analysis.history import TIME, History, first_and_last
from steelyard.study import Study
from steelyard.study import events as ev
from steelyard.study.log import as_datetime, as_microseconds
from steelyard.study.unjudged_state import describe

SCHEMA: dict[str, Any] = {
    "at": TIME,
    "category": pl.String,
    "who": pl.String,
    "text": pl.String,
    "reason": pl.String,
}
_ACTORS = {"rules": "quality rules", "checks": "attention checks", "sync": "Prolific", "hook": "Prolific"}
"""How the log names whatever acts by itself, and how readers know it."""
_LONGEST_BY_HOUR = timedelta(days=3)
"""Judgments are summed by the hour in studies up to this long, and by the day in longer ones."""
_MOST_CHANGES = 6
_ROLES = {"viewer": "view", "manager": "manage"}

Row = tuple[datetime, str, str, str, str]


def activity(study: Study, history: History) -> pl.DataFrame:
    """Tabulate what happened in a study, latest first: `at`, `category`, `who`, `text`, `reason`.

    Judgments, arrivals, skips and tests are summed by the hour or day; everything else is a row of its own.
    """
    rows = [*_single_events(study), *_judgments(history), *_sums(study, _period(history))]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("at", descending=True, maintain_order=True)


# Single events


def _single_events(study: Study) -> Iterator[Row]:
    config: dict[str, Any] | None = None
    for event in study.events(tuple(_DESCRIPTIONS)):
        if isinstance(event.data, ev.ConfigChanged):
            text = _config_text(config, event.data)
            config = event.data.config
            category = "study"
        else:
            category, describe = _DESCRIPTIONS[event.kind]
            text = describe(event.data, event.annotator or "")
        if text:
            yield as_datetime(event.at), category, _actor(event.data), text, str(getattr(event.data, "reason", ""))


def _actor(data: ev.Payload) -> str:
    """Return who did it, as far as the log knows."""
    if isinstance(data, ev.StateChanged) and data.reason.startswith("The target was reached"):
        return "stopping rule"
    by = str(getattr(data, "member", "") or getattr(data, "by", ""))
    return _ACTORS.get(by, by)


def _config_text(before: Mapping[str, Any] | None, changed: ev.ConfigChanged) -> str:
    if before is None:
        return f"Study created with Steelyard {changed.software}"
    old, new = dict(_flat(before)), dict(_flat(changed.config))
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    if not keys:
        return "Items file or checks changed"
    changes = [f"{key} {_shown(old.get(key))} → {_shown(new.get(key))}" for key in keys[:_MOST_CHANGES]]
    more = f", and {len(keys) - _MOST_CHANGES} more" if len(keys) > _MOST_CHANGES else ""
    return f"Settings changed: {', '.join(changes)}{more}"


def _flat(table: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings of nested tables with dotted names."""
    if isinstance(table, Mapping):
        for key, value in table.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(table, list) and table and isinstance(table[0], Mapping):
        for number, value in enumerate(table, 1):
            yield from _flat(value, f"{prefix} {number}")
    else:
        yield prefix, table


def _shown(value: Any) -> str:
    if value is None:
        return "(unset)"
    text = " ".join(str(value).split())
    return text if len(text) <= 40 else text[:39] + "…"


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _interim_text(data: ev.InterimAnalysis, _: str) -> str:
    outcome = "target reached" if data.reached else "target not reached"
    return f"Interim analysis {data.number} of {_count(data.judgments, 'observation')}: {data.summary}; {outcome}"


def _state_text(data: ev.StateChanged, _: str) -> str:
    return {"open": "Study opened", "paused": "Study paused", "closed": "Study closed"}[data.state]


def _set_aside_text(data: ev.ItemSetAside, _: str) -> str:
    return f"Item {data.item} set aside" + (f": {describe(data)}" if data.by else "")


def _platform_text(data: ev.PlatformEvent, _: str) -> str:
    match data:
        case ev.DraftCreated():
            return f"Draft created on Prolific ({data.study})"
        case ev.PublicationPlanned():
            cost = "" if data.cost is None else f", cost {data.cost / 100:,.2f}"
            return f"Published on Prolific: {_count(data.places, 'place')}{' (pilot)' if data.pilot else ''}{cost}"
        case ev.BonusPlanned():
            total = sum(data.amounts.values()) / 100
            return f"Bonuses of {total:,.2f} planned for {_count(len(data.amounts), 'participant')}"
        case ev.BonusPaid():
            return f"Bonus batch {data.batch} paid"
        case ev.BonusDropped():
            return f"Bonus batch {data.batch} dropped before it was paid"
    return ""


_DESCRIPTIONS: dict[str, tuple[str, Callable[[Any, str], str]]] = {
    ev.ConfigChanged.kind: ("study", lambda data, _: ""),
    ev.ItemsAdded.kind: ("study", lambda data, _: f"{_count(len(data.items), 'item')} added or changed"),
    ev.ChecksAdded.kind: ("quality", lambda data, _: f"{_count(len(data.questions), 'check question')} loaded"),
    ev.CheckResolved.kind: ("quality", lambda data, _: f"Check {data.check} resolved: expected answer {data.verdict}"),
    ev.Excluded.kind: ("annotators", lambda _, annotator: f"{annotator} excluded"),
    ev.Readmitted.kind: ("annotators", lambda _, annotator: f"{annotator} readmitted"),
    ev.ItemSetAside.kind: ("quality", _set_aside_text),
    ev.ItemRestored.kind: ("quality", lambda data, _: f"Item {data.item} is asked about again"),
    ev.Forgotten.kind: (
        "annotators",
        lambda data, _: f"An annotator was forgotten: {_count(data.judgments, 'judgment')} deleted",
    ),
    ev.QuotaSet.kind: ("annotators", lambda data, annotator: f"{annotator}: at most {_count(data.tasks, 'task')}"),
    ev.Departed.kind: ("annotators", lambda _, annotator: f"{annotator} returned their place"),
    ev.Returned.kind: ("annotators", lambda _, annotator: f"{annotator} came back"),
    ev.StateChanged.kind: ("study", _state_text),
    ev.MemberAdded.kind: ("team", lambda data, _: f"{data.name} may {_ROLES[data.role]} the study"),
    ev.MemberRemoved.kind: ("team", lambda data, _: f"{data.name} no longer has access"),
    ev.InterimAnalysis.kind: ("quality", _interim_text),
    ev.PlatformEvent.kind: ("prolific", _platform_text),
}
"""The category of each kind of event that has a row of its own, and its text from payload and annotator."""


# Sums by the hour or day


def _period(history: History) -> str:
    ends = first_and_last(history.judgments)
    return "1h" if ends is None or ends[1] - ends[0] <= _LONGEST_BY_HOUR else "1d"


def _judgments(history: History) -> Iterator[Row]:
    """Yield a row for the judgments of each hour or day, and for the annotators who gave their first."""
    period = pl.col("at").dt.truncate(_period(history)).alias("period")
    grouped = (
        history.judgments.with_columns(period)
        .group_by("period", "imported")
        .agg(
            pl.col("at").max(),
            pl.len().alias("judgments"),
            pl.col("annotator").filter(pl.col("annotator") != "").n_unique().alias("annotators"),
            pl.col("revised").sum(),
        )
        .sort("period")
    )
    for row in grouped.iter_rows(named=True):
        by = f" by {_count(row['annotators'], 'annotator')}" if row["annotators"] else ""
        revised = f", {row['revised']:,} of them revised" if row["revised"] else ""
        text = f"{_count(row['judgments'], 'judgment')}{' imported' if row['imported'] else ''}{by}{revised}"
        yield row["at"], "import" if row["imported"] else "judgments", "", text, ""
    first = history.judgments.filter((pl.col("annotator") != "") & ~pl.col("imported"))
    arrivals = first.group_by("annotator").agg(pl.col("at").min()).with_columns(period)
    for row in arrivals.group_by("period").agg("annotator", pl.col("at").min()).iter_rows(named=True):
        yield row["at"], "annotators", "", _joined(sorted(row["annotator"])), ""


def _joined(names: list[str]) -> str:
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"{listed} gave {'the' if len(names) == 1 else 'their'} first judgment"


_SUMMED = (ev.Skipped.kind, ev.Flagged.kind, ev.TestFinished.kind, ev.PlatformEvent.kind)


def _sums(study: Study, period: str) -> Iterator[Row]:
    """Yield a row for each hour or day and kind of event that single annotators cause often."""
    counts: Counter[tuple[int, str, str]] = Counter()
    last: dict[tuple[int, str, str], int] = {}
    length = as_microseconds(as_datetime(0) + (timedelta(hours=1) if period == "1h" else timedelta(days=1)))
    for event in study.events(_SUMMED):
        label = _sum_label(event.data)
        if label is not None:
            key = (event.at // length, *label)
            counts[key] += 1
            last[key] = event.at
    for (number, category, name), count in counts.items():
        yield as_datetime(last[number, category, name]), category, "", _sum_text(name, count), ""


def _sum_label(data: ev.Payload) -> tuple[str, str] | None:
    match data:
        case ev.Skipped():
            return "judgments", "skipped"
        case ev.Flagged():
            return "judgments", "flagged"
        case ev.TestFinished():
            return "annotators", "passed" if data.passed else "failed"
        case ev.SubmissionSeen():
            return "prolific", data.status.lower()
    return None


def _sum_text(name: str, count: int) -> str:
    if name in {"skipped", "flagged"}:
        return f"{_count(count, 'task')} {name}"
    if name in {"passed", "failed"}:
        return f"{_count(count, 'annotator')} {name} the qualification test"
    return f"{_count(count, 'submission')} on Prolific: {name}"
