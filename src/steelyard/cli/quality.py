"""steelyard quality, resolve-check, interim-analysis: quality of annotators and checks, and the stopping rule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from steelyard.cli.options import Format, FormatOption, StudyFolder, open_study


def quality(
    folder: StudyFolder,
    apply: Annotated[
        bool, typer.Option("--apply", help="Exclude annotators who violate the rules in study.toml.")
    ] = False,
    annotator: Annotated[
        str | None,
        typer.Option("--annotator", "-a", help="Describe one annotator's work in sentences.", show_default=False),
    ] = None,
    items: Annotated[bool, typer.Option("--items", help="Print infit and outfit of the items instead.")] = False,
    form: FormatOption = Format.table,
) -> None:
    """Print quality statistics of annotators: checks, agreement, severity, drift.

    Example: steelyard quality words

    One annotator's work, to discuss with them: steelyard quality words --annotator ann
    """
    if annotator is not None or items:
        if annotator is not None:
            _print_profile(folder, annotator, form)
        else:
            _print_item_fit(folder, form)
        return
    import polars as pl
    from rich.console import Console

    from steelyard.analysis.analysis import Analysis
    from steelyard.analysis.annotator_profile import careless_sentences
    from steelyard.cli.output import plain_table, print_done, print_frame, print_notes

    with open_study(folder) as study:
        applied = study.quality.apply_rules() if apply else {}
        table = Analysis.of(study, real_ids=True).annotators.filter(pl.col("kind") == "person")
        results, excluded, checks = study.quality.check_results(), study.annotators.excluded, study.quality.checks()
    right = [results.get(name, (None, None)) for name in table["annotator"]]
    table = table.with_columns(
        pl.Series("checks_right", [x for x, _ in right], dtype=pl.Int64),
        pl.Series("checks", [n for _, n in right], dtype=pl.Int64),
    )
    if form is not Format.table:
        print_frame(table, form)
        return
    console = Console(highlight=False)
    if table.height == 0:
        console.print("No judgments yet.")
        return
    rows = [_cells(row) for row in table.iter_rows(named=True)]
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    console.print(plain_table(pl.DataFrame(rows).select(columns), ""))
    for name, reason in applied.items():
        print_done(f"{name} is excluded: {reason}.")
    disputed = [check for check in checks if check.disputed]
    notes = [f"excluded {name}: {reason}" for name, reason in excluded.items() if name not in applied]
    notes += [
        f"signal about {row['annotator']}: {sentence}"
        for row in table.filter(pl.col("excluded").is_null()).iter_rows(named=True)
        for sentence in careless_sentences(row)
    ]
    notes += [
        f"check {c.key} is disputed: {c.wrong} of {c.right + c.wrong} annotators gave another answer; it does not "
        "count until you "
        f"resolve it: steelyard resolve-check {folder} {c.key} right (or wrong)"
        for c in disputed
    ]
    print_notes(notes)


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the printed table; empty columns are left out later."""
    from steelyard.analysis.annotator_profile import careless_sentences

    return {
        "annotator": row["annotator"],
        "judgments": row["judgments"],
        "checks": "" if row["checks"] is None else f"{row['checks_right']} of {row['checks']}",
        "agreement": _share(row, "agreement", 2),
        "infit": _number(row["infit"]) + (" !" if row["misfit"] else ""),
        "severity": _number(row["severity"]),
        "drift": _number(row["drift"]) + (" !" if _excludes_zero(row, "drift") else ""),
        "too fast": _percent(row["too_fast"]),
        "same answer": _percent(row["constant"]),
        "same place": _percent(row["place_share"]) + (" !" if row["one_sided"] else ""),
        "": "excluded" if row["excluded"] else "signal" if careless_sentences(row) else "",
    }


