"""The participation section: annotators, answers and times."""

from __future__ import annotations

from collections import Counter

import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.history import first_and_last
from steelyard.analysis.unjudged import Unjudged, count_unjudged
from steelyard.report.document import Block, Fact, Section, Table, count_column, facts_table, text_column


def section(analysis: Analysis) -> Section:
    """Return the numbers of annotators and answers, and the times."""
    history = analysis.history
    judgments = history.judgments
    if judgments.is_empty():
        return Section("participation", "Who answered", absent=("Participation: there are no answers yet.",))
    named = judgments.filter(pl.col("annotator") != "")
    by_annotator = named.group_by("annotator").len()["len"]
    facts = [Fact("annotators who answered", by_annotator.len())]
    if by_annotator.len():
        low, high = min(by_annotator), max(by_annotator)
        facts.append(Fact("answers per annotator, median", _median(by_annotator), text=f"from {low:,} to {high:,}"))
    if history.excluded:
        facts.append(Fact("annotators excluded", len(history.excluded)))
    facts += _tests(analysis)
    blocks: list[Block] = [facts_table("annotators-answered", "People.", facts), *_questionnaire(analysis)]
    purpose, out = pl.col("purpose"), pl.col("excluded")
    counts = {
        "answers in total": judgments.height,
        "judgments that count": history.counted.height,
        "of these, assigned to every annotator (overlap)": history.counted.filter(purpose == "overlap").height,
        "judgments of excluded annotators (not counted)": judgments.filter(
            out & ~purpose.is_in(["check", "repeat"])
        ).height,
        "answers to checks": judgments.filter(purpose == "check").height,
        "repeats": judgments.filter(purpose == "repeat").height,
        "imported": int(judgments["imported"].sum()),
        "late (after the lease had expired; they count)": int(judgments["late"].sum()),
        "revised (the latest answer counts)": int(judgments["revised"].sum()),
        **{
            name: history.notes.filter(pl.col("kind") == kind).height
            for name, kind in (
                ("tasks skipped", "skip"),
                ("tasks flagged", "flag"),
                ("tasks not answered in time", "expired"),
            )
        },
    }
    set_aside = analysis.study.quality.items_set_aside()
    unjudged = count_unjudged(history, analysis.study.config, set_aside)
    counts |= {
        "“cannot judge” (no information for the scores)": unjudged.cannot_judge,
        "“both bad” (ties in the scores)": unjudged.both_bad,
        "with a comment": unjudged.comments,
        "items set aside (nobody is asked about them any more)": len(set_aside),
    }
    always = {"answers in total", "judgments that count"}
    blocks.append(
        facts_table(
            "answers", "Answers.", [Fact(name, count) for name, count in counts.items() if count or name in always]
        )
    )
    blocks += _unjudged_items(unjudged)
    times = _times(judgments)
    if times:
        blocks.append(facts_table("time", "Time.", times))
    absent = () if judgments["seconds"].drop_nulls().len() else ("Times: no response times were recorded.",)
    return Section("participation", "Who answered", tuple(blocks), absent)


def _unjudged_items(unjudged: Unjudged) -> list[Block]:
    """List the items that most annotators could not judge, or called bad together with another."""
    if unjudged.items.is_empty():
        return []
    columns = [
        text_column("item", "item"),
        count_column("answers", "answers"),
        count_column("cannot_judge", "cannot judge"),
        *([count_column("both_bad", "both bad")] if unjudged.both_bad else []),
        *([text_column("reasons", "reasons")] if unjudged.cannot_judge else []),
        *([text_column("set_aside", "set aside because")] if (unjudged.items["set_aside"] != "").any() else []),
    ]
    title = "Items that annotators could not judge or answered with “both bad”, and items that were set aside."
    return [Table("unjudged", title, unjudged.items, tuple(columns))]


def _median(column: pl.Series) -> float:
    middle = column.median()
    return float(middle) if isinstance(middle, int | float) else 0.0


