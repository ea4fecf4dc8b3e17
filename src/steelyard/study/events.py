"""The typed events of a study's log.

Each kind of event has a payload class, which says what such an event may hold. Payloads are validated when they are
decoded, so whoever reads the log gets the fields and types declared here or an error that names the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Literal, TypeAlias, Union

import msgspec

from steelyard.errors import StoreError
from steelyard.records import Effort, Item, Purpose
from steelyard.storage.events import TOMBSTONE, StoredEvent, to_json

StateName: TypeAlias = Literal["open", "paused", "closed"]
"""Whether the study hands out tasks."""
RoleName: TypeAlias = Literal["viewer", "manager"]
"""What a member of the team may do: look, or also change the study."""


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """What an event of one kind says. Fields at their default are not written."""

    kind: ClassVar[str]

    def text(self) -> str:
        """Return the payload as the log stores it."""
        return to_json(msgspec.to_builtins(self))


class ConfigChanged(Payload, frozen=True, kw_only=True):
    """The configuration under which everything after it happened."""

    kind = "config"
    config: dict[str, Any]
    items_digest: str
    software: str
    checks_digest: str = ""
    member: str = ""
    """Member of the team who did it; empty for the owner of the server and the command line. So in all events."""


class ItemsAdded(Payload, frozen=True, kw_only=True):
    """Items that joined the study, or changed in what annotators do not see."""

    kind = "items"
    items: list[Item]

    def text(self) -> str:
        """Return the payload as the log stores it: of each item the fields that are set."""
        return to_json({"items": [item_to_data(item) for item in self.items]})


class ChecksAdded(Payload, frozen=True, kw_only=True):
    """The questions with known answers, as rows of their file."""

    kind = "checks"
    questions: list[dict[str, str]]


class CheckResolved(Payload, frozen=True, kw_only=True):
    """What the researcher decided about the known answer of a disputed check."""

    kind = "check_resolved"
    check: str
    verdict: Literal["right", "wrong"]
    member: str = ""


class Picked(Payload, frozen=True, kw_only=True):
    """A task chosen for an annotator and leased to them, with all that is needed to replay the choice."""

    kind = "picked"
    stage: int
    items: tuple[str, ...]
    slot: int | None
    design: str
    settings: dict[str, Any]
    seed: int
    round: int
    weight: float | None
    propensity: float | None
    state: str
    """Digest of the log before this event."""
    lease_end: int
    purpose: Purpose = "judgment"
    about: str = ""
    """Key of the check, or id of the judgment that is repeated."""
    shared: bool = False
    """Whether every annotator will get this task."""
    reason: str = ""
    """Why a person is asked and not a model, where they share the design."""
    behind: int = 0
    """Number of a tombstone that the state did not take into account yet: such a pick cannot be replayed."""


class Judged(Payload, frozen=True, kw_only=True):
    """An annotator's answer to a task."""

    kind = "judgment"
    stage: int
    items: tuple[str, ...]
    answer: Any
    seconds: float | None = None
    """Active time as it was sent."""
    seconds_limit: float | None = None
    """The longest that it can have been, where more was sent."""
    late: bool = False
    imported: bool = False
    slot: int | None = None
    purpose: Purpose = "judgment"
    about: str = ""
    right: bool | None = None
    version: str = ""
    """Of a model's answer: version of its prompt and settings, as registered (JudgeRegistered)."""
    cost: float | None = None
    """Of a model's answer: what it cost."""
    reason: str = ""
    """Of a model's answer: why the model was asked and not a person, where they share the design."""
    comment: str = ""
    """What the annotator wrote about the task."""
    effort: Effort | None = None
    """How the answer came about, as it was sent."""


class Revised(Judged, frozen=True, kw_only=True):
    """A new answer in place of an earlier one; `revises` is the number of the event it replaces."""

    kind = "revision"
    revises: int


class Renewed(Payload, frozen=True, kw_only=True):
    """A lease whose end moved."""

    kind = "renewed"
    lease_end: int


class Skipped(Payload, frozen=True, kw_only=True):
    """A task given back unanswered by its annotator."""

    kind = "skip"
    reason: str


class Flagged(Payload, frozen=True, kw_only=True):
    """An annotator's remark about a task."""

    kind = "flag"
    reason: str


class Expired(Payload, frozen=True, kw_only=True):
    """A lease that ended; the task is free for others."""

    kind = "expired"


class Withdrawn(Payload, frozen=True, kw_only=True):
    """A task of an annotator who was forgotten, taken back."""

    kind = "withdrawn"


class Erased(Payload, frozen=True, kw_only=True):
    """The place of an event that was forgotten with its annotator."""

    kind = "erased"


class Forgotten(Payload, frozen=True, kw_only=True):
    """The tombstone of a forgotten annotator: events from `first` on were replaced."""

    kind = TOMBSTONE
    first: int
    events: int
    judgments: int
    before: str = ""
    """Keyed mark of the log's digest before, where the digests were computed anew. So in logs without seals."""
    after: str = ""
    """Digest of the log before this event, where the digests were computed anew."""
    replaced: str = ""
    """By how much the replacements change the sum of their hashes (StoredEvent.replacement_hash)."""
    member: str = ""


