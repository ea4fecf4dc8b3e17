"""Table 2's form: how many adequacy judgments a tournament spares, by simulation on the WMT 2010 rankings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress, Shown
from reproductions.charts import bars
from reproductions.tournament.adequacy import READING, draw_adequacy, judged
from reproductions.tournament.recordings import FILE, PAPER, hold, read_sources

# Table 2, in per cent: of all translations, of the vertices, of the vertices, of the vertices, and of all.
COLLAPSED, AUTOMATIC, REFERENCE, PROPAGATED, SPARED = 40.93, 45.58, 35.56, 10.01, 67.85


@dataclass(frozen=True, slots=True)
class PropagationEffort(Experiment):
    """Hold tournaments on rankings with a reference among them, then ask for adequacy from the top down."""

    name: ClassVar[str] = "tournament.propagation_effort"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Table 2: adequacy judgments saved by a tournament"
    shows: ClassVar[tuple[Shown, ...]] = (
        Shown("Table 2", "approximated", "replayed on WMT 2010 rankings, which have no adequacy and no texts"),
    )
    data: ClassVar[tuple[str, ...]] = (FILE,)

    sources: int | None = None
    seed: int = 0

    def small(self) -> Self:
        """Take 150 rankings."""
        return replace(self, sources=150)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Count what collapses, what follows from the reference or an inadequate item, and what is asked."""
        sources = read_sources(data).with_reference().sample(self.sources, self.seed)
        items = sources.items()
        rehearsal = hold(sources, self.seed, adequate=draw_adequacy(sources, 0.0, self.seed))
        progress(1, 2)
        effort, _ = judged(rehearsal, items)
        progress(2, 2)
        vertices = effort.vertices
        each = vertices / len(sources)
        reasons = {
            "collapsed": "the texts are not in the data, so that identical texts are not collapsed; ours are ties only",
            "reference": f"because fewer outputs are collapsed, the reference is one of {each:.1f} vertices per "
            "source instead of 3.5, and "
            "fewer outputs are as good as it",
            "propagated": "depends on the number of adequate outputs, which is simulated",
        }
        rows = (
            ("collapsed", effort.collapsed, effort.items, COLLAPSED, reasons["collapsed"]),
            ("by the reference", effort.reference, vertices, REFERENCE, reasons["reference"]),
            ("by an inadequate output above", effort.propagated, vertices, PROPAGATED, reasons["propagated"]),
            ("both: labelled without asking", effort.automatic, vertices, AUTOMATIC, "the sum of the two rows above"),
            ("saved in total", effort.items - effort.asked, effort.items, SPARED, "follows from the rows above"),
        )
        table = pl.DataFrame(
            [(name, count, whole, 100 * count / whole, published) for name, count, whole, published, _ in rows],
            schema=("what", "outputs", "of", "share", "published"),
            orient="row",
        )
        claims = tuple(
            Claim(
                f"proportion of {'outputs' if whole == effort.items else 'vertices'}: {name}",
                100 * count / whole,
                published=published,
                unit="%",
                why=why,
            )
            for name, count, whole, published, why in rows
        )
        return Outcome(
            claims,
            table,
            lambda: bars(
                table,
                "what",
                "share",
                title=f"{claims[-1].ours:.0f} % of adequacy judgments are saved (published: {SPARED:.0f} %)",
                subtitle=f"{len(sources):,} sources of WMT 2010 with a reference; diamonds: Table 2",
                value_title="per cent",
                value_format=".0f",
            ),
            (READING, f"{effort.items:,} outputs, {vertices:,} vertices, {effort.asked:,} asked"),
        )