def _print_profile(folder: Path, annotator: str, form: Format) -> None:
    import polars as pl
    from rich.console import Console
    from rich.padding import Padding

    from steelyard.analysis.analysis import Analysis
    from steelyard.analysis.annotator_profile import annotator_profile
    from steelyard.cli.output import plain_table, print_frame

    with open_study(folder) as study:
        profile = annotator_profile(Analysis.of(study, real_ids=True), annotator)
    if form is not Format.table:
        print_frame(pl.DataFrame([profile.row], infer_schema_length=None), form)
        return
    console = Console(highlight=False)
    for finding in profile.findings:
        console.print(f"[bold]{finding.aspect}[/bold]{' (worth discussing)' if finding.notable else ''}")
        console.print(Padding(finding.sentence, (0, 0, 0, 2)))
    if profile.surprises.height:
        names = ["item", "other", "answer", "expected"]
        empty = [name for name in names if profile.surprises[name].null_count() == profile.surprises.height]
        table = profile.surprises.select(
            *(name for name in names if name not in empty), pl.col("residual").abs().round(1).alias("deviation (sd)")
        )
        console.print(plain_table(table, "surprising answers"))


def _print_item_fit(folder: Path, form: Format) -> None:
    from rich.console import Console

    from steelyard.analysis.analysis import Analysis
    from steelyard.cli.output import plain_table, print_frame

    with open_study(folder) as study:
        table = Analysis.of(study).rater_effects.items
    table = table.sort("infit", descending=True, nulls_last=True)
    if form is not Format.table:
        print_frame(table, form)
        return
    empty = [name for name in ("stage", "criterion") if table[name].n_unique() <= 1]
    Console(highlight=False).print(plain_table(table.drop(empty), "fit of the items"))


def resolve_check(
    folder: StudyFolder,
    check: Annotated[str, typer.Argument(help="Key of the check, as printed by steelyard quality.", metavar="CHECK")],
    verdict: Annotated[str, typer.Argument(help="Whether the known answer is right or wrong.", metavar="right|wrong")],
) -> None:
    """Resolve a disputed check: confirm or withdraw its known answer.

    Annotators who failed it are assessed again.

    Example: steelyard resolve-check words 3f2a9c0d1b7e4455 wrong
    """
    from steelyard.cli.output import print_done
    from steelyard.errors import ConfigError

    verdicts: dict[str, Literal["right", "wrong"]] = {"right": "right", "wrong": "wrong"}
    if verdict not in verdicts:
        raise ConfigError(f"'{verdict}' is not a verdict.", "Write right or wrong.")
    with open_study(folder) as study:
        study.quality.resolve_check(check, verdicts[verdict])
        excluded = ", ".join(study.annotators.excluded) or "nobody"
    print_done(f"The known answer counts as {verdict}. Excluded annotators: {excluded}.")


def interim_analysis(folder: StudyFolder) -> None:
    """Run an interim analysis of the stopping rule, if one is due.

    Example: steelyard interim-analysis words
    """
    from rich.console import Console

    from steelyard.cli.output import print_done
    from steelyard.errors import ConfigError

    with open_study(folder) as study:
        if study.config.stop is None:
            raise ConfigError("the study has no stopping rule.", "Add [stop] with measure and target to study.toml.")
        analysis = study.quality.interim_analysis()
        state = study.state
    if analysis is None:
        Console(highlight=False).print(f"No interim analysis is due; the study is {state}.")
    elif analysis.reached:
        print_done(f"The target is reached, and the study is closed: {analysis.summary}.")
    else:
        Console(highlight=False).print(f"Not yet: {analysis.summary}; the target is {analysis.target:g}.")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".replace("-", "−")


def _excludes_zero(row: dict[str, float | None], name: str) -> bool:
    lower, upper = row[f"{name}_lower"], row[f"{name}_upper"]
    return lower is not None and upper is not None and (lower > 0 or upper < 0)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _share(row: dict[str, float | None], name: str, digits: int) -> str:
    value, lower, upper = row[name], row[f"{name}_lower"], row[f"{name}_upper"]
    if value is None:
        return ""
    if lower is None or upper is None:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ({lower:.{digits}f} to {upper:.{digits}f})"
