"""The command line: one file per command, wired together here."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import typer

from steelyard.cli import (
    agreement,
    backup,
    check,
    demo,
    export,
    fit,
    forget,
    import_,
    invite,
    judge,
    new,
    pay,
    people,
    pilot,
    plan,
    prolific,
    quality,
    reliability,
    report,
    scores,
    serve,
    simulate,
    status,
)
from steelyard.errors import SteelyardError, SteelyardWarning

app = typer.Typer(
    name="steelyard",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Graded human judgments: the fewest questions that place every item on a bounded scale, "
    "and how sure each place is.\n\nStart with: [bold]steelyard demo[/bold], then [bold]steelyard new words[/bold]",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from steelyard.version import __version__

        typer.echo(f"steelyard {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


STUDY, FILES = "Studies", "Files (no study needed)"
app.command("demo", rich_help_panel=STUDY)(demo.demo)
app.command("new", rich_help_panel=STUDY)(new.new)
app.command("check", rich_help_panel=STUDY)(check.check)
app.command("simulate", rich_help_panel=STUDY)(simulate.simulate)
app.command("judge", rich_help_panel=STUDY)(judge.judge)
app.command("serve", rich_help_panel=STUDY)(serve.serve)
app.command("invite", rich_help_panel=STUDY)(invite.invite)
app.command("remind", rich_help_panel=STUDY)(invite.remind)
app.command("link", rich_help_panel=STUDY)(invite.link)
app.add_typer(prolific.app, name="prolific", rich_help_panel=STUDY)
app.command("pilot", rich_help_panel=STUDY)(pilot.pilot)
app.command("status", rich_help_panel=STUDY)(status.status)
app.command("scores", rich_help_panel=STUDY)(scores.scores)
app.command("pay", rich_help_panel=STUDY)(pay.pay)
app.command("report", rich_help_panel=STUDY)(report.report)
app.command("quality", rich_help_panel=STUDY)(quality.quality)
app.command("reliability", rich_help_panel=STUDY)(reliability.reliability)
app.command("settle", rich_help_panel=STUDY)(quality.settle)
app.command("look", rich_help_panel=STUDY)(quality.look)
app.command("exclude", rich_help_panel=STUDY)(people.exclude)
app.command("readmit", rich_help_panel=STUDY)(people.readmit)
app.command("forget", rich_help_panel=STUDY)(forget.forget)
app.command("state", rich_help_panel=STUDY)(people.state)
app.command("import", rich_help_panel=STUDY)(import_.import_judgments)
app.command("export", rich_help_panel=STUDY)(export.export)
app.command("backup", rich_help_panel=STUDY)(backup.backup)
app.command("restore", rich_help_panel=STUDY)(backup.restore)
app.command("plan", rich_help_panel=FILES)(plan.plan)
app.command("fit", rich_help_panel=FILES)(fit.fit)
app.command("agreement", rich_help_panel=FILES)(agreement.agreement)


def main() -> None:
    """Run a command; exit 1 when the data or the configuration is wrong, 2 when the command line is."""
    # What a model warns of is in its notes, which the commands print.
    warnings.simplefilter("ignore", SteelyardWarning)
    try:
        app()
    except SteelyardError as error:
        from steelyard.cli.output import print_problems

        print_problems(error)
        sys.exit(1)
    except BrokenPipeError:
        # The reader of a pipe (head, less) has seen enough.
        sys.stderr.close()
        sys.exit(0)
