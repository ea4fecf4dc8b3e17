"""The people a study may meet: what varies among them, and crowds drawn from that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from steelyard.errors import ConfigError, Problem, did_you_mean
from steelyard.observations import FloatArray

Spam: TypeAlias = Literal["random", "constant", "copy"]
SPAM: tuple[Spam, ...] = ("random", "constant", "copy")


@dataclass(frozen=True, slots=True)
class SimulatedAnnotator:
    """One simulated person. Values are on the unit scale, rates per hundred tasks done.

    Of an item of value v the person takes in x = v + noise·z, and uses the scale as
    0.5 + stretch·(x - 0.5) + bias. With probability `lapse` a task is answered without looking.

    Attributes
    ----------
    drift
        How far the bias moves.
    fatigue
        By what share the noise grows.
    lapse_growth
        By how much the probability of a lapse grows.
    together
        Noise of items shown beside others, as a share of the noise of an item shown alone.
    context_shift
        Standard deviation of a shift that all items of a task share, where there are several.
    tie_margin
        Values this close look the same.
    confusion
        Probability that a label is drawn at random (protocol choice).
    spam
        `random` never looks. `constant` gives one value, 0.5 + bias, to everything: the last shown is the best
        where one must be chosen, and all are equal where that is an answer. `copy` answers as the person named in
        `copies` does.
    """

    name: str
    bias: float = 0.0
    stretch: float = 1.0
    noise: float = 0.1
    lapse: float = 0.0
    drift: float = 0.0
    fatigue: float = 0.0
    lapse_growth: float = 0.0
    together: float = 1.0
    context_shift: float = 0.0
    tie_margin: float = 0.03
    confusion: float = 0.0
    spam: Spam | None = None
    copies: str | None = None


@dataclass(frozen=True, slots=True)
class Population:
    """What items and people are like, on the unit scale. The defaults resemble recorded crowds with sliders."""

    mean: Annotated[float, Field(gt=0, lt=1, description="mean of the items' values")] = 0.5
    spread: Annotated[float, Field(gt=0, lt=0.5, description="standard deviation of the items' values")] = 0.25
    bias: Annotated[float, Field(ge=0, description="standard deviation of people's biases")] = 0.1
    stretch: Annotated[float, Field(ge=0, description="standard deviation of the log of people's scale use")] = 0.25
    noise: Annotated[float, Field(ge=0, description="people's noise, on average")] = 0.17
    noise_spread: Annotated[float, Field(ge=0, description="how people's noise varies, as a share of it")] = 0.4
    lapse: Annotated[float, Field(ge=0, lt=1, description="share of tasks answered without looking")] = 0.05
    drift: Annotated[float, Field(ge=0, description="how far biases move in 100 tasks (standard deviation)")] = 0.0
    fatigue: Annotated[float, Field(ge=0, description="by what share noise grows in 100 tasks")] = 0.0
    lapse_growth: Annotated[float, Field(ge=0, description="by how much lapses grow in 100 tasks")] = 0.0
    together: Annotated[float, Field(ge=0, description="noise of items shown beside others, as a share")] = 1.0
    context_shift: Annotated[float, Field(ge=0, description="shift that a task's items share (std. deviation)")] = 0.0
    tie_margin: Annotated[float, Field(ge=0, description="values this close look the same")] = 0.03
    confusion: Annotated[float, Field(ge=0, le=1, description="share of labels drawn at random (choice)")] = 0.0
    spam: Annotated[float, Field(ge=0, lt=1, description="share of people who do not do the work")] = 0.0

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Population:
        """Build a population from settings by name, refusing unknown and impossible ones."""
        known = [field.name for field in fields(cls)]
        problems = [
            Problem(f"a population has no setting '{key}'.", did_you_mean(key, known))
            for key in settings
            if key not in known
        ]
        if problems:
            raise ConfigError(problems)
        try:
            made = TypeAdapter(cls).validate_python(dict(settings))
        except ValidationError as error:
            raise ConfigError(
                Problem(f"{details['msg']} (given: {details['input']!r}).", field=".".join(map(str, details["loc"])))
                for details in error.errors()
            ) from None
        made.check()
        return made

    def check(self) -> None:
        """Refuse a spread that values between 0 and 1 cannot have."""
        if self.spread**2 >= self.mean * (1 - self.mean):
            most = (self.mean * (1 - self.mean)) ** 0.5
            raise ConfigError(
                f"values between 0 and 1 with mean {self.mean:g} cannot have a standard deviation of {self.spread:g}.",
                f"Make the spread smaller than {most:.3f}.",
            )

    def values(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw the values of so many items, from a beta distribution with this mean and spread."""
        self.check()
        precision = self.mean * (1 - self.mean) / self.spread**2 - 1
        return rng.beta(self.mean * precision, (1 - self.mean) * precision, count)

    def truth(self, items: Sequence[str], rng: np.random.Generator) -> dict[str, float]:
        """Draw a value for each item."""
        return dict(zip(items, self.values(len(items), rng).tolist(), strict=True))


def make_crowd(size: int, rng: np.random.Generator, population: Population | None = None) -> list[SimulatedAnnotator]:
    """Draw a crowd: normal biases and drifts, log-normal scale use, gamma noise, beta lapses.

    Of the spammers, every third is random, constant, or a copy of somebody honest.
    """
    drawn = population or Population()
    spammers = round(drawn.spam * size)
    honest = size - spammers
    width = max(2, len(str(size)))
    names = [f"sim-{number:0{width}d}" for number in range(1, size + 1)]
    bias = rng.normal(0, drawn.bias, size)
    # The log's mean is set so that scale use is 1 on average.
    stretch = np.exp(rng.normal(-(drawn.stretch**2) / 2, drawn.stretch, size))
    noise = _gamma(drawn.noise, drawn.noise_spread, size, rng)
    lapse = rng.beta(1, 1 / drawn.lapse - 1, size) if drawn.lapse else np.zeros(size)
    drift = rng.normal(0, drawn.drift, size)
    copied = rng.integers(max(honest, 1), size=size)
    places = rng.permutation(size)
    crowd: list[SimulatedAnnotator | None] = [None] * size
    for number, place in enumerate(places.tolist()):
        spam = SPAM[(number - honest) % 3] if number >= honest else None
        if spam == "copy" and not honest:
            spam = "random"
        crowd[place] = SimulatedAnnotator(
            names[place],
            bias=float(bias[place]),
            stretch=float(stretch[place]),
            noise=float(noise[place]),
            lapse=float(lapse[place]),
            drift=float(drift[place]),
            fatigue=drawn.fatigue,
            lapse_growth=drawn.lapse_growth,
            together=drawn.together,
            context_shift=drawn.context_shift,
            tie_margin=drawn.tie_margin,
            confusion=drawn.confusion,
            spam=spam,
            copies=names[places[copied[place]]] if spam == "copy" else None,
        )
    return [person for person in crowd if person is not None]


def _gamma(mean: float, variation: float, size: int, rng: np.random.Generator) -> FloatArray:
    if not variation or not mean:
        return np.full(size, mean)
    shape = 1 / variation**2
    return rng.gamma(shape, mean / shape, size)
