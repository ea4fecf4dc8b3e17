"""LLMBar: five judges in both orders against a gold label, and as a prior where many of them are misled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl
from scipy import special

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.judges.votes import comparisons, own_scores, prior_draws, reported
from steelyard.models.labels.majority import wilson
from steelyard.observations import Comparisons, FloatArray

GOLD, VERDICTS = "llmbar/gold.csv.gz", "llmbar/verdicts.csv.gz"
PROMPTING = "Vanilla"
JUDGES = ("GPT-4", "LLaMA2", "ChatGPT", "ChatGPT-0301", "Falcon")
"""The judges that gave a verdict on every comparison; PaLM2 did not."""
NATURAL = "natural"
PUBLISHED = {"GPT-4": 95.5}
"""Accuracy on the natural subset, from the counts in the authors' repository: 95 and 96 of 100, by order."""


@dataclass(frozen=True, slots=True)
class LLMBar(Experiment):
    """Report on the judges, and predict gold labels from other gold labels with each judge as a prior."""

    name: ClassVar[str] = "judges.llmbar"
    paper: ClassVar[str] = "Steelyard's own"
    title: ClassVar[str] = "LLMBar: accuracy, flips and length bias of five judges, and the judges as a prior"
    data: ClassVar[tuple[str, ...]] = (GOLD, VERDICTS)

    judges: tuple[str, ...] = JUDGES
    draws: int = 200
    seed: int = 0

    def small(self) -> Self:
        """Return one judge and few draws."""
        return replace(self, judges=("GPT-4",), draws=40)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Read the verdicts, report on the judges, then use each as a prior."""
        items, gold, verdicts = read_verdicts(data, self.judges)
        columns = ("annotator", "left", "right", "winner")
        reports = {one.judge: one for one in reported(items, gold.select(columns), verdicts.select(columns))}
        claims: list[Claim] = []
        for number, name in enumerate(self.judges):
            own, report = verdicts.filter(pl.col("annotator") == name), reports[name]
            for subset, part in (
                ("natural", own.filter(pl.col("subset") == NATURAL)),
                ("adversarial", own.filter(pl.col("subset") != NATURAL)),
            ):
                published = PUBLISHED.get(name) if subset == NATURAL else None
                hits = int((part["winner"] == part["gold"]).sum())
                claims.append(_share(f"{name}: accuracy, {subset} subset", hits, part.height, published))
            for what, statistic in (
                ("verdicts that flip with the order", report.flips),
                ("the output shown first wins", report.first_share),
                ("longer output wins, minus its proportion in gold", report.length_bias),
            ):
                if statistic is not None and statistic.value is not None:
                    lower, upper = (None if end is None else 100 * end for end in (statistic.lower, statistic.upper))
                    claims.append(Claim(f"{name}: {what}", 100 * statistic.value, lower, upper, unit="%"))
            claims += self._prior_claims(name, items, gold, own)
            progress(number + 1, len(self.judges))
        return Outcome(tuple(claims), notes=NOTES)

    def _prior_claims(self, name: str, items: pl.DataFrame, gold: pl.DataFrame, own: pl.DataFrame) -> list[Claim]:
        """Give half of the gold labels to the model, and predict the other half."""
        is_given = np.zeros(gold.height, bool)
        is_given[np.random.default_rng(self.seed).permutation(gold.height)[: gold.height // 2]] = True
        judge = {name: own_scores(comparisons(own, items))}
        draws = prior_draws(comparisons(gold.filter(is_given), items), judge, (), self.draws)
        expected, wins = _favoured(draws, comparisons(gold.filter(~is_given), items))
        right = _share(f"{name} as prior: held-out gold labels predicted", int(wins.sum()), len(wins))
        return [
            right,
            Claim(f"{name} as prior: predicted, as the model expects", 100 * float(expected.mean()), unit="%"),
        ]


def read_verdicts(data: Path, judges: tuple[str, ...]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Read the outputs, with texts of the recorded lengths, the gold labels, and verdicts in both orders."""
    table = pl.read_csv(data / GOLD).with_columns(
        pl.concat_str("comparison", pl.lit("/1")).alias("one"), pl.concat_str("comparison", pl.lit("/2")).alias("two")
    )
    table = table.with_columns(pl.when(pl.col("gold") == 1).then("one").otherwise("two").alias("gold"))
    items = pl.concat(
        table.select(pl.col(side).alias("id"), pl.col("comparison").alias("source"), pl.col(length).alias("length"))
        for side, length in (("one", "chars_1"), ("two", "chars_2"))
    )
    # The texts are not part of the recording, their lengths are; the report measures length by the text.
    items = items.with_columns(pl.Series("text", ["x" * int(length) for length in items["length"]])).drop("length")
    gold = table.select(
        pl.lit("gold").alias("annotator"), pl.col("one").alias("left"), pl.col("two").alias("right"), winner="gold"
    )
    verdicts = pl.read_csv(data / VERDICTS).filter(
        (pl.col("prompting") == PROMPTING) & pl.col("judge").is_in(list(judges))
    )
    verdicts = verdicts.join(table, on="comparison").rename({"judge": "annotator"})
    orders = [
        verdicts.select(
            "annotator",
            "subset",
            "gold",
            pl.col(first).alias("left"),
            pl.col(second).alias("right"),
            pl.when(pl.col(winner) == 1).then("one").when(pl.col(winner) == 2).then("two").alias("winner"),
        )
        for first, second, winner in (("one", "two", "winner_order1"), ("two", "one", "winner_order2"))
    ]
    return items.sort("id"), gold, pl.concat(orders).drop_nulls("winner")


def _favoured(draws: FloatArray, gold: Comparisons) -> tuple[FloatArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return the probability that the favoured output wins, and whether it did, where the judge gave a verdict."""
    left = special.ndtr(draws[:, gold.left] - draws[:, gold.right]).mean(axis=0)
    is_known = np.isfinite(left)
    left, outcome = left[is_known], gold.outcome[is_known]
    return np.maximum(left, 1 - left), np.sign(left - 0.5) == outcome


def _share(what: str, hits: int, total: int, published: float | None = None) -> Claim:
    lower, upper = (100 * float(end[0]) for end in wilson(np.array([float(hits)]), np.array([float(total)]), 0.95))
    return Claim(what, 100 * hits / total, lower, upper, published, unit="%")


NOTES = (
    "419 comparisons of two outputs with a gold label: a natural subset (100), and four adversarial subsets (319), in "
    "which the worse output looks better. Five judges, prompting Vanilla, both orders. Published: the counts in the "
    "authors' repository.",
    "Flips, first wins and length bias are those of the judge report of a study into which gold (as a person) and "
    "verdicts were imported; 0 is no length bias.",
    "As prior: half of the gold labels, drawn at random, are given to the calibrated scale with the judge's own "
    "Bradley–Terry scores as covariate; the other comparisons are predicted from the covariate alone. A judge is "
    "weighted as it should be if the model expects to be right as often as it is.",
)
