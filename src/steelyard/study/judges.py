"""Models as annotators of a study: language models, metrics, functions. All other annotators are people."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.designs.base import NoTask, Pick
from steelyard.errors import TaskError
from steelyard.records import Answer, Judgment
from steelyard.storage.events import to_json
from steelyard.study import events as ev
from steelyard.study.bulk import NewJudgment, add_judgments
from steelyard.study.core import Core
from steelyard.study.judgments import effective_judgments
from steelyard.study.leases import annotator_name, checked_seconds
from steelyard.study.log import Transaction


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A model's answer about items, in the order in which they were shown.

    The id comes from what was asked (see `answer_id`), so that recording an answer twice adds it once. `repeat_of` is
    the id of the first answer to the same question, if the model was asked again.
    """

    judgment_id: str
    annotator: str
    stage: int
    items: tuple[str, ...]
    answer: Answer
    version: str
    cost: float | None = None
    seconds: float | None = None
    repeat_of: str = ""
    reason: str = ""
    """Why the model was asked and not a person, where they share the design."""


@dataclass(frozen=True, slots=True)
class ModelPick:
    """The items that a model should answer next, and why."""

    stage: int
    items: tuple[str, ...]
    reason: str


def answer_id(annotator: str, version: str, stage: str, items: Sequence[str], number: int = 0) -> str:
    """Return the id of a model's answer to one question; `number` counts repeated calls from 0."""
    text = to_json([annotator, version, stage, list(items), number])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class ScoreBasis:
    """Number of judgments in the scores by people and by models, and of models' judgments that do not count."""

    people: int
    models: int
    models_beside: int
    priors: tuple[str, ...] = ()
    """Models or columns of the items whose scores inform the scores as a prior."""

    @property
    def share_of_models(self) -> float:
        """The proportion of judgments in the scores that are by models."""
        return self.models / max(1, self.people + self.models)

    @property
    def sentence(self) -> str:
        """A sentence for notes and reports; empty without models."""
        if self.models:
            share = f"{100 * self.share_of_models:.0f} %"
            return (
                f"{self.models:,} of the {self.people + self.models:,} judgments in the scores ({share}) are by models."
            )
        if self.priors:
            return (
                f"The scores are based on {self.people:,} judgments by people, with the scores of "
                f"{', '.join(self.priors)} as a prior."
            )
        if self.models_beside:
            return (
                f"The scores are computed from people's judgments only; {self.models_beside:,} judgments by models are "
                "compared with them and do not count."
            )
        return ""


class ModelAnnotators:
    """The models that annotate a study; open it as `study.judges`.

    Speed rules, quotas and pay do not apply to models. Their judgments count in the scores only where study.toml says
    `[judges] count = true`; otherwise they are kept beside people's and compared with them.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._log = core.log

    def names(self) -> list[str]:
        """Return the annotators who are models."""
        with self._log.read() as state:
            return list(state.judges)

    def registrations(self) -> dict[str, list[ev.JudgeRegistered]]:
        """Return each model's prompts and settings, the latest last."""
        versions: dict[str, list[ev.JudgeRegistered]] = {}
        for event in self._log.events((ev.JudgeRegistered.kind,)):
            versions.setdefault(str(event.annotator), []).append(event.data)
        return versions

    def basis(self) -> ScoreBasis:
        """Return how many judgments in the scores are by people, and how many by models."""
        with self._log.read() as state:
            by_models = sum(state.counted_of(name) for name in state.judges)
            in_scores = sum(state.counted_of(name) for name in state.tasks_of)
            beside = 0 if state.counts_models else state.counts["model_judgments"]
        config = self._core.config
        uses_priors = config.model.takes_covariates()
        priors = tuple(config.judges.covariates) if uses_priors else ()
        return ScoreBasis(in_scores - by_models, by_models, beside, priors)

    def register(self, annotator: str, registration: ev.JudgeRegistered) -> None:
        """Record that an annotator is a model, with its prompt and settings; the same again changes nothing."""
        with self._log.write() as transaction:
            self._register(transaction, annotator_name(annotator), registration)

    def declare(self, annotator: str, *, model: str = "", member: str = "") -> None:
        """Record that an annotator who has judged already is a model: none of their judgments is a person's."""
        annotator = annotator_name(annotator)
        with self._log.write() as transaction:
            if not transaction.state.knows(annotator):
                raise TaskError(f"there is no annotator '{annotator}' in this study.", "Check the name's spelling.")
            if annotator not in transaction.state.judges:
                registration = ev.JudgeRegistered(source="import", version="", model=model or annotator, member=member)
                self._register(transaction, annotator, registration)

    def record(self, answers: Sequence[ModelAnswer]) -> int:
        """Record models' answers that are not there yet, all or none; return how many.

        Every answer is checked against its protocol. The models must be registered.
        """
        stages = self._core.config.stages
        with self._log.read() as state:
            names = {answer.annotator: annotator_name(answer.annotator) for answer in answers}
            for annotator in names.values():
                if annotator not in state.judges:
                    raise TaskError(f"'{annotator}' is not registered as a model.", "Register it first.")
            items = {name: state.item(name) for answer in answers for name in answer.items}
        judgments = []
        for new in answers:
            # Scores made elsewhere may lack a criterion.
            protocol = stages[new.stage].protocol
            plain = protocol.validate(new.items, new.answer, lenient=not new.version)
            protocol.check_texts([items[name] for name in new.items], plain)
            judgments.append(NewJudgment(new.judgment_id, names[new.annotator], _judged(new, plain)))
        return add_judgments(self._core, judgments)

    def pick(self, leased: Collection[tuple[str, ...]] = ()) -> ModelPick | NoTask | None:
        """Choose the item or pair that a model should answer next; None if no design decides about models.

        Questions in `leased` are about to be answered by a model. NoTask says why no model should be asked now.
        """
        nothing: NoTask | None = None
        with self._log.read() as state:
            avoided = [tuple(state.code[name] for name in items) for items in leased]
            for number, stage in enumerate(self._core.config.stages):
                pick = stage.design.pick_for_model(state.progress[number], avoided)
                if isinstance(pick, Pick):
                    return ModelPick(number, tuple(state.items[code].id for code in pick.items), pick.reason)
                nothing = nothing or pick
        return nothing

    def judgments(self) -> list[Judgment]:
        """Return the models' judgments, repeated calls included, without those of excluded models."""
        everything = effective_judgments(self._log, self._core.config.stages)
        return [judgment for judgment in everything if judgment.annotator_kind == "model" and not judgment.set_aside]

    def _register(self, transaction: Transaction, annotator: str, registration: ev.JudgeRegistered) -> None:
        state = transaction.state
        if annotator not in state.judges and state.recruitment.arrivals.get(annotator):
            raise TaskError(f"'{annotator}' is a participant from a panel, not a model.", "Choose another name.")
        if state.judges.get(annotator) != registration:
            transaction.append(registration, at=self._core.clock(), annotator=annotator)


def _judged(new: ModelAnswer, plain: Any) -> ev.Judged:
    return ev.Judged(
        stage=new.stage,
        items=new.items,
        answer=plain,
        seconds=checked_seconds(new.seconds),
        purpose="repeat" if new.repeat_of else "judgment",
        about=new.repeat_of,
        version=new.version,
        cost=new.cost,
        reason=new.reason,
    )


def people_only(judgments: Iterable[Judgment]) -> list[Judgment]:
    """Leave out the judgments of models."""
    return [judgment for judgment in judgments if judgment.annotator_kind == "person"]
