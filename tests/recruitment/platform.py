"""The platform behind the stand-in: its state, its books, and what it says to each request. See standin.py."""

from __future__ import annotations

import base64
import copy
import hashlib
import hmac
import itertools
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

FEE, VAT = 1 / 3, 0.2
_NEEDED = {
    "name",
    "internal_name",
    "description",
    "external_study_url",
    "prolific_id_option",
    "completion_codes",
    "total_available_places",
    "estimated_completion_time",
    "reward",
}
_AFTER_PUBLISHING = {"total_available_places", "internal_name"}
_ACTIONS = {"AUTOMATICALLY_APPROVE", "MANUALLY_REVIEW", "REQUEST_RETURN", "FIXED_SCREEN_OUT_PAYMENT"}
FILTERS: list[dict[str, Any]] = [
    {
        "filter_id": "current-country-of-residence",
        "choices": {"0": "United Kingdom", "1": "United States", "20": "Spain"},
    },
    {"filter_id": "fluent-languages", "choices": {"19": "English", "58": "Spanish"}},
    {"filter_id": "approval_rate", "min": 0, "max": 100},
    {"filter_id": "approval_numbers", "min": 0, "max": 100_000},
]

Trouble = Literal["429", "500", "500 after", "lost", "lost after"]
"""What may happen to a request. "after": it is carried out all the same."""


class RefusedError(Exception):
    """A request that the platform refuses."""

    def __init__(self, status: int, detail: Any, *, simple: bool = False) -> None:
        super().__init__(detail)
        self.status = status
        inner = {"status": status, "title": "Bad request", "detail": detail, "error_code": 140000 + status}
        self.body: Any = {"message": "refused", "detail": detail} if simple else {"error": inner}


