"""steelyard export: a study's judgments, scores or whole log as a file."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import Format, RealIdsOption, StudyFolder, open_study

if TYPE_CHECKING:
    import polars as pl

    from steelyard.analysis.analysis import Analysis
    from steelyard.study import Study


class What(StrEnum):
    """What to export."""

    judgments = "judgments"
    answers = "answers"
    scores = "scores"
    systems = "systems"
    differences = "differences"
    reliability = "reliability"
    log = "log"
    annotators = "annotators"
    questionnaire = "questionnaire"
    rater_effects = "rater_effects"
    item_fit = "item_fit"
    distributions = "distributions"
    soft_labels = "soft_labels"
    quality = "quality"
    items = "items"
    sources = "sources"
    adequacy = "adequacy"
    effort = "effort"
    marks = "marks"
    wmt = "wmt"


def export(
    folder: StudyFolder,
    what: Annotated[
        What,
        typer.Option(
            "--what",
            "-w",
            help="Table to export, one of those above.",
        ),
    ] = What.judgments,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Output file (.csv .tsv .jsonl .parquet); default: standard output.",
            show_default=False,
        ),
    ] = None,
    stage: Annotated[
        str | None, typer.Option("--stage", help="Stage of the judgments, if there are several.", show_default=False)
    ] = None,
    form: Annotated[Format, typer.Option("--format", "-f", help="Output format without --output.")] = Format.csv,
    dataset: Annotated[
        Path | None,
        typer.Option(
            "--dataset",
            metavar="FOLDER",
            help="Write a data set to publish: scores, judgments, items and a card.",
            show_default=False,
        ),
    ] = None,
    real_ids: RealIdsOption = False,
) -> None:
    """Export judgments, scores, the event log or a complete data set.

    Tables: judgments, answers, scores, systems, differences, reliability, log, annotators (with pseudonyms), items;
    questionnaire (with pseudonyms), quality (annotators' work), rater_effects (infit, outfit, severity, drift),
    item_fit, distributions (answers by item), soft_labels. For error marking: marks, and wmt (WMT's formats: .jsonl for
    ESA, .tsv for MQM). For tournaments: sources, adequacy, effort.

    Example: steelyard export words --what scores -o scores.csv
    """
    from rich.console import Console

    from steelyard.cli.output import plain_table, print_frame
    from steelyard.formats import write_table
    from steelyard.study.rebuild import exported_log, write_log

    with open_study(folder) as study:
        if dataset is not None:
            from steelyard.report.dataset import write_dataset

            files = write_dataset(study, dataset, real_ids=real_ids)
            typer.echo(
                f"{len(files)} files written to {dataset}. Fill in the licence in README.md before you publish.",
                err=True,
            )
            return
        if what is What.wmt:
            _write_wmt(study, output, real_ids)
            return
        if what is What.log:
            if output is None:
                for event in exported_log(study, real_ids=real_ids):
                    typer.echo(event.line())
                return
            count = write_log(study, output, real_ids=real_ids)
            typer.echo(f"{count:,} events written to {output}", err=True)
            return
        if output is not None and output.suffix == ".parquet" and what in {What.judgments, What.answers}:
            rows = _stream(study, what, output, stage, real_ids)
            typer.echo(f"{rows:,} rows written to {output}", err=True)
            return
        frame = _frame(study, what, stage, real_ids)
    if output is not None:
        write_table(frame, output)
        typer.echo(f"{frame.height:,} rows written to {output}", err=True)
    elif form is Format.table:
        Console().print(plain_table(frame, ""))
    else:
        print_frame(frame, form)


_ANALYSED: dict[What, Callable[[Analysis], pl.DataFrame]] = {
    What.systems: lambda analysis: analysis.system_table(),
    What.differences: lambda analysis: analysis.system_table(differences=True),
    What.reliability: lambda analysis: analysis.reliability_table(),
    What.quality: lambda analysis: analysis.annotators,
    What.rater_effects: lambda analysis: analysis.names.frame(analysis.rater_effects.annotators),
    What.item_fit: lambda analysis: analysis.rater_effects.items,
    What.distributions: lambda analysis: analysis.distributions,
    What.soft_labels: lambda analysis: analysis.soft_labels,
}


def _frame(study: Study, what: What, stage: str | None, real_ids: bool) -> pl.DataFrame:
    from steelyard.formats import item_table
    from steelyard.study.exporting import conventional_judgments, people_table, questionnaire_table

    if what in {What.scores, What.items}:
        return _scores(study) if what is What.scores else item_table(study.items)
    if what in _ANALYSED:
        from steelyard.analysis.analysis import Analysis

        return _ANALYSED[what](Analysis.of(study, real_ids=real_ids))
    if what in {What.sources, What.adequacy, What.effort, What.marks}:
        return (_marks if what is What.marks else _tournament_table)(study, what, real_ids)
    if what is What.answers:
        return study.privacy.names(real=real_ids).frame(study.judgments())
    if what is What.questionnaire:
        return questionnaire_table(study, real_ids=real_ids)
    is_annotators = what is What.annotators
    return people_table(study) if is_annotators else conventional_judgments(study, stage, real_ids=real_ids)


def _write_wmt(study: Study, output: Path | None, real_ids: bool) -> None:
    from steelyard.errors import DataError
    from steelyard.study.marks import marking_stages, write_wmt

    if output is None or not marking_stages(study):
        raise DataError(
            "the formats of WMT are for marked errors, and for a file.",
            "Give --output esa.jsonl or mqm.tsv, in a study with the protocol error_spans.",
        )
    count = write_wmt(study, output, real_ids=real_ids)
    typer.echo(f"{count:,} lines written to {output}", err=True)


def _scores(study: Study) -> pl.DataFrame:
    """Return the scores, with the answers that an item cannot be judged where the study offers them."""
    scores = study.scores()
    set_aside = study.quality.items_set_aside()
    if not (study.config.answers.cannot_judge or set_aside) or "item" not in scores.columns:
        return scores
    from steelyard.analysis.history import history_of
    from steelyard.analysis.unjudged import count_unjudged, with_unjudged

    return with_unjudged(scores, count_unjudged(history_of(study), study.config, set_aside))


def _marks(study: Study, what: What, real_ids: bool) -> pl.DataFrame:
    from steelyard.errors import DataError
    from steelyard.study.marks import mark_table, marking_stages

    if not marking_stages(study):
        raise DataError("no errors are marked in this study.", "Export scores or judgments instead.")
    return mark_table(study, real_ids=real_ids)


def _tournament_table(study: Study, what: What, real_ids: bool) -> pl.DataFrame:
    from steelyard.analysis.tournaments import has_tournaments, tournament_analysis
    from steelyard.errors import DataError

    if not has_tournaments(study):
        raise DataError("the study has no tournament design.", "Export scores or judgments instead.")
    analysis = tournament_analysis(study)
    if analysis is None:
        raise DataError("there are no comparisons yet.", "Export again when there are answers.")
    if what is What.effort:
        return analysis.effort
    return analysis.items if what is What.adequacy else study.privacy.names(real=real_ids).frame(analysis.graphs)


def _stream(study: Study, what: What, output: Path, stage: str | None, real_ids: bool) -> int:
    """Write Parquet some rows at a time, and show how far it is."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from steelyard.cli.output import err_console
    from steelyard.study.exporting import write_answers, write_judgments

    screen = err_console()
    columns = (TextColumn("writing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task("", total=study.status().judgments)
        on_progress = lambda count: progress.advance(bar, count)  # noqa: E731
        if what is What.answers:
            return write_answers(study, output, real_ids=real_ids, on_progress=on_progress)
        return write_judgments(study, output, stage, real_ids=real_ids, on_progress=on_progress)