class Excluded(Payload, frozen=True, kw_only=True):
    """An annotator whose judgments are set aside."""

    kind = "exclusion"
    reason: str
    by: str = ""
    """What excluded them by itself (checks, rules); empty where somebody did."""
    member: str = ""


class Readmitted(Payload, frozen=True, kw_only=True):
    """An exclusion undone."""

    kind = "readmission"
    reason: str = ""
    by: str = ""
    member: str = ""


class ItemSetAside(Payload, frozen=True, kw_only=True):
    """An item that nobody is asked about any more."""

    kind = "item_set_aside"
    item: str
    reason: str = ""
    """Of the researcher."""
    by: str = ""
    """What set it aside by itself (rules); empty where somebody did."""
    cannot_judge: int = 0
    """Answers at that time that the item cannot be judged, out of `answers`."""
    answers: int = 0
    reasons: dict[str, int] = {}
    """The reasons of these answers, with their numbers."""
    member: str = ""


class ItemRestored(Payload, frozen=True, kw_only=True):
    """An item that is asked about again."""

    kind = "item_restored"
    item: str
    reason: str = ""
    by: str = ""
    member: str = ""


class StateChanged(Payload, frozen=True, kw_only=True):
    """The study was opened, paused or closed."""

    kind = "state"
    state: StateName
    reason: str
    member: str = ""


class MemberAdded(Payload, frozen=True, kw_only=True):
    """A person who may see or manage the study, with a personal link."""

    kind = "member_added"
    name: str
    role: RoleName
    member: str = ""


class MemberRemoved(Payload, frozen=True, kw_only=True):
    """The link of a member of the team, revoked."""

    kind = "member_removed"
    name: str
    role: RoleName
    member: str = ""


class Frozen(Payload, frozen=True, kw_only=True):
    """The preregistration of a study: plan, hypotheses, exclusion rules and analysis, before the first answer."""

    kind = "frozen"
    digest: str
    """SHA-256 of the preregistered text."""
    config: dict[str, Any]
    """The configuration, with design, exclusion rules, stopping rule and model."""
    hypotheses: list[str]
    planned: int
    """Planned judgments."""
    judgments: int = 0
    """Answers at that time; 0 unless it was forced."""
    member: str = ""


class InterimAnalysis(Payload, frozen=True, kw_only=True):
    """One interim analysis of whether the study may stop."""

    kind = "interim_analysis"
    number: int
    judgments: int
    value: float | None
    bound: float | None
    target: float
    reached: bool
    summary: str


class Consented(Payload, frozen=True, kw_only=True):
    """An annotator's consent to the wording with this digest."""

    kind = "consent"
    digest: str


class QuestionnaireAnswered(Payload, frozen=True, kw_only=True):
    """What an annotator answered about themselves, by the name of the question.

    Exported logs say only what was asked.
    """

    kind = "questionnaire"
    asked: list[str]
    answers: dict[str, str | float | None] = {}


class Trained(Payload, frozen=True, kw_only=True):
    """An annotator finished the training."""

    kind = "trained"
    right: int
    asked: int


class TestAnswered(Payload, frozen=True, kw_only=True):
    """One answer to the qualification test."""

    __test__: ClassVar[bool] = False  # not a test class of pytest's
    kind = "test_answer"
    right: bool


class TestFinished(Payload, frozen=True, kw_only=True):
    """The result of the qualification test."""

    __test__: ClassVar[bool] = False
    kind = "test_result"
    passed: bool
    right: int


class JudgeRegistered(Payload, frozen=True, kw_only=True):
    """An annotator who is a model; again whenever its prompt or settings change. All others are people."""

    kind = "judge"
    source: Literal["endpoint", "function", "import"]
    """What answers: a model behind an HTTP endpoint, a Python function, or scores made elsewhere."""
    version: str
    """Digest of the prompt and the settings; judgments refer to it."""
    model: str = ""
    prompt: str = ""
    """The prompt's template, with the instructions to the model."""
    settings: dict[str, Any] = {}
    member: str = ""


class Arrived(Payload, frozen=True, kw_only=True):
    """A visit from a panel, in the panel's own ids."""

    kind = "arrived"
    study: str
    session: str


class Departed(Payload, frozen=True, kw_only=True):
    """An annotator returned their place on the platform."""

    kind = "departed"
    reason: str


class Returned(Payload, frozen=True, kw_only=True):
    """A departure undone."""

    kind = "returned"


class QuotaSet(Payload, frozen=True, kw_only=True):
    """How many tasks one annotator may have."""

    kind = "quota"
    tasks: int


class PlatformEvent(Payload, frozen=True, kw_only=True, tag_field="what"):
    """A step of the exchange with a recruitment platform; each is written before its request is sent."""

    kind = "platform"


class DraftPlanned(PlatformEvent, frozen=True, kw_only=True, tag="draft"):
    """A draft is about to be created on the platform, under this key and with these completion codes."""

    key: str
    codes: dict[str, str]


class DraftCreated(PlatformEvent, frozen=True, kw_only=True, tag="drafted"):
    """The platform's id of the study."""

    study: str


