"""Agreement of people, of models, and between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from steelyard.observations import Observations
from steelyard.reliability.groups import group_agreement
from steelyard.reliability.statistic import Statistic, statistics_table
from steelyard.study.judges import ScoreBasis

PEOPLE, MODELS, BOTH = "two people", "two models", "a person and a model"
WHO = (PEOPLE, MODELS, BOTH)


@dataclass(frozen=True, slots=True)
class KindAgreement:
    """Agreement of two annotators of given kinds, in one criterion of a stage."""

    stage: str
    criterion: str
    between: str
    measure: str
    statistic: Statistic

    def table(self) -> pl.DataFrame:
        """Return the statistic as a row of the table of reliability."""
        named = (pl.lit(self.stage).alias("stage"), pl.lit(self.criterion).alias("criterion"), pl.all())
        label = f"agreement of {self.between}"
        note = "; ".join(text for text in (self.measure, self.statistic.note) if text)
        return statistics_table([replace(self.statistic, label=label, note=note)]).select(named)


def agreement_by_kind(
    stage: str, people: Mapping[str, Observations], models: Mapping[str, Observations]
) -> list[KindAgreement]:
    """Return the agreement of people, of models and between them, for each criterion that both answered."""
    rows = []
    for criterion in people:
        if criterion not in models or not len(people[criterion]) or not len(models[criterion]):
            continue
        result = group_agreement(people[criterion], models[criterion])
        for who, statistic in zip(WHO, (result.first, result.second, result.between), strict=True):
            rows.append(KindAgreement(stage, criterion, who, result.measure, statistic))
    return rows


def people_and_models(basis: ScoreBasis, rows: Sequence[KindAgreement]) -> str:
    """Say how much of the scores rests on models, and how well models agree with people; empty without models."""
    sentences = [basis.sentence] if basis.sentence else []
    for between in (row for row in rows if row.between == BOTH):
        among = next(
            row
            for row in rows
            if (row.stage, row.criterion) == (between.stage, between.criterion) and row.between == PEOPLE
        )
        of = f" ({between.criterion})" if between.criterion else ""
        if between.statistic.value is None:
            sentences.append(f"Agreement of models and people{of}: unknown, {between.statistic.note}.")
            continue
        people = "unknown" if among.statistic.value is None else f"{among.statistic.value:.2f}"
        sentences.append(
            f"Agreement of a person and a model{of}: {between.statistic.value:.2f} (two people: {people})."
        )
    return " ".join(sentences)
