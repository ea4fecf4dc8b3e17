"""Agreement of each annotator with the others, and self-consistency."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import polars as pl
import scipy

from steelyard.models.labels.majority import wilson
from steelyard.observations import UNKNOWN, Choices, Comparisons, Labels, Observations, Ratings

MIN_SHARED = 4
"""Minimum number of items (or tasks) shared with others for an agreement; fewer are too weak as evidence."""

CORRELATION = "correlation with the mean of the other annotators"
ORDER = "proportion of pairs ordered as by the other annotators"
SAME_LABEL = "proportion of labels equal to the majority label of the other annotators"


# Agreement with the others


def with_others(observations: Mapping[str, Observations], excluded: set[str] | None = None) -> pl.DataFrame:
    """Compare each annotator's answers with those of the others (except excluded ones) on the same items.

    Ratings: the correlation with the mean of the other annotators, with Fisher's interval. Comparisons, choices and
    rankings: the proportion of decided pairs in the order of the others' win rates. Labels: the proportion equal to
    the others' most frequent label. Proportions have Wilson's interval with tasks (items, for labels) as trials,
    which is wide enough even if a task yields several pairs.
    """
    schema: dict[str, Any] = {"annotator": pl.String}
    schema |= dict.fromkeys(("agreement", "agreement_lower", "agreement_upper"), pl.Float64)
    schema |= {"shared": pl.Int64, "measure": pl.String, "bias": pl.Float64, "noise": pl.Float64}
    parts = [part for part in observations.values() if len(part)]
    if not parts:
        return pl.DataFrame(schema=schema)
    out = excluded or set()
    same_kind: Any = [part for part in parts if part.kind == parts[0].kind]
    if parts[0].kind == Ratings.kind:
        table = _rated(same_kind, out)
    elif parts[0].kind == Labels.kind:
        table = _labelled(same_kind, out)
    else:
        table = _ordered(parts[0], out)
    return table.select(
        pl.col(name).cast(kind) if name in table.columns else pl.lit(None, kind).alias(name)
        for name, kind in schema.items()
    )


def _names(part: Observations) -> pl.Series:
    """Return the annotators' names by code; the last entry is for unknown annotators."""
    return pl.Series([*part.annotators.ids, None], dtype=pl.String)


def _base(part: Observations, out: Collection[str]) -> pl.DataFrame:
    names = _names(part).gather(np.where(part.annotator == UNKNOWN, len(part.annotators), part.annotator))
    return pl.DataFrame({"annotator": names, "task": part.task}).with_columns(
        (~pl.col("annotator").is_in(list(out))).fill_null(True).alias("counts")
    )


def _rated(parts: list[Ratings], out: set[str]) -> pl.DataFrame:
    frames = []
    for number, part in enumerate(parts):
        low, high = part.scale
        frames.append(
            _base(part, out).with_columns(
                pl.Series("item", part.item),
                pl.Series("value", part.value),
                pl.lit(number).alias("criterion"),
                pl.lit(float(high - low)).alias("width"),
            )
        )
    # Repeats are averaged, so that each annotator counts once; criteria are centred, so that differences between their
    # means do not count as agreement.
    cells = (
        pl.concat(frames)
        .group_by("criterion", "item", "annotator")
        .agg(pl.col("value").mean(), pl.col("counts").first(), pl.col("width").first())
    )
    by_item = ["criterion", "item"]
    weight = pl.col("counts").cast(pl.Float64)
    cells = cells.with_columns(
        ((pl.col("value") * weight).sum().over(by_item) - pl.col("value") * weight).alias("sum"),
        (weight.sum().over(by_item) - weight).alias("number"),
    ).filter((pl.col("number") > 0) & pl.col("annotator").is_not_null())
    cells = cells.with_columns((pl.col("sum") / pl.col("number")).alias("others"))
    cells = cells.with_columns(
        (pl.col("value") - pl.col("value").mean().over("criterion")).alias("own"),
        (pl.col("others") - pl.col("others").mean().over("criterion")).alias("theirs"),
        (pl.col("value") - pl.col("others")).alias("difference"),
    )
    one_scale = cells["width"].n_unique() <= 1
    unit = pl.lit(1.0) if one_scale else pl.col("width")
    table = cells.group_by("annotator").agg(
        pl.corr(pl.col("own") / pl.col("width"), pl.col("theirs") / pl.col("width")).alias("agreement"),
        pl.len().alias("shared"),
        (pl.col("difference") / unit).mean().alias("bias"),
        (pl.col("difference") / unit).std().alias("noise"),
    )
    enough = pl.col("shared") >= MIN_SHARED
    z = pl.col("agreement").clip(-1 + 1e-12, 1 - 1e-12).arctanh()
    off = float(scipy.special.ndtri(0.975)) / (pl.col("shared") - 3).cast(pl.Float64).clip(1e-9).sqrt()
    return table.with_columns(pl.col("agreement").fill_nan(None)).with_columns(
        pl.when(enough).then(pl.col("agreement")).alias("agreement"),
        pl.when(enough).then((z - off).tanh()).alias("agreement_lower"),
        pl.when(enough).then((z + off).tanh()).alias("agreement_upper"),
        pl.when(enough).then(pl.col("bias")).alias("bias"),
        pl.when(enough).then(pl.col("noise")).alias("noise"),
        pl.lit(CORRELATION).alias("measure"),
    )


