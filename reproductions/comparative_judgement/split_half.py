"""Split-half reliability of comparative-judgement sessions: the judges parted in two at random."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.charts import bars
from reproductions.comparative_judgement.sessions import DECISIONS, PAPER, SESSIONS, Session, read_sessions
from steelyard.observations import FloatArray
from steelyard.reliability import scale_separation
from steelyard.reliability.correlation import pearson
from steelyard.reliability.splitting import FIRST, SECOND, Splitter, take
from steelyard.report.charts import Chart

_WHY = "the published splits are not known, only that judges are split at random"


@dataclass(frozen=True, slots=True)
class JudgeSplitHalf(Experiment):
    """Part the judges in two, fit a scale to either half, correlate; the median of the trials, as published."""

    name: ClassVar[str] = "comparative_judgement.split_half"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Median split-half reliability over judges"
    data: ClassVar[tuple[str, ...]] = (DECISIONS, SESSIONS)

    most: int = 5000
    """Leave out the sessions with more decisions: two fits a trial would take minutes."""
    trials: int = 60
    seed: int = 0

    def small(self) -> Self:
        """Return the sessions with a few hundred decisions, in few trials."""
        return replace(self, most=500, trials=20)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Split session by session."""
        sessions = read_sessions(data, self.most)
        rows = []
        for done, session in enumerate(sessions):
            rows.append((session.name, *_median(session, self.trials, self.seed)))
            progress(done + 1, len(sessions))
        schema = {"session": pl.String} | dict.fromkeys(("median_r", "lower", "upper", "published"), pl.Float64)
        table = pl.DataFrame(rows, schema=schema, orient="row")
        claims = [
            Claim(row["session"], row["median_r"], row["lower"], row["upper"], published=row["published"], why=_WHY)
            for row in table.iter_rows(named=True)
        ]
        apart = (table["median_r"] - table["published"]).abs()
        claims.append(
            Claim("mean difference from the published median", float(np.mean(apart.to_list())), published=0.0, why=_WHY)
        )
        return Outcome(
            tuple(claims),
            table,
            lambda: _chart(table),
            (
                f"Sessions with over {self.most:,} decisions are left out.",
                "Each half is fitted like a whole session, without the items that were not judged in it.",
                "Intervals are for the median over these random splits (order statistics), not over judges.",
            ),
        )


def _median(session: Session, trials: int, seed: int) -> tuple[float, float, float, float]:
    """Return the median correlation, its interval, and the published one."""
    comparisons = session.comparisons
    splitter = Splitter.of(comparisons, "annotator", seed)
    correlations = []
    for trial in range(trials):
        halves = splitter.halves(trial, None)
        one, other = (_scale(session, halves == half) for half in (FIRST, SECOND))
        present = ~(np.isnan(one) | np.isnan(other))
        correlation = pearson(one[present], other[present])
        if correlation is not None:
            correlations.append(correlation.r)
    ordered = np.sort(correlations)
    # The ranks between which the median of the population of splits lies with 95 % confidence.
    reach = 0.98 * np.sqrt(len(ordered))
    low, high = int(max(len(ordered) / 2 - reach, 0)), int(min(len(ordered) / 2 + reach, len(ordered) - 1))
    return float(np.median(ordered)), ordered[low], ordered[high], session.published["median_split_half_r"]


def _scale(session: Session, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> FloatArray:
    """Fit the decisions of a half; NaN for items that it does not judge."""
    scale = scale_separation(take(session.comparisons, keep), replicates=0).scale
    theta = np.full(len(session.comparisons.items), np.nan)
    theta[session.comparisons.items.codes(scale["item"].to_list())] = scale["theta"].to_numpy()
    return theta


def _chart(table: pl.DataFrame) -> Chart:
    return bars(
        table,
        "session",
        "median_r",
        title="Halves of the judges agree as much as published",
        subtitle="diamonds: published",
        value_title="median split-half r",
    )
