"""Charts for notebooks, public as `steelyard.plot`: an Altair chart of a study, a fit or a scores table.

    import steelyard
    study = steelyard.Study.open("verbs")
    steelyard.plot.scores(study)
    steelyard.plot.save(steelyard.plot.reliability(study), "reliability.svg")

Titles state what the chart shows. The charts are those of the dashboard and the report.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.annotators import annotator_table
from steelyard.analysis.history import history_of
from steelyard.analysis.match_quality import match_quality_by_round
from steelyard.analysis.reliability import CURVE
from steelyard.analysis.tables import forecast, label_counts, progress_over_time, ranked_items, score_histogram
from steelyard.errors import DataError, did_you_mean
from steelyard.models.fit import Fit
from steelyard.models.systems.comparison import SystemComparison
from steelyard.observations import Observations
from steelyard.reliability import split_half_by_budget
from steelyard.report import charts, quality_charts
from steelyard.report.charts import Chart
from steelyard.report.plan_chart import save_chart
from steelyard.report.sections.stopping import MEASURES, interim_analysis_table
from steelyard.report.systems import leaderboard, parts_of, significance_matrix
from steelyard.study import Study

__all__ = [
    "accuracy",
    "annotators",
    "bias_and_noise",
    "histogram",
    "interim_analyses",
    "labels",
    "match_quality",
    "progress",
    "reliability",
    "save",
    "scores",
    "significance",
    "systems",
]

Scored: TypeAlias = "Study | Fit | pl.DataFrame"


def _compared(data: Study | SystemComparison, part: str) -> tuple[pl.DataFrame, pl.DataFrame, float]:
    comparison = data.systems() if isinstance(data, Study) else data
    parts = {name: (scores, differences) for name, scores, differences in parts_of(comparison)}
    if part and part not in parts:
        raise DataError(f"there is no part '{part}' of the comparison.", did_you_mean(part, list(parts)))
    scores, differences = parts[part] if part else next(iter(parts.values()))
    return scores, differences, comparison.level


def systems(data: Study | SystemComparison, *, part: str = "") -> Chart:
    """Draw the leaderboard of systems; `part` names a criterion or subset, the first by default."""
    scores, _, level = _compared(data, part)
    return leaderboard(scores, level=level)


def significance(data: Study | SystemComparison, *, part: str = "") -> Chart:
    """Draw which systems are significantly better than which."""
    scores, differences, _ = _compared(data, part)
    return significance_matrix(differences, scores["system"].to_list())


def _table(data: Scored) -> pl.DataFrame:
    if isinstance(data, Study):
        return ranked_items(data.scores(), data.items)
    frame = data.scores if isinstance(data, Fit) else data
    if not isinstance(frame, pl.DataFrame):
        raise DataError(f"a {type(data).__name__} has no scores.", "Give a Study, a Fit or a scores table.")
    return frame


def _one_criterion(table: pl.DataFrame, criterion: str | None) -> pl.DataFrame:
    if "criterion" not in table.columns or table.is_empty():
        return table
    criteria = table["criterion"].unique(maintain_order=True).to_list()
    name = criteria[0] if criterion is None else criterion
    if name not in criteria:
        raise DataError(f"there is no criterion '{name}'.", f"Known: {', '.join(map(str, criteria))}.")
    return table.filter(pl.col("criterion") == name)


def _scored(data: Scored, criterion: str | None) -> pl.DataFrame:
    table = _one_criterion(_table(data), criterion)
    if "score" not in table.columns:
        raise DataError("these are labels, not scores.", "Draw them with steelyard.plot.labels.")
    return table


def scores(data: Scored, *, criterion: str | None = None) -> Chart:
    """Draw scores with their intervals, the highest on top (of one criterion, the first unless named)."""
    level = data.level if isinstance(data, Fit) else 0.95
    return charts.caterpillar(_scored(data, criterion), level=level)


def histogram(data: Scored, *, criterion: str | None = None, bins: int = 20) -> Chart:
    """Draw the distribution of the scores."""
    return charts.histogram(score_histogram(_scored(data, criterion), bins=bins))


def labels(data: Scored, *, criterion: str | None = None) -> Chart:
    """Draw the number of items by label."""
    table = _one_criterion(_table(data), criterion)
    if "label" not in table.columns:
        raise DataError("these are scores, not labels.", "Draw them with steelyard.plot.scores.")
    return charts.labels(label_counts(table))


def reliability(data: Study | Observations, *, trials: int = 20) -> Chart:
    """Draw split-half reliability against the judgments in each half."""
    if isinstance(data, Study):
        parts = list(Analysis.of(data).observations(data.config.stages[0]).values())
        if not parts:
            raise DataError("there are no judgments yet.", "Collect some first.")
        observations = parts[0]
    else:
        observations = data
    return charts.reliability(split_half_by_budget(observations, trials=trials).filter(pl.col("statistic") == CURVE))


def progress(study: Study) -> Chart:
    """Draw the judgments that count over time."""
    history, status = history_of(study, picks=False), study.status()
    done, total = (sum(getattr(stage, name) for stage in status.stages) for name in ("done", "total"))
    return charts.progress(progress_over_time(history), done, total, forecast(history, status, datetime.now(UTC)))


def annotators(study: Study) -> Chart:
    """Draw each annotator's agreement with the others against the number of judgments."""
    return charts.annotators(annotator_table(history_of(study, picks=False), study))


def bias_and_noise(study: Study) -> Chart:
    """Draw each annotator's bias and noise relative to the others (ratings only)."""
    return quality_charts.bias_and_noise(annotator_table(history_of(study, picks=False), study))


def accuracy(study: Study) -> Chart:
    """Draw each annotator's accuracy in the checks against the number of judgments."""
    rule = study.config.quality.checks
    table = annotator_table(history_of(study, picks=False), study)
    return quality_charts.accuracy(table, passed=None if rule is None else rule.min_accuracy)


def interim_analyses(study: Study) -> Chart:
    """Draw the result of each interim analysis."""
    table = interim_analysis_table(Analysis.of(study))
    if study.config.stop is None or table.is_empty():
        raise DataError(
            "there was no interim analysis yet.", "Set [stop] and call study.quality.interim_analysis() as it grows."
        )
    return quality_charts.interim_analyses(table, MEASURES[study.config.stop.measure])


def match_quality(study: Study) -> Chart:
    """Draw the match quality of every two items by round (design match_quality)."""
    history = history_of(study)
    return charts.match_quality_map(match_quality_by_round(history, study, _table(study)))


def save(chart: Any, path: str | Path) -> None:
    """Write a chart as SVG, PNG or an HTML page that needs no network, by the file's ending."""
    save_chart(chart, Path(path))
