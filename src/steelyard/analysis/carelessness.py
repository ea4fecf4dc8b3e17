"""Signals of careless or automated work that need a model of all answers; none of them excludes an annotator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from steelyard.analysis.history import History
from steelyard.observations import Observations
from steelyard.quality.copying import copied_answers, model_like
from steelyard.quality.response_times import fast_guesses
from steelyard.reliability.residuals import residuals

_QUESTION = ["stage", "criterion", "item", "other"]


def careless_signals(
    history: History,
    answers: pl.DataFrame,
    model_parts: Iterable[tuple[str, Mapping[str, Observations]]] = (),
) -> pl.DataFrame:
    """Return a row for each annotator with something to report.

    `answers` are those of `RaterEffects`. Columns: `fast_guesses` with its interval and `guessing` (the signal);
    `copies` (the annotator with the same deviations, or null) with `copies_correlation`; `like_model` (the model, or
    null) with `like_model_correlation`; `scripted` (answers with events that a script made) and `pasted` (answers with
    text pasted into the comment).
    """
    table = _guesses(history, answers).join(_counts(history), on="annotator", how="full", coalesce=True)
    copies = copied_answers(answers)
    both = pl.concat([copies, copies.rename({"annotator": "other", "other": "annotator"}).select(copies.columns)])
    both = both.sort("correlation", descending=True).unique("annotator", keep="first", maintain_order=True)
    table = table.join(
        both.select("annotator", pl.col("other").alias("copies"), pl.col("correlation").alias("copies_correlation")),
        on="annotator",
        how="left",
        maintain_order="left",
    )
    like = model_like(answers, _deviations(answers, model_parts)).unique("annotator", keep="first", maintain_order=True)
    return table.join(
        like.select(
            "annotator", pl.col("model").alias("like_model"), pl.col("correlation").alias("like_model_correlation")
        ),
        on="annotator",
        how="left",
        maintain_order="left",
    )


def _guesses(history: History, answers: pl.DataFrame) -> pl.DataFrame:
    square = answers.group_by("judgment_id").agg((pl.col("residual") ** 2).mean().alias("square"))
    timed = history.judgments.filter(
        (pl.col("annotator") != "") & ~pl.col("imported") & (pl.col("seconds") > 0) & ~pl.col("excluded")
    ).join(square, on="judgment_id", how="left", maintain_order="left")
    return fast_guesses(
        timed["annotator"].to_list(),
        timed["seconds"].to_numpy().astype(np.float64),
        timed["square"].fill_null(float("nan")).to_numpy().astype(np.float64),
    )


def _counts(history: History) -> pl.DataFrame:
    own = history.judgments.filter((pl.col("annotator") != "") & pl.col("untrusted").is_not_null())
    return own.group_by("annotator").agg(
        (pl.col("untrusted") > 0).sum().cast(pl.Int64).alias("scripted"),
        (pl.col("pastes") > 0).sum().cast(pl.Int64).alias("pasted"),
    )


def _deviations(
    answers: pl.DataFrame, model_parts: Iterable[tuple[str, Mapping[str, Observations]]]
) -> dict[str, pl.DataFrame]:
    """Return how each model's answers deviate from what people's answers to the same questions predict."""
    expected = answers.group_by(_QUESTION).agg(pl.col("expected").mean())
    frames = []
    for stage, by_criterion in model_parts:
        for criterion, part in by_criterion.items():
            result = residuals(part)
            if result is None:
                continue
            items, names = pl.Series([*part.items.ids, None]), pl.Series([*part.annotators.ids, None])
            frames.append(
                pl.DataFrame(
                    {
                        "model": names.gather(np.where(result.annotator < 0, len(part.annotators), result.annotator)),
                        "item": items.gather(result.item),
                        "other": items.gather(np.where(result.other < 0, len(part.items), result.other)),
                        "observed": result.observed,
                    }
                ).with_columns(pl.lit(stage).alias("stage"), pl.lit(criterion).alias("criterion"))
            )
    if not frames:
        return {}
    joined = pl.concat(frames).join(expected, on=_QUESTION, how="inner", nulls_equal=True)
    joined = joined.with_columns((pl.col("observed") - pl.col("expected")).alias("loo"))
    return {
        str(name): frame.drop("model") for (name,), frame in joined.partition_by("model", as_dict=True).items() if name
    }