def ordered_pairs(part: Observations, out: Collection[str] = ()) -> pl.DataFrame:
    """Return each pair that an answer orders: `winner`, `loser`, `tied`."""
    if part.has_comparisons:
        pairs = part.to_comparisons()
        turned = pairs.outcome < 0
        return _base(pairs, out).with_columns(
            pl.Series("winner", np.where(turned, pairs.right, pairs.left)),
            pl.Series("loser", np.where(turned, pairs.left, pairs.right)),
            pl.Series("tied", pairs.outcome == 0),
        )
    if not isinstance(part, Choices):
        raise TypeError(part.kind)
    base = _base(part, out)
    frames = []
    for place in range(part.shown.shape[1]):
        other = part.shown[:, place]
        for winner, loser in ((part.best, other), (other, part.worst)):
            # best over worst occurs twice, once from either side; keep the first.
            keep = (winner != UNKNOWN) & (loser != UNKNOWN) & (winner != loser)
            keep &= ~((winner is other) & (other == part.best))
            frames.append(
                base.with_columns(
                    pl.Series("winner", winner), pl.Series("loser", loser), pl.lit(False).alias("tied")
                ).filter(pl.Series(keep))
            )
    return pl.concat(frames)


def _ordered(part: Observations, out: set[str]) -> pl.DataFrame:
    pairs = ordered_pairs(part, out).with_row_index("row")
    won = pl.when(pl.col("tied")).then(0.5).otherwise(1.0)
    sides = pl.concat(
        [
            pairs.select(
                "row",
                "annotator",
                "counts",
                pl.col("winner").alias("item"),
                won.alias("credit"),
                pl.lit(True).alias("first"),
            ),
            pairs.select(
                "row",
                "annotator",
                "counts",
                pl.col("loser").alias("item"),
                (1 - won).alias("credit"),
                pl.lit(False).alias("first"),
            ),
        ]
    )
    weight = pl.col("counts").cast(pl.Float64)
    credit, number = pl.col("credit") * weight, weight
    sides = sides.with_columns(
        (credit.sum().over("item") - credit.sum().over("item", "annotator")).alias("credit"),
        (number.sum().over("item") - number.sum().over("item", "annotator")).alias("number"),
    )
    sides = sides.with_columns(pl.when(pl.col("number") > 0).then(pl.col("credit") / pl.col("number")).alias("share"))
    shares = [sides.filter(pl.col("first") == first).sort("row")["share"] for first in (True, False)]
    pairs = pairs.with_columns(shares[0].alias("of_winner"), shares[1].alias("of_loser")).filter(
        ~pl.col("tied")
        & pl.col("of_winner").is_not_null()
        & pl.col("of_loser").is_not_null()
        & pl.col("annotator").is_not_null()
    )
    agrees = (pl.col("of_winner") - pl.col("of_loser")).sign() / 2 + 0.5
    tasks = pairs.with_columns(agrees.alias("agrees")).group_by("annotator", "task").agg(pl.col("agrees").mean())
    return _as_shares(tasks, ORDER)


def _labelled(parts: list[Labels], out: set[str]) -> pl.DataFrame:
    rows = pl.concat(
        _base(part, out).with_columns(
            pl.Series("item", part.item), pl.Series("label", part.label), pl.lit(number).alias("criterion")
        )
        for number, part in enumerate(parts)
    )
    cell = ["criterion", "item"]
    answers = rows.group_by(*cell, "annotator", "label").agg(pl.len().alias("times"), pl.col("counts").first())
    answers = answers.with_columns((pl.col("times") * pl.col("counts")).alias("counted"))
    votes = answers.group_by(*cell, "label").agg(pl.col("counted").sum().alias("votes"))
    # For each annotator and item: every label of the item, with the votes of the other annotators.
    labels = answers.select(*cell, "annotator").unique().join(votes, on=cell)
    own = answers.select(*cell, "annotator", "label", "times", "counted")
    labels = labels.join(own, on=[*cell, "annotator", "label"], how="left").with_columns(
        pl.col("times", "counted").fill_null(0)
    )
    labels = labels.with_columns((pl.col("votes") - pl.col("counted")).alias("others"))
    mine = [*cell, "annotator"]
    labels = labels.with_columns(pl.col("others").max().over(mine).alias("most")).filter(
        (pl.col("most") > 0) & pl.col("annotator").is_not_null()
    )
    labels = labels.with_columns((pl.col("others") == pl.col("most")).alias("top"))
    items = labels.group_by(mine).agg(
        ((pl.col("times") * pl.col("top")).sum() / pl.col("times").sum() / pl.col("top").sum()).alias("agrees")
    )
    return _as_shares(items, SAME_LABEL)


