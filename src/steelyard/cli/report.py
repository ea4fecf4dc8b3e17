"""steelyard report: the report of a study as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.options import RealIdsOption, StudyFolder, existing_folder, open_study


def report(
    folder: StudyFolder,
    output: Annotated[Path, typer.Option("--output", "-o", help="Output file: self-contained HTML.")] = Path(
        "report.html"
    ),
    pdf: Annotated[
        Path | None,
        typer.Option("--pdf", help="Also write a PDF, with an installed Chromium.", show_default=False),
    ] = None,
    assets: Annotated[
        Path | None,
        typer.Option(
            "--assets",
            metavar="DIR",
            help="Folder for figures (SVG, PNG) and tables (CSV, LaTeX).",
            show_default=False,
        ),
    ] = None,
    real_ids: RealIdsOption = False,
) -> None:
    """Write a study's report: design, scores, reliability, cost and citation.

    Example: steelyard report words -o report.html --assets figures
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from steelyard.cli.output import err_console, print_done
    from steelyard.errors import ConfigError
    from steelyard.report.assets import write_assets
    from steelyard.report.builder import STEPS, build_report
    from steelyard.report.document import Figure
    from steelyard.report.html import html_page
    from steelyard.report.pdf import find_chromium, print_pdf

    existing_folder(folder)
    if not output.resolve().parent.is_dir():
        raise ConfigError(f"there is no folder {output.parent}.", "Create it first, or choose another folder.")
    if output.suffix.lower() == ".pdf":
        raise ConfigError(
            f"--output writes HTML, but {output.name} has the suffix of a PDF file.",
            f"Use: steelyard report {folder} --pdf {output}",
        )
    if pdf is not None and find_chromium() is None:
        # Raises now rather than after the computation.
        print_pdf(output, pdf)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err_console(), transient=True) as progress:
        bar = progress.add_task("opening the study", total=len(STEPS) + 1)

        def on_step(step: str) -> None:
            progress.update(bar, advance=1, description=f"computing {step}")

        def on_figure(figure: str) -> None:
            progress.update(bar, advance=1, description=f"drawing {figure}")

        with open_study(folder) as study:
            document = build_report(study, real_ids=real_ids, on_step=on_step)
        figures = sum(isinstance(block, Figure) for block in document.blocks())
        progress.update(bar, total=len(STEPS) + figures * (1 if assets is None else 2) + (pdf is not None) + 1)
        page = html_page(document, on_figure)
        try:
            output.write_text(page, encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"{output} cannot be written: {error.strerror}.", "Choose another folder or file name."
            ) from None
        count = 0 if assets is None else write_assets(document, assets, on_figure)
        if pdf is not None:
            progress.update(bar, advance=1, description="writing the PDF")
            print_pdf(output, pdf)
    print_done(f"Report written to {output}" + (f", and as PDF to {pdf}" if pdf else ""))
    if assets is not None:
        print_done(f"{count} files written to {assets}")
