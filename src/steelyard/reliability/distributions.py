"""How many annotators gave each answer to an item: disagreement kept as signal, also as soft labels."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.errors import ConfigError, DataError
from steelyard.models.perspectives import MIN_GROUP
from steelyard.observations import UNKNOWN, Choices, Comparisons, Labels, Observations, Rankings, Ratings

BINS = 10
MOST_STEPS = 21
"""A rating scale with at most this many whole numbers is counted by number, not in bins."""

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "item": pl.String,
    "group": pl.String,
    "answer": pl.String,
    "order": pl.Int64,
    "judgments": pl.Int64,
    "annotators": pl.Int64,
    "proportion": pl.Float64,
}


class _Answers(NamedTuple):
    """Answers about single items: the item, the row of the observations and the code of each, and their names."""

    item: NDArray[np.int64]
    row: NDArray[np.int64]
    code: NDArray[np.int64]
    names: list[str]


def answer_distributions(
    observations: Observations,
    *,
    group_of: Mapping[str, str] | None = None,
    min_group: int = MIN_GROUP,
    bins: int = BINS,
) -> pl.DataFrame:
    """Count the answers to each item; a row for each item and possible answer, in the order of the answers.

    Parameters
    ----------
    observations
        Labels (the answers are classes), ratings (steps, or bins of the scale), comparisons (loss, tie, win; with
        strengths, grades), choices (worst, not chosen, best) or rankings (ranks).
    group_of
        Group of each annotator, to count by group.
    min_group
        Smallest number of annotators of a group who judged an item; fewer are not shown. If those not shown are
        fewer than this, the smallest group that is shown is left out too: it could be had by subtraction.
    bins
        Number of bins of equal width of a scale that is not divided into steps.

    Returns
    -------
    Columns item, group (if `group_of` is given), answer, order (of the answer, from 0), judgments, annotators (who gave
    the answer; null if they are unknown) and proportion (of the judgments of the item, or of the group).
    """
    answers = _answers(observations, bins)
    person = observations.annotator[answers.row]
    frame = pl.DataFrame({"item": answers.item, "order": answers.code, "annotator": person})
    if group_of is not None:
        frame = _in_groups(frame, observations, group_of, min_group)
    keys = ["item"] if group_of is None else ["item", "group"]
    who = pl.col("annotator").n_unique() if observations.knows_annotators else pl.lit(None, pl.Int64)
    counts = frame.group_by(*keys, "order").agg(pl.len().alias("judgments"), who.alias("annotators"))
    every = frame.select(keys).unique().join(pl.DataFrame({"order": np.arange(len(answers.names))}), how="cross")
    count_columns = ["judgments", *(["annotators"] if observations.knows_annotators else [])]
    table = every.join(counts, on=[*keys, "order"], how="left").with_columns(pl.col(count_columns).fill_null(0))
    total = pl.col("judgments").sum().over(keys)
    names = dict(enumerate(observations.items.ids))
    return (
        table.sort(*keys, "order")
        .with_columns(
            (pl.col("judgments") / total).alias("proportion"),
            pl.col("item").replace_strict(names, return_dtype=pl.String),
            pl.col("order").replace_strict(dict(enumerate(answers.names)), return_dtype=pl.String).alias("answer"),
        )
        .select(pl.col(name).cast(kind) for name, kind in SCHEMA.items() if name in keys or name != "group")
    )


def soft_labels(distributions: pl.DataFrame) -> pl.DataFrame:
    """Return the distribution of each item in one row: soft labels, to train or evaluate models with.

    Columns: those that identify the item (item, and group, stage or criterion if there are any), judgments, hard_label
    (the most frequent answer; null for a tie), entropy (in bits) and p(answer) for each answer, which sum to 1.
    """
    keys = [name for name in ("stage", "criterion", "item", "group") if name in distributions.columns]
    p = pl.col("proportion")
    top = pl.col("answer").filter(p == p.max())
    summary = distributions.group_by(keys, maintain_order=True).agg(
        pl.col("judgments").sum(),
        pl.when(top.len() == 1).then(top.first()).alias("hard_label"),
        (p.filter(p > 0) * p.filter(p > 0).log(2)).sum().abs().round(12).alias("entropy"),
    )
    answers = distributions.select("answer", "order").unique().sort("order", "answer")["answer"]
    wide = distributions.pivot("answer", index=keys, values="proportion", aggregate_function="first")
    columns = [pl.col(answer).alias(f"p({answer})") for answer in dict.fromkeys(answers)]
    return summary.join(wide.select(*keys, *columns), on=keys, how="left", maintain_order="left")


def _in_groups(
    frame: pl.DataFrame, observations: Observations, group_of: Mapping[str, str], min_group: int
) -> pl.DataFrame:
    """Add each annotator's group; leave out the groups of an item that are too small to show."""
    if not observations.knows_annotators:
        raise DataError("some judgments have no annotator.", "Groups need the annotator of every judgment.")
    if min_group < 2:
        raise ConfigError(f"groups of {min_group} annotators.", "Give at least 2, so that nobody can be recognised.")
    names = [group_of.get(name) or None for name in observations.annotators.ids]
    groups = pl.DataFrame({"annotator": np.arange(len(names)), "group": pl.Series(names, dtype=pl.String)})
    frame = frame.with_columns(pl.col("annotator").cast(pl.Int64)).join(groups, on="annotator", how="left")
    sizes = frame.group_by("item", "group").agg(pl.col("annotator").n_unique().alias("size"))
    cells: list[tuple[int, str]] = []
    for (item,), part in sizes.sort("item", "size", "group").group_by("item", maintain_order=True):
        named = [(size, group) for group, size in part.select("group", "size").iter_rows() if group is not None]
        visible = [(size, group) for size, group in named if size >= min_group]
        hidden = int(part["size"].sum()) - sum(size for size, _ in visible)
        while visible and 0 < hidden < min_group:
            hidden += visible.pop(0)[0]
        cells += [(int(str(item)), group) for _, group in visible]
    pairs = pl.DataFrame(cells, schema={"item": pl.Int64, "group": pl.String}, orient="row")
    return frame.join(pairs, on=["item", "group"], how="semi")


