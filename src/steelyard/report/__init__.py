"""What came of a study, as tables first and charts from them."""

from steelyard.report.history import History, history_of, observations_of
from steelyard.report.matching import match_quality_by_round
from steelyard.report.people import annotator_table
from steelyard.report.tables import (
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
