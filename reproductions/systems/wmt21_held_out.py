"""Fewer judgments of WMT21's systems: estimates from a part of the HITs against the other HITs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.systems.wmt21 import COUNTED, FOLDER, PAIRS
from steelyard.models.systems.adjusted_means import Cells, adjusted_means, plain_means
from steelyard.observations import FloatArray, IntArray

Z_SCORES, MEANS, ADJUSTED = "z-scores", "means", "adjusted means"
REFERENCES = (ADJUSTED, Z_SCORES, MEANS)
UNITS = ("hit", "annotator")


class Recorded(NamedTuple):
    """All assessments of a language pair as parallel arrays; `is_counted` excludes the checks of annotators."""

    system: IntArray
    segment: IntArray
    annotator: IntArray
    hit: IntArray
    value: FloatArray
    is_counted: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Wmt21HeldOut(Experiment):
    """Draw whole HITs, or all HITs of some annotators, score the systems, and correlate with the remaining HITs."""

    name: ClassVar[str] = "systems.wmt21_held_out"
    paper: ClassVar[str] = "Akhbardeh et al., 2021"
    title: ClassVar[str] = "Fewer judgments of WMT21's systems: agreement with held-out judgments"
    data: ClassVar[tuple[str, ...]] = tuple(f"{FOLDER}/{pair}.csv.gz" for pair in PAIRS)

    pairs: tuple[str, ...] = PAIRS
    judgments: tuple[int, ...] = (100, 200, 500)
    draws: int = 40
    seed: int = 0

    def small(self) -> Self:
        """Return a few draws of the smallest language pair."""
        return replace(self, pairs=PAIRS[:1], judgments=(100,), draws=5)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Correlate in every cell: language pair, what is drawn, judgments per system, reference."""
        cells = [(pair, unit, count) for pair in self.pairs for unit in UNITS for count in self.judgments]
        rows: list[dict[str, object]] = []
        for done, (pair, unit, count) in enumerate(cells, 1):
            recorded = read_recorded(data, pair)
            for draw in range(self.draws):
                rng = np.random.default_rng([self.seed, count, draw])
                chosen = _draw(recorded, unit, count, rng)
                ours, others = (system_scores(recorded, part) for part in (chosen, ~chosen))
                for method, reference in ((m, r) for m in (Z_SCORES, MEANS, ADJUSTED) for r in REFERENCES):
                    both = np.isfinite(ours[method]) & np.isfinite(others[reference])
                    rho = stats.spearmanr(ours[method][both], others[reference][both]).statistic
                    rows.append(
                        {"pair": pair, "drawn": unit, "judgments": count, "draw": draw, "reference": reference}
                        | {"method": method, "rho": float(rho)}
                    )
            progress(done, len(cells))
        table = _summary(pl.DataFrame(rows))
        return Outcome(
            tuple(_claims(table)),
            table,
            None,
            (
                "Adjusted means are those of compare_systems: generalised least squares with sources and annotators as "
                "random effects. z-scores are WMT's, standardised with the rows that were drawn, checks included.",
                "Three references, from the HITs that were not drawn, since each favours its own method: adjusted "
                "means, z-scores and plain means. Plain means include the differences between annotators.",
                "Errors are standard errors over draws, which share most of the recording.",
            ),
        )


def read_recorded(data: Path, pair: str) -> Recorded:
    """Read all assessments of a language pair."""
    frame = pl.read_csv(data / FOLDER / f"{pair}.csv.gz", infer_schema_length=None)

    def codes(name: str) -> IntArray:
        return np.unique(frame[name].cast(pl.String).to_numpy(), return_inverse=True)[1].astype(np.int32)

    return Recorded(
        codes("system"),
        codes("segment"),
        codes("annotator"),
        codes("hit"),
        frame["score_raw"].cast(pl.Float64).to_numpy(),
        frame["type"].is_in(COUNTED).to_numpy(),
    )


def _draw(recorded: Recorded, unit: str, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw HITs or annotators until there are `count` judgments per system, at most half of all."""
    code = recorded.hit if unit == "hit" else recorded.annotator
    order = rng.permutation(int(code.max()) + 1)
    sizes = np.bincount(code[recorded.is_counted], minlength=len(order))[order]
    target = min(count * (int(recorded.system.max()) + 1), int(sizes.sum()) // 2)
    is_drawn = np.zeros(len(order), np.bool_)
    is_drawn[order[: int(np.searchsorted(np.cumsum(sizes), target)) + 1]] = True
    return np.asarray(is_drawn[code])


def system_scores(recorded: Recorded, chosen: NDArray[np.bool_]) -> dict[str, FloatArray]:
    """Score the systems from some of the rows by each method; NaN for systems without a judgment."""
    who, value = recorded.annotator[chosen], recorded.value[chosen]
    count = np.bincount(who)
    mean = np.bincount(who, value) / np.maximum(count, 1)
    sd = np.sqrt(np.bincount(who, (value - mean[who]) ** 2) / np.maximum(count - 1, 1))
    counted = chosen & recorded.is_counted
    who, value = recorded.annotator[counted], recorded.value[counted]
    n_systems = int(recorded.system.max()) + 1
    raw = Cells(recorded.system[counted], recorded.segment[counted], who, value, n_systems)
    standard = (value - mean[who]) / np.maximum(sd[who], 1e-6)
    return {
        Z_SCORES: plain_means(raw._replace(value=standard)).score,
        MEANS: plain_means(raw).score,
        ADJUSTED: adjusted_means(raw).score,
    }


def _summary(single: pl.DataFrame) -> pl.DataFrame:
    """Average over draws, with the difference from z-scores and its standard error."""
    key = ["pair", "drawn", "judgments", "reference"]
    base = single.filter(pl.col("method") == Z_SCORES).select(*key, "draw", pl.col("rho").alias("z_rho"))
    gain = pl.col("rho") - pl.col("z_rho")
    return (
        single.join(base, on=[*key, "draw"])
        .group_by(*key, "method", maintain_order=True)
        .agg(
            pl.len().alias("draws"),
            pl.col("rho").mean(),
            gain.mean().alias("over_z"),
            (gain.std() / pl.len().sqrt()).alias("error"),
        )
    )


def _claims(table: pl.DataFrame) -> list[Claim]:
    claims = []
    for row in table.filter(pl.col("method") == ADJUSTED).iter_rows(named=True):
        reach = 1.96 * row["error"]
        what = f"{row['pair']}, {row['judgments']} judgments per system, {row['drawn']}s drawn"
        claims.append(
            Claim(
                f"{what}: adjusted means over z-scores, ρ with {row['reference']} of held-out judgments",
                row["over_z"],
                row["over_z"] - reach,
                row["over_z"] + reach,
            )
        )
    return claims
