"""Simulated annotators: what each perceives of a task, for one task or thousands at once."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np

from steelyard.errors import ConfigError, DataError
from steelyard.observations import UNKNOWN, FloatArray, Index, IntArray
from steelyard.protocols import Choice
from steelyard.protocols import Protocol as AskingProtocol
from steelyard.protocols.base import ONLY
from steelyard.quality.questions import Question
from steelyard.simulate.answers import answer_for, known_values
from steelyard.simulate.population import SimulatedAnnotator
from steelyard.simulate.task_time import task_seconds

_BLOCK = 1024

Truth: TypeAlias = Mapping[str, float] | Mapping[str, Mapping[str, float]]
"""The true value of each item on [0, 1], or one such mapping per criterion."""


class Annotators(Protocol):
    """Sources of answers: simulated annotators, or recorded answers of real ones."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the annotators."""

    def answer(self, annotator: str, protocol: AskingProtocol, items: Sequence[str]) -> Any:
        """Return an annotator's answer to a task that shows these items."""

    def seconds(self, protocol: AskingProtocol) -> float | None:
        """Return the time of the answer in seconds; None if unknown."""


class Draws:
    """Random numbers for tasks 0, 1, 2 …, equal whether read one by one or many at once."""

    def __init__(self, seed: Sequence[int], columns: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._columns = columns
        self._blocks: list[tuple[FloatArray, FloatArray]] = []

    def rows(self, tasks: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return standard normal and uniform numbers, one row per task."""
        while len(self._blocks) * _BLOCK <= int(tasks.max(initial=0)):
            shape = (_BLOCK, self._columns)
            self._blocks.append((self._rng.standard_normal(shape), self._rng.random(shape)))
        if len(tasks) == 1:
            block, place = divmod(int(tasks[0]), _BLOCK)
            normal, uniform = self._blocks[block]
            return normal[place : place + 1], uniform[place : place + 1]
        return (
            np.concatenate([normal for normal, _ in self._blocks])[tasks],
            np.concatenate([uniform for _, uniform in self._blocks])[tasks],
        )


class _RandomDraws(NamedTuple):
    """Random numbers of some answers: one per task, or criteria × tasks × places."""

    shift: FloatArray
    z: FloatArray
    lapse: FloatArray
    guess: FloatArray
    confusion: FloatArray | None


class SimulatedAnnotators:
    """A crowd of simulated annotators with the true values of the items.

    It counts the tasks of each annotator (for drift and fatigue). The n-th answer under a protocol uses the n-th row of
    random numbers, whoever gives it, so answering one by one and all at the end give the same answers.

    Parameters
    ----------
    crowd
        The annotators.
    truth
        The true value of each item on [0, 1], or one such mapping per criterion. With one mapping, all criteria
        of a protocol have the same true values, each perceived with separate noise.
    rng
        Source of the seed.
    """

    def __init__(self, crowd: Sequence[SimulatedAnnotator], truth: Truth, rng: np.random.Generator) -> None:
        if not crowd:
            raise ConfigError("there are no annotators.", "Simulate at least one.")
        self.crowd = tuple(crowd)
        self.people = Index([member.name for member in crowd])
        self.done: Counter[str] = Counter()
        self._seed = int(rng.integers(2**62))
        self._by_criterion = _by_criterion(truth)
        self.items = Index(next(iter(self._by_criterion.values())))
        self._values = {
            name: np.array([item_values[item] for item in self.items.ids], np.float64)
            for name, item_values in self._by_criterion.items()
        }
        self._draws: dict[int, Draws] = {}
        self._tables: dict[int, FloatArray] = {}
        self._pace = np.random.default_rng([self._seed, 0])
        self.answer_counts: Counter[int] = Counter()
        """Number of answers under each protocol, by its key."""
        self._trait: dict[str, FloatArray] = {
            name: np.array([getattr(member, name) for member in crowd], np.float64) for name in _TRAITS
        }
        self._varying_traits = {name for name, values in self._trait.items() if (values != _DEFAULTS[name]).any()}
        self._random = np.array([member.careless == "random" for member in crowd])
        self._constant = np.array([member.careless == "constant" for member in crowd])
        self._source_of = self._answer_sources()
        self._is_copied = np.isin(np.arange(len(crowd)), self._source_of[self._source_of != np.arange(len(crowd))])
        self._has_careless = bool(self._random.any() or self._constant.any() or self._is_copied.any())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the annotators."""
        return self.people.ids

    def answer(self, annotator: str, protocol: AskingProtocol, items: Sequence[str]) -> Any:
        """Return an annotator's answer to a task with these items."""
        who = self.people.code(annotator)
        done, row = self.begin(annotator, protocol_key(protocol))
        codes = self.items.codes(items)[None, :]
        percept = self.percepts(protocol, np.array([who]), np.array([done]), codes, np.array([row]))
        return answer_for(protocol, perceived_by(protocol, items, percept[:, 0]), self.crowd[who].tie_margin)

    def true_values(self, items: Sequence[str]) -> FloatArray:
        """Return the true values of items, under the first criterion."""
        return next(iter(self._values.values()))[self.items.codes(items)]

    @property
    def careless_names(self) -> list[str]:
        """Names of the careless annotators."""
        return [member.name for member in self.crowd if member.careless is not None]

    def answer_check(self, annotator: str, question: Question, items: Sequence[str]) -> Any:
        """Return an annotator's answer to a check with these items: correct, unless they are careless or lapse.

        Checks are supposed to be easy: noise and bias, which make other items hard, do not count here.
        """
        protocol = question.protocol
        who = self.people.code(annotator)
        done, row = self.begin(annotator, protocol_key(protocol))
        draws = self._random_draws(protocol, (1, len(items)), np.array([row]))
        lapse_rate = self._trait["lapse"][who] + self._trait["lapse_growth"][who] * done / 100
        if self._constant[who]:
            percept = np.full_like(draws.guess[:, 0], 0.5 + self._trait["bias"][who])
        elif self._random[who] or draws.lapse[0] < lapse_rate:
            percept = draws.guess[:, 0]
        else:
            values = known_values(question)
            return answer_for(protocol, {item: values[item] for item in items}, self.crowd[who].tie_margin)
        return answer_for(protocol, perceived_by(protocol, items, percept), self.crowd[who].tie_margin)

    def begin(self, annotator: str, key: int) -> tuple[int, int]:
        """Count a task; return the annotator's earlier tasks, and the number of the answer under the protocol."""
        done, row = self.done[annotator], self.answer_counts[key]
        self.done[annotator] = done + 1
        self.answer_counts[key] = row + 1
        return done, row

    def seconds(self, protocol: AskingProtocol) -> float | None:
        """Draw the time of a task: log-normal around the default of the protocol."""
        return round(task_seconds(protocol) * float(self._pace.lognormal(0, 0.4)), 1)

    def percepts(
        self, protocol: AskingProtocol, who: IntArray, done: IntArray, items: IntArray, rows: IntArray
    ) -> FloatArray:
        """Return the perceived values of the items of tasks, criteria × tasks × places.

        `who` (annotator), `done` (earlier tasks of the annotator) and `rows` (number of the answer under the protocol)
        have one entry per task, `items` one row of codes, padded with UNKNOWN.
        """
        criteria = criterion_names(protocol)
        draws = self._random_draws(protocol, items.shape, rows)
        value = np.stack([self._values_for(name)[items] for name in criteria])
        source, is_copy, z = who, None, draws.z
        if self._has_careless:
            source = self._source_of[who]
            is_copy = self._is_copied[source]
            if is_copy.any():
                z = np.where(is_copy[:, None], self._item_noise(source, items, len(criteria)), z)
            done = np.where(is_copy, 0, done)
        trait = {
            name: values[source]
            for name, values in self._trait.items()
            if name in self._varying_traits or name in _ALWAYS
        }
        hundreds = done / 100
        several = (items != UNKNOWN).sum(axis=1) > 1
        noise = trait["noise"]
        if "fatigue" in trait:
            noise = noise * (1 + trait["fatigue"] * hundreds)
        if "together" in trait:
            noise = np.where(several, noise * trait["together"], noise)
        percept = value + noise[:, None] * z
        if "context_shift" in trait:
            is_shifted = several if is_copy is None else several & ~is_copy
            percept += np.where(is_shifted, trait["context_shift"] * draws.shift, 0.0)[:, None]
        bias = trait["bias"]
        if "drift" in trait:
            bias = bias + trait["drift"] * hundreds
        percept = 0.5 + trait["stretch"][:, None] * (percept - 0.5) + bias[:, None]
        chances = trait["lapse"]
        if "lapse_growth" in trait:
            chances = chances + trait["lapse_growth"] * hundreds
        is_lapse = draws.lapse < chances
        if is_copy is not None:
            is_lapse = (is_lapse & ~is_copy) | self._random[who]
        if is_lapse.any():
            percept = np.where(is_lapse[:, None], draws.guess, percept)
        if draws.confusion is not None and "confusion" in trait:
            percept = np.where(draws.confusion < trait["confusion"][:, None], draws.guess, percept)
        if is_copy is not None:
            percept = np.where(self._constant[who][:, None], (0.5 + trait["bias"])[:, None], percept)
        return percept

    def _random_draws(self, protocol: AskingProtocol, shape: tuple[int, ...], rows: IntArray) -> _RandomDraws:
        """Return the random numbers of tasks under a protocol."""
        tasks, width = shape
        criteria = len(criterion_names(protocol))
        labels = isinstance(protocol, Choice)
        key = protocol_key(protocol)
        if key not in self._draws:
            wide = criteria * max(width, protocol.task_size)
            self._draws[key] = Draws([self._seed, key], 1 + wide * (2 if labels else 1))
        normal, uniform = self._draws[key].rows(rows)
        span = criteria * width

        def by_place(numbers: FloatArray) -> FloatArray:
            return numbers.reshape(tasks, criteria, width).transpose(1, 0, 2)

        return _RandomDraws(
            shift=normal[:, 0],
            z=by_place(normal[:, 1 : 1 + span]),
            lapse=uniform[:, 0],
            guess=by_place(uniform[:, 1 : 1 + span]),
            confusion=by_place(uniform[:, 1 + span : 1 + 2 * span]) if labels else None,
        )

    def tie_margins(self, who: IntArray) -> FloatArray:
        """Return the distance below which two values are perceived as equal, by annotator."""
        return self._trait["tie_margin"][who]

    def _values_for(self, criterion: str) -> FloatArray:
        values = self._values.get(criterion, self._values.get(ONLY))
        if values is None:
            raise DataError(
                f"there are no true values for criterion '{criterion}'.",
                f"Give each item's value for it; there are: {', '.join(self._values)}.",
            )
        return values

    def _answer_sources(self) -> IntArray:
        """Return whose answers each annotator gives: their own, or those of the annotator they copy."""
        return np.array(
            [
                self.people.code(member.copies) if member.careless == "copy" and member.copies else code
                for code, member in enumerate(self.crowd)
            ],
            np.int32,
        )

    def _item_noise(self, source: IntArray, items: IntArray, criteria: int) -> FloatArray:
        """Return noise that depends only on annotator and item, so that copies agree with their source."""
        if criteria not in self._tables:
            rng = np.random.default_rng([self._seed, criteria])
            shape = (criteria, int(self._is_copied.sum()), len(self.items))
            self._tables[criteria] = rng.standard_normal(shape)
        # Annotators who are not copied get an arbitrary row here, which the caller replaces by their own noise.
        row = (np.cumsum(self._is_copied) - 1).clip(min=0)[source]
        return self._tables[criteria][:, row[:, None], items]


_TRAITS = tuple(f.name for f in fields(SimulatedAnnotator) if f.name not in {"name", "careless", "copies"})
_DEFAULTS = {f.name: cast("float", f.default) for f in fields(SimulatedAnnotator) if f.name in _TRAITS}
_ALWAYS = {"noise", "bias", "stretch", "lapse"}


def criterion_names(protocol: AskingProtocol) -> tuple[str, ...]:
    """Return the criteria of a protocol, ('',) if there is only one."""
    return protocol.criterion_names()


def protocol_key(protocol: AskingProtocol) -> int:
    """Return a number that identifies a protocol and its settings."""
    text, names = repr(protocol), protocol.criterion_names()
    # Criteria that are not in the repr need random numbers of their own too.
    return zlib.crc32((text if names == (ONLY,) or "criteria=" in text else f"{text} {names}").encode())


def perceived_by(protocol: AskingProtocol, items: Sequence[str], percept: FloatArray) -> dict[str, Any]:
    """Return perceived values (criteria × places) by item, as `answer_for` expects them."""
    names = criterion_names(protocol)
    if names == (ONLY,):
        return dict(zip(items, percept[0].tolist(), strict=False))
    return {item: dict(zip(names, percept[:, place].tolist(), strict=True)) for place, item in enumerate(items)}


def _by_criterion(truth: Truth) -> dict[str, Mapping[str, float]]:
    if not truth:
        raise DataError("there is no item with a value.", "Give each item's value on [0, 1].")
    if isinstance(next(iter(truth.values())), Mapping):
        return dict(cast("Mapping[str, Mapping[str, float]]", truth))
    return {ONLY: cast("Mapping[str, float]", truth)}
