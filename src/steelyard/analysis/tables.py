"""Tables for the dashboard, charts and report of a study: progress, costs, scores, and the judgments of an item.

Each function returns a frame or a small record, which `charts` draws. None takes quadratic time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import singledispatch
from math import inf, sqrt
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from steelyard.analysis.history import TIME, History, first_and_last
from steelyard.observations import Choice, Comparison, Label, RankedItems, Rating
from steelyard.protocols.base import Protocol
from steelyard.protocols.pairwise import is_both_bad
from steelyard.protocols.unjudged import observe, unjudged_items
from steelyard.quality.pay import pay_table
from steelyard.records import Item
from steelyard.study import Status, Study, StudyConfig
from steelyard.study.config.tables import Stop

HOUR = timedelta(hours=1)
_IDLE = timedelta(minutes=5)
"""Time without a sign of an annotator after which they count as having stopped."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval; the ends are None if there is no interval."""

    value: float
    lower: float | None = None
    upper: float | None = None


# Progress


def progress_over_time(history: History, *, points: int = 120) -> pl.DataFrame:
    """Tabulate the judgments that count in equal periods of time, from the first to the last.

    Columns: `start` and `at` (the ends of a period), `judgments` in it, `cumulative`, and `per_hour`.
    """
    counted = history.counted
    ends = first_and_last(counted)
    schema: dict[str, Any] = {
        "start": TIME,
        "at": TIME,
        "judgments": pl.Int64,
        "cumulative": pl.Int64,
        "per_hour": pl.Float64,
    }
    if ends is None:
        return pl.DataFrame(schema=schema)
    first, last = ends
    width = max((last - first) / points, timedelta(seconds=1))
    steps = max(1, -(-(last - first) // width))
    period = ((counted["at"] - first).dt.total_microseconds() // (width // timedelta(microseconds=1))).clip(
        0, steps - 1
    )
    judgments = np.bincount(period.to_numpy(), minlength=steps).astype(np.int64)
    starts = [first + number * width for number in range(steps)]
    return pl.DataFrame(
        {
            "start": starts,
            "at": [start + width for start in starts],
            "judgments": judgments,
            "cumulative": np.cumsum(judgments),
            "per_hour": judgments / (width / HOUR),
        },
        schema=schema,
    )


def rate(history: History, now: datetime, *, window: timedelta = HOUR, level: float = 0.95) -> Estimate | None:
    """Return the judgments per hour over the last hour, or since the first judgment; None if there are none.

    Imported judgments are left out: they do not predict when the next one arrives. The interval is the exact
    interval of a Poisson count (Garwood 1936).
    """
    own = history.judgments.filter(~pl.col("imported"))
    ends = first_and_last(own)
    if ends is None:
        return None
    since = max(now - window, ends[0])
    count = int((own["at"] >= since).sum())
    # At least a minute, because a study that is a few seconds old has no meaningful rate.
    hours = max(now - since, timedelta(minutes=1)) / HOUR
    tail = (1 - level) / 2
    lower = float(special.gammaincinv(count, tail)) if count else 0.0
    upper = float(special.gammaincinv(count + 1, 1 - tail))
    return Estimate(count / hours, lower / hours, upper / hours)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The remaining work: `tasks` to be answered, and the `hours` they take at the present rate.

    `held_tasks` of them are leased by annotators who have stopped; they become free by `held_until` at the latest.
    """

    tasks: float
    hours: Estimate | None
    held_tasks: int = 0
    held_until: datetime | None = None


def forecast(history: History, status: Status, now: datetime) -> Forecast:
    """Predict how long the remaining tasks take at the present rate; the interval is that of the rate.

    Tasks that are held by annotators who have stopped take at least until their leases end. If nothing else remains,
    there is no prediction.
    """
    done = sum(stage.done for stage in status.stages)
    left = sum(max(0, stage.total - stage.done) for stage in status.stages)
    answered = history.judgments.filter(~pl.col("excluded")).height
    # A goal may count single items of tasks with several; checks and repeats are additional tasks.
    tasks = left * answered / done if done and answered else float(left)
    leases = idle_leases(history, now) if tasks else history.picks.head(0)
    last = leases["lease_end"].max()
    held_until = last if isinstance(last, datetime) else None
    speed = rate(history, now)
    if speed is None or not speed.value or not tasks or leases.height >= tasks:
        return Forecast(tasks, None, leases.height, held_until)
    wait = 0.0 if held_until is None else (held_until - now) / HOUR
    hours = tasks / speed.value
    longest = tasks / speed.lower if speed.lower else inf
    interval = Estimate(
        max(hours, wait), max(tasks / (speed.upper or inf), wait), max(longest, wait) if longest < inf else None
    )
    return Forecast(tasks, interval, leases.height, held_until)


def idle_leases(history: History, now: datetime) -> pl.DataFrame:
    """Return the tasks leased by annotators who seem to have stopped.

    These are the annotators who have neither answered nor fetched a task for five minutes, or for four times the
    median time of an answer if that is longer.
    """
    open_tasks = history.open_tasks().filter(pl.col("lease_end") > now)
    if open_tasks.is_empty():
        return open_tasks
    middle = history.judgments["seconds"].median()
    patience = max(_IDLE, timedelta(seconds=4 * float(middle)) if isinstance(middle, int | float) else _IDLE)
    events = pl.concat([history.judgments.select("annotator", "at"), history.picks.select("annotator", "at")])
    active = events.filter(pl.col("at") > now - patience)["annotator"].unique()
    return open_tasks.filter(~pl.col("annotator").is_in(active.implode()))


def answers_to_target(value: float, rule: Stop, answers: float) -> float | None:
    """Predict the total number of answers at which a study reaches its target, if `answers` brought it to `value`.

    Reliability grows by the Spearman–Brown formula (1910), corrected or not; intervals narrow with the square root of
    the number of answers. None if there is no prediction: for top_k, and from a reliability of zero.
    """
    target = rule.target
    if rule.measure == "interval_width" and value > 0:
        return answers * (value / target) ** 2
    if rule.measure == "split_half" and 0 < value < 1 and target < 1:
        return answers * target * (1 - value) / (value * (1 - target))
    return None


def paid_people(history: History, study: Study) -> pl.DataFrame:
    """Return what every annotator of a history has earned, as `study.annotators.pay` does."""
    checks, pay = study.config.quality.checks, study.config.pay
    threshold = 0.0 if checks is None else checks.min_accuracy
    results = study.quality.check_results() if checks is not None else {}
    return pay_table(history.judgments, results, history.excluded, pay.rates, pay.formula, threshold)


def costs(
    history: History,
    config: StudyConfig,
    tasks_left: float,
    people: pl.DataFrame | None = None,
    *,
    left: str = "to come",
    level: float = 0.95,
) -> pl.DataFrame:
    """Return the costs so far, the predicted costs of the remaining tasks, and their sum, one row each.

    Columns: `part` (so far, the value of `left`, in all), `judgments`, `hours` of active time, `cost`, `lower`,
    `upper`. Excluded annotators are paid too; imported judgments cost nothing. Judgments without a time get the mean
    of the others; the interval of the prediction is Student's t interval of that mean. `people` has the earnings of
    every annotator: visits and bonuses are predicted in proportion to the judgments.
    """
    rates = config.pay.rates
    own = history.judgments.filter(~pl.col("imported"))
    seconds = own["seconds"].drop_nulls().to_numpy()
    mean = float(seconds.mean()) if len(seconds) else 0.0
    standard_error = float(seconds.std(ddof=1)) / sqrt(len(seconds)) if len(seconds) > 1 else 0.0
    margin = standard_error * float(special.stdtrit(max(len(seconds) - 1, 1), (1 + level) / 2))

    done = float(own.height)
    visits, bonuses = (0.0, 0.0) if people is None else (float(people.height), float(people["bonus"].sum()))

    def cost(judgments: float, each: float) -> float:
        share = judgments / done if done else 0.0
        return rates.cost(judgments, judgments * max(each, 0.0) / 3600, visits * share, bonuses * share)

    paid = cost(done, mean)
    nearest, least, most = (cost(tasks_left, each) for each in (mean, mean - margin, mean + margin))
    whole = done + tasks_left
    rows = [
        ("so far", done, done * mean / 3600, paid, paid, paid),
        (left, tasks_left, tasks_left * mean / 3600, nearest, least, most),
        ("in total", whole, whole * mean / 3600, paid + nearest, paid + least, paid + most),
    ]
    return pl.DataFrame(rows, schema=["part", "judgments", "hours", "cost", "lower", "upper"], orient="row")


# Scores


def ranked_items(scores: pl.DataFrame, items: list[Item]) -> pl.DataFrame:
    """Return the scores (or labels) with the items' texts, the best first, items without a score last."""
    texts = pl.DataFrame({"item": [i.id for i in items], "text": [i.text or (i.media or "") for i in items]})
    first = scores.columns[0]
    joined = scores.join(texts, left_on=first, right_on="item", how="left", maintain_order="left")
    return joined.select(first, "text", pl.exclude(first, "text"))


ITEM_COLUMN_PREFIX = "item."
_MOST_ITEM_COLUMNS = 30
_LONGEST_CELL = 200


def item_columns(items: Sequence[Item]) -> pl.DataFrame:
    """Return what is known about items besides their texts: `item`, `item.system`, `item.tags` and further columns.

    Values are shortened to 200 characters; there are at most 30 columns.
    """
    rows = [
        {"system": item.group, "tags": "; ".join(item.tags) or None, "gold": item.gold, **item.metadata}
        for item in items
    ]
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if any(row.get(name) for row in rows)]
    columns = {
        f"{ITEM_COLUMN_PREFIX}{name}": [(row.get(name) or "")[:_LONGEST_CELL] or None for row in rows]
        for name in names[:_MOST_ITEM_COLUMNS]
    }
    schema = dict.fromkeys(("item", *columns), pl.String)
    return pl.DataFrame({"item": [item.id for item in items], **columns}, schema=schema)


def score_histogram(scores: pl.DataFrame, *, bins: int = 20, scale: tuple[float, float] | None = None) -> pl.DataFrame:
    """Count the items in equal bins of the scale, or of the range of the scores if there is no scale.

    Columns: `lower`, `upper` (the ends of a bin), `items`.
    """
    values = scores["score"].drop_nulls().to_numpy() if "score" in scores.columns else np.empty(0)
    if not len(values):
        return pl.DataFrame(schema={"lower": pl.Float64, "upper": pl.Float64, "items": pl.Int64})
    low, high = scale if scale is not None else (float(values.min()), float(values.max()))
    if low == high:
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(np.clip(values, low, high), bins=bins, range=(low, high))
    return pl.DataFrame({"lower": edges[:-1], "upper": edges[1:], "items": counts.astype(np.int64)})


def label_counts(scores: pl.DataFrame) -> pl.DataFrame:
    """Count the items by their label: `label`, `items`, the most frequent first."""
    return (
        scores.drop_nulls("label")
        .group_by("label")
        .agg(pl.len().cast(pl.Int64).alias("items"))
        .sort(["items", "label"], descending=[True, False])
    )


def least_certain(ranked: pl.DataFrame, count: int = 10) -> pl.DataFrame:
    """Return the least certain items: those without judgments first, then the widest intervals."""
    if "lower" in ranked.columns:
        width = (pl.col("upper") - pl.col("lower")).alias("width")
        return (
            ranked.with_columns(width).sort("width", descending=True, nulls_last=False, maintain_order=True).head(count)
        )
    width = (1 - pl.col("probability")).alias("width")
    return ranked.with_columns(width).sort("width", descending=True, nulls_last=False, maintain_order=True).head(count)


# Judgments of one item


def item_judgments(history: History, config: StudyConfig, item: str) -> pl.DataFrame:
    """Return all judgments of an item, latest first.

    Columns: `judgment_id`, `at`, `annotator`, `stage`, `answer_text` (the answer about this item, for display),
    `value` (if the answer gives the item one number), `other_items` (of the same task), `seconds`, `late`, `revised`,
    `imported`, `excluded`, `purpose`, `comment`.
    """
    protocols = {stage.name: stage.protocol for stage in config.stages}
    about = history.judgments.filter(pl.col("items").list.contains(item))
    judgments = about.filter(pl.col("purpose") != "check").sort("seq", descending=True)
    answers = [
        _answer(protocols[stage], item, items.to_list() if isinstance(items, pl.Series) else items, json.loads(answer))
        for stage, items, answer in judgments.select("stage", "items", "answer").iter_rows()
    ]
    other_items = [[other for other in items if other != item] for items in judgments["items"].to_list()]
    return judgments.select("judgment_id", "at", "annotator", "stage").with_columns(
        pl.Series("answer_text", [text for text, _ in answers], dtype=pl.String),
        pl.Series("value", [value for _, value in answers], dtype=pl.Float64),
        pl.Series("other_items", other_items, dtype=pl.List(pl.String)),
        *(judgments[name] for name in ("seconds", "late", "revised", "imported", "excluded", "purpose", "comment")),
    )


def _answer(protocol: Protocol, item: str, items: list[str], answer: Any) -> tuple[str, float | None]:
    observations = observe(protocol, items, answer)
    if (reason := unjudged_items(protocol, items, answer).get(item)) is not None:
        return f"cannot judge: {reason}" if reason else "cannot judge", None
    kind = type(observations[0]) if observations else None
    own = [one for one in observations if type(one) is kind]
    if is_both_bad(answer):
        return f"both bad, with {next(other for other in items if other != item)}", None
    comparative = isinstance(answer, dict) and not protocol.judges_single_items
    texts = [
        f"{one.criterion}: {text}" if comparative and one.criterion else text
        for one in own
        if (text := answer_text(one, item))
    ]
    ratings = [one.value for one in own if isinstance(one, Rating) and one.item == item]
    return ", ".join(texts), ratings[0] if len(ratings) == 1 else None


@singledispatch
def answer_text(observation: Any, item: str) -> str:
    """Describe what an observation says about an item; empty if it is about other items."""
    return ""


@answer_text.register
def _(observation: Rating, item: str) -> str:
    if observation.item != item:
        return ""
    return f"{observation.criterion} {observation.value:g}".strip()


@answer_text.register
def _(observation: Label, item: str) -> str:
    if observation.item != item:
        return ""
    return f"{observation.criterion}: {observation.label}" if observation.criterion else observation.label


@answer_text.register
def _(observation: Comparison, item: str) -> str:
    if item not in (observation.left, observation.right):
        return ""
    other = observation.right if item == observation.left else observation.left
    if observation.outcome == 0:
        return f"tied with {other}"
    won = (observation.outcome > 0) == (item == observation.left)
    strength = f", strength {observation.strength}" if observation.strength else ""
    return f"{'better' if won else 'worse'} than {other}{strength}"


@answer_text.register
def _(observation: Choice, item: str) -> str:
    if item == observation.best:
        return "best"
    if item == observation.worst:
        return "worst"
    return "neither best nor worst" if item in observation.items else ""


@answer_text.register
def _(observation: RankedItems, item: str) -> str:
    above = 0
    for tier in observation.tiers:
        if item in tier:
            tied = " (tied)" if len(tier) > 1 else ""
            return f"{above + 1} of {sum(map(len, observation.tiers))}{tied}"
        above += len(tier)
    return ""
