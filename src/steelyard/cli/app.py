"""The command line. Each command is imported when it is invoked, so that `--help` and `fit` start fast."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as command_of

from steelyard.errors import SteelyardError, SteelyardWarning
from steelyard.models.compilation_notice import on_compilation


class Entry(NamedTuple):
    """A command: its name, where it is defined, and its line in `steelyard --help`."""

    name: str
    target: str
    """`module:name` below steelyard.cli: of a function, or of a Typer with commands of its own."""
    panel: str
    summary: str
    """The first paragraph of the command's help; a test keeps the two equal."""

    @property
    def module(self) -> str:
        """The module that defines the command."""
        return f"steelyard.cli.{self.target.partition(':')[0]}"


@cache
def load(entry: Entry) -> Any:
    """Import a command and build it."""
    target = getattr(import_module(entry.module), entry.target.partition(":")[2])
    if not isinstance(target, typer.Typer):
        app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
        app.command(entry.name, rich_help_panel=entry.panel)(target)
        target = app
    command: Any = command_of(target)
    command.name = entry.name
    return command


class LazyGroup(TyperGroup):
    """The commands of `entries`. Help is printed from the entries, without importing any command."""

    entries: ClassVar[Sequence[Entry]] = ()

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            entry.name: TyperCommand(entry.name, help=entry.summary, rich_help_panel=entry.panel)
            for entry in self.entries
        }

    def list_commands(self, ctx: Any) -> list[str]:
        """List the names of the commands, in the order of the entries."""
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if there is no command of this name."""
        return next((load(entry) for entry in self.entries if entry.name == cmd_name), None)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help from the entries."""
        TyperGroup(
            name=self.name,
            commands=dict(self.commands),
            help=self.help,
            params=self.params,
            rich_markup_mode=self.rich_markup_mode,
        ).format_help(ctx, formatter)


CREATE, COLLECT, MONITOR, ANNOTATORS, RESULTS, DATA = "Create", "Collect", "Monitor", "Annotators", "Results", "Data"
"""Panels of `steelyard --help`, by what people want to do."""


