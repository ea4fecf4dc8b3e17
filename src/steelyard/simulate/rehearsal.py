"""A study rehearsed in memory: the same designs, protocols and annotators as in a real one, without the store.

With the same seed, people and answers, a rehearsal asks the very tasks a real study asks: it draws each pick
from the generator the study would use, and tells the designs what the study's ledger would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from typing import Any

import numpy as np

from steelyard.designs import NoTask, Pick
from steelyard.designs.base import generator_for
from steelyard.designs.state import AnswerNotice, DesignState
from steelyard.errors import ConfigError, DataError
from steelyard.observations import UNKNOWN, FloatArray, Index, IntArray, Observation, Observations
from steelyard.records import Item, Judgment
from steelyard.simulate.annotators import Annotators, SimulatedAnnotators, perceived_by, protocol_key
from steelyard.simulate.answers import answer_for
from steelyard.simulate.columns import Seen, observed
from steelyard.simulate.working import Turns
from steelyard.study.collect import collect
from steelyard.study.config import StudyConfig
from steelyard.study.picking import pick_from_designs

ITEMS_PER_EVENT = 1000
"""A study's log takes its items in so many at a time."""

_WHEN = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class StageTasks:
    """The tasks one stage asked, in order: who got each, after how many others, with which items.

    `row` is the number of each among all tasks under the stage's protocol.
    """

    who: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    items: list[tuple[int, ...]] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    """What was answered, where each task was answered as it came."""

    def matrix(self) -> IntArray:
        """Return the items' codes, a row for each task, padded with UNKNOWN."""
        width = max(map(len, self.items), default=0)
        if all(len(row) == width for row in self.items):
            return np.array(self.items, np.int32).reshape(len(self.items), width)
        padded = np.full((len(self.items), width), UNKNOWN, np.int32)
        for row, codes in enumerate(self.items):
            padded[row, : len(codes)] = codes
        return padded


@dataclass(frozen=True, slots=True, eq=False)
class Rehearsal:
    """What was asked, and what the answers say.

    `stages` are by number; `ended` is why nobody was asked anything further; `complete` says whether the
    designs had all they wanted.
    """

    config: StudyConfig
    index: Index
    annotators: Annotators
    stages: tuple[StageTasks, ...]
    order: tuple[int, ...]
    complete: bool
    ended: str
    _cache: dict[int, Seen] = field(default_factory=dict)

    def __len__(self) -> int:
        """Count the judgments."""
        return len(self.order)

    @property
    def learns(self) -> bool:
        """Whether tasks were answered as they came, so that other answers might have led to other tasks."""
        return any(stage.answers for stage in self.stages)

    def answered_by(self, annotators: SimulatedAnnotators) -> Rehearsal:
        """Return the same tasks, answered by other people of the same number, who know the same items."""
        if self.learns:
            raise ConfigError("the tasks hang on the answers.", "Rehearse anew.")
        if len(annotators.names) != len(self.annotators.names):
            raise DataError("these people are others in number.", "Rehearse anew.")
        if annotators.answered:
            raise DataError("these people have answered before.", "Make new ones.")
        return Rehearsal(self.config, self.index, annotators, self.stages, self.order, self.complete, self.ended)

    def observations(
        self, stage: int = 0, *, most: int | None = None, kind: str | None = None
    ) -> dict[str, Observations]:
        """Return what the answers to a stage (or the first `most` of them) say, by criterion.

        `kind` is the most telling kind of the stage's protocol unless given.
        """
        tasks = self.stages[stage]
        if not tasks.items:
            raise DataError("nothing was asked.", "See why in `ended`.")
        protocol = self.config.stages[stage].protocol
        kind = kind or protocol.kinds[0]
        if kind == protocol.kinds[0] and isinstance(self.annotators, SimulatedAnnotators):
            seen = self._seen(stage)
            if most is not None:
                seen = Seen(
                    seen.items[:most],
                    seen.who[:most],
                    seen.percepts[:, :most],
                    seen.tie_margin[:most],
                    seen.index,
                    seen.people,
                )
            found = observed(protocol, seen)
            if found is not None:
                return found
        judgments = self.judgments(stage)[:most]
        return collect(kind, judgments, {self.config.stages[stage].name: protocol}, self.index)

    def judgments(self, stage: int) -> list[Judgment]:
        """Return the judgments of a stage one by one."""
        tasks, asked = self.stages[stage], self.config.stages[stage]
        return [
            Judgment(
                str(number),
                self.annotators.names[tasks.who[number]],
                asked.name,
                asked.protocol.name,
                tuple(self.index[code] for code in tasks.items[number]),
                self.answer(stage, number),
                _WHEN,
            )
            for number in range(len(tasks.items))
        ]

    def answer(self, stage: int, number: int) -> Any:
        """Return the answer to a task of a stage."""
        tasks = self.stages[stage]
        if tasks.answers:
            return tasks.answers[number]
        seen, codes = self._seen(stage), tasks.items[number]
        protocol = self.config.stages[stage].protocol
        perceived = perceived_by(protocol, [self.index[code] for code in codes], seen.percepts[:, number, : len(codes)])
        return answer_for(protocol, perceived, float(seen.tie_margin[number]))

    def _seen(self, stage: int) -> Seen:
        if stage not in self._cache:
            people, tasks = self.annotators, self.stages[stage]
            if not isinstance(people, SimulatedAnnotators):
                raise DataError("only simulated people can be asked all at once.")
            who, items = np.array(tasks.who, np.int32), tasks.matrix()
            # The people may know the items in another order, or more of them; -1 stays -1.
            theirs = np.append(people.items.codes(self.index.ids), UNKNOWN)[items]
            percepts: FloatArray = people.percepts(
                self.config.stages[stage].protocol, who, np.array(tasks.done), theirs, np.array(tasks.row)
            )
            self._cache[stage] = Seen(items, who, percepts, people.tie_margins(who), self.index, people.people)
        return self._cache[stage]


