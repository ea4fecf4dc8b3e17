"""The claims of the paper on other people's judgments: real comments that were both rated and chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self, cast

import numpy as np
import polars as pl
from scipy import stats

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.best_worst.rated_and_chosen import PAPER
from reproductions.best_worst.ruddit import RUDDIT_ANSWERS, RUDDIT_TUPLES, read_ruddit
from reproductions.charts import curves
from steelyard.formats import read_judgments, read_table
from steelyard.models.choices.counting import Counting
from steelyard.models.fit import Fit
from steelyard.models.ratings.mean import Mean
from steelyard.observations import Choices, FloatArray, Observations, Ratings
from steelyard.reliability import compare_scorings, split_half, split_half_by_subset
from steelyard.reliability.statistic import Statistic
from steelyard.report.charts import Chart

RATINGS = "offensiveness_demographics/ratings.csv.gz"
JOINED = "offensiveness_demographics/to_ruddit.csv.gz"

RATED, RATED_BY_PEOPLE = "ratings", "ratings, annotators split"
CHOSEN, CHOSEN_BY_TUPLES = "best–worst", "best–worst, tuples split"
_STATISTIC = "split_half_spearman"
_THIRDS = ("least offensive third", "middle third", "most offensive third")


@dataclass(frozen=True, slots=True)
class RealComments(Experiment):
    """Split ratings and best–worst choices of the same comments in halves, at the same numbers of judgments."""

    name: ClassVar[str] = "best_worst.real_comments"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Figure 2 and Tables 1–3 on other data: comments that were both rated and chosen"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown("Table 1", "approximated", "other items: comments that were both rated and chosen in two studies"),
        Shown("Table 2", "approximated", "other items: thirds of the scale instead of types of phrases"),
        Shown("Table 3", "approximated", "other items: thirds of the scale instead of types of phrases"),
        Shown("Figure 2", "approximated", "other items: comments that were both rated and chosen in two studies"),
    )
    data: ClassVar[tuple[str, ...]] = (RATINGS, JOINED, RUDDIT_ANSWERS, RUDDIT_TUPLES)

    trials: int = 100
    seed: int = 0

    def small(self) -> Self:
        """Return few splits."""
        return replace(self, trials=3)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Compute reliability by budget and method, then compare the two scorings."""
        ratings, choices = read_comments(data)
        shared = sorted(set(ratings.items.ids) & set(choices.items.ids))
        rows: list[dict[str, object]] = []
        jobs = list(_jobs(ratings, choices))
        for number, (method, observations, by, per_half) in enumerate(jobs):
            result = split_half(
                observations, by=by, per_half=per_half, items=shared, trials=self.trials, seed=self.seed
            )
            in_half = _judgments(observations, by, per_half)
            rows.append({"method": method, "judgments": in_half, **_figures(result[_STATISTIC])})
            progress(number + 1, len(jobs) + 1)
        table = pl.DataFrame(rows)
        claims = (
            *_reliabilities(table),
            *_savings(table),
            *_subsets(ratings, choices, shared, self.trials),
            *_correlations(ratings, choices, shared),
            *_differences(ratings, choices),
        )
        progress(len(jobs) + 1, len(jobs) + 1)
        return Outcome(
            claims,
            table,
            lambda: _chart(table),
            (
                f"{len(shared):,} comments of Ruddit were also rated, on a scale from 1 to 5, by annotators of another "
                "study. Each best–worst choice is about four of 6,000 comments; the annotators of the choices are "
                "unknown.",
                "A judgment is a rating, or a choice of best and worst; numbers are per item. The paper counts a "
                "choice twice; by that count, best–worst scaling needs twice as many judgments as given here.",
                "Both halves of the usual split contain the same tuples, which overestimates the reliability of "
                "best–worst scaling. In a split by tuples, the halves have different tuples. In a split by annotators, "
                "no annotator is in both halves.",
                "The two question types were used in different studies with different annotators and questions, so the "
                "differences between their scores are not due to the question type alone.",
                "Within thirds, the two scorings agree less, as within the paper's subsets (.05 to .95, Table 2), "
                "because items within a third differ less. Thirds by one of the two scorings restrict the range of "
                "this scoring most.",
                "For reliability, items are divided into thirds by the scores of the other method. Each half has four "
                "ratings or three choices per item.",
            ),
        )


def read_comments(data: Path) -> tuple[Ratings, Choices]:
    """Read the ratings, by the ids of the best–worst study, and the choices."""
    names = read_table(data / JOINED)
    frame = (
        read_table(data / RATINGS)
        .join(names, on="item")
        .select("annotator", pl.col("ruddit_item").alias("item"), pl.col("value").cast(pl.Float64))
    )
    return cast("Ratings", read_judgments(frame, kind="ratings", scale=(1, 5)).observations), read_ruddit(data)


def _jobs(ratings: Ratings, choices: Choices) -> Iterator[tuple[str, Observations, str, int | None]]:
    """List what is split, how, and how much of it is in a half."""
    for per_half in range(1, 5):
        yield RATED, ratings, "unit", per_half
    for per_half in range(1, 4):
        yield CHOSEN, choices, "unit", per_half
    yield RATED_BY_PEOPLE, ratings, "annotator", None
    n_tuples = len(np.unique(np.sort(choices.shown, axis=1), axis=0))
    for fraction in (0.125, 0.25, 0.5):
        yield CHOSEN_BY_TUPLES, choices, "tuple", int(fraction * n_tuples)


