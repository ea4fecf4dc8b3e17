"""One annotator's work in plain sentences, with surprising answers, as a basis for a conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from scipy import special

from steelyard.analysis.analysis import Analysis
from steelyard.analysis.rater_effects import sessions
from steelyard.errors import TaskError

SURPRISING = 2.0
"""Answers further than this many standard deviations from the expected ones are listed."""

MOST_SURPRISING = 10
BLOCKS = 8
"""Number of blocks of equal size into which the work is divided to show how it changes."""

_SURPRISES = {
    "judgment_id": pl.String,
    "criterion": pl.String,
    "item": pl.String,
    "other": pl.String,
    "answer": pl.String,
    "expected": pl.String,
    "residual": pl.Float64,
    "text": pl.String,
    "other_text": pl.String,
}
_MOST_LETTERS = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """One aspect of an annotator's work: a sentence, and whether it is worth discussing."""

    aspect: str
    sentence: str
    notable: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class AnnotatorProfile:
    """An annotator's work: the row of the table of annotators, findings, and tables.

    `effects` has fit, severity and drift by stage and criterion; `blocks` the median time, the mean difference from
    the expected ratings (in units of the scale, ratings only) and the error by parts of the work; `surprises` the
    answers that differ most from the expected ones.
    """

    annotator: str
    row: dict[str, Any]
    findings: tuple[Finding, ...]
    effects: pl.DataFrame
    blocks: pl.DataFrame
    surprises: pl.DataFrame


def annotator_profile(analysis: Analysis, annotator: str) -> AnnotatorProfile:
    """Return the profile of an annotator, named as in `analysis.annotators`."""
    table = analysis.annotators
    rows = table.filter(pl.col("annotator") == annotator)
    if rows.is_empty():
        raise TaskError(f"there is no annotator '{annotator}' in this study.", "Check the name's spelling.")
    row = rows.row(0, named=True)
    name = next((real for real, called in analysis.names.called.items() if called == annotator), annotator)
    effects = analysis.rater_effects.annotators.filter(pl.col("annotator") == name).drop("annotator")
    scale = _scale(analysis)
    findings = [_work(row, table, analysis, name), *(find(row, table, scale) for find in _FINDINGS)]
    return AnnotatorProfile(
        annotator,
        row,
        tuple(finding for finding in findings if finding is not None),
        effects,
        _blocks(analysis, name, scale),
        _surprises(analysis, name),
    )


def _scale(analysis: Analysis) -> tuple[float, float] | None:
    """Return the scale of the ratings, if the study has exactly one."""
    scales = {scale for stage in analysis.study.config.stages for scale in stage.protocol.scales().values()}
    return scales.pop() if len(scales) == 1 else None


# Findings

_Row = Mapping[str, Any]
_Scale = tuple[float, float] | None


def _others(table: pl.DataFrame, row: _Row, column: str) -> pl.Series:
    people = table.filter((pl.col("kind") == row["kind"]) & (pl.col("annotator") != row["annotator"]))
    return people[column].drop_nulls()


def _median(table: pl.DataFrame, row: _Row, column: str, form: Callable[[float], str]) -> str:
    median = _others(table, row, column).median()
    return "" if not isinstance(median, int | float) else f"median of the other annotators {form(float(median))}"


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"


