"""The alternative annotator test on the authors' data, and flips of judges with the order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import polars as pl

from reproductions.base import Claim, Experiment, Outcome, Progress
from reproductions.judges.recordings import CRITERIA, SUMMEVAL
from steelyard.reliability.alternative_annotator import alternative_annotator_test

PROMPTS, VERDICTS = "prompt_quality_judges/ratings.csv.gz", "llmbar/verdicts.csv.gz"

PUBLISHED: dict[str, dict[str, tuple[float, float]]] = {
    "SummEval": {
        "gemini_flash": (0.00, 0.46),
        "gemini_pro": (0.00, 0.44),
        "gpt-4o": (0.00, 0.48),
        "llama-31": (0.00, 0.58),
        "gpt-4o-mini": (0.00, 0.54),
        "mistral-v03": (0.00, 0.62),
    },
    "10K Prompts": {
        "gemini_flash": (0.31, 0.67),
        "gemini_pro": (0.08, 0.63),
        "gpt-4o": (0.69, 0.76),
        "llama-31": (0.15, 0.67),
        "gpt-4o-mini": (0.92, 0.80),
        "mistral-v03": (0.15, 0.67),
    },
}
"""Winning rate and advantage probability, as printed in the authors' notebook."""
EPSILON = {"SummEval": 0.2, "10K Prompts": 0.15}


@dataclass(frozen=True, slots=True)
class AlternativeAnnotators(Experiment):
    """Compute winning rates and advantage probabilities of six models on two of the paper's data sets."""

    name: ClassVar[str] = "judges.alternative_annotator"
    paper: ClassVar[str] = "Calderon et al., 2025"
    title: ClassVar[str] = "The alternative annotator test: winning rate and advantage probability of six models"
    data: ClassVar[tuple[str, ...]] = (SUMMEVAL, PROMPTS)

    models: int = 6

    def small(self) -> Self:
        """Return one model."""
        return replace(self, models=1)

    def run(self, data: Path, progress: Progress) -> Outcome:
        """Test each model."""
        claims = []
        for number, (name, table) in enumerate({"SummEval": _summeval(data), "10K Prompts": _prompts(data)}.items()):
            people = table.filter(pl.col("kind") == "human").select("annotator", "item", "value")
            for model, (rate, advantage) in list(PUBLISHED[name].items())[: self.models]:
                own = table.filter(pl.col("annotator") == model)
                judge = dict(own.select("item", "value").iter_rows())
                result = alternative_annotator_test(people, judge, epsilon=EPSILON[name])
                claims.append(Claim(f"{name}, {model}: winning rate", round(result.winning_rate, 2), published=rate))
                claims.append(Claim(f"{name}, {model}: advantage", round(result.advantage, 2), published=advantage))
            progress(number + 1, 2)
        return Outcome(tuple(claims))


def _summeval(data: Path) -> pl.DataFrame:
    table = pl.read_csv(data / SUMMEVAL).unpivot(
        index=["judge", "judge_kind", "document", "system"], on=list(CRITERIA), variable_name="criterion"
    )
    item = pl.concat_str(pl.col("document").cast(str), "system", "criterion", separator="/")
    return table.select(
        pl.col("judge").alias("annotator"), pl.col("judge_kind").alias("kind"), item.alias("item"), "value"
    )


def _prompts(data: Path) -> pl.DataFrame:
    table = pl.read_csv(data / PROMPTS, infer_schema_length=None)
    return table.select(
        pl.col("judge").alias("annotator"), pl.col("judge_kind").alias("kind"), pl.col("item").cast(str), "value"
    )
