"""Copied answers: annotators who agree with each other, or with a model, beyond what the items explain."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

FloatArray = NDArray[np.float64]

MIN_SHARED = 12
"""Minimum number of answers to the same questions."""

MIN_CORRELATION = 0.5
"""There is a signal if the residuals of two annotators correlate by more than this, with the whole interval."""

MIN_PAIRS = 10
"""Minimum number of pairs with enough shared questions (five annotators), to know what is usual."""

USUAL_QUANTILE, MARGIN = 0.8, 0.2
"""The interval must also lie above the correlation that 80 % of the pairs stay below, by this margin."""

ALPHA = 0.05
"""Error probability over all pairs of annotators together (Bonferroni)."""

MAX_ANNOTATORS = 2000
"""With more annotators, pairs are not compared: memory grows by the square of their number."""

MIN_EXCESS = 0.3
"""Correlation with a model must exceed other annotators' by this."""


def residual_table(answers: pl.DataFrame) -> tuple[list[str], FloatArray, list[str]]:
    """Return annotators, their residuals by question (NaN where there is no answer), and the questions.

    `answers` has annotator, stage, criterion, item, other, and `loo`, the residual without the answer's own influence.
    """
    question = pl.concat_str(
        [pl.col(name).fill_null("") for name in ("stage", "criterion", "item", "other")], separator="\0"
    )
    cells = (
        answers.filter(pl.col("annotator").is_not_null())
        .with_columns(question.alias("question"))
        .group_by("annotator", "question")
        .agg(pl.col("loo").mean())
    )
    people, questions = cells["annotator"].unique().sort().to_list(), cells["question"].unique().sort().to_list()
    row = cells["annotator"].replace_strict({name: n for n, name in enumerate(people)}, return_dtype=pl.Int64)
    column = cells["question"].replace_strict({name: n for n, name in enumerate(questions)}, return_dtype=pl.Int64)
    table = np.full((len(people), len(questions)), np.nan)
    table[row.to_numpy(), column.to_numpy()] = cells["loo"].to_numpy()
    return people, table, questions


def correlations(rows: FloatArray, columns: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return correlations about zero between two tables' rows over shared questions, and how many are shared."""
    left, right = np.isfinite(rows), np.isfinite(columns)
    x, y = np.where(left, rows, 0.0), np.where(right, columns, 0.0)
    square_x, square_y = (x**2) @ right.T.astype(np.float64), left.astype(np.float64) @ (y**2).T
    shared = (left.astype(np.float64) @ right.T.astype(np.float64)).astype(np.int64)
    return x @ y.T / np.sqrt(np.maximum(square_x * square_y, 1e-300)), shared


def copied_answers(answers: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of annotators whose residuals correlate too much: annotator, other, correlation, lower, shared.

    The lower end is that of Fisher's z at 5 % over all pairs with enough shared questions.
    """
    schema = {
        "annotator": pl.String, "other": pl.String, "correlation": pl.Float64, "lower": pl.Float64, "shared": pl.Int64
    }  # fmt: skip
    if answers["annotator"].n_unique() > MAX_ANNOTATORS or answers.is_empty():
        return pl.DataFrame(schema=schema)
    people, table, _ = residual_table(answers)
    correlation, shared = correlations(table, table)
    first, second = np.triu_indices(len(people), 1)
    enough = shared[first, second] >= MIN_SHARED
    first, second = first[enough], second[enough]
    r, n = correlation[first, second], shared[first, second]
    if len(r) < MIN_PAIRS:
        return pl.DataFrame(schema=schema)
    quantile = float(special.ndtri(1 - ALPHA / len(r)))
    lower = np.tanh(np.arctanh(np.clip(r, -0.9999, 0.9999)) - quantile / np.sqrt(np.maximum(n - 3, 1)))
    # People who share an opinion agree beyond the items, too: then many pairs do.
    usual = float(np.quantile(r, USUAL_QUANTILE))
    rows = [
        (people[i], people[j], float(value), float(end), int(count))
        for i, j, value, end, count in zip(first, second, r, lower, n, strict=True)
        if end > max(MIN_CORRELATION, usual + MARGIN)
    ]
    return pl.DataFrame(rows, schema=schema, orient="row").sort("correlation", descending=True)


def model_like(answers: pl.DataFrame, deviations: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return people who agree with a model far more than other people do.

    Columns: annotator, model, correlation, others, shared.

    `deviations` has, for each model, the columns of `answers` that name a question, and `loo`: how the model's answer
    deviates from what people's answers predict. People's residuals are correlated with these deviations; a signal is a
    correlation above the mean of the others by 0.3, and significant at 5 % over all people and models.
    """
    schema = {
        "annotator": pl.String, "model": pl.String, "correlation": pl.Float64, "others": pl.Float64, "shared": pl.Int64
    }  # fmt: skip
    if answers.is_empty() or not deviations:
        return pl.DataFrame(schema=schema)
    people, table, questions = residual_table(answers)
    place = {name: n for n, name in enumerate(questions)}
    rows = []
    for model, frame in deviations.items():
        _, own, own_questions = residual_table(frame.with_columns(pl.lit(model).alias("annotator")))
        column = np.full((1, len(questions)), np.nan)
        for number, question in enumerate(own_questions):
            if question in place:
                column[0, place[question]] = own[0, number]
        column -= np.nanmean(column) if np.isfinite(column).any() else 0.0
        correlation, shared = correlations(table, column)
        z = np.arctanh(np.clip(correlation[:, 0], -0.9999, 0.9999))
        enough = shared[:, 0] >= MIN_SHARED
        if enough.sum() < 4:
            continue
        for person in np.flatnonzero(enough):
            others = z[enough & (np.arange(len(people)) != person)]
            middle, sd = float(np.median(others)), float(np.std(others, ddof=1))
            limit = float(special.ndtri(1 - ALPHA / (enough.sum() * len(deviations))))
            error = np.sqrt(1 / max(shared[person, 0] - 3, 1) + sd**2)
            excess = float(correlation[person, 0] - np.tanh(middle))
            if z[person] - middle > limit * error and excess > MIN_EXCESS:
                rows.append(
                    (
                        people[person],
                        model,
                        float(correlation[person, 0]),
                        float(np.tanh(middle)),
                        int(shared[person, 0]),
                    )
                )
    return pl.DataFrame(rows, schema=schema, orient="row")
