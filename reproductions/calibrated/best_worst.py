"""Best–worst choices: counting, maxdiff and the calibrated scale by the number of choices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.best_worst.ruddit import RUDDIT_ANSWERS, RUDDIT_TUPLES, read_ruddit
from reproductions.best_worst.semeval import ANSWERS, answers_by_relation
from reproductions.calibrated.methods import CALIBRATED, PAPER, scored, spearman
from steelyard.models.calibrated.scale import CalibratedScale
from steelyard.models.choices.counting import Counting
from steelyard.models.choices.maxdiff import MaxDiff
from steelyard.observations import Choices
from steelyard.reliability.splitting import take

COUNTING, MAXDIFF = "counting", "maxdiff"
BY_TUPLES, BY_ANSWERS = "tuples", "answers"


@dataclass(frozen=True, slots=True)
class BestWorst(Experiment):
    """Score some choices of one half by three methods, and correlate with the counting scores of the other half."""

    name: ClassVar[str] = "calibrated.best_worst"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Best–worst choices: agreement with the other half by choices per item"
    data: ClassVar[tuple[str, ...]] = (ANSWERS, RUDDIT_ANSWERS, RUDDIT_TUPLES)

    budgets: tuple[float, ...] = (0.5, 1, 2, 4)
    relations: int | None = None
    """How many relations of SemEval-2012 to take; None for all 79."""
    splits: int = 4
    """Splits of each relation of SemEval-2012."""
    large_splits: int = 3
    """Splits of Ruddit, which has 6,000 items."""
    draws: int = 1000
    seed: int = 0

    def small(self) -> Self:
        """Return a few relations at one budget."""
        return replace(self, budgets=(2,), relations=6, splits=1, large_splits=0, draws=80)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Split recording after recording, by tuples and by answers."""
        recordings = [("SemEval-2012", c, self.splits) for c in answers_by_relation(data, self.relations).values()]
        if self.large_splits:
            recordings.append(("Ruddit", read_ruddit(data), self.large_splits))
        rows: list[dict[str, object]] = []
        for number, (name, choices, splits) in enumerate(recordings):
            for split in range(splits):
                rows += self._rows(name, choices, number, split)
            progress(number + 1, len(recordings))
        table = _summary(pl.DataFrame(rows))
        return Outcome(
            tuple(_claims(table)),
            table,
            None,
            (
                "tuples: the halves share no tuple; answers: the answers to a tuple are divided, so that both halves "
                "share what the other items of a tuple do to an answer. No names of annotators are recorded.",
                "SemEval-2012: errors are over relations, each with several splits. Ruddit: over splits.",
            ),
        )

    def _rows(self, name: str, choices: Choices, number: int, split: int) -> Iterator[dict[str, object]]:
        for how in (BY_TUPLES, BY_ANSWERS):
            for budget in self.budgets:
                rng = np.random.default_rng([self.seed, number, split, round(10 * budget)])
                half = _half(choices, how, rng)
                chosen = rng.permutation(np.flatnonzero(half))[: round(budget * len(choices.items))]
                few, others = (take(choices, rows) for rows in (np.isin(np.arange(len(half)), chosen), ~half))
                reference = scored(Counting(draws=20), others)
                models = (
                    (COUNTING, Counting(draws=20)),
                    (MAXDIFF, MaxDiff(draws=20)),
                    (CALIBRATED, CalibratedScale(draws=self.draws)),
                )
                for method, model in models:
                    yield {
                        "data": name,
                        "split": how,
                        "choices": float(budget),
                        "unit": number if name == "SemEval-2012" else split,
                        "method": method,
                        "rho": spearman(scored(model, few), reference),
                    }


def _half(choices: Choices, how: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw half of the tuples with all their answers, or half of the answers."""
    if how == BY_ANSWERS:
        return np.asarray(rng.permutation(len(choices)) < len(choices) // 2)
    of_tuple = np.unique(np.sort(choices.shown, axis=1), axis=0, return_inverse=True)[1].ravel()
    n_tuples = int(of_tuple.max()) + 1
    return np.asarray((rng.permutation(n_tuples) < n_tuples // 2)[of_tuple])


def _summary(single: pl.DataFrame) -> pl.DataFrame:
    """Average over units, with the gains of the calibrated scale and their standard errors."""
    key = ["data", "split", "choices"]
    by_unit = single.group_by(*key, "unit", "method", maintain_order=True).agg(pl.col("rho").mean())
    wide = by_unit.pivot("method", index=[*key, "unit"], values="rho")
    gains = {name: pl.col(CALIBRATED) - pl.col(name) for name in (COUNTING, MAXDIFF)}
    return wide.group_by(*key, maintain_order=True).agg(
        pl.len().alias("units"),
        pl.col(COUNTING, MAXDIFF, CALIBRATED).mean(),
        *(gain.mean().alias(f"over_{name}") for name, gain in gains.items()),
        *((gain.std() / pl.len().sqrt()).alias(f"error_{name}") for name, gain in gains.items()),
    )


def _claims(table: pl.DataFrame) -> Iterator[Claim]:
    for row in table.iter_rows(named=True):
        for name in (COUNTING, MAXDIFF):
            gain, error = row[f"over_{name}"], row[f"error_{name}"]
            reach = 1.96 * error if error is not None else None
            yield Claim(
                f"{row['data']}, {row['choices']:g} choices per item, split by {row['split']}: ρ over {name}",
                gain,
                None if reach is None else gain - reach,
                None if reach is None else gain + reach,
            )
