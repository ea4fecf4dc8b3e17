"""steelyard prolific approve, reject, bonus: review submissions and pay bonuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import StudyFolder, open_study
from steelyard.cli.prolific_options import Api, DryRun, Yes, ask, open_client
from steelyard.cli.prolific_printing import print_bonuses, print_reviews

if TYPE_CHECKING:
    from steelyard.recruitment.ledger import Batch
    from steelyard.recruitment.review import Review


def approve(
    folder: StudyFolder,
    participants: Annotated[
        list[str] | None,
        typer.Argument(
            help="Participants to approve in any case; default: all who pass the review.",
            metavar="PARTICIPANT...",
            show_default=False,
        ),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    api: Api = None,
) -> None:
    """Approve submissions that are complete and pass the checks.

    A submission passes if all tasks are answered, the completion code is right, and the checks are passed. You are
    asked to confirm.

    Example: steelyard prolific approve words
    """
    from rich.console import Console

    from steelyard.cli.output import print_done
    from steelyard.recruitment.prolific import sync as sync_submissions
    from steelyard.recruitment.review import approve as approve_all
    from steelyard.recruitment.review import review_submissions

    with open_study(folder) as study, open_client(api, dry_run) as client:
        reviews = review_submissions(study, sync_submissions(client, study).submissions)
        chosen = _named(reviews, participants) if participants else [review for review in reviews if review.passes]
        print_reviews(reviews, {review.submission for review in chosen})
        if not chosen:
            Console(highlight=False).print("Nothing to approve.")
            return
        if not dry_run:
            ask(f"Approve {len(chosen)} of {len(reviews)} submissions? They will be paid. This cannot be undone.", yes)
        done = approve_all(client, study, chosen)
    if not dry_run:
        print_done(f"{done} of {len(chosen)} submissions approved.")
        if done < len(chosen):
            raise typer.Exit(1)


def reject(
    folder: StudyFolder,
    participants: Annotated[
        list[str],
        typer.Argument(help="Participants whose submissions to reject.", metavar="PARTICIPANT...", show_default=False),
    ],
    message: Annotated[
        str, typer.Option("--message", "-m", help="Reason shown to participants, 100 characters or more.")
    ],
    category: Annotated[
        str, typer.Option("--category", help="Category of the reason, as Prolific names it.")
    ] = "FAILED_CHECK",
    yes: Yes = False,
    dry_run: DryRun = False,
    api: Api = None,
) -> None:
    """Reject submissions for a stated reason; the participants are not paid.

    Example: steelyard prolific reject words 5f3c0a… -m "…"
    """
    from steelyard.cli.output import print_done
    from steelyard.recruitment.review import check_rejection
    from steelyard.recruitment.review import reject as reject_all

    check_rejection(category, message)
    with open_study(folder) as study, open_client(api, dry_run) as client:
        if not dry_run:
            ask(f"Reject {', '.join(participants)}? They will not be paid. This cannot be undone.", yes)
        count = reject_all(client, study, participants, category, message)
    if not dry_run:
        print_done(f"{count} rejected; their unfinished tasks are released.")


def bonus(
    folder: StudyFolder,
    grace: Annotated[
        float,
        typer.Option("--grace", min=0, help="Minutes to wait for an unconfirmed payment to appear on Prolific."),
    ] = 60.0,
    yes: Yes = False,
    dry_run: DryRun = False,
    api: Api = None,
) -> None:
    """Pay the bonuses due to approved participants.

    Bonuses follow the formula in study.toml, minus what has already been paid. You are asked to confirm. The command
    can be repeated safely: it checks on Prolific before it sends a payment, and never pays twice.

    Example: steelyard prolific bonus words
    """
    from rich.console import Console

    from steelyard.cli.output import print_done
    from steelyard.recruitment import bonuses
    from steelyard.recruitment.estimates import money
    from steelyard.recruitment.prolific import drafted_id, ledger_of

    with open_study(folder) as study, open_client(api, dry_run) as client:
        currency = study.config.pay.currency
        earned = bonuses.earned_bonuses(study)

        def send_again(batch: Batch) -> bool:
            request = f"{money(batch.total, currency)} for {len(batch.amounts)} participants was requested"
            ask(
                f"{request} more than {grace:g} minutes ago, but does not appear on Prolific. "
                "Check your balance there. Send it again?",
                yes,
            )
            return True

        paid = 0
        begun = ledger_of(study).open_batch
        if begun is not None and not dry_run:
            paid += begun.total * bonuses.complete_batch(
                client, study, begun, grace_minutes=grace, send_again=send_again
            )
        listed, _ = client.submissions(drafted_id(study))
        owed, _ = bonuses.still_owed(earned, ledger_of(study), listed)
        if owed:
            print_bonuses(owed, currency)
        if owed and dry_run:
            for names in _chunks(list(owed), bonuses.BATCH_SIZE):
                created = client.set_up_bonuses(drafted_id(study), {name: owed[name] for name in names})
                client.pay_bonuses(str(created["id"]))
            return
        if owed:
            ask(f"Pay {money(sum(owed.values()), currency)} to {len(owed)} participants? Prolific's fee is added.", yes)
            paid += bonuses.pay_owed(client, study, earned, owed, listed, grace_minutes=grace, send_again=send_again)
    if paid:
        print_done(f"{money(paid, currency)} of bonuses paid.")
    else:
        Console(highlight=False).print("No bonuses are due to approved participants.")


def _named(reviews: list[Review], participants: list[str]) -> list[Review]:
    from steelyard.errors import ConfigError

    by_name = {review.participant: review for review in reviews}
    for name in participants:
        if name not in by_name:
            raise ConfigError(f"no submission of '{name}' awaits review.", "See: steelyard prolific status")
    return [by_name[name] for name in participants]


def _chunks(names: list[str], size: int) -> list[list[str]]:
    return [names[start : start + size] for start in range(0, len(names), size)]
