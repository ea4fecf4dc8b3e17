"""The quality of judges: agreement, bias and consistency of each model, compared with people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import scipy

from steelyard.analysis.analysis import Analysis
from steelyard.errors import DataError
from steelyard.models.labels.majority import wilson
from steelyard.observations import Comparisons, Labels, Observations, Ratings
from steelyard.records import Item, Judgment
from steelyard.reliability.alternative_annotator import EPSILON, AlternativeAnnotatorTest, alternative_annotator_test
from steelyard.reliability.annotators import with_themselves
from steelyard.reliability.groups import group_agreement
from steelyard.reliability.statistic import Statistic
from steelyard.study.config import Stage
from steelyard.study.judge_scores import latest_judgments
from steelyard.study.observing import collect

MOST_ITEMS = 10
"""Items listed where judge and people disagree most."""
BINS = 10


@dataclass(frozen=True, slots=True, eq=False)
class JudgeReport:
    """One model in one criterion of a stage. Statistics that cannot be computed are None, with the reason in `notes`.

    `agreement` is of the judge and a person, `people_agreement` of two people, by the same `measure`.
    """

    judge: str
    stage: str
    criterion: str
    judgments: int
    measure: str
    agreement: Statistic
    people_agreement: Statistic
    alternative: AlternativeAnnotatorTest | None
    first_share: Statistic | None
    """Proportion of decided comparisons won by the item shown first, with those asked in both orders."""
    flips: Statistic | None
    """Proportion of pairs decided differently when their order was reversed."""
    self_consistency: float | None
    repeats: int
    length_bias: Statistic | None
    """Ratings: correlation of length and judge minus people. Comparisons: how much more often the longer one wins."""
    calibration: pl.DataFrame
    disagreements: pl.DataFrame
    subgroups: pl.DataFrame
    notes: tuple[str, ...]

    def row(self) -> dict[str, object]:
        """Return the statistics as a row of a table."""
        alternative = self.alternative
        return {
            "judge": self.judge,
            "stage": self.stage,
            "criterion": self.criterion,
            "judgments": self.judgments,
            "agreement": self.agreement.value,
            "agreement_lower": self.agreement.lower,
            "agreement_upper": self.agreement.upper,
            "people": self.people_agreement.value,
            "people_lower": self.people_agreement.lower,
            "people_upper": self.people_agreement.upper,
            "winning_rate": None if alternative is None else alternative.winning_rate,
            "advantage": None if alternative is None else alternative.advantage,
            "first_share": _value(self.first_share),
            "flips": _value(self.flips),
            "self_consistency": self.self_consistency,
            "repeats": self.repeats,
            "length_bias": _value(self.length_bias),
            "measure": self.measure,
        }


def _value(statistic: Statistic | None) -> float | None:
    return None if statistic is None else statistic.value


ROW_SCHEMA: dict[str, Any] = {
    **dict.fromkeys(("judge", "stage", "criterion"), pl.String),
    "judgments": pl.Int64,
    **dict.fromkeys(("agreement", "agreement_lower", "agreement_upper"), pl.Float64),
    **dict.fromkeys(("people", "people_lower", "people_upper", "winning_rate", "advantage"), pl.Float64),
    **dict.fromkeys(("first_share", "flips", "self_consistency"), pl.Float64),
    "repeats": pl.Int64,
    "length_bias": pl.Float64,
    "measure": pl.String,
}


def judge_table(reports: Sequence[JudgeReport]) -> pl.DataFrame:
    """Tabulate reports, one row for each judge and criterion."""
    return pl.DataFrame([report.row() for report in reports], schema=ROW_SCHEMA)


def judge_reports(analysis: Analysis, *, epsilon: float = EPSILON, by: str | None = None) -> list[JudgeReport]:
    """Compare every model of a study with people, in each stage and criterion that both answered.

    `epsilon` is the alternative annotator test's; `by` names the column of the items that forms subgroups (the systems
    by default).
    """
    study = analysis.study
    reports = []
    for stage in study.config.stages:
        people = analysis.observations(stage)
        for name in study.judges.names():
            own = [j for j in latest_judgments(study, name) if j.stage == stage.name and j.purpose != "check"]
            observed = _observed(study.items, own, stage)
            for criterion, part in observed.items():
                if criterion in people and len(part) and len(people[criterion]):
                    sample = _Sample(name, stage, criterion, own, part, people[criterion], study.items)
                    reports.append(_report(analysis, sample, epsilon, by))
    return reports


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """A model's and people's answers in one criterion of a stage."""

    name: str
    stage: Stage
    criterion: str
    judgments: list[Judgment]
    judge: Observations
    people: Observations
    items: list[Item]


def _observed(items: Sequence[Item], judgments: Sequence[Judgment], stage: Stage) -> dict[str, Observations]:
    from steelyard.observations import Index

    return collect(stage.protocol.kinds[0], judgments, {stage.name: stage.protocol}, Index([item.id for item in items]))


def _report(analysis: Analysis, sample: _Sample, epsilon: float, by: str | None) -> JudgeReport:
    agreement = group_agreement(sample.people, sample.judge)
    notes: list[str] = []
    alternative = None
    try:
        alternative = _alternative(sample, epsilon)
    except DataError as error:
        notes.append(f"alternative annotator test: {error.problems[0].what}")
    consistency = with_themselves({sample.criterion: sample.judge})
    own = consistency.filter(pl.col("annotator") == sample.name)
    first_share, flips = _position(sample)
    return JudgeReport(
        sample.name,
        sample.stage.name,
        sample.criterion,
        len(sample.judge),
        agreement.measure,
        agreement.between,
        agreement.first,
        alternative,
        first_share,
        flips,
        float(own["self_consistency"][0]) if own.height and own["self_consistency"][0] is not None else None,
        int(own["repeats"][0]) if own.height and own["repeats"][0] is not None else 0,
        _length_bias(sample),
        _calibration(sample),
        _disagreements(sample),
        _subgroups(sample, by),
        tuple(notes),
    )


def _alternative(sample: _Sample, epsilon: float) -> AlternativeAnnotatorTest:
    people, judge = _answers(sample.people), _answers(sample.judge)
    is_rated = isinstance(sample.people, Ratings)
    if is_rated:
        answers = dict(judge.group_by("item").agg(pl.col("value").mean()).iter_rows())
    else:
        answers = dict(judge.group_by("item").agg(pl.col("value").mode().sort().first()).iter_rows())
    return alternative_annotator_test(people, answers, alignment="rmse" if is_rated else "accuracy", epsilon=epsilon)


def _answers(part: Observations) -> pl.DataFrame:
    """Return annotator, item (or pair) and value of each answer."""
    names = pl.Series([*part.annotators.ids, None], dtype=pl.String)
    who = names.gather(np.where(part.annotator < 0, len(part.annotators), part.annotator))
    ids = pl.Series(part.items.ids, dtype=pl.String)
    if isinstance(part, Ratings):
        frame = pl.DataFrame({"annotator": who, "item": ids.gather(part.item), "value": part.value})
    elif isinstance(part, Labels):
        labels = pl.Series(part.classes.ids, dtype=pl.String).gather(part.label)
        frame = pl.DataFrame({"annotator": who, "item": ids.gather(part.item), "value": labels})
    elif part.has_comparisons:
        pairs = part.to_comparisons()
        low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
        outcome = np.where(pairs.left == low, pairs.outcome, -pairs.outcome)
        who = names.gather(np.where(pairs.annotator < 0, len(part.annotators), pairs.annotator))
        frame = pl.DataFrame(
            {"annotator": who, "item": ids.gather(low) + " | " + ids.gather(high), "value": outcome.astype(str)}
        )
    else:
        raise DataError(f"it is not defined for {part.kind}.")
    return frame.drop_nulls("annotator")


def _share(key: str, hits: int, total: int, note: str) -> Statistic | None:
    if not total:
        return None
    lower, upper = (float(end[0]) for end in wilson(np.array([float(hits)]), np.array([float(total)]), 0.95))
    return Statistic(key, hits / total, lower, upper, "wilson", total, note)


def _position(sample: _Sample) -> tuple[Statistic | None, Statistic | None]:
    """Return the proportion of first items that won, and of pairs that flip with their order."""
    if not isinstance(sample.judge, Comparisons):
        return None, None
    part = sample.judge
    decided = part.outcome != 0
    first = _share("position_bias", int((part.outcome > 0).sum()), int(decided.sum()), "decided comparisons")
    by_order: dict[tuple[int, int], int] = {}
    for left, right, outcome in zip(part.left.tolist(), part.right.tolist(), part.outcome.tolist(), strict=True):
        by_order.setdefault((left, right), outcome)
    both = [
        (a, -by_order[right, left])
        for (left, right), a in by_order.items()
        if left < right and (right, left) in by_order
    ]
    flips = _share("flip_rate", sum(a != b for a, b in both), len(both), "pairs asked in both orders")
    return first, flips


def _means(sample: _Sample) -> tuple[list[str], Any, Any]:
    """Return the items that both rated, with the judge's and people's means."""
    judge, people = (
        dict(_answers(part).group_by("item").agg(pl.col("value").mean()).iter_rows())
        for part in (sample.judge, sample.people)
    )
    names = sorted(set(judge) & set(people))
    return names, np.array([judge[name] for name in names]), np.array([people[name] for name in names])


def _length_bias(sample: _Sample) -> Statistic | None:
    letters = {item.id: len(item.text) for item in sample.items}
    if isinstance(sample.judge, Ratings):
        names, judge, people = _means(sample)
        length = np.array([letters[name] for name in names], np.float64)
        if len(names) < 10 or length.std() == 0 or (judge - people).std() == 0:
            return None
        standard = [(values - values.mean()) / (values.std() or 1.0) for values in (judge, people)]
        result = scipy.stats.spearmanr(length, standard[0] - standard[1])
        interval = np.tanh(np.arctanh(result.statistic) + np.array([-1.96, 1.96]) / np.sqrt(max(len(names) - 3, 1)))
        note = "Spearman's correlation of length and judge minus people, both standardised"
        lower, upper = float(interval[0]), float(interval[1])
        return Statistic("length_bias", float(result.statistic), lower, upper, "Fisher", len(names), note)
    if isinstance(sample.judge, Comparisons) and isinstance(sample.people, Comparisons):
        (judge, n), (people, m) = (_longer_wins(part, letters) for part in (sample.judge, sample.people))
        if not n or not m:
            return None
        half = 1.96 * float(np.sqrt(judge * (1 - judge) / n + people * (1 - people) / m))
        difference = judge - people
        note = f"the longer item wins {100 * judge:.0f} % with the judge and {100 * people:.0f} % with people"
        return Statistic("length_bias", difference, difference - half, difference + half, "normal", n, note)
    return None


def _longer_wins(part: Comparisons, letters: dict[str, int]) -> tuple[float, int]:
    length = np.array([letters[name] for name in part.items.ids])
    difference = length[part.left] - length[part.right]
    is_usable = (part.outcome != 0) & (difference != 0)
    wins = np.sign(difference[is_usable]) == part.outcome[is_usable]
    return (float(wins.mean()), int(is_usable.sum())) if is_usable.any() else (0.0, 0)


def _calibration(sample: _Sample) -> pl.DataFrame:
    """Return people's mean score by the judge's, in bins of equal size: `judge`, `people`, its interval, `items`."""
    schema = dict.fromkeys(("judge", "people", "lower", "upper"), pl.Float64)
    if not isinstance(sample.judge, Ratings):
        return pl.DataFrame(schema={**schema, "items": pl.Int64})
    _, judge, people = _means(sample)
    rows = []
    values = np.unique(judge)
    edges = np.unique(np.quantile(judge, np.linspace(0, 1, BINS + 1))) if len(values) > BINS else None
    place = np.searchsorted(values, judge) if edges is None else np.digitize(judge, edges[1:-1])
    for one in np.unique(place):
        own = people[place == one]
        half = 1.96 * own.std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else np.nan
        mean = float(own.mean())
        rows.append((float(judge[place == one].mean()), mean, mean - half, mean + half, len(own)))
    return pl.DataFrame(rows, schema={**schema, "items": pl.Int64}, orient="row").fill_nan(None)


def _disagreements(sample: _Sample) -> pl.DataFrame:
    """Return the items (or pairs) where judge and people differ most, both standardised, with their texts."""
    texts = {item.id: item.text or item.media or "" for item in sample.items}
    if isinstance(sample.judge, Ratings):
        names, judge, people = _means(sample)
        scaled = [(values - values.mean()) / (values.std() or 1.0) for values in (judge, people)]
        order = np.argsort(-np.abs(scaled[0] - scaled[1]), kind="stable")[:MOST_ITEMS]
        rows = [(names[at], texts[names[at]], float(judge[at]), float(people[at])) for at in order]
        return pl.DataFrame(rows, schema=["item", "text", "judge", "people"], orient="row")
    if not sample.judge.has_comparisons and not isinstance(sample.judge, Labels):
        return pl.DataFrame(schema=["item", "text", "judge", "people"])
    people = _answers(sample.people).group_by("item", "value").len("votes")
    top = (
        people.sort("votes", descending=True)
        .group_by("item", maintain_order=True)
        .agg(
            pl.col("value").first().alias("people"),
            (pl.col("votes").first() / pl.col("votes").sum()).alias("share"),
            pl.col("votes").sum(),
        )
    )
    own = _answers(sample.judge).group_by("item").agg(pl.col("value").mode().sort().first().alias("judge"))
    both = own.join(top, on="item").filter(pl.col("judge") != pl.col("people"))
    both = both.sort(["share", "votes", "item"], descending=[True, True, False]).head(MOST_ITEMS)
    text = [" | ".join(texts.get(name, name) for name in item.split(" | ")) for item in both["item"]]
    return both.with_columns(pl.Series("text", text, pl.String)).select("item", "text", "judge", "people")


def _subgroups(sample: _Sample, by: str | None) -> pl.DataFrame:
    """Return the agreement of judge and people within subgroups of the items: Pearson's r, or the proportion equal."""
    schema = {"subgroup": pl.String, "items": pl.Int64, "agreement": pl.Float64, "bias": pl.Float64}
    groups = {item.id: item.group if by is None else item.metadata.get(by) for item in sample.items}
    if not isinstance(sample.judge, Ratings) or len({g for g in groups.values() if g is not None}) < 2:
        return pl.DataFrame(schema=schema)
    names, judge, people = _means(sample)
    own = np.array([groups[name] or "" for name in names])
    rows = []
    for name in sorted(set(own) - {""}):
        mine = own == name
        varies = mine.sum() > 3 and judge[mine].std() > 0 and people[mine].std() > 0
        r = float(np.corrcoef(judge[mine], people[mine])[0, 1]) if varies else None
        rows.append((name, int(mine.sum()), r, float((judge[mine] - people[mine]).mean())))
    return pl.DataFrame(rows, schema=schema, orient="row")
