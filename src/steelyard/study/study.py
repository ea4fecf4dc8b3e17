"""The class Study: items, stages and a model, with the methods `ask` and `tell`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import polars as pl
from msgspec import structs

from steelyard.designs.base import NoTask
from steelyard.errors import AnswerError, TaskError
from steelyard.models.by_criterion import fit_by_criterion
from steelyard.models.display import html_table
from steelyard.models.fit import Fit, Model
from steelyard.observations import Index, Observations
from steelyard.protocols.unjudged import accept_answer, is_unjudged
from steelyard.records import AnnotatorKind, Answer, Effort, Item, Judgment, Task
from steelyard.storage import Access, Store, StoredTask
from steelyard.storage.engine import study_url
from steelyard.storage.events import to_json
from steelyard.study import events as ev
from steelyard.study.annotators import Annotators, text_digest
from steelyard.study.assignment import pick_next, picked_event, purpose_fields, refusal_for
from steelyard.study.bulk import NewJudgment, add_judgments, complete_imports
from steelyard.study.checkpoints import Checkpoints
from steelyard.study.config import StudyConfig
from steelyard.study.core import Core, now_in_microseconds
from steelyard.study.events import Event, StateName, decode_own
from steelyard.study.fitting import (
    comparisons_of_duplicates,
    fit_with_duplicates,
    kind_for,
    tournament_design,
)
from steelyard.study.freezing import freeze
from steelyard.study.judge_scores import covariates_by_criterion
from steelyard.study.judges import ModelAnnotators
from steelyard.study.judgments import effective_judgments, judgment_frame, judgment_of
from steelyard.study.leases import (
    annotator_name,
    answer_event,
    checked_effort,
    checked_reason,
    checked_seconds,
    expire,
    owned_task,
    release_duplicates,
    release_task,
    seconds_limit,
    set_lease,
)
from steelyard.study.limits import RENEWALS, Scarcity, short_lease
from steelyard.study.log import Log, Transaction, as_datetime
from steelyard.study.observing import collect
from steelyard.study.opening import (
    changed_items,
    check_same_questions,
    check_study,
    items_digest,
    opening_events,
    read_checks,
)
from steelyard.study.privacy import Privacy
from steelyard.study.quality import Quality
from steelyard.study.quality_state import question_data
from steelyard.study.recruitment import Recruitment
from steelyard.study.status import Status, status_of
from steelyard.version import __version__

if TYPE_CHECKING:
    from steelyard.models.systems.comparison import SystemComparison, SystemOptions

_HOLDS_ENOUGH = "You have reached the limit of open tasks; answer one first."


@dataclass(frozen=True, slots=True)
class ImportedAnswer:
    """A judgment from another source. Its id is derived from its source, so that importing it twice adds it once."""

    judgment_id: str
    annotator: str | None
    items: tuple[str, ...]
    answer: Answer
    seconds: float | None = None


class Study:
    """A study: assigns tasks to annotators, records their answers and scores the items.

    Open a study with `Study.open(folder)`. Several threads and processes can use the same study at once. Further
    methods are on `study.annotators`, `study.quality` (quality control), `study.recruitment`, `study.privacy` and
    `study.judges` (models as annotators).
    """

    def __init__(
        self, folder: Path, config: StudyConfig, store: Store, clock: Callable[[], int] = now_in_microseconds
    ) -> None:
        self.folder = folder
        self.config = config
        self.core = Core(folder, config, Log(store, config.stages, Checkpoints(folder)), clock)
        self.annotators = Annotators(self.core)
        self.quality = Quality(self.core, self)
        self.recruitment = Recruitment(self.core)
        self.judges = ModelAnnotators(self.core)
        self.privacy = Privacy(self.core, self)
        self._log = self.core.log
        self._clock = clock
        self._scarcity = Scarcity()

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        database: str | None = None,
        clock: Callable[[], int] = now_in_microseconds,
        member: str = "",
    ) -> Study:
        """Open the study in a folder. Its database is created if it does not exist.

        `database` overrides the database in study.toml; in a database that several studies share, each study needs a
        name. Items that were added to the items file since the last opening are added to the study. Items that were
        removed, or whose shown content has changed, are refused. `member` is the team member who changed the
        configuration.
        """
        folder = Path(folder)
        config, items = check_study(folder)
        url = study_url(folder, config.database, database)
        study = cls(folder, config, Store.open(url, config.name), clock)
        try:
            study._update_log(items, items_digest(folder, config.items), member)
            study.resume()
        except BaseException:
            study.close()
            raise
        return study

    def close(self) -> None:
        """Close the database. If reading the log took long, save a checkpoint, so that the next opening is faster."""
        self._log.save_checkpoint()
        self._log.close()

    def resume(self) -> None:
        """Complete operations that another process left unfinished: forgetting an annotator, or an import."""
        self.privacy.complete_forgetting()
        complete_imports(self.core)

    def save_checkpoint(self) -> bool:
        """Save the state for the next opening, if many events were added since the last time; return whether it was."""
        return self._log.save_checkpoint()

    def __enter__(self) -> Study:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Study({self.config.title!r}, {len(self.items)} items, {self.status().judgments} judgments)"

    def _repr_html_(self) -> str:
        """Show the status of the study in a notebook."""
        status = self.status()
        rows = [(s.name, s.protocol, s.design, s.done, s.total, s.leased) for s in status.stages]
        names = ["stage", "protocol", "design", "done", "planned", "leased"]
        counts = f"{status.judgments:,} answers by {status.annotators:,} annotators on {status.items:,} items"
        notes = [self.config.question, f"{counts}; the study is {status.state}"]
        if status.excluded:
            notes.append(f"{status.excluded:,} annotators excluded, {status.set_aside:,} judgments set aside")
        return html_table(pl.DataFrame(rows, schema=names, orient="row"), self.config.title, notes)

    # The study

    @property
    def items(self) -> list[Item]:
        """The items, in the order in which they were added."""
        return self.core.items

    @property
    def state(self) -> StateName:
        """Whether the study is open, paused or closed."""
        with self._log.read() as state:
            return state.state

    def set_state(self, state: StateName, reason: str = "", *, member: str = "") -> None:
        """Open, pause or close the study. Tasks are assigned only while it is open; leased tasks can be answered."""
        if state not in get_args(StateName):
            raise TaskError(f"a study cannot be '{state}'.", f"Use one of: {', '.join(get_args(StateName))}.")
        with self._log.write() as transaction:
            if (transaction.state.state, transaction.state.state_reason) != (state, reason):
                change = ev.StateChanged(state=state, reason=checked_reason(reason), member=member)
                transaction.append(change, at=self._clock())

    def freeze(self, hypotheses: Sequence[str] = (), *, force: bool = False, member: str = "") -> ev.Frozen:
        """Preregister the study: record plan, hypotheses, exclusion rules and analysis in the log.

        Later deviations are listed in `status().deviations`, the report and the dashboard. A study that already has
        answers can be frozen only with `force`.
        """
        return freeze(self.core, hypotheses, force=force, member=member)

    def status(self) -> Status:
        """Return the progress of the study."""
        with self._log.read() as state:
            return status_of(self.config, state)

    def events(
        self, kinds: Iterable[str] | None = None, *, after: int = 0, until: int | None = None
    ) -> Iterator[Event]:
        """Yield the whole log, or the events of some kinds, in order, after event `after` and up to event `until`."""
        return self._log.events(kinds, after=after, until=until)

    def last_seq(self) -> int:
        """Return the number of the last event. As long as it does not change, the study has not changed."""
        return self._log.last_seq()

    @cached_property
    def access(self) -> Access:
        """The tokens of annotators and managers."""
        return self._log.store.access(self._clock, self._log.exclusive)

    # Ask and tell

    @overload
    def ask(self, annotator: str) -> Task | None: ...
    @overload
    def ask(self, annotator: str, count: int) -> list[Task]: ...
    def ask(self, annotator: str, count: int | None = None) -> Task | list[Task] | None:
        """Lease the next task to an annotator, or return None if there is none (see `offer` for the reason).

        Until a task is answered or skipped, or its lease expires, asking again returns the same task. With `count`,
        return a list of up to that many open tasks. The number of tasks that an annotator can hold grows with the
        number of their answers (see `steelyard.study.limits`), and is one while few tasks are left.
        """
        tasks, _ = self.offer_many(annotator, 1 if count is None else count)
        if count is not None:
            return tasks
        return tasks[0] if tasks else None

    def offer(self, annotator: str) -> Task | NoTask:
        """Lease the next task like `ask`; if there is none, return the reason."""
        tasks, nothing = self.offer_many(annotator, 1)
        return tasks[0] if tasks else nothing or NoTask("There are no tasks.")

    def offer_many(self, annotator: str, count: int) -> tuple[list[Task], NoTask | None]:
        """Lease up to `count` tasks like `ask`; if there are fewer, also return the reason."""
        annotator = annotator_name(annotator)
        if not isinstance(count, int) or count < 1:
            raise TaskError(f"{count!r} tasks cannot be asked.", "Ask for one or more.")
        with self._log.write() as transaction:
            now = self._clock()
            expire(transaction, now, now + self._configured_lease())
            open_tasks = transaction.store.open_tasks(annotator)[:count]
            tasks = [self._extended(transaction, stored, now) for stored in open_tasks]
            nothing = None
            while len(tasks) < count and nothing is None:
                picked = self._pick(transaction, annotator, len(tasks), now)
                if isinstance(picked, NoTask):
                    nothing = picked
                else:
                    tasks.append(picked)
            return [self.core.task(transaction.state, stored) for stored in tasks], nothing

    def task(self, judgment_id: str) -> Task:
        """Return a task that was leased, whether it is still open or not."""
        stored = self._log.store.task(judgment_id)
        if stored is None:
            raise TaskError(f"there is no task {judgment_id} in this study.", "Ask for a task first.")
        with self._log.read() as state:
            return self.core.task(state, stored)

    def tell(
        self,
        task: Task | str,
        answer: Any,
        *,
        annotator: str | None = None,
        seconds: float | None = None,
        limit_seconds: bool = False,
        comment: str = "",
        effort: Effort | None = None,
    ) -> Judgment:
        """Record an answer. It is on disk when this method returns.

        `task` is a task returned by `ask`, or its judgment_id. Sending the same answer again has no effect.
        `annotator` defaults to the annotator of the task; tasks of other annotators are refused. `seconds` is the
        active time; with `limit_seconds`, for answers from a network, it is limited to the time since the task was
        leased. `effort` describes how the answer was given. `comment` needs a study with `[answers] comments`.
        """
        comment = self._checked_comment(comment)
        with self._log.write() as transaction:
            stored = owned_task(transaction, task, annotator)
            plain = self._checked(transaction, stored, answer)
            if stored.state == "answered":
                return self._repeated_answer(transaction, stored, plain)
            if stored.state == "withdrawn":
                raise TaskError(f"task {stored.judgment_id} was withdrawn.", "Ask for a task of your own.")
            seconds = checked_seconds(seconds)
            now = self._clock()
            if stored.state == "expired":
                release_duplicates(transaction, stored, now)
            limit = None
            if limit_seconds and seconds is not None:
                limit = seconds_limit(transaction.event(stored.picked_seq).at, stored.lease_end, now)
            event = transaction.append(
                ev.Judged(
                    stage=stored.stage,
                    items=stored.items,
                    answer=plain,
                    seconds=seconds,
                    seconds_limit=limit if limit is not None and seconds is not None and seconds > limit else None,
                    late=now > stored.lease_end or stored.state == "expired",
                    comment=comment,
                    effort=checked_effort(effort, stored.items),
                    **purpose_fields(transaction.state, stored.judgment_id, plain),
                ),
                at=now,
                annotator=stored.annotator,
                judgment_id=stored.judgment_id,
            )
            transaction.store.set_state(stored.judgment_id, "answered", event.seq)
            if event.data.right is not None:
                self.core.apply_checks(transaction, now)
            self.core.apply_item_rule(transaction, stored.items, now)
        return judgment_of(event, self.config.stages)

    def _checked(self, transaction: Transaction, stored: StoredTask, answer: Any) -> Answer:
        """Return a valid answer in its normal form; raise an error if it is invalid."""
        protocol = self.config.stages[stored.stage].protocol
        plain = accept_answer(protocol, stored.items, answer, self.config.answers.rules)
        if not is_unjudged(stored.items, plain):
            protocol.check_texts([transaction.state.item(name) for name in stored.items], plain)
        return plain

    def _checked_comment(self, comment: str) -> str:
        if comment.strip() and not self.config.answers.comments:
            raise AnswerError("this study takes no comments.", "Leave the comment out.", field="comment")
        return checked_reason(comment).strip()

    def revise(
        self, judgment_id: str, answer: Any, *, annotator: str | None = None, comment: str | None = None
    ) -> Judgment:
        """Replace an answer, and its comment if one is given. The old answer stays in the log but no longer counts."""
        new_comment = {} if comment is None else {"comment": self._checked_comment(comment)}
        with self._log.write() as transaction:
            stored = owned_task(transaction, judgment_id, annotator)
            if stored.state != "answered":
                raise TaskError(f"task {judgment_id} has no answer to revise.", "Use tell for the first answer.")
            plain = self._checked(transaction, stored, answer)
            latest = answer_event(transaction, stored)
            fields = {**structs.asdict(latest.data), "answer": plain, "revises": latest.seq, **new_comment}
            checks = self.config.quality.checks
            if checks is not None and not checks.feedback:
                # With feedback the right answer is known after the first: that one stands.
                fields |= purpose_fields(transaction.state, stored.judgment_id, plain)
            now = self._clock()
            event = transaction.append(
                ev.Revised(**fields), at=now, annotator=stored.annotator, judgment_id=judgment_id
            )
            transaction.store.set_state(judgment_id, "answered", event.seq)
            if event.data.right is not None:
                self.core.apply_checks(transaction, now)
            self.core.apply_item_rule(transaction, stored.items, now)
        return judgment_of(event, self.config.stages)

    def skip(self, task: Task | str, reason: str, *, annotator: str | None = None) -> None:
        """Skip a task; its annotator will not get it again."""
        with self._log.write() as transaction:
            stored = owned_task(transaction, task, annotator)
            if stored.state == "skipped":
                return
            if stored.state != "open":
                raise TaskError(
                    f"task {stored.judgment_id} is {stored.state} and cannot be skipped.", "Ask for the next one."
                )
            transaction.state.activity.check_pace(stored.annotator, self._clock())
            self._remark(transaction, ev.Skipped(reason=checked_reason(reason)), stored)
            transaction.store.set_state(stored.judgment_id, "skipped")

    def release(self, task: Task | str, *, annotator: str | None = None) -> None:
        """Release a task to other annotators, as if its lease had expired; its annotator may get it again."""
        with self._log.write() as transaction:
            stored = owned_task(transaction, task, annotator)
            if stored.state == "open":
                release_task(transaction, stored, self._clock())

    def flag(self, task: Task | str, reason: str, *, annotator: str | None = None) -> None:
        """Flag a task with a reason, whether it is answered or not. Repeating the same flag has no effect."""
        with self._log.write() as transaction:
            stored, activity = owned_task(transaction, task, annotator), transaction.state.activity
            if activity.has_flag(stored.judgment_id, checked_reason(reason)):
                return
            activity.check_flag(stored.judgment_id)
            activity.check_pace(stored.annotator, self._clock())
            self._remark(transaction, ev.Flagged(reason=checked_reason(reason)), stored)

    def renew(self, task: Task | str, *, annotator: str | None = None) -> datetime:
        """Renew the lease of a task (a heartbeat); return its new end.

        The number of renewals without an answer by the annotator is limited.
        """
        with self._log.write() as transaction:
            stored = owned_task(transaction, task, annotator)
            if stored.state != "open":
                raise TaskError(f"task {stored.judgment_id} is {stored.state}.", "Ask for the next one.")
            if not transaction.state.activity.may_renew(stored.annotator, stored.judgment_id):
                raise TaskError(
                    f"task {stored.judgment_id} was renewed {RENEWALS} times without an answer.",
                    "Answer it: answers count even after the lease has expired.",
                )
            return as_datetime(self._renew(transaction, stored, self._clock()).lease_end)

    def import_answers(self, stage: int, answers: Sequence[ImportedAnswer]) -> int:
        """Add the judgments that are not in the study yet, all or none; return how many were added."""
        return add_judgments(
            self.core,
            [
                NewJudgment(
                    new.judgment_id,
                    None if new.annotator is None else annotator_name(new.annotator),
                    ev.Judged(stage=stage, items=new.items, answer=new.answer, seconds=new.seconds, imported=True),
                )
                for new in answers
            ],
        )

    # Results

    def judgments(self) -> pl.DataFrame:
        """Return every judgment with its latest answer (as JSON), one per row; rows with `set_aside` do not count."""
        return judgment_frame(self.stream_judgments())

    def stream_judgments(self) -> Iterator[Judgment]:
        """Yield every judgment in the order of `judgments`, with memory that does not grow with their number."""
        return effective_judgments(self._log, self.config.stages)

    def observations(
        self,
        kind: str,
        *,
        stage: str | None = None,
        without: str | None = None,
        annotator_kind: AnnotatorKind | None = None,
    ) -> dict[str, Observations]:
        """Return the judgments that count (of one stage, or all) as one kind of observations, by criterion.

        The criterion is '' if there is only one. `without` excludes an annotator. With `annotator_kind`, only
        judgments by people, or only judgments by models, are returned, whether or not models count in the scores.
        """
        index = Index([item.id for item in self.items])
        protocols = {stage.name: stage.protocol for stage in self.config.stages}
        judgments = (
            judgment
            for judgment in self.stream_judgments()
            if _is_wanted(judgment, annotator_kind) and (stage is None or judgment.stage == stage)
            if without is None or judgment.annotator != without
        )
        return collect(kind, judgments, protocols, index)

    def fit(
        self,
        model: Model | None = None,
        *,
        by: Literal["item", "group"] = "item",
        observations: Mapping[str, Observations] | None = None,
        without: str | None = None,
    ) -> Fit:
        """Score the items, or the groups they belong to, with the study's model or another model.

        Models that use gold get the items' gold. `observations` default to the study's; `without` excludes an
        annotator.
        """
        model = model or self.config.model
        if observations is None:
            observations = self.observations(kind_for(model, self.config.stages), without=without)
        items = self.items
        gold = {"": {item.id: item.gold for item in items if item.gold is not None}}
        groups = {item.id: item.group for item in items if item.group is not None}
        duplicates = self.duplicates()
        if model.name == "dominance" and tournament_design(self.config.stages) is not None and observations:
            return self._fit_tournaments(model, observations, duplicates, by)
        if by == "item":
            covariates = covariates_by_criterion(self, model, observations)
            fitted = fit_by_criterion(model, observations, gold, groups, covariates, self._weights())
            return self._with_basis(fit_with_duplicates(fitted, duplicates))
        grouped = {
            name: comparisons_of_duplicates(part, duplicates).by_group(groups)[0] for name, part in observations.items()
        }
        return self._with_basis(fit_by_criterion(model, grouped, weights=self._weights()))

    def _weights(self) -> dict[str, float]:
        """Return the weights of the criteria: those of the first stage that has any."""
        return next((weights for stage in self.config.stages if (weights := stage.protocol.weights())), {})

    def _with_basis(self, fit: Fit) -> Fit:
        """Add a note on how much the scores depend on models, if the study has any."""
        sentence = self.judges.basis().sentence.removesuffix(".")
        return replace(fit, notes=(*fit.notes, sentence)) if sentence else fit

    def _fit_tournaments(
        self, model: Model, observations: Mapping[str, Observations], same_as: Mapping[str, str], by: str
    ) -> Fit:
        """Fit dominance to whole tournaments, source by source."""
        from steelyard.study.tournaments import TournamentSources, fit_tournaments

        items = self.items
        design = tournament_design(self.config.stages)
        sources = TournamentSources.of(items, same_as, across=design is not None and design.across_contexts)
        groups = {item.id: item.group for item in items if item.group is not None}
        comparisons = next(iter(observations.values())).to_comparisons()
        return fit_tournaments(model, comparisons, sources, groups if by == "group" else None)

    def scores(self, *, by: Literal["item", "group"] = "item") -> pl.DataFrame:
        """Return the scores table: item (or group), score, lower, upper, rank, judgments and more."""
        return self.fit(by=by).scores

    def systems(
        self,
        options: SystemOptions | None = None,
        *,
        by: str | Sequence[str] = (),
        observations: Mapping[str, Observations] | None = None,
    ) -> SystemComparison:
        """Compare the systems (groups of items): scores, intervals, rank ranges, clusters and differences.

        Sources (contexts) and annotators are treated as samples of larger populations. `by` names columns of the items,
        such as a domain; systems are compared within each value. `observations` default to the study's.
        """
        # Not at the top: these import scipy.stats and numba, which take longer than everything else in a study.
        from steelyard.models.systems.compare_systems import item_column
        from steelyard.models.systems.comparison import SystemOptions
        from steelyard.study.systems import compare_by_criterion, kind_of_systems, with_model

        if observations is None:
            observations = self.observations(kind_of_systems(self.config.stages))
        duplicates = self.duplicates()
        counted = {name: comparisons_of_duplicates(part, duplicates) for name, part in observations.items()}
        names = [by] if isinstance(by, str) else list(by)
        items = self.items
        columns = {name: item_column(items, name) for name in names}
        chosen = with_model(options or SystemOptions(), self.config.model)
        return compare_by_criterion(counted, items, chosen, columns)

    # Internals

    def duplicates(self) -> dict[str, str]:
        """Return the items that are not shown because they are identical to another item, with that item."""
        with self._log.read() as state:
            stages = zip(self.config.stages, state.progress, strict=True)
            by_stage = [stage.design.duplicates(progress) for stage, progress in stages]
            return {state.items[a].id: state.items[b].id for same in by_stage for a, b in same.items()}

    def _repeated_answer(self, transaction: Transaction, stored: StoredTask, answer: Any) -> Judgment:
        """Return the judgment that counts if this answer was already recorded; refuse a different answer."""
        latest = event = answer_event(transaction, stored)
        while event.data.answer != answer:
            if not isinstance(event.data, ev.Revised):
                raise TaskError(
                    f"task {stored.judgment_id} already has another answer.", "Use revise to change an answer."
                )
            event = transaction.event(event.data.revises)
        return judgment_of(latest, self.config.stages)

    def _remark(self, transaction: Transaction, remark: ev.Payload, stored: StoredTask) -> None:
        transaction.append(remark, at=self._clock(), annotator=stored.annotator, judgment_id=stored.judgment_id)

    def _renew(self, transaction: Transaction, stored: StoredTask, now: int) -> StoredTask:
        lease_end = now + self._lease_length(transaction, stored.annotator)
        return set_lease(transaction, stored, max(stored.lease_end, lease_end), now)

    def _lease_length(self, transaction: Transaction, annotator: str) -> int:
        """Return the length of a lease in microseconds: as configured, or shorter while tasks are scarce."""
        configured = self._configured_lease()
        open_tasks = transaction.store.open_tasks(annotator)
        return short_lease(configured) if self._is_scarce(transaction, len(open_tasks)) else configured

    def _configured_lease(self) -> int:
        return round(self.config.annotators.lease_minutes * 60_000_000)

    def _is_scarce(self, transaction: Transaction, held: int) -> bool:
        """Whether few tasks are left for annotators other than one who holds `held` tasks."""
        state = transaction.state
        leased = sum(progress.tasks_leased for progress in state.progress)
        if leased == 0:
            return False

        def count_free() -> int:
            stages = status_of(self.config, state).stages
            return sum(stage.total - stage.done - stage.leased for stage in stages)

        return self._scarcity.is_scarce(state.seq, count_free, leased - held)

    def _extended(self, transaction: Transaction, stored: StoredTask, now: int) -> StoredTask:
        """Return a leased task with enough time left to answer it, unless it was renewed too often."""
        if stored.lease_end - now >= self._lease_length(transaction, stored.annotator) // 2:
            return stored
        is_renewable = transaction.state.activity.may_renew(stored.annotator, stored.judgment_id)
        return self._renew(transaction, stored, now) if is_renewable else stored

    def _pick(self, transaction: Transaction, annotator: str, held: int, now: int) -> StoredTask | NoTask:
        state = transaction.state
        refusal = refusal_for(self.config, state, annotator)
        if refusal is not None:
            return refusal
        scarce = self._is_scarce(transaction, held)
        most = 1 if scarce else state.activity.most_leases(annotator, self.config.page.prefetch)
        if held >= most or (scarce and state.activity.lets_leases_lapse(annotator)):
            reason = "The last tasks are assigned to other annotators at the moment." if scarce else _HOLDS_ENOUGH
            return NoTask(reason, reason_code="waiting")
        chosen = pick_next(self.config, state, annotator, now)
        if isinstance(chosen, NoTask):
            return chosen
        seq = transaction.store.last_seq + 1
        configured = self._configured_lease()
        lease_end = now + (short_lease(configured) if scarce else configured)
        task = StoredTask(uuid.uuid4().hex, annotator, chosen.stage, chosen.items, "open", lease_end, seq)
        transaction.append(
            picked_event(
                self.config,
                chosen,
                log_digest=transaction.store.digest,
                lease_end=lease_end,
                behind=transaction.behind,
            ),
            at=now,
            annotator=annotator,
            judgment_id=task.judgment_id,
        )
        transaction.store.add_task(task)
        return task

    def _update_log(self, items: Sequence[Item], source_digest: str, member: str) -> None:
        """Bring the log up to date with study.toml and the items file; usually there is nothing to do."""
        # The database's address may hold a password: it is not written into the log.
        config = {key: value for key, value in (self.config.source or {}).items() if key != "database"}
        questions = question_data(read_checks(self.folder, self.config, items))
        data = ev.ConfigChanged(
            config=config,
            items_digest=source_digest,
            software=__version__,
            checks_digest=text_digest(to_json(questions)) if questions else "",
        )
        stored = self._log.store.config_event()
        last = None if stored is None else decode_own(stored)
        if last is not None and _is_same_config(last.data, data):
            self._log.fix_config(last.seq)
            return
        if last is not None and self._log.store.has_tasks():
            check_same_questions(last.data.config, self.config)
        with self._log.write(alone=True) as transaction:
            now = self._clock()
            before = transaction.state.config
            if before is None or not _is_same_config(before, data):
                is_same = before is not None and before.items_digest == source_digest
                file, page = self.config.items.file, self.config.page
                new = [] if is_same else changed_items(transaction.state, items, file, page)
                has_new_checks = before is None or before.checks_digest != data.checks_digest
                change = structs.replace(data, member=member)
                for payload in opening_events(change, new, questions if has_new_checks else []):
                    transaction.append(payload, at=now)
                self.core.apply_item_rule(transaction, None, now)
            self._log.fix_config(transaction.state.seq)


def _is_wanted(judgment: Judgment, kind: AnnotatorKind | None) -> bool:
    """Whether a judgment counts in the scores, or in the scores of one kind of annotators."""
    if kind is None:
        return judgment.counts
    return judgment.annotator_kind == kind and replace(judgment, in_scores=True).counts


def _is_same_config(before: ev.ConfigChanged, after: ev.ConfigChanged) -> bool:
    """Whether two events have the same content, apart from their authors."""
    return structs.replace(before, member="") == structs.replace(after, member="")
