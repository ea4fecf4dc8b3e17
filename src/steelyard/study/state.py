"""The state of a study, folded from its log: items, progress of each stage, what each annotator has done."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import Any

from steelyard.designs.base import NoTask, generator_for
from steelyard.designs.saved_state import SavedRecords
from steelyard.designs.state import AnswerNotice
from steelyard.errors import StoreError, StudyChangedError
from steelyard.protocols.unjudged import is_unjudged, observe, unjudged_items
from steelyard.quality.questions import read_questions
from steelyard.records import ABOUT_ANNOTATORS, AnnotatorKind, Answer, Item, Purpose
from steelyard.study import events as ev
from steelyard.study.config import Stage
from steelyard.study.events import Event, StateName, counts_models
from steelyard.study.limits import Activity
from steelyard.study.quality_state import QualityState, SharedTask
from steelyard.study.recruitment_state import RecruitmentState
from steelyard.study.unjudged_state import UnjudgedState


@dataclass(frozen=True, slots=True)
class AssignedTask:
    """A task that is leased, was released unanswered (a late answer may still arrive), or is answered.

    `answer` is kept only where a design learns from answers; `about` is the check's key, or the judgment that is
    repeated.
    """

    annotator: str
    stage: int
    items: tuple[int, ...]
    slot: int | None
    released: bool = False
    answer: Answer | None = None
    purpose: Purpose = "judgment"
    about: str = ""

    @property
    def in_design(self) -> bool:
        """Whether it is one of the design's tasks, rather than one about the annotator."""
        return self.purpose not in ABOUT_ANNOTATORS


class _AnsweredTasks(SavedRecords[dict[str, AssignedTask]]):
    """The answered tasks of each annotator by the judgment's id, in the order of their submission."""

    __slots__ = ()

    def new(self) -> dict[str, AssignedTask]:
        return {}

    def pack(self, annotator: str, record: dict[str, AssignedTask]) -> Any:
        tasks = record.values()
        return [list(record), *([getattr(task, name) for task in tasks] for name in _TASK_COLUMNS)]

    def unpack(self, annotator: str, packed: Any) -> dict[str, AssignedTask]:
        ids, *columns = packed
        return {name: AssignedTask(annotator, *fields) for name, *fields in zip(ids, *columns, strict=True)}


_TASK_COLUMNS = tuple(field.name for field in fields(AssignedTask) if field.name != "annotator")


@dataclass(slots=True)
class Preregistration:
    """The preregistration of a study, and what was done differently since.

    `stopped_by_rule` says whether an interim analysis reached the target.
    """

    frozen: ev.Frozen | None = None
    deviations: list[str] = field(default_factory=list)
    stopped_by_rule: bool = False


