"""The checks section: answers to questions with known answers, and disputed gold."""

from __future__ import annotations

import numpy as np
import polars as pl

from steelyard.analysis.analysis import Analysis
from steelyard.errors import DataError
from steelyard.models.gold import disputed_gold
from steelyard.models.labels.majority import wilson
from steelyard.observations import Labels
from steelyard.quality.questions import Question, read_questions
from steelyard.report.document import (
    Block,
    Fact,
    Prose,
    Section,
    Table,
    count_column,
    facts_table,
    interval_column,
    share_column,
    text_column,
)

TITLE = "Checks and gold"


def section(analysis: Analysis) -> Section:
    """Return the checks with their answers, the rule, and items whose gold most annotators contradict."""
    blocks: list[Block] = []
    absent = []
    table = check_table(analysis)
    rule = analysis.study.config.quality.checks
    answered = analysis.history.judgments.filter(pl.col("purpose") == "check")
    if answered.height:
        facts = [
            Fact("answers to checks", answered.height),
            Fact("of these right", float(answered["right"].cast(pl.Float64).mean() or 0), "%"),  # type: ignore[arg-type]
            Fact("annotators checked", answered["annotator"].n_unique()),
            Fact("disputed checks", int((table["state"] == "disputed").sum())),
        ]
        blocks.append(facts_table("checks-answered", "Checks.", facts))
        if rule is not None:
            blocks.append(Prose(rule_in_words(analysis)))
        columns = (
            text_column("shows", "shows", 80),
            text_column("expected", "right is", 80),
            count_column("right", "right"),
            count_column("wrong", "wrong"),
            interval_column("share", "share right"),
            text_column("state", "state"),
        )
        caption = "Checks by accuracy, lowest first, with Wilson’s 95 % intervals."
        blocks.append(Table("checks", caption, table, columns))
    elif rule is None:
        absent.append("Checks: the study has none (quality.checks).")
    else:
        absent.append("Checks: none has been answered yet.")
    gold = disputed(analysis)
    if gold.height:
        about = (
            text_column("item", "item", 60),
            text_column("gold", "gold"),
            text_column("label", "most frequent label"),
            share_column("share", "proportion"),
            count_column("judgments", "judgments"),
        )
        blocks.append(
            Table("disputed-gold", "Items whose gold label is contradicted by a large majority.", gold, about)
        )
    return Section("checks", TITLE, tuple(blocks), tuple(absent))


def rule_in_words(analysis: Analysis) -> str:
    """Describe the rule by which checks exclude annotators."""
    rule = analysis.study.config.quality.checks
    if rule is None:
        return ""
    frequency = f"About {100 * rule.rate:g} % of an annotator’s tasks were checks. "
    after = f"after at least {rule.min_checks} checks"
    if rule.rule == "threshold":
        excluded = f"Annotators are excluded when their accuracy is below {100 * rule.min_accuracy:g} %"
        return f"{frequency}{excluded}, {after}."
    return (
        frequency
        + f"Annotators are excluded when their accuracy is below {100 * rule.min_accuracy:g} % with a posterior "
        f"probability of {100 * rule.confidence:g} %, {after}; disputed checks do not count."
    )


def check_table(analysis: Analysis) -> pl.DataFrame:
    """Tabulate the checks: `check` (its key), `shows`, `expected`, `right`, `wrong`, `share` with interval, `state`."""
    questions = _questions(analysis)
    rows = []
    for check in analysis.study.quality.checks():
        question = questions.get(check.key)
        state = f"resolved: {check.resolved}" if check.resolved else "disputed" if check.disputed else "counts"
        shows = " | ".join(question.item_ids) if question else "(no longer in the file)"
        expected = question.expected if question else ""
        rows.append((check.key, shows, expected, check.right, check.wrong, state))
    names = ["check", "shows", "expected", "right", "wrong", "state"]
    kinds = {name: pl.Int64 if name in {"right", "wrong"} else pl.String for name in names}
    frame = pl.DataFrame(rows, schema=kinds, orient="row").filter(pl.col("right") + pl.col("wrong") > 0)
    right = frame["right"].to_numpy().astype(np.float64)
    answers = right + frame["wrong"].to_numpy()
    lower, upper = wilson(right, answers, 0.95)
    return frame.with_columns(
        pl.Series("share", right / np.maximum(answers, 1)),
        pl.Series("share_lower", lower),
        pl.Series("share_upper", upper),
    ).sort("share", "check")


def _questions(analysis: Analysis) -> dict[str, Question]:
    study = analysis.study
    protocol = study.config.stages[0].protocol
    questions: dict[str, Question] = {}
    for event in study.events(("checks",)):
        questions |= {one.key: one for one in read_questions(event.data.questions, protocol, study.items)}
    return questions


def disputed(analysis: Analysis) -> pl.DataFrame:
    """Return the items whose gold most labels contradict."""
    gold = {item.id: item.gold for item in analysis.study.items if item.gold is not None}
    frames = []
    for stage in analysis.study.config.stages if gold else ():
        for part in analysis.observations(stage).values():
            if isinstance(part, Labels):
                try:
                    frames.append(disputed_gold(part, gold))
                except DataError:
                    continue
    return pl.concat(frames) if frames else pl.DataFrame()
