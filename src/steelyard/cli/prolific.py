"""steelyard prolific: a study on Prolific, from the draft to the bonuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import Format, FormatOption, StudyFolder, open_study
from steelyard.cli.prolific_options import Api, DryRun, Url, Yes, ask, open_client
from steelyard.cli.prolific_paying import approve, bonus, reject
from steelyard.cli.prolific_printing import cost_question, print_draft, print_offer, print_terms

if TYPE_CHECKING:
    from steelyard.recruitment.client import Client
    from steelyard.study import Study

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Run a study on Prolific.\n\nThe API token is read from the environment variable STEELYARD_PROLIFIC_TOKEN "
    "(or PROLIFIC_TOKEN).",
)


@app.command()
def draft(folder: StudyFolder, url: Url = None, dry_run: DryRun = False, api: Api = None) -> None:
    """Create an unpublished study on Prolific, or update it from study.toml.

    Example: steelyard prolific draft words --url https://judge.example.org
    """
    from steelyard.cli.output import print_done
    from steelyard.recruitment.prolific import draft as make_draft
    from steelyard.recruitment.prolific import ledger_of
    from steelyard.web.studies import slug_of

    with open_study(folder) as study, open_client(api, dry_run) as client:
        study_id = make_draft(client, study, _base_url(study, url), slug_of(folder))
        if dry_run:
            print_draft(study, drafted=bool(ledger_of(study).study_id))
            return
        print_terms(study)
        print_done(
            f"Drafted on Prolific as {study_id}. Publish it with: steelyard prolific publish {folder} --pilot 10"
        )


@app.command()
def publish(
    folder: StudyFolder,
    pilot: Annotated[
        int | None, typer.Option("--pilot", min=1, help="Publish a pilot with this many places.", show_default=False)
    ] = None,
    wait: Annotated[
        bool, typer.Option(help="With --pilot: wait for the participants, then summarise the pilot.")
    ] = True,
    every: Annotated[float, typer.Option("--every", min=0.1, help="Seconds between requests while waiting.")] = 60.0,
    yes: Yes = False,
    dry_run: DryRun = False,
    api: Api = None,
) -> None:
    """Publish the study, or add places to a published one.

    The number of places is set in study.toml. The cost is shown, and you are asked to confirm.

    Example: steelyard prolific publish words --pilot 10
    """
    from rich.console import Console

    from steelyard.cli.output import print_done
    from steelyard.recruitment.prolific import offer
    from steelyard.recruitment.prolific import publish as make_public

    with open_study(folder) as study, open_client(api, dry_run) as client:
        proposal = offer(client, study, pilot)
        if proposal.nothing_to_do:
            Console(highlight=False).print(
                f"The study is already on Prolific with {proposal.places} places. Nothing to do."
            )
        else:
            print_offer(study, proposal)
            if not dry_run:
                ask(cost_question(study, proposal), yes)
            make_public(client, study, proposal)
        if dry_run:
            return
        if not proposal.nothing_to_do:
            print_done(
                f"{proposal.places} places are open. Keep the server running. Check submissions: steelyard "
                f"prolific sync {folder}"
            )
        if pilot is not None and wait:
            _wait_for_pilot(client, study, proposal.places, every)


@app.command()
def status(folder: StudyFolder, form: FormatOption = Format.table, api: Api = None) -> None:
    """Print the state of the study on Prolific, and its cost so far.

    Example: steelyard prolific status words
    """
    import polars as pl
    from rich.console import Console

    from steelyard.cli.output import plain_table, print_frame
    from steelyard.recruitment.bonuses import received_bonuses
    from steelyard.recruitment.estimates import money
    from steelyard.recruitment.ledger import read_submission
    from steelyard.recruitment.prolific import drafted_id

    with open_study(folder) as study, open_client(api, dry=False) as client:
        remote = client.study(drafted_id(study))
        listed, at = client.submissions(drafted_id(study))
        statuses = [read_submission(data, at) for data in listed]
        bonuses = received_bonuses(listed)
        rows = [
            {
                "participant": one.participant,
                "submission": one.submission,
                "status": one.status,
                "answered": study.annotators.progress(one.participant).answered if one.participant else 0,
                "bonus": bonuses.get(one.participant, 0) / 100,
            }
            for one in statuses
        ]
        currency = study.config.pay.currency
    schema = dict.fromkeys(("participant", "submission", "status"), pl.String)
    frame = pl.DataFrame(rows, schema={**schema, "answered": pl.Int64, "bonus": pl.Float64})
    if form is not Format.table:
        print_frame(frame, form)
        return
    console = Console(highlight=False)
    places = remote.get("total_available_places", 0)
    console.print(
        f"{remote.get('name')}: {remote.get('status')}, {remote.get('places_taken', 0)} of {places} places taken"
    )
    if frame.height:
        console.print(plain_table(frame.group_by("status").len("submissions").sort("status"), ""))
    approved = sum(one.status == "APPROVED" for one in statuses)
    paid = approved * int(remote.get("reward", 0)) + sum(bonuses.values())
    console.print(f"Paid so far: {money(paid, currency)}, of which bonuses {money(sum(bonuses.values()), currency)}")


@app.command()
def sync(folder: StudyFolder, dry_run: DryRun = False, api: Api = None) -> None:
    """Read the submissions from Prolific, and release tasks of those that ended.

    Tasks of participants who returned their place, timed out or were rejected are reassigned at once.

    Example: steelyard prolific sync words
    """
    from steelyard.cli.output import print_done, print_notes
    from steelyard.recruitment.prolific import sync as sync_submissions

    with open_study(folder) as study, open_client(api, dry_run) as client:
        submissions = sync_submissions(client, study)
        left = [name for name in study.recruitment.departed if study.annotators.progress(name).answered]
    if dry_run:
        return
    states = (
        ", ".join(f"{count} {status.lower()}" for status, count in submissions.status_counts().items()) or "none yet"
    )
    print_done(f"Submissions: {states}. {submissions.changed} changed; {submissions.released_tasks} tasks released.")
    if left:
        print_notes(
            [
                f"{len(left)} participants returned their place after answering some tasks; these answers count. If a "
                f"participant withdrew consent, exclude them: steelyard exclude {folder} {left[0]} --reason withdrew"
            ]
        )


app.command()(approve)
app.command()(reject)
app.command()(bonus)


@app.command()
def stop(folder: StudyFolder, yes: Yes = False, dry_run: DryRun = False, api: Api = None) -> None:
    """Stop recruiting on Prolific; participants who have started may finish.

    Example: steelyard prolific stop words
    """
    from steelyard.cli.output import print_done
    from steelyard.recruitment.prolific import stop as take_off

    with open_study(folder) as study, open_client(api, dry_run) as client:
        if not dry_run:
            ask("Stop the study on Prolific? It cannot be started again.", yes)
        state = take_off(client, study)
    if not dry_run:
        print_done(f"Stopped. Status on Prolific: {state.lower()}.")


@app.command()
def hook(
    folder: StudyFolder,
    workspace: Annotated[str, typer.Option("--workspace", help="Id of your workspace on Prolific.")],
    url: Url = None,
    dry_run: DryRun = False,
    api: Api = None,
) -> None:
    """Subscribe the server to changes of submissions, so that no sync is needed.

    If the workspace has no secret yet, one is created and printed once. Set it as STEELYARD_PROLIFIC_HOOK_SECRET
    for the server.

    Example: steelyard prolific hook words --workspace 6278acb09062db3b35bcbeb0
    """
    from rich.console import Console

    from steelyard.cli.output import print_done
    from steelyard.recruitment.submissions import WEBHOOK_SECRET
    from steelyard.web.studies import slug_of

    event = "submission.status.change"
    with open_study(folder) as study, open_client(api, dry_run) as client:
        target = f"{_base_url(study, url).rstrip('/')}/api/v1/studies/{slug_of(folder)}/hooks/prolific"
        if not client.hook_secrets(workspace):
            secret = client.create_hook_secret(workspace)
            Console(highlight=False).print(f"{WEBHOOK_SECRET}={secret.get('value', '')}", soft_wrap=True, markup=False)
        hooks = [
            one for one in client.hooks(workspace) if (one.get("target_url"), one.get("event_type")) == (target, event)
        ]
        if not hooks:
            client.subscribe(workspace, event, target)
    if not dry_run:
        print_done(f"Prolific now notifies {target} when submissions change.")


# Helpers


def _base_url(study: Study, url: str | None) -> str:
    from steelyard.errors import ConfigError

    table = study.config.prolific
    base = url or (None if table is None else table.url)
    if base is None:
        raise ConfigError(
            "the public address of the server is unknown.",
            "Set url in [prolific], or give --url https://judge.example.org.",
        )
    return base


def _wait_for_pilot(client: Client, study: Study, places: int, every: float) -> None:
    """Wait until the pilot's participants have finished, then print its summary."""
    from rich.console import Console

    from steelyard.cli.pilot import print_pilot
    from steelyard.recruitment.prolific import sync as sync_submissions

    console = Console(highlight=False, stderr=True)
    console.print(
        "Waiting for participants. Ctrl-C stops waiting, not the pilot; summarise it later with: steelyard pilot",
        soft_wrap=True,
    )
    finished_before = -1
    while True:
        counted = sync_submissions(client, study).status_counts()
        done = counted.get("AWAITING REVIEW", 0) + counted.get("APPROVED", 0)
        if done != finished_before:
            console.print(f"{done} of {places} participants have finished")
            finished_before = done
        if done >= places:
            break
        client.wait(every)
    print_pilot(study, target=0.9, seed=0)