def _judgments(observations: Observations, by: str, per_half: int | None) -> float:
    """Return the judgments in a half, per item."""
    if isinstance(observations, Choices):
        sizes = np.unique(np.sort(observations.shown, axis=1), axis=0, return_counts=True)[1]
        if by == "tuple":
            return float(sizes.mean()) * cast("int", per_half) / len(observations.items)
        return float(np.minimum(sizes / 2, cast("int", per_half)).sum()) / len(observations.items)
    sizes = np.bincount(cast("Ratings", observations).item)
    most = len(observations) if per_half is None else per_half
    return float(np.minimum(sizes / 2, most).sum()) / len(observations.items)


def _figures(statistic: Statistic) -> dict[str, float | None]:
    return {"value": statistic.value, "lower": statistic.lower, "upper": statistic.upper}


def _of(table: pl.DataFrame, method: str) -> tuple[FloatArray, FloatArray]:
    rows = table.filter(pl.col("method") == method).sort("judgments")
    return rows["judgments"].to_numpy(), rows["value"].to_numpy()


def _reliabilities(table: pl.DataFrame) -> Iterator[Claim]:
    for row in table.sort("method", "judgments").iter_rows(named=True):
        what = f"split-half ρ, {row['method']}, {row['judgments']:.1f} judgments per item in each half"
        yield Claim(what, row["value"], row["lower"], row["upper"])


def _savings(table: pl.DataFrame) -> Iterator[Claim]:
    """Return the judgments that choices need for the reliability of most ratings."""
    judgments, reached = _of(table, RATED)
    for method, published in ((CHOSEN, 30.0), (CHOSEN_BY_TUPLES, None)):
        count, value = _of(table, method)
        # The reliability of no judgments is 0.
        needed = float(np.interp(reached[-1], np.append(0.0, value), np.append(0.0, count)))
        yield Claim(
            f"judgments that {method} needs for the reliability of {judgments[-1]:.1f} ratings per item",
            100 * needed / float(judgments[-1]),
            published=published,
            unit="%",
            why="other items, annotators and questions; the paper counts a choice as two judgments"
            if published
            else "not in the paper",
        )


def _subsets(ratings: Ratings, choices: Choices, shared: list[str], trials: int) -> Iterator[Claim]:
    """Return the reliability within thirds of the scale, as Tables 2 and 3 of the paper do within types of phrases."""
    # By the other method's scores: halves of judgments that are selected by their sum correlate too little.
    by_choices, by_ratings = Counting(draws=20).fit(choices), Mean(draws=20).fit(ratings)
    parts: tuple[tuple[str, Observations, int, Fit], ...] = (
        (RATED, ratings, 4, by_choices),
        (CHOSEN, choices, 2, by_ratings),
    )
    for name, observations, per_half, other in parts:
        score = dict(other.scores.select("item", "score").iter_rows())
        third = np.argsort(np.argsort([score[item] for item in shared])) * 3 // len(shared)
        tags = {item: _THIRDS[at] for item, at in zip(shared, third, strict=True)}
        table = split_half_by_subset(observations, tags, per_half=per_half, trials=trials)
        for row in table.filter(pl.col("statistic") == _STATISTIC).iter_rows(named=True):
            yield Claim(f"{row['subset']}: split-half ρ, {name}", row["value"], row["lower"], row["upper"])


def _correlations(ratings: Ratings, choices: Choices, shared: list[str]) -> Iterator[Claim]:
    """Correlate the two scorings within thirds of the scale, as Table 2 does within types of phrases."""
    by_choices, by_ratings = (
        dict(fit.scores.select("item", "score").iter_rows())
        for fit in (Counting(draws=20).fit(choices), Mean(draws=20).fit(ratings))
    )
    one, other = (np.array([scores[item] for item in shared]) for scores in (by_choices, by_ratings))
    for way, thirds_of in (("by best–worst scores", one), ("by ratings", other)):
        third = np.argsort(np.argsort(thirds_of, kind="stable")) * 3 // len(shared)
        for at, name in enumerate(_THIRDS):
            inside = third == at
            rho = correlate(one[inside], other[inside], ranks=True)
            yield Claim(f"{name} {way}: ρ of the two scorings", *rho)


def correlate(one: FloatArray, other: FloatArray, *, ranks: bool) -> tuple[float, float, float]:
    """Return the correlation with its 95 % interval (Fisher's z)."""
    if ranks:
        one, other = (stats.rankdata(values) for values in (one, other))
    r = float(np.corrcoef(one, other)[0, 1])
    half = 1.96 / np.sqrt(len(one) - 3)
    return r, float(np.tanh(np.arctanh(r) - half)), float(np.tanh(np.arctanh(r) + half))


def _differences(ratings: Ratings, choices: Choices) -> Iterator[Claim]:
    """Compare the two scorings as Table 1 does; published are the values of 5N judgments."""
    comparison = compare_scorings(Counting(draws=20).fit(choices), Mean(draws=20).fit(ratings))
    count = comparison.moved.height
    for key, scale, unit, published in (
        ("mean_score_difference", 1.0, "", 0.10),
        ("mean_rank_difference", 100 / count, "% of the ranks", 100 * 363 / 3207),
        ("spearman", 1.0, "", 0.87),
        ("pearson", 1.0, "", 0.88),
    ):
        figure = comparison[key]
        value, lower, upper = (
            None if end is None else scale * end for end in (figure.value, figure.lower, figure.upper)
        )
        why = "two studies with different annotators and questions"
        yield Claim(f"{figure.label} of the two scorings", float(value or 0), lower, upper, published, unit, why)


def _chart(table: pl.DataFrame) -> Chart:
    return curves(
        table,
        "judgments",
        "value",
        "method",
        title="Choosing best and worst agrees with itself on fewer judgments, less so with new tuples",
        subtitle="comments that were both rated and chosen; recorded judgments",
        x_title="judgments in each half, for each item",
        y_title="split-half Spearman’s ρ",
    )
