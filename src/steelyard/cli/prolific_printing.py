"""Output of steelyard prolific: terms, costs, reviews and bonuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from steelyard.recruitment.prolific import Offer
    from steelyard.recruitment.review import Review
    from steelyard.study import Study


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def hourly(reward: int, minutes: int, currency: str) -> str:
    """Format the pay of a visit and the hourly rate."""
    from steelyard.recruitment.estimates import money

    time = f"about {minutes} minutes" if minutes > 1 else "about a minute"
    return f"{money(reward, currency)} for {time}: {money(reward * 60 / minutes, currency)} per hour"


def print_terms(study: Study) -> None:
    """Print the duration and pay of a visit."""
    from steelyard.recruitment.estimates import estimate_visit, reward, whole_minutes

    console = _console()
    visit = estimate_visit(study)
    console.print(f"Each participant gets {visit.tasks} tasks of {visit.seconds_per_task:.1f} seconds ({visit.source})")
    console.print(hourly(reward(study), whole_minutes(study), study.config.pay.currency))


def print_draft(study: Study, *, drafted: bool) -> None:
    """Print, after a dry run, the draft that would be created."""
    from steelyard.recruitment.estimates import money, reward
    from steelyard.recruitment.prolific import ledger_of, prolific_table

    table, _ = prolific_table(study)
    console, currency = _console(), study.config.pay.currency
    done = "updated" if drafted else "created on Prolific, unpublished"
    console.print(f"\nThe draft would be {done}:", style="bold")
    lines = {"title": table.name or study.config.title}
    places = ledger_of(study).places or table.places
    lines["places"] = (
        f"{places:,} participants, {money(reward(study) * places, currency)} in total, without fees and taxes"
    )
    where = [("living in", table.countries), ("fluent in", table.languages)]
    who = [f"{what} {' or '.join(names)}" for what, names in where if names]
    who += [f"approval rate of {table.min_approval_rate} % or more"] if table.min_approval_rate is not None else []
    who += [f"{table.min_approved:,} or more approved submissions"] if table.min_approved is not None else []
    lines["who"] = ", ".join(who) or "anybody"
    lines["devices"] = ", ".join(table.devices)
    for name, text in lines.items():
        console.print(f"  {name:8} {text}", markup=False, soft_wrap=True)
    print_terms(study)
    console.print("Dry run: nothing was changed on Prolific. Run again without --dry-run.")


def print_offer(study: Study, found: Offer) -> None:
    """Print what publishing would do."""
    from steelyard.cli.output import print_notes

    console = _console()
    console.print(hourly(found.reward, found.minutes, study.config.pay.currency))
    more = f" (now {found.places_now})" if found.published else ""
    console.print(f"{found.places} places{more}{', as a pilot' if found.pilot else ''}")
    stages = study.status().stages
    remaining = sum(stage.total - stage.done for stage in stages)
    tasks = study.config.annotators.max_tasks or 0
    places = (found.places - (found.places_now if found.published else 0)) * tasks
    console.print(f"This adds up to {places:,} answers, checks included; the design needs {remaining:,} more")
    if places > 1.5 * remaining:
        print_notes(
            ["these are far more answers than the design needs: participants who find no task left are screened out"]
        )


def cost_question(study: Study, found: Offer) -> str:
    """Return the question that asks for agreement to the cost."""
    from steelyard.recruitment.estimates import money

    verb = "Add the places" if found.published else "Publish"
    if found.cost is None:
        return f"{verb}? Prolific did not report the cost."
    return f"{verb} for {money(found.cost, study.config.pay.currency)}, fees and taxes included?"


def print_reviews(found: list[Review], chosen: set[str]) -> None:
    """Print the submissions, those to be reviewed by hand first."""
    import polars as pl

    from steelyard.cli.output import plain_table

    rows: list[dict[str, Any]] = [
        {
            "participant": review.participant,
            "reason": review.reason,
            "": "approve" if review.submission in chosen else "review by hand",
        }
        for review in sorted(found, key=lambda one: one.submission in chosen)
    ]
    if rows:
        _console().print(plain_table(pl.DataFrame(rows), ""))


def print_bonuses(owed: dict[str, int], currency: str) -> None:
    """Print the bonus of each participant."""
    import polars as pl

    from steelyard.cli.output import plain_table
    from steelyard.recruitment.estimates import money

    rows = [{"participant": name, "bonus": money(amount, currency)} for name, amount in owed.items()]
    _console().print(plain_table(pl.DataFrame(rows), ""))
