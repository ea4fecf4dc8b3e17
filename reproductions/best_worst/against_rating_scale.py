"""Figure 2: how reliable best–worst scaling and a rating scale are with the same number of judgments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.best_worst.rated_and_chosen import LIKE_THE_PAPER, PAPER, Terms
from reproductions.charts import curves
from steelyard.models.choices.counting import Counting
from steelyard.models.fit import Model
from steelyard.models.ratings.mean import Mean
from steelyard.observations import Choices, FloatArray, Observations, Ratings
from steelyard.reliability import Significance, self_consistency, split_half_by_budget, split_half_difference
from steelyard.reliability.correlation import spearman
from steelyard.report.charts import Chart

_RATING = "rating scale"
_FACTORS = (1.0, 1.5, 2.0)
_SPEARMAN = "split_half_spearman"

_COUNTED = 1.5
"""The tuples (in N) with which the paper counts 3N judgments: two for each (§1)."""

_WITHOUT: dict[str, dict[str, Any]] = {
    "all annotators use the scale in the same way": {"bias": 0.0, "stretch": 0.0},
    "all annotators use the scale in the same way and never lapse": {"bias": 0.0, "stretch": 0.0, "lapse": 0.0},
}
"""Annotators with one source of error removed, to see where the saving comes from."""

_GUESSED = "the distribution of the terms' true values is a guess, and simulated annotators do not differ in opinion"


_NOTES = (
    "The paper's judgments are not available: annotators are simulated with the inconsistency that the paper reports.",
    "Split-half reliability overestimates the accuracy of best–worst scaling: both halves contain the same tuples, "
    "so the effect of the other items in a tuple on an item's score is the same in both. The simulation also gives "
    "the correlation with the true values; by this measure, the rating scale is more accurate with the same number "
    "of judgments.",
    "Choices are not affected by differences in scale use, and less affected by lapses than ratings are: most of "
    "the saving disappears if annotators have neither.",
)


@dataclass(frozen=True, slots=True)
class AgainstRatingScale(Experiment):
    """Simulate ratings and best–worst choices of the same terms by the same annotators, and split both in halves."""

    name: ClassVar[str] = "best_worst.against_rating_scale"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Figure 2: split-half reliability of best–worst scaling and a rating scale, by judgments"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown(
            "Figure 2",
            "approximated",
            "the paper's judgments are not available: simulated annotators who are as inconsistent as published",
        ),
    )

    terms: int = 3207
    judgments: int = 20
    """Judgments of each method, for each term."""
    repeats: int = 4000
    trials: int = 100
    seed: int = 0

    def small(self) -> Self:
        """Return a tenth of the terms."""
        return replace(self, terms=320, repeats=1500, trials=5)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Measure the annotators' inconsistency, then the reliability of ratings and of best–worst choices."""
        steps = 3 + len(_FACTORS) + len(_WITHOUT)
        terms = Terms.drawn(self.terms, np.random.default_rng(self.seed))
        calibration = _calibration(terms, self.repeats)
        progress(1, steps)
        ratings = terms.rated(self.judgments)
        half = self.judgments // 2
        tables = [_curve(_RATING, ratings, range(1, half + 1), self.trials)]
        calibration += _spread(ratings, self.judgments)
        against_truth = {_RATING: _truth(terms, ratings, Mean())}
        progress(2, steps)
        by_factor: dict[float, Choices] = {}
        for done, factor in enumerate(_FACTORS):
            times = int(self.judgments / factor)
            by_factor[factor] = terms.chosen(factor, times)
            name = _tuples(factor)
            tables.append(_curve(name, by_factor[factor], range(1, times // 2 + 1), self.trials))
            against_truth[name] = _truth(terms, by_factor[factor], Counting())
            progress(3 + done, steps)
        table = pl.concat(tables).with_columns((pl.col("judgments") / self.terms).alias("judgments"))
        tested = split_half_difference(by_factor[2.0], ratings, trials=self.trials, seed=self.seed)
        progress(3 + len(_FACTORS), steps)
        savings = _savings(table, half)
        for done, name in enumerate(_WITHOUT):
            savings.append(self._saving_without(name))
            progress(4 + len(_FACTORS) + done, steps)
        claims = (*calibration, *_reliabilities(table, half, tested), *savings, *self._validity(table, against_truth))
        return Outcome(claims, table, lambda: _chart(table, half), _NOTES)

    def _validity(self, table: pl.DataFrame, against_truth: dict[str, float]) -> list[Claim]:
        """Compare the numbers of tuples with each other, and all methods with the true values."""
        return [
            Claim(
                "largest difference in reliability between 1N, 1.5N and 2N tuples at 6N judgments",
                _apart(table, 6.0),
                why="the paper describes them as very similar and shows a figure",
            ),
            *(
                Claim(
                    f"Spearman's ρ of all {self.judgments}N judgments with the true values, {name}",
                    rho,
                    why="the true values of the paper's terms are not known",
                )
                for name, rho in against_truth.items()
            ),
        ]

    def _saving_without(self, name: str) -> Claim:
        """Return the judgments that best–worst scaling needs with one source of error removed."""
        rng = np.random.default_rng([self.seed, 1])
        terms = Terms.drawn(self.terms, rng, replace(LIKE_THE_PAPER, **_WITHOUT[name]))
        half, trials = self.judgments // 2, max(self.trials // 10, 2)
        times = int(self.judgments / _COUNTED)
        rated = _curve(_RATING, terms.rated(self.judgments), range(half, half + 1), trials)
        chosen = _curve(_tuples(_COUNTED), terms.chosen(_COUNTED, times), range(1, times // 2 + 1), trials)
        table = pl.concat([rated, chosen]).with_columns(pl.col("judgments") / self.terms)
        return Claim(
            f"judgments that best–worst with {_COUNTED:g}N tuples needs if {name}",
            100 * _needed(table, _COUNTED) / half,
            unit="%",
            why="a variation of the simulated crowd, not in the paper",
        )


def _reliabilities(table: pl.DataFrame, half: int, tested: Significance) -> tuple[Claim, ...]:
    """Return the split-half reliability of both methods, and their difference."""
    return (
        _at(table, _RATING, half, 0.95),
        _at(table, _tuples(2.0), half, 0.98),
        Claim(
            "difference of the two, best–worst minus rating scale",
            float(tested.statistic.value or 0.0),
            tested.statistic.lower,
            tested.statistic.upper,
            published=0.03,
            why=_GUESSED,
        ),
    )


def _calibration(terms: Terms, repeats: int) -> tuple[Claim, ...]:
    """Compare the simulated annotators' repeats with those of the paper (§3.2)."""
    consistency = self_consistency(terms.rated_twice(repeats))
    rate, apart = consistency["inconsistency_rate"], consistency["difference_if_inconsistent"]
    chosen = "noise and lapses were chosen to match it"
    return (
        Claim(
            "repeated ratings that differ",
            100 * float(rate.value or 0),
            None if rate.lower is None else 100 * rate.lower,
            None if rate.upper is None else 100 * rate.upper,
            published=37.0,
            unit="%",
            why=chosen,
        ),
        Claim(
            "mean difference of those that differ",
            float(apart.value or 0),
            apart.lower,
            apart.upper,
            published=1.27,
            unit="points of 8",
            why=chosen,
        ),
    )


def _spread(ratings: Ratings, times: int) -> tuple[Claim, ...]:
    """Compare the agreement of the simulated annotators with that of the paper (§3.2 and §4)."""
    values = ratings.value.reshape(-1, times)
    one, rest = values[:, 0], values[:, 1:].mean(axis=1)
    return (
        Claim(
            "standard deviation of a term's ratings",
            float(values.std(axis=1, ddof=1).mean()),
            published=0.81,
            unit="points of 8",
            why="the annotators' bias was chosen to match it",
        ),
        Claim(
            "Pearson's r of one rating with the mean of the others", float(np.corrcoef(one, rest)[0, 1]), published=0.9
        ),
    )


def _tuples(factor: float) -> str:
    return f"best–worst, {factor:g}N tuples"


def _curve(name: str, observations: Observations, budgets: range, trials: int) -> pl.DataFrame:
    table = split_half_by_budget(observations, budgets, trials=trials).filter(pl.col("statistic") == _SPEARMAN)
    return table.select(pl.lit(name).alias("method"), "per_half", "judgments", "value", "lower", "upper")


def _truth(terms: Terms, observations: Observations, model: Model) -> float:
    scores = dict(model.fit(observations).scores.select("item", "score").iter_rows())
    correlation = spearman(np.array([scores[item] for item in terms.people.items.ids]), terms.value)
    return 0.0 if correlation is None else correlation.r


def _at(table: pl.DataFrame, method: str, judgments: int, published: float) -> Claim:
    row = table.filter(pl.col("method") == method).sort((pl.col("judgments") - judgments).abs()).row(0, named=True)
    what = f"split-half ρ with {judgments}N judgments in each half, {method}"
    return Claim(what, row["value"], row["lower"], row["upper"], published=published, why=_GUESSED)


def _of(table: pl.DataFrame, method: str) -> tuple[FloatArray, FloatArray]:
    rows = table.filter(pl.col("method") == method).sort("judgments")
    return rows["judgments"].to_numpy(), rows["value"].to_numpy()


def _savings(table: pl.DataFrame, half: int) -> list[Claim]:
    """Return the judgments that best–worst scaling needs for the reliability of the rating scale with all of them."""
    return [
        Claim(
            f"judgments that best–worst with {factor:g}N tuples needs for the rating scale's reliability",
            100 * _needed(table, factor) / half,
            published=30.0 if factor == _COUNTED else None,
            unit="%",
            why=_GUESSED if factor == _COUNTED else f"published for {_COUNTED:g}N tuples",
        )
        for factor in _FACTORS
    ]


def _needed(table: pl.DataFrame, factor: float) -> float:
    """Return the judgments, in N, that best–worst scaling needs for the highest reliability of the rating scale."""
    _, reliability = _of(table, _RATING)
    judgments, reached = _of(table, _tuples(factor))
    return float(np.interp(reliability[-1], reached, judgments))


def _apart(table: pl.DataFrame, judgments: float) -> float:
    """Return the range of reliability over the three numbers of tuples at the same number of judgments."""
    reached = [float(np.interp(judgments, *_of(table, _tuples(factor)))) for factor in _FACTORS]
    return max(reached) - min(reached)


def _chart(table: pl.DataFrame, half: int) -> Chart:
    published = {(_RATING, float(half)): 0.95, (_tuples(2.0), float(half)): 0.98, (_tuples(1.5), 3.0): 0.95}
    marked = table.with_columns(
        pl.Series(
            "published",
            [published.get((row["method"], round(row["judgments"], 1))) for row in table.iter_rows(named=True)],
            dtype=pl.Float64,
        )
    )
    return curves(
        marked,
        "judgments",
        "value",
        "method",
        title="Choosing best and worst agrees with itself on fewer judgments than rating",
        subtitle="simulated annotators with the paper's inconsistency; diamonds: published",
        x_title="judgments in each half, for each term",
        y_title="split-half Spearman’s ρ",
    )
