"""What platforms tell the server by themselves: webhooks about people's submissions."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from steelyard.recruitment.submissions import HOOK_SECRET, HookRefusedError, check_hook, hear, hook_sighting
from steelyard.web.addresses import address_of
from steelyard.web.errors import Refusal, too_many
from steelyard.web.identity import Gate, ServedStudy
from steelyard.web.shapes import ErrorOut

_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorOut, "description": "The webhook is not JSON."},
    401: {"model": ErrorOut, "description": "Its signature is wrong, or it is too old."},
    404: {"model": ErrorOut, "description": "There is no such study, or the server takes no webhooks."},
    429: {"model": ErrorOut, "description": "Too many that were wrong; wait and try again."},
}

router = APIRouter(prefix="/api/v1/studies/{study}/hooks", tags=["platforms"], responses=_REFUSALS)


class HeardOut(BaseModel):
    """What became of a webhook; whatever it is, it need not be sent again."""

    heard: Literal["news", "known", "not ours"]
    freed: int = 0


@router.post("/prolific")
async def prolific(served: ServedStudy, request: Request) -> HeardOut:
    """Hear from Prolific that a submission has changed; the tasks of those who gave their place back are free at once.

    The same event twice, or one that a later one has overtaken, changes nothing.
    """
    gate: Gate = request.app.state.gate
    address = address_of(request.scope)
    if wait := gate.guessing.wait(address):
        raise too_many(wait)
    secret = os.environ.get(HOOK_SECRET)
    if not secret:
        raise Refusal(404, "hook_unset", "This server does not take webhooks.", f"Set {HOOK_SECRET} and restart it.")
    body, headers, now = await request.body(), request.headers, time.time()
    try:
        sent = headers.get("x-prolific-request-timestamp", "")
        check_hook(secret, sent, headers.get("x-prolific-request-signature", ""), body, now)
        # The event's own time, where it is told: the same when it is sent again.
        at = headers.get("x-timestamp", sent)
        sighting = hook_sighting(
            json.loads(body), served.platform_ledger().study_id, float(at) if at.isdecimal() else now
        )
    except HookRefusedError as error:
        gate.guessing.wrong(address, headers.get("x-prolific-request-signature", ""))
        problem = error.problems[0]
        raise Refusal(401, "hook_invalid", problem.what, problem.remedy) from None
    except (ValueError, RecursionError):
        raise Refusal(400, "malformed", "The webhook is not valid JSON.") from None
    if sighting is None:
        return HeardOut(heard="not ours")
    event = headers.get("x-event-id", "")[:200]
    freed = await run_in_threadpool(hear, served.study, sighting, "hook", event)
    return HeardOut(heard="known") if freed is None else HeardOut(heard="news", freed=freed)