class PublicationPlanned(PlatformEvent, frozen=True, kw_only=True, tag="publish"):
    """Places that the researcher agreed to pay for."""

    places: int
    pilot: bool = False
    cost: int | float | None = None


class SubmissionSeen(PlatformEvent, frozen=True, kw_only=True, tag="status"):
    """The state of a participant's submission, as the platform reported it."""

    submission: str
    participant: str
    status: str
    at: float
    by: str
    event: str = ""


class BonusPlanned(PlatformEvent, frozen=True, kw_only=True, tag="bonus"):
    """Bonuses to be paid together, in minor units; `before` is what each participant had been paid."""

    amounts: dict[str, int]
    before: dict[str, int]


class BonusCreated(PlatformEvent, frozen=True, kw_only=True, tag="bonus_set_up"):
    """A batch of bonuses exists on the platform under `id`."""

    batch: int
    id: str


class BonusRequested(PlatformEvent, frozen=True, kw_only=True, tag="bonus_paying"):
    """The request to pay a batch is about to be sent."""

    batch: int
    attempt: int


class BonusPaid(PlatformEvent, frozen=True, kw_only=True, tag="bonus_paid"):
    """A batch was paid."""

    batch: int


class BonusDropped(PlatformEvent, frozen=True, kw_only=True, tag="bonus_dropped"):
    """A batch was given up before it was paid."""

    batch: int


class SubmissionForgotten(PlatformEvent, frozen=True, kw_only=True, tag="forgotten"):
    """The place of a step about a participant who was forgotten."""


PLATFORM_EVENTS: tuple[type[PlatformEvent], ...] = (
    DraftPlanned,
    DraftCreated,
    PublicationPlanned,
    SubmissionSeen,
    BonusPlanned,
    BonusCreated,
    BonusRequested,
    BonusPaid,
    BonusDropped,
    SubmissionForgotten,
)
"""The steps of an exchange with a platform, told apart by the field `what`."""

PAYLOADS: dict[str, Any] = {
    payload.kind: payload
    for payload in (
        ConfigChanged,
        ItemsAdded,
        ChecksAdded,
        CheckResolved,
        Picked,
        Judged,
        Revised,
        Renewed,
        Skipped,
        Flagged,
        Expired,
        Withdrawn,
        Erased,
        Forgotten,
        Excluded,
        Readmitted,
        ItemSetAside,
        ItemRestored,
        StateChanged,
        MemberAdded,
        MemberRemoved,
        Frozen,
        InterimAnalysis,
        Consented,
        QuestionnaireAnswered,
        Trained,
        TestAnswered,
        TestFinished,
        JudgeRegistered,
        Arrived,
        Departed,
        Returned,
        QuotaSet,
    )
} | {PlatformEvent.kind: Union[PLATFORM_EVENTS]}  # noqa: UP007  (a tuple of types cannot be written with |)
"""The payload type of every kind of event."""

_DECODERS = {kind: msgspec.json.Decoder(payload).decode for kind, payload in PAYLOADS.items()}


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event of the log. `at` is in microseconds since 1970 (UTC); `text` is the payload as it is stored."""

    seq: int
    at: int
    annotator: str | None
    judgment_id: str | None
    data: Any
    text: str
    digest: str
    seal: str | None = None

    @property
    def kind(self) -> str:
        """The kind of event, as the log names it."""
        return str(self.data.kind)

    def line(self) -> str:
        """Return the event as one line of an exported log."""
        return self.stored().line()

    def stored(self) -> StoredEvent:
        """Return the event as storage keeps it."""
        return StoredEvent(
            self.seq, self.at, self.kind, self.annotator, self.judgment_id, self.text, self.digest, self.seal
        )


class UnknownKindError(ValueError):
    """A kind of event that no payload class describes."""


def decode(stored: StoredEvent) -> Event:
    """Read a stored event; raise UnknownKindError or msgspec.ValidationError (with the field) if it is malformed."""
    seq, at, kind, annotator, judgment_id, text, digest, seal = stored
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise UnknownKindError(f"events of kind '{kind}' are unknown to this version of Steelyard")
    return Event(seq, at, annotator, judgment_id, decoder(text), text, digest, seal)


def decode_own(stored: StoredEvent) -> Event:
    """Read an event of the study's own database; one that is malformed means a damaged or newer database."""
    try:
        return decode(stored)
    except UnknownKindError as error:
        raise StoreError(f"event {stored.seq}: {error}.", "Upgrade Steelyard: pip install -U steelyard.") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise StoreError(
            f"event {stored.seq} ({stored.kind}) is malformed: {error}.",
            "Restore the database from a backup, or upgrade Steelyard if a newer version wrote it.",
        ) from None


def counts_models(config: Mapping[str, Any]) -> bool:
    """Whether a configuration, as the log has it, lets models' judgments count as people's."""
    judges = config.get("judges")
    return isinstance(judges, Mapping) and judges.get("count") is True


def item_to_data(item: Item) -> dict[str, Any]:
    """Return the fields of an item that are set."""
    return {key: value for key, value in asdict(item).items() if value not in (None, (), {})}