class StudyState:
    """What the log amounts to. `apply` takes events in order; equal logs give equal states."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self.seq = 0
        self.digest = ""
        """Digest of the last event, which covers all events before it; empty in a log without digests."""
        self.items: list[Item] = []
        self.code: dict[str, int] = {}
        self.config: ev.ConfigChanged | None = None
        self.config_seq = 0
        """The last event of the configuration."""
        self.config_fixed_at: float = inf
        """The event from which on the configuration must not change: the study is open under it."""
        self.stages = stages
        self.progress = [stage.design.new_progress(stage.protocol) for stage in stages]
        design_states = [progress.design_state for progress in self.progress if progress.design_state is not None]
        self.has_design_state = bool(design_states)
        """Whether a design keeps a state: a plan drawn from the pick's generator, or what it learned."""
        self.learns = any(state.learns for state in design_states)
        """Whether a design learns from answers."""
        self.tasks_of: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.excluded: dict[str, str] = {}
        """Annotators whose judgments are set aside, and why."""
        self.state: StateName = "open"
        self.state_reason = ""
        self.consents: dict[str, str] = {}
        """The digest of the wording that each annotator agreed to."""
        self.questionnaires: dict[str, dict[str, str | float | None]] = {}
        """Answers to the questionnaire by annotator; None where a question was not answered."""
        self.trained: set[str] = set()
        self.test_answers: defaultdict[str, list[bool]] = defaultdict(list)
        """Which answers to the qualification test were right, by annotator."""
        self.qualified: dict[str, bool] = {}
        self.judges: dict[str, ev.JudgeRegistered] = {}
        """Annotators who are models, with their latest prompt and settings."""
        self.counts_models = False
        """Whether models' judgments count as people's ([judges] count)."""
        self.interim_analyses = 0
        """How many interim analyses were made."""
        self.preregistration = Preregistration()
        self.quality, self.unjudged = QualityState(), UnjudgedState()
        self.recruitment = RecruitmentState()
        self.activity = Activity()
        self.check_items: dict[str, Item] = {}
        """Items that are shown in checks only."""
        self.answers_of: Counter[str] = Counter()
        self._assigned: dict[str, AssignedTask] = {}
        self._closed: dict[str, AssignedTask] = {}
        """Answered checks and repeats."""
        self._answered = _AnsweredTasks()
        self._counted: Counter[str] = Counter()
        """How many tasks of the design each annotator has answered."""

    def to_checkpoint(self) -> dict[str, Any]:
        """Return what a checkpoint keeps: everything but the settings under which the log was folded."""
        return {name: value for name, value in self.__dict__.items() if name not in {"stages", "config_fixed_at"}}

    @classmethod
    def of_checkpoint(cls, stages: tuple[Stage, ...], saved: dict[str, Any], config_fixed_at: float) -> StudyState:
        """Return the state that a checkpoint has kept, under the stages it was folded with."""
        state = cls(stages)
        if set(saved) != set(state.to_checkpoint()):
            raise ValueError("the checkpoint is not of a study's state")
        state.__dict__ |= {**saved, "config_fixed_at": config_fixed_at}
        return state

    def apply(self, event: Event) -> None:
        """Fold the next event into the state."""
        if event.seq != self.seq + 1:
            raise StoreError(
                f"the log jumps from event {self.seq} to {event.seq}.", "Restore the database from a backup."
            )
        self.set_time(event.at)
        try:
            HANDLERS[type(event.data)](self, event, event.data)
            self.activity.apply(event)
        except (KeyError, IndexError) as error:
            raise StoreError(
                f"event {event.seq} ({event.kind}) refers to {error}, which is not in the log before it.",
                "Restore the database from a backup.",
            ) from error
        self.seq, self.digest = event.seq, event.digest

    def set_time(self, now: int) -> None:
        """Set the designs' clock: to an event's time, or to that of the pick about to be made."""
        if self.has_design_state:
            for progress in self.progress:
                progress.set_time(now)

    # The study

    def _on_config(self, event: Event, data: ev.ConfigChanged) -> None:
        if event.seq > self.config_fixed_at and (self.config is None or data.config != self.config.config):
            raise StudyChangedError(
                "the study's configuration was changed by another process.", "Open the study again."
            )
        if self.config is not None:
            for progress in self.progress:
                progress.on_config_change()
        self.config, self.config_seq = data, event.seq
        if self.preregistration.frozen is not None and data.config != self.preregistration.frozen.config:
            changes = ", ".join(changed_settings(self.preregistration.frozen.config, data.config))
            self.preregistration.deviations.append(f"The configuration was changed after the freeze: {changes}.")
        self._count_models(counts_models(data.config))

    def _on_items(self, event: Event, data: ev.ItemsAdded) -> None:
        for item in data.items:
            if item.id in self.code:
                self.items[self.code[item.id]] = item
            else:
                self.code[item.id] = len(self.items)
                self.items.append(item)
        for progress in self.progress:
            progress.add_items(self.items[progress.n_items :])

    def _on_checks(self, event: Event, data: ev.ChecksAdded) -> None:
        questions = read_questions(data.questions, self.stages[0].protocol, self.items)
        self.quality.questions = {question.key: question for question in questions}
        self.check_items |= {item.id: item for q in questions for item in q.items if item.id not in self.code}

    def _on_check_resolved(self, event: Event, data: ev.CheckResolved) -> None:
        self.quality.resolved[data.check] = data.verdict

    def _on_team_change(self, event: Event, data: ev.MemberAdded | ev.MemberRemoved) -> None:
        """Change nothing: who is in the team is decided by the tokens; the log says who let them in."""

    def _on_state(self, event: Event, data: ev.StateChanged) -> None:
        self.state = data.state
        self.state_reason = data.reason

    def _on_interim_analysis(self, event: Event, data: ev.InterimAnalysis) -> None:
        self.interim_analyses = data.number
        self.preregistration.stopped_by_rule |= data.reached

    def _on_frozen(self, event: Event, data: ev.Frozen) -> None:
        self.preregistration.frozen = data
        if data.judgments:
            self.preregistration.deviations.append(
                f"The study was frozen after {data.judgments:,} answers, not before the first."
            )

    # Tasks and answers

    def _on_picked(self, event: Event, data: ev.Picked) -> None:
        annotator = str(event.annotator)
        self.tasks_of[annotator] += 1
        if data.purpose in ABOUT_ANNOTATORS:
            task = AssignedTask(annotator, data.stage, (), None, purpose=data.purpose, about=data.about)
            self._note_annotator_task(task)
        else:
            task = AssignedTask(annotator, data.stage, self._codes(data.items), data.slot, purpose=data.purpose)
            rng = generator_for(data.seed, data.stage, self.seq) if self.has_design_state else None
            self.progress[data.stage].on_leased(annotator, task.items, task.slot, data.round, rng)
            if data.shared:
                self.quality.shared.append(SharedTask(data.stage, task.items, task.slot))
                self.progress[data.stage].on_shared(task.items)
        self._assigned[str(event.judgment_id)] = task

    def _note_annotator_task(self, task: AssignedTask, *, retracted: bool = False) -> None:
        note = self.quality.check_assigned if task.purpose == "check" else self.quality.repeat_assigned
        note(task.annotator, task.about, retracted=retracted)

    def _on_judgment(self, event: Event, data: ev.Judged) -> None:
        self.counts["model_judgments" if event.annotator in self.judges else "judgments"] += 1
        self.counts["late"] += data.late
        judgment_id = str(event.judgment_id)
        task = self._assigned.pop(judgment_id, None)
        if task is None:
            task = self._imported(event, data)
        elif task.released:
            self.tasks_of[task.annotator] += 1
            if task.in_design:
                self.progress[task.stage].on_late_answer(task.annotator, task.items, task.slot)
            else:
                self._note_annotator_task(task)
        self.answers_of[task.annotator] += 1
        if not task.in_design:
            self.counts[task.purpose] += 1
            self._closed[judgment_id] = task
            if task.purpose == "check":
                self.quality.check_answered(task.annotator, task.about, right=bool(data.right))
            return
        if self.learns or task.released:
            task = replace(task, released=False, answer=data.answer if self.learns else None)
        self._count(judgment_id, task)
        self._record_unjudged(judgment_id, task.annotator, data)

    def _record_unjudged(self, judgment_id: str, annotator: str, data: ev.Judged) -> None:
        if self.config is not None and self.config.config.get("answers", {}).get("cannot_judge"):
            reasons = unjudged_items(self.stages[data.stage].protocol, data.items, data.answer)
            is_whole = is_unjudged(data.items, data.answer)
            self.unjudged.record(judgment_id, annotator, data.items, reasons, is_whole=is_whole)

    def _imported(self, event: Event, data: ev.Judged) -> AssignedTask:
        self.counts["imported"] += event.annotator not in self.judges
        if data.purpose in ABOUT_ANNOTATORS:
            # A model that was asked the same again.
            return AssignedTask(event.annotator or "", data.stage, (), None, purpose=data.purpose, about=data.about)
        task = AssignedTask(event.annotator or "", data.stage, self._codes(data.items), data.slot)
        self.progress[task.stage].on_leased(task.annotator, task.items, task.slot)
        self.tasks_of[task.annotator] += 1
        return task

    def _count(self, judgment_id: str, task: AssignedTask) -> None:
        progress, is_counted = self.progress[task.stage], self.counts_annotator(task.annotator)
        progress.on_answered(task.items, task.slot)
        if self.learns and is_counted:
            self._tell_designs(judgment_id, task)
        answered = self._answered[task.annotator]
        self._counted[task.annotator] += judgment_id not in answered
        answered[judgment_id] = task
        if not is_counted:
            progress.on_excluded(task.annotator, task.items, task.slot)
            if task.annotator in self.judges and task.annotator not in self.excluded:
                self._tell_of_model(judgment_id, task)

    def _tell_of_model(self, judgment_id: str, task: AssignedTask, *, retract: bool = False) -> None:
        """Let designs learn from a model's answer that does not count as a judgment."""
        if self.learns:
            self.progress[task.stage].notify_model_answer(self._notice(judgment_id, task), retract=retract)

    def _tell_of_models(self, annotator: str, *, retract: bool = False) -> None:
        if annotator in self.judges:
            for judgment_id, task in self._answered[annotator].items():
                self._tell_of_model(judgment_id, task, retract=retract)

    def _notice(self, judgment_id: str, task: AssignedTask, *, own_stage: bool = True) -> AnswerNotice:
        protocol = self.stages[task.stage].protocol
        observations = observe(protocol, [self.items[code].id for code in task.items], task.answer)
        return AnswerNotice(judgment_id, task.annotator, task.items, observations, own_stage=own_stage)

    def _tell_designs(self, judgment_id: str, task: AssignedTask, *, retract: bool = False) -> None:
        own = self._notice(judgment_id, task)
        for stage, progress in enumerate(self.progress):
            notice = own if stage == task.stage else replace(own, own_stage=False)
            (progress.notify_retraction if retract else progress.notify_answer)(notice)

    def _set_aside(self, judgment_id: str, task: AssignedTask) -> None:
        self.progress[task.stage].on_excluded(task.annotator, task.items, task.slot)
        if self.learns:
            self._tell_designs(judgment_id, task, retract=True)

    def _on_renewed(self, event: Event, data: ev.Renewed) -> None:
        """Do nothing: the ends of leases are in the table of tasks; `activity` counts renewals."""

    def _on_revision(self, event: Event, data: ev.Revised) -> None:
        self.counts["revisions"] += 1
        judgment_id = str(event.judgment_id)
        if (task := self._closed.get(judgment_id)) is not None:
            if task.purpose == "check":
                self.quality.check_answered(task.annotator, task.about, right=bool(data.right))
            return
        self._record_unjudged(judgment_id, event.annotator or "", data)
        if self.learns:
            answered = self._answered[event.annotator or ""]
            before = answered[judgment_id]
            answered[judgment_id] = after = replace(before, answer=data.answer)
            if self.counts_annotator(before.annotator):
                self._tell_designs(judgment_id, before, retract=True)
                self._tell_designs(judgment_id, after)

    def _on_flag(self, event: Event, data: ev.Flagged) -> None:
        self.counts["flags"] += 1

    def _on_skip(self, event: Event, data: ev.Skipped) -> None:
        self.counts["skips"] += 1
        self._release(str(event.judgment_id))

    def _on_expired(self, event: Event, data: ev.Expired) -> None:
        self.counts["expired"] += 1
        task = self._release(str(event.judgment_id))
        # An annotator who skips a task does not want it again; one whose lease expired may well get it again.
        if task.in_design:
            self.progress[task.stage].allow_again(task.annotator, task.items)
        else:
            self._note_annotator_task(task, retracted=True)

    def _on_withdrawn(self, event: Event, data: ev.Withdrawn) -> None:
        task = self._release(str(event.judgment_id))
        if not task.in_design:
            self._note_annotator_task(task, retracted=True)
        del self._assigned[str(event.judgment_id)]

    def _on_erased(self, event: Event, data: ev.Erased) -> None:
        """Do nothing: the event was forgotten with its annotator."""

    def _on_forgotten(self, event: Event, data: ev.Forgotten) -> None:
        self.counts["forgotten"] += 1

    def _release(self, judgment_id: str) -> AssignedTask:
        task = self._assigned[judgment_id]
        self._assigned[judgment_id] = replace(task, released=True)
        if task.in_design:
            self.progress[task.stage].on_released(task.annotator, task.items, task.slot)
        self.tasks_of[task.annotator] -= 1
        return task

    # Items

    def _on_item_set_aside(self, event: Event, data: ev.ItemSetAside) -> None:
        self.unjudged.set_aside[data.item] = data
        if self.preregistration.frozen is not None and not data.by:
            self.preregistration.deviations.append("An item was set aside outside the preregistered rules.")
        for progress in self.progress:
            progress.on_item_set_aside(self.code[data.item])

    def _on_item_restored(self, event: Event, data: ev.ItemRestored) -> None:
        del self.unjudged.set_aside[data.item]
        if not data.by:
            self.unjudged.kept.add(data.item)
        if self.preregistration.frozen is not None and not data.by:
            self.preregistration.deviations.append("An item that was set aside was restored.")
        for progress in self.progress:
            progress.on_item_restored(self.code[data.item])

    # Annotators

    def _on_exclusion(self, event: Event, data: ev.Excluded) -> None:
        annotator = str(event.annotator)
        was_counted = self.counts_annotator(annotator)
        self.excluded[annotator] = data.reason
        if self.preregistration.frozen is not None and not data.by:
            self.preregistration.deviations.append("An annotator was excluded outside the preregistered rules.")
        if data.by == "checks":
            self.quality.excluded_by_checks.add(annotator)
        if was_counted:
            self._set_all_aside(annotator)
        else:
            self._tell_of_models(annotator, retract=True)

    def _on_readmission(self, event: Event, data: ev.Readmitted) -> None:
        annotator = str(event.annotator)
        del self.excluded[annotator]
        if self.preregistration.frozen is not None and not data.by:
            self.preregistration.deviations.append("An excluded annotator was readmitted.")
        self.quality.excluded_by_checks.discard(annotator)
        if data.by != "checks":
            self.quality.pardoned.add(annotator)
        if self.counts_annotator(annotator):
            self._count_again(annotator)
        else:
            self._tell_of_models(annotator)

    def _on_judge(self, event: Event, data: ev.JudgeRegistered) -> None:
        annotator = str(event.annotator)
        was_counted = self.counts_annotator(annotator)
        if annotator not in self.judges:
            # Answers given before an annotator was known to be a model are a model's all the same.
            self.counts["judgments"] -= self.answers_of[annotator]
            self.counts["model_judgments"] += self.answers_of[annotator]
        self.judges[annotator] = data
        if was_counted and not self.counts_annotator(annotator):
            self._set_all_aside(annotator)
            self._tell_of_models(annotator)

    def _count_models(self, is_counting: bool) -> None:
        """Let models' judgments count as people's, or no longer."""
        if is_counting == self.counts_models:
            return
        self.counts_models = is_counting
        for annotator in self.judges:
            if annotator in self.excluded:
                continue
            if is_counting:
                self._tell_of_models(annotator, retract=True)
                self._count_again(annotator)
            else:
                self._set_all_aside(annotator)
                self._tell_of_models(annotator)

    def _set_all_aside(self, annotator: str) -> None:
        for judgment_id, task in self._answered[annotator].items():
            self._set_aside(judgment_id, task)

    def _count_again(self, annotator: str) -> None:
        for judgment_id, task in self._answered[annotator].items():
            self.progress[task.stage].on_readmitted(task.annotator, task.items, task.slot)
            if self.learns:
                self._tell_designs(judgment_id, task)

    def _on_consent(self, event: Event, data: ev.Consented) -> None:
        self.consents[str(event.annotator)] = data.digest

    def _on_questionnaire(self, event: Event, data: ev.QuestionnaireAnswered) -> None:
        answers = self.questionnaires.setdefault(str(event.annotator), {})
        answers.update({name: data.answers.get(name) for name in data.asked})

    def _on_trained(self, event: Event, data: ev.Trained) -> None:
        self.trained.add(str(event.annotator))

    def _on_test_answer(self, event: Event, data: ev.TestAnswered) -> None:
        self.test_answers[str(event.annotator)].append(data.right)

    def _on_test_result(self, event: Event, data: ev.TestFinished) -> None:
        self.qualified[str(event.annotator)] = data.passed

    def _on_recruitment(self, event: Event, data: ev.Payload) -> None:
        self.recruitment.apply(event)

    # Queries

    def assigned_task(self, judgment_id: str) -> AssignedTask | None:
        """Return the task with this id that is leased, was released, or was answered about its annotator."""
        return self._assigned.get(judgment_id) or self._closed.get(judgment_id)

    def answered_task(self, annotator: str, judgment_id: str) -> AssignedTask:
        """Return one of an annotator's answered tasks."""
        return self._answered[annotator][judgment_id]

    def answered_ids(self, annotator: str) -> list[str]:
        """Return the ids of an annotator's judgments about items, in the order of their submission."""
        return list(self._answered[annotator])

    def item(self, name: str) -> Item:
        """Return an item by its id, of the study or of a check."""
        code = self.code.get(name)
        return self.check_items[name] if code is None else self.items[code]

    def knows(self, annotator: str) -> bool:
        """Whether an annotator was ever assigned a task, or imported."""
        return annotator in self.tasks_of

    def has_record(self, annotator: str) -> bool:
        """Whether anything in the log is about an annotator."""
        return (
            self.knows(annotator)
            or annotator in self.consents
            or annotator in self.questionnaires
            or annotator in self.trained
            or annotator in self.test_answers
            or annotator in self.judges
            or annotator in self.recruitment.arrivals
            or annotator in self.recruitment.quotas
        )

    def names(self) -> list[str]:
        """All people who were assigned a task, consented, took the test, were excluded or recruited; and all models."""
        sources = (
            self.tasks_of,
            self.consents,
            self.questionnaires,
            sorted(self.trained),
            self.test_answers,
            self.judges,
            self.excluded,
            self.recruitment.arrivals,
            self.recruitment.quotas,
        )
        names = {name: None for source in sources for name in source}
        # Names that begin with a space stand in for annotators who were forgotten.
        return [name for name in names if name and not name.startswith(" ")]

    def refusal(self, annotator: str) -> NoTask | None:
        """Return the reason why an annotator gets no tasks; None if they do."""
        if annotator in self.excluded:
            return NoTask("Your participation in this study has ended.", reason_code="excluded")
        if self.qualified.get(annotator) is False:
            return NoTask("The test before the first task was not passed.", reason_code="excluded")
        if annotator in self.recruitment.departed:
            return NoTask("Your place in this study was returned.", reason_code="excluded")
        if self.state == "open":
            return None
        reason = self.state_reason or f"The study is {self.state}."
        return NoTask(reason, reason_code=self.state)

    def kind_of(self, annotator: str) -> AnnotatorKind:
        """Whether an annotator is a person or a model."""
        return "model" if annotator in self.judges else "person"

    def counts_annotator(self, annotator: str) -> bool:
        """Whether an annotator's judgments count: people's always, models' only if the study is configured so."""
        return annotator not in self.excluded and (self.counts_models or annotator not in self.judges)

    def answered_by(self, annotator: str) -> int:
        """How many of an annotator's tasks are answered, set aside or not."""
        return self.answers_of[annotator]

    def counted_of(self, annotator: str) -> int:
        """How many of an annotator's judgments count."""
        return self._counted[annotator] if self.counts_annotator(annotator) else 0

    def set_aside_count(self) -> int:
        """How many judgments are set aside."""
        return sum(self._counted[annotator] for annotator in self.excluded)

    def count_answers(self, item: str) -> int:
        """How many answers about an item count, in all stages."""
        return sum(int(progress.answers[self.code[item]]) for progress in self.progress)

    def _codes(self, ids: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.code[name] for name in ids)


