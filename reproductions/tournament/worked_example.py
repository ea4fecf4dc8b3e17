"""Figure 1: six translations, their comparisons, and the dominance that follows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.charts import bars
from reproductions.tournament.recordings import PAPER
from steelyard.models.comparisons.dominance import dominance_graphs
from steelyard.observations import Comparisons, Index

SYSTEMS = ("LW", "Ref", "Google", "Systran", "Moses", "Bing")
EDGES = (
    ("Ref", "Bing", 1),
    ("LW", "Google", 1),
    ("Systran", "Moses", 1),
    ("Google", "Bing", 1),
    ("Google", "Systran", 0),
    ("LW", "Moses", 1),
)
"""The six comparisons of Figure 1(2): winner, loser and 1, or two tied translations and 0."""
PUBLISHED = {"LW": 4.0, "Bing": -4.0}
"""The values that the text prints (§3.1); the others are in the picture only."""


@dataclass(frozen=True, slots=True)
class WorkedExample(Experiment):
    """Build the graph of Figure 1 and count which translations dominate which."""

    name: ClassVar[str] = "tournament.worked_example"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Figure 1: dominance of six translations after six comparisons"
    shows: ClassVar[tuple[Shown, ...]] = (Shown("Figure 1", "reproduced"),)

    def small(self) -> Self:
        """Return the same: it is small."""
        return self

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Count translations."""
        index = Index(SYSTEMS)
        comparisons = Comparisons(
            items=index,
            left=np.array([index.code(one) for one, _, _ in EDGES], np.int32),
            right=np.array([index.code(other) for _, other, _ in EDGES], np.int32),
            outcome=np.array([outcome for *_, outcome in EDGES], np.int8),
        )
        graphs = dominance_graphs(comparisons, np.zeros(len(EDGES), np.int32))
        values = dict(zip((SYSTEMS[item] for item in graphs.item), graphs.dominance.tolist(), strict=True))
        as_vertices = dominance_graphs(comparisons, np.zeros(len(EDGES), np.int32), count="vertices")
        vertex_values = dict(
            zip((SYSTEMS[item] for item in as_vertices.item), as_vertices.dominance.tolist(), strict=True)
        )
        table = pl.DataFrame(
            {"translation": SYSTEMS, "dominance": [float(values[name]) for name in SYSTEMS]}
        ).with_columns(pl.col("translation").replace_strict(PUBLISHED, default=None).alias("published"))
        progress(1, 1)
        claims = [
            Claim(f"dominance of {name}", values[name], published=PUBLISHED.get(name))
            for name in sorted(SYSTEMS, key=lambda name: -values[name])
        ]
        return Outcome(
            (
                *claims,
                Claim("sum over the translations", sum(values.values())),
                Claim(
                    "dominance of LW if Google and Systran, which are tied, count as one",
                    vertex_values["LW"],
                    published=PUBLISHED["LW"],
                    why="the printed value counts translations, not vertices",
                ),
            ),
            table,
            lambda: bars(
                table,
                "translation",
                "dominance",
                title="LW dominates four of the other five translations",
                subtitle="Translations dominated, less those that dominate it; diamonds: values in the paper’s text",
                value_title="dominance",
                value_format=".0f",
            ),
            (
                "the comparisons are read from the picture and the text of §3.1 and §3.2",
                "the text calls Moses the third of the ranking and Bing the last, as here",
            ),
        )
