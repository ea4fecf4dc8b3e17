"""Webhooks that recruitment platforms send to the server when a submission changes."""

from __future__ import annotations

import json
import os
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from steelyard.recruitment.submissions import (
    WEBHOOK_SECRET,
    WebhookRefusedError,
    check_webhook,
    read_webhook,
    record_status,
)
from steelyard.web.addresses import address_of
from steelyard.web.errors import Refusal, too_many
from steelyard.web.identity import RateLimiters, StudyDep
from steelyard.web.schemas import ErrorOut

_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorOut, "description": "The webhook is not JSON."},
    401: {"model": ErrorOut, "description": "The signature is wrong, or the webhook is too old."},
    404: {"model": ErrorOut, "description": "There is no such study, or the server does not accept webhooks."},
    429: {"model": ErrorOut, "description": "Too many invalid webhooks; wait and try again."},
}

router = APIRouter(prefix="/api/v1/studies/{study}/hooks", tags=["platforms"], responses=_REFUSALS)


class WebhookOut(BaseModel):
    """The result of a webhook; in all cases, the webhook need not be sent again."""

    result: Annotated[
        Literal["recorded", "unchanged", "unrelated"],
        Field(description="unchanged: the status was already recorded; unrelated: not about this study's submissions"),
    ]
    released_tasks: Annotated[int, Field(description="tasks that the participant no longer holds")] = 0


@router.post("/prolific")
async def prolific(served: StudyDep, request: Request) -> WebhookOut:
    """Record that a submission on Prolific has changed; the tasks of participants who returned it are released.

    An event that was already received, or is older than the recorded status, changes nothing.
    """
    limiters: RateLimiters = request.app.state.rate_limiters
    address = address_of(request.scope)
    if wait := limiters.guessing.wait(address):
        raise too_many(wait)
    secret = os.environ.get(WEBHOOK_SECRET)
    if not secret:
        raise Refusal(
            404, "hook_unset", "This server does not accept webhooks.", f"Set {WEBHOOK_SECRET} and restart it."
        )
    body, headers, now = await request.body(), request.headers, time.time()
    try:
        timestamp = headers.get("x-prolific-request-timestamp", "")
        check_webhook(secret, timestamp, headers.get("x-prolific-request-signature", ""), body, now)
        # The time of the event, if the header has it: it stays the same when the webhook is sent again.
        at = headers.get("x-timestamp", timestamp)
        status = read_webhook(json.loads(body), served.platform_ledger().study_id, float(at) if at.isdecimal() else now)
    except WebhookRefusedError as error:
        limiters.guessing.wrong(address, headers.get("x-prolific-request-signature", ""))
        problem = error.problems[0]
        raise Refusal(401, "hook_invalid", problem.what, problem.remedy) from None
    except (ValueError, RecursionError):
        raise Refusal(400, "malformed", "The webhook is not valid JSON.") from None
    if status is None:
        return WebhookOut(result="unrelated")
    event = headers.get("x-event-id", "")[:200]
    released = await run_in_threadpool(record_status, served.study, status, "hook", event)
    if released is None:
        return WebhookOut(result="unchanged")
    return WebhookOut(result="recorded", released_tasks=released)