def changed_settings(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "") -> list[str]:
    """Return the names of the settings that differ, such as design.judgments, with both values of single ones."""
    names: list[str] = []
    for key in dict.fromkeys([*before, *after]):
        old, new, name = before.get(key), after.get(key), f"{path}{key}"
        if old == new:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            names += changed_settings(old, new, f"{name}.")
        elif isinstance(old, str | int | float | None) and isinstance(new, str | int | float | None):
            names.append(f"{name} ({'not set' if old is None else old} → {'not set' if new is None else new})")
        else:
            names.append(name)
    return names


HANDLERS: dict[type[ev.Payload], Callable[[StudyState, Event, Any], None]] = {
    ev.ConfigChanged: StudyState._on_config,
    ev.ItemsAdded: StudyState._on_items,
    ev.ChecksAdded: StudyState._on_checks,
    ev.CheckResolved: StudyState._on_check_resolved,
    ev.Picked: StudyState._on_picked,
    ev.Judged: StudyState._on_judgment,
    ev.Revised: StudyState._on_revision,
    ev.Renewed: StudyState._on_renewed,
    ev.Skipped: StudyState._on_skip,
    ev.Flagged: StudyState._on_flag,
    ev.Expired: StudyState._on_expired,
    ev.Withdrawn: StudyState._on_withdrawn,
    ev.Erased: StudyState._on_erased,
    ev.Forgotten: StudyState._on_forgotten,
    ev.Excluded: StudyState._on_exclusion,
    ev.Readmitted: StudyState._on_readmission,
    ev.ItemSetAside: StudyState._on_item_set_aside,
    ev.ItemRestored: StudyState._on_item_restored,
    ev.StateChanged: StudyState._on_state,
    ev.MemberAdded: StudyState._on_team_change,
    ev.MemberRemoved: StudyState._on_team_change,
    ev.Frozen: StudyState._on_frozen,
    ev.InterimAnalysis: StudyState._on_interim_analysis,
    ev.Consented: StudyState._on_consent,
    ev.QuestionnaireAnswered: StudyState._on_questionnaire,
    ev.Trained: StudyState._on_trained,
    ev.TestAnswered: StudyState._on_test_answer,
    ev.TestFinished: StudyState._on_test_result,
    ev.JudgeRegistered: StudyState._on_judge,
    ev.Arrived: StudyState._on_recruitment,
    ev.Departed: StudyState._on_recruitment,
    ev.Returned: StudyState._on_recruitment,
    ev.QuotaSet: StudyState._on_recruitment,
    **dict.fromkeys(ev.PLATFORM_EVENTS, StudyState._on_recruitment),
}
"""Which method folds events with which payload. A test compares it with the payload classes."""
