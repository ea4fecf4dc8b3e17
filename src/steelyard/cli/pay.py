"""steelyard pay: earnings of each annotator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.options import Format, FormatOption, StudyFolder, open_study


def pay(
    folder: StudyFolder,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Output file (.csv .tsv .jsonl .parquet).", show_default=False),
    ] = None,
    form: FormatOption = Format.table,
) -> None:
    """Print what each annotator has earned, including bonuses.

    This only lists the amounts; it does not pay anybody.

    Example: steelyard pay words -o pay.csv
    """
    import polars as pl
    from rich.console import Console

    from steelyard.cli.output import plain_table, print_frame, print_whole
    from steelyard.errors import ConfigError
    from steelyard.formats import write_table

    with open_study(folder) as study:
        config = study.config.pay
        if config.nothing:
            raise ConfigError(
                "study.toml does not define the pay.", "Add [pay] with per_task, per_visit, per_hour or bonus."
            )
        table = study.annotators.pay()
    if output is not None:
        write_table(table, output)
        typer.echo(f"{table.height:,} rows written to {output}", err=True)
    elif form is not Format.table:
        print_frame(table, form)
    else:
        console = Console(highlight=False)
        numbers = ("tasks", "hours", "checks", "pay", "bonus", "total")
        columns = table.select(
            "annotator",
            pl.col("tasks").map_elements("{:,}".format, pl.String),
            pl.col("hours").map_elements("{:,.2f}".format, pl.String),
            pl.format("{}/{}", "checks_right", "checks_asked").alias("checks"),
            *(pl.col(name).map_elements("{:,.2f}".format, pl.String) for name in ("pay", "bonus", "total")),
            pl.when("excluded").then(pl.lit("excluded")).otherwise(pl.lit("")).alias(""),
        )
        optional = {"checks": table["checks_asked"].sum(), "bonus": config.bonus, "": table["excluded"].any()}
        print_whole(plain_table(columns.drop(name for name, any_ in optional.items() if not any_), "", numbers))
        total = float(table["total"].sum())
        fee = f", {total * (1 + config.fee):,.2f} with the fee of {100 * config.fee:g} %" if config.fee else ""
        count = "1 annotator" if table.height == 1 else f"{table.height:,} annotators"
        console.print(f"{total:,.2f} {config.currency} for {count}{fee}")
