"""The study's state as a fold over its log: items, how far each stage is, who has done what."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any, Literal, TypeAlias

from steelyard.designs.base import NoTask, generator_for
from steelyard.designs.state import AnswerNotice
from steelyard.errors import StoreError, StudyChangedError
from steelyard.quality.questions import read_questions
from steelyard.records import ABOUT_PEOPLE, Answer, Item
from steelyard.store.events import Event
from steelyard.study.config import Stage
from steelyard.study.recruits import Recruits
from steelyard.study.vetting import Shared, Vetting

State: TypeAlias = Literal["open", "paused", "closed"]
"""Whether the study asks anybody anything."""


@dataclass(frozen=True, slots=True)
class OutTask:
    """A task that is out, came back unanswered (a late answer may still arrive), or is answered.

    `answer` is kept only where a design learns from answers; `about` is the check's key, or the judgment that is
    repeated.
    """

    annotator: str
    stage: int
    items: tuple[int, ...]
    slot: int | None
    released: bool = False
    answer: Answer | None = None
    purpose: str = "judgment"
    about: str = ""

    @property
    def in_design(self) -> bool:
        """Whether it is one of the design's tasks, rather than one about the annotator."""
        return self.purpose not in ABOUT_PEOPLE


class Ledger:
    """What the log adds up to. `apply` takes events in order; equal logs give equal ledgers."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self.seq = 0
        self.items: list[Item] = []
        self.code: dict[str, int] = {}
        self.config: dict[str, Any] = {}
        self.settled_at: float = inf
        """The event from which on the configuration must not change: it is open, and built on what it was."""
        self.stages = stages
        self.progress = [stage.design.new_progress(stage.protocol) for stage in stages]
        self.learns = any(progress.design_state is not None for progress in self.progress)
        self.tasks_of: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.excluded: dict[str, str] = {}
        """Annotators whose judgments are set aside, and why."""
        self.state: State = "open"
        self.state_reason = ""
        self.consented: dict[str, str] = {}
        """Who agreed to take part, and to which wording (its digest)."""
        self.trained: set[str] = set()
        self.test_answers: defaultdict[str, list[bool]] = defaultdict(list)
        """Which answers to the qualification test were right, for each who began it."""
        self.qualified: dict[str, bool] = {}
        self.looks = 0
        """How many looks were taken at whether the study may stop."""
        self.vetting = Vetting()
        self.recruits = Recruits()
        self.check_items: dict[str, Item] = {}
        """Items that are shown in checks only."""
        self.answers_of: Counter[str] = Counter()
        self._out: dict[str, OutTask] = {}
        self._closed: dict[str, OutTask] = {}
        """Answered checks and repeats."""
        self._answered: defaultdict[str, dict[str, OutTask]] = defaultdict(dict)
        self._handles: dict[str, Callable[[Event], None]] = {}

    def apply(self, event: Event) -> None:
        """Take in the next event."""
        if event.seq != self.seq + 1:
            raise StoreError(
                f"the log jumps from event {self.seq} to {event.seq}.", "Restore the database from a backup."
            )
        handle = self._handles.get(event.kind) or self._handle_for(event)
        if self.learns:
            self.set_time(event.at)
        handle(event)
        self.seq = event.seq

    def _handle_for(self, event: Event) -> Callable[[Event], None]:
        handle: Callable[[Event], None] | None = getattr(self, f"_{event.kind}", None)
        if handle is None:
            raise StoreError(
                f"event {event.seq} is of a kind this Steelyard does not know ('{event.kind}').",
                "Upgrade Steelyard: pip install -U steelyard.",
            )
        self._handles[event.kind] = handle
        return handle

    def set_time(self, now: int) -> None:
        """Set the clock that designs go by: to an event's time, or to that of the pick about to be made."""
        if self.learns:
            for progress in self.progress:
                progress.set_time(now)

    def _config(self, event: Event) -> None:
        if event.seq > self.settled_at and event.data["config"] != self.config.get("config"):
            raise StudyChangedError("the study's configuration was changed by someone else.", "Open the study anew.")
        if self.config:
            for progress in self.progress:
                progress.on_config_change()
        self.config = event.data

    def _items(self, event: Event) -> None:
        new = [item_from_data(data) for data in event.data["items"]]
        for item in new:
            if item.id in self.code:
                self.items[self.code[item.id]] = item
            else:
                self.code[item.id] = len(self.items)
                self.items.append(item)
        for progress in self.progress:
            progress.add_items(self.items[progress.n_items :])

    def _checks(self, event: Event) -> None:
        questions = read_questions(event.data["questions"], self.stages[0].protocol, self.items)
        self.vetting.questions = {question.key: question for question in questions}
        self.check_items |= {item.id: item for q in questions for item in q.items if item.id not in self.code}

    def _settled(self, event: Event) -> None:
        self.vetting.settled[event.data["check"]] = event.data["verdict"]

    def _picked(self, event: Event) -> None:
        annotator, data = str(event.annotator), event.data
        stage, purpose = data["stage"], data.get("purpose", "judgment")
        self.tasks_of[annotator] += 1
        if purpose in ABOUT_PEOPLE:
            out = OutTask(annotator, stage, (), None, purpose=purpose, about=data["about"])
            self._people_task(out)
        else:
            out = OutTask(annotator, stage, self._codes(data["items"]), data["slot"], purpose=purpose)
            rng = generator_for(data["seed"], stage, self.seq) if self.learns else None
            self.progress[stage].on_leased(annotator, out.items, out.slot, data["round"], rng)
            if data.get("shared"):
                self.vetting.shared.append(Shared(stage, out.items, out.slot))
        self._out[str(event.judgment_id)] = out

    def _people_task(self, out: OutTask, *, taken_back: bool = False) -> None:
        note = self.vetting.check_asked if out.purpose == "check" else self.vetting.repeat_asked
        note(out.annotator, out.about, taken_back=taken_back)

    def _judgment(self, event: Event) -> None:
        self.counts["judgments"] += 1
        self.counts["late"] += bool(event.data.get("late"))
        out = self._out.pop(str(event.judgment_id), None)
        if out is None:
            out = self._imported(event)
        elif out.released:
            self.tasks_of[out.annotator] += 1
            if out.in_design:
                self.progress[out.stage].on_late_answer(out.annotator, out.items, out.slot)
            else:
                self._people_task(out)
        self.answers_of[out.annotator] += 1
        if not out.in_design:
            self._answered_about_people(event, out)
            return
        self.vetting.judged(out.annotator, str(event.judgment_id))
        if self.learns or out.released:
            out = replace(out, released=False, answer=event.data["answer"] if self.learns else None)
        self._count(str(event.judgment_id), out)

    def _answered_about_people(self, event: Event, out: OutTask) -> None:
        self.counts[out.purpose] += 1
        self._closed[str(event.judgment_id)] = out
        if out.purpose == "check":
            self.vetting.check_answered(out.annotator, out.about, event.data["right"])

    def _imported(self, event: Event) -> OutTask:
        self.counts["imported"] += 1
        out = OutTask(event.annotator or "", event.data["stage"], self._codes(event.data["items"]), event.data["slot"])
        self.progress[out.stage].on_leased(out.annotator, out.items, out.slot)
        self.tasks_of[out.annotator] += 1
        return out

    def _count(self, judgment_id: str, out: OutTask) -> None:
        self.progress[out.stage].on_answered(out.items, out.slot)
        if self.learns:
            self._tell_designs(judgment_id, out)
        self._answered[out.annotator][judgment_id] = out
        if out.annotator in self.excluded:
            self._set_aside(judgment_id, out)

    def _tell_designs(self, judgment_id: str, out: OutTask, *, unlearn: bool = False) -> None:
        protocol = self.stages[out.stage].protocol
        said = protocol.observations([self.items[code].id for code in out.items], out.answer)
        for stage, progress in enumerate(self.progress):
            heard = AnswerNotice(judgment_id, out.annotator, out.items, said, own_stage=stage == out.stage)
            (progress.notify_retraction if unlearn else progress.notify_answer)(heard)

    def _set_aside(self, judgment_id: str, out: OutTask) -> None:
        self.progress[out.stage].on_excluded(out.annotator, out.items, out.slot)
        if self.learns:
            self._tell_designs(judgment_id, out, unlearn=True)

    def _renewed(self, event: Event) -> None:
        """Leases are in the table of tasks; nothing hangs on them here."""

    def _revision(self, event: Event) -> None:
        self.counts["revisions"] += 1
        if (out := self._closed.get(str(event.judgment_id))) is not None:
            if out.purpose == "check":
                self.vetting.check_answered(out.annotator, out.about, event.data["right"])
        elif self.learns:
            answered = self._answered[str(event.annotator or "")]
            before = answered[str(event.judgment_id)]
            answered[str(event.judgment_id)] = after = replace(before, answer=event.data["answer"])
            if before.annotator not in self.excluded:
                self._tell_designs(str(event.judgment_id), before, unlearn=True)
                self._tell_designs(str(event.judgment_id), after)

    def _flag(self, event: Event) -> None:
        self.counts["flags"] += 1

    def _skip(self, event: Event) -> None:
        self.counts["skips"] += 1
        self._release(str(event.judgment_id))

    def _expired(self, event: Event) -> None:
        self.counts["expired"] += 1
        out = self._release(str(event.judgment_id))
        # Who skips a task does not want it again; whose time ran out may well.
        if out.in_design:
            self.progress[out.stage].allow_again(out.annotator, out.items)
        else:
            self._people_task(out, taken_back=True)

    def _withdrawn(self, event: Event) -> None:
        """Take back a task of a person who was forgotten; what they answered is gone, and nothing more will come."""
        out = self._release(str(event.judgment_id))
        if not out.in_design:
            self._people_task(out, taken_back=True)
        del self._out[str(event.judgment_id)]

    def _blank(self, event: Event) -> None:
        """Pass over the place of an event that was forgotten with its person."""

    def _forgotten(self, event: Event) -> None:
        self.counts["forgotten"] += 1

    def _release(self, judgment_id: str) -> OutTask:
        out = self._out[judgment_id]
        self._out[judgment_id] = replace(out, released=True)
        if out.in_design:
            self.progress[out.stage].on_released(out.annotator, out.items, out.slot)
        self.tasks_of[out.annotator] -= 1
        return out

    def _exclusion(self, event: Event) -> None:
        annotator = str(event.annotator)
        self.excluded[annotator] = event.data["reason"]
        if event.data.get("by") == "checks":
            self.vetting.by_checks.add(annotator)
        for judgment_id, out in self._answered[annotator].items():
            self._set_aside(judgment_id, out)

    def _readmission(self, event: Event) -> None:
        annotator = str(event.annotator)
        del self.excluded[annotator]
        self.vetting.by_checks.discard(annotator)
        if event.data.get("by") != "checks":
            self.vetting.pardoned.add(annotator)
        for judgment_id, out in self._answered[annotator].items():
            self.progress[out.stage].on_readmitted(out.annotator, out.items, out.slot)
            if self.learns:
                self._tell_designs(judgment_id, out)

    def _state(self, event: Event) -> None:
        self.state = event.data["state"]
        self.state_reason = event.data["reason"]

    def _look(self, event: Event) -> None:
        self.looks = event.data["number"]

    def _consent(self, event: Event) -> None:
        self.consented[str(event.annotator)] = event.data["digest"]

    def _trained(self, event: Event) -> None:
        self.trained.add(str(event.annotator))

    def _tested(self, event: Event) -> None:
        self.test_answers[str(event.annotator)].append(event.data["right"])

    def _qualified(self, event: Event) -> None:
        self.qualified[str(event.annotator)] = event.data["passed"]

    def _arrived(self, event: Event) -> None:
        self.recruits.apply(event)

    _left = _back = _quota = _crowd = _arrived

    def out_task(self, judgment_id: str) -> OutTask | None:
        """The task that is out, came back, or was answered about a person under this id."""
        return self._out.get(judgment_id) or self._closed.get(judgment_id)

    def judged_items(self, annotator: str, judgment_id: str) -> OutTask:
        """One of an annotator's answered tasks."""
        return self._answered[annotator][judgment_id]

    def item(self, name: str) -> Item:
        """An item by its id, of the study or of a check."""
        code = self.code.get(name)
        return self.check_items[name] if code is None else self.items[code]

    def knows(self, annotator: str) -> bool:
        """Whether an annotator was ever asked anything, or imported."""
        return annotator in self.tasks_of

    def refusal(self, annotator: str) -> NoTask | None:
        """Say why the study asks an annotator nothing, if it does."""
        if annotator in self.excluded:
            return NoTask("Your part in this study has ended.", reason_code="excluded")
        if self.qualified.get(annotator) is False:
            return NoTask("The test before the first task was not passed.", reason_code="excluded")
        if annotator in self.recruits.gone:
            return NoTask("Your place in this study was given back.", reason_code="excluded")
        if self.state == "open":
            return None
        reason = self.state_reason or f"The study is {self.state}."
        return NoTask(reason, reason_code=self.state)

    def answered_by(self, annotator: str) -> int:
        """How many of an annotator's tasks are answered, set aside or not."""
        return self.answers_of[annotator]

    def counted_of(self, annotator: str) -> int:
        """How many of an annotator's judgments count."""
        return 0 if annotator in self.excluded else len(self._answered.get(annotator, ()))

    def set_aside_count(self) -> int:
        """How many judgments are set aside."""
        return sum(len(self._answered[annotator]) for annotator in self.excluded)

    def _codes(self, ids: list[str]) -> tuple[int, ...]:
        return tuple(self.code[name] for name in ids)


def item_to_data(item: Item) -> dict[str, Any]:
    """Return what the log keeps of an item: the fields that are set."""
    return {key: value for key, value in asdict(item).items() if value is not None and value != ()}


def item_from_data(data: dict[str, Any]) -> Item:
    """Build an item from what the log keeps of it."""
    return Item(**{**data, "tags": tuple(data.get("tags", ()))})
