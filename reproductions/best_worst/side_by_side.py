"""Sliders side by side, as RankME has them: what the sliders say beyond the ranks, on real summaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self, cast

import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.best_worst.rated_and_chosen import PAPER
from steelyard.formats import read_judgments, read_table
from steelyard.models.ratings.mean import Mean
from steelyard.observations import Ratings
from steelyard.reliability import compare_scorings, split_half

RATINGS = "squality/ratings.csv.gz"
CRITERIA = ("correctness", "selection", "overall")
_PAGE = ("annotator", "story", "question")


@dataclass(frozen=True, slots=True)
class SideBySide(Experiment):
    """Score three summaries on one page by their sliders, and by their ranks only, and compare the reliability."""

    name: ClassVar[str] = "best_worst.side_by_side"
    paper: ClassVar[str] = PAPER
    title: ClassVar[str] = "Sliders side by side: reliability of values and of ranks, on summaries"
    data: ClassVar[tuple[str, ...]] = (RATINGS,)

    trials: int = 100
    seed: int = 0

    def small(self) -> Self:
        """Return few splits."""
        return replace(self, trials=3)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Split the judgments of each summary, criterion by criterion."""
        frame = read_table(data / RATINGS).with_columns(
            pl.col(CRITERIA).cast(pl.Float64),
            item=pl.concat_str("story", "question", "system", separator="|"),
            page=pl.concat_str(*_PAGE, separator="|"),
        )
        claims: list[Claim] = []
        for number, criterion in enumerate(CRITERIA, 1):
            claims += self._claims(frame, criterion)
            progress(number, len(CRITERIA))
        return Outcome(
            tuple(claims),
            notes=(
                "SQuALITY: 300 summaries of 100 questions, three on a page, each page judged by three reviewers on "
                "sliders from 0 to 100. One judgment of each summary is in each half.",
                "Ranks are computed within each page from the same sliders; equal values share their mean rank. Unlike "
                "ranks, slider values also measure the distance between summaries, and compare summaries of different "
                "pages.",
                "Values within questions are the slider values minus the mean of their page, which removes the biases "
                "of reviewers and the difficulty of questions.",
                "No reviewer judged the same summaries one at a time, so the effect of showing summaries together "
                "cannot be measured.",
            ),
        )

    def _claims(self, frame: pl.DataFrame, criterion: str) -> Iterator[Claim]:
        value = pl.col(criterion)
        rank = value.rank("average").over("page")
        for what, expression, scale in (
            ("values", value, (0.0, 100.0)),
            ("values within questions", (value - value.mean().over("page") + 100) / 2, (0.0, 100.0)),
            ("ranks", rank, (1.0, 3.0)),
        ):
            ratings = _ratings(frame, expression, scale)
            statistic = split_half(ratings, per_half=1, trials=self.trials, seed=self.seed)["split_half_spearman"]
            claim = f"{criterion}: split-half ρ of {what}"
            yield Claim(claim, float(statistic.value or 0), statistic.lower, statistic.upper)
        both = [
            Mean(draws=20).fit(_ratings(frame, each, scale))
            for each, scale in ((value, (0.0, 100.0)), (rank, (1.0, 3.0)))
        ]
        rho = compare_scorings(*both)["spearman"]
        yield Claim(f"{criterion}: ρ of the two scorings", float(rho.value or 0), rho.lower, rho.upper)


def _ratings(frame: pl.DataFrame, value: pl.Expr, scale: tuple[float, float]) -> Ratings:
    table = frame.select("annotator", "item", value.alias("value"))
    return cast("Ratings", read_judgments(table, kind="ratings", scale=scale).observations)
