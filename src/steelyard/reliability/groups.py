"""Agreement within and between two groups of annotators, such as people and models, by one measure for all three."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from steelyard.observations import UNKNOWN, Choices, FloatArray, Labels, Observations, Ratings
from steelyard.reliability.statistic import Statistic

CORRELATION = "correlation of two annotators' ratings of an item, each annotator's mean removed"
SAME = "proportion of pairs of answers to the same question that agree"


@dataclass(frozen=True, slots=True, eq=False)
class GroupAgreement:
    """Agreement of two annotators: both of the first group, both of the second, one of each."""

    measure: str
    first: Statistic
    second: Statistic
    between: Statistic


def group_agreement(
    first: Observations, second: Observations, *, seed: int = 0, replicates: int = 400, level: float = 0.95
) -> GroupAgreement:
    """Compare two groups' answers about the same items (or pairs, or tuples).

    All three statistics are averages over pairs of answers by two different annotators, so they can be compared: a
    judge agrees with people as well as people do if `between` reaches `first`. Several answers of one annotator to a
    question are averaged. Intervals are bootstrap intervals that resample questions.
    """
    is_rated = isinstance(first, Ratings)
    answers = pl.concat([_answers(first, 0), _answers(second, 1)])
    sums = _rating_sums(answers) if is_rated else _label_sums(answers)
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(sums.n, np.full(sums.n, 1 / sums.n), size=replicates) if sums.n else np.zeros((0, 0))
    key = "pair_correlation" if is_rated else "observed_agreement"
    parts = [_statistic(key, part, sums.pairs[number], weights, level) for number, part in enumerate(sums.parts)]
    return GroupAgreement(CORRELATION if is_rated else SAME, *parts)


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Sums for each question: agreement, and the two variances (or numbers of pairs) that it is divided by."""

    parts: tuple[FloatArray, FloatArray, FloatArray]
    pairs: tuple[FloatArray, FloatArray, FloatArray]

    @property
    def n(self) -> int:
        return int(self.parts[0].shape[1])


def _statistic(key: str, sums: FloatArray, pairs: FloatArray, weights: np.ndarray, level: float) -> Statistic:
    units = int((pairs > 0).sum())
    if units < 2:
        return Statistic(key, None, n=units, note="fewer than two questions were answered by two such annotators")

    def ratio(total: FloatArray) -> FloatArray:
        below = np.sqrt(np.maximum(total[..., 1], 0) * np.maximum(total[..., 2], 0))
        return np.asarray(np.divide(total[..., 0], below, out=np.full(below.shape, np.nan), where=below > 0))

    value = float(ratio(sums.sum(axis=1)))
    if not np.isfinite(value):
        return Statistic(key, None, n=units, note="the answers do not vary")
    draws = ratio(weights @ sums.T)
    draws = draws[np.isfinite(draws)]
    lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2]) if len(draws) else (None, None)
    return Statistic(
        key,
        value,
        None if lower is None else float(lower),
        None if upper is None else float(upper),
        "bootstrap(questions)",
        units,
    )