@dataclass
class Platform:
    """The platform's own state and books. All money is in minor units."""

    balance: int = 1_000_000
    pay_delay: float = 0.0
    """Seconds until a bonus that was paid shows."""
    studies: dict[str, dict[str, Any]] = field(default_factory=dict)
    submissions: dict[str, dict[str, Any]] = field(default_factory=dict)
    batches: dict[str, tuple[str, dict[str, int]]] = field(default_factory=dict)
    payments: list[tuple[str, str, int]] = field(default_factory=list)
    """Every payment there was: reward or bonus, participant, amount."""
    hooks: list[dict[str, Any]] = field(default_factory=list)
    hook_secret: str = ""
    requests: list[str] = field(default_factory=list)
    troubles: deque[Trouble | None] = field(default_factory=deque)
    """What happens to the next requests, in order."""
    on_request: Callable[[int, str], Trouble | None] = lambda number, request: None
    """Called with the number of each request and what it is."""
    on_done: Callable[[int, str], None] = lambda number, request: None
    """Called when a request was carried out, before it is answered."""
    _ids: Any = field(default_factory=lambda: itertools.count(1))
    _shown_at: list[tuple[float, str, int]] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def new_id(self, prefix: str) -> str:
        return f"{prefix}{next(self._ids):023x}"

    def cost(self, reward: int, places: int) -> int:
        fee = reward * places * FEE
        return round(reward * places + fee + fee * VAT)

    def bonuses_are_visible(self) -> bool:
        """Return whether the delay of every payment is over, so that requests list it."""
        return all(moment <= time.monotonic() for moment, _, _ in self._shown_at)

    def snapshot(self) -> dict[str, Any]:
        """Return all there is, to go back to."""
        names = ("balance", "pay_delay", "studies", "submissions", "batches", "payments", "_shown_at")
        return copy.deepcopy({name: getattr(self, name) for name in names})

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        for name, value in copy.deepcopy(snapshot).items():
            setattr(self, name, value)
        self.requests.clear()
        self.on_request, self.on_done = (lambda number, request: None), (lambda number, request: None)

    # What participants do

    def take_place(self, participant: str, study_id: str | None = None) -> str:
        """Somebody starts; return the id of the submission."""
        with self._lock:
            study = self.studies[study_id or next(iter(self.studies))]
            assert study["status"] == "ACTIVE", study["status"]
            assert self.places_taken(study["id"]) < study["total_available_places"], "no place is left"
            new = self.new_id("5")
            self.submissions[new] = {
                "id": new,
                "study_id": study["id"],
                "participant_id": participant,
                "status": "ACTIVE",
                "study_code": None,
                "bonus_payments": [],
            }
            return new

    def places_taken(self, study_id: str) -> int:
        active = {"RESERVED", "ACTIVE", "AWAITING REVIEW", "APPROVED"}
        return sum(s["study_id"] == study_id and s["status"] in active for s in self.submissions.values())

    def finish(self, submission: str, code: str) -> None:
        """Somebody comes back with a code."""
        with self._lock:
            record = self.submissions[submission]
            study = self.studies[record["study_id"]]
            codes = {entry["code"]: entry for entry in study["completion_codes"]}
            actions = [action["action"] for action in codes.get(code, {"actions": []})["actions"]]
            record["study_code"] = code
            if "FIXED_SCREEN_OUT_PAYMENT" in actions:
                record["status"] = "SCREENED OUT"
            elif "REQUEST_RETURN" in actions:
                record["status"] = "RETURNED"
            else:
                record["status"] = "AWAITING REVIEW"
            self._settle_study(study)

    def change(self, submission: str, status: str) -> None:
        """Somebody returns, or their time is up."""
        with self._lock:
            self.submissions[submission]["status"] = status

    def _settle_study(self, study: dict[str, Any]) -> None:
        own = [s for s in self.submissions.values() if s["study_id"] == study["id"]]
        done = sum(s["status"] in {"AWAITING REVIEW", "APPROVED"} for s in own)
        if study["status"] == "ACTIVE" and done >= study["total_available_places"]:
            study["status"] = "AWAITING REVIEW"
        if study["status"] == "AWAITING REVIEW" and not any(s["status"] in {"AWAITING REVIEW", "ACTIVE"} for s in own):
            study["status"] = "COMPLETED"

    def tell(self, submission: str, *, event: str, at: float | None = None, times: int = 1) -> list[httpx.Response]:
        """Send the webhook about a submission, as often as it takes."""
        record = self.submissions[submission]
        body = {
            "event_type": "submission.status.change",
            "resource_id": submission,
            "participant_id": record["participant_id"],
            "study_id": record["study_id"],
            "status": record["status"],
        }
        raw, stamp = json.dumps(body).encode(), str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "X-Prolific-Request-Timestamp": stamp,
            "X-Prolific-Request-Signature": base64.b64encode(
                hmac.new(self.hook_secret.encode(), stamp.encode() + raw, hashlib.sha256).digest()
            ).decode(),
            "X-Event-ID": event,
            "X-Timestamp": str(int(time.time() if at is None else at)),
        }
        targets = [hook["target_url"] for hook in self.hooks if hook["is_enabled"]]
        return [httpx.post(target, content=raw, headers=headers) for target in targets for _ in range(times)]

    # PlatformLedger

    def paid(self, kind: str) -> dict[str, int]:
        """What each participant got, of rewards or bonuses."""
        totals: dict[str, int] = {}
        for what, participant, amount in self.payments:
            if what == kind:
                totals[participant] = totals.get(participant, 0) + amount
        return totals

    def _show_bonuses(self) -> None:
        due = [entry for entry in self._shown_at if entry[0] <= time.monotonic()]
        self._shown_at = [entry for entry in self._shown_at if entry not in due]
        for _, submission, amount in due:
            self.submissions[submission]["bonus_payments"].append(amount)

    # What researchers ask

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any, dict[str, str]]:
        with self._lock:
            self._show_bonuses()
            for known_method, pattern, handle in _ROUTES:
                matched = re.fullmatch(pattern, path)
                if matched and known_method == method:
                    answer: tuple[int, Any, dict[str, str]] = handle(self, *matched.groups(), query=query, body=body)
                    return answer
        raise RefusedError(404, f"nothing at {path}", simple=True)

    def _study(self, study_id: str) -> dict[str, Any]:
        if study_id not in self.studies:
            raise RefusedError(404, "The study does not exist")
        return self.studies[study_id]

    def create_study(self, *, query: Any, body: dict[str, Any]) -> Any:
        missing = _NEEDED - set(body)
        if missing:
            raise RefusedError(400, {name: ["This field is required."] for name in sorted(missing)})
        self._check(body)
        study = {**body, "id": self.new_id("6"), "status": "UNPUBLISHED"}
        self.studies[study["id"]] = study
        return 201, self._shown(study), {}

    def _check(self, body: dict[str, Any]) -> None:
        if not isinstance(body["reward"], int) or body["reward"] < 5:
            raise RefusedError(400, {"reward": ["Ensure this is an integer of 5 or more."]})
        if not isinstance(body["estimated_completion_time"], int) or body["estimated_completion_time"] < 1:
            raise RefusedError(400, {"estimated_completion_time": ["Ensure this is 1 or more."]})
        if not isinstance(body["total_available_places"], int) or body["total_available_places"] < 1:
            raise RefusedError(400, {"total_available_places": ["Ensure this is 1 or more."]})
        if "{{%PROLIFIC_PID%}}" not in body["external_study_url"]:
            raise RefusedError(400, {"external_study_url": ["The participant id is missing."]})
        actions = {action["action"] for code in body["completion_codes"] for action in code["actions"]}
        if not actions <= _ACTIONS:
            raise RefusedError(400, {"completion_codes": ["Unknown action."]})
        filters: dict[str, Any] = {str(one["filter_id"]): one for one in FILTERS}
        for chosen in body.get("filters", []):
            choices = filters.get(chosen["filter_id"])
            if choices is None or not set(chosen.get("selected_values", [])) <= set(choices.get("choices", {})):
                raise RefusedError(400, {"filters": [f"{chosen['filter_id']}: unknown filter or choice."]})

    def _shown(self, study: dict[str, Any]) -> dict[str, Any]:
        places = self.places_taken(study["id"])
        total = self.cost(study["reward"], study["total_available_places"])
        return {**study, "places_taken": places, "total_cost": total, "currency_code": "USD"}

    def list_studies(self, *, query: dict[str, list[str]], body: Any) -> Any:
        return _page([self._shown(study) for study in self.studies.values()], query)

    def read_study(self, study_id: str, *, query: Any, body: Any) -> Any:
        return 200, self._shown(self._study(study_id)), {}

    def update_study(self, study_id: str, *, query: Any, body: dict[str, Any]) -> Any:
        study = self._study(study_id)
        if study["status"] != "UNPUBLISHED":
            frozen = set(body) - _AFTER_PUBLISHING
            if frozen:
                raise RefusedError(400, {name: ["This cannot be changed after publishing."] for name in sorted(frozen)})
            if body.get("total_available_places", study["total_available_places"]) < study["total_available_places"]:
                raise RefusedError(400, {"total_available_places": ["Places can only be increased."]})
            more = body.get("total_available_places", study["total_available_places"]) - study["total_available_places"]
            self._lock_money(self.cost(study["reward"], more))
            if more and study["status"] in {"AWAITING REVIEW", "COMPLETED"}:
                study["status"] = "ACTIVE"
        self._check({**study, **body})
        study.update(body)
        return 200, self._shown(study), {}

    def _lock_money(self, amount: int) -> None:
        if amount > self.balance:
            raise RefusedError(400, "Not enough funds. Top up your account.")
        self.balance -= amount

    def transition(self, study_id: str, *, query: Any, body: dict[str, Any]) -> Any:
        study, action = self._study(study_id), body.get("action")
        if action == "PUBLISH" and study["status"] == "UNPUBLISHED":
            self._lock_money(self.cost(study["reward"], study["total_available_places"]))
            study["status"] = "ACTIVE"
        elif action == "STOP" and study["status"] in {"ACTIVE", "PAUSED"}:
            study["status"] = "AWAITING REVIEW"
            self._settle_study(study)
        else:
            raise RefusedError(400, f"{action} is not possible from {study['status']}")
        return 200, self._shown(study), {}

    def calculate(self, *, query: Any, body: dict[str, Any]) -> Any:
        return 200, {"total_cost": self.cost(body["reward"], body["total_available_places"])}, {}

    def list_filters(self, *, query: dict[str, list[str]], body: Any) -> Any:
        # This list does not come in pages.
        return 200, {"results": FILTERS}, {}

    def list_submissions(self, study_id: str, *, query: dict[str, list[str]], body: Any) -> Any:
        self._study(study_id)
        own = [dict(s) for s in self.submissions.values() if s["study_id"] == study_id]
        return _page(own, query)

    def bulk_approve(self, *, query: Any, body: dict[str, Any]) -> Any:
        for submission in body["submission_ids"]:
            record = self.submissions.get(submission)
            if record is None:
                raise RefusedError(400, f"{submission} does not exist")
            if record["status"] == "AWAITING REVIEW":
                self._approve(record)
        return 200, {"message": "The request to bulk approve has been made successfully."}, {}

    def _approve(self, found: dict[str, Any]) -> None:
        study = self.studies[found["study_id"]]
        found["status"] = "APPROVED"
        self.payments.append(("reward", found["participant_id"], study["reward"]))
        self._settle_study(study)

    def decide(self, submission: str, *, query: Any, body: dict[str, Any]) -> Any:
        record = self.submissions.get(submission)
        if record is None or record["status"] != "AWAITING REVIEW":
            raise RefusedError(400, "Only submissions that await review can be decided on.")
        if body["action"] == "APPROVE":
            self._approve(record)
        elif body["action"] == "REJECT":
            if len(body.get("message", "")) < 100 or not body.get("rejection_category"):
                raise RefusedError(400, {"message": ["Ensure this has at least 100 characters."]})
            record["status"] = "REJECTED"
            self._settle_study(self.studies[record["study_id"]])
        return 200, dict(record), {}

    def set_up_bonuses(self, *, query: Any, body: dict[str, Any]) -> Any:
        rows = [row.split(",") for row in body["csv_bonuses"].splitlines()]
        own = {s["participant_id"] for s in self.submissions.values() if s["study_id"] == body["study_id"]}
        if len(rows) > 200 or any(len(row) != 2 or row[0] not in own for row in rows):
            raise RefusedError(400, {"csv_bonuses": ["Unknown participant, or more than 200."]})
        amounts: dict[str, int] = {}
        for participant, amount in rows:
            amounts[participant] = round(float(amount) * 100)
        new = self.new_id("7")
        self.batches[new] = (body["study_id"], amounts)
        total = sum(amounts.values())
        batch = {"id": new, "study": body["study_id"], "amount": total, "fees": total * FEE, "vat": total * FEE * VAT}
        return 201, batch, {}

    def pay_bonuses(self, batch: str, *, query: Any, body: Any) -> Any:
        if batch not in self.batches:
            raise RefusedError(404, "The bulk bonus payment does not exist")
        study_id, amounts = self.batches[batch]
        self._lock_money(round(sum(amounts.values()) * (1 + FEE * (1 + VAT))))
        for participant, amount in amounts.items():
            submission = next(
                s["id"]
                for s in self.submissions.values()
                if (s["study_id"], s["participant_id"]) == (study_id, participant)
            )
            # Not idempotent: whoever asks twice pays twice.
            self.payments.append(("bonus", participant, amount))
            self._shown_at.append((time.monotonic() + self.pay_delay, submission, amount))
        return 202, {}, {}

    def secrets(self, *, query: Any, body: Any) -> Any:
        secrets_ = [{"id": "1", "value": self.hook_secret}] if self.hook_secret else []
        return 200, {"results": secrets_}, {}

    def make_secret(self, *, query: Any, body: Any) -> Any:
        self.hook_secret = self.new_id("secret")
        return 201, {"id": "1", "value": self.hook_secret}, {}

    def list_hooks(self, *, query: dict[str, list[str]], body: Any) -> Any:
        return _page(self.hooks, query)

    def subscribe(self, *, query: Any, body: dict[str, Any]) -> Any:
        if not self.hook_secret:
            raise RefusedError(400, "Make a secret first.")
        new = {"id": self.new_id("8"), **body, "is_enabled": False}
        self.hooks.append(new)
        return 201, new, {"X-Hook-Secret": f"confirm-{new['id']}"}

    def confirm(self, hook_id: str, *, query: Any, body: dict[str, Any]) -> Any:
        subscription = next(hook for hook in self.hooks if hook["id"] == hook_id)
        if body.get("secret") != f"confirm-{hook_id}":
            raise RefusedError(400, "That is not the secret.")
        subscription["is_enabled"] = True
        return 200, subscription, {}