class _Stages:
    """How far the stages are, told directly what happens instead of by events from the store."""

    def __init__(self, config: StudyConfig, items: Sequence[Item]) -> None:
        self.config = config
        self.progress = [stage.design.new_progress(stage.protocol, items) for stage in config.stages]
        self.learns = any(progress.design_state is not None for progress in self.progress)
        self.tasks_of: Counter[str] = Counter()
        # A study's log has one event for each thousand items and one for the configuration before anybody is asked.
        self.seq = ceil(len(items) / ITEMS_PER_EVENT) + 1

    @property
    def listen(self) -> bool:
        """Whether a design looks at what is answered."""
        return any(
            p.design_state is not None and type(p.design_state).on_answer is not DesignState.on_answer
            for p in self.progress
        )

    def pick(self, annotator: str) -> tuple[int, Pick] | NoTask:
        """Choose the stage and the task as a study does: stages in sequence, or by share."""
        limit = self.config.people.tasks
        if limit is not None and self.tasks_of[annotator] >= limit:
            return NoTask(f"You have done all your {limit} tasks.", reason_code="quota")
        return pick_from_designs(self.config, self.progress, self.seq, annotator)

    def went_out(self, annotator: str, stage: int, pick: Pick) -> None:
        rng = generator_for(self.config.seed, stage, self.seq) if self.learns else None
        self.progress[stage].on_leased(annotator, pick.items, pick.slot, pick.round, rng)
        self.tasks_of[annotator] += 1
        self.seq += 1

    def came_back(self, annotator: str, stage: int, pick: Pick, said: Sequence[Observation] | None) -> None:
        self.progress[stage].on_answered(pick.items, pick.slot)
        if said is not None:
            for number, progress in enumerate(self.progress):
                progress.notify_answer(
                    AnswerNotice(str(self.seq), annotator, pick.items, said, own_stage=number == stage)
                )
        self.seq += 1


def rehearse(
    config: StudyConfig,
    items: Sequence[Item],
    annotators: Annotators,
    rng: np.random.Generator,
    *,
    told: Callable[[], None] = lambda: None,
    most: int | None = None,
) -> Rehearsal:
    """Work through a study in memory until nobody has anything left to do, or `most` judgments are made.

    Where no design listens to answers, the tasks are picked one by one and simulated people answer all of them
    at the end; otherwise each task is answered as it comes. Checks and repeats are left out.
    """
    running = _Stages(config, items)
    index = Index([item.id for item in items])
    at_once = isinstance(annotators, SimulatedAnnotators) and not running.listen
    keys = [protocol_key(stage.protocol) for stage in config.stages]
    stages = tuple(StageTasks() for _ in config.stages)
    turns = Turns(annotators.names, rng.spawn(1)[0])
    code = {name: number for number, name in enumerate(annotators.names)}
    order: list[int] = []
    nothing = NoTask("There was nobody to ask.")
    while (most is None or len(order) < most) and (annotator := turns.next()) is not None:
        chosen = running.pick(annotator)
        if isinstance(chosen, NoTask):
            nothing = chosen
            turns.nothing_for(annotator, chosen)
            continue
        number, pick = chosen
        tasks, protocol = stages[number], config.stages[number].protocol
        running.went_out(annotator, number, pick)
        tasks.who.append(code[annotator])
        tasks.items.append(pick.items)
        if isinstance(annotators, SimulatedAnnotators):
            tasks.done.append(annotators.done[annotator])
            tasks.row.append(annotators.answered[keys[number]])
        said: list[Observation] | None = None
        if isinstance(annotators, SimulatedAnnotators) and at_once:
            annotators.begin(annotator, keys[number])
        else:
            ids = [index.ids[item] for item in pick.items]
            answer = annotators.answer(annotator, protocol, ids)
            tasks.answers.append(answer)
            said = protocol.observations(ids, answer)
        running.came_back(annotator, number, pick, said)
        order.append(number)
        turns.answered()
        told()
    if most is not None and len(order) >= most:
        nothing = NoTask("As many judgments as were wanted.")
    return Rehearsal(config, index, annotators, stages, tuple(order), nothing.complete, nothing.reason)