def _answers(observations: Observations, bins: int) -> _Answers:
    if isinstance(observations, Ratings):
        return _of_ratings(observations, bins)
    if isinstance(observations, Labels):
        return _each(observations, observations.label.astype(np.int64), list(observations.classes.ids))
    if isinstance(observations, Comparisons):
        return _of_comparisons(observations)
    if isinstance(observations, Choices):
        return _of_choices(observations)
    if isinstance(observations, Rankings):
        row = np.repeat(np.arange(len(observations)), np.diff(observations.start))
        code = observations.rank.astype(np.int64) - 1
        ranks = [f"rank {rank + 1}" for rank in range(int(code.max(initial=0)) + 1)]
        return _Answers(observations.item.astype(np.int64), row, code, ranks)
    raise DataError(
        f"no distribution of answers is defined for '{observations.kind}'.",
        "Give labels, ratings, comparisons, choices or rankings.",
    )


def _each(observations: Observations, code: NDArray[np.int64], names: list[str]) -> _Answers:
    item, row = observations.incidence()
    return _Answers(item.astype(np.int64), row.astype(np.int64), code, names)


def _of_ratings(ratings: Ratings, bins: int) -> _Answers:
    low, high = ratings.scale
    steps = high - low + 1
    if float(low).is_integer() and steps <= MOST_STEPS and (ratings.value == np.rint(ratings.value)).all():
        names = [f"{low + step:g}" for step in range(round(steps))]
        return _each(ratings, np.rint(ratings.value - low).astype(np.int64), names)
    if bins < 2:
        raise ConfigError(f"{bins} bins.", "Give at least 2.")
    edges = np.linspace(low, high, bins + 1)
    code = np.clip(np.searchsorted(edges, ratings.value, side="right") - 1, 0, bins - 1)
    return _each(ratings, code.astype(np.int64), [f"{a:g} to {b:g}" for a, b in pairwise(edges)])


def _of_comparisons(comparisons: Comparisons) -> _Answers:
    """Return each comparison twice: as seen from the left item, and from the right one."""
    most = int(comparisons.strength.max(initial=0))
    grade = comparisons.outcome.astype(np.int64) * np.maximum(comparisons.strength, 1)
    names = ["loss", "tie", "win"]
    if most > 1:
        names = [
            *(f"loss {step}" for step in range(most, 0, -1)),
            "tie",
            *(f"win {step}" for step in range(1, most + 1)),
        ]
    return _each(comparisons, np.concatenate([grade, -grade]) + len(names) // 2, names)


def _of_choices(choices: Choices) -> _Answers:
    row, place = np.nonzero(choices.shown != UNKNOWN)
    item = choices.shown[row, place].astype(np.int64)
    code = 1 + (item == choices.best[row]).astype(np.int64) - (item == choices.worst[row])
    return _Answers(item, row, code.astype(np.int64), ["worst", "not chosen", "best"])