def _page(rows: list[dict[str, Any]], query: dict[str, list[str]]) -> tuple[int, Any, dict[str, str]]:
    offset, limit = (int(query.get(name, [default])[0]) for name, default in (("offset", "0"), ("limit", "20")))
    return 200, {"results": rows[offset : offset + limit], "meta": {"count": len(rows)}}, {}


_ROUTES: list[tuple[str, str, Any]] = [
    ("POST", "/api/v1/studies/", Platform.create_study),
    ("GET", "/api/v1/studies/", Platform.list_studies),
    ("GET", "/api/v1/studies/([^/]+)/", Platform.read_study),
    ("PATCH", "/api/v1/studies/([^/]+)/", Platform.update_study),
    ("POST", "/api/v1/studies/([^/]+)/transition/", Platform.transition),
    ("POST", "/api/v1/study-cost-calculator/", Platform.calculate),
    ("GET", "/api/v1/filters/", Platform.list_filters),
    ("GET", "/api/v1/studies/([^/]+)/submissions/", Platform.list_submissions),
    ("POST", "/api/v1/submissions/bulk-approve/", Platform.bulk_approve),
    ("POST", "/api/v1/submissions/bonus-payments/", Platform.set_up_bonuses),
    ("POST", "/api/v1/submissions/([^/]+)/transition/", Platform.decide),
    ("POST", "/api/v1/bulk-bonus-payments/([^/]+)/pay/", Platform.pay_bonuses),
    ("GET", "/api/v1/hooks/secrets/", Platform.secrets),
    ("POST", "/api/v1/hooks/secrets/", Platform.make_secret),
    ("GET", "/api/v1/hooks/subscriptions/", Platform.list_hooks),
    ("POST", "/api/v1/hooks/subscriptions/", Platform.subscribe),
    ("POST", "/api/v1/hooks/subscriptions/([^/]+)/", Platform.confirm),
]
