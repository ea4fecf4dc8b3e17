"""The summary section: the main results."""

from __future__ import annotations

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.history import first_and_last
from steelyard.analysis.kinds import MODELS
from steelyard.analysis.reliability import CURVE
from steelyard.report.document import Block, Fact, Section, facts_table
from steelyard.report.sections.costs import cost_table


def section(analysis: Analysis) -> Section:
    """Return the main results."""
    study, history = analysis.study, analysis.history
    counted = history.counted
    facts = [
        Fact("items", len(study.items)),
        Fact("annotators whose judgments count", counted.filter(pl.col("annotator") != "")["annotator"].n_unique()),
        Fact("judgments that count", counted.height),
    ]
    fit = analysis.fit
    if not isinstance(fit, str):
        judged = fit.scores.filter(pl.col("judgments") > 0)
        middle = judged["judgments"].median()
        if isinstance(middle, int | float):
            facts.append(Fact("judgments per item, median", float(middle)))
    facts += _reliability(analysis)
    facts += _models(analysis)
    costs = cost_table(analysis)
    if costs.height and costs["cost"][-1]:
        facts.append(Fact("cost", float(costs["cost"][-1]), study.config.pay.currency))
    ends = first_and_last(history.judgments)
    if ends is not None:
        facts.append(Fact("collected", text=f"{ends[0]:%Y-%m-%d} to {ends[1]:%Y-%m-%d} (UTC)"))
    blocks: tuple[Block, ...] = (facts_table("summary", "Main results.", facts),)
    return Section("summary", "In short", blocks)


def _models(analysis: Analysis) -> list[Fact]:
    """Say how much of the scores rests on models, and how well models and people agree; nothing without models."""
    if not analysis.history.model_records and not analysis.basis.priors:
        return []
    facts = [Fact("people and models", text=analysis.basis.sentence)]
    for row in analysis.agreement_by_kind:
        if row.between != MODELS and row.statistic.value is not None:
            of = " ".join(part for part in (_stage(analysis, row.stage), row.criterion) if part)
            name = f"agreement of {row.between}" + (f", {of}" if of else "")
            facts.append(Fact(name, row.statistic.value, lower=row.statistic.lower, upper=row.statistic.upper))
    return facts


def _reliability(analysis: Analysis) -> list[Fact]:
    facts = []
    for part in analysis.reliability:
        for statistic in part.statistics:
            if statistic.key in {CURVE, "alpha_interval", "alpha_nominal"} and statistic.value is not None:
                of = " ".join(part for part in (_stage(analysis, part.stage), part.criterion) if part)
                name = _NAMES[statistic.key] + (f", {of}" if of else "")
                facts.append(Fact(name, statistic.value, lower=statistic.lower, upper=statistic.upper))
    return facts


_NAMES = {
    CURVE: "split-half reliability (Spearman’s ρ)",
    "alpha_interval": "Krippendorff’s α (interval)",
    "alpha_nominal": "Krippendorff’s α (nominal)",
}


def _stage(analysis: Analysis, name: str) -> str:
    return name if len(analysis.study.config.stages) > 1 else ""
