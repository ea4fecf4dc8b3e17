"""steelyard quality, resolve-check, interim-analysis: quality of annotators and checks, and the stopping rule."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from steelyard.cli.options import Format, FormatOption, StudyFolder, open_study


def quality(
    folder: StudyFolder,
    apply: Annotated[
        bool, typer.Option("--apply", help="Exclude annotators who violate the rules in study.toml.")
    ] = False,
    form: FormatOption = Format.table,
) -> None:
    """Print quality statistics of each annotator: checks, speed, agreement.

    Example: steelyard quality words
    """
    import polars as pl
    from rich.console import Console

    from steelyard.cli.output import plain_table, print_done, print_frame, print_notes

    with open_study(folder) as study:
        applied = study.quality.apply_rules() if apply else {}
        table, results, excluded, checks = (
            study.quality.signals(),
            study.quality.check_results(),
            study.annotators.excluded,
            study.quality.checks(),
        )
    right = [results.get(name, (None, None)) for name in table["annotator"]]
    table = table.with_columns(
        pl.Series("checks_right", [x for x, _ in right], dtype=pl.Int64),
        pl.Series("checks", [n for _, n in right], dtype=pl.Int64),
        pl.col("annotator").replace_strict(excluded, default=None, return_dtype=pl.String).alias("excluded"),
    )
    if form is not Format.table:
        print_frame(table, form)
        return
    console = Console(highlight=False)
    if table.height == 0:
        console.print("No judgments yet.")
        return
    rows = [
        {
            "annotator": row["annotator"],
            "judgments": row["judgments"],
            "checks": "" if row["checks"] is None else f"{row['checks_right']} of {row['checks']}",
            "agreement": _share(row, "agreement", 2),
            "too fast": _percent(row["too_fast"]),
            "same answer": _percent(row["constant"]),
            "same place": _percent(row["place_share"]) + (" !" if row["one_sided"] else ""),
            "": "excluded" if row["excluded"] else "",
        }
        for row in table.iter_rows(named=True)
    ]
    console.print(plain_table(pl.DataFrame(rows), ""))
    for annotator, reason in applied.items():
        print_done(f"{annotator} is excluded: {reason}.")
    disputed = [check for check in checks if check.disputed]
    notes = [f"excluded {name}: {reason}" for name, reason in excluded.items() if name not in applied]
    notes += [
        f"check {c.key} is disputed: {c.wrong} of {c.right + c.wrong} annotators gave another answer; it does not "
        "count until you "
        f"resolve it: steelyard resolve-check {folder} {c.key} right (or wrong)"
        for c in disputed
    ]
    print_notes(notes)


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


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _share(row: dict[str, float | None], name: str, digits: int) -> str:
    value, lower, upper = row[name], row[f"{name}_lower"], row[f"{name}_upper"]
    if value is None:
        return ""
    if lower is None or upper is None:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ({lower:.{digits}f} to {upper:.{digits}f})"