def _as_shares(rows: pl.DataFrame, measure: str) -> pl.DataFrame:
    counts = rows.group_by("annotator").agg(pl.col("agrees").sum().alias("hits"), pl.len().alias("shared"))
    hits, shared = counts["hits"].to_numpy().astype(np.float64), counts["shared"].to_numpy().astype(np.float64)
    lower, upper = wilson(hits, shared, 0.95)
    enough = shared >= MIN_SHARED
    values = {"agreement": hits / np.maximum(shared, 1), "agreement_lower": lower, "agreement_upper": upper}
    return counts.with_columns(
        *(pl.Series(name, np.where(enough, value, np.nan)).fill_nan(None) for name, value in values.items()),
        pl.lit(measure).alias("measure"),
    )


# Agreement with themselves


def with_themselves(observations: Mapping[str, Observations]) -> pl.DataFrame:
    """Compare the answers of each annotator to the same question with each other.

    `self_consistency` is 1 if all repeats are equal: for ratings, 1 minus the mean absolute difference as a fraction
    of the scale; otherwise the proportion of pairs of answers that are equal. `repeats` counts those pairs.
    """
    schema = {"annotator": pl.String, "self_consistency": pl.Float64, "repeats": pl.Int64}
    frames = [
        rows.with_columns(pl.lit(number).alias("criterion"))
        for number, part in enumerate(observations.values())
        if len(part)
        for rows in _questions(part)
    ]
    if not frames:
        return pl.DataFrame(schema=schema)
    rows = pl.concat(frames).filter(pl.col("annotator").is_not_null())
    question = ["criterion", "annotator", "question"]
    rows = rows.filter(pl.len().over(question) > 1).sort("answer")
    n = pl.len().cast(pl.Float64)
    rated = isinstance(next(part for part in observations.values() if len(part)), Ratings)
    if rated:
        # The sum of |a − b| over all pairs of n sorted values is that of (2k − n − 1)·value.
        place = pl.int_range(1, pl.len() + 1).cast(pl.Float64)
        unlike = ((2 * place - n - 1) * pl.col("answer")).sum()
    else:
        counts = pl.col("answer").unique_counts().cast(pl.Float64)
        unlike = n * (n - 1) / 2 - (counts * (counts - 1) / 2).sum()
    by_question = rows.group_by(question, maintain_order=True).agg(
        unlike.alias("unlike"), (n * (n - 1) / 2).alias("pairs")
    )
    return (
        by_question.group_by("annotator")
        .agg(
            (1 - pl.col("unlike").sum() / pl.col("pairs").sum()).alias("self_consistency"),
            pl.col("pairs").sum().cast(pl.Int64).alias("repeats"),
        )
        .select(list(schema))
    )


def _questions(part: Observations) -> list[pl.DataFrame]:
    if part.has_comparisons:
        part = part.to_comparisons()
    return [
        _base(part, set()).select(
            "annotator", question.alias("question"), pl.Series("answer", answer, dtype=pl.Float64)
        )
        for question, answer in _QUESTIONS_BY_KIND[type(part)](part)
    ]


def _text(*codes: Any) -> pl.Series:
    return (
        pl.DataFrame([pl.Series(str(n), code) for n, code in enumerate(codes)])
        .select(pl.concat_str(pl.all().cast(pl.String), separator=" "))
        .to_series()
    )


def _of_comparisons(part: Comparisons) -> list[tuple[pl.Series, Any]]:
    turned = part.left > part.right
    low, high = np.minimum(part.left, part.right), np.maximum(part.left, part.right)
    return [(_text(low, high), np.where(turned, -part.outcome, part.outcome).astype(np.float64))]


def _of_choices(part: Choices) -> list[tuple[pl.Series, Any]]:
    items = _text(*np.sort(part.shown, axis=1).T)
    return [
        (side + items, chosen.astype(np.float64))
        for side, chosen in ((pl.Series(["b "]), part.best), (pl.Series(["w "]), part.worst))
    ]


_QUESTIONS_BY_KIND: dict[type[Observations], Callable[[Any], list[tuple[pl.Series, Any]]]] = {
    Ratings: lambda part: [(_text(part.item), part.unit_value)],
    Labels: lambda part: [(_text(part.item), part.label.astype(np.float64))],
    Comparisons: _of_comparisons,
    Choices: _of_choices,
}
