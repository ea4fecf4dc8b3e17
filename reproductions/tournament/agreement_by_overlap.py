"""§4.1: how often a majority of annotators makes the same decision, compared with chance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.charts import curves
from reproductions.tournament.recordings import FILE, PAPER
from steelyard.formats import read_judgments
from steelyard.observations import Comparisons, Index, Labels, Rankings
from steelyard.reliability import Agreement, agreement
from steelyard.reliability.majority import largest_class_chance, majority_histogram

CHANCE = 15.0
"""Per cent of random answers of 16 people in which 9 or more agree on one of three classes, §4.1."""
OBSERVED = 80.0
"""Per cent of the paper's triplets in which they did, §4.1."""
# Callison-Burch et al. (2010), agreement among the judges of these rankings.
WMT_AGREEMENT, WMT_KAPPA = 0.658, 0.487


@dataclass(frozen=True, slots=True)
class AgreementByOverlap(Experiment):
    """Take the pairs of outputs that m judges of WMT 2010 compared, and count how large the majority is."""

    name: ClassVar[str] = "tournament.agreement_by_overlap"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "§4.1: majorities by number of annotators, with their chance level"
    data: ClassVar[tuple[str, ...]] = (FILE,)

    most: int = 8
    replicates: int = 200

    def small(self) -> Self:
        """Look at fewer numbers of judges, and resample less often."""
        return replace(self, most=4, replicates=20)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Count majorities, and the agreement of all pairs of judges."""
        rankings = cast("Rankings", read_judgments(data / FILE).observations)
        pairs = labels_of_pairs(rankings.to_comparisons())
        table = self._majorities(pairs, progress)
        whole = agreement(rankings, replicates=self.replicates)
        progress(self.most, self.most)
        largest = table.filter(pl.col("share_of") == "observed").row(-1, named=True)
        by_chance = table.filter(pl.col("share_of") == "chance").row(-1, named=True)
        claims = _claims(largest, by_chance, whole)
        return Outcome(
            claims,
            table,
            lambda: curves(
                table,
                "judges",
                "share",
                "share_of",
                title=f"Of {largest['judges']} judges, more than half agree on {claims[1].ours:.0f} % of pairs; "
                f"by chance on {100 * by_chance['share']:.0f} %",
                subtitle="Share of pairs with an absolute majority for one of three answers, WMT 2010",
                x_title="judges who compared the pair",
            ),
            ("the proportion alternates between odd and even numbers of annotators, because half is not a majority",),
        )

    def _majorities(self, pairs: Labels, progress: Progress) -> pl.DataFrame:
        """Return the proportion of pairs with an absolute majority by the number of judges, and that by chance."""
        answers = np.bincount(pairs.item, minlength=len(pairs.items))
        rows = []
        for done, count in enumerate(range(2, self.most + 1), 1):
            if (answers == count).sum() < 20:
                continue
            histogram = majority_histogram(_only(pairs, answers == count))
            absolute = histogram.filter(pl.col("size") > count // 2).row(0, named=True)
            n = int(histogram["items"].sum())
            share, chance = absolute["at_least"], absolute["chance_at_least"]
            half_width = 1.96 * float(np.sqrt(share * (1 - share) / n))
            rows += [
                (count, "observed", share, max(share - half_width, 0.0), min(share + half_width, 1.0), n),
                (count, "chance", chance, chance, chance, n),
            ]
            progress(done, self.most)
        return pl.DataFrame(rows, schema=("judges", "share_of", "share", "lower", "upper", "pairs"), orient="row")


def _claims(largest: dict[str, Any], by_chance: dict[str, Any], whole: Agreement) -> tuple[Claim, ...]:
    observed, kappa = whole["observed_agreement"], whole["kappa_fixed_chance"]
    source = "Callison-Burch et al. (2010), for the same judgments"
    return (
        Claim(
            "chance that 9 or more of 16 agree on one of three classes",
            100 * float(1 - largest_class_chance(16, 3)[8]),
            published=CHANCE,
            unit="%",
            why="the exact multinomial; the paper prints a whole number",
        ),
        Claim(
            f"pairs on which more than half of {largest['judges']} judges agree",
            100 * largest["share"],
            100 * largest["lower"],
            100 * largest["upper"],
            OBSERVED,
            "%",
            f"other annotators, texts and numbers of annotators (16 in the paper). By chance "
            f"{100 * by_chance['share']:.0f} % here",
        ),
        Claim(
            "observed agreement of two judges",
            observed.value or 0.0,
            observed.lower,
            observed.upper,
            WMT_AGREEMENT,
            why=f"published by {source}",
        ),
        Claim(
            "κ of two judges, chance 1/3",
            kappa.value or 0.0,
            kappa.lower,
            kappa.upper,
            WMT_KAPPA,
            why=f"published by {source}",
        ),
    )


def labels_of_pairs(comparisons: Comparisons) -> Labels:
    """Turn comparisons into labels: an item is a pair of systems on a segment, its classes >, < and =.

    If a judge compared a pair more than once, the first comparison counts.
    """
    low = np.minimum(comparisons.left, comparisons.right).astype(np.int64)
    high = np.maximum(comparisons.left, comparisons.right)
    size = len(comparisons.items)
    key = (comparisons.task * size + low) * size + high
    _, pair = np.unique(key, return_inverse=True)
    _, first = np.unique(pair * len(comparisons.annotators) + comparisons.annotator, return_index=True)
    outcome = np.where(comparisons.left == low, comparisons.outcome, -comparisons.outcome)[first]
    return Labels(
        items=Index([str(number) for number in range(int(pair.max()) + 1)]),
        annotators=comparisons.annotators,
        annotator=comparisons.annotator[first],
        item=pair[first].astype(np.int32),
        label=(1 - outcome).astype(np.int32),
        classes=Index((">", "=", "<")),
    )


def _only(labels: Labels, selected: NDArray[np.bool_]) -> Labels:
    rows = np.flatnonzero(selected[labels.item])
    return replace(
        labels,
        item=labels.item[rows],
        label=labels.label[rows],
        annotator=labels.annotator[rows],
        task=labels.task[rows],
    )
