"""Scale separation reliability of twenty comparative-judgement sessions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.charts import bars
from reproductions.comparative_judgement.sessions import DECISIONS, PAPER, SESSIONS, read_sessions
from steelyard.reliability import scale_separation
from steelyard.report.charts import Chart

_SSR, _G, _IN_LINE = "scale_separation_reliability", "separation_index", "decision_consistency"


@dataclass(frozen=True, slots=True)
class ScaleSeparation(Experiment):
    """Fit a Bradley–Terry scale to every session, as sirt::btm, and compare its reliability with the published one."""

    name: ClassVar[str] = "comparative_judgement.separation"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Scale separation reliability of twenty sessions"
    data: ClassVar[tuple[str, ...]] = (DECISIONS, SESSIONS)

    most: int | None = None
    """Leave out the sessions with more decisions."""
    with_interval: int = 9000
    """Sessions with more decisions get no interval: it takes a fit without each of the judges."""

    def small(self) -> Self:
        """Return the sessions with a few hundred decisions."""
        return replace(self, most=700)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Fit session by session."""
        sessions = read_sessions(data, self.most)
        rows, claims = [], []
        for done, session in enumerate(sessions):
            short = len(session.comparisons) <= self.with_interval
            separation = scale_separation(session.comparisons, replicates=200 if short else 0)
            ssr = separation[_SSR]
            value = float(ssr.value or 0.0)
            what = f"{session.name} ({session.published['n_items']} items, {len(session.comparisons):,} decisions)"
            claims.append(Claim(what, value, ssr.lower, ssr.upper, published=session.published["ssr"]))
            rows.append(
                (
                    session.name,
                    value,
                    ssr.lower,
                    ssr.upper,
                    session.published["ssr"],
                    float(separation[_G].value or 0.0),
                    session.published["separation_g"],
                    float(separation[_IN_LINE].value or 0.0),
                    session.published["prop_correct_judgements"],
                    separation.pairs,
                    session.published["n_pairs_judged"],
                )
            )
            progress(done + 1, len(sessions))
        table = pl.DataFrame(rows, schema=_COLUMNS, orient="row")
        claims += [
            _largest(table, "ssr", "largest difference from a published reliability"),
            _largest(
                table,
                "in_line",
                "largest difference from a published proportion of decisions consistent with the scale",
            ),
            _largest(table, "pairs", "largest difference from a published number of pairs judged"),
        ]
        return Outcome(
            tuple(claims),
            table,
            lambda: _chart(table),
            (
                "Intervals are for the same items and new judges: a jackknife that leaves out one judge at a time.",
                "The published values have six decimals; ε = 0.3 wins are added before fitting, as sirt::btm does.",
            ),
        )


_COLUMNS = {
    "session": pl.String,
    **dict.fromkeys(("ssr", "lower", "upper", "ssr_published", "g", "g_published"), pl.Float64),
    **dict.fromkeys(("in_line", "in_line_published"), pl.Float64),
    **dict.fromkeys(("pairs", "pairs_published"), pl.Int64),
}


def _largest(table: pl.DataFrame, column: str, what: str) -> Claim:
    apart = (table[column] - table[f"{column}_published"]).abs().to_list()
    return Claim(what, float(max(apart)), published=0.0)


def _chart(table: pl.DataFrame) -> Chart:
    return bars(
        table.select("session", "ssr", "lower", "upper", pl.col("ssr_published").alias("published")),
        "session",
        "ssr",
        title="Every published reliability is met",
        subtitle="diamonds: published; lines: 95 % intervals over judges",
        value_title="scale separation reliability",
    )
