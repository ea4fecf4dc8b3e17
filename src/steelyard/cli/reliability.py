"""steelyard reliability: the reliability of a study's scores, and the agreement of its annotators."""

from __future__ import annotations

from steelyard.cli.options import Format, FormatOption, StudyFolder, open_study


def reliability(folder: StudyFolder, form: FormatOption = Format.table) -> None:
    """Print a study's reliability against its target, and its agreement.

    The dashboard and the report show the same numbers.

    Example: steelyard reliability words
    """
    from rich.console import Console

    from steelyard.analysis.analysis import Analysis
    from steelyard.cli.output import plain_table, print_frame, print_notes

    with open_study(folder) as study:
        analysis = Analysis.of(study)
        table = analysis.reliability_table()
        notes = dict.fromkeys(note for part in analysis.reliability for note in part.notes)
        verdict = analysis.verdict
        if basis := analysis.basis.sentence:
            notes[basis.removesuffix(".")] = None
    if form is not Format.table:
        print_frame(table, form)
        return
    console = Console(highlight=False)
    if table.is_empty():
        console.print("There are no judgments yet.")
        return
    console.print(verdict.sentence, style="bold", markup=False, soft_wrap=True)
    console.print(plain_table(table.select("stage", "criterion", "label", "value", "lower", "upper", "n"), ""))
    print_notes(notes)
