"""Figure 2's form on real answers: split-half reliability of SemEval-2012's best–worst answers, by judgments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self, cast

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.best_worst.rated_and_chosen import PAPER
from reproductions.best_worst.semeval import ANSWERS, answers_by_relation
from reproductions.charts import curves
from steelyard.observations import Choices
from steelyard.reliability import split_half
from steelyard.reliability.splitting import take
from steelyard.report.charts import Chart

_FACTORS = (1.0, 1.5, 2.0)
_ALL = "all tuples"
_PER_HALF = (1, 2)


@dataclass(frozen=True, slots=True)
class SplitHalfByBudget(Experiment):
    """Split the answers to all, and to some, tuples of a relation in halves of one and two annotators per tuple."""

    name: ClassVar[str] = "best_worst.split_half_by_budget"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Shape of Figure 2 and Table 3, on the answers of SemEval-2012 task 2"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown("Figure 2", "approximated", "other items: only best–worst answers"),
        Shown(
            "Table 3",
            "approximated",
            "other items: classes of relations instead of types of phrases, only best–worst answers",
        ),
    )
    data: ClassVar[tuple[str, ...]] = (ANSWERS,)

    relations: int | None = None
    """How many relations to take; None for all 79."""
    trials: int = 20
    seed: int = 0

    def small(self) -> Self:
        """Return a few relations."""
        return replace(self, relations=8, trials=5)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Split relation by relation and average."""
        by_relation = answers_by_relation(data, self.relations)
        rows = []
        for done, (relation, choices) in enumerate(by_relation.items()):
            rng = np.random.default_rng([self.seed, done])
            parts = {_ALL: choices} | {f"{factor:g}N tuples": _some(choices, factor, rng) for factor in _FACTORS}
            for name, part in parts.items():
                for per_half in (*_PER_HALF, None):
                    reliability = split_half(part, per_half=per_half, trials=self.trials, seed=self.seed)
                    judgments = _judgments(part, per_half) / len(choices.items)
                    values = (reliability[which].value for which in ("split_half_spearman", "split_half_pearson"))
                    rows.append((relation, name, per_half or 0, judgments, *values))
            progress(done + 1, len(by_relation))
        schema = {"relation": pl.String, "tuples": pl.String, "per_half": pl.Int64, "judgments": pl.Float64}
        schema |= {"spearman": pl.Float64, "pearson": pl.Float64}
        single = pl.DataFrame(rows, schema=schema, orient="row")
        table = single.group_by("tuples", "per_half", maintain_order=True).agg(
            pl.len().alias("relations"),
            pl.col("judgments").mean(),
            pl.col("spearman").mean().alias("value"),
            pl.col("pearson").mean(),
            (1.96 * pl.col("spearman").std() / pl.len().sqrt()).alias("reach"),
        )
        table = table.with_columns(
            (pl.col("value") - pl.col("reach")).alias("lower"), (pl.col("value") + pl.col("reach")).alias("upper")
        ).drop("reach")
        return Outcome((*_claims(table, single), *_by_class(single)), table, lambda: _chart(table), _NOTES)


_NOTES = (
    "The published curve is for sentiment terms; these are degrees of relational similarity, judged by other "
    "annotators. The shapes of the curves can be compared, their levels cannot.",
    "There are about five answers per tuple, so that each half has at most two or three, and fewer for some tuples.",
    "As in the paper, each tuple is in both halves, so that the effect of the other items in the tuple does not "
    "count as unreliability.",
    "Intervals are over relations (normal, 95 %).",
)


