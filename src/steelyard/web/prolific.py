"""Prolific in the browser: the state of the study there, and what `steelyard prolific` does, previewed and confirmed.

An action that costs money or cannot be undone has two requests. The first returns what would happen, with a digest of
it; the second repeats the digest and is refused if anything has changed in between.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from steelyard.errors import ConfigError, SteelyardError
from steelyard.recruitment import bonuses, prolific, review
from steelyard.recruitment.client import ADDRESS, PROLIFIC, TOKENS, Client, token_from_environment
from steelyard.recruitment.estimates import money
from steelyard.recruitment.ledger import Batch, read_submission
from steelyard.study import Study
from steelyard.web.errors import Refusal
from steelyard.web.identity import Manager, StudyDep
from steelyard.web.schemas import ErrorOut
from steelyard.web.studies import ServedStudy

Action = Literal["draft", "publish", "sync", "approve", "reject", "bonus", "stop"]

_REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"model": ErrorOut, "description": "Not the manager."},
    409: {"model": ErrorOut, "description": "Prolific refused it, or it has changed since it was previewed."},
}
router = APIRouter(prefix="/api/v1/studies/{study}/manage/prolific", tags=["manage"], responses=_REFUSALS)


class ProlificOut(BaseModel):
    """The state of the study on Prolific, and the actions that are possible now."""

    connected: Annotated[bool, Field(description="whether study.toml has [prolific] and the server an API token")]
    text: Annotated[str, Field(description="the state in a sentence, or how to connect the study")]
    submissions: Annotated[dict[str, int], Field(description="number of submissions by status")] = {}
    facts: Annotated[dict[str, str], Field(description="places, payments and more, formatted")] = {}
    actions: list[Action] = []
    awaiting: Annotated[list[str], Field(description="participants whose submissions await review")] = []
    categories: Annotated[list[str], Field(description="reasons for a rejection that Prolific knows")] = []


class ActionRequest(BaseModel):
    """An action on Prolific. Without `agreed`, it is only previewed."""

    model_config = ConfigDict(extra="forbid", strict=True)

    action: Action
    pilot: Annotated[int | None, Field(ge=1, le=100_000, description="publish: number of places of a pilot")] = None
    participants: Annotated[
        list[Annotated[str, Field(max_length=300)]], Field(max_length=1000, description="reject: whose submissions")
    ] = []
    category: Annotated[str, Field(max_length=50, description="reject: Prolific's name of the reason")] = ""
    message: Annotated[str, Field(max_length=2000, description="reject: what the participants read")] = ""
    agreed: Annotated[str, Field(max_length=64, description="the digest of the preview that is confirmed")] = ""


class ActionOut(BaseModel):
    """What an action would do, with the digest to confirm it; or what it did."""

    done: bool
    lines: list[str]
    digest: Annotated[str, Field(description="empty if there is nothing to do")] = ""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What an action would do: the lines that are shown, and the data that the confirmation agrees to."""

    lines: list[str]
    content: Any
    data: Any = None

    @property
    def digest(self) -> str:
        """The digest of what is agreed to; empty if there is nothing to do."""
        if self.content is None:
            return ""
        text = json.dumps(self.content, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@contextmanager
def _client() -> Iterator[Client]:
    try:
        with Client(token_from_environment(), address=os.environ.get(ADDRESS) or PROLIFIC) as client:
            yield client
    except SteelyardError as error:
        problem = error.problems[0]
        raise Refusal(409, "prolific", problem.what, problem.remedy) from None


@router.get("")
def state(served: StudyDep, _: Manager) -> ProlificOut:
    """The state of the study on Prolific. Nothing is changed."""
    study = served.study
    if study.config.prolific is None:
        how = "This study is not connected to Prolific. Choose Edit, then Share, and fill in Prolific."
        return ProlificOut(connected=False, text=f"{how} The server needs your API token in {TOKENS[0]}.")
    if token_from_environment() is None:
        text = f"The server has no token for Prolific's API. Set {TOKENS[0]} and restart it."
        return ProlificOut(connected=False, text=text)
    if not prolific.ledger_of(study).study_id:
        text = "The study is not on Prolific yet. Create a draft there; nobody sees it until you publish it."
        return ProlificOut(connected=True, text=text, actions=["draft"])
    with _client() as client:
        return _state(study, client)


def _state(study: Study, client: Client) -> ProlificOut:
    study_id, currency = prolific.drafted_id(study), study.config.pay.currency
    remote = client.study(study_id)
    listed, at = client.submissions(study_id)
    submissions = [read_submission(data, at) for data in listed]
    statuses = [one.status for one in submissions]
    awaiting = sorted(one.participant for one in submissions if one.status == review.AWAITING_REVIEW)
    counts = {name: statuses.count(name) for name in sorted(set(statuses))}
    received = sum(bonuses.received_bonuses(listed).values())
    rewards = statuses.count("APPROVED") * int(remote.get("reward", 0))
    remote_state = str(remote.get("status", "")).upper()
    facts = {
        "Places taken": f"{remote.get('places_taken', 0)} of {remote.get('total_available_places', 0)}",
        "Paid to participants": f"{money(rewards + received, currency)}, of which bonuses {money(received, currency)}",
    }
    actions: list[Action] = ["draft", "publish"] if remote_state == "UNPUBLISHED" else ["sync", "publish"]
    if review.AWAITING_REVIEW in counts:
        actions += ["approve", "reject"]
    if study.config.pay.formula is not None and "APPROVED" in counts:
        actions.append("bonus")
    if remote_state in {"ACTIVE", "PAUSED", "SCHEDULED", "PUBLISHING"}:
        actions.append("stop")
    return ProlificOut(
        connected=True,
        text=f"“{remote.get('name')}” is {remote_state.lower()} on Prolific.",
        submissions=counts,
        facts=facts,
        actions=actions,
        awaiting=awaiting,
        categories=list(review.CATEGORIES) if awaiting else [],
    )


@router.post("")
def act(served: StudyDep, request: Request, _: Manager, body: ActionRequest) -> ActionOut:
    """Preview an action on Prolific, or carry out one that was previewed."""
    with _client() as client:
        plan = _plan(client, served, request, body)
        if not body.agreed:
            return ActionOut(done=False, lines=plan.lines, digest=plan.digest)
        if not plan.digest or not hmac.compare_digest(body.agreed.encode(), plan.digest.encode()):
            raise Refusal(
                409, "changed", "The situation on Prolific has changed since the preview.", "Look at it again."
            )
        return ActionOut(done=True, lines=[_carry_out(client, served, request, body, plan)])


def _plan(client: Client, served: ServedStudy, request: Request, body: ActionRequest) -> _Plan:
    study = served.study
    if body.action == "draft":
        url = _base_url(study, request)
        lines = [f"Create or update an unpublished study on Prolific that links to {url}.", "It costs nothing."]
        return _Plan(lines, {"draft": url})
    if body.action == "publish":
        return _publication(client, study, body.pilot)
    if body.action == "sync":
        return _Plan(["Read all submissions, and release the tasks of participants who left."], {"sync": 1})
    if body.action == "stop":
        lines = ["Stop the study on Prolific: nobody new can take part; participants who have begun may finish."]
        return _Plan([*lines, "It cannot be started again."], {"stop": prolific.drafted_id(study)})
    if body.action == "reject":
        return _rejections(client, study, body)
    return _approvals(client, study) if body.action == "approve" else _payments(client, study)


def _payments(client: Client, study: Study) -> _Plan:
    currency = study.config.pay.currency
    listed, _ = client.submissions(prolific.drafted_id(study))
    ledger = prolific.ledger_of(study)
    owed, _ = bonuses.still_owed(bonuses.earned_bonuses(study), ledger, listed)
    unfinished = ledger.open_batch
    lines = [f"{name}: {money(amount, currency)}" for name, amount in owed.items()]
    if unfinished is not None:
        lines.insert(0, f"First, complete a payment of {money(unfinished.total, currency)} that was begun earlier.")
    if not lines:
        return _Plan(["No bonuses are due to approved participants."], None)
    lines.append(f"Pay {money(sum(owed.values()), currency)} to {len(owed)} participants. Prolific's fee is extra.")
    begun = None if unfinished is None else unfinished.number
    return _Plan(lines, {"owed": owed, "begun": begun}, (owed, listed))


def _publication(client: Client, study: Study, pilot: int | None) -> _Plan:
    offer = prolific.offer(client, study, pilot)
    currency = study.config.pay.currency
    if offer.nothing_to_do:
        return _Plan([f"The study is on Prolific with {offer.places} places. There is nothing to do."], None)
    cost = "an unknown amount" if offer.cost is None else money(offer.cost, currency)
    places = f"{offer.places} places{' (pilot)' if offer.pilot else ''}"
    lines = [
        f"Raise the number of places from {offer.places_now} to {places}."
        if offer.published
        else f"Publish the study with {places}.",
        f"Each participant gets {money(offer.reward, currency)} for about {offer.minutes} minutes.",
        f"Cost with fees and taxes: {cost}.",
    ]
    return _Plan(lines, asdict(offer), offer)


def _approvals(client: Client, study: Study) -> _Plan:
    reviews = review.review_submissions(study, prolific.sync(client, study).submissions)
    passing = [one for one in reviews if one.passes]
    lines = [f"{one.participant}: {'approve' if one.passes else 'review by hand'} ({one.reason})" for one in reviews]
    if not passing:
        return _Plan([*lines, "No submission that passes the review awaits approval."], None)
    lines.append(f"Approve {len(passing)} of {len(reviews)} submissions. They will be paid. This cannot be undone.")
    return _Plan(lines, sorted(one.submission for one in passing), passing)


def _rejections(client: Client, study: Study, body: ActionRequest) -> _Plan:
    if not body.participants:
        raise ConfigError("no submission is chosen.", "Choose the participants whose submissions to reject.")
    review.check_rejection(body.category, body.message)
    listed, at = client.submissions(prolific.drafted_id(study))
    awaiting = {
        one.participant for data in listed if (one := read_submission(data, at)).status == review.AWAITING_REVIEW
    }
    chosen = [name for name in dict.fromkeys(body.participants) if name in awaiting]
    if not chosen:
        return _Plan(["None of these submissions awaits review."], None)
    lines = [f"{name}: reject" for name in chosen]
    count = "1 submission" if len(chosen) == 1 else f"{len(chosen)} submissions"
    lines.append(f"Reject {count}. The participants are not paid, and will see your message.")
    return _Plan(lines, {"reject": chosen, "category": body.category, "message": body.message}, chosen)


def _carry_out(client: Client, served: ServedStudy, request: Request, body: ActionRequest, plan: _Plan) -> str:
    study = served.study
    match body.action:
        case "draft":
            study_id = prolific.draft(client, study, _base_url(study, request), served.slug)
            result = f"Drafted on Prolific as {study_id}."
        case "publish":
            prolific.publish(client, study, plan.data)
            result = f"{plan.data.places} places are open. Keep the server running."
        case "sync":
            synced = prolific.sync(client, study)
            result = f"{synced.changed} submissions have changed; {synced.released_tasks} tasks released."
        case "stop":
            result = f"Stopped: on Prolific the study is {prolific.stop(client, study).lower()} now."
        case "approve":
            result = f"{review.approve(client, study, plan.data)} of {len(plan.data)} submissions are approved."
        case "reject":
            done = review.reject(client, study, plan.data, body.category, body.message.strip())
            count = "1 submission is" if done == 1 else f"{done} submissions are"
            result = f"{count} rejected; tasks that these participants still held are free for others."
        case "bonus":
            result = _pay(client, study, *plan.data)
    return result


def _pay(client: Client, study: Study, owed: dict[str, int], listed: list[dict[str, Any]]) -> str:
    """Pay bonuses; a payment whose answer was lost is never sent again from the browser."""

    def send_again(_: Batch) -> bool:
        return False

    grace, currency = bonuses.GRACE_MINUTES, study.config.pay.currency
    unfinished = prolific.ledger_of(study).open_batch
    paid = 0
    if unfinished is not None:
        if not bonuses.complete_batch(client, study, unfinished, grace_minutes=grace, send_again=send_again):
            raise ConfigError(
                f"Prolific does not list a payment of {money(unfinished.total, currency)} that was requested earlier.",
                "Check your balance there, then run: steelyard prolific bonus",
            )
        paid += unfinished.total
    earned = bonuses.earned_bonuses(study)
    paid += bonuses.pay_owed(client, study, earned, owed, listed, grace_minutes=grace, send_again=send_again)
    return f"{money(paid, currency)} of bonuses paid."


def _base_url(study: Study, request: Request) -> str:
    table = study.config.prolific
    url = (None if table is None else table.url) or request.app.state.public_url
    if not url:
        raise ConfigError(
            "the public address of this server is unknown.",
            "Set url in [prolific], or start the server with --public-url https://judge.example.org.",
        )
    return str(url)
