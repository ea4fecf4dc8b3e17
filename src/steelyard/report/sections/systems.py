"""The comparison of systems."""

from __future__ import annotations

from steelyard.analysis.analysis import Analysis
from steelyard.models.systems.comparison import SystemComparison
from steelyard.report.document import Block, Figure, Prose, Section
from steelyard.report.methods_text import interval_in_words
from steelyard.report.systems import differences_table, leaderboard, parts_of, significance_matrix, systems_table

TITLE = "Systems"
KEY = "systems"


def section(analysis: Analysis) -> Section:
    """Return scores, clusters and differences of the systems, by criterion; empty without systems."""
    comparison = analysis.systems
    if comparison is None:
        return Section(KEY, TITLE)
    if isinstance(comparison, str):
        return Section(KEY, TITLE, absent=(f"Systems: {comparison}",))
    blocks: list[Block] = [Prose(_how(comparison))]
    blocks += [Prose(f"Note: {note}.") for note in comparison.notes]
    for name, scores, differences in parts_of(comparison):
        table = systems_table(scores, comparison.level, name)
        end = table.name.removeprefix("systems")
        of = f" ({name})" if name else ""
        percent = f"{100 * comparison.level:g} %"
        chart = leaderboard(scores, level=comparison.level)
        blocks += [
            Figure(f"leaderboard{end}", f"Scores of the systems{of}, with {percent} intervals and clusters.", chart),
            table,
        ]
        if differences.height:
            blocks += [
                Figure(
                    f"significance{end}",
                    f"Significant differences between systems{of}.",
                    significance_matrix(differences, scores["system"].to_list()),
                ),
                differences_table(differences, comparison.level, name),
            ]
    return Section(KEY, TITLE, tuple(blocks))


def _how(comparison: SystemComparison) -> str:
    intervals = comparison.scores["interval"].drop_nulls().unique().sort().to_list()
    how = ", ".join(interval_in_words(str(one)) for one in intervals)
    return (
        f"Scores of systems have {100 * comparison.level:g} % intervals ({how}). Differences have simultaneous "
        "intervals; a difference is significant if p < .05 after Holm's correction for the number of pairs. A rank "
        "range contains the ranks compatible with the significant differences. Every system of a cluster is "
        "significantly "
        "better than every system of the clusters below. Systems share sources and annotators, so a difference can "
        "be significant even if the intervals of the two scores overlap."
    )
