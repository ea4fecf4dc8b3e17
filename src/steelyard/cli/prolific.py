"""steelyard prolific: a study on Prolific, from the draft to the bonuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from steelyard.cli.options import Format, FormatOption, StudyFolder, existing_folder
from steelyard.cli.prolific_printing import cost_question, print_bonuses, print_offer, print_terms, print_verdicts

if TYPE_CHECKING:
    from steelyard.crowd.books import Batch
    from steelyard.crowd.client import Client
    from steelyard.crowd.reviewing import Verdict
    from steelyard.study import Study

app = typer.Typer(
    no_args_is_help=True,
    help="Put a study to people on Prolific. The API token is read from STEELYARD_PROLIFIC_TOKEN (or PROLIFIC_TOKEN), "
    "and from nowhere else.",
)

DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Print every request; send none that changes anything.")
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Api: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--api", envvar="STEELYARD_PROLIFIC_API", help="Where the API is, for a rehearsal.", show_default=False
    ),
]
Url: TypeAlias = Annotated[
    str | None,
    typer.Option("--url", help="Where the study is served, if study.toml does not say.", show_default=False),
]


@app.command()
def draft(folder: StudyFolder, url: Url = None, dry_run: DryRun = False, api: Api = None) -> None:
    """Make the study on Prolific, unpublished, or bring its draft up to date with study.toml.

    Example: steelyard prolific draft words --url https://judge.example.org
    """
    from steelyard.cli.output import print_done
    from steelyard.crowd.prolific import draft as make_draft
    from steelyard.web.studies import slug_of

    with _study(folder) as study, _client(api, dry_run) as client:
        made = make_draft(client, study, _base(study, url), slug_of(folder))
        if not dry_run:
            print_terms(study)
            print_done(
                f"Drafted on Prolific as {made}. Publish it with: steelyard prolific publish {folder} --pilot 10"
            )


@app.command()
def publish(
    folder: StudyFolder,
    pilot: Annotated[
        int | None, typer.Option("--pilot", min=1, help="Only so many places, to try it out first.", show_default=False)
    ] = None,
    wait: Annotated[
        bool, typer.Option(help="With --pilot: wait for these people, then say what came of it (steelyard pilot).")
    ] = True,
    every: Annotated[float, typer.Option("--every", min=0.1, help="Seconds between looks while waiting.")] = 60.0,
    yes: Yes = False,
    dry_run: DryRun = False,
    api: Api = None,
) -> None:
    """Publish the study, or give a published one the further places that study.toml says. The cost is asked about.

    Example: steelyard prolific publish words --pilot 10
    """
    from rich.console import Console

    from steelyard.cli.output import print_done
    from steelyard.crowd.prolific import offer
    from steelyard.crowd.prolific import publish as make_public

    with _study(folder) as study, _client(api, dry_run) as client:
        found = offer(client, study, pilot)
        if found.nothing_to_do:
            Console(highlight=False).print(f"The study is on Prolific with {found.places} places. Nothing to do.")
        else:
            print_offer(study, found)
            if not dry_run:
                _ask(cost_question(study, found), yes)
            make_public(client, study, found)
        if dry_run:
            return
        if not found.nothing_to_do:
            print_done(
                f"{found.places} places are open. Keep the study served; look with: steelyard prolific sync {folder}"
            )
        if pilot is not None and wait:
            _wait_for_pilot(client, study, found.places, every)


@app.command()
def status(folder: StudyFolder, form: FormatOption = Format.table, api: Api = None) -> None:
    """Say how the study stands on Prolific, and what it has cost. Nothing is changed.

    Example: steelyard prolific status words
    """
    import polars as pl
    from rich.console import Console

    from steelyard.cli.output import plain_table, print_frame
    from steelyard.crowd.bonuses import bonuses_shown
    from steelyard.crowd.books import sighting_of
    from steelyard.crowd.estimates import money
    from steelyard.crowd.prolific import drafted_id

    with _study(folder) as study, _client(api, dry=False) as client:
        there = client.study(drafted_id(study))
        listed, at = client.submissions(drafted_id(study))
        seen = [sighting_of(data, at) for data in listed]
        bonuses = bonuses_shown(listed)
        rows = [
            {
                "participant": one.participant,
                "submission": one.submission,
                "status": one.status,
                "answered": study.standing(one.participant).answered if one.participant else 0,
                "bonus": bonuses.get(one.participant, 0) / 100,
            }
            for one in seen
        ]
        currency = study.config.pay.currency
    schema = dict.fromkeys(("participant", "submission", "status"), pl.String)
    frame = pl.DataFrame(rows, schema={**schema, "answered": pl.Int64, "bonus": pl.Float64})
    if form is not Format.table:
        print_frame(frame, form)
        return
    console = Console(highlight=False)
    places = there.get("total_available_places", 0)
    console.print(
        f"{there.get('name')}: {there.get('status')}, {there.get('places_taken', 0)} of {places} places taken"
    )
    if frame.height:
        console.print(plain_table(frame.group_by("status").len("submissions").sort("status"), ""))
    approved = sum(one.status == "APPROVED" for one in seen)
    paid = approved * int(there.get("reward", 0)) + sum(bonuses.values())
    console.print(f"Paid to people so far: {money(paid, currency)} (bonuses {money(sum(bonuses.values()), currency)})")


@app.command()
def sync(folder: StudyFolder, dry_run: DryRun = False, api: Api = None) -> None:
    """Look at the submissions: tasks of people who returned, timed out or were rejected go to others at once.

    Example: steelyard prolific sync words
    """
    from steelyard.cli.output import print_done, print_notes
    from steelyard.crowd.prolific import sync as look

    with _study(folder) as study, _client(api, dry_run) as client:
        found = look(client, study)
        left = [name for name in study.gone if study.standing(name).answered]
    if dry_run:
        return
    states = ", ".join(f"{count} {status.lower()}" for status, count in found.counted().items()) or "none yet"
    print_done(f"Submissions: {states}. {found.news} changed; {found.freed} tasks are free for others.")
    if left:
        print_notes(
            [
                f"{len(left)} people gave their place back after answering something; these answers count. "
                f"Who withdrew for good can be left out: steelyard exclude {folder} {left[0]} --reason withdrew"
            ]
        )


@app.command()
def approve(
    folder: StudyFolder,
    participants: Annotated[
        list[str] | None,
        typer.Argument(
            help="Approve these, whatever the rule says; all that pass it if left out.",
            metavar="PARTICIPANT...",
            show_default=False,
        ),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    api: Api = None,
) -> None:
    """Approve the submissions that pass the rule (all answered, right code, checks passed), after asking you.

    Example: steelyard prolific approve words
    """
    from rich.console import Console

    from steelyard.cli.output import print_done
    from steelyard.crowd.prolific import sync as look
    from steelyard.crowd.reviewing import approve as approve_all
    from steelyard.crowd.reviewing import verdicts

    with _study(folder) as study, _client(api, dry_run) as client:
        found = verdicts(study, look(client, study).submissions)
        chosen = _named(found, participants) if participants else [verdict for verdict in found if verdict.good]
        print_verdicts(found, {verdict.submission for verdict in chosen})
        if not chosen:
            Console(highlight=False).print("Nothing to approve.")
            return
        if not dry_run:
            _ask(f"Approve {len(chosen)} of {len(found)} submissions? They are paid, and it cannot be undone.", yes)
        done = approve_all(client, study, chosen)
    if not dry_run:
        print_done(f"{done} of {len(chosen)} are approved.")
        if done < len(chosen):
            raise typer.Exit(1)


@app.command()
def reject(
    folder: StudyFolder,
    participants: Annotated[
        list[str], typer.Argument(help="Whose submissions.", metavar="PARTICIPANT...", show_default=False)
    ],
    message: Annotated[str, typer.Option("--message", "-m", help="What they read: why, in 100 characters or more.")],
    category: Annotated[str, typer.Option("--category", help="Prolific's word for it.")] = "FAILED_CHECK",
    yes: Yes = False,
    dry_run: DryRun = False,
    api: Api = None,
) -> None:
    """Reject submissions, one by one, for a reason that you give. They are not paid.

    Example: steelyard prolific reject words 5f3c0a… -m "…"
    """
    from steelyard.cli.output import print_done
    from steelyard.crowd.reviewing import check_rejection
    from steelyard.crowd.reviewing import reject as reject_all

    check_rejection(category, message)
    with _study(folder) as study, _client(api, dry_run) as client:
        if not dry_run:
            _ask(f"Reject {', '.join(participants)}? They are not paid, and it cannot be undone.", yes)
        count = reject_all(client, study, participants, category, message)
    if not dry_run:
        print_done(f"{count} rejected; what they still held is free for others.")


@app.command()
def bonus(
    folder: StudyFolder,
    grace: Annotated[
        float,
        typer.Option(
            "--grace", min=0, help="Minutes that a payment whose answer was lost may take to show on Prolific."
        ),
    ] = 60.0,
    yes: Yes = False,
    dry_run: DryRun = False,
    api: Api = None,
) -> None:
    """Pay the bonuses that study.toml's formula gives to people whose work is approved, less what they got already.

    You are asked first. A payment is never sent twice: run it again after whatever happened, and it looks on Prolific
    before it sends.

    Example: steelyard prolific bonus words
    """
    from rich.console import Console

    from steelyard.cli.output import print_done
    from steelyard.crowd import bonuses
    from steelyard.crowd.estimates import money
    from steelyard.crowd.prolific import books_of, drafted_id

    with _study(folder) as study, _client(api, dry_run) as client:
        currency = study.config.pay.currency
        earned = _earned(study)

        def again(batch: Batch) -> bool:
            asked = f"{money(batch.total, currency)} for {len(batch.amounts)} people was asked for"
            _ask(
                f"{asked} more than {grace:g} minutes ago, and Prolific shows none of it. Look at your balance there. "
                "Send it again?",
                yes,
            )
            return True

        paid = 0
        begun = books_of(study).open_batch
        if begun is not None and not dry_run:
            paid += begun.total * bonuses.carry_on(client, study, begun, grace_minutes=grace, send_again=again)
        listed, _ = client.submissions(drafted_id(study))
        owed, _ = bonuses.still_owed(earned, books_of(study), listed)
        if owed:
            print_bonuses(owed, currency)
        if owed and dry_run:
            for names in _chunks(list(owed), bonuses.AT_ONCE):
                made = client.set_up_bonuses(drafted_id(study), {name: owed[name] for name in names})
                client.pay_bonuses(str(made["id"]))
            return
        if owed:
            _ask(f"Pay {money(sum(owed.values()), currency)} to {len(owed)} people? Prolific's fee comes on top.", yes)
            paid += bonuses.pay_owed(client, study, earned, owed, listed, grace_minutes=grace, send_again=again)
    if paid:
        print_done(f"{money(paid, currency)} of bonuses are paid.")
    else:
        Console(highlight=False).print("No bonuses are owed to people whose work is approved.")


@app.command()
def stop(folder: StudyFolder, yes: Yes = False, dry_run: DryRun = False, api: Api = None) -> None:
    """Take the study off Prolific: nobody new comes. Whoever is at it may finish.

    Example: steelyard prolific stop words
    """
    from steelyard.cli.output import print_done
    from steelyard.crowd.prolific import stop as take_off

    with _study(folder) as study, _client(api, dry_run) as client:
        if not dry_run:
            _ask("Stop the study on Prolific? It cannot be started again.", yes)
        state = take_off(client, study)
    if not dry_run:
        print_done(f"Stopped; on Prolific it is {state.lower()} now.")


@app.command()
def hook(
    folder: StudyFolder,
    workspace: Annotated[str, typer.Option("--workspace", help="The id of your workspace on Prolific.")],
    url: Url = None,
    dry_run: DryRun = False,
    api: Api = None,
) -> None:
    """Have Prolific tell the server when submissions change, so that tasks are free without waiting for a sync.

    If the workspace has no secret yet, one is made and printed, this once; the server needs it in
    STEELYARD_PROLIFIC_HOOK_SECRET.

    Example: steelyard prolific hook words --workspace 6278acb09062db3b35bcbeb0
    """
    from rich.console import Console

    from steelyard.cli.output import print_done
    from steelyard.crowd.submissions import HOOK_SECRET
    from steelyard.web.studies import slug_of

    event = "submission.status.change"
    with _study(folder) as study, _client(api, dry_run) as client:
        target = f"{_base(study, url).rstrip('/')}/api/v1/studies/{slug_of(folder)}/hooks/prolific"
        if not client.hook_secrets(workspace):
            made = client.make_hook_secret(workspace)
            Console(highlight=False).print(f"{HOOK_SECRET}={made.get('value', '')}", soft_wrap=True, markup=False)
        there = [
            one for one in client.hooks(workspace) if (one.get("target_url"), one.get("event_type")) == (target, event)
        ]
        if not there:
            client.subscribe(workspace, event, target)
    if not dry_run:
        print_done(f"Prolific tells {target} when submissions change.")


# Inside


def _study(folder: Path) -> Study:
    from steelyard.study import Study

    return Study.open(existing_folder(folder))


def _client(api: str | None, dry: bool) -> Client:
    from steelyard.crowd.client import PROLIFIC, Client, token_from_environment

    return Client(token_from_environment(), address=api or PROLIFIC, show=typer.echo if dry else None, dry=dry)


def _base(study: Study, given: str | None) -> str:
    from steelyard.errors import ConfigError

    table = study.config.prolific
    base = given or (None if table is None else table.url)
    if base is None:
        raise ConfigError(
            "it is not said where the study is served.",
            "Set url in [prolific], or give --url https://judge.example.org.",
        )
    return base


def _ask(question: str, yes: bool) -> None:
    """Go on only when somebody says so."""
    if not yes and not typer.confirm(question):
        typer.echo("Nothing was done.", err=True)
        raise typer.Exit(1)


def _named(found: list[Verdict], participants: list[str]) -> list[Verdict]:
    from steelyard.errors import ConfigError

    by_name = {verdict.participant: verdict for verdict in found}
    for name in participants:
        if name not in by_name:
            raise ConfigError(f"no submission of '{name}' waits for a decision.", "See: steelyard prolific status")
    return [by_name[name] for name in participants]


def _earned(study: Study) -> dict[str, int]:
    from steelyard.errors import ConfigError

    if study.config.pay.formula is None:
        raise ConfigError("the study pays no bonus.", "Add a formula: bonus in [pay].", field="pay.bonus")
    table = study.pay()
    return {name: round(amount * 100) for name, amount in zip(table["annotator"], table["bonus"], strict=True)}


def _chunks(names: list[str], size: int) -> list[list[str]]:
    return [names[start : start + size] for start in range(0, len(names), size)]


def _wait_for_pilot(client: Client, study: Study, places: int, every: float) -> None:
    """Look until the pilot's people are through, then say what came of it."""
    from rich.console import Console

    from steelyard.cli.pilot import print_pilot
    from steelyard.crowd.prolific import sync as look

    console = Console(highlight=False, stderr=True)
    console.print("Waiting for them; Ctrl-C ends the wait, not the pilot. Later: steelyard pilot", soft_wrap=True)
    through = -1
    while True:
        counted = look(client, study).counted()
        done = counted.get("AWAITING REVIEW", 0) + counted.get("APPROVED", 0)
        if done != through:
            console.print(f"{done} of {places} have finished")
            through = done
        if done >= places:
            break
        client.wait(every)
    print_pilot(study, target=0.9, seed=0)