def _tuple_of(choices: Choices) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return the number of the tuple that each answer is about."""
    return np.unique(np.sort(choices.shown, axis=1), axis=0, return_inverse=True)[1].ravel()


def _some(choices: Choices, factor: float, rng: np.random.Generator) -> Choices:
    """Keep the answers to factor·N tuples drawn at random."""
    of = _tuple_of(choices)
    sample = rng.permutation(int(of.max()) + 1)[: round(factor * len(choices.items))]
    return take(choices, np.isin(of, sample))


def _judgments(choices: Choices, per_half: int | None) -> float:
    """Count the judgments in a half."""
    halves = np.bincount(_tuple_of(choices)) / 2
    return float(halves.sum() if per_half is None else np.minimum(halves, per_half).sum())


def _claims(table: pl.DataFrame, single: pl.DataFrame) -> tuple[Claim, ...]:
    def row(tuples: str, per_half: int) -> dict[str, float]:
        return table.filter((pl.col("tuples") == tuples) & (pl.col("per_half") == per_half)).row(0, named=True)

    whole, one, two = row(_ALL, 0), row("2N tuples", 1), row("1N tuples", 2)
    gap = _gap(single)
    return (
        Claim(
            f"split-half ρ of all answers ({whole['judgments']:.1f}N judgments in each half), mean of the relations",
            whole["value"],
            whole["lower"],
            whole["upper"],
            why="the paper's .98 is of 10N sentiment judgments in each half",
        ),
        Claim("split-half Pearson's r of all answers, mean of the relations", whole["pearson"]),
        Claim(
            f"split-half ρ of 2N tuples, one annotator each ({one['judgments']:.1f}N)",
            one["value"],
            one["lower"],
            one["upper"],
        ),
        Claim(
            f"split-half ρ of 1N tuples, two annotators each ({two['judgments']:.1f}N)",
            two["value"],
            two["lower"],
            two["upper"],
        ),
        Claim(
            "difference of the two: many tuples once minus few tuples twice",
            *gap,
            why="§5 says that reliability is very similar as long as the number of judgments is the same",
        ),
    )


CLASSES = (
    "class inclusion",
    "part–whole",
    "similar",
    "contrast",
    "attribute",
    "non-attribute",
    "case relation",
    "cause–purpose",
    "space–time",
    "reference",
)
"""Names of the ten classes of relations, which begin the names of the relations (Jurgens et al., 2012)."""


def _by_class(single: pl.DataFrame) -> Iterator[Claim]:
    """Return the reliability of all answers by class of relations, as Table 3 does by type of phrase."""
    whole = single.filter((pl.col("tuples") == _ALL) & (pl.col("per_half") == 0)).with_columns(
        pl.col("relation").str.extract(r"^(\d+)").cast(pl.Int64).alias("class")
    )
    for number, rows in whole.group_by("class", maintain_order=True):
        values = rows["spearman"].drop_nulls().to_numpy()
        code = cast("int", number[0])
        reach = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else None
        mean = float(values.mean())
        ends = (None, None) if reach is None else (mean - reach, mean + reach)
        yield Claim(f"{CLASSES[code - 1]} ({len(values)} relations): split-half ρ", mean, *ends)


def _gap(single: pl.DataFrame) -> tuple[float, float, float]:
    """Return the mean difference over relations, with its interval."""
    wide = [
        single.filter((pl.col("tuples") == tuples) & (pl.col("per_half") == per_half)).sort("relation")["spearman"]
        for tuples, per_half in (("2N tuples", 1), ("1N tuples", 2))
    ]
    apart = (wide[0] - wide[1]).drop_nulls().to_numpy()
    mean, reach = float(apart.mean()), 1.96 * float(apart.std(ddof=1)) / len(apart) ** 0.5
    return mean, mean - reach, mean + reach


def _chart(table: pl.DataFrame) -> Chart:
    order = [*(f"{factor:g}N tuples" for factor in _FACTORS), _ALL]
    return curves(
        pl.concat([table.filter(pl.col("tuples") == name).sort("judgments") for name in order]),
        "judgments",
        "value",
        "tuples",
        title="Reliability rises with the judgments, however they are spread over tuples",
        subtitle=f"{table['relations'][0]} relations of SemEval-2012 task 2, their mean with 95 % intervals",
        x_title="judgments in each half, for each item",
        y_title="split-half Spearman’s ρ",
        whole_numbers=False,
    )