def _decimal(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _span(row: _Row, name: str, form: Callable[[float], str] = _decimal) -> str:
    lower, upper = row.get(f"{name}_lower"), row.get(f"{name}_upper")
    return "" if lower is None or upper is None else f"95 % interval {form(lower)} to {form(upper)}"


def _brackets(*parts: str) -> str:
    """Return details in brackets, with a space before them; nothing without details."""
    details = "; ".join(part for part in parts if part)
    return f" ({details})" if details else ""


def _excludes_zero(row: _Row, name: str) -> bool:
    lower, upper = row.get(f"{name}_lower"), row.get(f"{name}_upper")
    return lower is not None and upper is not None and (lower > 0 or upper < 0)


def _work(row: _Row, table: pl.DataFrame, analysis: Analysis, name: str) -> Finding:
    own = sessions(analysis.history.judgments.filter(pl.col("annotator") == name))
    count = own["session"].n_unique()
    parts = [f"{row['judgments']:,} answer{'' if row['judgments'] == 1 else 's'}"]
    if count:
        parts.append(f"in {count:,} session{'' if count == 1 else 's'}")
    sentence = " ".join(parts) + "."
    if row["median_seconds"] is not None:
        pace = _median(table, row, "median_seconds", _seconds)
        sentence += f" The median answer took {_seconds(row['median_seconds'])}{_brackets(pace)}."
    noted = [f"{row[key]:,} {word}" for key, word in (("skips", "skipped"), ("flags", "commented on")) if row[key]]
    return Finding("Work", sentence + (f" Tasks: {', '.join(noted)}." if noted else ""))


def _agreement(row: _Row, table: pl.DataFrame, scale: _Scale) -> Finding | None:
    if row["agreement"] is None:
        return Finding("Agreement", "Too few answers are shared with other annotators to measure agreement.")
    middle = _median(table, row, "agreement", _decimal)
    sentence = (
        f"{row['measure'].capitalize()}: {_decimal(row['agreement'])}{_brackets(_span(row, 'agreement'), middle)}."
    )
    median = _others(table, row, "agreement").median()
    low = isinstance(median, int | float) and row["agreement_upper"] is not None and row["agreement_upper"] < median
    return Finding("Agreement", sentence, low)


def _fit(row: _Row, table: pl.DataFrame, scale: _Scale) -> Finding | None:
    if row.get("infit") is None:
        return None
    numbers = f"infit {_decimal(row['infit'])}, outfit {_decimal(row['outfit'])}; 1 is as expected"
    if row["misfit"]:
        return Finding(
            "Predictability",
            f"The answers deviate from what all answers together predict much more than those of other annotators "
            f"({numbers}, flagged above the mean + 2 standard deviations). Look at the surprising answers.",
            True,
        )
    if row["infit"] < 0.5:
        # Only ratings have a severity; comparisons have no steps that could be left out.
        reason = ": perhaps few steps of the scale are used" if row.get("severity") is not None else ""
        return Finding(
            "Predictability", f"The answers are closer to the expected ones than the model assumes ({numbers}){reason}."
        )
    return Finding(
        "Predictability", f"The answers deviate from the expected ones about as much as the model assumes ({numbers})."
    )


def _points(logits: float, scale: _Scale) -> str:
    """Return what a shift in logits means in the middle of the scale."""
    if scale is None:
        return ""
    low, high = scale
    amount = abs(float(special.expit(logits)) - 0.5) * (high - low)
    return f"about {amount:.2g} points in the middle of the scale from {low:g} to {high:g}"


def _severity(row: _Row, table: pl.DataFrame, scale: _Scale) -> Finding | None:
    value = row.get("severity")
    if value is None:
        return None
    numbers = _brackets(f"severity {_decimal(value)} logits", _points(value, scale), _span(row, "severity"))
    if not _excludes_zero(row, "severity"):
        return Finding("Severity", f"Ratings are neither higher nor lower than the average annotator's{numbers}.")
    direction = "lower" if value > 0 else "higher"
    return Finding("Severity", f"Ratings are {direction} than the average annotator's{numbers}.", abs(value) > 0.5)


def _drift(row: _Row, table: pl.DataFrame, scale: _Scale) -> Finding | None:
    value = row.get("drift")
    if value is None:
        return None
    change = f"{_decimal(value)} logits from the first answer to the last"
    numbers = _brackets(change, _points(value, scale), _span(row, "drift"))
    if not _excludes_zero(row, "drift"):
        return Finding("Drift", f"There is no significant change of severity during the work{numbers}.")
    direction = "more severe" if value > 0 else "more lenient"
    chance = "About 5 % of annotators whose severity is constant show such a change by chance."
    return Finding("Drift", f"Ratings became {direction}{numbers}. {chance}", True)


def _course(row: _Row, table: pl.DataFrame, scale: _Scale) -> Finding | None:
    time, error = row.get("time_change"), row.get("error_change")
    if time is None and error is None:
        return None

    def percent(value: float) -> str:
        return f"{100 * value:.0f} %".replace("-", "−")

    parts = []
    if time is not None:
        pace = f"answers become {percent(abs(time))} {'faster' if time < 0 else 'slower'}"
        if not _excludes_zero(row, "time_change"):
            pace = "the time per answer does not change clearly"
        parts.append(f"Within a session, {pace}{_brackets(_span(row, 'time_change', percent))}")
    if error is not None:
        change = "larger" if error > 0 else "smaller"
        parts.append(
            f"deviations from the expected answers become {change}{_brackets(_span(row, 'error_change'))}"
            if _excludes_zero(row, "error_change")
            else "deviations from the expected answers do not change clearly"
        )
    tired = _excludes_zero(row, "error_change") and error is not None and error > 0
    sentence = "; ".join(parts)
    return Finding("Learning and fatigue", sentence[0].upper() + sentence[1:] + ".", tired)


def _consistency(row: _Row, table: pl.DataFrame, scale: _Scale) -> Finding | None:
    if row.get("self_consistency") is None:
        return None
    middle = _median(table, row, "self_consistency", lambda value: f"{value:.0%}")
    count = f"{row['repeats']:,} pair{'' if row['repeats'] == 1 else 's'} of answers to the same question"
    return Finding("Self-consistency", f"{row['self_consistency']:.0%} over {count}{_brackets(middle)}.")


def _checks(row: _Row, table: pl.DataFrame, scale: _Scale) -> Finding | None:
    if not row.get("checks"):
        return None
    right = round(row["accuracy"] * row["checks"])
    return Finding(
        "Checks",
        f"{right:,} of {row['checks']:,} questions with known answers were right"
        f"{_brackets(_span(row, 'accuracy'), _median(table, row, 'accuracy', lambda value: f'{value:.0%}'))}.",
    )


def _signals(row: _Row, table: pl.DataFrame, scale: _Scale) -> Finding | None:
    """Return the signals of careless or automated work, if there are any."""
    parts = careless_sentences(row)
    if not parts:
        return None
    closing = "Signals are not proof; ask before you decide."
    return Finding("Signals of careless work", " ".join([*parts, closing]), True)


def careless_sentences(row: _Row) -> list[str]:
    """Return a sentence for each signal of careless or automated work in a row of the table of annotators."""
    parts = []
    if (row.get("too_fast_lower") or 0) > 0.2:
        parts.append(f"{row['too_fast']:.0%} of the answers were faster than the text can be read.")
    if (row.get("constant_lower") or 0) > 0.5:
        parts.append(f"{row['constant']:.0%} of the answers are the same ({row['commonest']}).")
    if row.get("one_sided"):
        parts.append(f"Position {row['place']} was chosen in {row['place_share']:.0%} of the tasks.")
    if row.get("guessing"):
        parts.append(f"About {row['fast_guesses']:.0%} of the answers look like fast guesses, and these deviate most.")
    if row.get("copies"):
        parts.append(
            f"The answers deviate from the expected ones like those of {row['copies']} "
            f"(correlation {row['copies_correlation']:.2f}): the two may have worked together."
        )
    if row.get("like_model"):
        parts.append(
            f"The answers deviate from the expected ones like those of the model {row['like_model']} "
            f"(correlation {row['like_model_correlation']:.2f}), far more than other people's."
        )
    if row.get("scripted"):
        parts.append(f"In {row['scripted']:,} answers, a script operated the page (perhaps an assistive tool).")
    if row.get("pasted"):
        parts.append(f"In {row['pasted']:,} answers, text was pasted into the comment.")
    return parts


_FINDINGS: tuple[Callable[[_Row, pl.DataFrame, _Scale], Finding | None], ...] = (
    _agreement,
    _fit,
    _severity,
    _drift,
    _course,
    _consistency,
    _checks,
    _signals,
)


# Tables


def _blocks(analysis: Analysis, name: str, scale: _Scale) -> pl.DataFrame:
    """Return the work in blocks of equal size: `block`, `answers`, `seconds`, `difference` and `error`."""
    answers = analysis.rater_effects.answers.filter(pl.col("annotator") == name)
    width = 1.0 if scale is None else scale[1] - scale[0]
    # The residual without the rating's own influence, from standard deviations back to the scale.
    is_rated = answers["other"].null_count() == answers.height and scale is not None
    residual = (pl.col("observed") - pl.col("expected")) * width
    by_judgment = answers.group_by("judgment_id").agg(
        (residual.mean() if is_rated else pl.lit(None, pl.Float64)).alias("difference"),
        pl.col("residual").abs().mean().alias("error"),
    )
    own = analysis.history.judgments.filter((pl.col("annotator") == name) & ~pl.col("imported")).sort("seq")
    work = own.select("judgment_id", "seconds").join(by_judgment, on="judgment_id", how="left", maintain_order="left")
    count = min(BLOCKS, work.height // 5)
    if count < 2:
        return pl.DataFrame(schema={"block": pl.Int64, "answers": pl.Int64, "seconds": pl.Float64})
    block = (pl.int_range(pl.len()) * count // pl.len() + 1).alias("block")
    return (
        work.with_columns(block)
        .group_by("block", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("answers"),
            pl.col("seconds").median(),
            pl.col("difference").mean(),
            pl.col("error").mean(),
        )
    )


def _surprises(analysis: Analysis, name: str) -> pl.DataFrame:
    answers = analysis.rater_effects.answers.filter(
        (pl.col("annotator") == name) & (pl.col("residual").abs() > SURPRISING)
    )
    largest = answers.sort(pl.col("residual").abs(), descending=True).unique("judgment_id", maintain_order=True)
    scales = {
        (stage.name, criterion): scale
        for stage in analysis.study.config.stages
        for criterion, scale in stage.protocol.scales().items()
    }
    texts = {item.id: item.text[:_MOST_LETTERS] for item in analysis.study.items}
    rows = []
    for one in largest.head(MOST_SURPRISING).iter_rows(named=True):
        if one["other"] is None:
            answer, expected = _rated(one, scales.get((one["stage"], one["criterion"]), (0.0, 1.0)))
        else:
            answer, expected = _compared(one)
        place = (one["judgment_id"], one["criterion"], one["item"], one["other"])
        rows.append((*place, answer, expected, one["residual"], texts.get(one["item"]), texts.get(one["other"])))
    return pl.DataFrame(rows, schema=_SURPRISES, orient="row")


def _rated(one: _Row, scale: tuple[float, float]) -> tuple[str, str]:
    low, high = scale
    answer, expected = (low + one[key] * (high - low) for key in ("observed", "expected"))
    return f"{answer:.4g}", f"{expected:.3g}"


def _compared(one: _Row) -> tuple[str, str]:
    if one["observed"] == 0.5:
        return (
            f"{one['item']} and {one['other']} are equal",
            f"{max(one['expected'], 1 - one['expected']):.0%} for one item",
        )
    winner, loser = (one["item"], one["other"]) if one["observed"] > 0.5 else (one["other"], one["item"])
    chance = one["expected"] if one["observed"] > 0.5 else 1 - one["expected"]
    return f"{winner} over {loser}", f"{chance:.0%} probable"
