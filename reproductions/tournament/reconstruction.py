"""§4.4.1: the five-way rankings of WMT 2010, made again from the comparisons of a tournament."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.charts import bars
from reproductions.tournament.intervals import mean_interval, percent, ratio_interval
from reproductions.tournament.recordings import (
    FILE,
    PAPER,
    SIZE,
    Sources,
    comparisons_of,
    correlations,
    hold,
    ranks_of,
    read_sources,
)
from steelyard.observations import Comparisons, FloatArray

MEAN_R, SD_R, RIGHT = 0.93, 0.08, 85.4
"""§4.4.1: mean and standard deviation of r, and the share in per cent of uncompared pairs that come out right."""
OTHERS = "the paper's 860 source sentences cannot be identified; here all complete rankings are used"
TIES = "the paper does not say how ties count; "


@dataclass(frozen=True, slots=True)
class Reconstruction(Experiment):
    """Hold a tournament on every complete ranking, answered by it, and compare the ranks that come out."""

    name: ClassVar[str] = "tournament.reconstruction"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "§4.4.1: WMT 2010 rankings reconstructed from a tournament's comparisons"
    data: ClassVar[tuple[str, ...]] = (FILE,)

    sources: int | None = None
    seed: int = 0

    def small(self) -> Self:
        """Take 300 rankings."""
        return replace(self, sources=300)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Rank all sources, and say how well by language pair."""
        sources = read_sources(data).sample(self.sources, self.seed)
        pairs = sorted(set(sources.languages))
        rows = []
        measurements: list[FloatArray] = []
        for done, languages in enumerate(pairs, 1):
            part = sources.chosen([n for n, pair in enumerate(sources.languages) if pair == languages])
            measured = _measure(part, comparisons_of(hold(part, self.seed)))
            measurements.append(measured)
            r, right = mean_interval(measured[0]), ratio_interval(measured[1], measured[2])
            rows.append((languages, len(part), *r, right[0]))
            progress(done, len(pairs))
        r, strict_right, uncompared, right, untied, separated = np.concatenate(measurements, axis=1)
        present = r[~np.isnan(r)]
        claims = (
            Claim("mean r of the original and the new ranks", *mean_interval(r), MEAN_R, why=OTHERS),
            Claim("standard deviation of r", float(present.std(ddof=1)), published=SD_R, why=OTHERS),
            Claim(
                "uncompared pairs in the correct order; untied pairs only, half for those reconstructed as ties",
                *percent(ratio_interval(right, untied)),
                RIGHT,
                "%",
                f"{TIES}this reading is the nearest; {OTHERS}",
            ),
            Claim(
                "uncompared pairs in the correct order; ties as a third outcome",
                *percent(ratio_interval(strict_right, uncompared)),
                RIGHT,
                "%",
                f"{TIES}this is the stricter reading",
            ),
            Claim(
                "uncompared pairs, untied before, that come out untied",
                *percent(ratio_interval(separated, untied)),
                RIGHT,
                "%",
                f"{TIES}perhaps the paper counts these",
            ),
        )
        names = ("languages", "rankings", "r", "lower", "upper", "uncompared_right")
        table = pl.DataFrame(rows, schema=names, orient="row").with_columns(published=pl.lit(MEAN_R))
        flat = int(np.isnan(r).sum())
        return Outcome(
            claims,
            table,
            lambda: bars(
                table,
                "languages",
                "r",
                title=f"Six comparisons give back five-way rankings at r = {claims[0].ours:.2f}",
                subtitle="Mean r of original and new ranks with 95 % intervals; diamonds: published, over all",
                value_title="Pearson’s r",
            ),
            (f"{len(sources):,} rankings; {flat} have no r, because all five are tied before or after",),
        )


def _measure(sources: Sources, comparisons: Comparisons) -> FloatArray:
    """Return, for each source: r; uncompared pairs right and in all; untied ones right, in all, and untied after."""
    ranks = ranks_of(sources, comparisons)
    compared = np.zeros((sources.ranks.size, SIZE), np.bool_)
    compared[comparisons.left, comparisons.right % SIZE] = True
    compared[comparisons.right, comparisons.left % SIZE] = True
    counts = np.zeros((5, len(sources)))
    for one, other in combinations(range(SIZE), 2):
        new = ~compared.reshape(len(sources), SIZE, SIZE)[:, one, other]
        true, said = _sign(sources.ranks, one, other), _sign(ranks, one, other)
        untied = new & (true != 0)
        counts += (
            new & (true == said),
            new,
            untied * np.where(said == 0, 0.5, said == true),
            untied,
            untied & (said != 0),
        )
    return np.vstack([correlations(sources.ranks, ranks), counts])


def _sign(ranks: NDArray[np.integer], one: int, other: int) -> NDArray[np.integer]:
    return np.sign(ranks[:, one] - ranks[:, other])
