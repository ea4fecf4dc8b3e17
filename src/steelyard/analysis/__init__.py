"""Everything that is computed about a study, once: dashboard, report, command line and exports use these tables."""

from steelyard.analysis.annotators import annotator_table
from steelyard.analysis.history import History, history_of, observations_of
from steelyard.analysis.match_quality import match_quality_by_round
from steelyard.analysis.tables import (
    Estimate,
    Forecast,
    costs,
    forecast,
    item_judgments,
    label_counts,
    least_certain,
    progress_over_time,
    ranked_items,
    rate,
    score_histogram,
)

__all__ = [
    "Estimate",
    "Forecast",
    "History",
    "annotator_table",
    "costs",
    "forecast",
    "history_of",
    "item_judgments",
    "label_counts",
    "least_certain",
    "match_quality_by_round",
    "observations_of",
    "progress_over_time",
    "ranked_items",
    "rate",
    "score_histogram",
]