def _tests(analysis: Analysis) -> list[Fact]:
    """Count annotators by consent, training and qualification test, each by their last result."""
    config = analysis.study.config
    last: dict[str, dict[str, bool]] = {"consent": {}, "questionnaire": {}, "trained": {}, "test_result": {}}
    for event in analysis.study.events(tuple(last)):
        last[event.kind][str(event.annotator)] = bool(getattr(event.data, "passed", True))
    facts = []
    if config.annotators.consent is not None:
        facts.append(Fact("gave consent", len(last["consent"])))
    if config.annotators.questionnaire:
        facts.append(Fact("answered the questionnaire", len(last["questionnaire"])))
    if config.annotators.training is not None:
        facts.append(Fact("completed the training", len(last["trained"])))
    if config.quality.qualification is not None:
        facts.append(Fact("passed the qualification test", sum(last["test_result"].values())))
        facts.append(Fact("failed it", len(last["test_result"]) - sum(last["test_result"].values())))
    return facts


def _questionnaire(analysis: Analysis) -> list[Block]:
    """Count the annotators whose judgments count, by their answers; groups that are too small are shown together."""
    annotators, smallest = analysis.study.annotators, analysis.study.config.annotators.min_group
    counting = set(analysis.history.counted["annotator"])
    rows: list[tuple[str, str, int]] = []
    for question in annotators.questionnaire():
        if question.type == "text":
            continue
        groups = Counter(group for name, group in annotators.groups(question.name).items() if name in counting)
        large = {group: count for group, count in groups.items() if count >= smallest}
        rows += [(question.name, group, large[group]) for group in sorted(large)]
        if (others := len(counting) - sum(large.values())) >= smallest:
            rows.append((question.name, "another group, or no answer", others))
    if not rows:
        return []
    frame = pl.DataFrame(rows, ["question", "group", "annotators"], orient="row")
    columns = (text_column("question", "question"), text_column("group", "group"), count_column("annotators", "people"))
    title = f"Answers to the questionnaire; groups of fewer than {smallest} are not shown."
    return [Table("questionnaire", title, frame, columns)]


def _times(judgments: pl.DataFrame) -> list[Fact]:
    own = judgments.filter(~pl.col("imported"))
    facts = []
    ends = first_and_last(own)
    if ends is not None:
        facts.append(Fact("first answer", text=f"{ends[0]:%Y-%m-%d %H:%M} UTC"))
        facts.append(Fact("last answer", text=f"{ends[1]:%Y-%m-%d %H:%M} UTC"))
        facts.append(Fact("between them", (ends[1] - ends[0]).total_seconds() / 3600, "hours"))
    seconds = own["seconds"].drop_nulls()
    if seconds.len():
        low, high = (float(seconds.quantile(share, "linear") or 0) for share in (0.25, 0.75))
        facts.append(
            Fact(
                "active time per answer, median",
                _median(seconds),
                "seconds",
                text=f"interquartile range {low:.3g} to {high:.3g}",
            )
        )
        facts.append(Fact("total active time, where recorded", float(seconds.sum()) / 3600, "hours"))
    several = own.filter(pl.col("seconds").is_not_null() & (pl.col("items").list.len() > 1))
    if several.height:
        each = several["seconds"] / several["items"].list.len()
        facts.append(Fact("active time per item of a page, median", _median(each), "seconds"))
    return facts + _effort(own)


def _effort(own: pl.DataFrame) -> list[Fact]:
    """Report how answers came about: the time before the first action, and changes before sending."""
    first = own["first_action"].drop_nulls()
    changes = own["changes"].drop_nulls()
    facts = []
    if first.len():
        facts.append(Fact("time to the first action, median", _median(first), "seconds"))
    if changes.len():
        facts.append(
            Fact("answers changed before they were sent", int((changes > 0).sum()), text=f"of {changes.len():,}")
        )
    return facts
