"""The alternative annotator test of Calderon, Reichart & Dror (2025): may a judge replace a human annotator?

Each annotator in turn is set aside. On each of their items, who agrees better with the remaining annotators: the one
who is set aside, or the judge? The judge wins against an annotator if it is at least as good as they are, less ε (what
the judge's lower cost is worth), in a one-sided test; p-values are corrected by Benjamini & Yekutieli's procedure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy import special

from steelyard.errors import DataError
from steelyard.observations import FloatArray

MIN_ITEMS = 30
"""Minimum number of items of an annotator for the test, as in the paper."""
EPSILON = 0.1
"""The paper's ε for crowd workers; .15 for skilled annotators, .2 for experts."""

Alignment = Literal["rmse", "accuracy"]


@dataclass(frozen=True, slots=True, eq=False)
class AlternativeAnnotatorTest:
    """The result: `winning_rate` of the judge over annotators, and its probability of being as good as one of them.

    The judge may replace annotators if it wins against at least half of them. `table` has a row for each annotator.
    """

    winning_rate: float
    advantage: float
    epsilon: float
    table: pl.DataFrame

    @property
    def passed(self) -> bool:
        """Whether the judge wins against at least half of the annotators."""
        return self.winning_rate >= 0.5


def alternative_annotator_test(
    people: pl.DataFrame,
    judge: Mapping[str, Any],
    *,
    alignment: Alignment = "rmse",
    epsilon: float = EPSILON,
    level: float = 0.05,
    min_items: int = MIN_ITEMS,
) -> AlternativeAnnotatorTest:
    """Test whether a judge can replace people.

    Parameters
    ----------
    people
        One row for each answer: `annotator`, `item`, `value` (a number, or a label).
    judge
        The judge's answer to each item.
    alignment
        How an answer is compared with the others': by the root mean squared error, or by the proportion that are equal.
    epsilon
        What the judge's lower cost is worth: 0.2 if people are experts, 0.15 if skilled, 0.1 for crowd workers.
    level
        False discovery rate.
    min_items
        Annotators with fewer items that others judged too are left out.
    """
    answers = people.filter(pl.col("item").is_in(list(judge))).unique(["annotator", "item"], keep="last")
    answers = answers.sort("item", "annotator")
    own = answers["value"].to_numpy()
    machine = np.array([judge[item] for item in answers["item"]])
    item = np.unique(answers["item"].to_numpy(), return_inverse=True)[1]
    score = _rmse if alignment == "rmse" else _accuracy
    others = np.bincount(item)[item] - 1
    human_score, judge_score = score(own, own, item, others), score(own, machine, item, others)
    is_usable = others > 0
    rows = []
    for name in sorted(set(answers["annotator"])):
        mine = is_usable & (answers["annotator"] == name).to_numpy()
        if mine.sum() < min_items:
            continue
        # Equal up to rounding is equal.
        judge_wins = judge_score[mine] >= human_score[mine] - 1e-12
        human_wins = human_score[mine] >= judge_score[mine] - 1e-12
        p_value = _p_value(human_wins.astype(np.float64) - judge_wins, epsilon)
        rows.append((name, int(mine.sum()), float(judge_wins.mean()), float(human_wins.mean()), p_value))
    if not rows:
        raise DataError(
            f"no annotator has {min_items} items that other annotators and the judge have also judged.",
            "Let two or more people judge the same 50 to 100 items.",
        )
    columns = ["annotator", "items", "judge_as_good", "annotator_as_good", "p_value"]
    table = pl.DataFrame(rows, schema=columns, orient="row")
    is_won = _benjamini_yekutieli(table["p_value"].to_numpy(), level)
    table = table.with_columns(pl.Series("judge_wins", is_won))
    return AlternativeAnnotatorTest(
        float(is_won.mean()), float(table["judge_as_good"].to_numpy().mean()), epsilon, table
    )


def _rmse(values: FloatArray, answer: FloatArray, item: Any, others: Any) -> FloatArray:
    """Return minus the root mean squared error of an answer against those of the other annotators of the item."""
    numbers, given = values.astype(np.float64), answer.astype(np.float64)
    total, squares = np.bincount(item, numbers)[item] - numbers, np.bincount(item, numbers**2)[item] - numbers**2
    error = squares - 2 * given * total + others * given**2
    return np.asarray(-np.sqrt(np.maximum(error, 0) / np.maximum(others, 1)))


def _accuracy(values: Any, answer: Any, item: Any, others: Any) -> FloatArray:
    """Return the proportion of the other annotators of the item who gave the same answer."""
    names, codes = np.unique(np.concatenate([values, answer]), return_inverse=True)
    own, given = codes[: len(values)], codes[len(values) :]
    counts = np.zeros((int(item.max()) + 1, len(names)))
    np.add.at(counts, (item, own), 1)
    same = counts[item, given] - (own == given)
    return np.asarray(same / np.maximum(others, 1))


def _p_value(differences: FloatArray, epsilon: float) -> float:
    """Return the p-value of a one-sided t-test that the mean is below ε."""
    n, sd = len(differences), float(differences.std(ddof=1))
    distance = float(differences.mean()) - epsilon
    if sd == 0:
        return 0.0 if distance < 0 else 1.0
    return float(special.stdtr(n - 1, distance / (sd / np.sqrt(n))))


def _benjamini_yekutieli(p_values: FloatArray, level: float) -> Any:
    """Return which hypotheses are rejected at a false discovery rate under any dependence (2001)."""
    m = len(p_values)
    order = np.argsort(p_values)
    limits = np.arange(1, m + 1) / m * level / np.sum(1 / np.arange(1, m + 1))
    below = np.flatnonzero(p_values[order] <= limits)
    is_rejected = np.zeros(m, bool)
    if len(below):
        is_rejected[order[: below[-1] + 1]] = True
    return is_rejected