class Commands(LazyGroup):
    """All commands."""

    entries = (
        Entry("demo", "demo:demo", CREATE, "Watch simulated annotators answer two studies, live in the browser."),
        Entry("new", "new:new", CREATE, "Create a study: a folder with study.toml and an items file."),
        Entry("check", "check:check", CREATE, "Check a study's configuration and items, and list every problem."),
        Entry(
            "simulate",
            "simulate:simulate",
            CREATE,
            "Simulate a study before running it: tasks, time, cost and reliability.",
        ),
        Entry(
            "schema", "schema:schema", CREATE, "Print the JSON Schema of study.toml, for editors and other programs."
        ),
        Entry("plan", "plan:plan", CREATE, "Estimate by simulation how many judgments a target needs."),
        Entry("serve", "serve:serve", COLLECT, "Serve studies: pages for annotators, and a dashboard for you."),
        Entry(
            "doctor",
            "doctor:doctor",
            COLLECT,
            "Check a deployment: studies, databases, disk, backups and public address.",
        ),
        Entry("judge", "judge:judge", COLLECT, "Answer a study's tasks in the terminal."),
        Entry("invite", "invite:invite", COLLECT, "Create personal links, one per name."),
        Entry("remind", "invite:remind", COLLECT, "Write a reminder for each invited annotator who has not finished."),
        Entry("link", "invite:link", COLLECT, "Print the study's link for a panel, or links for participants."),
        Entry("team", "team:app", COLLECT, "Share a study with colleagues: view-only links, and managers' links."),
        Entry("judges", "judges:app", COLLECT, "Let language models judge a study, and compare them with people."),
        Entry("prolific", "prolific:app", COLLECT, "Run a study on Prolific."),
        Entry(
            "pilot",
            "pilot:pilot",
            COLLECT,
            "Summarise a pilot: time, pay per hour, agreement, and cost of the full run.",
        ),
        Entry(
            "freeze",
            "freeze:freeze",
            COLLECT,
            "Preregister a study: record plan, hypotheses and analysis in its log.",
        ),
        Entry("status", "status:status", MONITOR, "Print a study's progress."),
        Entry("state", "state:state", MONITOR, "Open, pause or close a study."),
        Entry(
            "interim-analysis",
            "quality:interim_analysis",
            MONITOR,
            "Run an interim analysis of the stopping rule, if one is due.",
        ),
        Entry(
            "quality",
            "quality:quality",
            ANNOTATORS,
            "Print quality statistics of annotators: checks, agreement, severity, drift.",
        ),
        Entry(
            "resolve-check",
            "quality:resolve_check",
            ANNOTATORS,
            "Resolve a disputed check: confirm or withdraw its known answer.",
        ),
        Entry(
            "exclude",
            "exclude:exclude",
            ANNOTATORS,
            "Exclude an annotator: no further tasks, and their judgments do not count.",
        ),
        Entry("readmit", "exclude:readmit", ANNOTATORS, "Undo an exclusion: the annotator's judgments count again."),
        Entry("set-aside", "set_aside:set_aside", ANNOTATORS, "Set an item aside: nobody is asked about it any more."),
        Entry("ask-again", "set_aside:ask_again", ANNOTATORS, "Ask about an item again that was set aside."),
        Entry("forget", "forget:forget", ANNOTATORS, "Erase an annotator's data from a study."),
        Entry("pay", "pay:pay", ANNOTATORS, "Print what each annotator has earned, including bonuses."),
        Entry("scores", "scores:scores", RESULTS, "Print the scores of a study's items, or compare its systems."),
        Entry(
            "report",
            "report:report",
            RESULTS,
            "Write a study's report: design, scores, reliability, cost and citation.",
        ),
        Entry(
            "reliability",
            "reliability:reliability",
            RESULTS,
            "Print a study's reliability against its target, and its agreement.",
        ),
        Entry("fit", "fit:fit", RESULTS, "Fit a model to one or more files of judgments, and print the scores."),
        Entry(
            "agreement", "agreement:agreement", RESULTS, "Measure the agreement of the annotators in one or more files."
        ),
        Entry(
            "distributions",
            "distributions:distributions",
            RESULTS,
            "Count how many annotators gave each answer, item by item, or print soft labels.",
        ),
        Entry(
            "split-half",
            "split_half:split_half",
            RESULTS,
            "Measure split-half reliability, optionally by budget or subset of items.",
        ),
        Entry(
            "compare-scores",
            "compare_scores:compare_scores",
            RESULTS,
            "Compare two scorings of the same items: differences and correlations.",
        ),
        Entry(
            "link-scales",
            "link_scales:link_scales",
            RESULTS,
            "Place the scores of several studies on the scale of the first.",
        ),
        Entry(
            "annotators-needed",
            "annotators_needed:annotators_needed",
            RESULTS,
            "Measure how many annotators together are as accurate as an expert.",
        ),
        Entry(
            "import",
            "import_:import_judgments",
            DATA,
            "Import judgments from a file into a study, or create a study from them.",
        ),
        Entry("export", "export:export", DATA, "Export judgments, scores, the event log or a complete data set."),
        Entry("backup", "backup:backup", DATA, "Write a complete study to one file, even while it is being served."),
        Entry("restore", "backup:restore", DATA, "Restore a backup into a new folder."),
        Entry("docs", "docs:docs", DATA, "Print a page of the documentation, or list all pages."),
    )


app = typer.Typer(
    name="steelyard",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Collect graded human judgments, and turn them into bounded scores with uncertainty.\n\n"
    "Start with: [bold]steelyard demo[/bold], then [bold]steelyard serve[/bold] (studies in the browser) "
    "or [bold]steelyard new words[/bold]",
)


def _print_version(is_set: bool) -> None:
    if is_set:
        from steelyard.version import __version__

        typer.echo(f"steelyard {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Accept the options before a command."""


def _announce_compilation() -> None:
    """Tell the user at a terminal why the first run takes longer."""
    if sys.stderr.isatty():
        typer.echo("Compiling numerical kernels (once, up to half a minute) …", err=True)


def main() -> None:
    """Run a command; exit 1 when the data or the configuration is wrong, 2 when the command line is."""
    # Warnings of models are also in their notes, which the commands print.
    warnings.simplefilter("ignore", SteelyardWarning)
    on_compilation(_announce_compilation)
    try:
        app()
    except SteelyardError as error:
        from steelyard.cli.output import print_problems

        print_problems(error)
        sys.exit(1)
    except BrokenPipeError:
        # The reader of a pipe (head, less) has closed it.
        sys.stderr.close()
        sys.exit(0)