def _answers(part: Observations, group: int) -> pl.DataFrame:
    """Return one row for each answer: group, annotator, question, and its value or category."""
    names = pl.Series([*part.annotators.ids, None], dtype=pl.String)
    annotator = names.gather(np.where(part.annotator == UNKNOWN, len(part.annotators), part.annotator))
    base = pl.DataFrame({"annotator": annotator}).with_columns(pl.lit(group).alias("group"))
    if isinstance(part, Ratings):
        base = base.with_columns(pl.Series("unit", part.item).cast(pl.String), pl.Series("value", part.value))
    elif isinstance(part, Labels):
        labels = pl.Series(part.classes.ids, dtype=pl.String).gather(part.label)
        base = base.with_columns(pl.Series("unit", part.item).cast(pl.String), labels.alias("answer"))
    elif isinstance(part, Choices):
        units = ["|".join(map(str, sorted(row[row != UNKNOWN].tolist()))) for row in part.shown]
        answers = [f"{best} {worst}" for best, worst in zip(part.best.tolist(), part.worst.tolist(), strict=True)]
        base = base.with_columns(pl.Series("unit", units, pl.String), pl.Series("answer", answers, pl.String))
    else:
        pairs = part.to_comparisons()
        annotator = names.gather(np.where(pairs.annotator == UNKNOWN, len(part.annotators), pairs.annotator))
        low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
        outcome = np.where(pairs.left == low, pairs.outcome, -pairs.outcome)
        units = [f"{a}|{b}" for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        base = pl.DataFrame(
            {"annotator": annotator, "unit": pl.Series(units, dtype=pl.String), "answer": outcome.astype(str)}
        ).with_columns(pl.lit(group).alias("group"))
    # An annotator without a name could be anybody: their answers say nothing about two annotators.
    return base.filter(pl.col("annotator").is_not_null())


def _rating_sums(answers: pl.DataFrame) -> _Sums:
    cells = answers.group_by("group", "annotator", "unit").agg(pl.col("value").mean())
    cells = cells.with_columns(pl.col("value") - pl.col("value").mean().over("group", "annotator"))
    by_unit = cells.group_by("unit").agg(
        expression
        for group in (0, 1)
        for own in [pl.col("value").filter(pl.col("group") == group)]
        for expression in (
            own.sum().alias(f"s{group}"),
            (own**2).sum().alias(f"q{group}"),
            own.len().alias(f"n{group}"),
        )
    )
    s0, q0, n0, s1, q1, n1 = (
        by_unit[name].to_numpy().astype(np.float64) for name in ("s0", "q0", "n0", "s1", "q1", "n1")
    )
    within = [
        np.stack([(s**2 - q) / 2, (n - 1) * q / 2, (n - 1) * q / 2]) * (n > 1)
        for s, q, n in ((s0, q0, n0), (s1, q1, n1))
    ]
    between = np.stack([s0 * s1, q0 * n1, q1 * n0])
    return _Sums((*within, between), (n0 * (n0 - 1), n1 * (n1 - 1), n0 * n1))  # type: ignore[arg-type]


def _label_sums(answers: pl.DataFrame) -> _Sums:
    """Sum over categories; an annotator who answered twice counts once, half for each answer."""
    per_annotator = answers.group_by("group", "annotator", "unit").len("answers")
    cells = answers.group_by("group", "annotator", "unit", "answer").len("times")
    cells = cells.join(per_annotator, on=["group", "annotator", "unit"])
    cells = cells.with_columns((pl.col("times") / pl.col("answers")).alias("part"))
    by_category = cells.group_by("unit", "answer").agg(
        expression
        for group in (0, 1)
        for own in [pl.col("part").filter(pl.col("group") == group)]
        for expression in (own.sum().alias(f"s{group}"), (own**2).sum().alias(f"q{group}"))
    )
    agreeing = by_category.group_by("unit").agg(
        ((pl.col("s0") ** 2 - pl.col("q0")).sum() / 2).alias("a0"),
        ((pl.col("s1") ** 2 - pl.col("q1")).sum() / 2).alias("a1"),
        (pl.col("s0") * pl.col("s1")).sum().alias("a01"),
    )
    counts = per_annotator.group_by("unit").agg(
        (pl.col("group") == 0).sum().alias("n0"), (pl.col("group") == 1).sum().alias("n1")
    )
    joined = agreeing.join(counts, on="unit")
    a0, a1, a01, n0, n1 = (joined[name].to_numpy().astype(np.float64) for name in ("a0", "a1", "a01", "n0", "n1"))
    pairs = (n0 * (n0 - 1) / 2, n1 * (n1 - 1) / 2, n0 * n1)
    parts = tuple(np.stack([a * (p > 0), p, p]) for a, p in zip((a0, a1, a01), pairs, strict=True))
    return _Sums(parts, pairs)  # type: ignore[arg-type]
